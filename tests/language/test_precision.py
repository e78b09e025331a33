"""Section 9: precision, inferred both ways."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.language.programs import Loader, agree, errors, random

ONLY_REFERENCE = ("reference",)
"""Floats of 16 and 8 bits do not run on the CPU yet."""
ARRAYS = {
    "f64": np.array([1.5, -2.5, 3.0]),
    "f32": np.array([1.5, -2.5, 3.0], "f4"),
    "f16": np.array([1.5, -2.5, 3.0], "f2"),
    "i64": np.array([7, -2, 3], "i8"),
    "i32": np.array([7, -2, 3], "i4"),
    "u32": np.array([7, 2, 3], "u4"),
    "u16": np.array([7, 2, 3], "u2"),
    "u8": np.array([7, 2, 3], "u1"),
}
DTYPES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "i64": "int64",
    "i32": "int32",
    "u32": "uint32",
    "u16": "uint16",
    "u8": "uint8",
}


@pytest.mark.parametrize(
    "a, b, expression, want",
    [
        ("f64", "f32", "x + y", "f64"),
        ("f32", "f16", "x *. y", "f32"),
        ("f32", "i32", "x + y", "f32"),
        ("f16", "i32", "x + y", "f16"),
        ("f64", "i64", "x / y", "f64"),
        ("i64", "i32", "x + y", "i64"),
        ("i32", "u8", "x *. y", "i32"),
        ("u16", "u8", "x + y", "u16"),
        ("i32", "i32", "x / y", "f32"),
        ("i64", "i64", "x / y", "f32"),
        ("i32", "i32", "x // y", "i32"),
        ("i32", "i32", "x % y", "i32"),
        ("i32", "i32", "mean(x + y)", "f32"),
        ("i32", "i32", "sum(x)", "i32"),
        ("i64", "i64", "sum(x)", "i64"),
        ("u8", "u8", "sum(x)", "i32"),
        ("u8", "u8", "sum(x > y)", "i32"),
        ("i32", "i32", "mean(x > y)", "f32"),
        ("f64", "f64", "mean(x)", "f64"),
        ("f64", "f64", "x > y", "u8"),
        ("f32", "f64", "x == y", "u8"),
        ("i32", "i32", "x > 1 and y > 1", "u8"),
        ("i32", "i32", "not x", "u8"),
        ("i32", "i32", "any(x > y)", "u8"),
        ("f64", "f64", "argmax{i => }(x)", "i32"),
        ("f64", "f32", "where(x > 0, x, y)", "f64"),
        ("i32", "i32", "x + 1", "i32"),
        ("i32", "i32", "x ** 2", "i32"),
        ("i32", "i32", "max(x, 2)", "i32"),
        ("i32", "i32", "x + 0.5", "f32"),
        ("i64", "i64", "x *. 2.", "f32"),
        ("f64", "f64", "x + 1", "f64"),
        ("f64", "f64", "2.5 * x", "f64"),
        ("f16", "f16", "x * 2.", "f16"),
        ("u8", "u8", "x + 1", "u8"),
        ("i32", "i32", "exp(x)", "f32"),
        ("i64", "i32", "f64(x) + y", "f64"),
        ("f32", "f32", "i32(x)", "i32"),
        ("f32", "f32", "u8(x > 0) + 1", "u8"),
        ("f64", "f64", "x * sum(y)", "f64"),
        ("f64", "f64", "exp(x) + sqrt(abs(y))", "f64"),
        ("f64", "f64", "max{i => }(x)", "f64"),
        ("f64", "f64", "x + [1, 2, 3]", "f64"),
        ("i32", "i32", "x + [1, 2, 3]", "i32"),
        ("i32", "i32", "x + [1., 2., 3.]", "f32"),
        ("i32", "f64", "one_hot[4](x) * 1", "i32"),
        ("f64", "f64", "logsumexp(x)", "f64"),
        ("i32", "i32", "-x", "i32"),
        ("i32", "i32", "abs(x)", "i32"),
        ("f64", "f64", "{w: [3] = 1.} *. x", "f64"),
        ("f32", "f64", "{w: [3] = 1.} *. x", "f32"),
        ("f64", "f64", "{w: f32[3] = 1.} *. x", "f64"),
        ("f64", "f64", "uniform() + x", "f64"),
        ("f64", "f64", "arange[3] + x", "f64"),
    ],
)
def test_results(program: Loader, a: str, b: str, expression: str, want: str) -> None:
    text = f"routine f(x: {a}[3], y: {b}[3]):\n    let r = {expression}\n    return batched(r, r)"
    both = program(text, backends=ONLY_REFERENCE)
    result = both.f(ARRAYS[a], ARRAYS[b])
    assert result.dtype == DTYPES[want]


def test_values_of_conversions_and_ints(program: Loader) -> None:
    both = program("""
    routine truncates(x: f32[4]): return i32(x)
    routine widens(x: u8[3]): return sum(x), mean(x), sum(i32(x) *. x)
    routine big(x: i64[2]): return sum(x), x // 2, x % 10
    routine floats(x: i32[3]): return x / 2, x // 2, x * 0.5, f64(x) / 3
    routine signs(x: f32[3]): return (x > 0) - (x < 0), sum(x > 0), mean(x > 0)
    routine unsigned(x: u8[2]): return i32(x) - 10
    routine matched(x: i32[4], y: i32[4]): return sum(x == y) / 4
    routine as_f64(x: f32[3]): return f64(x) + 1e-12
    routine accuracy(p: f32[n | 3], ids: i32[n | ]): return mean(argmax{n | k => n | }(p) == ids)
    """)
    agree(both.truncates(np.array([1.7, -1.7, 0.5, -0.5], "f4")), [1, -1, 0, 0])
    agree(both.widens(np.array([200, 100, 50], "u1")), (350, 350 / 3, 40000 + 10000 + 2500))
    agree(both.big(np.array([2**40, 2**41])), (3 * 2**40, [2**39, 2**40], [2**40 % 10, 2**41 % 10]))
    agree(both.floats(np.array([7, -7, 2], "i4")), ([3.5, -3.5, 1], [3, -4, 1], [3.5, -3.5, 1], [7 / 3, -7 / 3, 2 / 3]))
    signs, count, share = both.signs(np.array([2, -3, 0], "f4"))
    agree((signs, count, share), ([1, -1, 0], 1, 1 / 3))
    agree(both.unsigned(np.array([7, 200], "u1")), [-3, 190])
    agree(both.matched(np.array([1, 2, 3, 4], "i4"), np.array([1, 0, 3, 0], "i4")), 0.5)
    agree(both.as_f64(np.ones(3, "f4")), np.full(3, 1 + 1e-12), 1e-14, 0)
    agree(both.accuracy(np.eye(3, dtype="f4"), np.array([0, 1, 1], "i4")), 2 / 3)


def test_leaves_take_precision_from_their_uses(program: Loader) -> None:
    both = program("""
    op net(x) = {w: [3 -> 2]} * x + {b: [2] = 0.}
    let n = net
    routine f(x: f64[k | 3]):
        let loss = sum(n(x) ** 2)
        update(loss)
        for p in params(loss): p -= 0.1 * p.grad
        return loss
    routine untyped(x: [3], y: f64[3]): return x + y
    routine plain(x: [3]): return x + 1
    routine state_of(x: f64[3]):
        state s: [3]
        s += x
        return s
    """)
    x = random(4, 3, dtype="f8")
    loss = both.f(x)
    assert both["n.w"].dtype == both["n.b"].dtype == np.float64 and isinstance(loss, float)
    assert both.untyped(np.ones(3), np.full(3, 1e-12)).dtype == np.float64
    assert both.plain(np.ones(3, "f4")).dtype == np.float32
    assert both.state_of(np.ones(3)).dtype == np.float64


def test_results_are_converted_by_their_type_only_when_written(program: Loader) -> None:
    both = program("""
    routine f(x: f64[3]) -> f32[3]: return f32(x)
    routine g(x: f32[3]) -> f64[3]: return f64(x)
    routine bits(x: f32[2]):
        let b: u8[2] = x > 0
        return b
    """)
    assert both.f(np.ones(3)).dtype == np.float32
    assert both.g(np.ones(3, "f4")).dtype == np.float64
    assert both.bits(np.ones(2, "f4")).dtype == np.uint8


def test_small_floats_store_small_and_compute_in_f32(program: Loader) -> None:
    import ml_dtypes

    both = program(
        """
    routine f(x: bf16[3], y: f16[3]): return x + y
    routine g(x: bf16[3]): return exp(x) * 3.
    routine halves(x: f16[1000]): return sum(x), mean(x)
    routine h(x: f32[3]): return bf16(x), f16(x), f8e4m3(x), f8e5m2(x)
    """,
        backends=ONLY_REFERENCE,
    )
    x = np.array([1.5, -2.25, 0.1], "f4")
    a, b = x.astype(ml_dtypes.bfloat16), x.astype("f2")
    assert both.f(a, b).dtype == np.float32
    agree(both.f(a, b), a.astype("f4") + b.astype("f4"))
    got = both.g(a)
    assert got.dtype == ml_dtypes.bfloat16
    agree(got.astype("f4"), 3 * np.exp(a.astype("f4")), 1e-2)
    for value, kind in zip(both.h(x), (ml_dtypes.bfloat16, "f2", ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)):
        agree(value.astype("f4"), x.astype(kind).astype("f4"))
    agree(both.halves(np.full(1000, 0.1, "f2")), (float(np.float16(0.1)) * 1000, 0.1), 1e-3)


@pytest.mark.parametrize(
    "text, code",
    [
        ("routine f(x: f32[3]) -> i32[3]: return x", "E0601"),
        ("routine f(x: f32[3]):\n    let y: i32[3] = x\n    return y", "E0601"),
        ("op g(x: i32[3]) = x + 1\nroutine f(x: f32[3]): return g(x)", "E0601"),
        ("op g(x) -> i32[3]: return x + 1\nroutine f(x: f32[3]): return g(x)", "E0601"),
        ("routine f(x: f32[3]):\n    state s: i32[3]\n    s := x\n    return s", "E0601"),
    ],
)
def test_losses_are_written(text: str, code: str, tmp_path: Path) -> None:
    assert code in [c for c, _ in errors(text, tmp_path)]


def test_a_written_type_does_not_change_what_has_a_name_already(program: Loader) -> None:
    both = program("""
    op wide(x: f64[3]) = x + 1
    routine f(x: f32[3]):
        let y = 2 * x
        let z: f64[3] = y
        return y, z, wide(y)
    """)
    assert [r.dtype for r in both.f(random(3))] == [np.float32, np.float64, np.float64]
