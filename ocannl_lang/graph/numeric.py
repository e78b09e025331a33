"""What the primitives compute, in numpy: the reference that every backend is held against.

Operands arrive in the precision the operation computes in; the evaluator converts the result to the operation's
precision.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])
_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)
GELU_CUBIC = 0.044715


def relu(x: Array) -> Array:
    return np.maximum(x, x.dtype.type(0))


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x), without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def softplus(x: Array) -> Array:
    """log(1 + e^x), without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def silu(x: Array) -> Array:
    """x · sigmoid(x); 0 at -inf."""
    return np.where(np.isneginf(x), -np.zeros_like(x), x * sigmoid(x))


def erf(x: Array) -> Array:
    return np.asarray(_erf(x.astype(np.float64))) if x.size else x


def gelu(x: Array) -> Array:
    """x · Φ(x), exact, Φ from erfc so that the left tail keeps its digits."""
    wide = x.astype(np.float64)
    tail = np.asarray(_erfc(-wide * _SQRT_HALF)) if x.size else wide
    return np.where(np.isneginf(wide), -0.0, 0.5 * wide * tail)


def gelu_tanh(x: Array) -> Array:
    """The tanh approximation of gelu: x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))."""
    wide = x.astype(np.float64)
    inner = _SQRT_2_OVER_PI * (wide + GELU_CUBIC * wide**3)
    return np.where(np.isneginf(wide), -0.0, 0.5 * wide * (1.0 + np.tanh(inner)))


def sat01(x: Array) -> Array:
    return np.minimum(np.maximum(x, x.dtype.type(0)), x.dtype.type(1))


def clamp(x: Array, low: Array, high: Array) -> Array:
    return np.minimum(np.maximum(x, low), high)


def sign(x: Array) -> Array:
    return np.sign(x)


def rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def recip(x: Array) -> Array:
    return np.reciprocal(x) if np.issubdtype(x.dtype, np.floating) else floordiv_toward_zero(np.ones_like(x), x)


def div(x: Array, y: Array) -> Array:
    """The quotient of floats; of ints rounded toward zero, x / 0 = 0."""
    return x / y if np.issubdtype(x.dtype, np.floating) else floordiv_toward_zero(x, y)


def floordiv_toward_zero(x: Array, y: Array) -> Array:
    safe = np.where(y == 0, np.ones_like(y), y)
    quotient = np.where(y == 0, np.zeros_like(x), x // safe)
    return quotient + ((x - quotient * safe != 0) & ((x < 0) != (safe < 0)) & (y != 0)).astype(x.dtype)


def floordiv(x: Array, y: Array) -> Array:
    """⌊x / y⌋; of ints, x // 0 = 0."""
    return np.floor_divide(x, y)


def mod(x: Array, y: Array) -> Array:
    """x - y·⌊x / y⌋, with the sign of the divisor; of ints, x % 0 = 0."""
    return np.mod(x, y)


def power(x: Array, y: Array) -> Array:
    """x^y; of ints with a negative exponent the power rounded toward zero (0 for |x| ≠ 1)."""
    if np.issubdtype(x.dtype, np.floating) or not np.any(y < 0):
        return np.power(x, y)
    positive = np.power(x, np.where(y < 0, y % 2, y))
    return np.where((y < 0) & (np.abs(x) != 1), np.zeros_like(positive), positive)


def where(condition: Array, a: Array, b: Array) -> Array:
    return np.where(condition != 0, a, b)


def logical_and(a: Array, b: Array) -> Array:
    return (a != 0) & (b != 0)


def logical_or(a: Array, b: Array) -> Array:
    return (a != 0) | (b != 0)


def logical_not(a: Array) -> Array:
    return a == 0


def fma(a: Array, b: Array, c: Array) -> Array:
    return a * b + c


def identity(x: Array) -> Array:
    return x


def convert(x: Array, kind: np.dtype[Any]) -> Array:
    """To another element type: floats to ints toward zero, out of range to the nearest end, NaN to 0; ints to ints
    modulo 2^n.
    """
    if np.issubdtype(kind, np.integer) and not np.issubdtype(x.dtype, np.integer) and x.dtype != np.bool_:
        info = np.iinfo(kind)
        wide = np.nan_to_num(np.trunc(x.astype(np.float64)), nan=0.0, posinf=np.inf, neginf=-np.inf)
        inside = np.clip(wide, float(info.min), float(info.max))
        # float(info.max) of i64 is one too many; such values are put at the end by hand.
        top = wide >= float(info.max)
        return np.where(top, info.max, np.where(top, 0.0, inside).astype(kind)).astype(kind)
    return x.astype(kind)
