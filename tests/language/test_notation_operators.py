"""Sections 5 and 6: operators, tropical products, user's ops with slots, and their gradients."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.language.programs import Case, Loader, agree, case, errors, random, slopes

M = random(2, 4, 3)
A, B = random(3, 4), random(4, 5)
X, Y = random(2, 3), random(2, 3, seed=1)
I = np.array([7, -7, 5, -5], np.int32)
J = np.array([2, 2, -3, -3], np.int32)


def two(expression: str, shape: str = "f32[2 | 3]") -> str:
    return f"routine f(x: {shape}, y: {shape}): return {expression}"


def one(expression: str, shape: str = "f32[2 | 3]") -> str:
    return f"routine f(x: {shape}): return {expression}"


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


POINTWISE = [
    case("arithmetic", two("x + y - 2 * x / y + x *. y"), X, Y, lambda x, y: x + y - 2 * x / y + x * y),
    case(
        "comparisons",
        two("(x == y) + 2 * (x != y) + 4 * (x < y) + 8 * (x <= y) + 16 * (x > y) + 32 * (x >= y)", "i32[2 | 3]"),
        np.array([[1, 2, 3], [0, 0, 0]], "i4"),
        np.array([[1, 3, 2], [0, 1, -1]], "i4"),
        lambda x, y: 1 * (x == y) + 2 * (x != y) + 4 * (x < y) + 8 * (x <= y) + 16 * (x > y) + 32 * (x >= y),
    ),
    case(
        "logic",
        two("(x > 0 and y > 0) + 2 * (x > 0 or y > 0) + 4 * (not x > 0)"),
        X,
        Y,
        lambda x, y: 1 * ((x > 0) & (y > 0)) + 2 * ((x > 0) | (y > 0)) + 4 * ~(x > 0),
    ),
    case(
        "logic_of_numbers",
        two("not x and y", "i32[4]"),
        np.array([0, 0, 5, 1], "i4"),
        np.array([0, 3, 0, 2], "i4"),
        [0, 1, 0, 0],
    ),
    case("whole_division", two("x // y", "i32[4]"), I, J, I // J),
    case("remainder", two("x % y", "i32[4]"), I, J, I % J),
    case("whole_division_of_floats", two("x // y"), X, Y, lambda x, y: np.floor(x / y)),
    case("remainder_of_floats", two("x % y"), X, Y, lambda x, y: x % y),
    case("remainder_by_a_number", one("x % 2", "i32[4]"), I, I % 2),
    case("quotient_of_ints", two("x / y", "i32[4]"), I, J, I / J),
    case("power_is_right_associative", one("x ** 2 ** 3"), X, X**8),
    case("power_binds_tighter_than_minus", one("-x ** 2"), X, -(X**2)),
    case("power_static", one("x ** 3 + x ** 0 + x ** -1"), X, X**3 + 1 + 1 / X),
    case("power_float", one("abs(x) ** 0.5"), X, np.sqrt(abs(X))),
    case("power_of_tensors", two("abs(x) ** y"), X, Y, lambda x, y: abs(x) ** y),
    case("power_of_static_base", one("2 ** x"), X, 2**X),
    case("power_of_ints", one("x ** 2", "i32[4]"), I, I**2),
    case("static_and_tensor", one("1 - x + 3 // 2 + 7 % 4 + 1 / 2"), X, 1 - X + 1 + 3 + 0.5),
    case("where", two("where(x > y, x, 0)"), X, Y, lambda x, y: np.where(x > y, x, 0)),
    case("where_of_numbers", one("where(x > 0, 1., -1.)"), X, np.where(X > 0, 1, -1)),
    case("max_and_min", two("max(x, y) - min(x, 0.1)"), X, Y, lambda x, y: np.maximum(x, y) - np.minimum(x, 0.1)),
    case("clamp", one("clamp(x, -0.5, 0.5)"), X, np.clip(X, -0.5, 0.5)),
    case("pow", one("pow(abs(x), 1.5)"), X, abs(X) ** 1.5),
    case(
        "functions",
        one("relu(x) + sigmoid(x) + tanh(x) + exp(x) + exp2(x) + sin(x) + cos(x) + abs(x) + sign(x)"),
        X,
        lambda x: (
            np.maximum(x, 0) + sigmoid(x) + np.tanh(x) + np.exp(x) + 2**x + np.sin(x) + np.cos(x) + abs(x) + np.sign(x)
        ),
    ),
    case(
        "functions_of_positive",
        one("log(x) + log2(x) + sqrt(x) + rsqrt(x) + recip(x)"),
        abs(X),
        lambda x: np.log(x) + np.log2(x) + x**0.5 + x**-0.5 + 1 / x,
    ),
    case(
        "rounding",
        one("floor(x) + 10 * ceil(x) + 100 * round(x)"),
        np.array([[0.5, 1.5, -0.5], [2.5, -1.2, 1.7]], "f"),
        lambda x: np.floor(x) + 10 * np.ceil(x) + 100 * np.round(x),
    ),
    case(
        "activations",
        one("silu(x) + softplus(x) + sat01(x)"),
        X,
        lambda x: x * sigmoid(x) + np.log1p(np.exp(x)) + np.clip(x, 0, 1),
    ),
    case(
        "softplus_far_out",
        one("softplus(x)"),
        np.array([[-100, 0, 100], [-1, 1, 50]], "f"),
        lambda x: np.logaddexp(x.astype("f8"), 0),
    ),
    case(
        "sigmoid_far_out",
        one("sigmoid(x)"),
        np.array([[-200, 0, 200], [-1, 1, 50]], "f"),
        lambda x: 1 / (1 + np.exp(-x.astype("f8"))),
    ),
    case("pipe", one("x |> relu |> sqrt"), X, np.sqrt(np.maximum(X, 0))),
    case(
        "pipe_of_instances",
        "op times[k: float](x) = k * x\nroutine f(x: f32[3]): return x |> times[2.] |> relu |> times[k = 3.]",
        random(3),
        lambda x: np.maximum(2 * x, 0) * 3,
    ),
    case(
        "einsum_binds_looser_than_product",
        "routine f(x: f32[3], y: f32[3]): return 2. * y +*{i; i => } x",
        random(3),
        random(3, seed=1),
        lambda x, y: 2 * x @ y,
    ),
    case("scalar_times_scalar", "routine f(a: f32, b: f32): return a * b + a *. b", 2.0, 3.0, 12.0),
    case(
        "scalar_scales_on_both_sides", "routine f(a: f32, x: f32[2 | 3]): return a * x + x * a", np.float32(2), X, 4 * X
    ),
    case("reduced_scalar_scales", "routine f(x: f32[2 | 3]): return sum(x) * x / max(x)", X, X.sum() * X / X.max()),
    case(
        "interleave",
        "routine f(x: f32[3], y: f32[3]): return interleave(x, y)",
        random(3),
        random(3, seed=1),
        lambda x, y: np.stack([x, y], 1).ravel(),
    ),
    case(
        "interleave_last_axis",
        "routine f(x: f32[2 | 4, 3], y: f32[2 | 4, 3]): return interleave(x, y)",
        random(2, 4, 3),
        random(2, 4, 3, seed=1),
        lambda x, y: np.stack([x, y], -1).reshape(2, 4, 6),
    ),
    case(
        "even_and_odd",
        "routine f(x: f32[2 | 6]): return even(x) - 2 * odd(x)",
        random(2, 6),
        lambda x: x[:, ::2] - 2 * x[:, 1::2],
    ),
    case("arange", "routine f(x: f32[3]): return x + arange[3]", random(3), lambda x: x + np.arange(3)),
    case("one_hot", "routine f(x: i32[3]): return one_hot[4](x)", np.array([1, 3, 0], "i4"), lambda x: np.eye(4)[x]),
    case(
        "one_hot_out_of_range",
        "routine f(x: i32[n | ]): return one_hot[2](x)",
        np.array([1, 3, -1], "i4"),
        [[0, 1], [0, 0], [0, 0]],
    ),
]

BROADCAST = [
    case(
        "middle",
        "routine f(x: f32[2, 3, 4], y: f32[4]): return x + sum{i => 0, 0, i}(y)",
        random(2, 3, 4),
        random(4),
        lambda x, y: x + y,
    ),
    case("batch_of_one_side", "routine f(x: f32[2 | 3], y: f32[3]): return x *. y", X, random(3), lambda x, y: x * y),
    case(
        "input_of_one_side",
        "routine f(x: f32[3 -> 4], y: f32[4]): return x *. y",
        random(4, 3),
        random(4),
        lambda x, y: x * y[:, None],
    ),
    case(
        "batches_of_different_length",
        "routine f(x: f32[2, 5 | 3], y: f32[2 | 3]): return x + y",
        random(2, 5, 3),
        random(2, 3),
        None,
    ),
    case("scalars", "routine f(x: f32[2 | 3], y: f32): return x + y", X, 2.0, X + 2),
    case("list", "routine f(x: f32[2 | 3]): return x + [1, 2, 3]", X, X + np.arange(1, 4)),
]

PRODUCT = [
    case(
        "matrix_vector",
        "routine f(w: f32[3 -> 4], x: f32[3]): return w * x",
        random(4, 3),
        random(3),
        lambda w, x: w @ x,
    ),
    case(
        "matrix_matrix",
        "routine f(v: f32[4 -> 2], w: f32[3 -> 4]): return v * w",
        random(2, 4),
        random(4, 3),
        lambda v, w: v @ w,
    ),
    case("batch", "routine f(w: f32[3 -> 4], x: f32[n | 3]): return w * x", random(4, 3), X, lambda w, x: x @ w.T),
    case(
        "batched_matrices",
        "routine f(w: f32[n | 3 -> 4], x: f32[n | 3]): return w * x",
        M,
        X,
        lambda w, x: np.einsum("noi,ni->no", w, x),
    ),
    case(
        "two_axes",
        "routine f(w: f32[3, 2 -> 4], x: f32[3, 2]): return w * x",
        random(4, 3, 2),
        random(3, 2),
        lambda w, x: np.einsum("oij,ij->o", w, x),
    ),
    case(
        "input_stays",
        "routine f(w: f32[3 -> 4], x: f32[5 -> 3]): return w * x",
        random(4, 3),
        random(3, 5),
        lambda w, x: w @ x,
    ),
    case(
        "left_without_input_and_scalar",
        "routine f(w: f32[4], x: f32): return w * x",
        random(4),
        2.0,
        lambda w, x: 2 * w,
    ),
    case(
        "chain",
        "routine f(a: f32[2 -> 1], b: f32[3 -> 2], c: f32[3]): return a * b * c",
        random(1, 2),
        random(2, 3),
        random(3),
        lambda a, b, c: a @ b @ c,
    ),
    case(
        "fma",
        "routine f(w: f32[3 -> 4], x: f32[n | 3], b: f32[4]): return fma(w, x, b)",
        random(4, 3),
        X,
        random(4),
        lambda w, x, b: x @ w.T + b,
    ),
    case(
        "transpose",
        "routine f(w: f32[3 -> 4], y: f32[4]): return transpose(w) * y",
        random(4, 3),
        random(4),
        lambda w, y: w.T @ y,
    ),
    case("transpose_batched", "routine f(w: f32[2 | 3 -> 4]): return transpose(w)", M, M.transpose(0, 2, 1)),
    case(
        "quadratic_form",
        "routine f(w: f32[3 -> 3], x: f32[3]): return transpose(x) * (w * x)",
        random(3, 3),
        random(3),
        lambda w, x: x @ w @ x,
    ),
    case("tuple_is_a_row", "routine f(x: f32[3]): return tensor((1., 2., 3.)) * x", random(3), lambda x: x @ [1, 2, 3]),
]

EINSUM = [
    case("matmul", "routine f(a: f32[3, 4], b: f32[4, 5]): return a +*{i, k; k, j => i, j} b", A, B, A @ B),
    case(
        "outer",
        "routine f(a: f32[3], b: f32[4]): return a +*{i; j => i, j} b",
        random(3),
        random(4),
        lambda a, b: np.outer(a, b),
    ),
    case(
        "three",
        "routine f(a: f32[2, 3], b: f32[2, 4], c: f32[2, 5]): return einsum{b, i; b, j; b, k => i, j, k}(a, b, c)",
        X,
        random(2, 4),
        random(2, 5),
        lambda a, b, c: np.einsum("bi,bj,bk->ijk", a, b, c),
    ),
    case(
        "four",
        "routine f(a: f32[2, 3], b: f32[3, 4], c: f32[4, 2], d: f32[2]): return einsum{i, j; j, k; k, l; l => i}(a, b, c, d)",
        X,
        A,
        random(4, 2),
        random(2),
        lambda a, b, c, d: a @ b @ c @ d,
    ),
    case("one", "routine f(a: f32[2, 3]): return einsum{i, j => j}(a)", X, X.sum(0)),
    case("hadamard", "routine f(a: f32[2, 3], b: f32[2, 3]): return a +*{i, j; i, j => i, j} b", X, Y, X * Y),
    case("scalar_slot", "routine f(a: f32[3], b: f32): return a +*{i; => i} b", random(3), 2.0, lambda a, b: 2 * a),
    case(
        "max_of_sums",
        "routine f(a: f32[3, 4], b: f32[4, 5]): return a @^+{i, k; k, j => i, j} b",
        A,
        B,
        (A[:, :, None] + B).max(1),
    ),
    case(
        "min_of_sums",
        "routine f(a: f32[3, 4], b: f32[4, 5]): return a @-+{i, k; k, j => i, j} b",
        A,
        B,
        (A[:, :, None] + B).min(1),
    ),
    case(
        "sum_of_sums",
        "routine f(a: f32[3, 4], b: f32[4, 5]): return a +++{i, k; k, j => i, j} b",
        A,
        B,
        (A[:, :, None] + B).sum(1),
    ),
    case("max_of_two", "routine f(a: f32[3, 4], b: f32[4]): return max{i, k; k => i}(a, b)", A, random(4), None),
    case(
        "diagonal_of_an_operand",
        "routine f(a: f32[3, 3], b: f32[3]): return a +*{i, i; i => } b",
        random(3, 3),
        random(3),
        lambda a, b: np.diag(a) @ b,
    ),
    case("same_tensor_twice", "routine f(a: f32[3, 4]): return a +*{i, k; j, k => i, j} a", A, A @ A.T),
    case("ints", "routine f(a: i32[4], b: i32[4]): return a +*{i; i => } b", I, J, I @ J),
]

SOFTMAX = """
op softmax{axes}[temperature: float = 1.](x):
    let z = x / temperature
    let e = exp(z - max{axes => collapse(axes)}(z))
    return e / sum{axes => collapse(axes)}(e)
"""


def soft(x: np.ndarray, axis: tuple[int, ...] | int) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


T = random(2, 3, 4)
SLOTS = [
    case("last", SOFTMAX + "routine f(x: f32[2 | 3, 4]): return softmax{... | i, j}(x)", T, soft(T, (1, 2))),
    case(
        "temperature",
        SOFTMAX + "routine f(x: f32[2 | 3, 4]): return softmax{... | i, j}[temperature = 2.](x)",
        T,
        soft(T / 2, (1, 2)),
    ),
    case(
        "all_labels_batch_too",
        SOFTMAX + "routine f(x: f32[2 | 3, 4]): return softmax{b | i, j}(x)",
        T,
        soft(T, (0, 1, 2)),
    ),
    case("row_kept_around", SOFTMAX + "routine f(x: f32[2 | 3, 4]): return softmax{... | ..r.., j}(x)", T, soft(T, 2)),
    case("input_row", SOFTMAX + "routine f(x: f32[2 | 3 -> 4]): return softmax{... | t -> ...}(x)", M, soft(M, 2)),
    case(
        "passed_on",
        SOFTMAX
        + "op twice{axes}(x) = softmax{axes}(softmax{axes}(x))\nroutine f(x: f32[2 | 3, 4]): return twice{... | ..r.., j}(x)",
        T,
        soft(soft(T, 2), 2),
    ),
    case(
        "two_slots",
        "op outer{a; b}(x, y) = x +*{a; b => } y\nroutine f(x: f32[3], y: f32[3]): return outer{i; i}(x, y)",
        random(3),
        random(3, seed=1),
        lambda x, y: x @ y,
    ),
    case(
        "two_slots_second_used",
        "op reduce{from; to}(x) = sum{from => to}(x)".replace("from", "before")
        + "\nroutine f(x: f32[2 | 3, 4]): return reduce{b | i, j; j | b}(x)",
        T,
        T.sum(1).T,
    ),
    case(
        "labels_stay_the_callers",
        "op total{a}(x, w):\n    return x +*{a; i => } w\nroutine f(x: f32[2], w: f32[3]): return total{i}(x, w)",
        random(2),
        random(3),
        lambda x, w: x.sum() * w.sum(),
    ),
    case(
        "slot_with_config_and_pipe",
        "op total{a}[k: float = 1.](x) = k * sum{a => }(x)\nroutine f(x: f32[2 | 3]): return total{i | j}[2.](x)",
        X,
        2 * X.sum(),
    ),
    case(
        "collapse_result",
        "op total{a}(x) = sum{a => collapse(a)}(x)\nroutine f(x: f32[2 | 3, 4]): return total{..b.. | i, j}(x)",
        T,
        T.sum((1, 2), keepdims=True),
    ),
    case(
        "slot_with_fixed_position",
        "op take{a}(x) = sum{a => }(x)\nroutine f(x: f32[2 | 3, 4]): return take{1 | 0, j}(x)",
        T,
        T[1, 0].sum(),
    ),
    case(
        "attention",
        """
        from nn import softmax
        op attention(q, k, v):
            let scores = q +*{... s | h, d; ... t | h, d => ... s | t -> h} k
            let att = softmax{... | t -> ...}(scores)
            return att +*{... s | t -> h; ... t | h, e => ... s | h, e} v
        routine f(q: f32[5 | 2, 3], k: f32[4 | 2, 3], v: f32[4 | 2, 6]): return attention(q, k, v)
     """,
        random(5, 2, 3),
        random(4, 2, 3),
        random(4, 2, 6),
        lambda q, k, v: np.einsum("sht,the->she", soft(np.einsum("shd,thd->sht", q, k), 2), v),
    ),
]


@pytest.mark.parametrize("case", POINTWISE)
def test_pointwise(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.parametrize("case", [c for c in BROADCAST if c.values[0].want is not None])
def test_broadcasting(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.parametrize("case", PRODUCT)
def test_tensor_products(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.parametrize("case", [c for c in EINSUM if c.values[0].want is not None])
def test_einsum(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.parametrize("case", SLOTS)
def test_slots_as_parameters(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "expression",
    [
        "a @^+{i, k; k, j => i, j} b",
        "a @-+{i, k; k, j => i, j} b",
        "a +++{i, k; k, j => i, j} b",
        "einsum{i, k; k, j; i => j}(a, b, sum{i, k => i}(a))",
        "einsum{i, k; k, j; i, k => j}(a, b, a)",
        "max{i, k => k}(a) *. sum{k, j => k}(b)",
        "prod{k, j => j}(b) + sum(a)",
        "logsumexp{i, k => i}(a) *. sum(b)",
        "mean{i, k => k}(a) *. max{k, j => k}(b)",
        "sum{i, 2 => i}(a) + sum{1, j => }(b)",
        "max(a, 0.1) *. sum(b) ",
        "clamp(a, -0.5, 0.5) *. min(b) ",
        "gelu(a) *. sum(tanh(b))",
        "gelu[approximate = true](a) *. sum(erf(b))",
        "softplus(a) *. sum(silu(b))",
        "abs(a) ** 1.5 *. sum(abs(b) ** 0.5)",
        "abs(a) ** sum(b)",
        "a % 0.7 *. sum(b % -0.7)",
        "where(a > 0, a ** 2, sum(b) * a)",
        "sum{i, k => i -> k}(a) *. sum(b)",
        "sum{i, k => k -> i}(a) * sum{k, j => k}(b)",
        "transpose(sum{i, k => i -> k}(a)) *. sum{k, j => }(b)",
        "interleave(a, a ** 2) *. sum(b)",
        "stop_gradient(a) *. a *. sum(b)",
        "tensor([[sum(a), max(b)], [1., sum(b)]])",
        "1 / (1 + a ** 2) + rsqrt(1 + a ** 2) + recip(2 + sin(a)) * sum(cos(b))",
        "log(1 + a ** 2) + log2(2 + a ** 2) + exp2(a) + sqrt(1 + a ** 2) * sum(exp(b))",
        "sat01(a) + relu(a) + sign(a) + floor(a) * sum(b)",
    ],
)
def test_gradients(program: Loader, expression: str) -> None:
    both = program(f"""
    routine f(a: f64[2, 3], b: f64[3, 4]):
        let loss = sum(({expression}) ** 2 + 1.5 * ({expression}))
        update(loss)
        return loss, a.grad, b.grad
    routine g(a: f64[2, 3], b: f64[3, 4]):
        return sum(({expression}) ** 2 + 1.5 * ({expression}))
    """)
    a, b = random(2, 3, dtype="f8"), random(3, 4, dtype="f8")
    gradients = both.f(a, b)[1:]
    if "stop_gradient" in expression:
        total, x = b.sum(), a * a * b.sum()
        agree(tuple(gradients), ((2 * x + 1.5) * a * total, np.full_like(b, ((2 * x + 1.5) * a * a).sum())))
        return
    agree(tuple(gradients), tuple(slopes(both.modules[1].g, a, b)), 1e-5, 1e-6)


def test_ties_share_the_gradient(program: Loader) -> None:
    both = program("""
    routine pool(x: f64[2, 4]):
        let loss = sum([1., 10.] *. max{i, j => i}(x))
        update(loss)
        return x.grad
    routine pair(x: f64[3], y: f64[3]):
        let loss = sum(max(x, y) + 10 * min(x, y))
        update(loss)
        return x.grad, y.grad
    routine tropical(a: f64[2, 2], b: f64[2]):
        let loss = sum(a @^+{i, k; k => i} b)
        update(loss)
        return a.grad, b.grad
    routine whole(x: f64[4]):
        let loss = min(x)
        update(loss)
        return x.grad
    routine windows(x: f64[4]):
        dim k = 3
        let loss = sum(max{o =+ k => o}(x))
        update(loss)
        return x.grad
    routine kinks(x: f64[3]):
        let loss = sum(relu(x) + 10 * abs(x) + 100 * sign(x))
        update(loss)
        return x.grad
    """)
    agree(both.pool(np.array([[1.0, 2, 2, 0], [3, 3, 3, 3]])), [[0, 0.5, 0.5, 0], [2.5, 2.5, 2.5, 2.5]])
    agree(both.pair(np.array([1.0, 2, 3]), np.array([1.0, 3, 2])), ([5.5, 10, 1], [5.5, 1, 10]))
    agree(both.tropical(np.array([[1.0, 2], [0, 5]]), np.array([1.0, 0])), ([[0.5, 0.5], [0, 1]], [0.5, 1.5]))
    agree(both.whole(np.array([2.0, 1, 1, 1])), [0, 1 / 3, 1 / 3, 1 / 3])
    agree(both.windows(np.array([1.0, 1, 0, 0])), [0.5 + 0.5, 0.5 + 0.5 + 1, 0.5, 0.5])
    agree(both.kinks(np.array([-1.0, 0, 1])), [-10, 0, 11])


def test_argmax_has_no_gradient(program: Loader) -> None:
    both = program("""
    routine f(x: f32[3]):
        let loss = sum(x *. argmax{i => }(x))
        update(loss)
        return loss, x.grad
    """)
    agree(both.f(np.array([1, 5, 2], "f")), (8.0, [1, 1, 1]))


@pytest.mark.parametrize(
    "text, code",
    [
        ("routine f(a: f32[3, 4], b: f32[5, 2]): return a +*{i, k; k, j => i, j} b", "E0401"),
        ("routine f(a: f32[3, 4]): return sum{i => i}(a)", "E0402"),
        ("routine f(a: f32[3 | 4]): return sum{i, j => j}(a)", "E0403"),
        ("routine f(a: f32[3]): return sum{i => ..., i}(a)", "E0409"),
        ("routine f(a: f32[3]): return sum{i, 3 => i}(sum{i => i, 0}(a)) + sum{3 => }(a)", "E0408"),
        ("routine f(a: f32[3]): return sum{3 => }(a)", "E0408"),
        ("routine f(a: f32[3, 4]): return permute{i, j => i}(a)", "E0409"),
        ("routine f(a: f32[3, 4]): return argmax{i, j => }(a)", "E0409"),
        ("routine f(a: f32[3, 4], b: f32[4]): return a * b", "E0405"),
        ("routine f(a: f32[3], b: f32[4]): return a + b", "E0401"),
    ],
)
def test_faults(text: str, code: str, tmp_path: Path) -> None:
    found = errors(text, tmp_path)
    assert code in [c for c, _ in found], found
