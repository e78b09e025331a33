"""Loops: what a routine computes, as assignments over constant-size buffers with affine accesses.

A `Program` is a straight line of `Assign`s. Each one is a perfect nest of loops around

    target[positions] (accum)= value

in which every position is affine in the loop variables or read from an integer tensor, and `value` is a tree of scalar
operations over accesses. Sizes are numbers here; there is nothing symbolic left. The order of loops in an `Assign` means
nothing: sums may be taken in any fixed order.

Buffers are single-version: a parameter that is updated has one buffer for what it was and another for what it becomes, and
`Program.stores` says which buffer's content a persistent one holds after the call. The memory plan lets the two share a place when
nothing reads the old one later.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Literal, Union

import numpy as np
from numpy.typing import NDArray

from ocannl_lang.source import Span

_ids = itertools.count(1)

Role = Literal["input", "param", "state", "data", "const", "temp"]
Accum = Literal["set", "add", "mul", "max", "min", "or", "and"]


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A dense row-major array of `shape` in memory order (batch, output, input), of precision `prec`.

    `key` identifies persistent and outside storage: the path of a parameter or state, the name of an input or datum. `value`
    is the content of a `const`, with its own dtype.
    """

    name: str
    shape: tuple[int, ...]
    prec: str
    role: Role = "temp"
    key: str = ""
    value: NDArray[np.generic] | None = None
    id: int = field(default_factory=_ids.__next__)

    @property
    def size(self) -> int:
        """Number of elements."""
        n = 1
        for s in self.shape:
            n *= s
        return n


@dataclass(frozen=True, slots=True, eq=False)
class Var:
    """A loop from 0 to `size`, exclusive; `name` is for people."""

    name: str
    size: int
    id: int = field(default_factory=_ids.__next__)


# ---------------------------------------------------------------- positions


@dataclass(frozen=True, slots=True)
class Affine:
    """`Σ coefficient·variable + offset`; no variable twice, no zero coefficient, in the order of variable ids."""

    terms: tuple[tuple[Var, int], ...] = ()
    offset: int = 0

    @staticmethod
    def of(var: Var) -> Affine:
        return Affine(((var, 1),))

    def bounds(self) -> tuple[int, int]:
        """The least and the greatest value it takes, both inclusive (all loops have at least one turn)."""
        low = high = self.offset
        for var, c in self.terms:
            extent = c * (var.size - 1)
            low, high = low + min(extent, 0), high + max(extent, 0)
        return low, high


@dataclass(frozen=True, slots=True)
class Dynamic:
    """A position computed from data: an integer expression. Accesses with one are always guarded."""

    value: Expr


Index = Union[Affine, Dynamic]


@dataclass(frozen=True, slots=True)
class Access:
    """`buffer[index]`, one index per axis.

    Unguarded, every position is in range for all turns of the loops. Guarded: as an operand it reads `fill` where any position is out of
    range; as a target, that turn writes nothing.
    """

    buffer: Buffer
    index: tuple[Index, ...]
    guarded: bool = False
    fill: float | int = 0


# ---------------------------------------------------------------- scalar expressions


@dataclass(frozen=True, slots=True)
class Const:
    """A number of precision `prec`; infinities allowed."""

    value: float | int
    prec: str


@dataclass(frozen=True, slots=True)
class Position:
    """The value of an affine position, as a number of precision `prec` (for `arange` and the like)."""

    index: Affine
    prec: str


@dataclass(frozen=True, slots=True)
class Apply:
    """A primitive of `graph.primitives.PRIMITIVES` applied to operands; the result has precision `prec`.

    Operands are converted where needed by explicit `convert`s, except that `where`'s condition and logic take 0/1 of any precision
    and that comparisons give u8 from operands of one common precision.
    """

    fn: str
    args: tuple[Expr, ...]
    prec: str


@dataclass(frozen=True, slots=True)
class Random:
    """Element number `position` of a random stream.

    `stream` is 64 bits that name the place that draws; the seed of the context and, unless `counter` (an integer expression) is
    given, the call count of the routine complete the key: see `graph.random`. `dist` is `uniform` (in [0, 1)), `normal`.
    """

    dist: Literal["uniform", "normal"]
    stream: int
    counter: Expr | None
    position: Affine
    prec: str


Expr = Union[Const, Position, Access, Apply, Random]


# ---------------------------------------------------------------- assignments and programs


@dataclass(frozen=True, slots=True, eq=False)
class Assign:
    """For all values of `loops`: target (accum)= value.

    `fresh`: the whole target buffer first holds the neutral element of `accum` (0 for `set`), everywhere. The first assignment
    to a buffer is fresh or covers it wholly; later ones go on from what is there. With `set` no two turns write the same position.
    """

    target: Access
    accum: Accum
    fresh: bool
    loops: tuple[Var, ...]
    value: Expr
    origin: Span | None = None


@dataclass(slots=True)
class Program:
    """One routine with all sizes known.

    `inputs` in the order of the arguments, `outputs` in the order of the results (a buffer may be an input, a parameter, or occur twice),
    `stores`: (persistent buffer, buffer whose content it holds after the call). Reads of a persistent buffer in `assigns` see the value
    from before the call. Every buffer that is read and not persistent, input, data or const is written before.
    """

    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    assigns: list[Assign]
    stores: tuple[tuple[Buffer, Buffer], ...] = ()

    def buffers(self) -> list[Buffer]:
        """All buffers, in the order of their first appearance."""
        seen: dict[Buffer, None] = dict.fromkeys(self.inputs)
        for a in self.assigns:
            for access in accesses(a.value):
                seen.setdefault(access.buffer)
            seen.setdefault(a.target.buffer)
            for index in a.target.index:
                if isinstance(index, Dynamic):
                    for access in accesses(index.value):
                        seen.setdefault(access.buffer)
        for persistent, final in self.stores:
            seen.setdefault(final)
            seen.setdefault(persistent)
        for b in self.outputs:
            seen.setdefault(b)
        return list(seen)


def accesses(expr: Expr) -> list[Access]:
    """All accesses in an expression, those inside dynamic positions included, in the order of evaluation."""
    found: list[Access] = []
    stack: list[Expr] = [expr]
    while stack:
        e = stack.pop()
        match e:
            case Access(index=index):
                found.append(e)
                stack.extend(i.value for i in reversed(index) if isinstance(i, Dynamic))
            case Apply(args=args):
                stack.extend(reversed(args))
            case Random(counter=counter) if counter is not None:
                stack.append(counter)
            case _:
                pass
    return found
