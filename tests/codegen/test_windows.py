"""Windows with few channels: sums run in vectors along channels, over weights that are copied into that order."""

from __future__ import annotations

import numpy as np
import pytest

from ocannl_lang.codegen.cpu import compile_program, plan_program, schedule_text
from ocannl_lang.codegen.llvm.target import target_of
from ocannl_lang.codegen.reference import run_program
from ocannl_lang.loops.ir import Access, Affine, Apply, Assign, Buffer, Program, Var
from ocannl_lang.schedule.ir import Loop

AVX2 = ("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx2,+fma,+sse4.1")


def at(*vs: Var) -> tuple[Affine, ...]:
    return tuple(Affine.of(v) for v in vs)


def window(a: Var, b: Var) -> Affine:
    return Affine(tuple(sorted(((a, 1), (b, 1)), key=lambda t: t[0].id)))


def convolution(batch: int, size: int, kernel: int, channels: int, results: int) -> Program:
    """Every window's `channels` against weights that lie [channel, row, column, result]."""
    b, i, j, c = Var("b", batch), Var("i", size), Var("j", size), Var("c", results)
    f, kh, kw = Var("f", channels), Var("kh", kernel), Var("kw", kernel)
    span = size + kernel - 1
    x = Buffer("x", (batch, span, span, channels), "f32", "input")
    w = Buffer("w", (channels, kernel, kernel, results), "f32", "input")
    y = Buffer("y", (batch, size, size, results), "f32")
    place = Access(x, (Affine.of(b), window(i, kh), window(j, kw), Affine.of(f)))
    value = Apply("mul", (place, Access(w, at(f, kh, kw, c))), "f32")
    total = Assign(Access(y, at(b, i, j, c)), "add", True, (b, i, j, c, f, kh, kw), value)
    return Program("y", (x, w), (y,), [total])


def test_sums_along_channels() -> None:
    text = schedule_text(convolution(32, 12, 5, 16, 6), target_of(*AVX2))
    assert "split f 8 packing w[f, kh, kw, c] as w.packed[c, kh, kw, f.o, f.i]" in text
    assert "lanes f.i" in text


@pytest.mark.parametrize("channels", [5, 8, 11, 16])
@pytest.mark.parametrize("results", [1, 3, 6])
def test_sums_of_windows(channels: int, results: int) -> None:
    program = convolution(3, 7, 3, channels, results)
    r = np.random.default_rng(channels)
    given = {b: r.standard_normal(b.shape).astype(np.float32) for b in program.inputs}
    (expected,) = run_program(program, dict(given))
    (got,) = compile_program(program).run(given)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("channels", [2, 3, 4, 6, 7, 8, 13])
@pytest.mark.parametrize("columns", [3, 8, 21])
def test_copies_that_exchange_few_channels(channels: int, columns: int) -> None:
    i, j, c = Var("i", 5), Var("j", columns), Var("c", channels)
    x, y = Buffer("x", (5, columns, channels), "f32", "input"), Buffer("y", (channels, 5, columns), "f32")
    program = Program("p", (x,), (y,), [Assign(Access(y, at(c, i, j)), "set", True, (c, i, j), Access(x, at(i, j, c)))])
    given = np.random.default_rng(channels).standard_normal(x.shape).astype(np.float32)
    (got,) = compile_program(program).run({x: given})
    np.testing.assert_array_equal(got, np.moveaxis(given, 2, 0))


@pytest.mark.parametrize("kernel", [2, 3, 4])
@pytest.mark.parametrize("channels", [6, 16, 40])
def test_small_windows_are_written_out(kernel: int, channels: int) -> None:
    """The greatest of each window, and how often it occurs there."""
    b, i, j, c = Var("b", 2), Var("i", 4), Var("j", 3), Var("c", channels)
    kh, kw = Var("kh", kernel), Var("kw", kernel)
    x = Buffer("x", (2, 4 * kernel, 3 * kernel, channels), "f32", "input")
    top, ties = Buffer("top", (2, 4, 3, channels), "f32"), Buffer("ties", (2, 4, 3, channels), "f32")
    here = Access(x, (Affine.of(b), Affine(((i, kernel), (kh, 1))), Affine(((j, kernel), (kw, 1))), Affine.of(c)))
    loops = (b, i, j, c, kh, kw)
    same = Apply("convert", (Apply("eq", (here, Access(top, at(b, i, j, c))), "u8"),), "f32")
    greatest = Assign(Access(top, at(b, i, j, c)), "max", True, loops, here)
    program = Program(
        "p", (x,), (top, ties), [greatest, Assign(Access(ties, at(b, i, j, c)), "add", True, loops, same)]
    )
    assert ("unrolled kh2" in schedule_text(program, target_of(*AVX2))) == (kernel <= 3)
    given = np.random.default_rng(kernel).integers(0, 5, x.shape).astype(np.float32)
    windows = given.reshape(2, 4, kernel, 3, kernel, channels)
    most, count = compile_program(program).run({x: given})
    np.testing.assert_array_equal(most, windows.max((2, 4)))
    np.testing.assert_array_equal(count, (windows == most[:, :, None, :, None]).sum((2, 4)))


@pytest.mark.parametrize("columns", [6, 16, 64])
def test_rows_of_a_few_columns_run_on_threads(columns: int) -> None:
    """A pointwise result, and the sums of its columns: these join it where the columns are many enough to share among threads."""
    i, j = Var("i", 40000), Var("j", columns)
    x = Buffer("x", (40000, columns), "f32", "input")
    y, total = Buffer("y", (40000, columns), "f32"), Buffer("total", (columns,), "f32")
    active = Assign(Access(y, at(i, j)), "set", True, (i, j), Apply("relu", (Access(x, at(i, j)),), "f32"))
    summed = Assign(Access(total, at(j)), "add", True, (j, i), Access(y, at(i, j)))
    program = Program("p", (x,), (y, total), [active, summed])
    kernels = plan_program(program, target_of(*AVX2)).kernels
    assert len(kernels) == (1 if columns >= 32 else 2)
    assert isinstance(first := kernels[0].body[0], Loop) and first.kind == "parallel"
    given = np.random.default_rng(columns).standard_normal(x.shape).astype(np.float32)
    got, sums = compile_program(program).run({x: given})
    np.testing.assert_array_equal(got, np.maximum(given, 0))
    np.testing.assert_allclose(sums, np.maximum(given, 0).sum(0, dtype=np.float64), rtol=1e-4)
