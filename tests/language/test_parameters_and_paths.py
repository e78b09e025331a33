"""Section 4: parameters, where they live, what they start with."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from tests.language.programs import Loader, agree, errors, random

DENSE = """
op dense[out: int](x) = {w: [... -> out]} * x + {b: [out] = 0.}
op mlp[width: int](x) = dense[width](relu(dense[width](x)))
op residual[f: op](x) = x + f(x)
op pair[f: op](x) = f(x) + f(2 * x)
"""

PATHS = [
    (
        "loops",
        (
            "op net(x):\n"
            "    var h = x\n"
            "    for width in [4, 5]:\n"
            "        h = relu({w: [... -> width]} * h + {b: [width] = 0.})\n"
            "    return {w_out: [... -> 1]} * h\n"
            "let n = net\n"
            "routine f(x: f32[k | 3]): return n(x)"
        ),
        ["n.w", "n.b", "n.w_1", "n.b_1", "n.w_out"],
    ),
    (
        "bound instance",
        "op s(x, y):\n    let f = dense[4]\n    return f(x) + f(y)\nlet a = s\nroutine f(x: f32[k | 3]): return a(x, x)",
        ["a.f.w", "a.f.b"],
    ),
    (
        "three places",
        (
            "op t(x):\n"
            "    let y = dense[4](x) + dense[4](x)\n"
            "    let z = dense[4](y)\n"
            "    return z\n"
            "let a = t\n"
            "routine f(x: f32[k | 3]): return a(x)"
        ),
        ["a.dense.w", "a.dense.b", "a.dense_1.w", "a.dense_1.b", "a.dense_2.w", "a.dense_2.b"],
    ),
    (
        "list",
        (
            "op t(x):\n"
            "    let layers = [dense[n] for n in [4, 5]]\n"
            "    var h = x\n"
            "    for l in layers: h = l(h)\n"
            "    return h\n"
            "let a = t\n"
            "routine f(x: f32[k | 3]): return a(x)"
        ),
        ["a.layers.0.w", "a.layers.0.b", "a.layers.1.w", "a.layers.1.b"],
    ),
    (
        "list at the top",
        "let layers = [dense[4], dense[5]]\nroutine f(x: f32[k | 3]): return x |> layers[0] |> layers[1]",
        ["layers.0.w", "layers.0.b", "layers.1.w", "layers.1.b"],
    ),
    ("tuple", "let e, d = dense[4], dense[5]\nroutine f(x: f32[k | 3]): return d(e(x))", ["e.w", "e.b", "d.w", "d.b"]),
    (
        "tuple of one name",
        "let both = (dense[4], dense[5])\nroutine f(x: f32[k | 3]): return both[1](both[0](x))",
        ["both.0.w", "both.0.b", "both.1.w", "both.1.b"],
    ),
    (
        "config instance",
        "let net = residual[mlp[3]]\nroutine f(x: f32[k | 3]): return net(x)",
        ["net.mlp.dense.w", "net.mlp.dense.b", "net.mlp.dense_1.w", "net.mlp.dense_1.b"],
    ),
    (
        "config instance in an op",
        "op t(h):\n    return residual[mlp[3]](h)\nlet a = t\nroutine f(x: f32[k | 3]): return a(x)",
        ["a.mlp.dense.w", "a.mlp.dense.b", "a.mlp.dense_1.w", "a.mlp.dense_1.b"],
    ),
    (
        "config instance is one",
        "let net = pair[dense[3]]\nroutine f(x: f32[k | 3]): return net(x)",
        ["net.dense.w", "net.dense.b"],
    ),
    (
        "config op without config is an op",
        "op two[layer: op](x) = layer[3](x) + layer[3](x)\nlet net = two[dense]\nroutine f(x: f32[k | 3]): return net(x)",
        ["net.dense.w", "net.dense.b", "net.dense_1.w", "net.dense_1.b"],
    ),
    ("alias", "let a = dense[3]\nlet b = a\nroutine f(x: f32[k | 3]): return b(a(x))", ["a.w", "a.b"]),
    (
        "routine",
        "routine step(x: f32[k | 3]): return dense[4](x) + {v: [... -> 4]} * x\nroutine f(x: f32[k | 3]): return step(x)",
        None,
    ),
    (
        "routine holds",
        "routine f(x: f32[k | 3]): return dense[4](x) + {v: [... -> 4]} * x",
        ["f.dense.w", "f.dense.b", "f.v"],
    ),
    (
        "w is let",
        "op one(x):\n    let w = {w: [3 -> 2]}\n    return w * x + sum(w)\nlet a = one\nroutine f(x: f32[k | 3]): return a(x)",
        ["a.w"],
    ),
    (
        "fn calls",
        "fn make(n: int): return dense[n]\nlet a = make(3)\nlet b = make(3)\nroutine f(x: f32[k | 3]): return a(x) + b(x)",
        ["a.w", "a.b", "b.w", "b.b"],
    ),
    (
        "fn applied in an op",
        "fn layer(x): return dense[3](x)\nop t(x) = layer(x) + layer(x)\nlet a = t\nroutine f(x: f32[k | 3]): return a(x)",
        ["a.dense.w", "a.dense.b", "a.dense_1.w", "a.dense_1.b"],
    ),
    (
        "recursion",
        (
            "op deep[n: int](x):\n"
            "    if n == 0: return x\n"
            "    return deep[n - 1]({w: [... -> 3]} * x)\n"
            "let a = deep[2]\n"
            "routine f(x: f32[k | 3]): return a(x)"
        ),
        ["a.w", "a.deep.w"],
    ),
    (
        "pipe",
        "let net = residual[dense[3]]\nroutine f(x: f32[k | 3]): return x |> net |> dense[3]",
        ["net.dense.w", "net.dense.b", "f.dense.w", "f.dense.b"],
    ),
    (
        "parameter of the module's op twice",
        "routine f(x: f32[k | 3]):\n    let d = dense[3]\n    return d(d(x)) + dense[3](x)",
        ["f.d.w", "f.d.b", "f.dense.w", "f.dense.b"],
    ),
    (
        "an op that applies an instance of the module",
        "let d = dense[3]\nop t(x) = d(x) + x\nlet a = t\nroutine f(x: f32[k | 3]): return a(x)",
        ["d.w", "d.b"],
    ),
    (
        "instances in a list in config",
        "op sum_of[fs: list](x) = sum([f(x) for f in fs])\nlet a = sum_of[[dense[3], dense[3]]]\nroutine f(x: f32[k | 3]): return a(x)",
        ["a.dense.w", "a.dense.b", "a.dense_1.w", "a.dense_1.b"],
    ),
    (
        "a list of instances as config",
        (
            "op sum_of[fs: list](x) = sum([f(x) for f in fs])\n"
            "let fs = [dense[3], dense[3]]\n"
            "let a = sum_of[fs]\n"
            "routine f(x: f32[k | 3]): return a(x)"
        ),
        ["fs.0.w", "fs.0.b", "fs.1.w", "fs.1.b"],
    ),
    (
        "default config is an instance for each",
        "op around[f: op = dense[3]](x) = f(x) + f(x)\nlet a, b = around, around\nroutine f(x: f32[k | 3]): return a(x) + b(x)",
        ["a.dense.w", "a.dense.b", "b.dense.w", "b.dense.b"],
    ),
]


@pytest.mark.parametrize("text, paths", [pytest.param(t, p, id=n.replace(" ", "_")) for n, t, p in PATHS if p])
def test_paths(program: Loader, text: str, paths: list[str]) -> None:
    both = program(DENSE + text)
    both.f(random(2, 3))
    assert both.paths == paths


def test_an_instance_shares_and_places_differ(program: Loader) -> None:
    both = program(
        DENSE
        + dedent("""
    op shared(x):
        let f = dense[3]
        return f(f(x))
    op apart(x) = dense[3](dense[3](x))
    let s = shared
    let a = apart
    routine one(x: f32[n | 3]): return s(x)
    routine two(x: f32[n | 3]): return a(x)
    routine again(x: f32[n | 3]): return s(x) + s(x)
    """)
    )
    x, w, v = random(2, 3), random(3, 3), random(3, 3, seed=1)
    both["s.f.w"], both["a.dense.w"], both["a.dense_1.w"] = w, w, v
    agree(both.one(x), x @ w.T @ w.T)
    agree(both.again(x), 2 * x @ w.T @ w.T)
    # arguments are applied first: the inner application comes first in the order of evaluation
    outer_first, inner_first = x @ v.T @ w.T, x @ w.T @ v.T
    got = both.two(x)
    assert np.allclose(got, outer_first, atol=1e-5) or np.allclose(got, inner_first, atol=1e-5)


def test_initial_values(program: Loader) -> None:
    both = program("""
    from init import kaiming, xavier, zeros
    let base = 3.
    op net(x):
        let a = {a: [3] = 0.5}
        let b = {b: [3] = [1, 2, 3]}
        let c = {c: [3 -> 2] = [(1., 2., 3.), (4., 5., 6.)]}
        let d = {d: [3] = exp(base) + 1}
        let e = {e: [3 -> 3] = transpose([(1., 2., 3.), (4., 5., 6.), (7., 8., 9.)])}
        let g = {g: [3] = arange[3]}
        let z = {z: [3] = zeros()}
        let k = {k: [200 -> 50] = kaiming()}
        let u = {u: [200 -> 50] = xavier[2.]()}
        return sum(c * (a + b + d + g + z)) + sum(e * x) + sum(k) + sum(u)
    let n = net
    routine f(x: f32[3]): return n(x)
    """)
    both.f(random(3))
    agree(both["n.a"], [0.5] * 3)
    agree(both["n.b"], [1, 2, 3])
    agree(both["n.c"], [[1, 2, 3], [4, 5, 6]])
    agree(both["n.d"], [np.exp(3) + 1] * 3)
    agree(both["n.e"], np.arange(1.0, 10).reshape(3, 3).T)
    agree(both["n.g"], [0, 1, 2])
    agree(both["n.z"], [0, 0, 0])
    bound = np.sqrt(2) * np.sqrt(3 / 200)
    assert abs(both["n.k"]).max() < bound and abs(both["n.k"].std() - bound / np.sqrt(3)) < 0.002
    bound = 2 * np.sqrt(6 / 250)
    assert abs(both["n.u"]).max() < bound and abs(both["n.u"].std() - bound / np.sqrt(3)) < 0.005


def test_default_initial_values(program: Loader) -> None:
    both = program("""
    let wide = 100
    op net(x) = sum({w: [2, wide -> 40]} * x) + sum({b: [3000]}) + sum({v: [2, wide -> 40]})
    let n = net
    routine f(x: f32[2, 100]): return n(x)
    """)
    both.f(random(2, 100))
    w, b = both["n.w"], both["n.b"]
    bound = 1 / np.sqrt(200)
    assert w.shape == (40, 2, 100) and abs(w).max() <= bound and abs(w).max() > 0.99 * bound
    assert abs(w.std() - bound / np.sqrt(3)) < 0.01 * bound and abs(w.mean()) < 0.01 * bound * 2
    assert abs(b.std() - 0.02) < 0.001 and abs(b.mean()) < 0.002 and abs(b).max() > 0.05
    assert not np.array_equal(w, both["n.v"])


def test_parameters_have_no_batch_axes_unless_written(program: Loader) -> None:
    both = program("""
    routine f(x: f32[n | 3]): return {w: [... -> 2]} * x + {b} + {c: [2]}
    routine g(x: f32[4 | 2]): return x + {positions: [4 | 2]}
    """)
    x, y = random(5, 3), random(4, 2)
    w, b, c = random(2, 3), random(2), random(2, seed=1)
    both["f.w"], both["f.b"], both["f.c"] = w, b, c
    agree(both.f(x), x @ w.T + b + c)
    assert both.modules[0].params["f.b"].shape == (2,)
    agree(both.g(y), y + both["g.positions"])


def test_members_are_expressions(program: Loader) -> None:
    both = program(
        DENSE
        + dedent("""
    op tower(x):
        let layers = [dense[3], dense[3]]
        return layers[1](layers[0](x))
    let t = tower
    let list_of = [dense[3], dense[2]]
    routine f(x: f32[n | 3]): return t(x), list_of[1](list_of[0](x))
    routine g(): return t.layers[0].w, list_of[1].b + 1, t.layers[1].w[0]
    routine own_path(): return {a: [3] = 1.} *. (if t.layers[0].w.path == "t.layers.0.w" then 1. else 0.)
    routine tied(x: f32[n | 3]): return transpose(t.layers[0].w) * x
    """)
    )
    x = random(2, 3)
    both.f(x)
    w = both["t.layers.0.w"]
    a, b, c = both.g()
    agree((a, b, c), (w, both["list_of.1.b"] + 1, both["t.layers.1.w"][0]))
    agree(both.own_path(), [1, 1, 1])
    agree(both.tied(x), x @ w)


def test_params_in_path_order_with_numbers_as_numbers(program: Loader) -> None:
    both = program("""
    op net(x):
        var h = x
        for i in 0..12: h = {w: [3 -> 3]} * h
        return {b: [3]} + h + {a: [3]}
    let n = net
    routine f(x: f32[3]):
        let loss = sum(n(x))
        let found = params(loss)
        var order = 0
        for i, p in enumerate(found):
            p :+= i
        return len(found) + 0.
    """)
    assert both.f(random(3)) == 14
    assert [int(both[f"n.{k}"].flat[0]) for k in ["a", "b", "w", "w_1", "w_2", "w_10", "w_11"]] == [
        0,
        1,
        2,
        3,
        4,
        12,
        13,
    ]


def test_one_routine_fixes_sizes_for_all(program: Loader) -> None:
    both = program("""
    op dense(x) = {w} * x + {b = 0.}
    let d = dense
    routine short(x: f32[n | 3]): return d(x)
    routine long(x: f32[n | 3]) -> f32[n | 2]: return d(x)
    routine weights(): return d.w
    """)
    x, w = random(4, 3), random(2, 3)
    assert both.weights().shape == (2, 3)
    both["d.w"] = w
    agree(both.short(x), x @ w.T)
    agree(both.long(x), x @ w.T)


def test_a_parameter_set_before_its_shape_is_known(program: Loader) -> None:
    both = program("""
    op dense(x) = {w} * x
    let d = dense
    routine f(x: f32[n | 3]) -> f32[n | 2]: return d(x)
    """)
    both["d.w"] = random(2, 3)
    agree(both.f(random(4, 3)), random(4, 3) @ random(2, 3).T)


@pytest.mark.parametrize(
    "text, found",
    [
        ("op f(x) = {w} * x + {w}\nroutine g(x: f32[3]) -> f32[2]: return f(x)", "E0202"),
        ("op f(x) = {w} * relu({v} * x)\nroutine g(x: f32[3]) -> f32[2]: return f(x)", "E0407"),
        ("op f[n: int](x) = {w: [... -> n]} * x\nroutine g(x: f32[3]): return f(x)", "E0302"),
        ("op f(x) = {w: [n -> 2]} * x\nroutine g(x: f32[3]): return f(x)", "E0201"),
        ("routine g(x: f32[3]): return {w: [4 -> 2]} * x", "E0401"),
        ("routine g(x: f32[3]): return {w: [2] = [1, 2, 3]} + 0 * sum(x)", "E0401"),
    ],
)
def test_faults(text: str, found: str, tmp_path: Path) -> None:
    assert found in [c for c, _ in errors(text, tmp_path)]
