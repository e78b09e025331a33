"""Precision is inferred both ways (section 9)."""

from __future__ import annotations

import numpy as np
import pytest

from ocannl_lang.diagnostics.model import Collector
from ocannl_lang.graph import ir
from ocannl_lang.graph.dtypes import INTS, PRECISIONS, is_float, join
from ocannl_lang.graph.precision import Key, infer_precisions
from ocannl_lang.shapes.terms import DimVar, RowVar, Shape
from tests.graph.make import ORIGIN, apply, cell, cell_value, graph, number, shape, tensor, value

S = shape((3,))


def infer(*results: ir.Value) -> dict[Key, str]:
    collector = Collector()
    found = infer_precisions(graph([], list(results)), collector)
    assert not collector.diagnostics
    return found


def errors(*results: ir.Value) -> list[str]:
    collector = Collector()
    infer_precisions(graph([], list(results)), collector)
    return [d.code for d in collector.diagnostics]


def given(precision: str | None) -> ir.Value:
    return tensor("x", (3,), precision=precision)


@pytest.mark.parametrize(
    ("a", "b", "both"),
    [
        ("f32", "f64", "f64"),
        ("f16", "bf16", "f32"),
        ("f16", "f32", "f32"),
        ("f8e5m2", "bf16", "bf16"),
        ("i64", "f32", "f32"),
        ("u8", "f16", "f16"),
        ("u8", "i32", "i32"),
        ("i32", "i64", "i64"),
        ("i32", "u32", "i64"),
    ],
)
def test_the_wider_of_two(a: str, b: str, both: str) -> None:
    r = apply("add", given(a), given(b), to=S)
    assert infer(r)[r] == both
    s = apply("add", given(b), given(a), to=S)
    assert infer(s)[s] == both


def test_joins_are_a_lattice() -> None:
    known = [p for p in PRECISIONS if p != "u32x4"]
    for a in known:
        for b in known:
            both = join(a, b)
            assert both == join(b, a) and both is not None
            assert join(a, both) == both and join(b, both) == both
            assert is_float(both) == (is_float(a) or is_float(b))
    assert all(join("u32x4", p) is None for p in INTS)


def test_numbers_take_what_they_meet() -> None:
    for prec in ("f64", "f32", "bf16"):
        r = apply("mul", given(prec), number(0.5), to=S)
        assert infer(r)[r] == prec
    r = apply("mul", given("i32"), number(2), to=S)
    assert infer(r)[r] == "i32"
    r = apply("mul", given("i32"), number(0.5), to=S)
    assert infer(r)[r] == "f32"


def test_leaves_take_their_uses_precision() -> None:
    w = cell_value(cell("w", S, None))
    hidden = apply("relu", w, to=S)
    r = apply("add", hidden, given("f64"), to=S)
    found = infer(r)
    assert found[w] == found[hidden] == found[r] == "f64"
    assert isinstance(w.op, ir.CellValue) and found[w.op.cell] == "f64"


def test_a_parameter_is_never_an_int() -> None:
    w = cell_value(cell("w", S, None))
    r = apply("mul", w, given("u8"), to=S)
    assert infer(r)[w] == infer(r)[r] == "f32"


def test_the_default_is_f32() -> None:
    w = cell_value(cell("w", S, None))
    x = given(None)
    found = infer(w, x, value(ir.Array(np.array([1, 2, 3])), S))
    assert set(found.values()) == {"f32"}


def test_a_leaf_with_two_uses_takes_the_wider_and_both_uses_have_it() -> None:
    w = cell_value(cell("w", S, None))
    v = cell_value(cell("v", S, None))
    a = apply("add", apply("mul", w, v, to=S), given("f32"), to=S)
    b = apply("add", w, given("f64"), to=S)
    found = infer(a, b)
    assert found[w] == found[a] == found[b] == found[v] == "f64"


def test_a_written_precision_wins() -> None:
    r = apply("add", given("f32"), given("f64"), to=S, precision="f32")
    assert infer(r)[r] == "f32"


def test_comparisons_and_quotients_and_sums() -> None:
    i, i64, f = given("i32"), given("i64"), given("f64")
    quotient = apply("div", i, i, to=S)
    whole = apply("floordiv", i, number(2), to=S)
    compared = apply("lt", f, number(0), to=S)
    logic = apply("and", compared, i, to=S)
    chosen = apply("where", f, i, number(1), to=S)
    root = apply("sqrt", i, to=S)

    def total(accum: str, x: ir.Value) -> ir.Value:
        every = ir.SlotShape(output=ir.SlotRow((), RowVar("all axes", ORIGIN), ()))
        return value(ir.Reduce(accum, "mul", (x,), (every,), ir.SlotShape()), Shape())  # type: ignore[arg-type]

    sums = [total("add", compared), total("add", i64), total("add", f), total("mean", i), total("max", compared)]
    positions = [total("argmax", f), total("or", f)]
    found = infer(quotient, whole, compared, logic, chosen, root, *sums, *positions)
    assert [found[v] for v in (quotient, whole, compared, logic, chosen, root)] == [
        "f32",
        "i32",
        "u8",
        "u8",
        "i32",
        "f32",
    ]
    assert [found[v] for v in sums] == ["i32", "i64", "f64", "f32", "u8"]
    assert [found[v] for v in positions] == ["i32", "u8"]


def test_cells_shared_by_routines_are_inferred_together() -> None:
    shared = cell("w", S, None)
    first = apply("add", cell_value(shared), given("f32"), to=S)
    second = apply("add", cell_value(shared), given("f64"), to=S)
    found = infer_precisions([graph([], [first]), graph([], [second])], Collector())
    assert found[shared] == "f64" and found[first] == "f64"


def test_assigned_and_gradients_have_the_precision_of_what_they_belong_to() -> None:
    w = cell_value(cell("w", S, "f32"))
    loss = apply("mul", w, given("f64"), to=S)
    backprop = ir.Backprop(loss, None, {}, {})
    g = value(ir.GradOf(w, backprop), S, differentiable=False)
    step = value(ir.Assigned(w, "sub", False, None, g), S, differentiable=False)
    found = infer(step)
    assert found[g] == "f32" and found[step] == "f32" and found[loss] == "f64"


def test_a_state_takes_the_precision_of_what_is_assigned() -> None:
    s = cell_value(cell("s", S, None, "state"))
    step = value(ir.Assigned(s, "add", False, None, given("f64")), S, differentiable=False)
    found = infer(step)
    assert found[s] == found[step] == "f64"


def test_lossy_conversions_are_written() -> None:
    n = cell_value(cell("n", S, "i32", "state"))
    assert errors(value(ir.Assigned(n, "add", False, None, number(1.5)), S)) == ["E0601"]
    assert errors(value(ir.Assigned(n, "add", False, None, number(1)), S)) == []
    assert errors(apply("add", given("f32"), given("i32"), to=S, precision="i32")) == ["E0601"]
    assert errors(apply("add", given("i64"), given("i64"), to=S, precision="i32")) == ["E0601"]
    assert errors(apply("convert", given("f32"), to=S, precision="i32")) == []
    assert errors(apply("add", given("u32x4"), given("i32"), to=S)) == ["E0601"]


def test_deep_graphs_do_not_recurse() -> None:
    r = given("f32")
    for _ in range(3000):
        r = apply("relu", r, to=S)
    assert infer(r)[r] == "f32"


def test_what_only_moves_elements_keeps_their_precision() -> None:
    bytes_ = given("u8")
    i = ir.Label("i", DimVar("i", ORIGIN))
    part = ir.ConcatAxis((ir.Label("", DimVar("first", ORIGIN)), i))
    slot = ir.SlotShape(output=ir.SlotRow((), None, (part,)))
    result = ir.SlotShape(output=ir.SlotRow((), None, (i,)))
    slice_ = value(ir.Reduce("add", "mul", (bytes_,), (slot,), result), Shape())
    total = value(ir.Reduce("add", "mul", (bytes_,), (result,), ir.SlotShape()), Shape())
    found = infer(slice_, total)
    assert (found[slice_], found[total]) == ("u8", "i32")
