"""What names mean, and what is said where they mean nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from ocannl_lang.names.interface import FixedInterfaces
from ocannl_lang.syntax import ast
from tests.names.programs import (
    ATTENTION,
    HALF_MOONS,
    apply_fix,
    check,
    found,
    module_interface,
    resolved,
    standard_library,
)


@pytest.mark.parametrize("text", [HALF_MOONS, ATTENTION])
def test_good_programs_report_nothing(text: str) -> None:
    assert check(text) == []


def test_the_standard_library_reports_nothing(stdlib: Path) -> None:
    for path in sorted(stdlib.glob("*.ocn")):
        assert [d.render() for d in check(path.read_text(encoding="utf-8"))] == [], path.name


# ---------------------------------------------------------------- unknown names


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("op f(x) = rellu(x)\n", "op f(x) = relu(x)\n"),
        ("op f(x) = tanhh(x)\n", "op f(x) = tanh(x)\n"),
        ("op f(width) = widht + 1\n", "op f(width) = width + 1\n"),
        ("op f(x) = detach(x)\n", "op f(x) = stop_gradient(x)\n"),
        ("op f(x) = softmax{... | k}(x)\n", "from nn import softmax\n\nop f(x) = softmax{... | k}(x)\n"),
        (
            "from nn import dense\nop f(x) = mlp[[3]](dense[2](x))\n",
            "from nn import dense, mlp\nop f(x) = mlp[[3]](dense[2](x))\n",
        ),
        (
            "from loss import mse\nop f(x, y) = mse(softmx{... | k}(x), y)\n",
            "from loss import mse\nfrom nn import softmax\nop f(x, y) = mse(softmax{... | k}(x), y)\n",
        ),
        ("main(): plot.line([1, 2])\n", "import plot\n\nmain(): plot.line([1, 2])\n"),
        (
            "## About.\n\n## An op.\nop f(x) = dense[1](x)\n",
            "## About.\n\nfrom nn import dense\n\n## An op.\nop f(x) = dense[1](x)\n",
        ),
        ("op f[size: int](x: [szie]) = x\nop g(x): return {w: [siez]}\n", None),
        ("op f[width: int](x) = {w: [... -> widht]} * x\n", "op f[width: int](x) = {w: [... -> width]} * x\n"),
        ("basis tokens\nop f(x: [3:token]) = x\n", "basis tokens\nop f(x: [3:tokens]) = x\n"),
        ("fn f(n: integer) = n\n", "fn f(n: int) = n\n"),
        ("op f{axes}(x) = sum{axes => collapse(axs)}(x)\n", "op f{axes}(x) = sum{axes => collapse(axes)}(x)\n"),
        ("op f(x):\n    var total = x\n    totl = x\n    return total\n", None),
        ('main(): print("{xs}")\n', None),
    ],
)
def test_an_unknown_name_is_reported_with_the_nearest(wrong: str, right: str | None) -> None:
    diagnostics = check(wrong)
    assert [d.code for d in diagnostics] == ["E0201"], [d.render() for d in diagnostics]
    if right is not None:
        assert apply_fix(wrong, diagnostics[0]) == right
        assert check(right) == []


def test_an_unknown_name_is_said_once_for_each_definition() -> None:
    text = "op f(x):\n    let a = zork(x)\n    let b = a + zork(x)\n    return a + b\nop g(x) = zork(x)\n"
    assert found(text) == [("E0201", 2), ("E0201", 5)]


def test_several_unknown_names_are_all_reported() -> None:
    assert found("op f(x) = aaaa(x) + bbbb(x)\n") == [("E0201", 1), ("E0201", 1)]


def test_a_misspelt_use_does_not_also_make_the_name_unused() -> None:
    assert found("op f(x):\n    let hidden = relu(x)\n    return hiden\n") == [("E0201", 3)]


def test_names_that_failed_to_parse_are_not_called_unknown() -> None:
    text = "op f(x) = relu(x\nroutine g(a: f32[3]):\n    return f(a)\n"
    assert [d.code for d in check(text)] == ["E0103"]
    text = "op f(x):\n    let a = = 3\n    let b = relu(x)\n    return a + b\n"
    assert [d.code for d in check(text)] == ["E0102"]


# ---------------------------------------------------------------- scopes


@pytest.mark.parametrize(
    "text",
    [
        "op f(x) = g(x)\nop g(x) = h(x)\nop h(x) = x\n",
        "op relu(x) = x\nop f(x) = relu(x)\n",
        "op f(x):\n    let y = {w} * x\n    return y + w\n",
        "op f(x):\n    let w = {w}\n    return w * x\n",
        "op f(x):\n    let q, k = {q}, {k}\n    return q * x + k * x\n",
        "op f(x):\n    let x = relu(x)\n    return x\n",
        "op f[n: int](x):\n    if n == 0:\n        let y = x\n    else:\n        let y = relu(x)\n    return y\n",
        "op f[n: int](x):\n    if n == 0:\n        let y = n\n        print(y)\n    let y = relu(x)\n    return y\n",
        "op f(x):\n    for i in 0..3:\n        let h = x + i\n        print(h)\n    for i in 0..2:\n        let h = x - i\n    return h\n",
        "op f[n: int](x):\n    for i in 0..n:\n        if i > 0: print(last)\n        let last = i\n    return x\n",
        "fn f(xs: list[int]) = [x + y for x in xs for y in xs]\n".replace(" for y in xs]", "]").replace("x + y", "x"),
        "op f[window: int = 2, stride: int = window](x) = x *. stride *. window\n",
        "routine f(x: f32[n | d], y: f32[n | d]):\n    return sum(x *. y) / d / n\n",
        "op f(x: [..r.. -> d], y: [..r..]) = x * y / d / r\n",
        'extern py "m:f" as f(a: int) -> (f32[n | 64], i32[n | ])\nmain(): print(f(1))\n',
        "op f(x):\n    dim d = 3\n    row r\n    return sum{..r.., d => ..r..}(x)\n",
        "op f(x) = x +*{... | s*o =+ k, c; k, c -> f => ... | o, f} {w}\nlet s = 2\n",
        "op f(x) = concat{x, ...; y, ... => x^y, ...}(x, x)\n",
        "routine f(x: f32[8]):\n    dim a = 5\n    return sum{a^b => b}(x)\n",
        "let a = b\nlet b = 1\n",
        "import nn\nop f(x) = nn.dense[3](x)\n",
        "import nn as layers\nop f(x) = layers.dense[3](x)\n",
        "from nn import dense as linear\nop f(x) = linear[3](x)\n",
        "op f(x):\n    state count: f32 = 0.\n    count += 1.\n    return x + count\n",
        "basis heads\nop f[heads: int](x: [3:heads]) = x *. heads\n",
        "op f(x: [3:default]) = x\n",
        "main():\n    a, b = (1, 2)\n    a, c = (b, a)\n    print(a, c)\n",
        "main():\n    for a, b in zip([1], [2]): print(a, b)\n    let _, c = (1, 2)\n    print(c)\n",
    ],
)
def test_what_can_be_seen(text: str) -> None:
    assert [d.render() for d in check(text)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("op f(x):\n    let a = b\n    let b = x\n    return a + b\n", [("E0201", 2)]),
        ("fn f(xs: list[int]):\n    let ys = [x for x in xs]\n    return ys + [x]\n", [("E0201", 3)]),
        (
            "op f[n: int](x):\n    if n == 0:\n        let y = x\n    else:\n        return y\n    return y\n",
            [("E0201", 5)],
        ),
        ("op f(x) = result\n", [("E0201", 1)]),
        ("op f(x) = sum{i, j => i}(x) + i\n", [("E0201", 1)]),
        ('data a: f32[n | 3] = read_array("a.npy")\nroutine f(): return a\n', [("E0201", 1)]),
    ],
)
def test_what_cannot_be_seen(text: str, expected: list[tuple[str, int]]) -> None:
    assert found(text) == expected


# ---------------------------------------------------------------- defined twice


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ("op f(x) = x\nop f(x) = x\n", 2),
        ("let a = 1\nfn a() = 2\n", 2),
        ("from nn import dense\nop dense(x) = x\nop g(x) = dense(x)\n", 2),
        ("op f(x, x) = x\n", 1),
        ("op f[n: int](n) = n\n", 1),
        ("op f(x):\n    let y = x\n    let y = y + 1\n    return y\n", 3),
        ("op f(x):\n    dim d\n    let d = 3\n    return {w: [d]} + x\n", 3),
        ("op f(x) = {w} * x + {w}\n", 1),
        ("op f(x):\n    let w = 2 * {w}\n    return w * x\n", 2),
        ("main(): print(1)\nmain(): print(2)\n", 2),
        ("basis rgb, rgb\n", 1),
    ],
)
def test_defined_twice(wrong: str, line: int) -> None:
    diagnostics = check(wrong)
    assert [(d.code, d.line) for d in diagnostics] == [("E0202", line)], [d.render() for d in diagnostics]
    assert len(diagnostics[0].labels) == 1


def test_a_second_parameter_is_repaired_by_its_name() -> None:
    wrong = "op f(x):\n    let y = {w} * x\n    return {w} * y\n"
    right = apply_fix(wrong, check(wrong)[0])
    assert right == "op f(x):\n    let y = {w} * x\n    return w * y\n"
    assert check(right) == []


# ---------------------------------------------------------------- modules

OTHERS = FixedInterfaces(
    {
        ("nn",): module_interface("op dense[out: int](x) = {w: [... -> out]} * x\nop _fan(x) = x\n"),
        ("models", "gpt"): module_interface("op block(x) = x\nlet width = 3\nbasis tokens\n"),
        ("broken",): module_interface("op (x) = relu(x)\n"),
    }
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import models.gpt\nop f(x) = gpt.block(x)\n", []),
        ("import models.gpt\nop f(x) = gpt.block(models.gpt.block(x))\n", [("E0201", 2)]),
        ("import models.gpt as gpt\nop f(x) = gpt.block(x)\n", []),
        ("from models import gpt\nop f(x) = gpt.block(x)\n", [("E0204", 1)]),
        ("from models.gpt import width\nop f(x) = {w: [width -> width]} * x\n", []),
        ("from models.gpt import tokens\nop f(x: [3:tokens]) = x\n", []),
        ("from broken import g\nop f(x) = g(x)\n", []),
        ("import modls\nop f(x) = modls.g(x)\n", [("E0204", 1)]),
        ("from modls import g\nop f(x) = g(x)\n", [("E0204", 1)]),
        ("from nn import dens\nop f(x) = dens[3](x)\n", [("E0204", 1)]),
        ("import nn\nop f(x) = nn.dens[3](x)\n", [("E0204", 2)]),
        ("from nn import _fan\nop f(x) = _fan(x)\n", [("E0205", 1)]),
        ("import nn\nop f(x) = nn._fan(x)\n", [("E0205", 2)]),
    ],
)
def test_modules(text: str, expected: list[tuple[str, int]]) -> None:
    assert found(text, OTHERS) == expected


# ---------------------------------------------------------------- warnings


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("from nn import dense, mlp\nop f(x) = dense[3](x)\n", "from nn import dense\nop f(x) = dense[3](x)\n"),
        ("from nn import mlp, dense\nop f(x) = dense[3](x)\n", "from nn import dense\nop f(x) = dense[3](x)\n"),
        ("from nn import dense\nop f(x) = x\n", "op f(x) = x\n"),
        ("import nn\nop f(x) = x\n", "op f(x) = x\n"),
        ("op f(x):\n    let y = x\n    return x\n", "op f(x):\n    let _y = x\n    return x\n"),
        ("op f(x):\n    var y = x\n    y = x\n    return x\n", None),
        ("op f(x):\n    dim d\n    return x\n", "op f(x):\n    dim _d\n    return x\n"),
    ],
)
def test_unused(wrong: str, right: str | None) -> None:
    diagnostics = check(wrong)
    assert [d.code for d in diagnostics] == ["W0901"]
    if right is not None:
        assert apply_fix(wrong, diagnostics[0]) == right
        assert check(right) == []


@pytest.mark.parametrize(
    "text",
    [
        "op f(x, unused) = x\n",
        "op f[unused: int = 3](x) = x\n",
        "op f(x):\n    for i in 0..3: let _ = x\n    return x\n".replace("let _ = x", "print(1)"),
        "op f(x):\n    let a, b = {a} * x, {b} * x\n    return a\n".replace("{a}", "{c}").replace("{b}", "{d}"),
        "op f(x):\n    let _y = x\n    return x\n",
        "let never = 3\n",
        "routine f(x: f32[n | 3]): return x\n",
    ],
)
def test_not_called_unused(text: str) -> None:
    assert check(text) == []


def test_a_label_is_not_the_int_of_that_name() -> None:
    assert found("op f[heads: int](x) = sum{... | heads => ... | 0}(x) *. heads\n") == [("W0903", 1)]
    assert found("op f[heads: int](x):\n    dim h = heads\n    return sum{... | h => ... | 0}(x)\n") == []
    assert found("op f[s: int](x) = sum{... | s*o => ... | o}(x)\n") == []
    assert found("op f[s: int](x) = sum{... | (s) => ... | 0}(x)\n") == []


def test_a_label_that_looks_misspelt() -> None:
    wrong = "op f(x, y) = x +*{... | hidden; hiden, out => ... | out, hidden} y\n"
    diagnostics = check(wrong)
    assert [d.code for d in diagnostics] == ["W0905"]
    assert check(apply_fix(wrong, diagnostics[0])) == []


@pytest.mark.parametrize("labels", ["d_k; d_v", "h1; h2", "oh; ow", "head_k; head_v", "height; weight", "row; rows"])
def test_families_of_labels_are_meant(labels: str) -> None:
    first, second = labels.split("; ")
    assert check(f"op f(x, y) = x +*{{{first}; {second} => {first}, {second}}} y\n") == []


# ---------------------------------------------------------------- what an editor asks


def _place(text: str, word: str, turn: int = 0) -> int:
    at = -1
    for _ in range(turn + 1):
        at = text.index(word, at + 1)
    return at


def test_definition_and_references() -> None:
    text = "op f[width: int](x):\n    let w = {w: [... -> width]}\n    return w * x\nop g(x) = f[width = 3](x)\n"
    _, names, _ = resolved(text)
    width = names.binding_at(_place(text, "width", 2))
    assert width is not None and width.kind == "config"
    assert [(s.line, s.text) for s in names.references(width)] == [(1, "width"), (2, "width"), (4, "width")]
    w = names.binding_at(_place(text, "w * x"))
    assert w is not None and w.kind == "parameter"
    assert [s.line for s in names.references(w)] == [2, 2, 3]


def test_labels_are_local_to_their_notation() -> None:
    text = "op f(x) = sum{i, j => i}(x) + sum{i => i}(x)\ncd c(a, b): a{i} :+= b{i, j}\n"
    _, names, _ = resolved(text)
    first = names.binding_at(_place(text, "i, j"))
    shared = names.binding_at(_place(text, "{i} :+=") + 1)
    assert first is not None and len(names.references(first)) == 2
    assert shared is not None and len(names.references(shared)) == 2


def test_names_visible_at_a_place() -> None:
    text = "from nn import dense\nop f[n: int](x):\n    let a = x\n    let b = a\n    return b\nop g(y) = y\n"
    _, names, _ = resolved(text)
    visible = names.visible(_place(text, "let b"))
    assert {"n", "x", "a", "f", "g", "dense", "relu"} <= set(visible)
    assert "b" not in visible and "y" not in visible
    assert visible["dense"].definition is not None


def test_every_use_is_resolved() -> None:
    module, names, _ = resolved(ATTENTION)
    assert isinstance(module.items[2], ast.OpDef)
    assert names.definition(module.items[2].name) is names.top["residual"]
    assert standard_library().member(("nn",)) is not None
