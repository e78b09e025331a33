"""Section 6: concatenations in results and operands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.language.programs import Case, Loader, agree, case, errors, random, slopes

A, B, C = random(2, 3), random(4, 3), random(1, 3)
V2, V3, V4 = random(2), random(3), random(4)


def cat(*parts: Any) -> np.ndarray:
    return np.concatenate(parts)


CASES = [
    case("two", "routine f(a: f32[2, 3], b: f32[4, 3]): return concat{x, ...; y, ... => x^y, ...}(a, b)", A, B, cat),
    case(
        "three",
        "routine f(a: f32[2, 3], b: f32[4, 3], c: f32[1, 3]): return concat{x, i; y, i; z, i => x^y^z, i}(a, b, c)",
        A,
        B,
        C,
        cat,
    ),
    case(
        "last_axis",
        "routine f(a: f32[3 | 2], b: f32[3 | 4]): return concat{... | x; ... | y => ... | x^y}(a, b)",
        random(3, 2),
        random(3, 4),
        lambda a, b: np.concatenate([a, b], 1),
    ),
    case(
        "batch",
        "routine f(a: f32[2 | 3], b: f32[4 | 3]): return concat{x | ...; y | ... => x^y | ...}(a, b)",
        A,
        B,
        cat,
    ),
    case(
        "input",
        "routine f(a: f32[2 -> 3], b: f32[4 -> 3]): return concat{x -> o; y -> o => x^y -> o}(a, b)",
        random(3, 2),
        random(3, 4),
        lambda a, b: np.concatenate([a, b], 1),
    ),
    case("of_one", "routine f(a: f32[2]): return concat{x => x}(a)", V2, V2),
    case("same_twice", "routine f(a: f32[2]): return concat{x; x => x^x}(a, a)", V2, None),
    case(
        "repeats_what_lacks_the_row",
        "routine f(a: f32[2 | 3], b: f32[4]): return concat{n | x; y => n | x^y}(a, b)",
        random(2, 3),
        V4,
        lambda a, b: np.concatenate([a, np.tile(b, (2, 1))], 1),
    ),
    case(
        "block_matrix",
        "routine f(a: f32[2, 3], b: f32[2, 1], c: f32[4, 3], d: f32[4, 1]): return concat{i, j; i, l; k, j; k, l => i^k, j^l}(a, b, c, d)",
        A,
        random(2, 1),
        B,
        random(4, 1),
        lambda a, b, c, d: np.block([[a, b], [c, d]]),
    ),
    case(
        "block_diagonal",
        "routine f(a: f32[2, 3], b: f32[4, 1]): return concat{i, j; k, l => i^k, j^l}(a, b)",
        A,
        random(4, 1),
        lambda a, b: np.block([[a, np.zeros((2, 1))], [np.zeros((4, 3)), b]]),
    ),
    case(
        "with_literal_gap",
        "routine f(a: f32[2], b: f32[3]): return concat{x; y => x^2^y}(a, b)",
        V2,
        V3,
        lambda a, b: cat(a, np.zeros(2), b),
    ),
    case("drop", "routine f(x: f32[4]): return sum{1^rest => rest}(x)", V4, V4[1:]),
    case("drop_all", "routine f(x: f32[4]): return sum{4^rest => rest}(x)", V4, V4[4:]),
    case("drop_none", "routine f(x: f32[4]): return sum{0^rest => rest}(x)", V4, V4),
    case("take", "routine f(x: f32[4]):\n    dim a = 3\n    return sum{a^_ => a}(x)", V4, V4[:3]),
    case("middle", "routine f(x: f32[4]): return sum{1^m^2 => m}(x)", V4, V4[1:2]),
    case("size_by_expression", "routine f(x: f32[4]):\n    let k = 1\n    return sum{(k + 1)^m => m}(x)", V4, V4[2:]),
    case(
        "size_by_config",
        "op skip[k: int](x) = sum{... | (k)^m => ... | m}(x)\nroutine f(x: f32[2 | 3]): return skip[2](x)",
        A,
        A[:, 2:],
    ),
    case("size_of_a_name_is_a_label", "routine f(x: f32[4]):\n    dim k = 1\n    return sum{k^m => m}(x)", V4, V4[1:]),
    case("sum_of_halves", "routine f(x: f32[4]):\n    dim a = 1\n    return sum{a^b => b}(x) + 1", V4, V4[1:] + 1),
    case("sum_of_a_part_of_both", "routine f(x: f32[4, 3]): return sum{1^i, 2^j => i, j}(x)", B, B[1:, 2:]),
    case("pad", "routine f(x: f32[2]): return sum{i => 1^i^2}(x)", V2, np.pad(V2, (1, 2))),
    case("pad_two_axes", "routine f(x: f32[2, 3]): return sum{i, j => 1^i, j^2}(x)", A, np.pad(A, ((1, 0), (0, 2)))),
    case("pad_max", "routine f(x: f32[2]): return max{i => 1^i}(x)", V2, np.pad(V2, (1, 0), constant_values=-np.inf)),
    case("pad_prod", "routine f(x: f32[2]): return prod{i => i^1}(x)", V2, np.pad(V2, (0, 1), constant_values=1)),
    case("pad_by_type", "routine f(x: f32[2]) -> f32[5]: return sum{i => i^_}(x)", V2, np.pad(V2, (0, 3))),
    case("shift", "routine f(x: f32[4]): return sum{i^1 => 1^i}(x)", V4, cat([0], V4[:3])),
    case("rotate", "routine f(x: f32[4]): return sum{i^1 => 1^i}(x) + sum{3^i => i^3}(x)", V4, np.roll(V4, 1)),
    case(
        "both_sides",
        "routine f(x: f32[4], y: f32[3]): return einsum{1^i; j => i, j^2}(x, y)",
        V4,
        V3,
        lambda x, y: np.outer(x[1:], np.pad(y, (0, 2))),
    ),
    case(
        "operands_of_a_product",
        "routine f(x: f32[6], y: f32[4]): return einsum{2^b; b => }(x, y)",
        random(6),
        V4,
        lambda x, y: x[2:] @ y,
    ),
    case(
        "concatenation_contracts",
        "routine f(w: f32[5], x: f32[2], y: f32[3]): return w *. concat{x; y => x^y}(x, y)",
        random(5),
        V2,
        V3,
        lambda w, x, y: w * cat(x, y),
    ),
    case(
        "split_and_join",
        "routine f(x: f32[6]):\n    dim a = 2\n    let p, q = sum{a^b => a}(x), sum{a^b => b}(x)\n    return concat{b; a => b^a}(q, p)",
        random(6),
        lambda x: cat(x[2:], x[:2]),
    ),
    case(
        "nested_concatenation",
        "routine f(a: f32[2], b: f32[3], c: f32[4]): return concat{u; v => u^v}(concat{x; y => x^y}(a, b), c)",
        V2,
        V3,
        V4,
        cat,
    ),
    case(
        "size_from_the_result_type",
        "routine f(x: f32[6]) -> f32[2]: return sum{a^r => r}(x)",
        random(6),
        lambda x: x[4:],
    ),
    case(
        "of_a_scalar_axis",
        "routine f(x: f32[3], y: f32): return concat{a; b => a^b}(x, tensor([y]))",
        V3,
        np.float32(2),
        lambda x, y: cat(x, [y]),
    ),
    case(
        "windows_over_a_concatenation",
        "routine f(x: f32[4], k: f32[2]): return sum{i => 1^i}(x) +*{o + k; k => o} k",
        V4,
        V2,
        lambda x, k: np.convolve(np.pad(x, (1, 0)), k[::-1], "valid"),
    ),
    case(
        "ints",
        "routine f(a: i32[2], b: i32[1]): return concat{x; y => x^y}(a, b)",
        np.array([1, 2], np.int32),
        np.array([3], np.int32),
        cat,
    ),
    case("empty_part", "routine f(a: f32[2], b: f32[0]): return concat{x; y => x^y}(a, b)", V2, np.zeros(0, "f"), cat),
    case(
        "unknown_sizes",
        "routine f(a: f32[n | 2], b: f32[m | 2]): return concat{x | ...; y | ... => x^y | ...}(a, b)",
        random(3, 2),
        random(1, 2),
        cat,
    ),
    case(
        "unknown_sizes_typed",
        "routine f(a: f32[n | 2], b: f32[m | 2]) -> f32[(n + m) | 2]: return concat{x | ...; y | ... => x^y | ...}(a, b)",
        random(3, 2),
        random(1, 2),
        cat,
    ),
]


@pytest.mark.parametrize("case", [c for c in CASES if c.values[0].want is not None])
def test_values(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


def test_a_label_is_as_long_in_each_part(program: Loader) -> None:
    both = program("routine f(a: f32[2]): return concat{x; y => x^y}(a, a)")
    agree(both.f(V2), cat(V2, V2))


def test_one_routine_many_sizes(program: Loader) -> None:
    both = program("routine f(a: f32[n], b: f32[m]) -> f32[_]: return concat{x; y => x^y}(a, b)")
    for n, m in [(2, 3), (0, 3), (2, 0), (1, 1), (2, 3)]:
        a, b = random(n), random(m)
        agree(both.f(a, b), cat(a, b))


@pytest.mark.parametrize(
    "expression",
    [
        "concat{x; y => x^y}(a, b) ** 2",
        "concat{x; y => x^2^y}(a, b) ** 2",
        "einsum{1^i; 2^j => i, j}(a, b) ** 2",
        "sum{i^1 => 1^i}(a) *. a",
        "max{1^i => }(concat{x; y => x^y}(a, b)) * sum(a)",
        "logsumexp{2^x => }(concat{x; y => x^y}(a, b))",
        "prod{i => }(concat{x; y => x^y}(a, b))",
    ],
)
def test_gradients(program: Loader, expression: str) -> None:
    both = program(f"""
    routine f(a: f64[3], b: f64[4]):
        let loss = sum({expression}) + sum(b)
        update(loss)
        return loss, a.grad, b.grad
    """)
    a, b = random(3, dtype="f8"), random(4, dtype="f8")
    gradients = both.f(a, b)[1:]
    agree(gradients, tuple(slopes(lambda *v: both.modules[1].f(*v)[0], a, b)))


@pytest.mark.parametrize(
    "text",
    [
        "routine f(a: f32[2, 3], b: f32[4, 5]): return concat{x, i; y, i => x^y, i}(a, b)",
        "routine f(x: f32[4]): return sum{5^r => r}(x)",
        "routine f(a: f32[2], b: f32[3]) -> f32[6]: return concat{x; y => x^y}(a, b)",
    ],
)
def test_sizes_that_do_not_fit(text: str, tmp_path: Path) -> None:
    found = errors(text, tmp_path)
    assert found and all(code in ("E0401", "E0412") for code, _ in found), found
