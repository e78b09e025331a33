"""The precisions of the language: which is wider, what they compute in, and the numpy types that hold them."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import numpy as np

FLOATS = ("f64", "f32", "bf16", "f16", "f8e5m2", "f8e4m3")
INTS = ("i64", "i32", "u32", "u16", "u8")
PRECISIONS = (*FLOATS, *INTS, "u32x4")

_NUMPY: dict[str, type[np.generic]] = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "i64": np.int64,
    "i32": np.int32,
    "u32": np.uint32,
    "u16": np.uint16,
    "u8": np.uint8,
}
_EXTENSION = {"bf16": "bfloat16", "f8e5m2": "float8_e5m2", "f8e4m3": "float8_e4m3fn"}
_FLOAT_WIDTH = {"f8e5m2": 1, "f8e4m3": 1, "f16": 2, "bf16": 2, "f32": 4, "f64": 8}


def is_float(prec: str) -> bool:
    return prec in _FLOAT_WIDTH


def join(a: str, b: str) -> str | None:
    """The narrowest precision of an expression that meets both, or None if there is none (random bits meet nothing
    else).

    An int with a float gives the float, `f16` with `bf16` gives f32, the two 8-bit floats give f16, `i32` with `u32`
    gives i64.
    """
    if a == b:
        return a
    if "u32x4" in (a, b):
        return None
    if is_float(a) != is_float(b):
        return a if is_float(a) else b
    if is_float(a):
        if _FLOAT_WIDTH[a] != _FLOAT_WIDTH[b]:
            return a if _FLOAT_WIDTH[a] > _FLOAT_WIDTH[b] else b
        return "f32" if _FLOAT_WIDTH[a] == 2 else "f16"
    if {a, b} == {"i32", "u32"}:
        return "i64"
    return a if INTS.index(a) < INTS.index(b) else b


def compute_precision(prec: str) -> str:
    """What values stored as `prec` are computed and summed in: floats of 16 and 8 bits in f32, the others in
    themselves.
    """
    return "f32" if _FLOAT_WIDTH.get(prec, 4) < 4 else prec


def loses_more_than_rounding(source: str, target: str) -> bool:
    """Whether a conversion must be written: from a float to an int, or to an int that does not hold all values."""
    if is_float(target):
        return False
    if is_float(source):
        return True
    return source != target and join(source, target) != target


@cache
def dtype(prec: str) -> np.dtype[Any]:
    """The numpy type of one element. bf16 and the 8-bit floats need the package `ml_dtypes`."""
    if prec in _NUMPY:
        return np.dtype(_NUMPY[prec])
    if prec in _EXTENSION:
        return np.dtype(getattr(importlib.import_module("ml_dtypes"), _EXTENSION[prec]))
    raise ValueError(f"no numpy type for precision {prec}")


def precision_of_dtype(kind: np.dtype[Any]) -> str | None:
    """The precision that holds elements of a numpy type exactly, None if there is none. Booleans are u8."""
    if kind == np.bool_:
        return "u8"
    for prec, t in _NUMPY.items():
        if kind == np.dtype(t):
            return prec
    for prec, name in _EXTENSION.items():
        if kind.name == name:
            return prec
    return None


def least(prec: str) -> float | int:
    """The neutral element of `max`."""
    return float("-inf") if is_float(prec) else int(np.iinfo(dtype(prec)).min)


def greatest(prec: str) -> float | int:
    """The neutral element of `min`."""
    return float("inf") if is_float(prec) else int(np.iinfo(dtype(prec)).max)
