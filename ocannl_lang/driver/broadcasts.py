"""W0902: two tensors that stretch each other, so that the result is larger than both."""

from __future__ import annotations

from collections.abc import Iterator

from ocannl_lang.diagnostics.model import Diagnostic
from ocannl_lang.graph import ir
from ocannl_lang.graph.ir import Graph, Value
from ocannl_lang.shapes import Solution, SolvedDim, SolvedRow
from ocannl_lang.shapes.reasons import is_standard
from ocannl_lang.shapes.terms import ROW_KINDS

PAIRS = frozenset(
    {"add", "sub", "mul", "div", "floordiv", "mod", "pow", "max", "min", "eq", "ne", "lt", "le", "gt", "ge"}
)


def mutual_stretches(graph: Graph, solution: Solution) -> list[Diagnostic]:
    """Pointwise operations of the user's text in which an axis kept with size 1 stretches on each side."""
    found: list[Diagnostic] = []
    for value in graph.values:
        if not isinstance(value.op, ir.Map) or value.op.fn not in PAIRS or is_standard(value.origin.span):
            continue
        a, b = value.op.args
        pairs = list(_aligned(a, b, solution))
        if any(_stretches(x, y) for x, y in pairs) and any(_stretches(y, x) for x, y in pairs):
            sizes = " and ".join(str(solution.shape(v.shape)) for v in (a, b))
            found.append(
                Diagnostic(
                    "W0902", "each side stretches the other", value.origin.outer, f"{sizes} give {solution.shape(value.shape)}",
                    notes=("an axis kept with size 1 fits any size; here one does so on both sides",),
                    helps=("if all pairs are meant, say so with an einsum: `a +*{i; j => i, j} b`",),
                )
            )  # fmt: skip
    return found


def _stretches(one: SolvedDim, other: SolvedDim) -> bool:
    return one.broadcast and other.size != 1


def _aligned(a: Value, b: Value, solution: Solution) -> Iterator[tuple[SolvedDim, SolvedDim]]:
    """The axes of two operands that lie over each other, in rows of equally many axes."""
    for kind in ROW_KINDS:
        x: SolvedRow = solution.row(a.shape.row(kind))
        y: SolvedRow = solution.row(b.shape.row(kind))
        if len(x.dims) == len(y.dims):
            yield from zip(x.dims, y.dims)
