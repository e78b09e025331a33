"""Sections 2 and 5: slices of tensors; static values where a tensor is needed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.language.programs import Case, Loader, agree, case, errors, random

V, W, X, T = random(2), random(3), random(2, 3), random(4, 2, 3)


def on(shape: str, expression: str) -> str:
    return f"routine f(x: {shape}): return {expression}"


T3 = "f32[4 | 2, 3]"
SLICES = [
    case("static", on(T3, "x[1]"), T, T[1]),
    case("from the end", on(T3, "x[-1]"), T, T[-1]),
    case("the first from the end", on(T3, "x[-4]"), T, T[0]),
    case("slice", on(T3, "x[1:3]"), T, T[1:3]),
    case("range", on(T3, "x[1..3]"), T, T[1:3]),
    case("open end", on(T3, "x[1:]"), T, T[1:]),
    case("open start", on(T3, "x[:2]"), T, T[:2]),
    case("without the last", on(T3, "x[:-1]"), T, T[:-1]),
    case("the last two", on(T3, "x[-2:]"), T, T[-2:]),
    case("nothing", on(T3, "x[1:1]"), T, T[1:1]),
    case("twice", on(T3, "x[1][0]"), T, T[1, 0]),
    case("two batch axes", on("f32[4, 2 | 3]", "x[3][1]"), T, T[3, 1]),
    case("output axis where there is no batch row", on("f32[2, 3]", "x[1]"), X, X[1]),
    case("output axis of a matrix", on("f32[3 -> 2]", "x[1]"), X, X[1]),
    case("input axis where there is nothing else", on("f32[3 -> ]", "x[2]"), W, W[2]),
    case("to the size", on("f32[n | 2, 3]", "x[1:n]"), T, T[1:]),
    case("at a size", on("f32[n | 2, 3]", "x[n - 1]"), T, T[-1]),
    case("half of a size", on("f32[n | 2, 3]", "x[0:n // 2]"), T, T[:2]),
    case(
        "by a size of another",
        "routine f(x: f32[n | 3], m: f32[k]): return x[0:k] *. m[0]",
        random(4, 3),
        W,
        lambda x, m: x[:3] * m[0],
    ),
    case("size in an op", "op last(x: [n | ...]) = x[n - 1]\nroutine f(x: f32[k | 2, 3]): return last(x)", T, T[-1]),
    case(
        "steps",
        "op steps(x):\n    dim n\n    let y: [n | ...] = x\n    return y[1:n] - y[0:n - 1]\nroutine f(x: f32[k | 2, 3]): return steps(x)",
        T,
        np.diff(T, axis=0),
    ),
    case("by an index", "routine f(x: f32[4, 2 | 3], i: index[4], j: index[2]): return x[i][j]", T, 3, 1, T[3, 1]),
    case(
        "by an index of unknown size",
        "routine f(x: f32[n | 3], i: index[n]): return x[i]",
        random(4, 3),
        2,
        lambda x, i: x[i],
    ),
    case(
        "in an op by an index",
        "op pick(x, i) = x[i] + i\nroutine f(x: f32[4 | 3], i: index[4]): return pick(x, i)",
        random(4, 3),
        2,
        lambda x, i: x[i] + i,
    ),
    case(
        "in a loop",
        on("f32[4 | 3]", "sum([(i + 1) * x[i] for i in 0..4])"),
        random(4, 3),
        lambda x: (x * np.arange(1, 5)[:, None]).sum(0),
    ),
    case("as a list", on("f32[4 | 3]", "tensor([x[i] for i in 0..4])"), random(4, 3), lambda x: x),
]

LITERALS = [
    case("list", "routine f(): return tensor([1, 2, 3])", [1, 2, 3]),
    case(
        "matrix",
        "routine f(x: f32[3]): return tensor([(1., 2., 3.), (4., 5., 6.)]) * x",
        W,
        lambda x: np.array([[1, 2, 3], [4, 5, 6]]) @ x,
    ),
    case("matrix by type", "routine f() -> f32[3 -> 2]: return [(1., 2., 3.), (4., 5., 6.)]", [[1, 2, 3], [4, 5, 6]]),
    case(
        "bound with a type",
        "routine f(x: f32[2]):\n    let m: [2 -> 2] = [(0., 1.), (1., 0.)]\n    return m * x",
        V,
        V[::-1],
    ),
    case("list where a tensor is needed", on("f32[2]", "x + [1, 2]"), V, V + np.arange(1, 3)),
    case("tuple where a tensor is needed", on("f32[3 -> 2]", "x + (1., 2., 3.)"), X, X + np.arange(1, 4)),
    case(
        "list in a pointwise function",
        on("f32[2]", "where(x > 0, [1, 2], [3, 4])"),
        V,
        lambda x: np.where(x > 0, [1, 2], [3, 4]),
    ),
    case(
        "list in notation",
        on("f32[2]", "x +*{i; i, j => j} [[1, 2, 3], [4, 5, 6]]"),
        V,
        lambda x: x @ [[1, 2, 3], [4, 5, 6]],
    ),
    case(
        "block of tensors",
        "routine f(a: f32[2], b: f32[2]): return tensor([[a, b], [b, 2 * a]])",
        V,
        3 * V,
        lambda a, b: np.array([[a, b], [b, 2 * a]]),
    ),
    case("block of matrices", "routine f(a: f32[3 -> 2]): return tensor([a, 2 * a])", X, np.stack([X, 2 * X])),
    case(
        "tuple of tensors",
        "routine f(a: f32[2], b: f32[2]): return tensor((a, b)) * [1., 10.]",
        V,
        3 * V,
        lambda a, b: a + 10 * b,
    ),
    case("tensors and numbers", on("f32[2]", "tensor([x, [1, 2], 0])"), V, np.stack([V, [1, 2], [0, 0]])),
    case("scalars", "routine f(a: f32, b: f32): return tensor([(a, b), (b, 3.)]) * [1., 2.]", 1.0, 2.0, [5, 8]),
    case(
        "batched rows stay",
        "routine f(a: f32[5 | 2], b: f32[5 | 2]): return tensor([a, b])",
        random(5, 2),
        random(5, 2, seed=1),
        lambda a, b: np.stack([a, b], 1),
    ),
    case(
        "batched and not",
        "routine f(a: f32[5 | 2], b: f32[2]): return tensor([a, b])",
        random(5, 2),
        V,
        lambda a, b: np.stack([a, np.tile(b, (5, 1))], 1),
    ),
    case(
        "new batch axis",
        "routine f(a: f32[2], b: f32[2]): return batched(a, b, 2 * a)",
        V,
        3 * V,
        lambda a, b: np.stack([a, b, 2 * a]),
    ),
    case(
        "new batch axis before others",
        "routine f(a: f32[4 | 3]): return batched(a, a + 1)",
        random(4, 3),
        lambda a: np.stack([a, a + 1]),
    ),
    case("batched numbers", "routine f(): return batched(1., 2.)", [1, 2]),
    case("batched lists", "routine f(): return batched([1., 2.], [3., 4.])", [[1, 2], [3, 4]]),
    case("ints in other bases", on("f32[2]", "x + 0xff + 1_000"), V, V + 1255),
    case(
        "list of the module",
        "let table = [1., 2., 3.]\nlet k = 3\nroutine f(x: f32[3]): return x *. table + k",
        W,
        W * [1, 2, 3] + 3,
    ),
    case("list taken apart", on("f32[3]", "[x, 2 * x][1] + len([x, x])"), W, 2 * W + 2),
    case(
        "comprehension with a condition",
        on("f32[3]", "tensor([i * x for i in 0..4 if i % 2 == 1])"),
        W,
        np.stack([W, 3 * W]),
    ),
    case("sum of a list", on("f32[3]", "sum([x, x, 1.])"), W, 2 * W + 1),
    case(
        "var rebinds",
        "routine f(x: f32[3]):\n    var y = x\n    y += 1\n    y *= 2\n    for k in 0..3: y = y + k\n    return y",
        W,
        2 * (W + 1) + 3,
    ),
    case(
        "tuples",
        "op both(x) = (x + 1, 2 * x)\nroutine f(x: f32[3]):\n    let a, b = both(x)\n    var c, d = both(b)\n    c += a\n    return c, d",
        W,
        lambda x: (3 * x + 2, 4 * x),
    ),
    case(
        "static branch",
        (
            "op g[deep: bool = false](x):\n"
            "    if deep:\n"
            "        return x * 2\n"
            "    elif x is none: return 0.\n"
            "    else:\n"
            "        return x\n"
            "routine f(x: f32[3]): return g(x) + g[true](x)"
        ),
        W,
        3 * W,
    ),
    case("while", "routine f(x: f32[3]):\n    var k = 1\n    while k < 10: k = 2 * k\n    return k * x", W, 16 * W),
    case(
        "break and continue",
        (
            "routine f(x: f32[3]):\n"
            "    var y = x\n"
            "    for k in 0..10:\n"
            "        if k == 1: continue\n"
            "        if k == 4: break\n"
            "        y += k\n"
            "    return y"
        ),
        W,
        W + 5,
    ),
    case("dict", 'routine f(x: f32[3]):\n    let d = dict(a = 2, b = x)\n    return d["a"] * d["b"]', W, 2 * W),
    case("choice", on("f32[3]", "if 1 < 2 then x else 2 * x"), W, W),
    case(
        "fn while building",
        "fn half(n: int) -> int: return n // 2\nroutine f(x: f32[8]): return sum{2^r => r}(x) + half(5)",
        random(8),
        lambda x: x[2:] + 2,
    ),
    case("fn of tensors", "fn twice(x): return 2 * x\nroutine f(x: f32[3]): return twice(x)", W, 2 * W),
]


@pytest.mark.parametrize("case", SLICES)
def test_slices(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.parametrize("case", LITERALS)
def test_static_values(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


def test_gradients_of_slices(program: Loader) -> None:
    both = program("""
    routine f(x: f64[4 | 3], i: index[4]):
        let loss = sum(x[i] ** 2) + sum(x[1:3]) + 10 * sum(x[-1]) + sum(tensor([x[0], x[0]]))
        update(loss)
        return x.grad
    """)
    x = random(4, 3, dtype="f8")
    agree(both.f(x, 2), [[2] * 3, [1] * 3, 1 + 2 * x[2], [10] * 3])


@pytest.mark.parametrize(
    "text, code",
    [
        (on("f32[4 | 3]", "x[4]"), "E0408"),
        (on("f32[4 | 3]", "x[-5]"), "E0408"),
        (on("f32[4 | 3]", "x[2:5]"), "E0408"),
        (on("f32[4 | 3]", "x[1.5]"), "E0301"),
        ("routine f(x: f32[4 | 3], i: index[5]): return x[i]", "E0408"),
        ("routine f(): return tensor([(1., 2., 3.), (4., 5.)])", "E0401"),
        ("routine f(x: f32[3]):\n    if x > 0: return x\n    return 2 * x", "E0303"),
        ("routine f(x: f32[3]):\n    let y = x\n    y = 2 * x\n    return y", "E0501"),
        ("op f(x) = f(x)\nroutine g(x: f32[3]): return f(x)", "E0306"),
        (
            'op f[n: int](x):\n    expect n > 2, "n is small"\n    return x\nroutine g(x: f32[3]): return f[1](x)',
            "E0304",
        ),
    ],
)
def test_faults(text: str, code: str, tmp_path: Path) -> None:
    assert code in [c for c, _ in errors(text, tmp_path)]
