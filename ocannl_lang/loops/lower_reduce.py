"""Lowering of axes notation: `Reduce` values as nests of turns."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from ocannl_lang.graph.ir import Map, Reduce, Value
from ocannl_lang.graph.precision import working_precision
from ocannl_lang.graph.primitives import PRIMITIVES, neutral
from ocannl_lang.loops.ir import Access, Accum, Affine, Apply, Buffer, Expr, Index, Position
from ocannl_lang.loops.lower_expr import add, compare, const, convert, guarded, mul, where
from ocannl_lang.loops.lower_nest import Leaves, Nest, Turn, kept
from ocannl_lang.loops.lower_shapes import linear, whole
from ocannl_lang.loops.lower_slots import TurnAxis, TurnLoops, flatten, turns

if TYPE_CHECKING:
    from ocannl_lang.loops.lower import Lowering

Fill = Callable[[str], "float | int"]


def lower_reduce(lowering: Lowering, value: Value, op: Reduce) -> Nest:
    """The nest of a reduction. Writes the helper buffers that `argmax` and uneven means need."""
    match op.accum:
        case "mean":
            return _mean(lowering, value, op)
        case "argmax":
            return _arg(lowering, value, op, "max")
        case "argmin":
            return _arg(lowering, value, op, "min")
        case accum:
            working = "u8" if accum in ("or", "and") else working_precision(value, lowering.precisions)
            return Nest(accum, working, _turns(lowering, value, op, accum, working))


def _turns(lowering: Lowering, value: Value, op: Reduce, accum: Accum, working: str) -> tuple[Turn, ...]:
    solution = lowering.solution
    slots = [flatten(s, solution) for s in op.slots]
    result = flatten(op.result, solution)
    if op.combine != "concat":
        return tuple(
            _turn(lowering, value, op, op.args, axes, target, accum, working)
            for axes, target in turns(slots, result, solution)
        )
    # Of the operands of `concat` each turn reads one: the others' labels are out.
    return tuple(
        _turn(lowering, value, op, (arg,), axes, target, accum, working)
        for arg, slot in zip(op.args, slots, strict=True)
        for axes, target in turns([slot], result, solution)
    )


def _turn(
    lowering: Lowering,
    value: Value,
    op: Reduce,
    args: Sequence[Value],
    slots: Sequence[Sequence[TurnAxis]],
    result: Sequence[TurnAxis],
    accum: Accum,
    working: str,
) -> Turn:
    loops = TurnLoops(lowering.solution, lowering.read_position)
    target = loops.index(result)
    leaves: Leaves = []
    fill = functools.partial(neutral, accum)
    elements: list[Expr] = []
    for arg, axes in zip(args, slots, strict=True):
        index = loops.index(axes)
        if accum in ("or", "and"):
            elements.append(_truth(lowering, arg, index, leaves, fill, lone=len(args) == 1))
        else:
            elements.append(lowering.read_as(arg, index, working, leaves, fill))
    expr = functools.reduce(_combiner(op.combine), elements)
    outside = guarded(target, lowering.extents(value).sizes)
    return Turn(loops.loops, target, outside, expr, tuple(leaves))


def _truth(lowering: Lowering, value: Value, index: Sequence[Index], leaves: Leaves, fill: Fill, *, lone: bool) -> Expr:
    """An operand of `any` and `all`, as 0 or 1 where no `and` makes it so."""
    if not guarded(index, lowering.extents(value).sizes):
        expr = lowering.truth(value, index, leaves)
    else:
        expr = lowering.read(value, index, leaves, fill)
    is_logic = isinstance(value.op, Map) and PRIMITIVES[value.op.fn].rule in ("compare", "logic")
    return compare("ne", expr, const(0, _precision(expr))) if lone and not is_logic else expr


def _precision(expr: Expr) -> str:
    return expr.buffer.prec if isinstance(expr, Access) else expr.prec


def _combiner(combine: Literal["mul", "add", "and", "concat"]) -> Callable[[Expr, Expr], Expr]:
    match combine:
        case "add":
            return add
        case "and":
            return lambda a, b: Apply("and", (a, b), "u8")
        case "mul" | "concat":
            return mul


# ---------------------------------------------------------------- means


def _mean(lowering: Lowering, value: Value, op: Reduce) -> Nest:
    working = working_precision(value, lowering.precisions)
    found = _turns(lowering, value, op, "add", working)
    return Nest("add", working, found, _divisor(lowering, value, found, working))


def _divisor(lowering: Lowering, value: Value, found: Sequence[Turn], working: str) -> Buffer | int:
    """How many turns reach each position: a number if that is the same everywhere, else a buffer of at least 1."""
    if len(found) == 1 and Turn(tuple(kept(found[0].index)), found[0].index, False, const(1, "u8"), ()).injective:
        follows = kept(found[0].index)
        return math.prod(v.size for v in found[0].loops if v not in follows)
    writer, span = lowering.writer, value.origin.span
    one = const(1, working)
    counting = Nest("add", working, tuple(Turn(t.loops, t.index, t.guarded, one, ()) for t in found))
    count = writer.buffer("count", lowering.extents(value).sizes, working)
    writer.nest(counting, count, span)
    divisor = writer.buffer("count", count.shape, working)
    target, loops = whole(divisor)
    writer.assign(target, "set", loops, Apply("max", (Access(count, target.index), one), working), span)
    return divisor


# ---------------------------------------------------------------- positions of extremes


def _arg(lowering: Lowering, value: Value, op: Reduce, order: Literal["max", "min"]) -> Nest:
    """First the extreme, then the least position that has it; the last position where nothing equals it (NaN)."""
    working = working_precision(value, lowering.precisions)
    found = _turns(lowering, value, op, order, working)
    extreme = lowering.writer.buffer(order, lowering.extents(value).sizes, working)
    lowering.writer.nest(Nest(order, working, found), extreme, value.origin.span)
    prec = "i32"
    positions: list[Turn] = []
    for turn in found:
        follows = kept(turn.index)
        reduced = [v for v in turn.loops if v not in follows]
        sizes = [v.size for v in reduced]
        position = linear([Affine.of(v) for v in reduced], sizes)
        here = Access(extreme, turn.index, turn.guarded)
        same = compare("eq", convert(turn.value, working), here)
        last = const(max(math.prod(sizes) - 1, 0), prec)
        positions.append(
            Turn(turn.loops, turn.index, turn.guarded, where(same, Position(position, prec), last), turn.leaves)
        )
    return Nest("min", prec, tuple(positions))
