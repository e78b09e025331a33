"""The pointwise functions of the language on static numbers, e.g. `sqrt(2)`: a number in, a number out.

Their meaning is that of the tensor functions of the same names; halves round to even, nothing overflows where the
result fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Number = int | float


def _sigmoid(x: Number) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def _softplus(x: Number) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _clamp(x: Number, low: Number, high: Number) -> Number:
    return min(max(x, low), high)


STATIC_MATH: dict[str, Callable[..., Any]] = {
    "relu": lambda x: max(x, 0),
    "sigmoid": _sigmoid,
    "tanh": math.tanh,
    "exp": math.exp,
    "log": math.log,
    "exp2": lambda x: 2.0**x,
    "log2": math.log2,
    "sin": math.sin,
    "cos": math.cos,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "recip": lambda x: 1 / x,
    "abs": abs,
    "sign": lambda x: (x > 0) - (x < 0),
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "erf": math.erf,
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    "silu": lambda x: x * _sigmoid(x),
    "softplus": _softplus,
    "sat01": lambda x: _clamp(x, 0, 1),
    "pow": lambda x, exponent: x**exponent,
    "clamp": _clamp,
    "where": lambda condition, a, b: a if condition else b,
}
"""By name. They raise `ValueError`, `ZeroDivisionError` or `OverflowError` where there is no value."""
