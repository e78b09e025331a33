"""Precisions as LLVM types, and numbers as LLVM literals."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import numpy as np

from ocannl_lang.graph.dtypes import dtype, greatest, least

SCALARS: dict[str, str] = {
    "f64": "double",
    "f32": "float",
    "i64": "i64",
    "i32": "i32",
    "u32": "i32",
    "u16": "i16",
    "u8": "i8",
    "bf16": "i16",
    "f16": "i16",
}
SIZES: dict[str, int] = {"f64": 8, "f32": 4, "i64": 8, "i32": 4, "u32": 4, "u16": 2, "u8": 1, "bf16": 2, "f16": 2}
FLOATS = frozenset({"f64", "f32"})
# Floats that are stored as their bits and computed with in f32.
NARROW = frozenset({"bf16", "f16"})
UNSIGNED = frozenset({"u32", "u16", "u8"})


class Unsupported(Exception):
    """Something that this backend cannot do; the driver reports it as E0602. `what` completes "… is not available on the CPU"."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not available on the CPU yet")
        self.what = what


@dataclass(frozen=True, slots=True)
class Value:
    """An SSA name or literal `text`, of `prec` (`bool` for i1), one number or a vector of `lanes`.

    Literals are kept as scalars; they are splatted where a vector is asked for.
    """

    text: str
    prec: str
    lanes: int = 1


def scalar_type(prec: str) -> str:
    """The LLVM type of one number of `prec`."""
    if prec == "bool":
        return "i1"
    try:
        return SCALARS[prec]
    except KeyError:
        raise Unsupported(f"precision {prec}") from None


def llvm_type(prec: str, lanes: int = 1) -> str:
    """The LLVM type of `lanes` numbers of `prec`."""
    t = scalar_type(prec)
    return t if lanes == 1 else f"<{lanes} x {t}>"


def suffix(prec: str, lanes: int = 1) -> str:
    """The type as it stands in the names of intrinsics: `f32`, `v8f32`, `v4i64`."""
    t = scalar_type(prec)
    t = {"float": "f32", "double": "f64"}.get(t, t)
    return t if lanes == 1 else f"v{lanes}{t}"


def literal(value: float | int, prec: str) -> str:
    """A number as an LLVM constant of `prec`, converted as numpy converts."""
    if prec in FLOATS:
        x = float(value)
        if prec == "f32":
            with np.errstate(over="ignore"):
                x = float(np.float32(x))
        return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"
    if prec == "bool":
        return "true" if value else "false"
    if prec in NARROW:
        with np.errstate(over="ignore"):
            return str(int(np.asarray(value, dtype(prec)).view(np.int16)))
    if isinstance(value, float):
        # A conversion of what does not fit saturates, as the conversion instruction does.
        if math.isnan(value):
            value = 0
        elif math.isinf(value):
            value = int(greatest(prec) if value > 0 else least(prec))
    n = int(value)
    bits = SIZES[prec] * 8
    n &= (1 << bits) - 1
    return str(n - (1 << bits) if n >> (bits - 1) else n)
