"""Assignments make the next version of what they assign to (section 7)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ocannl_lang.graph import ir
from tests.graph.make import Dims, apply, cell, cell_value, number, run, shape, tensor, value

RNG = np.random.default_rng(1)


def assigned(
    prev: ir.Value | None, accum: Any, tree: Any, slot: ir.SlotShape | None = None, fresh: bool = False
) -> ir.Value:
    assert prev is not None
    return value(ir.Assigned(prev, accum, fresh, slot, tree), prev.shape, differentiable=False)


def after(start: Any, accum: Any, e: ir.Value, inputs: dict[ir.Value, Any], fresh: bool = False) -> Any:
    s = cell("s", shape(np.shape(start)), kind="state")
    final = assigned(cell_value(s), accum, e, fresh=fresh)
    cells: dict[str, Any] = {"s": start}
    run(inputs, [], finals={s: final}, cells=cells)
    return cells["s"]


def test_pointwise_assignments() -> None:
    start, other = np.array([[4.0, -2.0], [0.5, 3.0]]), np.array([2.0, 3.0])
    x = tensor("x", (2,))
    expected = {
        "set": np.broadcast_to(other, (2, 2)),
        "add": start + other,
        "sub": start - other,
        "mul": start * other,
        "div": start / other,
        "pow": start**other,
        "max": np.maximum(start, other),
        "min": np.minimum(start, other),
        "and": (start != 0) & (other != 0),
        "or": (start != 0) | (other != 0),
    }
    for accum, wanted in expected.items():
        np.testing.assert_allclose(after(start, accum, x, {x: other}), wanted)
    for accum in ("add", "mul", "max", "min"):
        np.testing.assert_allclose(after(start, accum, x, {x: other}, fresh=True), np.broadcast_to(other, (2, 2)))
    np.testing.assert_allclose(after(start, "or", x, {x: np.array([0.0, 3.0])}, fresh=True), [[0, 1], [0, 1]])


def test_setting_a_computed_value_needs_no_copy() -> None:
    from tests.graph.make import lowered

    x = tensor("x", (2,))
    s = cell("s", shape((2,)), kind="state")
    final = assigned(cell_value(s), "set", apply("exp", x, to=shape((2,))))
    program = lowered([x], [], finals={s: final})
    assert len(program.assigns) == 1 and len(program.stores) == 1


def slotted(
    start: Any,
    accum: Any,
    d: Dims,
    target: str,
    tree: Any,
    inputs: dict[ir.Value, Any],
    fresh: bool = False,
    **axes: Any,
) -> Any:
    s = cell("s", shape(np.shape(start)), kind="state")
    final = assigned(cell_value(s), accum, tree, d.slot(target, **axes), fresh)
    cells: dict[str, Any] = {"s": start}
    run(inputs, [], d, {s: final}, cells)
    return cells["s"]


@pytest.mark.parametrize("fresh", [True, False])
def test_index_notation_reduces_with_the_accumulating_operator(fresh: bool) -> None:
    d = Dims(i=3, j=4, k=5)
    a, b = tensor("a", (3, 5)), tensor("b", (5, 4))
    p, q, c = RNG.standard_normal((3, 5)), RNG.standard_normal((5, 4)), RNG.standard_normal((3, 4))
    product = ir.SlotApply("mul", (ir.SlotLeaf(a, d.slot("i k")), ir.SlotLeaf(b, d.slot("k j"))))
    turns = p[:, :, None] * q[None]
    for accum, ufunc, neutral in [
        ("add", np.add, 0.0),
        ("mul", np.multiply, 1.0),
        ("max", np.maximum, -np.inf),
        ("min", np.minimum, np.inf),
    ]:
        start = np.full_like(c, neutral) if fresh else c
        got = slotted(c, accum, d, "i j", product, {a: p, b: q}, fresh)
        np.testing.assert_allclose(got, ufunc(start, ufunc.reduce(turns, axis=1)), rtol=1e-12)
    if not fresh:
        np.testing.assert_allclose(slotted(c, "sub", d, "i j", product, {a: p, b: q}), c - turns.sum(1))
        np.testing.assert_allclose(slotted(c, "div", d, "i j", product, {a: p, b: q}), c / turns.prod(1))


def test_what_is_not_reached_is_kept() -> None:
    d = Dims(a=2, b=3, i=5)
    x = tensor("x", (2,))
    start, p = np.arange(5.0), np.array([8.0, 9.0])
    leaf = ir.SlotLeaf(x, d.slot("a"))
    axis = d.concat("a", "b")
    assert slotted(start, "set", d, "w", leaf, {x: p}, w=axis).tolist() == [8, 9, 2, 3, 4]
    assert slotted(start, "set", d, "w", leaf, {x: p}, True, w=axis).tolist() == [8, 9, 0, 0, 0]
    assert slotted(start, "max", d, "w", leaf, {x: p}, True, w=axis).tolist() == [8, 9, -np.inf, -np.inf, -np.inf]
    assert slotted(start, "add", d, "w", leaf, {x: p}, w=axis).tolist() == [8, 10, 2, 3, 4]
    assert slotted(start, "sub", d, "w", leaf, {x: p}, w=axis).tolist() == [-8, -8, 2, 3, 4]
    y = tensor("y", (5,))
    whole = ir.SlotLeaf(y, d.slot("i"))
    assert slotted(start, "set", d, "i", whole, {y: -start}).tolist() == (-start).tolist()


def test_one_position_from_data() -> None:
    d = Dims(b=2, k=3)
    i = value(ir.Input("i", "index"), shape(), "i32")
    x = tensor("x", (3,), batch=(2,))
    start, p = np.zeros((2, 4, 3)), RNG.standard_normal((2, 3))
    s = cell("s", shape((3,), batch=(2, 4)), kind="state")
    target = d.slot("b p | k", p=ir.Fixed(i))
    final = assigned(cell_value(s), "set", ir.SlotLeaf(x, d.slot("b | k")), target)
    cells: dict[str, Any] = {"s": start}
    run({x: p, i: 2}, [], d, {s: final}, cells)
    expected = np.zeros((2, 4, 3))
    expected[:, 2] = p
    np.testing.assert_array_equal(cells["s"], expected)


def test_trees_with_numbers_and_comparisons() -> None:
    d = Dims(i=4)
    x = tensor("x", (4,))
    p = np.array([1.0, -2.0, 3.0, -4.0])
    leaf = ir.SlotLeaf(x, d.slot("i"))
    zero = ir.SlotLeaf(number(0.0), d.slot(""))
    positive = ir.SlotApply("gt", (leaf, zero))
    chosen = ir.SlotApply("where", (positive, leaf, ir.SlotLeaf(number(-1.0), d.slot(""))))
    assert slotted(np.zeros(4), "set", d, "i", chosen, {x: p}).tolist() == [1, -1, 3, -1]
    assert slotted(np.zeros(()), "add", d, "", positive, {x: p}).tolist() == 2
    assert slotted(np.zeros(()), "or", d, "", positive, {x: p}).tolist() == 1
    assert slotted(np.ones(()), "and", d, "", positive, {x: p}).tolist() == 0


def test_versions_keep_their_meaning() -> None:
    s = cell("s", shape((2,)), kind="state")
    first = cell_value(s)
    doubled = apply("mul", first, number(2.0), to=s.shape)
    second = assigned(first, "set", apply("add", doubled, number(1.0), to=s.shape))
    third = assigned(second, "mul", apply("add", second, first, to=s.shape))
    cells: dict[str, Any] = {"s": np.array([1.0, 2.0])}
    got = run({}, [doubled, second], finals={s: third}, cells=cells)
    assert got[0].tolist() == [2, 4] and got[1].tolist() == [3, 5] and cells["s"].tolist() == [12, 35]
