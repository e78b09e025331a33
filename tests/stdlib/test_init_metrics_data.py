"""Initial values have the right spread, metrics the right value, data sets the right form."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from ocn_runtime import datasets
from tests.stdlib.support import close, program


def drawn(folder: Path, init: str, shape: str = "100 -> 80", **options) -> np.ndarray:
    text = f"import init\nop f(x) = {{w: [{shape}] = init.{init}}} * x\nlet net = f\n"
    module = program(folder, text + "routine run(x: f32[n | 100]): return net(x)\n", **options)
    module.run(np.zeros((1, 100), np.float32))
    return module.params["net.w"]


@pytest.mark.parametrize(("init", "bound"), [
    ("uniform()", 1.0), ("uniform(-0.5, 0.5)", 0.5), ("kaiming()", math.sqrt(2) * math.sqrt(3 / 100)),
    ("kaiming[1.]()", math.sqrt(3 / 100)), ("xavier()", math.sqrt(6 / 180)),
])  # fmt: skip
def test_uniform_ones_fill_their_interval_around_zero(tmp_path: Path, init: str, bound: float):
    w = drawn(tmp_path, init)
    assert w.shape == (80, 100)
    assert bound * 0.99 < np.abs(w).max() <= bound
    assert abs(w.mean()) < 0.05 * bound
    assert abs(w.std() - bound / math.sqrt(3)) < 0.02 * bound
    assert len(np.unique(w)) > 7000


@pytest.mark.slow
@pytest.mark.parametrize(("init", "deviation"), [
    ("normal()", 1.0), ("normal(0.1)", 0.1), ("kaiming_normal()", math.sqrt(2 / 100)), ("xavier_normal()", math.sqrt(2 / 180)),
])  # fmt: skip
def test_normal_ones_have_their_deviation(tmp_path: Path, init: str, deviation: float):
    w = drawn(tmp_path, init)
    assert abs(w.std() - deviation) < 0.03 * deviation
    assert abs(w.mean()) < 0.05 * deviation
    assert np.abs(w).max() > 3 * deviation


@pytest.mark.slow
def test_orthogonal(tmp_path: Path):
    w = drawn(tmp_path, "orthogonal()")
    close(w @ w.T, np.eye(80), 1e-4)


def test_zeros_and_ones(tmp_path: Path):
    close(drawn(tmp_path, "zeros()"), np.zeros((80, 100)))
    close(drawn(tmp_path, "ones()"), np.ones((80, 100)))


def test_the_seed_decides(tmp_path: Path):
    first, same, other = (drawn(tmp_path, "kaiming()", seed=s) for s in (1, 1, 2))
    assert (first == same).all()
    assert (first != other).any()


def test_metrics(tmp_path: Path):
    module = program(
        tmp_path,
        "from metrics import accuracy, confusion, perplexity\n"
        "routine a(x: f32[n | 3], ids: i32[n | ]) -> f32: return accuracy(x, ids)\n"
        "routine c(x: i32[n | ], ids: i32[n | ]): return confusion[3](x, ids)\n"
        "routine p(x: f32) -> f32: return perplexity(x)\n",
    )
    x = np.array([[3, 1, 2], [0, 5, 1], [0, 1, 2], [9, 0, 0]], np.float32)
    close(module.a(x, np.array([0, 1, 1, 0], np.int32)), 0.75)
    table = module.c(np.array([0, 1, 2, 0], np.int32), np.array([0, 1, 1, 0], np.int32))
    close(table, [[2, 0, 0], [0, 1, 1], [0, 0, 0]])
    close(module.p(0.5), math.exp(0.5))


@pytest.mark.parametrize("name", ["half_moons", "circles"])
def test_two_classes_of_points(name: str):
    make = getattr(datasets, name)
    points, labels = make(n=101, noise=0.0, seed=3)
    assert points.shape == (101, 2) and points.dtype == np.float32
    assert labels.shape == (101, 1) and set(labels.ravel()) == {-1.0, 1.0}
    assert (make(n=101, noise=0.0, seed=3)[0] == points).all()
    assert (make(n=101, noise=0.0, seed=4)[0] != points).any()


def test_spirals():
    points, arms = datasets.spirals(n=90, classes=3)
    assert points.shape == (90, 2) and arms.dtype == np.int32
    assert np.bincount(arms).tolist() == [30, 30, 30]
    with pytest.raises(ValueError, match="at least one"):
        datasets.half_moons(0)


def test_digits():
    pytest.importorskip("sklearn")
    images, labels = datasets.digits()
    assert images.shape == (1797, 8, 8, 1) and images.min() == 0 and images.max() == 1
    assert labels.shape == (1797,) and set(labels) == set(range(10))


def test_names():
    pytest.importorskip("names")
    found = datasets.names()
    assert "ada" in found and found == sorted(set(found))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch):
    import sys

    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match="pip install scikit-learn"):
        datasets.digits()
