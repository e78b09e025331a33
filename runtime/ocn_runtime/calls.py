"""Calls from Python of a routine that is compiled for certain sizes, at the least cost.

`prepare_call` makes a function that takes what needs no conversion: arrays of the right type, shape and layout, and numbers for arguments
without axes. It leaves everything else, errors too, to its caller. Addresses of arrays that come again are not asked for again.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocn_runtime.cpu import LARGE_RESULT, Routine, address, result_array

Array = NDArray[Any]

PreparedCall = Callable[[tuple[Any, ...], Any], Any]

UNPREPARED: Any = object()
"""What a prepared call gives where it did nothing, because it does not take these arguments."""


@dataclass(slots=True, eq=False)
class Counter:
    """How often a routine was called."""

    calls: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """One argument or result: its shape and type. `limit`: it is a position below that."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    limit: int | None = None


def prepare_call(
    routine: Routine,
    inputs: Sequence[Taken],
    results: Sequence[Taken],
    lock: threading.RLock,
    counter: Counter,
    seed: int,
    *,
    as_tuple: bool,
) -> PreparedCall:
    """A function `call(args, out)` that runs `routine` under `lock`, with `seed` and the calls that `counter` counts.

    It gives the results as Python sees them: numbers for those without axes, a tuple if `as_tuple`, `out` itself if that is given; or
    `UNPREPARED`, and nothing has happened, if these arguments are not for it.
    """
    # A closure, since its variables are found faster than attributes of an object.
    size = len(inputs)
    arrays = tuple((i, routine.inputs[i], t.shape, t.dtype) for i, t in enumerate(inputs) if t.shape)
    numbers = tuple((i, routine.inputs[i], _Number(t)) for i, t in enumerate(inputs) if not t.shape)
    targets = tuple(
        (
            k,
            routine.outputs[k],
            t.shape,
            t.dtype,
            result_array if math.prod(t.shape) * t.dtype.itemsize >= LARGE_RESULT else np.empty,
        )
        for k, t in enumerate(results)
    )
    table, seen, run, ndarray = routine.table, routine.seen, routine.call, np.ndarray
    # A single result without axes always goes to the same place, and leaves as a number.
    alone = len(results) == 1 and not results[0].shape and results[0].dtype.kind in "biuf" and not as_tuple
    number_result = np.empty((), results[0].dtype) if alone else None
    written_number = (number_result,)

    def call(args: tuple[Any, ...], out: Any) -> Any:
        if len(args) != size:
            return UNPREPARED
        with lock:
            if routine.busy:  # a signal came in the middle of a call, and its handler calls too
                return UNPREPARED
            routine.busy = True
            try:
                for i, entry, shape, dtype in arrays:
                    a = args[i]
                    if type(a) is not ndarray or a.dtype is not dtype or a.shape != shape:
                        return UNPREPARED
                    if seen[i] is not a:
                        flags = a.flags
                        if not flags.c_contiguous or not flags.aligned:
                            return UNPREPARED
                        # In this order, whatever interrupts: what is seen is in the table.
                        routine.written = seen[i] = None
                        table[entry] = address(a)
                        seen[i] = a
                for i, entry, number in numbers:
                    if not number.take(args[i]):
                        return UNPREPARED
                    if seen[i] is not number.array:
                        seen[i] = None
                        table[entry] = number.address
                        seen[i] = number.array
                made: list[Array] = []
                if out is not None:
                    if not write_into(out, args):
                        return UNPREPARED
                elif number_result is not None:
                    if routine.written is not written_number:
                        routine.written = None
                        table[targets[0][1]] = address(number_result)
                        routine.written = written_number
                else:
                    routine.written = None
                    for _, entry, shape, dtype, make in targets:
                        result = make(shape, dtype)
                        table[entry] = address(result)
                        made.append(result)
                count = counter.calls
                counter.calls = count + 1
                run(seed, count)
                if out is not None:
                    return out
                if number_result is not None:
                    return number_result.item()
            finally:
                routine.busy = False
        if as_tuple:
            return tuple(map(number_or_array, made))
        return number_or_array(made[0]) if made else None

    def write_into(out: Any, args: tuple[Any, ...]) -> bool:
        """Whether the results can go straight into `out`; the table says so then."""
        given: tuple[Any, ...] = (out,) if type(out) is ndarray else tuple(out) if type(out) in (tuple, list) else ()
        if len(given) != len(targets):
            return False
        written = routine.written
        for k, _, shape, dtype, _ in targets:
            target = given[k]
            if type(target) is not ndarray or target.dtype is not dtype or target.shape != shape:
                return False
            if not target.flags.writeable:
                return False
            if written is not None and target is not written[k]:
                written = None
        if written is not None:
            return True
        routine.written = None
        for k, entry, _, _, _ in targets:
            flags = given[k].flags
            if not flags.c_contiguous or not flags.aligned:
                return False
            for i, _, _, _ in arrays:
                if np.may_share_memory(given[k], args[i]):
                    return False
            table[entry] = address(given[k])
        routine.written = given
        return True

    return call


class _Number:
    """A place for an argument without axes."""

    __slots__ = ("_high", "_kind", "_low", "_type", "address", "array")

    def __init__(self, taken: Taken) -> None:
        self.array = np.zeros((), taken.dtype)
        self.address = address(self.array)
        self._type: type | None = None
        if taken.dtype in (np.dtype(np.float32), np.dtype(np.float64)):
            self._type = float
            info = np.finfo(taken.dtype)
            self._low, self._high = float(info.min), float(info.max)
        elif taken.dtype.kind in "iu":
            self._type = int
            limits = np.iinfo(taken.dtype)
            self._low, self._high = int(limits.min), int(limits.max)
            if taken.limit is not None:
                self._low, self._high = 0, taken.limit - 1

    def take(self, value: Any) -> bool:
        """Whether this is a number of Python that fits as it is; it is written then."""
        if type(value) is self._type and self._low <= value <= self._high:
            self.array[()] = value
            return True
        return False


def number_or_array(result: Array) -> Any:
    """A result without axes as a number of Python."""
    if result.ndim:
        return result
    return result.item() if result.dtype.kind in "biuf" else float(result)
