"""Section 7: assignments, their order, and index notation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.language.programs import Loader, agree, errors, random


def test_accumulating_operators(program: Loader) -> None:
    both = program("""
    routine f(x: f32[3]):
        state s: f32[3] = 2.
        s += x
        s -= 1
        s *= x
        s /= 2
        s **= 2
        s max= 0.5
        s min= 4.
        return s
    routine logic(x: i32[4]):
        state a: u8[4] = 1
        state b: u8[4] = 0
        a and= x > 0
        b or= x > 1
        return a, b
    routine fresh(x: f32[3]):
        state s: f32[3] = 7.
        state p: f32[3] = 7.
        state m: f32[3] = 7.
        s :+= x
        p :*= x
        m :max= x
        return s, p, m
    routine fresh_minus(x: f32[3]):
        state s: f32[3] = 7.
        state m: f32[3] = 7.
        s :-= x
        m :min= x
        return s, m
    """)
    x = random(3)
    s = np.full(3, 2.0)
    for _ in range(2):
        s = np.minimum(np.maximum(((s + x - 1) * x / 2) ** 2, 0.5), 4)
        agree(both.f(x), s)
    agree(both.logic(np.array([0, 1, 2, -1], "i4")), ([0, 1, 1, 0], [0, 0, 1, 0]))
    agree(both.logic(np.array([5, 0, 0, 2], "i4")), ([0, 0, 0, 0], [1, 0, 1, 1]))
    agree(both.fresh(x), (x, x, x))
    agree(both.fresh_minus(x), (-x, x))


def test_index_notation(program: Loader) -> None:
    both = program("""
    cd product(c, a, b): c{i, j} :+= a{i, k} *. b{k, j}
    routine matmul(a: f32[3, 4], b: f32[4, 5]):
        state c: f32[3, 5]
        product(c, a, b)
        return c
    routine adds(a: f32[3, 4], b: f32[4, 5]):
        state c: f32[3, 5] = 1.
        c{i, j} += a{i, k} *. b{k, j}
        return c
    routine tropical(a: f32[3, 4], b: f32[4, 5]):
        state c: f32[3, 5]
        c{i, j} :max= a{i, k} + b{k, j}
        return c
    routine largest(p: f32[2 | 3 -> 4]):
        state best: f32[2 | ] = -100.
        best{... | } max= p{... | i -> o}
        return best
    routine expression(a: f32[3], b: f32[4], k: f32):
        state c: f32[3, 4]
        c{i, j} := relu(a{i} - 2 * b{j}) *. k + exp(a{i}) ** 2
        return c
    routine ones(a: f32[3]):
        state c: f32[2, 3]
        c{j, i} := a{i}
        return c
    routine counts():
        state c: f32[2, 3] = 5.
        c{j, i} += 1.
        return c
    routine diagonal(a: f32[3]):
        state c: f32[3, 3] = 9.
        c{i, i} := a{i}
        return c
    routine fresh_diagonal(a: f32[3]):
        state c: f32[3, 3] = 9.
        c{i, i} :+= a{i}
        return c
    routine corner(a: f32[3]):
        state c: f32[3, 3] = 9.
        c{1, i} := a{i}
        c{i, 2} += 1.
        return c
    routine strided(a: f32[3]):
        state c: f32[6] = 9.
        c{2*i + 1} := a{i}
        return c
    routine window(a: f32[3], k: f32[2]):
        state c: f32[4] = 1.
        c{i + j} += a{i} *. k{j}
        return c
    routine gather(a: f32[6]):
        state c: f32[3]
        c{i} := a{2*i}
        return c
    routine convolution(x: f32[5], k: f32[3]):
        state c: f32[5]
        c{o} :+= x{o =+ k} *. k{k}
        return c
    routine pool(x: f32[6]):
        state c: f32[3]
        dim k = 2
        c{o} :max= x{2*o + k}
        return c
    routine prefix(x: f32[2]):
        state t: f32[5] = 1.
        t{a^b} := x{a}
        return t
    routine suffix(x: f32[2]):
        state t: f32[5] = 1.
        t{a^b} += x{b}
        return t
    routine transposed(x: f32[2 | 3]):
        state t: f32[2 -> 3]
        t{i -> o} := x{i | o}
        return t
    """)
    a, b, x = random(3, 4), random(4, 5), random(3)
    for _ in range(2):
        agree(both.matmul(a, b), a @ b)
        agree(both.tropical(a, b), (a[:, :, None] + b).max(1))
    agree(both.adds(a, b), 1 + a @ b)
    agree(both.adds(a, b), 1 + 2 * a @ b)
    p = random(2, 4, 3)
    agree(both.largest(p), p.max((1, 2)))
    agree(both.largest(p - 1), p.max((1, 2)))
    y = random(4)
    agree(both.expression(x, y, 3.0), np.maximum(x[:, None] - 2 * y, 0) * 3 + np.exp(x[:, None]) ** 2)
    agree(both.ones(x), np.stack([x, x]))
    agree(both.counts(), np.full((2, 3), 6))
    nines = np.full((3, 3), 9.0)
    agree(both.diagonal(x), np.where(np.eye(3) > 0, x, nines))
    agree(both.fresh_diagonal(x), np.diag(x))
    corner = nines.copy()
    corner[1] = x
    corner[:, 2] += 1
    agree(both.corner(x), corner)
    agree(both.strided(x), np.stack([[9] * 3, x], 1).ravel())
    k = random(2)
    agree(both.window(x, k), 1 + np.convolve(x, k))
    z = random(6)
    agree(both.gather(z), z[::2])
    agree(both.convolution(random(5), random(3)), np.convolve(random(5), random(3)[::-1], "same"))
    agree(both.pool(z), z.reshape(3, 2).max(1))
    agree(both.prefix(k), [*k, 1, 1, 1])
    agree(both.suffix(k), [1, 1, 1, *(1 + k)])
    agree(both.transposed(random(2, 3)), random(2, 3).T)


def test_a_cache_is_written_at_one_position(program: Loader) -> None:
    both = program("""
    routine f(k: f32[2 | 3], pos: index[4]):
        state cache: f32[2, 4 | 3]
        cache{b, (pos) | ...} := k{b | ...}
        return cache
    """)
    k = random(2, 3)
    want = np.zeros((2, 4, 3))
    for pos in [2, 0, 2]:
        want[:, pos] = k * (pos + 1)
        agree(both.f(k * (pos + 1), pos), want)


def test_the_order_of_the_text(program: Loader) -> None:
    both = program("""
    routine swap(x: f32[3]):
        state a: f32[3]
        state b: f32[3] = 1.
        let old = a
        a := b
        b := old + x
        return a, b, old
    routine reads_before_writing(x: f32[3]):
        state a: f32[3] = 1.
        a := a + a * 2 + x
        return a
    routine backwards():
        state a: f32[4] = [1, 2, 3, 4]
        a{i^1} := a{1^i}
        return a
    routine forwards():
        state a: f32[4] = [1, 2, 3, 4]
        a{1^i} := a{i^1}
        return a
    routine transposes():
        state a: f32[2, 2] = [[1, 2], [3, 4]]
        a{i, j} := a{j, i}
        return a
    routine keeps(x: f32[3]):
        state a: f32[3] = 1.
        let before = 2 * a
        a := x
        let between = 2 * a
        a += 1
        return before, between, 2 * a
    """)
    x = random(3)
    agree(both.swap(x), (np.ones(3), x, np.zeros(3)))
    agree(both.swap(x), (x, 1 + x, np.ones(3)))
    agree(both.reads_before_writing(x), 3 + x)
    agree(both.backwards(), [2, 3, 4, 4])
    agree(both.backwards(), [3, 4, 4, 4])
    agree(both.forwards(), [1, 1, 2, 3])
    agree(both.transposes(), [[1, 3], [2, 4]])
    agree(both.transposes(), [[1, 2], [3, 4]])
    agree(both.keeps(x), (np.full(3, 2), 2 * x, 2 * x + 2))
    agree(both.keeps(x), (2 * x + 2, 2 * x, 2 * x + 2))


def test_what_was_computed_keeps_value_and_gradient(program: Loader) -> None:
    both = program("""
    routine f(x: f64[3]):
        let w = {w: [3] = 2.}
        let before = sum(w ** 2 *. x)
        w += 1
        let after = sum(w ** 2 *. x)
        update(before)
        let g = w.grad
        return before, after, g, w
    routine g(x: f64[3]):
        let w = {v: [3] = 2.}
        let loss = sum(w ** 2 *. x)
        update(loss)
        w -= 0.5 * w.grad
        let again = sum(w ** 2 *. x)
        update(again)
        w -= 0.5 * w.grad
        return loss, again
    """)
    x = random(3, dtype="f8")
    before, after, gradient, w = both.f(x)
    agree((before, after), (4 * x.sum(), 9 * x.sum()))
    agree(gradient, 4 * x)
    agree(w, [3, 3, 3])
    w = np.full(3, 2.0)
    loss, again = both.g(x)
    w1 = w - 0.5 * 2 * w * x
    agree((loss, again), ((w**2 * x).sum(), (w1**2 * x).sum()))
    agree(both["g.v"], w1 - 0.5 * 2 * w1 * x)


def test_pointwise_assignments_broadcast(program: Loader) -> None:
    both = program("""
    routine f(x: f32[3], k: f32):
        state a: f32[2 | 3]
        a += x
        a *= k
        return a
    """)
    agree(both.f(random(3), 2.0), np.tile(2 * random(3), (2, 1)))


def test_cds_write_what_they_are_given(program: Loader) -> None:
    both = program("""
    cd add(target, x, times: f32 = 1.): target += times * x
    cd add_twice[k: float = 2.](target, x):
        add(target, x)
        add(target, x, k)
    routine f(x: f32[3]):
        state a: f32[3]
        add(a, x)
        add_twice(a, x)
        add_twice[3.](a, x)
        return a
    routine grads(x: f64[3]):
        let w = {w: [3] = 1.}
        let loss = sum(w *. w *. x)
        update(loss)
        w.grad *= 0.5
        w.grad += 1.
        w -= w.grad
        return w
    """)
    x = random(3)
    agree(both.f(x), 8 * x)
    y = random(3, dtype="f8")
    agree(both.grads(y), 1 - (y + 1))


@pytest.mark.parametrize(
    "text, code",
    [
        ("routine f(x: f32[3]):\n    x := 2 * x\n    return x", "E0501"),
        ("routine f(x: f32[3]):\n    let y = 2 * x\n    y += 1\n    return y", "E0501"),
        ("op f(x):\n    x := 0.\n    return x\nroutine g(x: f32[3]): return f(x)", "E0501"),
        ("op f(x):\n    let w = {w: [3]}\n    w := x\n    return w\nroutine g(x: f32[3]): return f(x)", "E0501"),
        ("routine f(x: f32[3]):\n    state s: f32[4]\n    s := x\n    return s", "E0401"),
        ("routine f(x: f32[3]):\n    state s: f32[4]\n    s{i} := x{i}\n    return s", "E0401"),
        ("routine f(x: f32[2 | 3]):\n    state s: f32[3]\n    s += x\n    return s", "E0402"),
        ("routine f(x: i32[3]):\n    let loss = sum(x)\n    update(loss)\n    return x.grad", "E0502"),
        ("routine f(x: f32[3]):\n    return x.grad", "E0503"),
        ("routine f(x: f32[3]):\n    update(x)\n    return x", "E0410"),
    ],
)
def test_faults(text: str, code: str, tmp_path: Path) -> None:
    assert code in [c for c, _ in errors(text, tmp_path)]
