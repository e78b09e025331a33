"""Section 7: routines: inputs, sizes, results, config, several of them; ops and their arguments (section 4)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.language.programs import Loader, agree, errors, random

X = random(2, 3)


def test_sizes_are_fixed_by_calls(program: Loader) -> None:
    both = program("""
    routine f(x: f32[n | m], y: f32[m], k: f32[n]): return x *. y + sum(k) / (n * m)
    routine rows(x: f32[..b.. | ..o..]): return x / (b * o)
    routine same(x: f32[n], y: f32[n]): return x + y
    routine fixed(x: f32[n, 2 | 3]): return sum{i, j | k => i | }(x)
    routine empty(x: f32[n | 3]): return sum(x), x + 1, sum{i | j => j}(x)
    """)
    for n, m in [(2, 3), (1, 1), (4, 2), (2, 3)]:
        x, y, k = random(n, m), random(m), random(n)
        agree(both.f(x, y, k), x * y + k.sum() / (n * m))
    agree(both.fixed(random(4, 2, 3)), random(4, 2, 3).sum((1, 2)))
    agree(both.same(random(4), random(4, seed=1)), random(4) + random(4, seed=1))
    with pytest.raises(ValueError, match="3"):
        both.same(random(3), random(4))
    agree(both.empty(np.zeros((0, 3), "f4")), (0, np.zeros((0, 3)), [0, 0, 0]))


def test_config_and_training(program: Loader) -> None:
    both = program("""
    let scale = 3.
    op mode(x) = if training then 2 * x else x
    routine f[k: int = 2, up: bool = true](x: f32[3]): return (if up then k * x else x / k) * scale
    routine train[training = true](x: f32[3]): return mode(x)
    routine apply(x: f32[3]): return mode(x)
    """)
    x = random(3)
    agree((both.f(x), both.train(x), both.apply(x)), (6 * x, 2 * x, x))


def test_index_and_scalar_inputs(program: Loader) -> None:
    both = program("""
    routine f(x: f32[n | 3], i: index[n], k: f32, c: i32): return x[i] * k + i * c
    routine g(i: index[4]): return one_hot[4](i), i + 1
    routine only(a: f64, b: f64): return a * b, a / b, a > b, max(a, b)
    """)
    x = random(4, 3)
    agree(both.f(x, 2, 0.5, 3), x[2] * 0.5 + 6)
    agree(both.g(3), ([0, 0, 0, 1], 4))
    agree(both.only(3.0, 2.0), (6, 1.5, 1, 3))
    with pytest.raises(ValueError):
        both.f(x, 4, 0.5, 3)


def test_data(program: Loader, tmp_path: Path) -> None:
    images, labels = random(5, 4, 3), np.arange(20, dtype="i4").reshape(5, 4)
    np.save(tmp_path / "images.npy", images)
    np.save(tmp_path / "labels.npy", labels)
    both = program("""
    data images: f32[5, 4 | 3] = read_array("images.npy")
    data labels: i32[_, 4 | ] = read_array("labels.npy")
    let w = [1., 2., 3.]
    routine f(i: index[5]): return images[i] *. w, labels[i]
    routine all(): return sum{i, j | k => k}(images), sum(labels)
    """)
    agree(both.f(3), (images[3] * [1, 2, 3], labels[3]))
    agree(both.all(), (images.sum((0, 1)), labels.sum()))


def test_arguments_of_ops(program: Loader) -> None:
    both = program("""
    op add(x, y = none, times: float = 2.): return if y is none then x else x + times * y
    op affine(x: [..b.. | d], w: [d -> e], b: [e] = none) -> [..b.. | e]:
        let y = w * x
        if b is not none: return y + b
        return y
    op pair(x): return x, 2 * x
    op third[n: int, k: int = 3](x) = (n + k) * x
    op apply[f: op](x) = f(x)
    op compose[f: op, g: op](x) = g(f(x))
    op short(x) = x + 1
    routine a(x: f32[3], y: f32[3]): return add(x), add(x, y), add(x, y, 3.), add(y = x, x = y)
    routine b(x: f32[n | 3], w: f32[3 -> 2], c: f32[2]): return affine(x, w), affine(x, w, c), affine(x, w, b = c)
    routine c(x: f32[3]):
        let p, q = pair(x)
        let r, s = pair(q)
        return p, q, s
    routine d(x: f32[3]): return third[1](x), third[1, 2](x), third[k = 1, n = 1](x), third[n = 5](x)
    routine e(x: f32[3]): return apply[relu](x), compose[short, relu](x), apply[third[2]](x), apply[compose[relu, short]](x)
    routine g(x: f32[3]):
        let t = third[1]
        let fs = [short, t, relu]
        var y = x
        for f in fs: y = f(y)
        return y
    """)
    x, y = random(3), random(3, seed=1)
    agree(both.a(x, y), (x, x + 2 * y, x + 3 * y, y + 2 * x))
    w, c = random(2, 3), random(2)
    agree(both.b(X, w, c), (X @ w.T, X @ w.T + c, X @ w.T + c))
    agree(both.c(x), (x, 2 * x, 4 * x))
    agree(both.d(x), (4 * x, 3 * x, 2 * x, 8 * x))
    relu = np.maximum(x, 0)
    agree(both.e(x), (relu, np.maximum(x + 1, 0), 5 * x, relu + 1))
    agree(both.g(x), np.maximum(4 * (x + 1), 0))


def test_recursion_with_a_static_end(program: Loader) -> None:
    both = program("""
    op power[n: int](x):
        if n == 0: return 1.
        return x *. power[n - 1](x)
    fn factorial(n: int) -> int: return if n < 2 then 1 else n * factorial(n - 1)
    routine f(x: f32[3]): return power[3](x) * factorial(4)
    op tree[depth: int](x) = if depth == 0 then {w: [3] = 1.} *. x else tree[depth - 1](x) + tree[depth - 1](x)
    routine g(x: f32[3]): return tree[2](x)
    """)
    x = random(3)
    agree(both.f(x), x**3 * 24)
    agree(both.g(x), 4 * x)
    assert len(both.paths) == 4


def test_results(program: Loader) -> None:
    both = program("""
    routine none_at_all(x: f32[3]):
        state s: f32[3]
        s += x
    routine same_twice(x: f32[3]): return x, x, x
    routine constants(): return 1, 2.5, [1, 2]
    routine typed(x: f32[3]) -> (f32[3], f32): return 2 * x, sum(x)
    routine of_a_list(x: f32[3]): return [x, 2 * x]
    routine dead(x: f32[3]):
        let unused = exp(x) / 0.
        return x
    """)
    x = random(3)
    assert both.modules[0].none_at_all(x) is None
    agree(both.same_twice(x), (x, x, x))
    agree(both.constants(), (1, 2.5, [1, 2]))
    agree(both.typed(x), (2 * x, x.sum()))
    agree(both.of_a_list(x), np.stack([x, 2 * x]))
    agree(both.dead(x), x)


def test_values_of_the_module_are_shared(program: Loader) -> None:
    both = program("""
    op dense[out: int](x) = {w: [... -> out]} * x
    let net = dense[2]
    let doubled = 2 * 3
    routine f(x: f32[n | 3]): return net(x) * doubled
    routine step(x: f32[n | 3]):
        let loss = sum(net(x))
        update(loss)
        for p in params(loss): p -= p.grad
    """)
    w = random(2, 3)
    both["net.w"] = w
    agree(both.f(X), 6 * X @ w.T)
    for m in both.modules:
        m.step(X)
    agree(both.f(X), 6 * X @ (w - X.sum(0)).T)


def test_symbolic_sizes(program: Loader) -> None:
    both = program("""
    op scores(q: [..s.. | d], k: [..t.. | d]):
        return q +*{..s.. | d; ..t.. | d => ..s.. | ..t..} k / sqrt(d)
    op split(x: [... | d]):
        let half = d // 2
        return sum{... | (half)^r => ... | r}(x)
    op twice(x: [... | d]) -> [... | (2 * d)]:
        return concat{... | a; ... | b => ... | a^b}(x, x)
    op grow(x: [... | d]) = {w: [d -> (2 * d)] = 1.} * x
    op mean_of(x):
        row r
        let y: [..r..] = x
        return sum(y) / r
    routine a(q: f32[n | d], k: f32[m | d]): return scores(q, k)
    routine b(x: f32[n | e]): return split(x), twice(x)
    routine c(x: f32[n | 3]): return grow(x)
    routine g(x: f32[2, 3]): return mean_of(x)
    routine h(x: f32[n | m]):
        dim k = 2
        return x[0:n - 1] * k + m
    routine ratio(x: f32[n | m]): return x *. (n / m) + min(n, m) - max(n, 2) ** 2
    """)
    q, k = random(2, 4), random(3, 4)
    agree(both.a(q, k), q @ k.T / 2)
    agree(both.b(random(2, 5)), (random(2, 5)[:, 2:], np.tile(random(2, 5), (1, 2))))
    agree(both.c(X), np.tile(X.sum(1, keepdims=True), (1, 6)))
    agree(both.g(X), X.mean())
    agree(both.h(random(4, 3)), random(4, 3)[:-1] * 2 + 3)
    agree(both.ratio(random(4, 3)), random(4, 3) * 4 / 3 + 3 - 16)


def test_shapes_of_arguments_are_static(program: Loader) -> None:
    both = program("""
    op doubles_matrices(x): return if len(x.shape) == 2 then 2 * x else x
    op counted(x) = x * len(x) + x.shape[1]
    op wide(x): return if x.precision == "f64" then 2 * x else x
    op unrolled(x):
        dim n
        let rows: [n | ...] = x
        var s = 0.
        for i in 0..n: s = (s + x[i]) * 2
        return s
    routine f(x: f32[2 | 3], y: f64[3]):
        return doubles_matrices(x), doubles_matrices(y), counted(x), wide(x), wide(y), unrolled(x)
    """)
    y = random(3, dtype="f8")
    agree(both.f(X, y), (2 * X, y, 2 * X + 3, X, 2 * y, 4 * X[0] + 2 * X[1]))


@pytest.mark.parametrize(
    "text, code",
    [
        ("routine f(x: f32[n | 3]):\n    var y = x\n    for i in 0..n: y = y + 1\n    return y", "E0702"),
        ("routine f(x: f32[n | 3]): return if n > 2 then x else 2 * x", "E0702"),
        ("routine f(x: f32[n | 3], y: f32[m | 3]): return x + y", "E0401"),
        ("routine f(x: f32[n | 3], w: f32[4 -> 2]): return w * x", "E0401"),
        ("routine f(x: f32[n | m]): return x + {b: [3]}", "E0401"),
        ("routine f(x: f32[3]) -> f32[4]: return x", "E0412"),
        ("routine f(x): return x", "E0302"),
        ("op g(x, y) = x + y\nroutine f(x: f32[3]): return g(x)", "E0302"),
        ("op g[k: int](x) = k * x\nroutine f(x: f32[3]): return g[1.5](x)", "E0301"),
        ("op g(x) = x\nroutine f(x: f32[3]): return g[3](x)", "E0302"),
    ],
)
def test_faults(text: str, code: str, tmp_path: Path) -> None:
    assert code in [c for c, _ in errors(text, tmp_path)]
