"""Shape inference: constraints between rows and sizes, solved as they come, and closed when shapes are needed.

`solve` takes everything at once. A `Solver` is fed while a program is built, so that static code can ask for sizes on the way;
it only draws conclusions that are forced. `close` decides the rest, on a copy (`closing.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from ocannl_lang.shapes import closing, dims, rows
from ocannl_lang.shapes.sizes import Number, Sym, as_unknown
from ocannl_lang.shapes.solution import Solution
from ocannl_lang.shapes.state import ShapeError, State, known, open_row
from ocannl_lang.shapes.terms import (
    ROW_KINDS,
    Constraint,
    Dim,
    DimEq,
    Leaf,
    OneNumber,
    Problem,
    Row,
    RowEq,
    RowLe,
    Shape,
    SizeTerm,
    Unknown,
)


def solve(problem: Problem, bindings: Mapping[Unknown, int] | None = None) -> Solution:
    """All shapes of a program. Unknowns in `bindings` are those numbers everywhere.

    Contradictions are in `Solution.errors`, in the order of the constraints; what written types ask for comes first, and what
    annotations and results outside ops ask for last, so that they are measured against the computation and not the other way round.
    """
    solver = Solver(bindings)
    for leaf in problem.leaves:
        solver.add_leaf(leaf)
    solver.state.constraints = sorted(problem.constraints, key=_turn)
    for constraint in solver.state.constraints:
        solver.propagate(constraint)
    closing.close(solver.state)
    return Solution(solver.state)


def _turn(constraint: Constraint) -> int:
    match constraint.origin.form:
        case "declaration" | "literal":
            return 0
        case "annotation" | "result" if not constraint.origin.frames:
            return 2
        case _:
            return 1


def _register(st: State, shape: Shape) -> None:
    """Take up the variables of a shape, so that they close even if no constraint mentions them."""
    for kind in ROW_KINDS:
        lead, _, trail = open_row(st, shape.row(kind))
        for dim in lead + trail:
            known(st, dim)


class Solver:
    """Constraints that are propagated as they are added. Asking never changes an answer."""

    def __init__(self, bindings: Mapping[Unknown, int] | None = None) -> None:
        self.state = State(bindings or {})

    def add(self, constraint: Constraint) -> None:
        """Add a constraint and draw every conclusion that it forces."""
        self.state.constraints.append(constraint)
        self.propagate(constraint)

    def propagate(self, constraint: Constraint) -> None:
        """Draw every conclusion that a constraint of the state forces."""
        st = self.state
        match constraint:
            case RowEq() | RowLe():
                rows.add(st, constraint)
            case DimEq():
                dims.equal(st, constraint.a, constraint.b, constraint)
            case OneNumber(shape=shape):
                _register(st, shape)
            case _:
                dims.arithmetic(st, constraint)
        rows.drain(st)

    def add_leaf(self, leaf: Leaf) -> None:
        """Name a tensor that is not computed; its open shape closes first."""
        self.state.leaves.append(leaf)
        _register(self.state, leaf.shape)

    def copy(self) -> Solver:
        """An independent solver that knows the same."""
        other = Solver()
        other.state = self.state.copy()
        return other

    def close(self) -> Solution:
        """The shapes if nothing more is added. This solver can go on."""
        st = self.state.copy()
        closing.close(st)
        return Solution(st)

    @property
    def errors(self) -> list[ShapeError]:
        """The contradictions so far."""
        return list(self.state.errors)

    def dim_value(self, dim: Dim) -> int | Unknown | Sym | None:
        """The size if it is known already: a number, an unknown, or an expression of unknowns."""
        size = known(self.state, dim)
        if size is None or isinstance(size.value, int):
            return None if size is None else size.value
        return as_unknown(size.value) or size.value

    def row_rank(self, row: Row) -> int | None:
        """The number of axes if it is known already."""
        lead, var, trail = open_row(self.state, row)
        return None if var else len(lead) + len(trail)

    def row_dims(self, row: Row) -> tuple[Dim, ...] | None:
        """The axes if their number is known already."""
        lead, var, trail = open_row(self.state, row)
        return None if var else lead + trail

    def evaluate(self, term: SizeTerm) -> Number | None:
        """The number that `term` is, if its sizes are known already. `ArithmeticError` or `ValueError` where it has none."""
        return dims.evaluate(self.state, term)
