"""Checks a solution against its problem, constraint by constraint, by plain code that shares nothing with the solver.

The tests call it after every solve that reported no error.
"""

from __future__ import annotations

from ocannl_lang.shapes.sizes import Number, Sym, add, has_calls, mul, sub
from ocannl_lang.shapes.solution import Solution, SolvedDim, SolvedRow
from ocannl_lang.shapes.terms import (
    ROW_KINDS,
    AtLeast,
    Concat,
    Constraint,
    DimEq,
    OneNumber,
    Problem,
    RowEq,
    RowLe,
    SizeIs,
    Strided,
    Window,
)


def verify(solution: Solution, problem: Problem) -> list[str]:
    """What is violated, in words for developers; empty if all holds."""
    return [f"{c.origin.span!r}: {fault}" for c in problem.constraints if (fault := _fault(solution, c))]


def _fault(s: Solution, c: Constraint) -> str:
    match c:
        case RowEq(a=a, b=b):
            left, right = s.row(a).dims, s.row(b).dims
            fits = len(left) == len(right) and all(_same(x, y) for x, y in zip(left, right))
            return "" if fits else f"[{s.row(a)}] is not [{s.row(b)}]"
        case RowLe(sub=low, sup=high):
            contraction = c.origin.form == "product" and (c.sub_side.row, c.sup_side.row) == ("input", "output")
            return _row_below(s.row(low), s.row(high), contraction)
        case DimEq(a=a, b=b):
            return "" if _same(s.dim(a), s.dim(b)) else f"{s.dim(a)} is not {s.dim(b)}"
        case Window(padded=False):
            out, kernel = s.dim(c.out).size, s.dim(c.kernel).size
            want = add(add(mul(c.stride, sub(out, 1)), mul(c.dilation, sub(kernel, 1))), 1)
            return _number(s.dim(c.axis).size, want)
        case Window() | Strided():
            return _number(s.dim(c.axis).size, mul(c.stride, s.dim(c.out).size))
        case Concat(axis=axis, parts=parts):
            total: Number = 0
            for part in parts:
                total = add(total, s.dim(part).size)
            return _number(s.dim(axis).size, total)
        case AtLeast(axis=axis, minimum=minimum):
            size = s.dim(axis).size
            return "" if isinstance(size, Sym) or size >= minimum else f"{size} is below {minimum}"
        case SizeIs(dim=dim, term=term):
            return _number(s.dim(dim).size, s.number(term))
        case OneNumber(shape=shape):
            sizes = [d.size for kind in ROW_KINDS for d in s.row(shape.row(kind)).dims]
            return "" if all(size == 1 for size in sizes) else f"{sizes} is not one number"


def _same(a: SolvedDim, b: SolvedDim) -> bool:
    return a.size == b.size and (a.basis == b.basis or a.broadcast or b.broadcast)


def _number(have: Number, want: Number) -> str:
    return "" if have == want or has_calls(sub(have, want)) else f"{have} is not {want}"


def _row_below(low: SolvedRow, high: SolvedRow, contraction: bool) -> str:
    axes = low.dims
    lead, trail = high.lead, high.trail
    if len(axes) < len(lead) + len(trail) or (contraction and len(axes) > len(lead) + len(trail)):
        return f"[{low}] has not the axes of [{high}]"
    pairs = [*zip(axes, lead), *zip(axes[len(axes) - len(trail) :], trail)]
    for a, b in pairs:
        if not (b.broadcast and not contraction) and not _same(a, b):
            return f"[{low}] is not below [{high}]"
    return ""
