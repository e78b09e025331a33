"""Axes notation as loops: labels become loop variables, slots become positions, concatenations become several turns.

One *turn* is a loop nest over the labels that are active for one choice of a part in each concatenated axis. A choice
is carried out only if it is consistent: a label that stands in a concatenation but is not chosen there is out, and
nothing that takes part in the turn may use it. Nothing is ever written to an anonymous part of the result.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Union

from ocannl_lang.graph.ir import ConcatAxis, Fixed, Label, SlotShape, StridedAxis, Value, WindowAxis
from ocannl_lang.loops.ir import Affine, Dynamic, Expr, Index, Var
from ocannl_lang.loops.lower_expr import affine
from ocannl_lang.loops.lower_shapes import Solution, solved_axes, solved_size
from ocannl_lang.shapes.terms import Row, Size


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a concatenated axis that a turn is in: from `offset` on. `out`: the labels that this choice leaves
    out.
    """

    label: Label
    offset: int
    out: frozenset[str]


FlatAxis = Union[Label, Fixed, WindowAxis, StridedAxis, ConcatAxis]
TurnAxis = Union[Label, Fixed, WindowAxis, StridedAxis, Part]
ReadPosition = Callable[[Value], Expr]


def flatten(slot: SlotShape, solution: Solution) -> tuple[FlatAxis, ...]:
    """The axes of a slot in memory order, row variables written out as labels."""
    axes: list[FlatAxis] = []
    for row in (slot.batch, slot.output, slot.input):
        axes.extend(row.lead)
        if row.var is not None:
            sizes = solved_axes(solution, Row(var=row.var)).sizes
            axes.extend(Label(f"..{row.var.id}:r{i}", Size(size)) for i, size in enumerate(sizes))
        axes.extend(row.trail)
    return tuple(axes)


class TurnLoops:
    """The loops of one turn: one variable for each label, made when it is first met; none for labels of size 1."""

    def __init__(self, solution: Solution, read_position: ReadPosition) -> None:
        self._solution = solution
        self._read_position = read_position
        self._vars: dict[object, Var | None] = {}

    @property
    def loops(self) -> tuple[Var, ...]:
        """The loop variables in the order in which their labels were met."""
        return tuple(v for v in self._vars.values() if v is not None)

    def index(self, axes: Sequence[TurnAxis]) -> tuple[Index, ...]:
        """Positions for the axes of one slot; positions outside of an axis are possible where it is padded."""
        return tuple(self._position(a) for a in axes)

    def label(self, label: Label) -> Affine:
        # An anonymous part is a label of its own at each place.
        key: object = label.key or object()
        if key not in self._vars:
            size = size_of(label, self._solution)
            name = label.key.rsplit(":", 1)[-1] or "part"
            self._vars[key] = None if size == 1 else Var(name, size)
        var = self._vars[key]
        return Affine() if var is None else Affine.of(var)

    def _position(self, axis: TurnAxis) -> Index:
        match axis:
            case Label():
                return self.label(axis)
            case Part(label=label, offset=offset):
                return combine([(1, self.label(label))], offset)
            case StridedAxis(stride=stride, label=label, offset=offset):
                return combine([(stride, self.label(label))], offset)
            case WindowAxis(stride=stride, out=out, dilation=dilation, kernel=kernel, padded=padded):
                span = dilation * (size_of(kernel, self._solution) - 1) + 1
                left = max((span - 1) // 2, 0) if padded else 0
                return combine([(stride, self.label(out)), (dilation, self.label(kernel))], -left)
            case Fixed(position=Value() as position):
                return Dynamic(self._read_position(position))
            case Fixed(position=position):
                return Affine((), int(self._solution.number(position)))  # type: ignore[arg-type]


def combine(parts: Iterable[tuple[int, Affine]], offset: int) -> Affine:
    """The sum of positions with factors, and an offset."""
    terms: dict[Var, int] = {}
    for factor, position in parts:
        offset += factor * position.offset
        for var, c in position.terms:
            terms[var] = terms.get(var, 0) + factor * c
    return affine(terms, offset)


def size_of(label: Label, solution: Solution) -> int:
    return solved_size(solution.dim(label.dim))


def turns(
    operands: Sequence[Sequence[FlatAxis]], result: Sequence[FlatAxis], solution: Solution
) -> Iterator[tuple[tuple[tuple[TurnAxis, ...], ...], tuple[TurnAxis, ...]]]:
    """All consistent choices: the axes of each operand and of the result, with one part in place of each concatenation.

    Turns without any position, because something in them has size 0, are left out.
    """
    slots = (*operands, result)
    for choice in itertools.product(*(_alternatives(a, solution) for slot in slots for a in slot)):
        rest = iter(choice)
        chosen = tuple(tuple(itertools.islice(rest, len(slot))) for slot in slots)
        if _consistent(chosen) and not _empty(choice, solution):
            yield chosen[:-1], chosen[-1]


def _alternatives(axis: FlatAxis, solution: Solution) -> list[TurnAxis]:
    if not isinstance(axis, ConcatAxis):
        return [axis]
    found: list[TurnAxis] = []
    offset = 0
    for part in axis.parts:
        others = frozenset(p.key for p in axis.parts if p.key and p.key != part.key)
        found.append(Part(part, offset, others))
        offset += size_of(part, solution)
    return found


def _consistent(slots: Sequence[Sequence[TurnAxis]]) -> bool:
    if any(isinstance(a, Part) and not a.label.key for a in slots[-1]):
        return False
    out = {key for slot in slots for a in slot if isinstance(a, Part) for key in a.out}
    return not any(label.key in out for slot in slots for a in slot for label in labels(a))


def _empty(axes: Sequence[TurnAxis], solution: Solution) -> bool:
    return any(size_of(label, solution) == 0 for a in axes for label in labels(a))


def labels(axis: TurnAxis) -> tuple[Label, ...]:
    """The labels that iterate in an axis."""
    match axis:
        case Label():
            return (axis,)
        case Part(label=label) | StridedAxis(label=label):
            return (label,)
        case WindowAxis(out=out, kernel=kernel):
            return (out, kernel)
        case Fixed():
            return ()
