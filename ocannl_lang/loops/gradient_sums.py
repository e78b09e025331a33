"""Writing a gradient as the sum of what its value received from all its users."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Union

from ocannl_lang.graph.dtypes import compute_precision
from ocannl_lang.loops.ir import Access, Affine, Buffer, Const, Expr, Index, Var
from ocannl_lang.loops.lower_expr import add, const, convert, substitute
from ocannl_lang.loops.lower_gather import Sum, gather
from ocannl_lang.loops.lower_nest import Turn, Writer
from ocannl_lang.loops.lower_shapes import whole
from ocannl_lang.source import Span

Gradient = Union[Buffer, Const]
"""A gradient that was written, or one that is the same number everywhere."""

# More terms than this are written in several assignments, so that expressions stay small.
_TERMS = 8


@dataclass(frozen=True, slots=True)
class Contribution:
    """For all `loops`: gradient[index] += `value`, where `value` is linear in the content of `gate`."""

    loops: tuple[Var, ...]
    index: tuple[Index, ...]
    guarded: bool
    value: Expr
    gate: Buffer | None = None

    def covers(self, shape: Sequence[int]) -> bool:
        return self._turn.covers(shape)

    @property
    def injective(self) -> bool:
        """No two turns reach the same position."""
        return self._turn.injective

    @property
    def _turn(self) -> Turn:
        return Turn(self.loops, self.index, self.guarded, self.value, ())

    @property
    def plain(self) -> bool:
        """Every axis follows at most one loop."""
        return all(isinstance(i, Affine) and len(i.terms) <= 1 for i in self.index)


def sum_contributions(
    writer: Writer, received: Sequence[Contribution], buffer: Buffer, origin: Span | None
) -> Gradient:
    """Write the sum into `buffer`; where it is one number, or what another buffer holds already, give that instead.

    What reaches every position once is added up in one assignment; the rest is accumulated.
    """
    once = [c for c in received if c.covers(buffer.shape) and c.plain]
    rest = [g for c in received if not (c.covers(buffer.shape) and c.plain) for g in _gathered(c, buffer)]
    if len(received) == 1 and once:
        held = _held(once[0], buffer)
        if held is not None:
            return held
    wide = compute_precision(buffer.prec)
    single = (not rest and len(once) <= _TERMS) or (not once and len(rest) == 1 and rest[0].covers(buffer.shape))
    into = buffer if single or wide == buffer.prec else writer.buffer(f"{buffer.name}.wide", buffer.shape, wide)
    for i, group in enumerate(_batches(once)):
        first = group[0]
        total = convert(first.value, wide)
        for other in group[1:]:
            total = add(total, convert(_along(other, first), wide))
        writer.assign(Access(into, first.index), "add" if i else "set", first.loops, total, origin)
    for i, c in enumerate(rest):
        first = i == 0 and not once
        covered = first and c.covers(buffer.shape)
        accum = "set" if first and c.injective else "add"
        writer.assign(Access(into, c.index, c.guarded), accum, c.loops, c.value, origin, fresh=first and not covered)
    if into is not buffer:
        target, loops = whole(buffer)
        writer.assign(target, "set", loops, Access(into, target.index), origin)
    return buffer


def _gathered(c: Contribution, buffer: Buffer) -> list[Contribution]:
    """Overlapping windows turned around where that is possible."""
    if c.covers(buffer.shape):
        return [c]
    pieces = None if c.gate is None else gather(Sum(c.loops, c.index, c.value, c.gate), buffer.shape)
    return [c] if pieces is None else [Contribution(p.loops, p.index, False, p.value) for p in pieces]


def _held(contribution: Contribution, buffer: Buffer) -> Gradient | None:
    match contribution.value:
        case Const(value=value):
            return const(value, buffer.prec)
        case Access(buffer=other, index=index, guarded=False) if index == contribution.index:
            return other if other.shape == buffer.shape and other.prec == buffer.prec else None
        case _:
            return None


def _along(contribution: Contribution, first: Contribution) -> Expr:
    """The value with its loops renamed to those of `first`, position by position."""
    renamed: dict[Var, Affine] = {}
    for mine, theirs in zip(contribution.index, first.index, strict=True):
        if isinstance(mine, Affine) and isinstance(theirs, Affine) and mine.terms:
            renamed[mine.terms[0][0]] = theirs
    return substitute(contribution.value, renamed)


def _batches(contributions: Sequence[Contribution]) -> Iterator[list[Contribution]]:
    rest = iter(contributions)
    while group := list(itertools.islice(rest, _TERMS)):
        yield group
