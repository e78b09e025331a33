"""Running compiled routines on the CPU: threads, memory, and calls.

A routine is a list of steps, each a function with its buffers, and a table of addresses. A `Routine` owns its table and its arena
and is called with the arrays of one call; the code runs without Python's lock. One routine object runs one call at a time.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import math
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

ALIGN = 64
LARGE_RESULT = 1024 * 1024
POOL_BYTES = 8192
MAX_THREADS = 128
RECORD_WORDS = 6


@dataclass(frozen=True, slots=True)
class Executor:
    """Addresses of the functions that make a call and keep threads; `keep` holds the code alive.

    `python_call` and `python_setup` are for `calls`, 0 where there are none.
    """

    call: int
    pool_start: int
    pool_stop: int
    keep: object
    python_call: int = 0
    python_setup: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One function: its address, the table entries of its buffers, the turns of its parallel loop (0: none)."""

    function: int
    slots: tuple[int, ...]
    turns: int


def default_threads() -> int:
    """How many threads to use where nobody says: `OCN_NUM_THREADS`, else the processors this process may use."""
    own = os.environ.get("OCN_NUM_THREADS", "")
    if own.isdigit() and int(own) > 0:
        return min(int(own), MAX_THREADS)
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), MAX_THREADS)
    return min(os.cpu_count() or 1, MAX_THREADS)


def aligned(size: int) -> NDArray[np.uint8]:
    """`size` zeroed bytes at an address that is a multiple of 64."""
    raw = np.zeros(size + ALIGN, np.uint8)
    start = -address(raw) % ALIGN
    return raw[start : start + size]


def result_array(shape: tuple[int, ...], kind: np.dtype[Any]) -> Array:
    """An array for a result, not filled. A large one begins at a multiple of a cache line, so that it can be written past the caches."""
    bytes_ = math.prod(shape) * kind.itemsize
    if bytes_ < LARGE_RESULT:
        return np.empty(shape, kind)
    raw = np.empty(bytes_ + ALIGN, np.uint8)
    start = -address(raw) % ALIGN
    return raw[start : start + bytes_].view(kind).reshape(shape)


def address(array: Array) -> int:
    """Where an array's data begins."""
    data: Any = array
    try:
        # Several times faster than asking numpy; not for read-only and empty arrays.
        return ctypes.addressof(ctypes.c_char.from_buffer(data))
    except (TypeError, ValueError):
        return array.__array_interface__["data"][0]


# ---------------------------------------------------------------- threads

_pools: dict[tuple[int, int], NDArray[np.uint8]] = {}
_stops: dict[tuple[int, int], Callable[[int], None]] = {}
_pools_lock = threading.RLock()


def pool(executor: Executor, threads: int) -> int:
    """The address of the process's pool of that many threads, 0 (none) for one thread."""
    threads = min(threads, MAX_THREADS)
    if threads <= 1:
        return 0
    key = (executor.pool_start, threads)
    with _pools_lock:
        found = _pools.get(key)
        if found is None:
            found = aligned(POOL_BYTES)
            # For ever: a thread that Python does not wait for at its end may still be in a call.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(found))
            start = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32)(executor.pool_start)
            start(address(found), threads)
            _pools[key] = found
            _stops[key] = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(executor.pool_stop)
        return address(found)


def stop_pools() -> None:
    """Ends all threads; a later call starts new ones."""
    with _pools_lock:
        for key, memory in _pools.items():
            _stops[key](address(memory))
        _forget_pools()


def _forget_pools() -> None:
    _pools.clear()
    _stops.clear()
    generation.value += 1


def _after_fork() -> None:
    # The threads did not come along; the lock may be held by one that is gone.
    global _pools_lock
    _pools_lock = threading.RLock()
    _forget_pools()


generation = ctypes.c_int64(0)
"""Which pools there are: another number, other pools."""

atexit.register(stop_pools)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# ---------------------------------------------------------------- calls


class Words(ctypes.Structure):
    """What lies at a routine's first address: `seed` and `calls` for its code, `busy` while a call is made ready and runs, and the
    `generation` of the pool it has."""

    _fields_ = [(name, ctypes.c_int64) for name in ("seed", "calls", "busy", "generation")]


class Routine:
    """A routine bound to its persistent arrays.

    `table_size` entries of addresses: entry 0 is the call's words, `inputs` and `outputs` say where the arrays of a call go, `fixed`
    are (entry, array) that stay, `places` are (entry, offset in the arena). Each of the `threads` gets `scratch` bytes for itself.

    What `calls.PreparedCall` needs is public: `table`, which is written anew for each call, `words`, and the `record` that is run.
    """

    __slots__ = (
        "_call",
        "_keep",
        "_lock",
        "_made",
        "_threads",
        "executor",
        "inputs",
        "outputs",
        "record",
        "table",
        "words",
    )  # fmt: skip

    def __init__(
        self,
        executor: Executor,
        steps: Sequence[Step],
        table_size: int,
        inputs: Sequence[int],
        outputs: Sequence[int],
        fixed: Sequence[tuple[int, Array]],
        places: Sequence[tuple[int, int]],
        arena: int,
        scratch: int,
        threads: int,
        keep: object = None,
    ) -> None:
        self._made = (executor, steps, table_size, inputs, outputs, fixed, places, arena, scratch, threads, keep)
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(executor.call)
        self.executor = executor
        self._threads = threads if any(s.turns > 1 for s in steps) else 1
        self.words = Words(generation=-1)
        self.table = (ctypes.c_void_p * table_size)()
        memory = aligned(arena)
        scratch = -(-scratch // ALIGN) * ALIGN
        own = aligned(scratch * self._threads)
        self.table[0] = ctypes.addressof(self.words)
        for entry, array in fixed:
            self.table[entry] = address(array)
        for entry, offset in places:
            self.table[entry] = address(memory) + offset
        slots = [(ctypes.c_int32 * max(1, len(s.slots)))(*s.slots) for s in steps]
        flat: list[int] = []
        for step, slot in zip(steps, slots, strict=True):
            flat += [step.function, ctypes.addressof(slot), step.turns, 0]
        flat_steps = (ctypes.c_int64 * max(1, len(flat)))(*flat)
        self.record = (ctypes.c_int64 * RECORD_WORDS)(
            ctypes.addressof(flat_steps), len(steps), ctypes.addressof(self.table), 0, address(own), scratch
        )
        self._call: Callable[[], None] = functools.partial(call, ctypes.addressof(self.record))
        self._keep = (memory, own, slots, flat_steps, [a for _, a in fixed], keep)
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self._lock = threading.RLock()

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array], seed: int = 0, call_count: int = 0) -> None:
        """Runs the routine. Arrays are C-contiguous, of the shapes and types it was compiled for; nothing is checked here."""
        with self._lock:
            words, table = self.words, self.table
            if words.busy:
                # The handler of a signal that came in the middle of a call: it has its own table and arena.
                Routine(*self._made)(inputs, outputs, seed, call_count)
                return
            words.busy = 1
            try:
                for entry, array in zip((*self.inputs, *self.outputs), (*inputs, *outputs), strict=True):
                    table[entry] = address(array)
                words.seed, words.calls = seed, call_count
                current = generation.value
                if words.generation != current:
                    self.record[3] = pool(self.executor, self._threads)
                    words.generation = current
                self._call()
            finally:
                words.busy = 0

    def records(self) -> ctypes.Array[ctypes.c_int64]:
        """For each step a record of `RECORD_WORDS` that, given to the executor's `call`, runs it alone on the arrays of the last call.

        For measuring: the records hold as long as the routine and the arrays of that call live.
        """
        steps, count, *others = self.record
        words: list[int] = []
        for k in range(count):
            words += [steps + 32 * k, 1, *others]
        return (ctypes.c_int64 * len(words))(*words)
