"""The functions that the CPU code computes by polynomials: accuracy and edges."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

from ocannl_lang.codegen.cpu import compile_program
from ocannl_lang.graph.dtypes import dtype
from ocannl_lang.loops.ir import Access, Affine, Apply, Assign, Buffer, Program, Var

EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, math.inf, -math.inf, math.nan, 1e-30, -1e-30, 1e30, -1e30]


def run(fn: str, *args: np.ndarray) -> np.ndarray:
    """A primitive on arrays of one length, compiled."""
    prec = "f32" if args[0].dtype == np.float32 else "f64"
    (n,) = args[0].shape
    inputs = tuple(Buffer(f"x{k}", (n,), prec, "input") for k in range(len(args)))
    out, v = Buffer("y", (n,), prec), Var("i", n)
    at = (Affine.of(v),)
    value = Apply(fn, tuple(Access(b, at) for b in inputs), prec)
    program = Program(fn, inputs, (out,), [Assign(Access(out, at), "set", True, (v,), value)])
    return compile_program(program).run(dict(zip(inputs, args)))[0]


def _exact(fn: str, x: float) -> Any:
    m = mpmath
    v = m.mpf(x)
    match fn:
        case "sigmoid":
            return 1 / (1 + m.exp(-v))
        case "silu":
            return v / (1 + m.exp(-v))
        case "softplus":
            return m.log1p(m.exp(v))
        case "gelu":
            return v / 2 * m.erfc(-v / m.sqrt(2))
        case "gelu_tanh":
            return v / 2 * (1 + m.tanh(m.sqrt(2 / m.pi) * (v + m.mpf(0.044715) * v**3)))
        case "exp2":
            return m.mpf(2) ** v
        case "log2":
            return m.log(v, 2)
        case "rsqrt":
            return 1 / m.sqrt(v)
        case _:
            return getattr(m, fn)(v)


RANGES = {
    "exp": (-100, 88), "exp2": (-140, 127), "log": (0, 1000), "log2": (0, 1000), "tanh": (-10, 10), "sin": (-1000, 1000),
    "cos": (-1000, 1000), "erf": (-6, 6), "sigmoid": (-100, 100), "silu": (-60, 60), "softplus": (-90, 90), "gelu": (-6, 12),
    "gelu_tanh": (-4, 4), "sqrt": (0, 100), "rsqrt": (0, 100),
}  # fmt: skip
# units in the last place; the tanh form of gelu subtracts, so its left tail is held to an absolute error
ULPS = {"sigmoid": 3, "silu": 4, "softplus": 4, "gelu": 64}


@pytest.mark.parametrize("fn", sorted(RANGES))
@pytest.mark.parametrize("prec", ["f32", "f64"])
def test_functions_are_accurate(fn: str, prec: str) -> None:
    rng = np.random.default_rng(1)
    low, high = RANGES[fn]
    spread = np.concatenate(
        [rng.uniform(low, high, 120), rng.uniform(max(low, -2), 2, 120), rng.uniform(max(low, -1e-3), 1e-3, 60)]
    )
    x = spread.astype(dtype(prec))
    got = run(fn, x)
    with mpmath.workdps(30):
        exact = np.array([float(_exact(fn, float(v))) for v in x])
    tiny = np.finfo(x.dtype).smallest_subnormal
    unit = np.maximum(np.spacing(np.abs(exact).astype(x.dtype)).astype(np.float64), float(tiny))
    error = np.abs(got.astype(np.float64) - exact)
    if fn == "gelu_tanh":
        assert error.max() < (1e-6 if prec == "f32" else 1e-14)
        return
    if fn in ("sin", "cos"):
        unit = np.maximum(unit, 2e-9 if prec == "f32" else 1e-16)
    limit = ULPS.get(fn, 2) if prec == "f32" else 64
    worst = int(np.argmax(error / unit))
    assert (error / unit).max() <= limit, (float(x[worst]), float(got[worst]), exact[worst])


@pytest.mark.parametrize("prec", ["f32", "f64"])
def test_edges_of_functions(prec: str) -> None:
    kind = dtype(prec)
    x = np.array(EDGES, kind)

    def at(fn: str) -> dict[float, float]:
        got = run(fn, x)
        return {v: float(g) for v, g in zip(reversed(EDGES), reversed(got)) if not math.isnan(v)} | {
            1e99: float(got[8])
        }

    inf, nan = math.inf, math.nan
    expected = {
        "exp": {inf: inf, -inf: 0, 1e30: inf, -1e30: 0, 0.0: 1},
        "exp2": {inf: inf, -inf: 0, 1e30: inf, -1e30: 0, 1.0: 2, 2.0: 4},
        "log": {inf: inf, 0.0: -inf, -1.0: nan, 1.0: 0, -inf: nan},
        "log2": {inf: inf, 0.0: -inf, -1.0: nan, 2.0: 1, 0.5: -1},
        "tanh": {inf: 1, -inf: -1, 0.0: 0, 1e30: 1},
        "erf": {inf: 1, -inf: -1, 0.0: 0, 1e30: 1},
        "sin": {inf: nan, -inf: nan, 0.0: 0},
        "cos": {inf: nan, -inf: nan, 0.0: 1},
        "sigmoid": {inf: 1, -inf: 0, 0.0: 0.5},
        "silu": {inf: inf, -inf: 0, 0.0: 0},
        "softplus": {inf: inf, -inf: 0, 1e30: np.float32(1e30) if prec == "f32" else 1e30},
        "gelu": {inf: inf, -inf: 0, 0.0: 0},
        "gelu_tanh": {inf: inf, -inf: 0, 0.0: 0},
        "relu": {inf: inf, -inf: 0},
        "sqrt": {inf: inf, -1.0: nan},
        "rsqrt": {inf: 0, 0.0: inf},
    }
    for fn, values in expected.items():
        got = at(fn)
        assert math.isnan(got[1e99]), f"{fn}(nan)"
        for v, e in values.items():
            g = got[v]
            assert (math.isnan(e) and math.isnan(g)) or g == e, f"{fn}({v}) = {g}, not {e}"


def test_exponentials_reach_subnormals() -> None:
    x = np.linspace(-103, -87, 200).astype(np.float32)
    np.testing.assert_allclose(run("exp", x), np.exp(x.astype(np.float64)), atol=1.5e-45, rtol=3e-7)


@pytest.mark.parametrize("prec", ["f32", "f64"])
def test_powers(prec: str) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.uniform(0, 50, 2000).astype(dtype(prec)), rng.uniform(-8, 8, 2000).astype(dtype(prec))
    got = run("pow", a, b)
    np.testing.assert_allclose(
        got, np.power(a.astype(np.float64), b.astype(np.float64)), rtol=3e-7 if prec == "f32" else 1e-13
    )
    values = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, math.inf, -math.inf, math.nan, 3.0, -3.0]
    a, b = (np.array(v, dtype(prec)) for v in zip(*((p, q) for p in values for q in values)))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(run("pow", a, b), np.power(a, b), rtol=1e-6)


@pytest.mark.parametrize("prec", ["f32", "f64"])
@pytest.mark.parametrize("fn", ["mod", "floordiv"])
def test_division_with_remainder(fn: str, prec: str) -> None:
    rng = np.random.default_rng(3)
    a = np.concatenate(
        [rng.uniform(-50, 50, 1000), rng.integers(-50, 50, 1000), [0.0, -0.0, math.inf, 5, -5, math.nan, 1.0]]
    )
    b = np.concatenate(
        [
            rng.uniform(-5, 5, 1000),
            rng.choice([-3, -2, -1, 1, 2, 3], 1000),
            [3.0, 3.0, 2.0, math.inf, math.inf, 1.0, 0.1],
        ]
    )
    a, b = a.astype(dtype(prec)), b.astype(dtype(prec))
    with np.errstate(all="ignore"):
        expected = np.mod(a, b) if fn == "mod" else np.floor_divide(a, b)
    np.testing.assert_allclose(run(fn, a, b), expected, rtol=1e-6, atol=2e-5 if prec == "f32" else 1e-13)
