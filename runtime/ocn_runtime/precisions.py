"""Precisions and the numpy types that hold them.

`f32`, `bf16` and the like are the language's names; `bf16` and the 8-bit floats are types of ml_dtypes. `u32x4` (random
bits) is held as four `u32` along a last axis of its own.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

DTYPES: dict[str, np.dtype[Any]] = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f16": np.dtype(np.float16),
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "f8e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "i64": np.dtype(np.int64),
    "i32": np.dtype(np.int32),
    "u32": np.dtype(np.uint32),
    "u16": np.dtype(np.uint16),
    "u8": np.dtype(np.uint8),
}

_NAMES: dict[np.dtype[Any], str] = {dtype: name for name, dtype in DTYPES.items()}

FLOATS = frozenset(("f64", "f32", "bf16", "f16", "f8e5m2", "f8e4m3"))


def precision_of(dtype: np.dtype[Any]) -> str | None:
    """The precision that a numpy type in native byte order holds; None where there is none (`bool`, `int8`, …)."""
    return _NAMES.get(dtype)


def dtype_name(dtype: np.dtype[Any]) -> str:
    """The precision's name where there is one, else numpy's name."""
    return precision_of(dtype.newbyteorder("=")) or dtype.name


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether the type holds floats, those of ml_dtypes included."""
    return dtype.kind == "f" or _NAMES.get(dtype) in FLOATS
