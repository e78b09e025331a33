"""Static types: what is surely wrong is said, and nothing else."""

from __future__ import annotations

import pytest

from tests.names.programs import apply_fix, check, found

LIN = "op lin[out: int, bias: bool = true](x, mask = none) = {w: [... -> out]} * x\n"


def _faulty(text: str) -> list[tuple[str, int]]:
    return [(code, line) for code, line in found(text) if code.startswith("E")]


@pytest.mark.parametrize(
    "statement",
    [
        'print("a" + 1)',
        'print(1 + "a")',
        'print("a" - "b")',
        'print(-"a")',
        'print(1 < "a")',
        "print(none + 1)",
        "print(relu + 1)",
        "if 1: print(2)",
        'if "a": print(2)',
        "while [1]: print(2)",
        "print(1 if 2 else 3)".replace("1 if 2 else 3", "if 2 then 1 else 3"),
        "print([x for x in 0..3 if x])",
        "for i in 3: print(i)",
        "for i in none: print(i)",
        "for i in print: print(i)",
        "for i in 0..1.5: print(i)",
        "print(3 in 4)",
        "print(1.5(2))",
        'print("a"(2))',
        "print(3[0])",
        "print(3[0:1])",
        "print([1, 2][1.5])",
        'print([1, 2]["a"])',
        "let a, b = 3",
        "let a, b = (1, 2, 3)",
        'let a: int = "b"',
        "let a: int = 1.5",
        "let a: str = 1",
        "let a: list[int] = 3",
        'let a: list[int] = ["b"]',
        "let a: op = 3",
        'let a: f32[3] = "b"',
        "expect 3",
        "dim d = 1.5",
    ],
)
def test_wrong_types(statement: str) -> None:
    diagnostics = [d for d in check(f"main():\n    {statement}\n") if d.severity == "error"]
    assert [d.code for d in diagnostics] == ["E0301"], [d.render() for d in diagnostics]


@pytest.mark.parametrize(
    "statement",
    [
        'print("a" + "b", 1 + 1.5, [1] + [2], "a" * 3, true + 1)',
        'print("a" == 1, [1] == (1, 2), none == 3)',
        "if 1 < 2 and not false: print(2)",
        "var n = 3; while n > 0: n -= 1",
        'for c in "abc": print(c)',
        "for a, b in [(1, 2)]: print(a + b)",
        "for i, x in enumerate([1., 2.]): print(i + x)",
        'let d = dict(a = 1); d["b"] = 2; print(d["a"])',
        "let xs = [1]; xs.append(2); print(xs[0], xs[0:1], xs)",
        "let a: float = 1; let b: list[float] = [1, 2]; print(a, b)",
        "let a: int = none; print(a)",
        "let a: list[int] = 0..3; print(a)",
        'let s = "a,b".split(","); for part in s: print(part.upper())',
        'let n = int("3"); print(n + 1)',
        "print(max(1, 2), min([1, 2]), sum([1, 2]), len([1]), round(1.5), abs(-1))",
        "let a, b = [1, 2]; print(a, b)",
        "var a = 1; a = 2.5; a += 1; print(a)",
        "let f = relu; print(f(1.))",
        "let fs = [relu, tanh]; for f in fs: print(f(1.))",
        "let x = random(); if x < 0.5: print(x)",
        "expect close(1., 1.)",
        'let e = read_array("a.npy"); if sum(e) > 3: print(e[0], e[0:2])',
    ],
)
def test_right_types(statement: str) -> None:
    text = "main():\n" + "".join(f"    {part}\n" for part in statement.split("; "))
    assert [d.render() for d in check(text)] == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("lin(x)", "E0302"),
        ("lin[3, true, 4](x)", "E0302"),
        ("lin[outt = 3](x)", "E0302"),
        ("lin[mask = 3](x)", "E0302"),
        ("lin[out = 3, out = 4](x)", "E0302"),
        ("lin[3, out = 4](x)", "E0302"),
        ("lin[3](x, x, x)", "E0302"),
        ("lin[3]()", "E0302"),
        ("lin[3](x, msk = x)", "E0302"),
        ("lin[3](x, out = 3)", "E0302"),
        ("lin{... | k}[3](x)", "E0302"),
        ('lin["a"](x)', "E0301"),
        ("lin[1.5](x)", "E0301"),
        ("lin[[3]](x)", "E0301"),
        ("lin[relu](x)", "E0301"),
        ("lin[x](x)", "E0303"),
        ('lin[3]("a")', "E0301"),
        ("lin[3](relu)", "E0301"),
        ("relu()", "E0302"),
        ("relu(x, x)", "E0302"),
        ("relu[3](x)", "E0302"),
        ("relu{... | k}(x)", "E0302"),
        ('relu("a")', "E0301"),
        ("clamp(x, 1.)", "E0302"),
        ("x(3)", "E0301"),
        ("x |> lin(3)", "E0301"),
        ("relu(x)(x)", "E0301"),
        ("lin + x", "E0301"),
        ("if x > 0 then x else -x", "E0303"),
        ("if x then x else -x", "E0303"),
        ("sum{(1.5) => }(x)", "E0301"),
        ("{w: [(1.5)]} + x", "E0301"),
        ("{w: [x]} + x", "E0303"),
        ("{w = relu} + x", "E0301"),
        ('"a" +*{i; i => i} x', "E0301"),
    ],
)
def test_wrong_in_an_op(body: str, code: str) -> None:
    diagnostics = check(f"{LIN}op g(x) = {body}\n")
    assert [(d.code, d.line) for d in diagnostics] == [(code, 2)], [d.render() for d in diagnostics]


@pytest.mark.parametrize(
    "body",
    [
        "lin[3](x)",
        "lin[out = 3, bias = false](x, mask = x)",
        "lin[3](2.) + lin[4]([1., x]) + lin[3](x, none)",
        "x |> lin[3] |> relu |> softmax_like",
        "residual[lin[3]](x) + residual[relu](x)",
        "part[lin](x)",
        "if training then x else -x",
        "x[0] + x[0:2] + max(x, 0.) + max(x) + max{... | a => ... | 0}(x)",
        "where(x > 0 and x < 3, x, not x)",
        "one_hot[3](x) + uniform() + 2 * normal() - 1 + f32(x)",
        "[x, x] + (x, x) + 2 * x",
        "{w: [3 -> 4] = [1., 2.]} * x",
    ],
)
def test_right_in_an_op(body: str) -> None:
    others = "op residual[f: op](x) = x + f(x)\nop part[f: op](x) = f[3](x)\nlet softmax_like = lin[out = 2]\n"
    assert [d.render() for d in check(f"{LIN}{others}op g(x) = {body}\n")] == []


@pytest.mark.parametrize("body", ["let a = 3; a = 4", "let a = 3; a += 4", "for i in 0..3: i = 4", "n = 3"])
def test_only_a_var_is_bound_anew(body: str) -> None:
    text = "main(n: int = 1):\n" + "".join(f"    {part}\n" for part in body.split("; "))
    diagnostics = [d for d in check(text) if d.severity == "error"]
    assert [d.code for d in diagnostics] == ["E0501"]


def test_a_loop_over_a_tensor_is_not_static() -> None:
    assert _faulty("op f(x):\n    for row in x: print(row)\n    return x\n") == [("E0303", 2)]


def test_a_condition_on_an_index_is_not_static() -> None:
    assert _faulty("routine f(x: f32[5 | 3], i: index[5]):\n    if i == 0: return x\n    return x[i]\n") == [
        ("E0303", 2)
    ]


def test_host_code_branches_on_values() -> None:
    text = "routine f(x: f32[3]) -> f32:\n    return sum(x)\nmain():\n    if f([1., 2., 3.]) > 3: print(1)\n"
    assert check(text) == []


def test_the_result_of_a_fn() -> None:
    assert _faulty('fn f() -> int: return "a"\n') == [("E0301", 1)]
    assert _faulty("fn f() -> int = 1.5\n") == [("E0301", 1)]
    assert _faulty('fn f() -> float = 1\nfn g(n) -> int = n\nfn h() -> (int, str) = (1, "a")\n') == []
    assert _faulty("fn f() -> (int, str) = (1, 2)\n") == [("E0301", 1)]


def test_what_an_op_gives_is_taken_apart() -> None:
    pair = "op pair(x): return x, relu(x)\n"
    assert _faulty(f"{pair}op g(x):\n    let a, b = pair(x)\n    return a + b\n") == []
    assert _faulty(f"{pair}op g(x):\n    let a, b, c = pair(x)\n    return a + b + c\n") == [("E0301", 3)]


def test_misplaced_statements() -> None:
    assert _faulty("op f(x):\n    break\n    return x\n") == [("E0102", 2)]
    assert _faulty("op f(x):\n    for i in 0..3: break\n    return x\n") == []
    assert _faulty("cd f(x):\n    forward: x := 1.\n") == [("E0102", 2)]
    assert _faulty("op f(x):\n    forward: return x\n") == [("E0102", 2)]


@pytest.mark.parametrize("body", ["let a = {w}; print(a)", "state a: f32; print(a)", 'update(read_array("a.npy"))'])
def test_computations_do_not_stand_in_host_code(body: str) -> None:
    text = "main():\n" + "".join(f"    {part}\n" for part in body.split("; "))
    assert _faulty(text) == [("E0501", 2)]


def test_unknown_members() -> None:
    assert _faulty("main():\n    let xs = [1]\n    xs.apend(2)\n") == [("E0204", 3)]
    assert _faulty('main(): print("a".uper())\n') == [("E0204", 1)]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("main():\n    for i in 3: print(i)\n", "main():\n    for i in 0..3: print(i)\n"),
        ("main():\n    let a = 1\n    a = 2\n    print(a)\n", "main():\n    var a = 1\n    a = 2\n    print(a)\n"),
        (f"{LIN}op g(x) = x |> lin(3)\n", f"{LIN}op g(x) = x |> lin[3]\n"),
        (f"{LIN}op g(x) = lin[outt = 3](x)\n", f"{LIN}op g(x) = lin[out = 3](x)\n"),
    ],
)
def test_fixes(wrong: str, right: str) -> None:
    (diagnostic,) = check(wrong)
    assert apply_fix(wrong, diagnostic) == right
    assert check(right) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("op f(x) = f(x) + 1\n", 1),
        ("op f(x) = g(x)\nop g(x) = f(x)\n", 2),
        ("fn f(n: int) -> int:\n    let m = f(n - 1)\n    return m\n", 2),
        ("op f[n: int](x) = x |> f[n - 1]\n", 1),
    ],
)
def test_recursion_without_end(text: str, line: int) -> None:
    assert _faulty(text) == [("E0306", line)]


@pytest.mark.parametrize(
    "text",
    [
        "fn f(n: int) -> int = if n == 0 then 1 else n * f(n - 1)\n",
        "fn f(n: int) -> int:\n    if n == 0: return 1\n    return n * f(n - 1)\n",
        "fn f(n: int) -> bool = n == 0 or f(n - 1)\n",
        "fn f(n: int) -> list = [f(k) for k in 0..n]\n",
        "op f[n: int](x):\n    for i in 0..n: return f[i](x)\n    return x\n",
        "op f(x) = g[f](x)\nop g[h: op](x) = x\n",
        "fn f(n: int) -> int:\n    expect n > 0\n    return f(n - 1)\n",
    ],
)
def test_recursion_that_may_end(text: str) -> None:
    assert _faulty(text) == []
