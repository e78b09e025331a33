"""Threads: the same bits with any number of them, pools that are shared, parked, stopped and forked."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from ocannl_lang.codegen import cpu
from ocannl_lang.codegen.llvm.compile import compile_module, link
from ocannl_lang.codegen.llvm.pool import executor as executor_text
from ocannl_lang.codegen.llvm.target import host_target
from ocannl_lang.loops.ir import Access, Affine, Apply, Assign, Buffer, Program, Var
from ocn_runtime import cpu as runtime
from tests.codegen.test_contractions import einsum


def big_program(n: int = 96) -> tuple[Program, dict[Buffer, np.ndarray], list[Buffer]]:
    """A product with an epilogue, a softmax over rows and a sum over columns, large enough for several threads."""
    a, b = Buffer("a", (n, n + 5), "f32", "input"), Buffer("b", (n + 5, n), "f32", "input")
    c, m, e, s, y = (Buffer(k, sh, "f32") for k, sh in zip("cmesy", ((n, n), (n,), (n, n), (n,), (n, n))))
    t = Buffer("t", (n,), "f32")
    i, j, k = Var("i", n), Var("j", n), Var("k", n + 5)

    def at(*vs: Var) -> tuple[Affine, ...]:
        return tuple(Affine.of(v) for v in vs)

    def op(fn: str, *args: object) -> Apply:
        return Apply(fn, args, "f32")  # type: ignore[arg-type]

    assigns = [
        Assign(Access(c, at(i, j)), "add", True, (i, j, k), op("mul", Access(a, at(i, k)), Access(b, at(k, j)))),
        Assign(Access(m, at(i)), "max", True, (i, j), Access(c, at(i, j))),
        Assign(Access(e, at(i, j)), "set", True, (i, j), op("exp", op("sub", Access(c, at(i, j)), Access(m, at(i))))),
        Assign(Access(s, at(i)), "add", True, (i, j), Access(e, at(i, j))),
        Assign(Access(y, at(i, j)), "set", True, (i, j), op("div", Access(e, at(i, j)), Access(s, at(i)))),
        Assign(Access(t, at(j)), "add", True, (j, i), Access(y, at(i, j))),
    ]
    rng = np.random.default_rng(0)
    storage = {x: rng.standard_normal(x.shape).astype(np.float32) for x in (a, b)}
    return Program("big", (a, b), (y, t), assigns), storage, [a, b]


def test_the_same_bits_with_any_number_of_threads() -> None:
    program, storage, _ = big_program()
    first = [r.tobytes() for r in cpu.compile_program(program, threads=1).run(storage)]
    for threads in (2, 3, 5):
        compiled = cpu.compile_program(program, threads=threads)
        assert any(s.turns > 1 for s in compiled.steps)
        for _ in range(20):
            assert [r.tobytes() for r in compiled.run(storage)] == first


@pytest.mark.parametrize("layout", ["ik,kj->ij", "ki,kj->ij", "ik,jk->ij", "ki,jk->ji"])
def test_many_threads_get_shares_and_compute_the_same_bits(layout: str) -> None:
    operands, result = layout.split("->")
    sizes = {"i": 500, "j": 1000, "k": 700}
    first, second = operands.split(",")
    program, inputs = einsum(sizes, first, second, result, epilogue=True)
    rng = np.random.default_rng(1)
    storage = {b: rng.standard_normal(b.shape).astype(np.float32) for b in inputs}
    bits: set[bytes] = set()
    for threads in (1, 2, 3, 8, 16):
        compiled = cpu.compile_program(program, threads=threads)
        # The blocks of columns are a few for few threads, and enough for many.
        assert max(s.turns for s in compiled.steps) >= min(threads, 8)
        (got,) = compiled.run(storage)
        bits.add(got.tobytes())
    assert len(bits) == 1
    a, b, bias = (storage[x] for x in inputs)
    product = np.einsum(layout, a.astype(np.float64), b.astype(np.float64), optimize=True)
    np.testing.assert_allclose(got, np.maximum(product + bias, 0), rtol=1e-4, atol=1e-3)


def test_workers_that_sleep_wake_up() -> None:
    program, storage, inputs = big_program()
    compiled = cpu.compile_program(program, threads=2)
    routine = compiled.bind({})
    outputs = [np.empty(b.shape, np.float32) for b in program.outputs]
    routine([storage[b] for b in inputs], outputs)
    first = [o.tobytes() for o in outputs]
    for _ in range(5):
        time.sleep(0.01)
        for o in outputs:
            o[...] = 0
        routine([storage[b] for b in inputs], outputs)
        assert [o.tobytes() for o in outputs] == first


def test_contexts_run_at_the_same_time() -> None:
    program, storage, inputs = big_program()
    compiled = cpu.compile_program(program, threads=2)
    expected = [r.tobytes() for r in compiled.run(storage)]
    wrong: list[int] = []

    def work(n: int) -> None:
        routine = compiled.bind({})
        outputs = [np.empty(b.shape, np.float32) for b in program.outputs]
        for _ in range(30):
            routine([storage[b] for b in inputs], outputs)
            if [o.tobytes() for o in outputs] != expected:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_pools_stop_and_start_again() -> None:
    program, storage, _ = big_program()
    compiled = cpu.compile_program(program, threads=2)
    first = [r.tobytes() for r in compiled.run(storage)]
    runtime.stop_pools()
    assert [r.tobytes() for r in compiled.run(storage)] == first


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    text = (
        "import os, sys\n"
        "from ocannl_lang.codegen import cpu\n"
        "from tests.codegen.test_threads import big_program\n"
        "program, storage, _ = big_program()\n"
        "compiled = cpu.compile_program(program, threads=2)\n"
        "first = [r.tobytes() for r in compiled.run(storage)]\n"
        "child = os.fork()\n"
        "same = [r.tobytes() for r in compiled.run(storage)] == first\n"
        "if child == 0:\n"
        "    os._exit(0 if same else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) or not same)\n"
    )
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", text], timeout=300).returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX threads")
def test_parking_on_a_condition_variable() -> None:
    names = ["ocn_call", "ocn_pool_start", "ocn_pool_stop"]
    target = host_target()
    found, keep = link([compile_module(executor_text(target, "condition"), target)], names)
    executor = runtime.Executor(found[names[0]], found[names[1]], found[names[2]], keep)
    program, storage, inputs = big_program()
    compiled = cpu.compile_program(program, threads=3)
    expected = [r.tobytes() for r in compiled.run(storage)]
    outputs = [np.empty(b.shape, np.float32) for b in program.outputs]
    n = len(program.inputs)
    routine = runtime.Routine(
        executor, compiled.steps, compiled.table_size, [1 + i for i in range(n)], [1 + n + i for i in range(2)],
        compiled.constants, compiled.places, compiled.plan.arena, compiled.scratch, 3, compiled.keep,
    )  # fmt: skip
    for k in range(6):
        routine([storage[b] for b in inputs], outputs)
        assert [o.tobytes() for o in outputs] == expected
        time.sleep(0.005 * (k % 2))
    runtime.stop_pools()


def test_the_pool_compiles_for_other_systems() -> None:
    from ocannl_lang.codegen.llvm.target import target_of

    for triple in ("aarch64-unknown-linux-gnu", "arm64-apple-macosx14.0", "x86_64-pc-windows-msvc"):
        target = target_of(triple, "", "")
        assert compile_module(executor_text(target), target)
