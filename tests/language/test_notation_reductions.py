"""Section 6: reducers, labels, fixed positions and row variables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.language.programs import Case, case, random

X = random(2, 3, 4)
M = random(2, 4, 3)  # [2 | 3 -> 4] in memory
I = np.array([[3, 1, 2], [5, 0, 7]], np.int32)
B = np.array([[1, 0, 1], [1, 1, 1]], np.uint8)


def lse(x: np.ndarray, axis: tuple[int, ...] | int) -> np.ndarray:
    top = x.max(axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.exp(x - top).sum(axis=axis))


def one(body: str, shape: str = "f32[2 | 3, 4]") -> str:
    return f"routine f(x: {shape}): return {body}"


FORMS = [
    case("sum_all", one("sum(x)"), X, X.sum()),
    case("mean_all", one("mean(x)"), X, X.mean()),
    case("max_all", one("max(x)"), X, X.max()),
    case("min_all", one("min(x)"), X, X.min()),
    case("prod_all", one("prod(x)"), X, X.prod()),
    case("logsumexp_all", one("logsumexp(x)"), X, lse(X.ravel(), 0)),
    case("any_all", one("any(x > 5)"), X, 0),
    case("all_all", one("all(x > -5)"), X, 1),
    case("sum_output", one("sum{... | i, j => ... | }(x)"), X, X.sum((1, 2))),
    case("keep_as_ones", one("sum{... | i, j => ... | 0, 0}(x)"), X, X.sum((1, 2), keepdims=True)),
    case("keep_one", one("max{... | i, j => ... | i, 0}(x)"), X, X.max(2, keepdims=True)),
    case("mean_middle", one("mean{b | i, j => b | j}(x)"), X, X.mean(1)),
    case("mean_two", one("mean{b | i, j => j}(x)"), X, X.mean((0, 1))),
    case("mean_swapped", one("mean{b | i, j => j | b}(x)"), X, X.mean(1).T),
    case("logsumexp_one", one("logsumexp{b | i, j => b | i}(x)"), X, lse(X, 2)),
    case("logsumexp_two", one("logsumexp{b | i, j => i}(x)"), X, lse(X, (0, 2))),
    case("logsumexp_large", one("logsumexp{b | i, j => i}(x * 1000)"), X, lse(X * 1000, (0, 2))),
    case("logsumexp_row", one("logsumexp{..b.. | ..o.. => ..b.. | }(x)"), X, lse(X, (1, 2))),
    case("argmax_last", one("argmax{b | i, j => b | i}(x)"), X, X.argmax(2)),
    case("argmin_first", one("argmin{b | i, j => i, j}(x)"), X, X.argmin(0)),
    case(
        "argmax_ties",
        one("argmax{b | i => b | }(x)", "f32[2 | 4]"),
        np.array([[1, 3, 3, 0], [2, 2, 2, 2]], "f"),
        [1, 0],
    ),
    case("prod_one", one("prod{... | i, j => ... | j}(x)"), X, X.prod(1)),
    case("min_row", one("min{... | ... => ... | }(x)"), X, X.min((1, 2))),
    case("any_one", one("any{b | i, j => b | i}(x > 1)"), X, (X > 1).any(2)),
    case("all_one", one("all{b | i, j => i}(x > -1)"), X, (X > -1).all((0, 2))),
    case("any_of_numbers", one("any{b | i => i}(x)", "u8[2 | 3]"), B, B.any(0)),
    case("all_of_numbers", one("all{b | i => b | }(x)", "u8[2 | 3]"), B, B.all(1)),
    case("input_axes", one("sum{b | i -> o => b | o}(x)", "f32[2 | 3 -> 4]"), M, M.sum(2)),
    case("output_axes_of_a_matrix", one("sum{b | i -> o => b | i}(x)", "f32[2 | 3 -> 4]"), M, M.sum(1)),
    case("transposed_by_slots", one("sum{b | i -> o => b | o -> i}(x)", "f32[2 | 3 -> 4]"), M, M.transpose(0, 2, 1)),
    case("permute", one("permute{b | i, j => j, i, b}(x)"), X, X.transpose(2, 1, 0)),
    case("permute_rows", one("permute{b | ..o.. => ..o.. | b}(x)"), X, X.transpose(1, 2, 0)),
    case("sum_of_ints", one("sum{b | i => b | }(x)", "i32[2 | 3]"), I, I.sum(1)),
    case("max_of_ints", one("max{b | i => i}(x)", "i32[2 | 3]"), I, I.max(0)),
    case("mean_of_ints", one("mean{b | i => b | }(x)", "i32[2 | 3]"), I, I.mean(1)),
    case("prod_of_ints", one("prod{b | i => b | }(x)", "i32[2 | 3]"), I, I.prod(1)),
    case("commas_left_out", one("sum{b | i j => j b}(x)"), X, X.sum(1).T),
    case("underscore", one("sum{_ | i, _ => i}(x)"), X, X.sum((0, 2))),
    case(
        "underscores_are_different",
        one("sum{_, _ | _, i => i}(x)", "f32[2, 2 | 2, 3]"),
        random(2, 2, 2, 3),
        lambda x: x.sum((0, 1, 2)),
    ),
]

LABELS = [
    case("trace", one("sum{i, i => }(x)", "f32[3, 3]"), random(3, 3), lambda x: np.trace(x)),
    case("diagonal", one("sum{i, i => i}(x)", "f32[3, 3]"), random(3, 3), lambda x: np.diag(x)),
    case(
        "diagonal_across_rows",
        one("sum{i | i, j => i, j}(x)", "f32[3 | 3, 4]"),
        random(3, 3, 4),
        lambda x: np.einsum("iij->ij", x),
    ),
    case("diagonal_of_a_matrix", one("max{i -> i => i}(x)", "f32[3 -> 3]"), random(3, 3), lambda x: np.diag(x)),
    case("onto_the_diagonal", one("sum{i => i, i}(x)", "f32[3]"), random(3), lambda x: np.diag(x)),
    case("three_times", one("sum{i, i, i => i}(x)", "f32[3, 3, 3]"), random(3, 3, 3), lambda x: np.einsum("iii->i", x)),
    case(
        "label_only_in_the_result",
        "routine f(x: f32[3]) -> f32[4, 3]: return sum{i => k, i}(x)",
        random(3),
        lambda x: np.tile(x, (4, 1)),
    ),
    case(
        "label_only_in_the_result_by_dim",
        "routine f(x: f32[3]):\n    dim k = 4\n    return sum{i => k, i}(x)",
        random(3),
        lambda x: np.tile(x, (4, 1)),
    ),
    case(
        "label_only_in_the_result_stays_one",
        "routine f(x: f32[3]): return sum{i => k, i}(x)",
        random(3),
        lambda x: x[None],
    ),
    case(
        "label_only_in_the_result_by_use",
        "routine f(x: f32[3], y: f32[4, 3]): return einsum{k, i; k, i => i}(sum{i => k, i}(x), y)",
        random(3),
        random(4, 3),
        lambda x, y: (x * y).sum(0),
    ),
    case(
        "dim_joins_two_notations",
        """
        routine f(x: f32[n | 3], w: f32[3, 5]):
            dim k
            let a = sum{b | k => b | k}(x)
            return einsum{b | k; k, j => b | j}(a, w) / k
        """,
        random(2, 3),
        random(3, 5),
        lambda x, w: x @ w / 3,
    ),
    case(
        "a_static_of_that_name_is_not_meant",
        "routine f(x: f32[2, 3]):\n    let i = 1\n    return sum{i, j => i}(x) * i",
        random(2, 3),
        lambda x: x.sum(1),
    ),
]

POSITIONS = [
    case("fixed_output", one("sum{b | i, 2 => b | i}(x)"), X, X[:, :, 2]),
    case("fixed_batch", one("sum{1 | ... => ...}(x)"), X, X[1]),
    case("fixed_input", one("sum{b | 1 -> o => b | o}(x)", "f32[2 | 3 -> 4]"), M, M[:, :, 1]),
    case("fixed_in_all_rows", one("sum{1 | 0 -> 3 => }(x)", "f32[2 | 3 -> 4]"), M, M[1, 3, 0]),
    case("fixed_in_max", one("max{b | 1, j => b | }(x)"), X, X[:, 1].max(1)),
    case(
        "static_expression",
        "routine f(x: f32[2 | 3, 4]):\n    let k = 1\n    return sum{b | (k + 1), j => b | j}(x)",
        X,
        X[:, 2],
    ),
    case(
        "static_loop",
        "routine f(x: f32[2 | 3, 4]):\n    var t = 0.\n    for k in 0..3: t = t + (k + 1) * sum{b | (k), j => b | j}(x)\n    return t",
        X,
        (X * np.array([1, 2, 3])[:, None]).sum(1),
    ),
    case(
        "index",
        "routine f(x: f32[2 | 3, 4], i: index[4]): return sum{b | j, (i) => b | j}(x)",
        X,
        3,
        lambda x, i: x[:, :, i],
    ),
    case(
        "two_indices",
        "routine f(x: f32[2 | 3, 4], i: index[3], j: index[4]): return sum{b | (i), (j) => b | }(x)",
        X,
        2,
        1,
        lambda x, i, j: x[:, i, j],
    ),
    case(
        "index_in_result",
        "routine f(x: f32[3], i: index[4]) -> f32[3, 4]: return sum{j => j, (i)}(x)",
        random(3),
        2,
        lambda x, i: x[:, None] * np.eye(4)[i],
    ),
    case(
        "index_as_number", "routine f(x: f32[3], i: index[4]): return x * i + i", random(3), 2, lambda x, i: x * i + i
    ),
    case("result_position", one("sum{i => i, 2}(x)", "f32[3]"), random(3), lambda x: x[:, None] * np.eye(3)[2]),
    case(
        "result_position_size_asked",
        "routine f(x: f32[3]) -> f32[3, 5]: return sum{i => i, 2}(x)",
        random(3),
        lambda x: x[:, None] * np.eye(5)[2],
    ),
    case(
        "result_position_of_max",
        "routine f(x: f32[3]) -> f32[3, 2]: return max{i => i, 1}(x)",
        random(3),
        lambda x: np.stack([np.full(3, -np.inf), x], 1),
    ),
    case(
        "result_position_of_prod",
        "routine f(x: f32[3]) -> f32[3, 2]: return prod{i => i, 1}(x)",
        random(3),
        lambda x: np.stack([np.ones(3), x], 1),
    ),
    case(
        "zero_grows_by_type",
        "routine f(x: f32[2, 3]) -> f32[2, 4]: return sum{i, j => i, 0}(x)",
        random(2, 3),
        lambda x: x.sum(1)[:, None] * np.eye(4)[0],
    ),
    case(
        "zero_broadcasts",
        "routine f(x: f32[2, 3]): return x - mean{i, j => i, 0}(x)",
        random(2, 3),
        lambda x: x - x.mean(1, keepdims=True),
    ),
    case("negative_stride_free_read", one("sum{2*i => i}(x)", "f32[6]"), random(6), lambda x: x[::2]),
    case("stride_with_offset", one("sum{3*i + 2 => i}(x)", "f32[6]"), random(6), lambda x: x[2::3]),
    case(
        "stride_in_result", one("sum{i => 2*i + 1}(x)", "f32[3]"), random(3), lambda x: np.stack([0 * x, x], 1).ravel()
    ),
    case(
        "strided_interleave",
        "routine f(x: f32[3], y: f32[3]): return sum{i => 2*i}(x) + sum{i => 2*i + 1}(y)",
        random(3),
        random(3, seed=1),
        lambda x, y: np.stack([x, y], 1).ravel(),
    ),
    case(
        "stride_by_name",
        "routine f(x: f32[6]):\n    let s = 3\n    return sum{s*i + 1 => i}(x)",
        random(6),
        lambda x: x[1::3],
    ),
    case(
        "stride_by_expression",
        "routine f(x: f32[6]):\n    let s = 1\n    return sum{(s + 1)*i => i}(x)",
        random(6),
        lambda x: x[::2],
    ),
    case(
        "stride_by_dim",
        "routine f(x: f32[6]):\n    dim s = 2\n    return sum{s*i => i}(x)",
        random(6),
        lambda x: x[::2],
    ),
    case(
        "strides_on_both_sides",
        one("sum{2*i => 3*i + 1}(x)", "f32[4]"),
        random(4),
        lambda x: np.array([0, x[0], 0, 0, x[2], 0]),
    ),
    case("two_strides", one("sum{2*i, 2*j + 1 => i, j}(x)", "f32[4, 6]"), random(4, 6), lambda x: x[::2, 1::2]),
]

ROWS = [
    case("named_row", one("sum{..b.. | ..o.. => ..b.. | }(x)"), X, X.sum((1, 2))),
    case("row_moves", one("sum{..a.. | i, j => i | ..a.., j}(x)"), X, X.transpose(1, 0, 2)),
    case(
        "row_in_the_middle",
        one("sum{i, ..m.., j => j, ..m.., i}(x)", "f32[2, 3, 4, 5]"),
        random(2, 3, 4, 5),
        lambda x: x.transpose(3, 1, 2, 0),
    ),
    case(
        "empty_row_in_the_middle", one("sum{i, ..m.., j => j, ..m.., i}(x)", "f32[2, 3]"), random(2, 3), lambda x: x.T
    ),
    case(
        "reduced_row",
        one("sum{b | i, ..m.. => b | i}(x)", "f32[2 | 3, 4, 5]"),
        random(2, 3, 4, 5),
        lambda x: x.sum((2, 3)),
    ),
    case(
        "three_rows",
        one("sum{..a.. | ..b.. -> ..c.. => ..c.. | ..a.. -> ..b..}(x)", "f32[2 | 3 -> 4]"),
        M,
        M.transpose(1, 2, 0),
    ),
    case(
        "two_rows_in_one_result_row",
        "routine f(x: f32[2, 3], y: f32[4, 5]): return einsum{..a..; ..b.. => ..a.. | ..b..}(x, y)",
        random(2, 3),
        random(4, 5),
        lambda x, y: np.einsum("ij,kl->ijkl", x, y),
    ),
    case(
        "same_row_twice",
        "routine f(x: f32[2 | 3, 4], y: f32[3, 4]): return x +*{b | ..r..; ..r.. => b | } y",
        X,
        random(3, 4),
        lambda x, y: np.einsum("bij,ij->b", x, y),
    ),
    case(
        "row_diagonal",
        one("sum{..r.. | ..r.. => ..r..}(x)", "f32[2, 3 | 2, 3]"),
        random(2, 3, 2, 3),
        lambda x: np.einsum("ijij->ij", x),
    ),
    case("dots_are_their_row", one("sum{... | ... -> ... => ... | }(x)", "f32[2 | 3 -> 4]"), M, M.sum((1, 2))),
    case(
        "declared_row",
        "routine f(x: f32[2 | 3, 4]):\n    row r\n    let s = sum{b | ..r.. => ..r..}(x)\n    return x -  s / r",
        X,
        X - X.sum(0) / 12,
    ),
    case(
        "declared_row_as_number",
        "routine f(x: f32[2 | 3, 4]):\n    row r\n    return sum{b | ..r.. => b | }(x) / r",
        X,
        X.mean((1, 2)),
    ),
    case(
        "row_from_signature",
        "op centre(x: [..b.. | ..o..]) = x / o\nroutine f(x: f32[2 | 3, 4]): return centre(x)",
        X,
        X / 12,
    ),
    case(
        "dim_from_signature",
        "op scaled(x: [..b.. | d]) = x / sqrt(d)\nroutine f(x: f32[2 | 4]): return scaled(x)",
        random(2, 4),
        lambda x: x / 2,
    ),
    case("batch_dim_of_routine", "routine f(x: f32[n | 3]): return sum(x) / n", random(5, 3), lambda x: x.sum() / 5),
    case(
        "row_of_routine",
        "routine f(x: f32[..b.. | 3]): return sum{..b.. | i => i}(x) / b",
        random(5, 2, 3),
        lambda x: x.mean((0, 1)),
    ),
    case("row_beside_positions", one("sum{..b.. | 1, ..o.. => ..b.. | ..o..}(x)"), X, X[:, 1]),
]


@pytest.mark.parametrize("case", FORMS)
def test_reducers(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.parametrize("case", LABELS)
def test_labels(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.parametrize("case", POSITIONS)
def test_positions(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.parametrize("case", ROWS)
def test_rows(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)
