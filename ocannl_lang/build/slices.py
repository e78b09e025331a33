"""`t[i]` and `t[a:b]`: slices of the first batch axis, or of the first axis of a tensor without batch axes."""

from __future__ import annotations

from typing import Literal

from ocannl_lang.build.context import Ctx, fail
from ocannl_lang.build.expressions import as_tensor
from ocannl_lang.build.notation import is_position, static_size
from ocannl_lang.build.operators import lifted
from ocannl_lang.build.ranks import row_dims
from ocannl_lang.build.reduce import reduce_slots
from ocannl_lang.build.values import Static, Symbolic
from ocannl_lang.graph import ir
from ocannl_lang.graph.ir import SlotRow, SlotShape, Value
from ocannl_lang.shapes.terms import AtLeast, Dim, DimVar, Origin, RowVar, Side, Size, SizeOp, SizeTerm
from ocannl_lang.source import Span

First = Literal["batch", "output", "input"]


def index_tensor(ctx: Ctx, base: Static, index: Static, span: Span) -> Static:
    """`base[index]` with a static int, an `index` or a range."""
    from ocannl_lang.build.types import describe

    if isinstance(index, range):
        return slice_tensor(ctx, base, index.start, index.stop, span)

    def run(c: Ctx, values: list[Static]) -> Static:
        tensor = as_tensor(c, values[0], span)
        at = values[1]
        origin = c.build.origin(span, "slice", "[…]")
        if isinstance(at, Value):
            if not is_position(at) and not (at.scalar and at.precision == "i32" and isinstance(at.op, ir.Input)):
                raise fail("E0303", "an index is a static int or an `index`", span, "this is a tensor")
            position: SizeTerm | Value = at
        else:
            size = static_size(at)
            if size is None:
                raise fail("E0301", "an index is an int", span, f"this is {describe(at)}")
            position = size
        axis_kind = _first_row(c, tensor)
        if isinstance(position, int) and position < 0:
            size = _first_size(c, tensor, axis_kind, span)
            c.build.add(AtLeast(size, -position, Side(tensor.name or "", axis_kind, span), origin))
            position = SizeOp("+", (size, position))
        operand, result = _slots(tensor, axis_kind, ir.Fixed(position), None, origin)
        return reduce_slots(c.build, "add", "mul", [tensor], [operand], result, origin, [span], span)

    return lifted(ctx, [base, index], run, span)


def slice_tensor(ctx: Ctx, base: Static, low: Static, high: Static, span: Span) -> Static:
    """`base[low:high]`; negative ends count from the end."""

    def run(c: Ctx, values: list[Static]) -> Static:
        tensor = as_tensor(c, values[0], span)
        origin = c.build.origin(span, "slice", "[…]")
        axis_kind = _first_row(c, tensor)
        start = 0 if values[1] is None else _end(c, tensor, axis_kind, values[1], span)
        stop = None if values[2] is None else _end(c, tensor, axis_kind, values[2], span)
        parts: list[ir.Label] = []
        if start != 0:
            parts.append(ir.Label("", _dim(c, start, origin)))
        if stop is None:
            middle = ir.Label("middle", DimVar("the slice", origin))
            parts.append(middle)
        else:
            length = stop - start if isinstance(start, int) and isinstance(stop, int) else SizeOp("-", (stop, start))
            if isinstance(length, int) and length < 0:
                raise fail("E0304", f"a slice from {start} to {stop}", span)
            middle = ir.Label("middle", _dim(c, length, origin))
            parts += [middle, ir.Label("", DimVar("the rest", origin))]
        if len(parts) == 1:
            parts.append(ir.Label("", Size(0, why=origin)))
        operand, result = _slots(tensor, axis_kind, ir.ConcatAxis(tuple(parts)), middle, origin)
        return reduce_slots(c.build, "add", "mul", [tensor], [operand], result, origin, [span], span)

    return lifted(ctx, [base, low, high], run, span)


def _first_row(ctx: Ctx, tensor: Value) -> First:
    if row_dims(ctx.build, tensor, "batch") != ():
        return "batch"
    if row_dims(ctx.build, tensor, "output") != ():
        return "output"
    return "input"


def _first_size(ctx: Ctx, tensor: Value, kind: First, span: Span) -> Dim:
    dims = row_dims(ctx.build, tensor, kind)
    if not dims:
        raise fail("E0702", "an index from the end needs a size that is known here", span)
    return dims[0]


def _end(ctx: Ctx, tensor: Value, kind: First, end: Static, span: Span) -> int | SizeTerm:
    from ocannl_lang.build.types import describe

    size = static_size(end)
    if size is None:
        if isinstance(end, Symbolic):
            raise fail("E0702", "the end of a slice is an int", span)
        raise fail("E0301", "the ends of a slice are ints", span, f"this is {describe(end)}")
    if isinstance(size, int) and size < 0:
        whole = _first_size(ctx, tensor, kind, span)
        if isinstance(whole, Size) and isinstance(whole.value, int):
            return max(whole.value + size, 0)
        return SizeOp("+", (whole, size))
    return size


def _dim(ctx: Ctx, term: int | SizeTerm, origin: Origin) -> Size | DimVar:
    from ocannl_lang.build.tensors import size_dim

    if isinstance(term, int):
        return Size(term, why=origin)
    return size_dim(ctx.build, Symbolic(term, True), "the size of a slice", origin)


def _slots(
    tensor: Value, kind: First, axis: ir.Axis, kept: ir.Label | None, origin: Origin
) -> tuple[SlotShape, SlotShape]:
    """The slots of the operand, `axis` leading its row, and of the result, where `kept` leads if there is one."""
    del tensor
    rows: dict[str, SlotRow] = {}
    results: dict[str, SlotRow] = {}
    for row in ("batch", "output", "input"):
        variable = RowVar(f"the other {row} axes", origin)
        rows[row] = SlotRow((axis,), variable, ()) if row == kind else SlotRow((), variable, ())
        lead = (kept,) if row == kind and kept is not None else ()
        results[row] = SlotRow(lead, variable, ())
    return SlotShape(**rows), SlotShape(**results)
