"""Lowering of assignments: the next version of a parameter, a state, a gradient or the result of an own derivative."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ocannl_lang.graph.dtypes import compute_precision
from ocannl_lang.graph.ir import Assigned, SlotApply, SlotLeaf, SlotShape, SlotTree, Value
from ocannl_lang.graph.precision import tree_precision
from ocannl_lang.graph.primitives import PRIMITIVES, neutral
from ocannl_lang.loops.ir import Access, Accum, Affine, Apply, Buffer, Expr, Index, Var
from ocannl_lang.loops.lower_expr import compare, const, convert, guarded, precision, substitute, substitute_index
from ocannl_lang.loops.lower_nest import Leaves, Nest, Turn, kept
from ocannl_lang.loops.lower_shapes import align_all, places_of, whole
from ocannl_lang.loops.lower_slots import TurnAxis, TurnLoops, flatten, turns

if TYPE_CHECKING:
    from ocannl_lang.loops.lower import Lowering

# Accumulations that only combine with what was there: the right side is first reduced by the second of the pair.
_LATE: dict[str, Accum] = {"sub": "add", "div": "mul", "pow": "mul"}


def lower_assigned(lowering: Lowering, value: Value, op: Assigned) -> None:
    if op.slot is None:
        assert isinstance(op.tree, Value)
        lowering.buffers[value] = _pointwise(lowering, value, op, op.tree)
    else:
        assert not isinstance(op.tree, Value)
        lowering.buffers[value] = _slotted(lowering, value, op, op.slot, op.tree)


def _pointwise(lowering: Lowering, value: Value, op: Assigned, source: Value) -> Buffer:
    prec, working = _precisions(lowering, value)
    extents = lowering.extents(value)
    alone = op.accum == "set" or (op.fresh and op.accum not in ("and", "or"))
    if alone and source in lowering.buffers:
        held = lowering.buffers[source]
        if held.shape == extents.sizes and held.prec == prec:
            return held
    places = places_of(extents)
    index = align_all(lowering.extents(source), places)
    leaves: Leaves = []
    if op.accum in ("and", "or"):
        right = lowering.truth(source, index, leaves)
        right = right if precision(right) == "u8" else compare("ne", right, const(0, precision(right)))
    else:
        right = lowering.read_as(source, index, working, leaves, lambda p: const(0, p).value)
    buffer = lowering.temp(value)
    if alone:
        expr = right
    elif op.accum in ("and", "or"):
        before = const(neutral(op.accum, "u8"), "u8") if op.fresh else _before(lowering, op, places.index, prec, prec)
        expr = Apply(op.accum, (before, right), "u8")
    else:
        expr = Apply(op.accum, (_before(lowering, op, places.index, prec, working), right), working)
    lowering.writer.assign(Access(buffer, places.index), "set", places.loops, expr, value.origin.span)
    return buffer


def _before(lowering: Lowering, op: Assigned, index: tuple[Affine, ...], prec: str, working: str) -> Expr:
    """What the target held at a position; the neutral element where it held nothing yet."""
    if op.prev is None:
        accum = _LATE.get(op.accum, op.accum)
        return const(neutral(accum, working), working)
    return convert(Access(lowering.as_precision(op.prev, prec), index), working)


def _slotted(lowering: Lowering, value: Value, op: Assigned, slot: SlotShape, tree: SlotTree) -> Buffer:
    writer, span = lowering.writer, value.origin.span
    prec, working = _precisions(lowering, value)
    accum = _LATE.get(op.accum, op.accum)
    found = tuple(_tree_turns(lowering, value, slot, tree, accum, working))
    nest = Nest(accum, working, found)  # type: ignore[arg-type]
    buffer = lowering.temp(value)
    if op.accum in _LATE:
        reduced = writer.buffer(f"{buffer.name}.right", buffer.shape, working)
        writer.nest(nest, reduced, span)
        target, loops = whole(buffer)
        before = _before(lowering, op, target.index, prec, working)  # type: ignore[arg-type]
        expr = Apply(op.accum, (before, Access(reduced, target.index)), working)
        writer.assign(target, "set", loops, expr, span)
    elif op.fresh or (op.accum == "set" and nest.covers(buffer.shape)):
        writer.nest(nest, buffer, span)
    else:
        wide = compute_precision(prec) if op.accum in ("add", "mul") else prec
        into = buffer if wide == prec else writer.buffer(f"{buffer.name}.wide", buffer.shape, wide)
        target, loops = whole(into)
        before = _before(lowering, op, target.index, prec, wide)  # type: ignore[arg-type]
        writer.assign(target, "set", loops, before, span)
        writer.add_turns(nest, into, span, fresh=False)
        if into is not buffer:
            target, loops = whole(buffer)
            writer.assign(target, "set", loops, Access(into, target.index), span)
    return buffer


def _precisions(lowering: Lowering, value: Value) -> tuple[str, str]:
    prec = lowering.precisions[value]
    return prec, compute_precision(prec)


# ---------------------------------------------------------------- index notation


def _tree_turns(
    lowering: Lowering, value: Value, slot: SlotShape, tree: SlotTree, accum: str, working: str
) -> Iterator[Turn]:
    solution = lowering.solution
    slots = [flatten(leaf.slot, solution) for leaf in _leaves(tree)]
    for axes, target in turns(slots, flatten(slot, solution), solution):
        loops = TurnLoops(solution, lowering.read_position)
        index = loops.index(target)
        leaves: Leaves = []
        default = "u8" if accum in ("and", "or") else working
        expr = _expression(lowering, tree, iter(axes), loops, functools.partial(neutral, accum), default, leaves)
        if accum in ("and", "or"):
            expr = expr if _is_logic(tree) else compare("ne", expr, const(0, precision(expr)))
        else:
            expr = convert(expr, working)
        outside = guarded(index, lowering.extents(value).sizes)
        turn = Turn(loops.loops, index, outside, expr, tuple(leaves))
        yield _last_turns(turn) if accum == "set" else turn


def _last_turns(turn: Turn) -> Turn:
    """Where `:=` goes over a label that the target does not have, the last turn is what remains."""
    follows = kept(turn.index)
    last: dict[Var, Affine] = {v: Affine((), v.size - 1) for v in turn.loops if v not in follows}
    if not last:
        return turn
    index: tuple[Index, ...] = tuple(substitute_index(i, last) for i in turn.index)
    return Turn(tuple(follows), index, turn.guarded, substitute(turn.value, last), ())


def _expression(
    lowering: Lowering,
    tree: SlotTree,
    axes: Iterator[tuple[TurnAxis, ...]],
    loops: TurnLoops,
    fill: functools.partial[float | int],
    default: str,
    leaves: Leaves,
) -> Expr:
    """The right side at one turn, in its own precision."""
    working = tree_precision(tree, lowering.precisions, default)
    if isinstance(tree, SlotLeaf):
        index = loops.index(next(axes))
        return lowering.read_as(tree.value, index, working, leaves, fill)
    args = [_expression(lowering, a, axes, loops, fill, working, leaves) for a in tree.args]
    match PRIMITIVES[tree.fn].rule:
        case "logic":
            return Apply(tree.fn, tuple(args), "u8")
        case "compare":
            return Apply(tree.fn, tuple(convert(a, working) for a in args), "u8")
        case "select":
            return Apply(tree.fn, (args[0], *(convert(a, working) for a in args[1:])), working)
        case "declared":
            return convert(args[0], working)
        case _ if tree.fn == "stop_gradient":
            return args[0]
        case _:
            return Apply(tree.fn, tuple(convert(a, working) for a in args), working)


def _leaves(tree: SlotTree) -> list[SlotLeaf]:
    match tree:
        case SlotLeaf():
            return [tree]
        case SlotApply(args=args):
            return list(itertools.chain.from_iterable(_leaves(a) for a in args))


def _is_logic(tree: SlotTree) -> bool:
    return isinstance(tree, SlotApply) and PRIMITIVES[tree.fn].rule in ("compare", "logic")
