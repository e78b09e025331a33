"""What is measured of the machine, and the clock between steps."""

from __future__ import annotations

import numpy as np
import pytest

from ocannl_lang.codegen.ceilings import SIZES, Bandwidth, Ceilings, measure_ceilings, text
from ocannl_lang.codegen.cpu import compile_program, executor
from ocannl_lang.codegen.llvm.compile import assembly, compile_module, link, object_code
from ocannl_lang.codegen.llvm.target import host_target, target_of
from ocannl_lang.codegen.profile import StepTimer, timer_text
from ocannl_lang.loops.ir import Access, Affine, Apply, Assign, Buffer, Program, Var
from ocn_runtime.cpu import Routine, Step, aligned


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_ceilings_are_measured(threads):
    found = measure_ceilings(threads, largest=SIZES[1])
    assert found.threads == threads and [b.size for b in found.bandwidths] == list(SIZES[:2])
    for rate in (found.flops, found.flops64, *(r for b in found.bandwidths for r in (b.read, b.copy, b.stream))):
        assert 1e6 < rate < 1e15


@pytest.mark.parametrize("name", ["ocn_copy", "ocn_stream"])
def test_copies_copy(name):
    target = host_target()
    found, keep = link([object_code(text(target), target, None)], [name])
    source, copied, counts = aligned(8192), aligned(8192), np.array([8192 // (8 * target.vector_bytes), 1])
    source[:] = np.arange(8192) % 251
    _run(found[name], (source, copied, counts), keep)
    assert (copied == source).all()


def test_multiply_adds_multiply_and_add():
    target = host_target()
    found, keep = link([object_code(text(target), target, None)], ["ocn_fma32"])
    memory = aligned(target.vector_bytes)
    memory.view(np.float32)[:] = 0.25
    _run(found["ocn_fma32"], (memory, memory, np.zeros(2, np.int64)), keep)
    # a·x + x, over and over, comes to rest at x / (1 - x).
    assert memory.view(np.float32) == pytest.approx(1 / 3)


def _run(at, arrays, keep):
    fixed = [(1 + i, a) for i, a in enumerate(arrays)]
    Routine(executor(), [Step(at, (1, 2, 3), 1)], 4, [], [], fixed, [], 0, 0, 1, keep)([], [])


def test_least_times_follow_from_rates():
    ceilings = Ceilings(1, 1e9, 5e8, (Bandwidth(1000, 4e9, 2e9, 2e9), Bandwidth(100_000, 1e9, 1e9, 1e9)))
    assert ceilings.arithmetic_seconds(1000, 0) == pytest.approx(1e-6)
    assert ceilings.arithmetic_seconds(0, 1000) == pytest.approx(2e-6)
    assert ceilings.memory_seconds(1000, 0) == pytest.approx(1000 / 4e9)
    assert ceilings.memory_seconds(500, 500) == pytest.approx(1000 / 2e9)
    assert ceilings.memory_seconds(50_000, 50_000) == pytest.approx(1e-4)
    assert ceilings.memory_seconds(0, 0) == 0


@pytest.mark.parametrize(
    "target",
    [
        ("x86_64-unknown-linux-gnu", "x86-64", ""),
        ("x86_64-unknown-linux-gnu", "znver4", "+fma,+avx2,+avx512f,+avx512vl,+avx512bw,+avx512dq"),
        ("x86_64-pc-windows-msvc", "haswell", "+fma,+avx2"),
        ("aarch64-unknown-linux-gnu", "generic", ""),
        ("arm64-apple-macosx", "apple-m1", ""),
        ("riscv64-unknown-linux-gnu", "generic-rv64", "+d"),
    ],
)
def test_the_code_compiles_for_other_machines(target):
    found = target_of(*target)
    assert compile_module(text(found), found)
    code = assembly(timer_text(found), found).lower()
    clock = "rdtsc" if "x86" in target[0] else "clock_gettime" if "riscv" in target[0] else "cntvct_el0"
    assert clock in code


def test_steps_are_timed_in_their_order():
    small, large = Var("i", 64), Var("i", 65536)
    x, y = Buffer("x", (64,), "f32", "input"), Buffer("y", (65536,), "f32", "input")

    def f(b: Buffer, v: Var) -> Assign:
        place = (Affine.of(v),)
        return Assign(
            Access(Buffer("r", b.shape, "f32"), place), "set", True, (v,), Apply("exp", (Access(b, place),), "f32")
        )

    first, second = f(x, small), f(y, large)
    compiled = compile_program(Program("f", (x, y), (first.target.buffer, second.target.buffer), [first, second]))
    bound = compiled.bind({})
    inputs = [np.ones(64, np.float32), np.ones(65536, np.float32)]
    outputs = [np.empty(64, np.float32), np.empty(65536, np.float32)]
    bound(inputs, outputs)
    outputs[1][:] = 0
    timer = StepTimer.of_host()
    counts = timer.passes(bound, 20)
    assert counts.shape == (20, len(compiled.steps)) and (counts >= 0).all()
    assert np.allclose(outputs[1], np.e)  # the steps have run
    times = np.median(counts, axis=0) * timer.nanoseconds_per_count()
    assert times.max() > 1000 and times.max() > 10 * times.min()
    assert 0 <= timer.empty(50) * timer.nanoseconds_per_count() < times.max()
