"""What the primitives compute, at the places where languages and machines differ."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from ocannl_lang.graph import derivatives, numeric
from ocannl_lang.graph.dtypes import FLOATS, INTS, dtype
from ocannl_lang.graph.numeric import convert
from ocannl_lang.graph.primitives import PRIMITIVES, neutral
from ocannl_lang.loops.ir import Access, Apply, Buffer

EDGES = np.array([-np.inf, -1e30, -90.0, -5.0, -1.0, -0.5, -0.0, 0.0, 1e-20, 0.5, 1.0, 5.0, 90.0, 1e30, np.inf, np.nan])


def at(fn: str, *args: Any) -> Any:
    with np.errstate(all="ignore"):
        return PRIMITIVES[fn].numpy(*(np.asarray(a) for a in args))


def test_the_table_is_complete() -> None:
    for p in PRIMITIVES.values():
        operands = tuple(Access(Buffer(f"x{i}", (), "f64"), ()) for i in range(p.arity))
        result = Apply(p.name, operands, "f64")
        assert p.doc and len(p.derivative(operands, result, operands[0])) == p.arity
        if p.accumulates:
            for prec in ("f32", "i32", "u8"):
                x = np.array([0, 1], dtype(prec))
                e = np.full(2, neutral(p.name, prec), dtype(prec))
                assert at(p.name, x, e).astype(x.dtype).tolist() == x.tolist()
    assert all(inspect.isfunction(f) for f in (derivatives.d_add, numeric.relu))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_float_functions_agree_with_torch_everywhere(kind: Any) -> None:
    torch = pytest.importorskip("torch")
    x = EDGES.astype(kind)
    t = torch.tensor(x)
    expected = {
        "relu": torch.relu,
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "exp": torch.exp,
        "log": torch.log,
        "sqrt": torch.sqrt,
        "rsqrt": torch.rsqrt,
        "recip": torch.reciprocal,
        "erf": torch.erf,
        "softplus": lambda v: torch.logaddexp(v, torch.zeros_like(v)),
        "round": torch.round,
        "sat01": lambda v: torch.clamp(v, 0, 1),
    }
    for fn, f in expected.items():
        np.testing.assert_allclose(
            at(fn, x), f(t).numpy(), rtol=3e-6 if kind == np.float32 else 1e-12, atol=1e-37, err_msg=fn
        )
    inner = np.abs(x) < 1e20
    for fn, f in {
        "gelu": torch.nn.functional.gelu,
        "gelu_tanh": lambda v: torch.nn.functional.gelu(v, approximate="tanh"),
        "silu": torch.nn.functional.silu,
    }.items():
        np.testing.assert_allclose(at(fn, x[inner]), f(t[inner]).numpy(), rtol=3e-5, atol=1e-6, err_msg=fn)
        assert at(fn, x[:1]) == 0 and at(fn, np.array([np.inf], kind)) == np.inf


def test_extrema_pass_nan_on() -> None:
    assert np.isnan(at("max", 1.0, np.nan)) and np.isnan(at("min", np.nan, 1.0)) and np.isnan(at("relu", np.nan))


def test_remainders_have_the_sign_of_the_divisor() -> None:
    for kind in (np.int32, np.float64):
        a, b = np.array([7, -7, 7, -7], kind), np.array([3, 3, -3, -3], kind)
        assert at("mod", a, b).tolist() == [1, 2, -2, -1]
        assert at("floordiv", a, b).tolist() == [2, -3, -3, 2]
    zero = np.zeros(1, np.int32)
    assert at("floordiv", zero + 5, zero).tolist() == [0] and at("mod", zero + 5, zero).tolist() == [0]


def test_powers() -> None:
    assert at("pow", np.array([-2, 2, 0.5], np.float32), np.array([3, -1, 2], np.float32)).tolist() == [-8, 0.5, 0.25]
    ints = np.array([2, 3, -1, 1, 2, 0], np.int32)
    assert at("pow", ints, np.array([3, 0, -3, -5, -1, 0], np.int32)).tolist() == [8, 1, -1, 1, 0, 1]


def test_rounding_is_half_to_even() -> None:
    assert at("round", np.array([0.5, 1.5, 2.5, -0.5, -1.5])).tolist() == [0, 2, 2, 0, -2]


def test_conversions_saturate() -> None:
    x = np.array([1.9, -1.9, 300.0, -5.0, np.nan, np.inf, -np.inf, 1e30])
    assert convert(x, np.dtype(np.uint8)).tolist() == [1, 0, 255, 0, 0, 255, 0, 255]
    top, low = 2**31 - 1, -(2**31)
    assert convert(x, np.dtype(np.int32)).tolist() == [1, -1, 300, -5, 0, top, low, top]
    assert convert(x, np.dtype(np.int64)).tolist() == [1, -1, 300, -5, 0, 2**63 - 1, -(2**63), 2**63 - 1]
    assert convert(np.array([-1, 257], np.int32), np.dtype(np.uint8)).tolist() == [255, 1]


def test_every_precision_has_a_numpy_type() -> None:
    pytest.importorskip("ml_dtypes")
    sizes = {p: dtype(p).itemsize for p in (*FLOATS, *INTS)}
    assert sizes == {
        "f64": 8, "f32": 4, "bf16": 2, "f16": 2, "f8e5m2": 1, "f8e4m3": 1, "i64": 8, "i32": 4, "u32": 4, "u16": 2, "u8": 1,
    }  # fmt: skip
