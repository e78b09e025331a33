"""Derivatives of the primitives, as functions that build expressions.

Each takes the operands, the primitive's own result and the gradient of the result, all scalar expressions of one
precision, and gives for each operand what it adds to that operand's gradient, or None where nothing flows. They use
the stored result where that saves work (`tanh`, `exp`, …) and have no branch that overflows where the function itself
does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ocannl_lang.graph.numeric import GELU_CUBIC
from ocannl_lang.loops.ir import Const, Expr
from ocannl_lang.loops.lower_expr import (
    add,
    apply,
    compare,
    const,
    convert,
    div,
    mul,
    neg,
    precision,
    scale,
    sub,
    where,
)

Args = tuple[Expr, ...]
Derivative = Callable[[Args, Expr, Expr], tuple["Expr | None", ...]]


def none(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    return (None,) * len(args)


def d_add(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    return g, g


def d_sub(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    return g, neg(g)


def d_mul(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    a, b = args
    return mul(g, b), mul(g, a)


def d_div(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    _, b = args
    return div(g, b), neg(div(mul(g, result), b))


def d_mod(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    a, b = args
    return g, neg(mul(g, apply("floor", div(a, b))))


def d_neg(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    return (neg(g),)


def d_pow(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    x, y = args
    if isinstance(y, Const):
        return mul(g, _power_slope(x, y)), None
    slope = mul(y, apply("pow", x, sub(y, const(1, precision(y)))))
    # x^0 is constant, also at 0, where x^-1 is infinite.
    base = where(compare("eq", y, const(0, precision(y))), _zero(g), mul(g, slope))
    exponent = where(compare("gt", x, _zero(x)), mul(g, mul(result, apply("log", x))), _zero(g))
    return base, exponent


def _power_slope(x: Expr, y: Const) -> Expr:
    if y.value in (0, 1):
        return const(y.value, precision(x))
    if y.value == 2:
        return scale(x, 2)
    return scale(apply("pow", x, const(y.value - 1, y.prec)), y.value)


def d_extremum(order: str) -> Derivative:
    """Of binary `max` (`order` is `gt`) and `min` (`lt`): to the winner, half to each in a tie."""

    def derivative(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
        a, b = args
        half = where(compare("eq", a, b), scale(g, 0.5), _zero(g))
        return where(compare(order, a, b), g, half), where(compare(order, b, a), g, half)

    return derivative


def d_where(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    condition = args[0]
    return None, where(condition, g, _zero(g)), where(condition, _zero(g), g)


def d_relu(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    return (where(compare("gt", args[0], _zero(g)), g, _zero(g)),)


def d_sigmoid(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    return (mul(g, mul(result, sub(_one(g), result))),)


def d_tanh(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    return (mul(g, sub(_one(g), mul(result, result))),)


def d_exp(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    return (mul(g, result),)


def d_log(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    return (div(g, args[0]),)


def d_exp2(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    return (scale(mul(g, result), math.log(2)),)


def d_log2(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    return (scale(div(g, args[0]), 1 / math.log(2)),)


def d_sin(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    return (mul(g, apply("cos", args[0])),)


def d_cos(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    return (neg(mul(g, apply("sin", args[0]))),)


def d_sqrt(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    return (div(scale(g, 0.5), result),)


def d_rsqrt(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    return (scale(mul(g, mul(result, mul(result, result))), -0.5),)


def d_recip(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    return (neg(mul(g, mul(result, result))),)


def d_abs(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    return (mul(g, apply("sign", args[0])),)


def d_erf(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    return (scale(mul(g, apply("exp", neg(mul(args[0], args[0])))), 2 / math.sqrt(math.pi)),)


def d_gelu(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    """Φ(x) + x·φ(x)."""
    (x,) = args
    cumulative = scale(add(_one(x), apply("erf", scale(x, math.sqrt(0.5)))), 0.5)
    density = scale(apply("exp", scale(mul(x, x), -0.5)), 1 / math.sqrt(2 * math.pi))
    return (mul(g, add(cumulative, mul(x, density))),)


def d_gelu_tanh(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    """With u = √(2/π)(x + c·x³) and t = tanh u: (1 + t)/2 + x/2 · (1 - t²) · √(2/π)(1 + 3c·x²)."""
    (x,) = args
    k = math.sqrt(2 / math.pi)
    square = mul(x, x)
    t = apply("tanh", scale(mul(x, add(_one(x), scale(square, GELU_CUBIC))), k))
    slope = scale(add(_one(x), scale(square, 3 * GELU_CUBIC)), k / 2)
    inner = mul(x, mul(sub(_one(x), mul(t, t)), slope))
    return (mul(g, add(scale(add(_one(x), t), 0.5), inner)),)


def d_silu(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    """s·(1 + x·(1 - s)) with s = sigmoid(x)."""
    (x,) = args
    s = apply("sigmoid", x)
    return (mul(g, mul(s, add(_one(x), mul(x, sub(_one(x), s))))),)


def d_softplus(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    return (mul(g, apply("sigmoid", args[0])),)


def d_sat01(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    (x,) = args
    return (_strictly_between(x, _zero(x), _one(x), g),)


def d_clamp(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    x, low, high = args
    below, above = compare("lt", x, low), compare("gt", x, high)
    return _strictly_between(x, low, high, g), where(below, g, _zero(g)), where(above, g, _zero(g))


def d_fma(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    a, b, _ = args
    return mul(g, b), mul(g, a), g


def d_convert(args: Args, result: Expr, g: Expr) -> tuple[Expr | None, ...]:
    return (convert(g, precision(args[0])),)


def _strictly_between(x: Expr, low: Expr, high: Expr, g: Expr) -> Expr:
    return where(compare("gt", x, low), where(compare("lt", x, high), g, _zero(g)), _zero(g))


def _zero(like: Expr) -> Const:
    return const(0, precision(like))


def _one(like: Expr) -> Const:
    return const(1, precision(like))
