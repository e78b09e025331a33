"""Arrays from outside as numpy arrays, and into the precision that a routine or parameter has.

Nothing is copied where layout and precision fit. A conversion may round, as f64 to f32 does; one that loses more (a
float to an int, a number that is too large) is refused.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocn_runtime.precisions import DTYPES, dtype_name, is_float

Array = NDArray[Any]


class Misfit(ValueError):
    """An argument that is no array, or not of a precision that goes with what is asked for."""


def fit(value: object, dtype: np.dtype[Any], *, copy: bool = True) -> Array:
    """`value` as a C-contiguous array of `dtype`: itself where it fits, else a converted copy, if `copy` allows one.

    Raises `Misfit`, whose text goes on after the name of the argument: "holds floats, and i32 is asked for".
    """
    if type(value) is np.ndarray and value.dtype == dtype and value.flags.c_contiguous and value.flags.aligned:
        return value
    array = as_array(value)
    if array.dtype == dtype and array.flags.c_contiguous and array.flags.aligned:
        return array
    if not copy and array.ndim:
        reason = "its elements do not lie one after the other"
        if array.dtype != dtype:
            reason = f"it holds {dtype_name(array.dtype)}, not {dtype_name(dtype)}"
        raise Misfit(f"needs a copy: {reason}")
    return convert(array, dtype)


def as_array(value: Any) -> Array:
    """A numpy array of numpy arrays and numbers, DLPack producers (PyTorch, JAX, CuPy), buffers, and nested lists.

    Arrays on other devices are copied to the host. Raises `Misfit` for everything else.
    """
    if isinstance(value, (np.ndarray, np.generic, bool, int, float)):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(value)
    try:
        if hasattr(value, "__array__") or isinstance(value, (list, tuple)):
            return np.asarray(value)
        return np.asarray(memoryview(value))
    except (TypeError, ValueError, BufferError):
        kind = "list whose parts differ in length" if isinstance(value, (list, tuple)) else type(value).__name__
        raise Misfit(f"cannot be read as an array: it is a {kind}") from None


def convert(array: Array, dtype: np.dtype[Any]) -> Array:
    """The array in another type and C-contiguous. Raises `Misfit` where more than rounding would be lost."""
    source = array.dtype
    if source.kind not in "biuf" and not is_float(source):
        raise Misfit(f"holds {source.name}, and {dtype_name(dtype)} is asked for")
    if source.kind == "b" or source == dtype:
        return np.array(array, dtype, order="C")
    if is_float(dtype):
        return _to_float(array, dtype)
    if is_float(source):
        raise Misfit(f"holds floats, and {dtype_name(dtype)} is asked for")
    limits = np.iinfo(dtype)
    if array.size and not (limits.min <= int(array.min()) and int(array.max()) <= limits.max):
        outside = int(array.max()) if int(array.max()) > limits.max else int(array.min())
        raise Misfit(f"holds {outside}, which {dtype_name(dtype)} cannot")
    return np.array(array, dtype, order="C")


def _to_float(array: Array, dtype: np.dtype[Any]) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        converted = np.array(array, dtype, order="C")
    if is_float(array.dtype) and np.can_cast(array.dtype, dtype):
        return converted
    lost = np.isfinite(array) & ~np.isfinite(converted)
    if lost.any():
        raise Misfit(f"holds {np.asarray(array[lost]).reshape(-1)[0]!s}, which is too large for {dtype_name(dtype)}")
    return converted


def _from_dlpack(value: Any) -> Array:
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, AttributeError, ValueError) as error:
        narrow = _narrow_torch(value)
        if narrow is not None:
            return narrow
        if getattr(value, "requires_grad", False):
            raise Misfit("is a tensor that requires a gradient: pass `x.detach()`") from None
        try:
            return _from_other_device(value)
        except (BufferError, RuntimeError, TypeError, AttributeError, ValueError):
            raise Misfit(f"cannot be read as an array: {error}") from None


def _narrow_torch(value: Any) -> Array | None:
    """A tensor of PyTorch in bf16 or an 8-bit float, which numpy's DLPack does not know: the same bytes under another type."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return None
    names = {
        "bfloat16": ("bf16", torch.int16),
        "float8_e5m2": ("f8e5m2", torch.uint8),
        "float8_e4m3fn": ("f8e4m3", torch.uint8),
    }
    found = names.get(str(value.dtype).removeprefix("torch."))
    if found is None:
        return None
    precision, carrier = found
    return np.from_dlpack(value.detach().cpu().view(carrier)).view(DTYPES[precision])


def _from_other_device(value: Any) -> Array:
    """A copy on the host of an array that lies elsewhere, or of a kind that only `__array__` can give (bf16 of JAX)."""
    if hasattr(value, "cpu"):
        return np.from_dlpack(value.cpu())
    if hasattr(value, "__array__"):
        return np.asarray(value)
    if hasattr(value, "get"):
        return np.asarray(value.get())
    return np.from_dlpack(value, device="cpu", copy=True)
