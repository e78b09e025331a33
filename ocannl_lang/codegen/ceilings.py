"""What this machine can do at most: fused multiply-adds, and bytes from each level of its memory; measured, not looked up.

The functions that are timed are kernels like any other (see `codegen.llvm.kernel`), called by the same executor. A ceiling is the best
of several runs. Bandwidth is measured for amounts of data from a first-level cache to memory: for reading alone, for copying, and for
copying past the caches; of copies both what is read and what is written count.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocannl_lang.codegen.cpu import executor
from ocannl_lang.codegen.llvm.compile import link, object_code
from ocannl_lang.codegen.llvm.target import Target, host_target
from ocannl_lang.resources import cache_dir
from ocn_runtime.cpu import Routine, Step, aligned

SIZES = tuple(1 << n for n in (14, 16, 18, 20, 22, 24, 25, 27))
"""The amounts of data, in bytes, for which bandwidth is measured."""

_FMA_TURNS = 10_000
_LEAST_BYTES = 1 << 22
_UNROLLED = 8
# Long enough to find a moment at which nothing else runs.
_SECONDS_EACH = 0.03
_MOST_CALLS = 400


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Bytes a second when `size` bytes are moved: read, or read and written half and half, plainly or (`stream`) past the caches."""

    size: int
    read: float
    copy: float
    stream: float


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The limits at a number of threads: operations a second in f32 and f64 (a multiply-add is 2), and bandwidths by size."""

    threads: int
    flops: float
    flops64: float
    bandwidths: tuple[Bandwidth, ...]

    def arithmetic_seconds(self, flops: int, flops64: int) -> float:
        """The least time for operations."""
        return flops / self.flops + flops64 / self.flops64

    def memory_seconds(self, read: int, written: int) -> float:
        """The least time to move bytes, where all of them are as near as that many bytes can be."""
        found = min(self.bandwidths, key=lambda b: abs(math.log2(b.size / max(1, read + written))))
        # Per byte: reading takes 1/read; a copy of one byte in and one out takes 2/copy.
        writing = max(2 / found.copy - 1 / found.read, 0.0)
        return read / found.read + written * writing


def measure_ceilings(threads: int, largest: int = SIZES[-1]) -> Ceilings:
    """Measures, in some tenths of a second; bandwidths for up to `largest` bytes."""
    target = host_target()
    wanted = [s for i, s in enumerate(SIZES) if i == 0 or SIZES[i - 1] < largest]
    names = ["ocn_fma32", "ocn_fma64", "ocn_read", "ocn_copy", "ocn_stream"]
    found, keep = link([object_code(text(target), target, cache_dir())], names)
    at = [found[n] for n in names]
    group = target.vector_bytes * _UNROLLED
    memory = _Memory(wanted[-1], group * threads)
    bandwidths: list[Bandwidth] = []
    for size in wanted:
        read = _moved(at[2], size, size, threads, memory, target, keep)
        copied, streamed = (_moved(at[n], size, size // 2, threads, memory, target, keep) for n in (3, 4))
        bandwidths.append(Bandwidth(size, read, copied, streamed))
    flops = _flops(at[0], target, threads, 4, memory, keep)
    return Ceilings(threads, flops, _flops(at[1], target, threads, 8, memory, keep), tuple(bandwidths))


class _Memory:
    """What is read and written; at least `least` bytes each, so that every thread has something."""

    def __init__(self, size: int, least: int) -> None:
        self.source = aligned(max(size, least))
        self.target = aligned(max(size // 2, least))
        # Zeroed memory is one page many times over until it is written.
        self.source[:] = 1
        self.target[:] = 1
        self.counts = np.zeros(2, np.int64)


def _flops(at: int, target: Target, threads: int, width: int, memory: _Memory, keep: object) -> float:
    memory.target[:] = 0
    routine = _routine(at, threads, memory, keep)
    count = 2 * (target.vector_bytes // width) * _accumulators(target) * _FMA_TURNS * threads
    return count / _best(routine)


def _moved(
    at: int, size: int, each: int, threads: int, memory: _Memory, target: Target, keep: object
) -> float:  # fmt: skip
    """Bytes a second; `each` bytes lie in every array that is touched."""
    share = max(1, each // threads // (target.vector_bytes * _UNROLLED))
    repeats = max(1, _LEAST_BYTES // size)
    memory.counts[:] = share, repeats
    count = share * target.vector_bytes * _UNROLLED * threads * (size // each)
    return count * repeats / _best(_routine(at, threads, memory, keep))


def _routine(at: int, threads: int, memory: _Memory, keep: object) -> Routine:
    arrays: Sequence[NDArray[Any]] = (memory.source, memory.target, memory.counts)
    step = Step(at, (1, 2, 3), threads)
    return Routine(executor(), [step], 4, [], [], [(1 + i, a) for i, a in enumerate(arrays)], [], 0, 0, threads, keep)


def _best(routine: Routine) -> float:
    """Seconds of the quickest of several calls, after one that counts for nothing."""
    routine([], [])
    best = float("inf")
    began = time.perf_counter()
    for _ in range(_MOST_CALLS):
        start = time.perf_counter()
        routine([], [])
        now = time.perf_counter()
        best = min(best, now - start)
        if now - began > _SECONDS_EACH:
            break
    return max(best, 1e-9)


# ---------------------------------------------------------------- code


def _accumulators(target: Target) -> int:
    """Chains of multiply-adds side by side: enough to hide their latency, and as many as there are registers for."""
    return 12 if target.registers < 32 else 24


def text(target: Target) -> str:
    """The module of the functions that are timed."""
    return "\n".join(
        [
            "declare void @llvm.donothing()",
            _fma("ocn_fma32", "float", target.vector_bytes // 4, target),
            _fma("ocn_fma64", "double", target.vector_bytes // 8, target),
            _move("ocn_read", target, write=False),
            _move("ocn_copy", target, write=True),
            _move("ocn_stream", target, write=True, past=True),
            "!0 = !{i32 1}",
            f'attributes #0 = {{ nounwind "prefer-vector-width"="{target.vector_bytes * 8}" }}',
            "",
        ]
    )


def _slot(name: str, number: int) -> str:
    return f"""
  %{name}.s = getelementptr i32, ptr %slots, i64 {number}
  %{name}.n = load i32, ptr %{name}.s, align 4
  %{name}.e = getelementptr ptr, ptr %table, i32 %{name}.n
  %{name} = load ptr, ptr %{name}.e, align 8"""


def _fma(name: str, scalar: str, lanes: int, target: Target) -> str:
    """Every turn from `begin` to `end` is `_FMA_TURNS` rounds of multiply-adds on all accumulators."""
    kind = f"<{lanes} x {scalar}>"
    suffix = f"v{lanes}{'f32' if scalar == 'float' else 'f64'}"
    many = range(_accumulators(target))
    phis = "\n".join(f"  %a{i} = phi {kind} [ %x, %turn ], [ %b{i}, %round ]" for i in many)
    if target.fma:
        steps = "\n".join(f"  %b{i} = call {kind} @llvm.fma.{suffix}({kind} %a{i}, {kind} %x, {kind} %x)" for i in many)
        declare = f"declare {kind} @llvm.fma.{suffix}({kind}, {kind}, {kind})\n"
    else:
        steps = "\n".join(f"  %m{i} = fmul {kind} %a{i}, %x\n  %b{i} = fadd {kind} %m{i}, %x" for i in many)
        declare = ""
    stores = "\n".join(f"  store volatile {kind} %b{i}, ptr %own, align {lanes}" for i in many)
    return f"""
{declare}
define void @{name}(ptr %table, ptr %slots, i64 %begin, i64 %end, ptr %scratch) #0 {{
entry:{_slot("target", 1)}
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %turn, label %done
turn:
  %t = phi i64 [ %begin, %entry ], [ %next, %after ]
  %o = mul i64 %t, {target.vector_bytes}
  %own = getelementptr i8, ptr %target, i64 %o
  %x = load {kind}, ptr %own, align {lanes}
  br label %round
round:
  %i = phi i64 [ 0, %turn ], [ %j, %round ]
{phis}
{steps}
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, {_FMA_TURNS}
  br i1 %more, label %round, label %after
after:
{stores}
  %next = add i64 %t, 1
  %again = icmp slt i64 %next, %end
  br i1 %again, label %turn, label %done
done:
  ret void
}}"""


def _move(name: str, target: Target, *, write: bool, past: bool = False) -> str:
    """Turn t reads (and copies) the t-th stretch, as often as is asked for. A stretch is counted in groups of vectors.

    `past`: what is written goes past the caches.
    """
    how = ", !nontemporal !0" if past else ""
    lanes = target.vector_bytes // 4
    kind = f"<{lanes} x i32>"
    group = target.vector_bytes * _UNROLLED
    many = range(_UNROLLED)
    body: list[str] = []
    for i in many:
        body.append(f"  %p{i} = getelementptr i8, ptr %from, i64 {i * target.vector_bytes}")
        body.append(f"  %v{i} = load {kind}, ptr %p{i}, align {target.vector_bytes}")
        if write:
            body.append(f"  %q{i} = getelementptr i8, ptr %to, i64 {i * target.vector_bytes}")
            body.append(f"  store {kind} %v{i}, ptr %q{i}, align {target.vector_bytes}{how}")
        else:
            body.append(f"  %b{i} = xor {kind} %a{i}, %v{i}")
    # Sums go on over all repeats, so that no repeat is like another.
    outer = [] if write else [f"  %c{i} = phi {kind} [ zeroinitializer, %entry ], [ %b{i}, %again ]" for i in many]
    inner = [] if write else [f"  %a{i} = phi {kind} [ %c{i}, %repeat ], [ %b{i}, %move ]" for i in many]
    ends = (
        ["  fence seq_cst"]
        if write
        else [f"  store volatile {kind} %b{i}, ptr %own, align {target.vector_bytes}" for i in many]
    )
    return f"""
define void @{name}(ptr %table, ptr %slots, i64 %begin, i64 %end, ptr %scratch) #0 {{
entry:{_slot("source", 0)}{_slot("target", 1)}{_slot("counts", 2)}
  %share = load i64, ptr %counts, align 8
  %cp = getelementptr i64, ptr %counts, i64 1
  %repeats = load i64, ptr %cp, align 8
  %ownplace = mul i64 %begin, 64
  %own = getelementptr i8, ptr %target, i64 %ownplace
  %first = mul i64 %begin, %share
  %last = mul i64 %end, %share
  %some = icmp slt i64 %first, %last
  br i1 %some, label %repeat, label %done
repeat:
  %r = phi i64 [ 0, %entry ], [ %s, %again ]
{chr(10).join(outer)}
  br label %move
move:
  %i = phi i64 [ %first, %repeat ], [ %j, %move ]
{chr(10).join(inner)}
  %o = mul i64 %i, {group}
  %from = getelementptr i8, ptr %source, i64 %o
  %to = getelementptr i8, ptr %target, i64 %o
{chr(10).join(body)}
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %last
  br i1 %more, label %move, label %again
again:
  %s = add i64 %r, 1
  %rest = icmp slt i64 %s, %repeats
  br i1 %rest, label %repeat, label %end_of_all
end_of_all:
{chr(10).join(ends)}
  br label %done
done:
  ret void
}}"""
