"""Shape inference: what is known of the axes of every tensor, and why.

`terms` says what is spoken about, `solver` is the way in, `rows` and `dims` hold the rules, `closing` decides what is left open,
`explain` and `reasons` put errors into words, `schemes` prints the most general shape of an op, `verify` checks a solution plainly.
"""

from ocannl_lang.shapes.schemes import scheme_text
from ocannl_lang.shapes.sizes import Number, SizeValue, Sym, size_text
from ocannl_lang.shapes.solution import Solution, SolvedDim, SolvedRow, SolvedShape
from ocannl_lang.shapes.solver import Solver, solve
from ocannl_lang.shapes.state import ShapeError
from ocannl_lang.shapes.verify import verify

__all__ = [
    "Solver",
    "solve",
    "Solution",
    "SolvedDim",
    "SolvedRow",
    "SolvedShape",
    "ShapeError",
    "scheme_text",
    "verify",
    "Sym",
    "SizeValue",
    "Number",
    "size_text",
]
