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
    """Addresses of the functions that make a call and keep threads; `keep` holds the code alive."""

    call: int
    pool_start: int
    pool_stop: int
    keep: object


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
_pools_lock = threading.Lock()


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
    global _generation
    _generation += 1


def _after_fork() -> None:
    # The threads did not come along; the lock may be held by one that is gone.
    global _pools_lock
    _pools_lock = threading.Lock()
    _forget_pools()


_generation = 0
atexit.register(stop_pools)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# ---------------------------------------------------------------- calls


class Routine:
    """A routine bound to its persistent arrays.

    `table_size` entries of addresses: entry 0 is the call's words, `inputs` and `outputs` say where the arrays of a call go, `fixed`
    are (entry, array) that stay, `places` are (entry, offset in the arena). Each of the `threads` gets `scratch` bytes for itself.

    What `calls.PreparedCall` needs is public: `table`; `seen`, the input arrays whose addresses stand in it; `written`, what the
    results went into last where the table still says so; `busy` while a call is made ready and runs.
    """

    __slots__ = (
        "_call",
        "_executor",
        "_generation",
        "_keep",
        "_lock",
        "_made",
        "_record",
        "_threads",
        "_words",
        "busy",
        "inputs",
        "outputs",
        "seen",
        "table",
        "written",
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
        self._executor = executor
        self._threads = threads if any(s.turns > 1 for s in steps) else 1
        self._generation = -1
        self._words = (ctypes.c_int64 * 2)()
        self.table = (ctypes.c_void_p * table_size)()
        memory = aligned(arena)
        scratch = -(-scratch // ALIGN) * ALIGN
        own = aligned(scratch * self._threads)
        self.table[0] = ctypes.addressof(self._words)
        for entry, array in fixed:
            self.table[entry] = address(array)
        for entry, offset in places:
            self.table[entry] = address(memory) + offset
        slots = [(ctypes.c_int32 * max(1, len(s.slots)))(*s.slots) for s in steps]
        flat: list[int] = []
        for step, slot in zip(steps, slots, strict=True):
            flat += [step.function, ctypes.addressof(slot), step.turns, 0]
        flat_steps = (ctypes.c_int64 * max(1, len(flat)))(*flat)
        self._record = (ctypes.c_int64 * RECORD_WORDS)(
            ctypes.addressof(flat_steps), len(steps), ctypes.addressof(self.table), 0, address(own), scratch
        )
        self._call: Callable[[], None] = functools.partial(call, ctypes.addressof(self._record))
        self._keep = (memory, own, slots, flat_steps, [a for _, a in fixed], keep)
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.seen: list[Array | None] = [None] * len(self.inputs)
        self.written: tuple[Any, ...] | None = None
        self.busy = False
        self._lock = threading.RLock()

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array], seed: int = 0, call_count: int = 0) -> None:
        """Runs the routine. Arrays are C-contiguous, of the shapes and types it was compiled for; nothing is checked here."""
        with self._lock:
            if self.busy:
                # The handler of a signal that came in the middle of a call: it has its own table and arena.
                Routine(*self._made)(inputs, outputs, seed, call_count)
                return
            self.busy = True
            try:
                table, seen = self.table, self.seen
                self.written = None
                for i, array in enumerate(inputs):
                    seen[i] = None
                    table[self.inputs[i]] = address(array)
                    seen[i] = array
                for entry, array in zip(self.outputs, outputs):
                    table[entry] = address(array)
                self.call(seed, call_count)
            finally:
                self.busy = False

    def call(self, seed: int, call_count: int) -> None:
        """Runs the routine on what stands in its table."""
        words = self._words
        words[0] = seed
        words[1] = call_count
        if self._generation != _generation:
            self._record[3] = pool(self._executor, self._threads)
            self._generation = _generation
        self._call()

    def records(self) -> ctypes.Array[ctypes.c_int64]:
        """For each step a record of `RECORD_WORDS` that, given to the executor's `call`, runs it alone on the arrays of the last call.

        For measuring: the records hold as long as the routine and the arrays of that call live.
        """
        steps, count, *others = self._record
        words: list[int] = []
        for k in range(count):
            words += [steps + 32 * k, 1, *others]
        return (ctypes.c_int64 * len(words))(*words)
