"""How many axes a tensor has, as far as its operations tell before inference closes.

Inequalities alone leave the rows of computed tensors open, since a row may broadcast to more axes. But a computed tensor has no more axes
than its operands, so where theirs are known its own are.
"""

from __future__ import annotations

from ocannl_lang.build.context import Build
from ocannl_lang.graph import ir
from ocannl_lang.graph.ir import Value
from ocannl_lang.shapes.terms import ROW_KINDS, Dim, DimVar, Row, RowEq, RowKind, Side


def row_dims(build: Build, value: Value, kind: RowKind) -> tuple[Dim, ...] | None:
    """The axes of a row, None while their number is not known."""
    row = value.shape.row(kind)
    found = build.solver.row_dims(row)
    if found is not None:
        return found
    rank = _rank(build, value, kind, {})
    if rank is None:
        return None
    dims = tuple(DimVar(f"{kind} axis {i + 1}", value.origin) for i in range(rank))
    side = Side(value.name, kind, value.origin.span)
    build.add(RowEq(row, Row((), None, dims), side, side, value.origin))
    return dims


def _rank(build: Build, value: Value, kind: RowKind, seen: dict[tuple[Value, RowKind], int | None]) -> int | None:
    key = (value, kind)
    if key in seen:
        return seen[key]
    seen[key] = None
    known = build.solver.row_rank(value.shape.row(kind))
    if known is None:
        sources = _sources(value, kind)
        ranks = [_rank(build, v, k, seen) for v, k in sources]
        if ranks and all(r is not None for r in ranks):
            known = max(r for r in ranks if r is not None)
        elif isinstance(value.op, ir.Reduce):
            known = _reduced_rank(build, value.op, kind, seen)
        elif isinstance(value.op, ir.GradOf):
            known = _rank(build, value.op.of, kind, seen)
    seen[key] = known
    return known


def _sources(value: Value, kind: RowKind) -> list[tuple[Value, RowKind]]:
    """The rows that a row of a computed tensor broadcasts from."""
    match value.op:
        case ir.Map(args=args):
            return [(a, kind) for a in args]
        case ir.Product(left=left, right=right, addend=None):
            found: list[tuple[Value, RowKind]] = []
            if kind != "input":
                found.append((left, kind))
            if kind != "output":
                found.append((right, kind))
            return found
        case ir.Transpose(operand=operand):
            other: dict[RowKind, RowKind] = {"batch": "batch", "output": "input", "input": "output"}
            return [(operand, other[kind])]
        case _:
            return []


def _reduced_rank(
    build: Build, op: ir.Reduce, kind: RowKind, seen: dict[tuple[Value, RowKind], int | None]
) -> int | None:
    """Axes of the slot, and those that its row variable stands for in an operand."""
    row: ir.SlotRow = getattr(op.result, kind)
    own = len(row.lead) + len(row.trail)
    if row.var is None:
        return own
    for arg, slot in zip(op.args, op.slots):
        for at in ROW_KINDS:
            there: ir.SlotRow = getattr(slot, at)
            if there.var is row.var:
                whole = _rank(build, arg, at, seen)
                if whole is not None:
                    return own + whole - len(there.lead) - len(there.trail)
    return None
