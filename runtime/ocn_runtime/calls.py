"""Calls from Python of a routine that is compiled for certain sizes, at the least cost.

A `DirectCall` is a function of Python in machine code (its text is `ocannl_lang.codegen.llvm.caller`). It takes what needs no conversion:
arrays of the right type, shape and layout, and numbers for arguments without axes. It reads their objects in memory, where CPython and
numpy have laid them out, and hands everything else, errors too, to the general function it was made with. That one is the only other way:
where the objects do not look as expected (another interpreter, a build without the lock of Python) there is no direct call at all.
"""

from __future__ import annotations

import ctypes
import functools
import math
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocn_runtime.cpu import LARGE_RESULT, Executor, Routine, address, generation, result_array

Array = NDArray[Any]


class Counter:
    """How often a routine was called: `calls`, which lies in `word`."""

    __slots__ = ("word",)

    def __init__(self) -> None:
        self.word = ctypes.c_int64(0)

    @property
    def calls(self) -> int:
        return self.word.value

    @calls.setter
    def calls(self, value: int) -> None:
        self.word.value = value


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """One argument or result: its shape and type. `limit`: it is a position below that."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    limit: int | None = None


def number_or_array(result: Array) -> Any:
    """A result without axes as a number of Python."""
    if result.ndim:
        return result
    return result.item() if result.dtype.kind in "biuf" else float(result)


# ---------------------------------------------------------------- what the machine code reads


@dataclass(frozen=True, slots=True)
class Layout:
    """Where fields of objects lie, and bits of an array's flags. The machine code holds these numbers; `as_expected` looks for them."""

    type: int = 8
    number: int = 16
    data: int = 16
    axes: int = 24
    sizes: int = 32
    dtype: int = 56
    flags: int = 64
    contiguous: int = 0x1
    aligned: int = 0x100
    writeable: int = 0x400


LAYOUT = Layout()

FUNCTIONS = {
    "save_thread": "PyEval_SaveThread",
    "restore_thread": "PyEval_RestoreThread",
    "fetch_error": "PyErr_Fetch",
    "restore_error": "PyErr_Restore",
    "hold": "Py_IncRef",
    "drop": "Py_DecRef",
    "call": "PyObject_CallNoArgs",
    "call_with": "PyObject_VectorcallDict",
    "dict_new": "PyDict_New",
    "dict_set": "PyDict_SetItem",
    "tuple_new": "PyTuple_New",
    "tuple_size": "PyTuple_Size",
    "tuple_item": "PyTuple_GetItem",
    "tuple_set": "PyTuple_SetItem",
    "list_as_tuple": "PyList_AsTuple",
    "int_as_pointer": "PyLong_AsVoidPtr",
    "int_value": "PyLong_AsLongLongAndOverflow",
}
"""The functions of Python that the machine code calls, by their names in it."""


class Interpreter(ctypes.Structure):
    """Addresses of what is the same for all calls: types, `None`, the name `out`, and `FUNCTIONS`."""

    _fields_ = [
        (name, ctypes.c_void_p)
        for name in ("array_type", "float_type", "int_type", "tuple_type", "list_type", "none", "out_name", *FUNCTIONS)
    ]


class Head(ctypes.Structure):
    """What belongs to a function: the prepared `Call` (0: none), the general function, and the lock's two functions."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("call", "general", "acquire", "release")]


class Call(ctypes.Structure):
    """A routine for certain sizes.

    `words` are the routine's, `counter` the word of its calls, `generation` that of pools, `record` what the executor runs. `inputs` and
    `results` are operands; `targets` has a place for each result's array, `ranges` one for the first and the last address of each operand.
    """

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("words", "counter", "generation", "record", "inputs", "results")),
        *((name, ctypes.c_void_p) for name in ("targets", "ranges")),
        *((name, ctypes.c_int64) for name in ("seed", "input_count", "result_count", "as_tuple")),
    ]


class Operand(ctypes.Structure):
    """An argument or result, by its `kind`; its address goes to `entry`.

    An array has `axes`, `sizes`, a number of `bytes`, and a `dtype`. A number between `low` and `high` (`low_float`, `high_float`) is
    written at `place`. A result is made by `make(shape, dtype)`; one that lies at `place` leaves as `convert()`.
    """

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("kind", "axes", "bytes", "low", "high")),
        *((name, ctypes.c_double) for name in ("low_float", "high_float")),
        *((name, ctypes.c_void_p) for name in ("entry", "sizes", "place", "make", "shape", "dtype", "convert")),
    ]


REFUSED, ARRAY, F32, F64, INT8, INT16, INT32, INT64 = range(8)
"""Kinds of operands; what is refused is always left to the general function."""

_FLOATS = {np.dtype(np.float32): F32, np.dtype(np.float64): F64}
_INTS = {1: INT8, 2: INT16, 4: INT32, 8: INT64}
_FASTCALL_WITH_KEYWORDS = 0x80 | 0x2


class _Method(ctypes.Structure):
    """CPython's `PyMethodDef`."""

    _fields_ = [("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


# ---------------------------------------------------------------- functions


class DirectCall:
    """A function of Python, `function`, that makes the prepared call itself where it takes the arguments, else calls `general` with them.

    It holds `lock` while it looks and runs. `general` is called without.
    """

    __slots__ = ("_head", "function")

    def __init__(self, executor: Executor, method: _Method, general: Callable[..., Any], lock: threading.RLock) -> None:
        functions = (general, lock.acquire, lock.release)
        self._head = Head(None, *(id(f) for f in functions))
        # The function's `self` keeps alive what is found by addresses, its code and definition too.
        owner = (ctypes.addressof(self._head), self._head, *functions, method, _interpreter(), executor.keep)
        make = _signature("PyCFunction_NewEx", ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        self.function: Callable[..., Any] = make(ctypes.addressof(method), owner, None)

    def use(self, prepared: PreparedCall | None) -> None:
        """From now on the function makes this call. It must live as long as the function; the lock is held."""
        self._head.call = None if prepared is None else prepared.address


def direct_call(executor: Executor, general: Callable[..., Any], lock: threading.RLock) -> DirectCall | None:
    """The function for calls by this executor's code; None if this interpreter is not one for it."""
    method = _method(executor.python_call, executor.python_setup) if executor.python_call else None
    return None if method is None else DirectCall(executor, method, general, lock)


@functools.cache
def _method(code: int, setup: int) -> _Method | None:
    """The definition of the functions by this code; None if objects do not look as expected."""
    if not as_expected(LAYOUT):
        return None
    interpreter = _interpreter()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(setup)(ctypes.addressof(interpreter))
    return _Method(b"call", code, _FASTCALL_WITH_KEYWORDS, None)


_OUT = sys.intern("out")


@functools.cache
def _interpreter() -> Interpreter:
    fixed = (np.ndarray, float, int, tuple, list, None, _OUT)
    functions = (ctypes.cast(getattr(ctypes.pythonapi, f), ctypes.c_void_p).value for f in FUNCTIONS.values())
    return Interpreter(*(id(o) for o in fixed), *functions)


def _signature(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


def as_expected(layout: Layout) -> bool:
    """Whether the objects of this interpreter and of numpy look as `layout` says, and it has all `FUNCTIONS` and a lock."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    if not getattr(sys, "_is_gil_enabled", lambda: True)() or "t" in getattr(sys, "abiflags", ""):
        return False
    if not all(hasattr(ctypes.pythonapi, f) for f in (*FUNCTIONS.values(), "PyCFunction_NewEx")):
        return False
    if (
        np.ndarray.__basicsize__ < max(layout.flags, layout.dtype, layout.sizes) + 8
        or float.__basicsize__ < layout.number + 8
    ):
        return False
    return all(_number_as_expected(x, layout) for x in (0.0, -1.5, 1e300, float("inf"))) and all(
        _array_as_expected(a, layout) for a in _samples()
    )


def _samples() -> list[Array]:
    """Arrays that differ in each field, and in each flag that is looked at."""
    plain = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    fixed = np.arange(5, dtype=np.int64)
    fixed.flags.writeable = False
    bytes_ = np.zeros(41, np.uint8)
    return [
        plain,
        fixed,
        np.zeros((), np.float64),
        np.zeros((0, 7), np.int32),
        plain.transpose(2, 0, 1),
        plain[:, ::2],
        plain.astype(plain.dtype.newbyteorder()),
        bytes_[1:].view(np.float64),
    ]


def _array_as_expected(a: Array, layout: Layout) -> bool:
    at = id(a)
    axes = ctypes.c_int32.from_address(at + layout.axes).value
    if axes != a.ndim or _pointer(at + layout.type) != id(np.ndarray) or _pointer(at + layout.dtype) != id(a.dtype):
        return False
    flags = ctypes.c_uint32.from_address(at + layout.flags).value
    wanted = ((layout.contiguous, a.flags.c_contiguous), (layout.aligned, a.flags.aligned))
    if any(bool(flags & bit) != on for bit, on in (*wanted, (layout.writeable, a.flags.writeable))):
        return False
    if _pointer(at + layout.data) != a.__array_interface__["data"][0]:
        return False
    sizes = _pointer(at + layout.sizes)
    return not axes or (sizes != 0 and tuple((ctypes.c_int64 * axes).from_address(sizes)) == a.shape)


def _number_as_expected(x: float, layout: Layout) -> bool:
    same = ctypes.c_double.from_address(id(x) + layout.number).value == x
    return same and _pointer(id(x) + layout.type) == id(float)


def _pointer(at: int) -> int:
    return ctypes.c_void_p.from_address(at).value or 0


# ---------------------------------------------------------------- calls


class PreparedCall:
    """A call of `routine` with `seed` and the calls that `counter` counts, for a `DirectCall`. `address` is that of its `Call`.

    The function gives the results as Python sees them: numbers for those without axes, a tuple if `as_tuple` (else there is one result at
    most), `out` itself if that is given.
    """

    __slots__ = ("_keep", "address")

    def __init__(
        self,
        routine: Routine,
        inputs: Sequence[Taken],
        results: Sequence[Taken],
        counter: Counter,
        seed: int,
        *,
        as_tuple: bool,
    ) -> None:
        assert as_tuple or len(results) <= 1
        keep: list[object] = [routine, counter]
        taken = [_input(t, keep) for t in inputs]
        given = [_result(t, keep) for t in results]
        for operand, entry in zip((*taken, *given), (*routine.inputs, *routine.outputs), strict=True):
            operand.entry = ctypes.addressof(routine.table) + entry * ctypes.sizeof(ctypes.c_void_p)

        def held(memory: Any) -> int:
            keep.append(memory)
            return ctypes.addressof(memory)

        call = Call(
            words=ctypes.addressof(routine.words),
            counter=ctypes.addressof(counter.word),
            generation=ctypes.addressof(generation),
            record=ctypes.addressof(routine.record),
            inputs=held((Operand * len(taken))(*taken)),
            results=held((Operand * len(given))(*given)),
            targets=held((ctypes.c_void_p * len(given))()),
            ranges=held((ctypes.c_void_p * (2 * (len(taken) + len(given))))()),
            seed=seed,
            input_count=len(taken),
            result_count=len(given),
            as_tuple=as_tuple,
        )
        self.address = held(call)
        self._keep = keep


def _input(t: Taken, keep: list[object]) -> Operand:
    if t.shape:
        return _array(t, keep)
    kind, low, high, low_float, high_float = REFUSED, 0, 0, 0.0, 0.0
    if t.dtype in _FLOATS:
        limits = np.finfo(t.dtype)
        kind, low_float, high_float = _FLOATS[t.dtype], float(limits.min), float(limits.max)
    elif t.dtype.kind in "iu":
        limits = np.iinfo(t.dtype)
        kind, low, high = _INTS[t.dtype.itemsize], int(limits.min), min(int(limits.max), 2**63 - 1)
        if t.limit is not None:
            low, high = 0, t.limit - 1
    place = np.zeros((), t.dtype)
    keep.append(place)
    return Operand(
        kind=kind, low=low, high=high, low_float=low_float, high_float=high_float, place=address(place)
    )  # fmt: skip


def _result(t: Taken, keep: list[object]) -> Operand:
    operand = _array(t, keep)
    if t.shape:
        make = result_array if operand.bytes >= LARGE_RESULT else np.empty
        keep.append(make)
        operand.make = id(make)
    else:
        place = np.zeros((), t.dtype)
        convert = functools.partial(number_or_array, place) if t.dtype.kind not in "biuf" else place.item
        keep += [place, convert]
        operand.place, operand.convert = address(place), id(convert)
    return operand


def _array(t: Taken, keep: list[object]) -> Operand:
    sizes = (ctypes.c_int64 * len(t.shape))(*t.shape)
    keep += [sizes, t.shape, t.dtype]
    return Operand(
        kind=ARRAY,
        axes=len(t.shape),
        bytes=math.prod(t.shape) * t.dtype.itemsize,
        sizes=ctypes.addressof(sizes),
        shape=id(t.shape),
        dtype=id(t.dtype),
    )
