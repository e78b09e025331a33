"""The one table of primitives: scalar functions that tensors apply position by position, and what can accumulate.

Precision rules (`Primitive.rule`), for the precision of the result from those of the operands:

* `join`: the wider of all operands; they are converted to it.
* `float`: the same, but f32 for ints.
* `compare`: u8; the operands are converted to the wider of them.
* `logic`: u8; operands of any precision, where 0 is false and everything else true.
* `select`: the wider of all operands but the first, a condition of any precision.
* `declared`: as written (`convert`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ocannl_lang.graph import derivatives as d
from ocannl_lang.graph import numeric as n
from ocannl_lang.graph.dtypes import greatest, is_float, least

Rule = Literal["join", "float", "compare", "logic", "select", "declared"]


@dataclass(frozen=True, slots=True)
class Primitive:
    """One scalar function.

    `numpy` is its meaning (see `graph.numeric`), `derivative` what flows to each operand (see `graph.derivatives`).
    `accumulates`: it is associative and commutative, and `neutral` gives its neutral element.
    """

    name: str
    arity: int
    doc: str
    numpy: Callable[..., NDArray[Any]]
    derivative: d.Derivative
    rule: Rule
    accumulates: bool = False


def neutral(accum: str, prec: str) -> float | int:
    """The neutral element of an accumulation in precision `prec`; 0 for `set`."""
    match accum:
        case "mul":
            value = 1
        case "and":
            value = 1
        case "max":
            return least(prec)
        case "min":
            return greatest(prec)
        case _:
            value = 0
    return float(value) if is_float(prec) else value


_TABLE: tuple[Primitive, ...] = (
    Primitive("add", 2, "a + b", np.add, d.d_add, "join", True),
    Primitive("sub", 2, "a - b", np.subtract, d.d_sub, "join"),
    Primitive("mul", 2, "a · b", np.multiply, d.d_mul, "join", True),
    Primitive("div", 2, "a / b; of ints in f32", n.div, d.d_div, "float"),
    Primitive("floordiv", 2, "⌊a / b⌋; of ints x // 0 = 0", n.floordiv, d.none, "join"),
    Primitive("mod", 2, "a - b·⌊a / b⌋, with the sign of b; of ints x % 0 = 0", n.mod, d.d_mod, "join"),
    Primitive("neg", 1, "-a", np.negative, d.d_neg, "join"),
    Primitive("pow", 2, "a to the power b; a constant int exponent multiplies", n.power, d.d_pow, "join"),
    Primitive(
        "min", 2, "the smaller; NaN if one is; a tie shares the gradient", np.minimum, d.d_extremum("lt"), "join", True
    ),
    Primitive(
        "max", 2, "the greater; NaN if one is; a tie shares the gradient", np.maximum, d.d_extremum("gt"), "join", True
    ),
    Primitive("eq", 2, "1 where a = b", np.equal, d.none, "compare"),
    Primitive("ne", 2, "1 where a ≠ b", np.not_equal, d.none, "compare"),
    Primitive("lt", 2, "1 where a < b", np.less, d.none, "compare"),
    Primitive("le", 2, "1 where a ≤ b", np.less_equal, d.none, "compare"),
    Primitive("gt", 2, "1 where a > b", np.greater, d.none, "compare"),
    Primitive("ge", 2, "1 where a ≥ b", np.greater_equal, d.none, "compare"),
    Primitive("and", 2, "1 where both are not 0", n.logical_and, d.none, "logic", True),
    Primitive("or", 2, "1 where one is not 0", n.logical_or, d.none, "logic", True),
    Primitive("not", 1, "1 where a is 0", n.logical_not, d.none, "logic"),
    Primitive("where", 3, "b where the condition a is not 0, else c", n.where, d.d_where, "select"),
    Primitive("relu", 1, "max(a, 0); derivative 0 at 0", n.relu, d.d_relu, "join"),
    Primitive("sigmoid", 1, "1 / (1 + e^-a)", n.sigmoid, d.d_sigmoid, "float"),
    Primitive("tanh", 1, "hyperbolic tangent", np.tanh, d.d_tanh, "float"),
    Primitive("exp", 1, "e^a", np.exp, d.d_exp, "float"),
    Primitive("log", 1, "natural logarithm", np.log, d.d_log, "float"),
    Primitive("exp2", 1, "2^a", np.exp2, d.d_exp2, "float"),
    Primitive("log2", 1, "logarithm to base 2", np.log2, d.d_log2, "float"),
    Primitive("sin", 1, "sine, radians", np.sin, d.d_sin, "float"),
    Primitive("cos", 1, "cosine, radians", np.cos, d.d_cos, "float"),
    Primitive("sqrt", 1, "square root", np.sqrt, d.d_sqrt, "float"),
    Primitive("rsqrt", 1, "1 / √a", n.rsqrt, d.d_rsqrt, "float"),
    Primitive("recip", 1, "1 / a", n.recip, d.d_recip, "float"),
    Primitive("abs", 1, "|a|; derivative 0 at 0", np.abs, d.d_abs, "join"),
    Primitive("sign", 1, "-1, 0 or 1", n.sign, d.none, "join"),
    Primitive("floor", 1, "the greatest whole number not above a", np.floor, d.none, "join"),
    Primitive("ceil", 1, "the least whole number not below a", np.ceil, d.none, "join"),
    Primitive("round", 1, "the nearest whole number, the even one in a tie", np.rint, d.none, "join"),
    Primitive("erf", 1, "error function", n.erf, d.d_erf, "float"),
    Primitive("gelu", 1, "a·Φ(a), exact (Hendrycks and Gimpel, arXiv:1606.08415)", n.gelu, d.d_gelu, "float"),
    Primitive("gelu_tanh", 1, "gelu by its tanh approximation", n.gelu_tanh, d.d_gelu_tanh, "float"),
    Primitive("silu", 1, "a·sigmoid(a)", n.silu, d.d_silu, "float"),
    Primitive("softplus", 1, "log(1 + e^a)", n.softplus, d.d_softplus, "float"),
    Primitive("sat01", 1, "a kept within 0 and 1; the gradient passes strictly inside", n.sat01, d.d_sat01, "join"),
    Primitive("fma", 3, "a·b + c", n.fma, d.d_fma, "join"),
    Primitive("clamp", 3, "a kept within b and c; the gradient passes strictly inside", n.clamp, d.d_clamp, "join"),
    Primitive(
        "convert", 1, "a in another precision; to ints toward zero, saturating", n.identity, d.d_convert, "declared"
    ),
    Primitive("stop_gradient", 1, "a; no gradient flows through", n.identity, d.none, "join"),
)

PRIMITIVES: dict[str, Primitive] = {p.name: p for p in _TABLE}
