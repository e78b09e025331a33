"""Random numbers are those of `graph.random`, bit for bit where they are uniform."""

from __future__ import annotations

import numpy as np
import pytest

from ocannl_lang.codegen.cpu import compile_program
from ocannl_lang.graph.dtypes import dtype
from ocannl_lang.graph.random import normal_array, random_values, stream_of, uniform_array
from ocannl_lang.loops.ir import Access, Affine, Assign, Buffer, Expr, Program, Random, Var


def draw(
    shape: tuple[int, int], dist: str, prec: str, seed: int, calls: int, counter: Expr | None = None
) -> np.ndarray:
    out = Buffer("r", shape, prec)
    i, j = Var("i", shape[0]), Var("j", shape[1])
    value = Random(dist, stream_of("a.place"), counter, Affine(((i, shape[1]), (j, 1))), prec)  # type: ignore[arg-type]
    program = Program(
        "draw", (), (out,), [Assign(Access(out, (Affine.of(i), Affine.of(j))), "set", True, (i, j), value)]
    )
    return compile_program(program, threads=2).run({}, seed=seed, call_count=calls)[0]


@pytest.mark.parametrize("prec", ["f32", "f64"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (5, 64), (300, 130)])
def test_uniform_numbers_are_the_same_bits(prec: str, shape: tuple[int, int]) -> None:
    for seed, calls in ((0, 0), (2**63 + 5, 7), (-3, -1)):
        expected = uniform_array(shape, seed=seed % 2**64, place="a.place", count=calls, prec=prec)  # type: ignore[arg-type]
        assert draw(shape, "uniform", prec, seed, calls).tobytes() == expected.tobytes()


@pytest.mark.parametrize("prec", ["f32", "f64"])
def test_normal_numbers(prec: str) -> None:
    expected = normal_array((300, 131), seed=3, place="a.place", count=2, prec=prec)  # type: ignore[arg-type]
    got = draw((300, 131), "normal", prec, 3, 2)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6 if prec == "f32" else 1e-14)


def test_an_explicit_counter_takes_the_place_of_the_call_count() -> None:
    counter, out, v = Buffer("c", (40,), "i32", "input"), Buffer("r", (40,), "f32"), Var("i", 40)
    at = (Affine.of(v),)
    value = Random("uniform", 99, Access(counter, at), Affine.of(v), "f32")
    program = Program("draw", (counter,), (out,), [Assign(Access(out, at), "set", True, (v,), value)])
    counts = np.arange(-5, 35, dtype=dtype("i32"))
    got = compile_program(program).run({counter: counts}, seed=1, call_count=5)[0]
    expected = random_values("uniform", "f32", seed=1, stream=99, count=counts, position=np.arange(40))
    assert got.tobytes() == expected.tobytes()
