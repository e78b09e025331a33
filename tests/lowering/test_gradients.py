"""Gradients equal finite differences, for every primitive and every form of notation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ocannl_lang.graph import ir
from ocannl_lang.graph.derivatives import none
from ocannl_lang.graph.primitives import PRIMITIVES
from ocannl_lang.shapes.terms import Row, Shape, Size
from tests.graph.make import Dims, apply, cell, cell_value, number, reduce, run, shape, tensor, value
from tests.lowering.gradients import check, gradients

RNG = np.random.default_rng(2)
POSITIVE = {"log", "log2", "sqrt", "rsqrt"}


def draw(*shape: int) -> Any:
    return RNG.standard_normal(shape)


def grad(of: ir.Value, backprop: ir.Backprop) -> ir.Value:
    return value(ir.GradOf(of, backprop), of.shape, differentiable=False)


# ---------------------------------------------------------------- primitives


@pytest.mark.parametrize(
    "fn", [p.name for p in PRIMITIVES.values() if p.derivative is not none and p.name not in ("where", "convert")]
)
def test_primitives(fn: str) -> None:
    arity = PRIMITIVES[fn].arity
    xs = [tensor(f"x{i}", (5,)) for i in range(arity)]
    arrays = [
        np.array([-2.3, -0.4, 0.3, 0.8, 1.9]),
        np.array([1.3, 0.7, 0.9, 2.1, -0.6]),
        np.array([2.0, 0.1, 1.0, 2.5, 1.5]),
    ][:arity]
    if fn in POSITIVE or fn == "pow":
        arrays[0] = np.abs(arrays[0])
    if fn == "clamp":
        arrays = [np.array([-2.0, 0.5, 3.0, 1.0, 0.0]), np.full(5, -1.0), np.full(5, 2.0)]
    check(dict(zip(xs, arrays, strict=True)), apply(fn, *xs, to=shape((5,))))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5])
def test_powers_with_constant_exponents(exponent: Any) -> None:
    x = tensor("x", (3,))
    check({x: np.array([0.5, 1.5, 2.0])}, apply("pow", x, number(exponent), to=shape((3,))))
    if isinstance(exponent, int) and exponent >= 0:
        check({x: np.array([-0.5, -1.5, 2.0])}, apply("pow", x, number(exponent), to=shape((3,))))
        assert np.isfinite(gradients({x: np.zeros(3)}, apply("pow", x, number(exponent), to=shape((3,))), [x])[0]).all()


def test_where_sends_the_gradient_to_what_was_chosen() -> None:
    x, y, c = tensor("x", (4,)), tensor("y", (4,)), tensor("c", (4,), precision="u8")
    check({x: draw(4), y: draw(4), c: np.array([0, 1, 1, 0])}, apply("where", c, x, y, to=shape((4,))))
    bad = apply("where", c, apply("log", x, to=shape((4,))), y, to=shape((4,)))
    got = gradients({x: np.array([-1.0, 1, 1, 0]), y: draw(4), c: np.array([0, 1, 1, 0])}, bad, [y])[0]
    assert got.tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("fn", "expected"), [("relu", 0), ("abs", 0), ("sat01", 0), ("sign", 0), ("stop_gradient", 0), ("floor", 0)]
)
def test_at_the_corner(fn: str, expected: float) -> None:
    x = tensor("x", (1,))
    assert gradients({x: np.zeros(1)}, apply(fn, x, to=shape((1,))), [x])[0].tolist() == [expected]


def test_ties_of_binary_extrema_share() -> None:
    x, y = tensor("x", (3,)), tensor("y", (3,))
    a, b = np.array([1.0, 2.0, 0.0]), np.array([1.0, 0.0, 5.0])
    for fn, wins in (("max", [0.5, 1, 0]), ("min", [0.5, 0, 1])):
        got = gradients({x: a, y: b}, apply(fn, x, y, to=shape((3,))), [x, y])
        assert got[0].tolist() == wins and got[1].tolist() == [1 - w for w in wins]


def test_functions_do_not_overflow_at_large_arguments() -> None:
    x = tensor("x", (6,), precision="f32")
    a = np.array([-1e4, -100, -20, 20, 100, 1e4], np.float32)
    for fn in ("sigmoid", "softplus", "silu", "tanh", "gelu", "gelu_tanh", "erf"):
        node = apply(fn, x, to=shape((6,)))
        backprop = ir.Backprop(node, None, {}, {})
        forward, back = run({x: a}, [node, grad(x, backprop)])
        assert np.isfinite(forward).all() and np.isfinite(back).all(), fn


def test_conversions() -> None:
    x = tensor("x", (3,), precision="f32")
    wide = apply("convert", x, to=shape((3,)), precision="f64")
    got = gradients({x: np.ones(3)}, wide, [x], seed=np.array([1.0, 2.0, 3.0]))[0]
    assert got.dtype == np.float32 and got.tolist() == [1, 2, 3]
    whole = apply("convert", x, to=shape((3,)), precision="i32", differentiable=False)
    back = apply("mul", x, whole, to=shape((3,)))
    assert gradients({x: np.array([1.5, 2.5, 3.5])}, back, [x])[0].tolist() == [1, 2, 3]


# ---------------------------------------------------------------- tensors


def test_broadcasting_sums() -> None:
    x, y = tensor("x", (2, 3), (2,), (2,)), tensor("y", (3,), (1,))
    check({x: draw(2, 2, 3, 2), y: draw(3, 1)}, apply("mul", x, y, to=shape((2, 3), (2,), (2,))))
    leading = value(ir.Input("z", "tensor"), Shape(Row(), Row((Size(2),), None, ()), Row()), "f64", name="z")
    check({x: draw(2, 2, 3, 2), leading: draw(2)}, apply("mul", x, leading, to=shape((2, 3), (2,), (2,))))


def test_products_transposes_stacks() -> None:
    w, x, d = tensor("w", (2,), (3, 2)), tensor("x", (2,), (), (2,)), tensor("d", (2,))
    arrays = {w: draw(2, 3, 2), x: draw(2, 2), d: draw(2)}
    check(
        arrays,
        value(ir.Product(w, x, d), shape((2,), (), (2,))),
    )
    check({w: draw(2, 3, 2)}, value(ir.Transpose(w), shape((3, 2), (2,))))
    stack = value(ir.Stack("output", (x, number(2.0), d, x)), shape((4, 2), (), (2,)))
    check({x: draw(2, 2), d: draw(2)}, stack)


NOTATIONS = [
    ("i k ; k j => i j", [(2, 3), (3, 2)], (2, 2)),
    ("i k ; k j ; j => i", [(2, 3), (3, 2), (2,)], (2,)),
    ("i i => i", [(2, 2)], (2,)),
    ("i => i i", [(2,)], (2, 2)),
    ("i => i j", [(2,)], (2, 2)),
    ("i 1 => i", [(2, 3)], (2,)),
    ("i => 2 i", [(2,)], (3, 2)),
    ("i k => 0 k", [(2, 3)], (1, 3)),
    ("i k => ", [(2, 3)], ()),
    ("i i k => k i", [(2, 2, 3)], (3, 2)),
]


@pytest.mark.parametrize("accum", ["add", "mean", "mul", "max", "min"])
@pytest.mark.parametrize(("notation", "shapes", "to"), NOTATIONS)
def test_notations(notation: str, shapes: list[tuple[int, ...]], to: tuple[int, ...], accum: str) -> None:
    d = Dims(i=2, j=2, k=3)
    xs = [tensor(f"x{n}", s) for n, s in enumerate(shapes)]
    check({x: draw(*s) for x, s in zip(xs, shapes, strict=True)}, reduce(d, accum, notation, *xs, to=shape(to)), d)


@pytest.mark.parametrize("accum", ["add", "mean", "mul", "max", "min"])
@pytest.mark.parametrize(
    ("stride", "dilation", "padded"),
    [(1, 1, False), (2, 1, False), (1, 2, False), (1, 1, True), (2, 1, True), (1, 2, True), (3, 1, True)],
)
def test_windows(accum: str, stride: int, dilation: int, padded: bool) -> None:
    d = Dims(o=3, k=3, c=2)
    n = stride * 3 if padded else stride * 2 + dilation * 2 + 1
    x, k = tensor("x", (n, 2)), tensor("k", (3,))
    axis: dict[str, Any] = {"w": d.window("o", "k", stride, dilation, padded)}
    check({x: draw(n, 2)}, reduce(d, accum, "w c => o c", x, to=shape((3, 2)), **axis), d)
    check({x: draw(n, 2), k: draw(3)}, reduce(d, accum, "w c ; k => o c", x, k, to=shape((3, 2)), **axis), d)
    y = tensor("y", (3, 3))
    check({y: draw(3, 3)}, reduce(d, accum, "o k => w", y, to=shape((n,)), **axis), d)


@pytest.mark.parametrize("accum", ["add", "mean", "mul", "max"])
def test_concatenations_and_strides(accum: str) -> None:
    d = Dims(a=2, b=3, c=2)
    x, y = tensor("x", (2, 2)), tensor("y", (3, 2))
    ab, ba, skip = d.concat("a", "b"), d.concat("b", "a"), d.concat(2, "b")
    joined = reduce(d, "add", "a c ; b c => ab c", x, y, combine="concat", to=shape((5, 2)), ab=ab)
    check({x: draw(2, 2), y: draw(3, 2)}, joined, d)
    z = tensor("z", (5,))
    check({z: draw(5)}, reduce(d, accum, "ab => ba", z, to=shape((5,)), ab=ab, ba=ba), d)
    check({z: draw(5)}, reduce(d, accum, "s => b", z, to=shape((3,)), s=skip), d)
    check({z: draw(5)}, reduce(d, accum, "ab => ", z, to=shape(), ab=ab), d)
    if accum == "add":
        v = tensor("v", (3,))
        check({v: draw(3)}, reduce(d, accum, "b => s", v, to=shape((5,)), s=skip), d)
    t = tensor("t", (6,))
    check({t: draw(6)}, reduce(d, accum, "s => b", t, to=shape((3,)), s=ir.StridedAxis(2, d["b"], 1)), d)


def test_positions_from_data_scatter_back() -> None:
    d = Dims(r=(3,))
    x = tensor("x", (3,), batch=(4,))
    i = value(ir.Input("i", "index"), shape(), "i32", name="i", differentiable=False)
    picked = reduce(d, "add", "p | ..r.. => | ..r..", x, to=shape((3,)), p=ir.Fixed(i))
    check({x: draw(4, 3), i: 2}, picked, d)
    back = reduce(d, "add", "p | ..r.. => p | ..r..", x, to=shape((3,), batch=(5,)), p=ir.Fixed(i))
    check({x: draw(4, 3), i: 2}, back, d)


def test_tropical_products_and_sums_of_sums() -> None:
    d = Dims(i=2, j=2, k=3)
    a, b = tensor("a", (2, 3)), tensor("b", (3, 2))
    for accum in ("max", "min", "add"):
        y = reduce(d, accum, "i k ; k j => i j", a, b, combine="add", to=shape((2, 2)))
        check({a: draw(2, 3), b: draw(3, 2)}, y, d)


def test_ties_of_reductions_share_equally_over_the_turns_that_reach() -> None:
    d = Dims(i=4, o=3, k=2)
    x = tensor("x", (4,))
    a = np.array([2.0, 2.0, 1.0, 2.0])
    got = gradients({x: a}, reduce(d, "max", "i => ", x, to=shape()), [x], d)[0]
    np.testing.assert_allclose(got, [1 / 3, 1 / 3, 0, 1 / 3])
    overlapping = reduce(d, "max", "w => o", x, to=shape((3,)), w=d.window("o", "k"))
    np.testing.assert_allclose(gradients({x: a}, overlapping, [x], d)[0], [0.5, 1.5, 0, 1])
    tie = tensor("y", (4,))
    sums = reduce(d, "max", "i ; i => ", x, tie, combine="add", to=shape())
    both = gradients({x: np.zeros(4), tie: np.zeros(4)}, sums, [x, tie], d)
    assert both[0].tolist() == both[1].tolist() == [0.25] * 4


def test_products_with_zeros_are_exact() -> None:
    d = Dims(i=3)
    x = tensor("x", (3,))
    y = reduce(d, "mul", "i => ", x, to=shape())
    assert gradients({x: np.array([2.0, 0.0, 3.0])}, y, [x], d)[0].tolist() == [0, 6, 0]
    assert gradients({x: np.array([2.0, 0.0, 0.0])}, y, [x], d)[0].tolist() == [0, 0, 0]


# ---------------------------------------------------------------- passes


def test_repeated_use_of_one_tensor_adds() -> None:
    d = Dims(i=3, j=3)
    x = tensor("x", (3,))
    square = apply("mul", x, x, to=shape((3,)))
    outer = reduce(d, "add", "i ; j => i j", x, x, to=shape((3, 3)))
    y = apply("add", apply("add", square, x, to=shape((3,))), outer, to=shape((3, 3)))
    check({x: draw(3)}, y, d)


def test_a_tensor_used_many_times() -> None:
    x = tensor("x", (2,))
    y = x
    for i in range(20):
        y = apply("add", y, apply("mul", x, number(float(i)), to=shape((2,))), to=shape((2,)))
    assert gradients({x: np.ones(2)}, y, [x])[0].tolist() == [191, 191]


def test_intermediate_tensors_and_unreached_ones_have_gradients() -> None:
    x, other = tensor("x", (3,)), tensor("o", (2,))
    a = draw(3)
    h = apply("exp", x, to=shape((3,)))
    y = apply("mul", h, h, to=shape((3,)))
    got = gradients({x: a, other: draw(2)}, y, [h, other, y])
    np.testing.assert_allclose(got[0], 2 * np.exp(a))
    assert got[1].tolist() == [0, 0] and got[2].tolist() == [1, 1, 1]


def test_only_what_is_wanted_is_computed() -> None:
    from tests.graph.make import lowered

    x, w = tensor("x", (3,)), tensor("w", (3,))
    y = apply("mul", apply("exp", x, to=shape((3,))), w, to=shape((3,)))
    loss = apply("mul", y, number(2.0), to=shape((3,)))
    program = lowered([x, w], [grad(w, ir.Backprop(loss, None, {}, {}))])
    assert len(program.assigns) == 2


def test_stop_gradient_and_values_without_gradient() -> None:
    x = tensor("x", (3,))
    stopped = apply("stop_gradient", x, to=shape((3,)), differentiable=False)
    y = apply("mul", x, stopped, to=shape((3,)))
    a = draw(3)
    np.testing.assert_allclose(gradients({x: a}, y, [x])[0], a)


def test_a_second_pass_adds_to_the_first() -> None:
    x = tensor("x", (3,))
    a = draw(3)
    h = apply("exp", x, to=shape((3,)))
    first, second = apply("mul", h, number(2.0), to=shape((3,))), apply("mul", h, h, to=shape((3,)))
    one = ir.Backprop(first, None, {}, {})
    two = ir.Backprop(second, None, {x: grad(x, one), h: grad(h, one)}, {})
    got = run({x: a}, [grad(x, two), grad(h, two)])
    np.testing.assert_allclose(got[0], 2 * np.exp(a) + 2 * np.exp(2 * a))
    np.testing.assert_allclose(got[1], 2 + 2 * np.exp(a))


def test_versions_of_a_parameter_share_their_gradient() -> None:
    p = cell("p", shape((2,)))
    first = cell_value(p)
    y = apply("mul", first, first, to=p.shape)
    second = value(ir.Assigned(first, "add", False, None, number(1.0)), p.shape)
    z = apply("add", y, apply("mul", second, number(3.0), to=p.shape), to=p.shape)
    backprop = ir.Backprop(z, None, {}, {second: first})
    cells: dict[str, Any] = {"p": np.array([1.0, 2.0])}
    got = run({}, [grad(first, backprop), grad(second, backprop)], finals={p: second}, cells=cells)
    assert got[0].tolist() == got[1].tolist() == [5, 7]
    assert cells["p"].tolist() == [2, 3]


def test_own_derivatives() -> None:
    x = tensor("x", (3,))
    a = draw(3)
    inner = apply("exp", x, to=shape((3,)))
    seed = value(ir.Seed(), shape((3,)), differentiable=False)
    half = apply("mul", apply("mul", seed, number(0.5), to=shape((3,))), inner, to=shape((3,)), differentiable=False)
    custom = value(ir.Custom(inner, seed, ((x, half),)), shape((3,)))
    twice = apply("mul", custom, x, to=shape((3,)))
    expected = np.exp(a) + 0.5 * np.exp(a) * a
    np.testing.assert_allclose(gradients({x: a}, twice, [x])[0], expected)
    one = ir.Backprop(twice, None, {}, {})
    two = ir.Backprop(custom, None, {}, {})
    got = run({x: a}, [grad(x, one), grad(x, two), custom])
    np.testing.assert_allclose(got[0], expected)
    np.testing.assert_allclose(got[1], 0.5 * np.exp(a))
    np.testing.assert_allclose(got[2], np.exp(a))


def test_own_derivatives_in_index_notation() -> None:
    d = Dims(i=2, j=3, k=4)
    a, b = tensor("a", (2, 4)), tensor("b", (4, 3))
    p, q, g = draw(2, 4), draw(4, 3), draw(2, 3)
    inner = reduce(d, "add", "i k ; k j => i j", a, b, to=shape((2, 3)))
    seed = value(ir.Seed(), shape((2, 3)), differentiable=False)
    tree = ir.SlotApply("mul", (ir.SlotLeaf(seed, d.slot("i j")), ir.SlotLeaf(b, d.slot("k j"))))
    to_a = value(ir.Assigned(None, "add", True, d.slot("i k"), tree), a.shape, differentiable=False)
    custom = value(ir.Custom(inner, seed, ((a, to_a),)), shape((2, 3)))
    got = gradients({a: p, b: q}, custom, [a, b], d, seed=g)
    np.testing.assert_allclose(got[0], g @ q.T)
    assert not got[1].any()


def test_a_training_step_updates_parameters_with_their_gradients() -> None:
    d = Dims(b=4, o=2)
    w = cell("w", shape((2,), (3,)))
    x, y = tensor("x", (3,), batch=(4,)), tensor("y", (2,), batch=(4,))
    now = cell_value(w)
    out = value(ir.Product(now, x), shape((2,), batch=(4,)))
    error = apply("sub", out, y, to=out.shape)
    loss = reduce(d, "mean", "b | o => ", apply("mul", error, error, to=out.shape), to=shape())
    backprop = ir.Backprop(loss, None, {}, {})
    step = apply("mul", number(0.1), grad(now, backprop), to=w.shape, differentiable=False)
    new = value(ir.Assigned(now, "sub", False, None, step), w.shape)
    start, p, q = draw(2, 3), draw(4, 3), draw(4, 2)
    cells: dict[str, Any] = {"w": start}
    got = run({x: p, y: q}, [loss], d, {w: new}, cells)
    residual = p @ start.T - q
    np.testing.assert_allclose(got[0], (residual**2).mean())
    np.testing.assert_allclose(cells["w"], start - 0.1 * 2 * residual.T @ p / 8)


def test_deep_graphs_do_not_recurse() -> None:
    x = tensor("x", (2,))
    y = x
    for _ in range(1500):
        y = apply("neg", y, to=shape((2,)))
    assert gradients({x: np.ones(2)}, y, [x])[0].tolist() == [1, 1]
