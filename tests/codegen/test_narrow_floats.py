"""Floats of 16 bits convert as ml-dtypes and numpy convert them, and compute in f32."""

from __future__ import annotations

import numpy as np
import pytest

from ocannl_lang.codegen.cpu import compile_program
from ocannl_lang.codegen.reference import run_program
from ocannl_lang.graph.dtypes import dtype
from ocannl_lang.loops.ir import Access, Affine, Apply, Assign, Buffer, Const, Expr, Program, Var


def converted(a: np.ndarray, source: str, prec: str) -> np.ndarray:
    x, y, v = Buffer("x", a.shape, source, "input"), Buffer("y", a.shape, prec), Var("i", len(a))
    at = (Affine.of(v),)
    value = Apply("convert", (Access(x, at),), prec)
    return compile_program(Program("c", (x,), (y,), [Assign(Access(y, at), "set", True, (v,), value)])).run({x: a})[0]


@pytest.mark.parametrize("prec", ["bf16", "f16"])
def test_every_number_widens_exactly(prec: str) -> None:
    a = np.arange(2**16, dtype=np.uint16).view(dtype(prec))
    wide = converted(a, prec, "f32")
    np.testing.assert_array_equal(wide, a.astype(np.float32))
    back = converted(wide, "f32", prec)
    same = (back.view(np.uint16) == a.view(np.uint16)) | np.isnan(wide)
    assert same.all() and np.isnan(back.astype(np.float32)[np.isnan(wide)]).all()


@pytest.mark.parametrize("prec", ["bf16", "f16"])
def test_narrowing_rounds_to_even(prec: str) -> None:
    rng = np.random.default_rng(0)
    random_bits = rng.integers(0, 2**32, 20000, dtype=np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        numbers = np.arange(2**15, dtype=np.uint16).view(dtype(prec)).astype(np.float64)
        ties = (numbers[:-1] + np.diff(numbers) / 2).astype(np.float32)
        a = np.concatenate([random_bits, (rng.standard_normal(20000) * 1e-6).astype(np.float32), ties])
        expected = a.astype(dtype(prec))
    got = converted(a, "f32", prec)
    nan = np.isnan(a)
    assert (got.view(np.uint16) == expected.view(np.uint16))[~nan].all()
    assert np.isnan(got.astype(np.float32))[nan].all()


@pytest.mark.parametrize("prec", ["bf16", "f16"])
def test_products_of_narrow_floats(prec: str) -> None:
    a, b = Buffer("a", (20, 50), prec, "input"), Buffer("b", (33, 50), prec, "input")
    c, d = Buffer("c", (20, 33), "f32"), Buffer("d", (20, 33), prec)
    i, j, k = Var("i", 20), Var("j", 33), Var("k", 50)

    def at(*vs: Var) -> tuple[Affine, ...]:
        return tuple(Affine.of(v) for v in vs)

    wide: list[Expr] = [Apply("convert", (Access(*x),), "f32") for x in ((a, at(i, k)), (b, at(j, k)))]
    scaled = Apply("mul", (Access(d, at(i, j)), Const(0.5, prec)), prec)
    program = Program("p", (a, b), (d, e := Buffer("e", (20, 33), prec)), [
        Assign(Access(c, at(i, j)), "add", True, (i, j, k), Apply("mul", tuple(wide), "f32")),
        Assign(Access(d, at(i, j)), "set", True, (i, j), Apply("convert", (Access(c, at(i, j)),), prec)),
        Assign(Access(e, at(i, j)), "set", True, (i, j), Apply("max", (scaled, Const(0.0, prec)), prec)),
    ])  # fmt: skip
    rng = np.random.default_rng(0)
    storage = {x: rng.integers(-3, 4, x.shape).astype(dtype(prec)) for x in (a, b)}
    for got, expected in zip(compile_program(program).run(storage), run_program(program, storage)):
        np.testing.assert_array_equal(got.astype(np.float32), expected.astype(np.float32))
