"""Solved shapes, and the questions one can ask about them."""

from __future__ import annotations

from dataclasses import dataclass

from ocannl_lang.diagnostics.model import Label
from ocannl_lang.shapes import dims, reasons
from ocannl_lang.shapes.sizes import Number, SizeValue, size_text
from ocannl_lang.shapes.state import ShapeError, State, known, open_row
from ocannl_lang.shapes.terms import ROW_KINDS, Dim, Row, RowKind, Shape, SizeTerm


@dataclass(frozen=True, slots=True)
class SolvedDim:
    """A size: a number, or an expression of unknowns. `broadcast`: a 1 that stretches."""

    size: SizeValue
    basis: str = "default"
    broadcast: bool = False

    def __str__(self) -> str:
        return size_text(self.size) if self.basis == "default" else f"{size_text(self.size)}:{self.basis}"


@dataclass(frozen=True, slots=True)
class SolvedRow:
    """The axes of a row. Broadcasting inserts axes between `lead` and `trail`."""

    lead: tuple[SolvedDim, ...] = ()
    trail: tuple[SolvedDim, ...] = ()

    @property
    def dims(self) -> tuple[SolvedDim, ...]:
        return self.lead + self.trail

    @property
    def sizes(self) -> tuple[SizeValue, ...]:
        return tuple(d.size for d in self.dims)

    def __str__(self) -> str:
        return ", ".join(str(d) for d in self.dims)


@dataclass(frozen=True, slots=True)
class SolvedShape:
    batch: SolvedRow = SolvedRow()
    output: SolvedRow = SolvedRow()
    input: SolvedRow = SolvedRow()

    def row(self, kind: RowKind) -> SolvedRow:
        return getattr(self, kind)

    @property
    def dims(self) -> tuple[SolvedDim, ...]:
        """All axes in memory order: batch, output, input."""
        return self.batch.dims + self.output.dims + self.input.dims

    @property
    def sizes(self) -> tuple[SizeValue, ...]:
        """All sizes in memory order."""
        return tuple(d.size for d in self.dims)

    def __str__(self) -> str:
        batch = f"{self.batch} | " if self.batch.dims else ""
        inputs = f"{self.input} -> " if self.input.dims else ""
        return f"[{batch}{inputs}{self.output}]".replace("| ]", "|]").replace("-> ]", "->]")


class Solution:
    """All shapes of a problem. With `errors` the shapes are a best guess, good for going on."""

    def __init__(self, state: State) -> None:
        self._state = state

    @property
    def errors(self) -> list[ShapeError]:
        return self._state.errors

    @property
    def steps(self) -> int:
        """How many elementary propagations it took."""
        return self._state.steps

    def dim(self, dim: Dim) -> SolvedDim:
        size = known(self._state, dim)
        if size is None:
            return SolvedDim(1, broadcast=True)  # a variable that no constraint mentions
        return SolvedDim(size.value, size.basis, size.stretches)

    def row(self, row: Row) -> SolvedRow:
        lead, _, trail = open_row(self._state, row)
        return SolvedRow(tuple(self.dim(d) for d in lead), tuple(self.dim(d) for d in trail))

    def axes(self, row: Row) -> tuple[Dim, ...]:
        """The axes of a row as terms, to ask `why` of."""
        lead, _, trail = open_row(self._state, row)
        return lead + trail

    def shape(self, shape: Shape) -> SolvedShape:
        batch, output, input = (self.row(shape.row(kind)) for kind in ROW_KINDS)
        return SolvedShape(batch, output, input)

    def number(self, term: SizeTerm) -> Number:
        """The value of a number that depends on sizes. `ArithmeticError` or `ValueError` where it has none."""
        value = dims.evaluate(self._state, term)
        return 1 if value is None else value

    def why(self, dim: Dim) -> tuple[Label, ...]:
        """The places that fixed a size, the source first."""
        text = reasons.dim_text(self._state, dim)
        return tuple(reasons.labels(self._state, reasons.chain(self._state, dim), text))
