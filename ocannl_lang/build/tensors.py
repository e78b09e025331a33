"""Making tensor values: each function adds one operation to the graph and its shape constraints to the problem (section 8's table)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from ocannl_lang.build.context import Build
from ocannl_lang.build.values import CellRef, Symbolic
from ocannl_lang.graph import ir
from ocannl_lang.graph.ir import Cell, CellValue, Operation, Value
from ocannl_lang.shapes.terms import (
    EMPTY,
    ROW_KINDS,
    SCALAR,
    Dim,
    DimVar,
    Leaf,
    Origin,
    Row,
    RowEq,
    RowKind,
    RowLe,
    RowVar,
    Shape,
    Side,
    Size,
    SizeTerm,
)
from ocannl_lang.source import Span

NOT_DIFFERENTIABLE = frozenset(
    {
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "and",
        "or",
        "not",
        "sign",
        "floor",
        "ceil",
        "round",
        "floordiv",
        "stop_gradient",
    }
)
"""Pointwise functions that no gradient flows through."""
VALUE_COST = 20
"""How many steps of a build's budget a new tensor counts."""
INTEGERS = frozenset({"i64", "i32", "u32", "u16", "u8", "u32x4"})


def new_value(
    build: Build, op: Operation, shape: Shape, origin: Origin, *, precision: str | None = None, scalar: bool = False,
    name: str = "", differentiable: bool = False,
) -> Value:  # fmt: skip
    build.steps += VALUE_COST
    value = Value(op, shape, precision, scalar, name, origin, differentiable)
    build.graph.values.append(value)
    return value


def fresh_row(purpose: str, origin: Origin) -> Row:
    return Row((), RowVar(purpose, origin), ())


def fresh_shape(what: str, origin: Origin) -> Shape:
    """A shape of which nothing is known; `what` names the tensor for people."""
    return Shape(
        fresh_row(f"the batch axes of {what}", origin),
        fresh_row(f"the output axes of {what}", origin),
        fresh_row(f"the input axes of {what}", origin),
    )


def label_of(value: Value) -> str:
    """What to call a tensor in a message: its name, or its text if that is short."""
    if value.name:
        return value.name
    text = value.origin.span.text
    return text if len(text) <= 24 and "\n" not in text else ""


def side(value: Value, row: RowKind, span: Span | None = None) -> Side:
    return Side(label_of(value), row, span or value.origin.span)


# ---------------------------------------------------------------- leaves


def number(build: Build, value: SizeTerm, origin: Origin) -> Value:
    """A static number in a pointwise place: it broadcasts to any shape."""
    return new_value(build, ir.Number(value), SCALAR, origin, scalar=True)


def number_leaf(build: Build, value: SizeTerm, origin: Origin, name: str = "") -> Value:
    """A static number where a tensor of inferred shape is needed."""
    shape = fresh_shape(name or "a constant", origin)
    build.add_leaf(Leaf("constant", name, shape, origin))
    return new_value(build, ir.Number(value), shape, origin, name=name)


def array(
    build: Build, data: np.ndarray[Any, Any], kinds: Sequence[RowKind], origin: Origin, precision: str | None = None
) -> Value:
    """Written-out numbers; `kinds` gives each axis of `data`, in nesting order, its row."""
    order = [i for kind in ROW_KINDS for i, k in enumerate(kinds) if k == kind]
    rows = {
        kind: Row((), None, tuple(Size(data.shape[i], why=origin) for i, k in enumerate(kinds) if k == kind))
        for kind in ROW_KINDS
    }
    memory = np.ascontiguousarray(np.transpose(data, order)) if order else data
    shape = Shape(rows["batch"], rows["output"], rows["input"])
    return new_value(build, ir.Array(memory), shape, origin, precision=precision)


def arange(build: Build, size: Dim, origin: Origin) -> Value:
    return new_value(build, ir.Arange(), Shape(output=Row((), None, (size,))), origin, precision="i32")


def draw(build: Build, dist: Literal["uniform", "normal"], place: str, counter: Value | None, origin: Origin) -> Value:
    shape = fresh_shape(f"{dist}()", origin)
    build.add_leaf(Leaf("constant", f"{dist}()", shape, origin))
    return new_value(build, ir.Draw(dist, place, counter), shape, origin)


def cell_value(build: Build, cell: Cell, origin: Origin) -> Value:
    """The newest version of a cell."""
    value = build.versions.get(cell)
    if value is None:
        differentiable = cell.kind == "parameter" and cell.precision not in INTEGERS
        name = cell.path.rsplit(".", 1)[-1]
        value = new_value(
            build, CellValue(cell), cell.shape, cell.origin, precision=cell.precision, name=name, differentiable=differentiable,
            scalar=_is_scalar_shape(cell.shape),
        )  # fmt: skip
        build.versions[cell] = build.first[cell] = value
        build.cell_of[value] = cell
        kind = "parameter" if cell.kind == "parameter" else "state"
        build.add_leaf(Leaf(kind, name, cell.shape, replace(cell.origin, frames=tuple(build.frames))))
    return value


def deref(build: Build, value: Any, origin: Origin) -> Any:
    """A cell reference becomes its newest version; anything else stays."""
    return cell_value(build, value.cell, origin) if isinstance(value, CellRef) else value


def _is_scalar_shape(shape: Shape) -> bool:
    return all(row.var is None and not row.trail and not row.lead for row in (shape.batch, shape.output, shape.input))


# ---------------------------------------------------------------- pointwise


def map_values(
    build: Build, fn: str, args: Sequence[Value], origin: Origin, *, precision: str | None = None, name: str = ""
) -> Value:
    """A primitive, position by position: C ⊑ A for each operand."""
    tensors = [a for a in args if not _is_scalar_shape(a.shape)]
    scalar = all(a.scalar for a in args)
    rows = {kind: [a.shape.row(kind) for a in tensors] for kind in ROW_KINDS}
    shape = _computed_shape(rows["batch"], rows["output"], rows["input"], origin)
    differentiable = fn not in NOT_DIFFERENTIABLE and any(
        a.differentiable for a in (args[1:] if fn == "where" else args)
    )
    if fn == "convert" and precision in INTEGERS:
        differentiable = False
    result = new_value(
        build,
        ir.Map(fn, tuple(args)),
        shape,
        origin,
        precision=precision,
        scalar=scalar,
        name=name,
        differentiable=differentiable,
    )
    for kind in ROW_KINDS:
        for a in tensors:
            broadcast(build, result, a, kind, origin)
    return result


def broadcast(build: Build, result: Value, operand: Value, kind: RowKind, origin: Origin) -> None:
    """One row of `result ⊑ operand`; nothing where the operand has no such axes."""
    sup = operand.shape.row(kind)
    if sup != EMPTY:
        build.add(RowLe(result.shape.row(kind), sup, side(result, kind), side(operand, kind), origin))


def _computed_shape(batch: Sequence[Row], output: Sequence[Row], input: Sequence[Row], origin: Origin) -> Shape:
    """The shape of a computed tensor, given the rows that each of its own broadcasts from: one that has only empty ones is empty."""
    what = _result_name(origin)
    rows = {"batch": batch, "output": output, "input": input}
    found = {
        kind: fresh_row(f"the {kind} axes of {what}", origin) if any(r != EMPTY for r in sources) else EMPTY
        for kind, sources in rows.items()
    }
    return Shape(found["batch"], found["output"], found["input"])


def _result_name(origin: Origin) -> str:
    text = origin.span.text
    return f"`{text}`" if len(text) <= 24 and "\n" not in text else f"the result of `{origin.symbol}`"


# ---------------------------------------------------------------- products


def product(build: Build, left: Value, right: Value, origin: Origin, addend: Value | None = None) -> Value:
    """`left * right`: I(A) ⊑ O(B); B(C) ⊑ B(A), B(B); I(C) ⊑ I(B); O(C) ⊑ O(A)."""
    operands = (left, right) if addend is None else (left, right, addend)
    more = () if addend is None else (addend.shape,)
    shape = _computed_shape(
        [left.shape.batch, right.shape.batch, *(s.batch for s in more)],
        [left.shape.output, *(s.output for s in more)],
        [right.shape.input, *(s.input for s in more)],
        origin,
    )
    result = new_value(
        build, ir.Product(left, right, addend), shape, origin, differentiable=any(o.differentiable for o in operands)
    )
    build.add(RowLe(left.shape.input, right.shape.output, side(left, "input"), side(right, "output"), origin))
    pairs: list[tuple[Value, RowKind]] = [(left, "batch"), (right, "batch"), (left, "output"), (right, "input")]
    for operand, kind in pairs:
        broadcast(build, result, operand, kind, origin)
    if addend is not None:
        for kind in ROW_KINDS:
            broadcast(build, result, addend, kind, origin)
    return result


def transpose(build: Build, operand: Value, origin: Origin) -> Value:
    shape = _computed_shape([operand.shape.batch], [operand.shape.input], [operand.shape.output], origin)
    result = new_value(
        build, ir.Transpose(operand), shape, origin, scalar=operand.scalar, differentiable=operand.differentiable
    )
    rows: list[tuple[RowKind, RowKind]] = [("batch", "batch"), ("input", "output"), ("output", "input")]
    for to, frm in rows:
        sup = operand.shape.row(frm)
        if sup != EMPTY:
            build.add(RowLe(shape.row(to), sup, side(result, to), side(operand, frm), origin))
    return result


def stack(build: Build, row: RowKind, args: Sequence[Value], origin: Origin) -> Value:
    """Operands along a new leading axis of `row`; all broadcast to one shape of an element."""
    parts = {kind: [a.shape.row(kind) for a in args] for kind in ROW_KINDS}
    inner = _computed_shape(parts["batch"], parts["output"], parts["input"], origin)
    element = {kind: inner.row(kind) for kind in ROW_KINDS}
    size = Size(len(args), why=origin)
    rows = {
        kind: r if kind != row else Row((size, *r.lead), r.var, r.trail) if r.var else Row((), None, (size, *r.trail))
        for kind, r in element.items()
    }
    shape = Shape(rows["batch"], rows["output"], rows["input"])
    result = new_value(
        build, ir.Stack(row, tuple(args)), shape, origin, differentiable=any(a.differentiable for a in args)
    )
    for a in args:
        for kind in ROW_KINDS:
            if a.shape.row(kind) != EMPTY:
                build.add(RowLe(element[kind], a.shape.row(kind), side(result, kind), side(a, kind), origin))
    return result


# ---------------------------------------------------------------- constraints on existing values


def same_shape(build: Build, a: Value, b: Value, origin: Origin) -> None:
    for kind in ROW_KINDS:
        build.add(RowEq(a.shape.row(kind), b.shape.row(kind), side(a, kind), side(b, kind), origin))


def ask_shape(
    build: Build, value: Value, wanted: Shape, written: Sequence[RowKind], origin: Origin, name: str, place: Span
) -> None:
    """The written rows of a type are exact for `value`."""
    for kind in written:
        build.add(RowEq(value.shape.row(kind), wanted.row(kind), side(value, kind), Side(name, kind, place), origin))


def size_dim(build: Build, term: Any, purpose: str, origin: Origin) -> Dim:
    """A static int as an axis size: a number, or a variable bound to what it depends on."""
    from ocannl_lang.shapes.terms import SizeIs

    if isinstance(term, Symbolic):
        if isinstance(term.term, (Size, DimVar)):
            return term.term
        variable = DimVar(purpose, origin)
        build.add(SizeIs(variable, term.term, Side(purpose, "output", origin.span), origin))
        return variable
    return Size(int(term), why=origin, text=_written(origin.span, int(term)))


def _written(span: Span, value: int) -> str:
    text = span.text
    return "" if text == str(value) or len(text) > 24 or "\n" in text else text
