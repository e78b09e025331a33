"""Section 4: states of ops, cds and routines."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.language.programs import Loader, agree, random


def test_states_keep_their_values(program: Loader) -> None:
    both = program("""
    routine count() -> f32:
        state n: f32
        n += 1
        return n
    routine typed():
        state a: i32[2] = 3
        state b: f64 = 0.5
        state c: f32[2] = [1, 2]
        state d: f32[3] = arange[3] * 2
        a += 1
        b += 0.25
        c *= 2
        d += 1
        return a, b, c, d
    """)
    assert [both.count() for _ in range(3)] == [1, 2, 3]
    agree(both.typed(), ([4, 4], 0.75, [2, 4], [1, 3, 5]))
    agree(both.typed(), ([5, 5], 1.0, [4, 8], [2, 4, 6]))
    assert both["typed.b"].dtype == np.float64 and both["typed.a"].dtype == np.int32
    both["count.n"] = 10.0
    assert both.count() == 11


def test_states_belong_to_the_instance(program: Loader) -> None:
    both = program("""
    op total(x):
        state sum_so_far: [3]
        sum_so_far := sum_so_far + x
        return sum_so_far
    let t = total
    routine one(x: f32[3]): return t(x)
    routine two(x: f32[3]): return t(10 * x)
    routine twice(x: f32[3]): return t(x), t(x)
    routine others(x: f32[3]): return total(x), total(x) * 2
    """)
    x = random(3)
    agree(both.one(x), x)
    agree(both.two(x), 11 * x)
    agree(both.twice(x), (12 * x, 13 * x))
    agree(both.others(x), (x, 2 * x))
    agree(both.others(x), (2 * x, 4 * x))
    assert both.paths == ["t.sum_so_far", "others.total.sum_so_far", "others.total_1.sum_so_far"]


def test_states_of_cds_belong_to_place_and_tensors(program: Loader) -> None:
    both = program("""
    cd momentum(p, g):
        state m: [...]
        m := 0.5 * m + g
        p -= m
    cd outer(p, g): momentum(p, g)
    routine f(x: f32[2]):
        let a, b = {a: [2] = 0.}, {b: [2] = 0.}
        for p in [a, b]: momentum(p, x)
        momentum(a, x)
        return a, b
    routine nested(x: f32[2]):
        let a, b = {a: [2] = 0.}, {b: [2] = 0.}
        outer(a, x)
        outer(b, 2 * x)
        return a, b
    """)
    x = np.array([1, 2], "f")
    agree(both.f(x), (-2 * x, -x))
    agree(both.f(x), (-5 * x, -2.5 * x))
    agree(both.nested(x), (-x, -2 * x))
    agree(both.nested(x), (-2.5 * x, -5 * x))


def test_running_statistics(program: Loader) -> None:
    both = program("""
    op norm[momentum: float = 0.1](x):
        row b, d
        state running: [..d..]
        var m = running
        if training:
            m = mean{..b.. | ..d.. => ..d..}(x)
            running := (1 - momentum) * running + momentum * m
        return x - m
    let n = norm
    routine train[training = true](x: f32[k | 3]): return n(x)
    routine apply(x: f32[k | 3]): return n(x)
    """)
    x = random(4, 3)
    agree(both.train(x), x - x.mean(0))
    agree(both.apply(x), x - 0.1 * x.mean(0))
    agree(both.train(x[:2]), x[:2] - x[:2].mean(0))
    agree(both.apply(x), x - 0.09 * x.mean(0) - 0.1 * x[:2].mean(0))


def test_states_are_part_of_checkpoints(program: Loader, tmp_path: Path) -> None:
    text = """
    op net(x):
        state n: f32
        n := n + 1
        return {w: [3]} *. x + n
    let a = net
    routine f(x: f32[3]):
        state calls: i64
        calls += 1
        return a(x), calls
    """
    both, other = program(text), program(text, seed=5)
    x = random(3)
    both.f(x)
    first, calls = both.f(x)
    assert calls == 2
    for m, n in zip(both.modules, other.modules):
        m.save(tmp_path / "state.safetensors")
        n.load(tmp_path / "state.safetensors")
    got, calls = other.f(x)
    agree(got, first + 1)
    assert calls == 3


def test_a_state_has_no_gradient(program: Loader) -> None:
    both = program("""
    routine f(x: f64[3]):
        state s: f64[3] = 2.
        let loss = sum(s *. x *. x)
        update(loss)
        s := x
        return x.grad
    """)
    x = random(3, dtype="f8")
    agree(both.f(x), 4 * x)
    agree(both.f(x), 2 * x * x)
