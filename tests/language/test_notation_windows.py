"""Section 6: affine axes, valid and padded, strided and dilated, over several reducers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.language.programs import Case, Loader, agree, case, errors, random, slopes

X = random(2, 7)


def windows(x: np.ndarray, k: int, stride: int = 1, dilation: int = 1, fill: float | None = None) -> np.ndarray:
    """Windows along the last axis, as a new last axis; padded as the language pads where a fill is given."""
    span = dilation * (k - 1) + 1
    if fill is not None:
        p = (span - 1) // 2
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(p, span)], constant_values=fill)
    count = (x.shape[-1] - span) // stride + 1
    return np.stack([x[..., o * stride : o * stride + span : dilation] for o in range(count)], axis=-2)


def padded(x: np.ndarray, k: int, stride: int = 1, dilation: int = 1, fill: float = 0.0) -> np.ndarray:
    return windows(x, k, stride, dilation, fill)[..., : x.shape[-1] // stride, :]


def conv(axes: str, x: str = "f32[2 | 7]", k: str = "f32[3]") -> str:
    return f"routine f(x: {x}, k: {k}): return x +*{{b | {axes}; k => b | o}} k"


def reduced(reducer: str, axes: str, k: int, x: str = "f32[2 | 7]") -> str:
    return f"routine f(x: {x}):\n    dim k = {k}\n    return {reducer}{{b | {axes} => b | o}}(x)"


CONV = [
    case("valid", conv("o + k"), X, random(3), lambda x, k: windows(x, 3) @ k),
    case("valid_even", conv("o + k", k="f32[4]"), X, random(4), lambda x, k: windows(x, 4) @ k),
    case("valid_strided", conv("2*o + k"), X, random(3), lambda x, k: windows(x, 3, 2) @ k),
    case("valid_dilated", conv("o + 2*k"), X, random(3), lambda x, k: windows(x, 3, 1, 2) @ k),
    case("valid_strided_dilated", conv("2*o + 2*k"), X, random(3), lambda x, k: windows(x, 3, 2, 2) @ k),
    case("whole_axis", conv("o + k", k="f32[7]"), X, random(7), lambda x, k: windows(x, 7) @ k),
    case("padded", conv("o =+ k"), X, random(3), lambda x, k: padded(x, 3) @ k),
    case("padded_even", conv("o =+ k", k="f32[4]"), X, random(4), lambda x, k: padded(x, 4) @ k),
    case("padded_two", conv("o =+ k", k="f32[2]"), X, random(2), lambda x, k: padded(x, 2) @ k),
    case("padded_wide", conv("o =+ k", k="f32[9]"), X, random(9), lambda x, k: padded(x, 9) @ k),
    case("padded_one", conv("o =+ k", k="f32[1]"), X, random(1), lambda x, k: padded(x, 1) @ k),
    case("padded_dilated", conv("o =+ 2*k"), X, random(3), lambda x, k: padded(x, 3, 1, 2) @ k),
    case("padded_dilated_even", conv("o =+ 3*k", k="f32[2]"), X, random(2), lambda x, k: padded(x, 2, 1, 3) @ k),
    case("padded_strided", conv("2*o =+ k", "f32[2 | 8]"), random(2, 8), random(3), lambda x, k: padded(x, 3, 2) @ k),
    case(
        "padded_strided_even",
        conv("2*o =+ k", "f32[2 | 8]", "f32[4]"),
        random(2, 8),
        random(4),
        lambda x, k: padded(x, 4, 2) @ k,
    ),
    case(
        "padded_strided_dilated",
        conv("4*o =+ 2*k", "f32[2 | 8]"),
        random(2, 8),
        random(3),
        lambda x, k: padded(x, 3, 4, 2) @ k,
    ),
    case(
        "stride_by_name",
        "routine f(x: f32[2 | 8], k: f32[3]):\n    let s, d = 2, 3\n    return x +*{b | s*o =+ d*k; k => b | o} k",
        random(2, 8),
        random(3),
        lambda x, k: padded(x, 3, 2, 3) @ k,
    ),
    case(
        "stride_by_config",
        "op c[s: int = 1](x, k) = x +*{... | (s + 1)*o + k; k => ... | o} k\nroutine f(x: f32[2 | 7], k: f32[3]): return c[s = 1](x, k)",
        X,
        random(3),
        lambda x, k: windows(x, 3, 2) @ k,
    ),
    case(
        "channels",
        "routine f(x: f32[2 | 7, 3], k: f32[4, 3 -> 5]): return x +*{... | o =+ k, ..c..; k, ..c.. -> f => ... | o, f} k",
        random(2, 7, 3),
        random(5, 4, 3),
        lambda x, k: np.einsum("bock,fkc->bof", padded(x.transpose(0, 2, 1), 4).transpose(0, 2, 1, 3), k),
    ),
    case(
        "depthwise",
        "routine f(x: f32[2 | 7, 3], k: f32[3, 3]): return x +*{... | o =+ k, c; k, c => ... | o, c} k",
        random(2, 7, 3),
        random(3, 3),
        lambda x, k: np.einsum("bcok,kc->boc", padded(x.transpose(0, 2, 1), 3), k),
    ),
    case(
        "in_the_batch_row",
        "routine f(x: f32[7 | 3], k: f32[2]): return x +*{o + k | c; k => o | c} k",
        random(7, 3),
        random(2),
        lambda x, k: (windows(x.T, 2) @ k).T,
    ),
    case(
        "in_the_input_row",
        "routine f(x: f32[7 -> 3], k: f32[2]): return x +*{o + k -> c; k => c | o} k",
        random(3, 7),
        random(2),
        lambda x, k: windows(x, 2) @ k,
    ),
    case(
        "window_stays",
        "routine f(x: f32[7]):\n    dim k = 3\n    return sum{o + k => o, k}(x)",
        random(7),
        lambda x: windows(x, 3),
    ),
    case(
        "window_stays_padded",
        "routine f(x: f32[7]):\n    dim k = 3\n    return sum{o =+ k => o, k}(x)",
        random(7),
        lambda x: padded(x, 3),
    ),
    case(
        "window_stays_padded_max",
        "routine f(x: f32[7]):\n    dim k = 3\n    return max{o =+ k => o, k}(x)",
        random(7),
        lambda x: padded(x, 3, fill=-np.inf),
    ),
    case(
        "window_stays_padded_mean_is_sum_of_one",
        "routine f(x: f32[7]):\n    dim k = 3\n    return prod{o =+ k => o, k}(x)",
        random(7),
        lambda x: padded(x, 3, fill=1),
    ),
    case(
        "result_size_by_type",
        "routine f(x: f32[7]) -> f32[3, 3]: return sum{2*o + k => o, k}(x)",
        random(7),
        lambda x: windows(x, 3, 2),
    ),
    case(
        "transposed",
        "routine f(x: f32[3], k: f32[3]) -> f32[7]: return einsum{o; k => 2*o + k}(x, k)",
        random(3),
        random(3),
        lambda x, k: sum(np.pad(x[o] * k, (2 * o, 4 - 2 * o)) for o in range(3)),
    ),
    case(
        "transposed_padded",
        "routine f(x: f32[3], k: f32[3]) -> f32[6]: return einsum{o; k => 2*o =+ k}(x, k)",
        random(3),
        random(3),
        lambda x, k: np.sum([np.pad(x[o] * k, (2 * o, 5 - 2 * o)) for o in range(3)], 0)[1:7],
    ),
    case(
        "toeplitz",
        "routine f(x: f32[7]):\n    dim i = 3\n    return sum{i + j => i, j}(x)",
        random(7),
        lambda x: np.stack([x[i : i + 5] for i in range(3)]),
    ),
    case(
        "two_dimensions",
        "routine f(x: f32[6, 7], k: f32[2, 3]): return x +*{2*i =+ a, j + 2*b; a, b => i, j} k",
        random(6, 7),
        random(2, 3),
        lambda x, k: np.einsum(
            "ijab,ab->ij", windows(padded(x.T, 2, 2).transpose(1, 2, 0), 3, 1, 2).transpose(0, 2, 1, 3), k
        ),
    ),
]

POOL = [
    case(f"{name}_{form}", reduced(reducer, axes, k, shape), x, fn)
    for reducer, name, fold, fill in [
        ("max", "max", lambda w: w.max(-1), -np.inf),
        ("min", "min", lambda w: w.min(-1), np.inf),
        ("sum", "sum", lambda w: w.sum(-1), 0.0),
        ("prod", "prod", lambda w: w.prod(-1), 1.0),
        ("logsumexp", "logsumexp", lambda w: np.log(np.exp(w).sum(-1)), -np.inf),
    ]
    for form, axes, k, shape, x, fn in [
        ("valid", "2*o + k", 3, "f32[2 | 7]", X, lambda x, fold=fold: fold(windows(x, 3, 2))),
        ("padded", "o =+ k", 3, "f32[2 | 7]", X, lambda x, fold=fold, fill=fill: fold(padded(x, 3, fill=fill))),
        (
            "padded_even_strided",
            "2*o =+ k",
            4,
            "f32[2 | 8]",
            random(2, 8),
            lambda x, fold=fold, fill=fill: fold(padded(x, 4, 2, fill=fill)),
        ),
    ]
]

OTHER = [
    case(
        "max_and_sum_over_the_same",
        """
        routine f(x: f32[2 | 7]):
            dim k = 3
            let high, low = max{b | o =+ k => b | o}(x), min{b | o =+ k => b | o}(x)
            return high + sum{b | o =+ k => b | o}(x) - low
        """,
        X,
        lambda x: padded(x, 3, fill=-np.inf).max(-1) + padded(x, 3).sum(-1) - padded(x, 3, fill=np.inf).min(-1),
    ),
    case("mean_valid", reduced("mean", "2*o + k", 3), X, lambda x: windows(x, 3, 2).mean(-1)),
    case(
        "any_padded",
        "routine f(x: f32[7]):\n    dim k = 3\n    return any{o =+ k => o}(x > 1)",
        random(7),
        lambda x: padded(1.0 * (x > 1), 3).any(-1),
    ),
    case(
        "all_padded",
        "routine f(x: f32[7]):\n    dim k = 3\n    return all{o =+ k => o}(x > -1)",
        random(7),
        lambda x: padded(1.0 * (x > -1), 3, fill=1).all(-1),
    ),
    case(
        "max_of_sums",
        "routine f(x: f32[2 | 7], k: f32[3]): return x @^+{b | o + k; k => b | o} k",
        X,
        random(3),
        lambda x, k: (windows(x, 3) + k).max(-1),
    ),
    case(
        "max_of_sums_padded",
        "routine f(x: f32[2 | 7], k: f32[3]): return x @^+{b | o =+ k; k => b | o} k",
        X,
        random(3),
        lambda x, k: (padded(x, 3, fill=-np.inf) + k).max(-1),
    ),
    case(
        "pool_with_window_tensor",
        "routine f(x: f32[1 | 4, 4, 2], w: f32[2, 2]): return max{... | 2*oh + kh, 2*ow + kw, ..c..; kh, kw => ... | oh, ow, ..c..}(x, w)",
        random(1, 4, 4, 2),
        np.zeros((2, 2), "f"),
        lambda x, w: x.reshape(1, 2, 2, 2, 2, 2).max((2, 4)),
    ),
    case(
        "a_chain",
        "routine f(x: f32[9], k: f32[3]):\n    let y = x +*{o =+ k; k => o} k\n    return y +*{2*o + k; k => o} k",
        random(9),
        random(3),
        lambda x, k: windows(padded(x, 3) @ k, 3, 2) @ k,
    ),
]


@pytest.mark.parametrize("case", CONV)
def test_convolution(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("case", POOL)
def test_pooling(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.parametrize("case", OTHER)
def test_others(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.parametrize(
    "expression",
    [
        "x +*{b | o =+ k; k => b | o} w",
        "x +*{b | o =+ 2*k; k => b | o} w",
        "x +*{b | 2*o =+ k; k => b | o} w",
        "x +*{b | 3*o + k; k => b | o} w",
        "x @^+{b | o =+ k; k => b | o} w",
        "x @-+{b | 2*o + 2*k; k => b | o} w",
        "einsum{b | o; k => b | o + k}(x, w)",
        "einsum{b | o; k => b | 2*o =+ k}(x, w)",
    ],
)
def test_gradients_of_windows(program: Loader, expression: str) -> None:
    shape = "[2 | 8]" if "2*o =+" in expression else "[2 | 9]"
    both = program(f"""
    routine f(x: f64{shape}, w: f64[3]):
        let y = {expression}
        let loss = sum(y ** 2 + y)
        update(loss)
        return loss, x.grad, w.grad
    """)
    x, w = random(2, 8 if "8" in shape else 9, dtype="f8"), random(3, dtype="f8")
    loss, *gradients = both.f(x, w)
    agree(tuple(gradients), tuple(slopes(lambda *a: both.modules[1].f(*a)[0], x, w)), 1e-5, 1e-6)
    assert np.isfinite(loss)


@pytest.mark.parametrize(
    "text",
    [
        "routine f(x: f32[2 | 8], k: f32[3]): return x +*{b | 2*o + k; k => b | o} k",
        "routine f(x: f32[2 | 7], k: f32[3]): return x +*{b | 2*o =+ k; k => b | o} k",
        "routine f(x: f32[2 | 2], k: f32[3]): return x +*{b | o + k; k => b | o} k",
        "routine f(x: f32[7]): return sum{2*i => i}(x)",
    ],
)
def test_windows_that_do_not_fit(text: str, tmp_path: Path) -> None:
    assert errors(text, tmp_path) == [("E0406", 1)]
