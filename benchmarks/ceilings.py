"""What the machine can do at most: multiply-adds and copies, as small functions in LLVM IR.

    python -m benchmarks.ceilings '{"cpus": [0, 1]}'

prints one line of JSON. `Ceilings` in `results.py` says what the numbers are.
"""

from __future__ import annotations

import ctypes
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from benchmarks.machine import limit_to

SMALL, LARGE = 4096 * 1024, 64 * 1024 * 1024
"""Floats of an array in the pointwise cases, and of one that fits no cache."""

CHAINS = 12
"""Independent chains of multiply-adds: more than their latency needs, few enough for 16 registers."""

TURNS = 10_000
REPEATS = 15
COPIES = 60
"""Copies vary more, with what the cache holds and with what else runs: their upper quartile counts."""


def main(text: str) -> int:
    cpus: list[int] = json.loads(text)["cpus"]
    threads = max(1, json.loads(text)["threads"])
    vector = vector_width()
    functions = Functions(vector)
    source, target = _array(LARGE, 1.0), _array(LARGE, 0.0)

    def flop(_: int) -> float:
        sink = np.zeros(vector, np.float32)
        functions.multiply_add(sink.ctypes.data, TURNS * 10)
        return 2.0 * vector * CHAINS * TURNS * 10

    def copying(copy: Callable[[int, int, int], None], floats: int) -> Callable[[int], float]:
        part = floats // threads // (4 * vector) * (4 * vector)

        def work(thread: int) -> float:
            start = 4 * part * thread
            copy(target.ctypes.data + start, source.ctypes.data + start, part)
            return 8.0 * part

        return work

    rates = {
        "flop": max(rates_of(flop, threads, cpus, REPEATS)),
        "copy": _upper_quartile(rates_of(copying(functions.copy, SMALL), threads, cpus, COPIES)),
        "stream": _upper_quartile(rates_of(copying(functions.stream, SMALL), threads, cpus, COPIES)),
        "large_copy": _upper_quartile(rates_of(copying(functions.copy, LARGE), threads, cpus, REPEATS)),
        "large_stream": _upper_quartile(rates_of(copying(functions.stream, LARGE), threads, cpus, REPEATS)),
    }
    print(json.dumps({"threads": threads, "vector": vector, **rates}), flush=True)
    return 0


def _upper_quartile(rates: list[float]) -> float:
    return statistics.quantiles(rates, n=4)[2]


def rates_of(work: Callable[[int], float], threads: int, cpus: list[int], repeats: int) -> list[float]:
    """Work in a second by all threads together, each on a processor of its own, in each of some repeats.

    `work` is given the number of its thread, releases Python's lock, and returns how much it has done.
    """
    barrier = threading.Barrier(threads)
    spans: list[list[tuple[float, float, float]]] = [[] for _ in range(threads)]

    def run(thread: int) -> None:
        limit_to(cpus[thread : thread + 1])
        for _ in range(repeats):
            barrier.wait()
            begin = time.perf_counter()
            done = work(thread)
            spans[thread].append((begin, time.perf_counter(), done))

    running = [threading.Thread(target=run, args=(n,)) for n in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    found: list[float] = []
    for parts in zip(*spans):
        begin, end = min(p[0] for p in parts), max(p[1] for p in parts)
        found.append(sum(p[2] for p in parts) / (end - begin))
    return found


class Functions:
    """The compiled functions; they stay valid as long as this object."""

    def __init__(self, vector: int) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target: Any = llvm.Target.from_default_triple()
        machine = target.create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
        )
        module: Any = llvm.parse_assembly(
            _multiply_add(vector)
            + _copy(vector, "copy", "")
            + _copy(vector, "stream", ", !nontemporal !0")
            + "!0 = !{i32 1}\n"
        )
        self._engine: Any = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        self.multiply_add: Callable[[int, int], None] = self._function("multiply_add", ctypes.c_void_p, ctypes.c_int64)
        pointers = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64
        self.copy: Callable[[int, int, int], None] = self._function("copy", *pointers)
        self.stream: Callable[[int, int, int], None] = self._function("stream", *pointers)

    def _function(self, name: str, *arguments: Any) -> Any:
        return ctypes.CFUNCTYPE(None, *arguments)(self._engine.get_function_address(name))


def vector_width() -> int:
    """How many floats the widest vectors of this processor hold."""
    llvm.initialize_native_target()
    features: dict[str, bool] = dict(llvm.get_host_cpu_features())
    if features.get("avx512f"):
        return 16
    return 8 if features.get("fma") else 4


def _multiply_add(n: int) -> str:
    """`CHAINS` vectors, each multiplied and added to `turns` times; their sum is stored, so that nothing is left out."""
    v = f"<{n} x float>"
    chains = range(CHAINS)
    phis = "\n".join(f"  %a{i} = phi {v} [ zeroinitializer, %start ], [ %b{i}, %loop ]" for i in chains)
    steps = "\n".join(f"  %b{i} = call {v} @llvm.fma.v{n}f32({v} %a{i}, {v} %x, {v} %y)" for i in chains)
    names = ["%b0", *(f"%s{i}" for i in chains[1:])]
    sums = "\n".join(f"  %s{i} = fadd {v} {names[i - 1]}, %b{i}" for i in chains[1:])
    return f"""
declare {v} @llvm.fma.v{n}f32({v}, {v}, {v})
define void @multiply_add(ptr %out, i64 %turns) {{
start:
  %x = load volatile {v}, ptr %out, align 4
  %y = load volatile {v}, ptr %out, align 4
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %loop ]
{phis}
{steps}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %turns
  br i1 %more, label %loop, label %end
end:
{sums}
  store {v} {names[-1]}, ptr %out, align 4
  ret void
}}
"""


def _copy(n: int, name: str, how: str) -> str:
    """Copies `count` floats, a multiple of four vectors; `how` is put on every store. Both pointers are aligned."""
    v, align = f"<{n} x float>", 4 * n
    lines: list[str] = []
    for i in range(4):
        lines += [
            f"  %p{i} = add i64 %i, {i * n}",
            f"  %r{i} = getelementptr float, ptr %from, i64 %p{i}",
            f"  %w{i} = getelementptr float, ptr %to, i64 %p{i}",
            f"  %v{i} = load {v}, ptr %r{i}, align {align}",
        ]
    lines += [f"  store {v} %v{i}, ptr %w{i}, align {align}{how}" for i in range(4)]
    body = "\n".join(lines)
    return f"""
define void @{name}(ptr %to, ptr %from, i64 %count) {{
start:
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %loop ]
{body}
  %next = add i64 %i, {4 * n}
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %end
end:
  fence seq_cst
  ret void
}}
"""


def _array(floats: int, value: float) -> Any:
    """An array aligned to 64 bytes, every page of it touched."""
    whole = np.full(floats + 16, value, np.float32)
    start = (-whole.ctypes.data % 64) // 4
    return whole[start : start + floats]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
