"""Solved shapes as lowering sees them, and how the axes of an operand align with those of a result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ocannl_lang.loops.ir import Access, Affine, Buffer, Var
from ocannl_lang.shapes.terms import ROW_KINDS, Dim, Row, RowKind, Shape, SizeTerm


class SolvedDim(Protocol):
    """A size; `broadcast` tells a 1 that stretches."""

    @property
    def size(self) -> object: ...


class SolvedRow(Protocol):
    """Axes before and after the place where broadcasting inserts more."""

    @property
    def lead(self) -> Sequence[SolvedDim]: ...

    @property
    def trail(self) -> Sequence[SolvedDim]: ...


class Solution(Protocol):
    """What shape inference found (`shapes.Solution`), with all sizes numbers."""

    def dim(self, dim: Dim, /) -> SolvedDim: ...

    def row(self, row: Row, /) -> SolvedRow: ...

    def number(self, term: SizeTerm, /) -> object: ...


@dataclass(frozen=True, slots=True)
class Axes:
    """The sizes of one row, split where broadcasting inserts."""

    lead: tuple[int, ...]
    trail: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return (*self.lead, *self.trail)


@dataclass(frozen=True, slots=True)
class Extents:
    """The sizes of a tensor's three rows."""

    batch: Axes
    output: Axes
    input: Axes

    def row(self, kind: RowKind) -> Axes:
        match kind:
            case "batch":
                return self.batch
            case "output":
                return self.output
            case "input":
                return self.input

    @property
    def sizes(self) -> tuple[int, ...]:
        """All sizes in memory order."""
        return (*self.batch.sizes, *self.output.sizes, *self.input.sizes)


@dataclass(frozen=True, slots=True)
class Places:
    """One position for each axis of the three rows of an index space, and the loops that run through them."""

    batch: tuple[Affine, ...]
    output: tuple[Affine, ...]
    input: tuple[Affine, ...]
    loops: tuple[Var, ...]

    def row(self, kind: RowKind) -> tuple[Affine, ...]:
        match kind:
            case "batch":
                return self.batch
            case "output":
                return self.output
            case "input":
                return self.input

    @property
    def index(self) -> tuple[Affine, ...]:
        """All positions in memory order."""
        return (*self.batch, *self.output, *self.input)


def solved_size(dim: SolvedDim) -> int:
    size = dim.size
    if not isinstance(size, int):
        raise TypeError(f"a size is still open: {size}")
    return size


def solved_axes(solution: Solution, row: Row) -> Axes:
    solved = solution.row(row)
    return Axes(tuple(map(solved_size, solved.lead)), tuple(map(solved_size, solved.trail)))


def solved_extents(solution: Solution, shape: Shape) -> Extents:
    return Extents(*(solved_axes(solution, shape.row(kind)) for kind in ROW_KINDS))


def places_of(extents: Extents) -> Places:
    """A loop for each axis that is not of size 1."""
    loops: list[Var] = []

    def row(kind: RowKind) -> tuple[Affine, ...]:
        return row_places(extents.row(kind).sizes, kind[0], loops)

    return Places(row("batch"), row("output"), row("input"), tuple(loops))


def row_places(sizes: Sequence[int], letter: str, loops: list[Var]) -> tuple[Affine, ...]:
    """Positions that run through a row; the loops are added to `loops`."""
    found: list[Affine] = []
    for i, size in enumerate(sizes):
        if size == 1:
            found.append(Affine())
            continue
        var = Var(f"{letter}{i}", size)
        loops.append(var)
        found.append(Affine.of(var))
    return tuple(found)


def align(operand: Axes, positions: Sequence[Affine]) -> tuple[Affine, ...]:
    """Positions of an operand's row that broadcasts to a row at `positions`.

    Leading axes align at the left, trailing ones at the right; an axis of size 1 is read at 0.
    """
    n = len(positions)
    lead, trail = len(operand.lead), len(operand.trail)
    if lead + trail > n:
        raise ValueError(f"{lead + trail} axes do not broadcast to {n}")
    beside = (*positions[:lead], *positions[n - trail :])
    return tuple(Affine() if size == 1 else p for size, p in zip(operand.sizes, beside, strict=True))


def align_all(operand: Extents, places: Places) -> tuple[Affine, ...]:
    """Positions of an operand in memory order, where its three rows broadcast to `places`."""
    return tuple(p for kind in ROW_KINDS for p in align(operand.row(kind), places.row(kind)))


def linear(index: Sequence[Affine], shape: Sequence[int]) -> Affine:
    """The number of an element in row-major order."""
    terms: dict[Var, int] = {}
    offset, stride = 0, 1
    for position, size in zip(reversed(index), reversed(shape), strict=True):
        offset += stride * position.offset
        for var, c in position.terms:
            terms[var] = terms.get(var, 0) + stride * c
        stride *= size
    ordered = sorted(((v, c) for v, c in terms.items() if c), key=lambda t: t[0].id)
    return Affine(tuple(ordered), offset)


def whole(buffer: Buffer) -> tuple[Access, tuple[Var, ...]]:
    """Every element of a buffer once, and the loops for that."""
    loops: list[Var] = []
    index = row_places(buffer.shape, "i", loops)
    return Access(buffer, index), tuple(loops)
