"""Which instance owns what, and what its path is: the table of section 4."""

from __future__ import annotations

from pathlib import Path

import pytest

from ocannl_lang.build.gradients import path_key
from tests.build.support import clean

OPS = """
op dense[out: int](x) = {w: [... -> out]} * x + {b: [out] = 0.}
op residual[f: op](x) = x + f(x)
op mlp[hidden: int, out: int](x) = dense[out](relu(dense[hidden](x)))
op shared(x):
    let f = dense[4]
    return f(x) + f(x)
op separate(x):
    let a = dense[4](x) + dense[4](x)
    let y = dense[4](x)
    return a + y
op layered[sizes: list[int]](x):
    let layers = [dense[n] for n in sizes]
    var h = x
    for l in layers: h = l(h)
    return h
op looped(x):
    var h = x
    for width in [3, 4]: h = {w: [... -> width]} * h
    return h
op inner(x) = residual[dense[4]](x)
fn twice(x):
    return dense[4](dense[4](x))
op by_function(x) = twice(x) + twice(x)
"""


@pytest.mark.parametrize(
    ("bound", "paths"),
    [
        ("dense[4]", ["n.w", "n.b"]),
        ("shared", ["n.f.w", "n.f.b"]),
        ("separate", ["n.dense.w", "n.dense.b", "n.dense_1.w", "n.dense_1.b", "n.dense_2.w", "n.dense_2.b"]),
        ("layered[[3, 4]]", ["n.layers.0.w", "n.layers.0.b", "n.layers.1.w", "n.layers.1.b"]),
        ("looped", ["n.w", "n.w_1"]),
        ("residual[dense[4]]", ["n.dense.w", "n.dense.b"]),
        ("inner", ["n.dense.w", "n.dense.b"]),
        (
            "by_function",
            [
                "n.dense.w",
                "n.dense.b",
                "n.dense_1.w",
                "n.dense_1.b",
                "n.dense_2.w",
                "n.dense_2.b",
                "n.dense_3.w",
                "n.dense_3.b",
            ],
        ),
    ],
)
def test_paths(bound: str, paths: list[str], tmp_path: Path) -> None:
    text = f"{OPS}\nlet n = {bound}\nroutine r(x: f32[k | 4]): return n(x)\n"
    assert sorted(clean(text, tmp_path).world.cells) == sorted(paths)


def test_another_name_for_an_instance_has_the_same_paths(tmp_path: Path) -> None:
    text = f"{OPS}\nlet a = dense[4]\nlet b = a\nroutine r(x: f32[k | 4]): return a(x) + b(x)\n"
    assert list(clean(text, tmp_path).world.cells) == ["a.w", "a.b"]


def test_what_a_routine_makes_is_under_its_name(tmp_path: Path) -> None:
    text = f"{OPS}\nroutine step(x: f32[k | 4]): return dense[4](x) + {{w}} * x\n"
    assert list(clean(text, tmp_path).world.cells) == ["step.dense.w", "step.dense.b", "step.w"]


def test_an_instance_in_a_config_stands_behind_the_let(tmp_path: Path) -> None:
    text = f"{OPS}\nlet n = residual[residual[dense[4]]]\nroutine r(x: f32[k | 4]): return n(x)\n"
    assert list(clean(text, tmp_path).world.cells) == ["n.dense.w", "n.dense.b"]


def test_an_op_checked_by_itself_leaves_nothing_behind(tmp_path: Path) -> None:
    assert clean(OPS, tmp_path).world.cells == {}


def test_a_routine_may_name_a_parameter_before_its_op_is_applied(tmp_path: Path) -> None:
    text = f"{OPS}\nlet n = dense[4]\nroutine weight(): return n.w\nroutine r(x: f32[k | 3]): return n(x)\n"
    found = clean(text, tmp_path)
    assert found.solution is not None
    assert found.solution.shape(found.world.cells["n.w"].shape).sizes == (4, 3)


def test_states_of_a_cd_are_named_after_place_and_parameter(tmp_path: Path) -> None:
    text = """
from optim import sgd
op linear(x) = {w: [... -> 2]} * x
let net = linear
routine step(x: f32[n | 3]):
    let loss = sum(net(x) ** 2)
    update(loss)
    for p in params(loss): sgd[momentum = 0.9](p, 0.1)
    return loss
"""
    assert list(clean(text, tmp_path).world.cells) == ["net.w", "step.sgd.net.w.m"]


def test_paths_are_sorted_part_by_part_with_numbers_as_numbers() -> None:
    paths = ["a.w_10", "a.w_2", "a.w", "a.layers.10.w", "a.layers.9.w"]
    assert sorted(paths, key=path_key) == ["a.layers.9.w", "a.layers.10.w", "a.w", "a.w_2", "a.w_10"]
