"""Section 10: random numbers."""

from __future__ import annotations

import numpy as np

from tests.language.programs import Loader, agree, random


def test_draws_have_their_distributions(program: Loader) -> None:
    both = program("""
    routine f() -> (f32[100, 100], f32[100, 100], f32[100, 100], f32[100, 100]):
        return uniform(), normal(), bernoulli(0.3), uniform(-2., 4.)
    """)
    u, n, b, w = both.f()
    assert u.min() >= 0 and u.max() < 1 and abs(u.mean() - 0.5) < 0.01 and abs(u.var() - 1 / 12) < 0.003
    assert abs(n.mean()) < 0.03 and abs(n.std() - 1) < 0.02 and abs((n**4).mean() - 3) < 0.3
    assert set(np.unique(b)) == {0.0, 1.0} and abs(b.mean() - 0.3) < 0.02
    assert w.min() >= -2 and w.max() < 4 and abs(w.mean() - 1) < 0.06
    assert abs(np.corrcoef(u[:-1].ravel(), u[1:].ravel())[0, 1]) < 0.03


def test_seed_place_and_call_count(program: Loader) -> None:
    text = """
    op noise(x) = x + uniform()
    routine f(x: f32[5]): return noise(x), noise(x)
    routine g(x: f32[5]): return noise(x)
    routine h(x: f32[5]): return x + normal(), x + normal()
    """
    zeros = np.zeros(5, "f4")
    a, b, c = program(text), program(text), program(text, seed=7)
    first, other = a.f(zeros)
    assert not np.array_equal(first, other), "two places"
    agree(b.f(zeros), (first, other), 0, 0)
    second, _ = a.f(zeros)
    assert not np.array_equal(first, second), "the call count"
    agree(b.f(zeros)[0], second, 0, 0)
    assert not np.array_equal(c.f(zeros)[0], first), "the seed"
    assert not np.array_equal(a.g(zeros), first), "another routine"
    p, q = a.h(zeros)
    assert not np.array_equal(p, q)


def test_counters(program: Loader) -> None:
    both = program("""
    routine f(c: i32) -> f32[4]: return uniform(counter = c)
    routine fixed() -> f32[4]: return normal(counter = 3)
    routine stated() -> f32[4]:
        state c: i32
        c += 1
        return uniform(counter = c)
    """)
    a, b, again = both.f(1), both.f(2), both.f(1)
    agree(a, again, 0, 0)
    assert not np.array_equal(a, b)
    agree(both.fixed(), both.fixed(), 0, 0)
    assert not np.array_equal(both.stated(), both.stated())


def test_a_draw_is_one_value_and_its_shape_is_inferred(program: Loader) -> None:
    both = program("""
    routine f(x: f32[n | 3]):
        let u = uniform()
        let y = x + u
        return y - x, u + 0 * x, normal() + x[0]
    routine loop(x: f32[2]):
        var s = []
        for i in 0..3: s += [x + uniform()]
        return tensor(s)
    """)
    x = random(4, 3)
    a, b, c = both.f(x)
    agree(a, b, 1e-5, 1e-5)
    assert len(np.unique(np.round(a, 4))) == 12 and c.shape == (3,)
    assert len(np.unique(both.loop(np.zeros(2, "f4")))) == 6, "turns of a loop are places"


def test_dropout(program: Loader) -> None:
    both = program("""
    from nn import dropout
    routine train[training = true](x: f32[n | 100]):
        let y = dropout[0.25](x)
        let loss = sum(y)
        update(loss)
        return y, x.grad
    routine apply(x: f32[n | 100]): return dropout[0.25](x)
    """)
    x = np.ones((20, 100), "f4")
    y, gradient = both.train(x)
    kept = y != 0
    assert abs(kept.mean() - 0.75) < 0.04
    agree(y, kept / 0.75)
    agree(gradient, kept / 0.75)
    agree(both.apply(x), x)
    assert not np.array_equal(both.train(x)[0], y)


def test_initial_values_depend_on_path_and_seed(program: Loader) -> None:
    text = """
    op dense(x) = {w: [3 -> 3]} * x
    let a, b = dense, dense
    routine f(x: f32[3]): return a(b(x))
    """
    one, two, other = program(text), program(text), program(text, seed=1)
    for p in (one, two, other):
        p.f(random(3))
    agree(one["a.w"], two["a.w"], 0, 0)
    assert not np.array_equal(one["a.w"], one["b.w"])
    assert not np.array_equal(one["a.w"], other["a.w"])
