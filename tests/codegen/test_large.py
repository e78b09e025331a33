"""What is large: products in blocks, vectors times matrices, results past the caches. The numbers are numpy's, the bits the same with
any number of threads and wherever a result begins."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ocannl_lang.codegen.cpu import compile_program
from ocannl_lang.codegen.llvm.target import PAST_BYTES, Target, host_target
from ocannl_lang.graph.dtypes import dtype
from ocannl_lang.loops.ir import Access, Affine, Apply, Assign, Buffer, Const, Program, Var
from tests.codegen.test_contractions import einsum, plain_target

# Rows, sums and columns: more than one block of each, with and without something left over.
SIZES = [(96, 900, 320), (50, 333, 777), (17, 2000, 260), (400, 512, 130), (1, 700, 1100), (3, 640, 515)]


@pytest.mark.parametrize("rows, sums, columns", SIZES)
@pytest.mark.parametrize("first, second", [("ik", "kj"), ("ik", "jk"), ("ki", "kj"), ("ki", "jk")])
@pytest.mark.parametrize("epilogue", [False, True])
def test_large_products(rows: int, sums: int, columns: int, first: str, second: str, epilogue: bool) -> None:
    program, operands = einsum({"i": rows, "j": columns, "k": sums}, first, second, "ij", epilogue=epilogue)
    r = np.random.default_rng(rows)
    values = {b: r.standard_normal(b.shape).astype(np.float32) for b in operands}
    wide = [values[b].astype(np.float64) for b in operands]
    expected = np.einsum(f"{first},{second}->ij", wide[0], wide[1])
    if epilogue:
        expected = np.maximum(expected + wide[2], 0)
    (got,) = compile_program(program).run(values)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=2e-6 * sums)
    for threads in (2, 3):
        assert compile_program(program, threads=threads).run(values)[0].tobytes() == got.tobytes()


def test_batched_large_products_run_side_by_side() -> None:
    program, operands = einsum({"b": 3, "i": 40, "j": 300, "k": 700}, "bik", "bkj", "bij", epilogue=True)
    r = np.random.default_rng(0)
    values = {b: r.standard_normal(b.shape).astype(np.float32) for b in operands}
    a, b, bias = (values[x].astype(np.float64) for x in operands)
    (got,) = compile_program(program, threads=2).run(values)
    np.testing.assert_allclose(got, np.maximum(a @ b + bias, 0), rtol=1e-4, atol=2e-3)


@pytest.mark.parametrize("shape", [(2100000,), (1025, 2049), (2048, 1024)])
@pytest.mark.parametrize("offset", [0, 4, 16, 32, 52])
def test_results_past_the_caches(shape: tuple[int, ...], offset: int) -> None:
    """x·2 + 1, into an array that begins at any distance from a line."""
    loops = tuple(Var("i", n) for n in shape)
    at = tuple(map(Affine.of, loops))
    x, y = Buffer("x", shape, "f32", "input"), Buffer("y", shape, "f32")
    value = Apply("add", (Apply("mul", (Access(x, at), Const(2.0, "f32")), "f32"), Const(1.0, "f32")), "f32")
    program = Program("p", (x,), (y,), [Assign(Access(y, at), "set", True, loops, value)])
    given = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    memory = np.full(4 * given.size + 256, 7, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    out = memory[start : start + 4 * given.size].view(np.float32).reshape(shape)
    compile_program(program, threads=2).run({x: given}, [out])
    np.testing.assert_array_equal(out, given * 2 + 1)
    assert (memory[:start] == 7).all() and (memory[start + 4 * given.size :] == 7).all()


@pytest.mark.parametrize("prec", ["u8", "f16", "i32", "f64", "i64"])
@pytest.mark.parametrize("target", [host_target, plain_target])
def test_results_of_other_precisions_past_the_caches(prec: str, target: Callable[[], Target]) -> None:
    """Vectors of short numbers are shorter than what is written past the caches at once."""
    kind = dtype(prec)
    n = PAST_BYTES // kind.itemsize + 24
    i = Var("i", n)
    at = (Affine.of(i),)
    x, y = Buffer("x", (n,), "f32", "input"), Buffer("y", (n,), prec)
    value = Apply("convert", (Access(x, at),), prec)
    program = Program("p", (x,), (y,), [Assign(Access(y, at), "set", True, (i,), value)])
    given = (np.arange(n) % 100).astype(np.float32)
    memory = np.full(n * kind.itemsize + 256, 7, np.uint8)
    start = -memory.ctypes.data % 64
    end = start + n * kind.itemsize
    out = memory[start:end].view(kind)
    compile_program(program, threads=2, target=target()).run({x: given}, [out])
    np.testing.assert_array_equal(out, given.astype(kind))
    assert (memory[:start] == 7).all() and (memory[end:] == 7).all()
