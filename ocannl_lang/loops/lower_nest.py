"""A value as an accumulation of turns, and writing it out as assignments. Gradients start from the same description."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ocannl_lang.graph.dtypes import compute_precision
from ocannl_lang.graph.ir import Value
from ocannl_lang.graph.primitives import neutral
from ocannl_lang.loops.facts import separate
from ocannl_lang.loops.ir import Access, Accum, Affine, Apply, Assign, Buffer, Expr, Index, Role, Var
from ocannl_lang.loops.lower_expr import const, convert
from ocannl_lang.loops.lower_expr import div as divide
from ocannl_lang.loops.lower_gather import Sum, gather
from ocannl_lang.loops.lower_shapes import whole
from ocannl_lang.source import Span

Leaves = list[tuple[Access, Value]]
"""The accesses of one turn, each with the value it reads."""


@dataclass(frozen=True, slots=True)
class Turn:
    """For all `loops`: the value at `index` (accum)= `value`.

    `leaves` tells which value of the graph each access in `value` reads, by identity of the access object.
    """

    loops: tuple[Var, ...]
    index: tuple[Index, ...]
    guarded: bool
    value: Expr
    leaves: tuple[tuple[Access, Value], ...]

    @property
    def turns(self) -> int:
        return math.prod(v.size for v in self.loops)

    @property
    def injective(self) -> bool:
        """Each loop, alone or with others that do not overlap, decides some axis of the target: no two turns write the same
        position."""
        decided = {v for i in self.index if isinstance(i, Affine) and separate(i) for v, _ in i.terms}
        return all(v in decided for v in self.loops)

    def covers(self, shape: Sequence[int]) -> bool:
        """It writes every position of the target exactly once."""
        return self.injective and not self.guarded and self.turns == math.prod(shape)

    def apart_from(self, other: Turn) -> bool:
        """In some axis the two write different ranges."""
        return any(
            isinstance(a, Affine) and isinstance(b, Affine) and not _overlap(a.bounds(), b.bounds())
            for a, b in zip(self.index, other.index, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Nest:
    """A value: `accum` over all turns, in precision `working`, from the neutral element.

    With `divisor`, a buffer of the value's shape or a number, the accumulated sum is divided by it (`mean`).
    """

    accum: Accum
    working: str
    turns: tuple[Turn, ...]
    divisor: Buffer | int | None = None

    @property
    def once(self) -> bool:
        """No two turns write the same position."""
        return all(t.injective for t in self.turns) and all(
            a.apart_from(b) for i, a in enumerate(self.turns) for b in self.turns[:i]
        )

    def covers(self, shape: Sequence[int]) -> bool:
        return (
            all(not t.guarded for t in self.turns)
            and sum(t.turns for t in self.turns) == math.prod(shape)
            and self.once
        )


@dataclass(slots=True)
class Writer:
    """Collects assignments and makes buffers."""

    assigns: list[Assign] = field(default_factory=list[Assign])

    def buffer(self, name: str, shape: tuple[int, ...], prec: str, role: Role = "temp") -> Buffer:
        return Buffer(name, shape, prec, role)

    def assign(
        self,
        target: Access,
        accum: Accum,
        loops: tuple[Var, ...],
        value: Expr,
        origin: Span | None,
        *,
        fresh: bool = False,
    ) -> None:
        self.assigns.append(Assign(target, accum, fresh, loops, convert(value, target.buffer.prec), origin))

    def fill(self, buffer: Buffer, number: float | int, origin: Span | None) -> None:
        target, loops = whole(buffer)
        self.assign(target, "set", loops, const(number, buffer.prec), origin)

    def nest(self, nest: Nest, buffer: Buffer, origin: Span | None) -> None:
        """Write the whole of `buffer` as `nest` says."""
        if nest.divisor is None:
            self._accumulate(nest, buffer, origin)
            return
        total = self.buffer(f"{buffer.name}.sum", buffer.shape, nest.working)
        self._accumulate(nest, total, origin)
        target, loops = whole(buffer)
        here = Access(total, target.index)
        by = (
            const(nest.divisor, nest.working)
            if isinstance(nest.divisor, int)
            else convert(Access(nest.divisor, target.index), nest.working)
        )
        self.assign(target, "set", loops, divide(here, by), origin)

    def _accumulate(self, nest: Nest, buffer: Buffer, origin: Span | None) -> None:
        if not nest.turns:
            self.fill(buffer, neutral(nest.accum, buffer.prec), origin)
            return
        covered = nest.covers(buffer.shape)
        if nest.once and (covered or neutral(nest.accum, buffer.prec) == 0):
            for i, turn in enumerate(nest.turns):
                fresh = i == 0 and not (covered and len(nest.turns) == 1)
                self.assign(_target(buffer, turn), "set", turn.loops, turn.value, origin, fresh=fresh)
            return
        # Sums of narrow floats are kept wide until they are complete.
        wide = compute_precision(nest.working)
        into = buffer if wide == buffer.prec else self.buffer(f"{buffer.name}.wide", buffer.shape, wide)
        self.add_turns(nest, into, origin, fresh=True)
        if into is not buffer:
            target, loops = whole(buffer)
            self.assign(target, "set", loops, Access(into, target.index), origin)

    def add_turns(self, nest: Nest, buffer: Buffer, origin: Span | None, *, fresh: bool) -> None:
        """Accumulate the turns into a buffer, from the neutral element or from what is there."""
        turns = [g for t in nest.turns for g in _gathered(nest, t, buffer)]
        for i, turn in enumerate(turns):
            # The first need not start from the neutral element where it writes everything.
            first = fresh and i == 0
            accum = "set" if first and turn.covers(buffer.shape) else nest.accum
            self.assign(_target(buffer, turn), accum, turn.loops, turn.value, origin, fresh=first and accum != "set")


def _gathered(nest: Nest, turn: Turn, buffer: Buffer) -> list[Turn]:
    """A sum of products into overlapping windows, turned around where that is possible."""
    if nest.accum != "add" or turn.injective:
        return [turn]
    for gate in _factors(turn.value):
        pieces = gather(Sum(turn.loops, turn.index, turn.value, gate), buffer.shape)
        if pieces is not None:
            return [Turn(p.loops, p.index, False, p.value, ()) for p in pieces]
    return [turn]


def _factors(expr: Expr) -> list[Buffer]:
    match expr:
        case Access(buffer=buffer):
            return [buffer]
        case Apply(fn="mul", args=(a, b)):
            return [*_factors(a), *_factors(b)]
        case Apply(fn="convert", args=(a,)):
            return _factors(a)
        case _:
            return []


def _target(buffer: Buffer, turn: Turn) -> Access:
    return Access(buffer, turn.index, turn.guarded)


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] <= b[1] and b[0] <= a[1]


def kept(index: Sequence[Index]) -> dict[Var, None]:
    """The loops that a target follows."""
    return {v: None for i in index if isinstance(i, Affine) for v, _ in i.terms}
