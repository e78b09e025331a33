"""Small data sets for examples and tests.

Generated ones need numpy only and are the same for the same seed on every machine. `digits` and `names` come from packages that
are imported when they are asked for.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]


def half_moons(n: int = 800, noise: float = 0.1, seed: int = 0) -> tuple[Floats, Floats]:
    """Two interleaving half circles: points (n, 2) and labels (n, 1), −1 for the upper and 1 for the lower one.

    As scikit-learn's `make_moons`: the upper half of the unit circle, and the lower half of the one around (1, 0.5).
    """
    rng = _generator(n, seed)
    upper = n // 2
    a, b = np.linspace(0, np.pi, upper), np.linspace(0, np.pi, n - upper)
    points = np.concatenate([np.stack([np.cos(a), np.sin(a)], 1), np.stack([1 - np.cos(b), 0.5 - np.sin(b)], 1)])
    labels = np.concatenate([-np.ones(upper), np.ones(n - upper)])[:, None]
    return _shuffled(rng, points + noise * rng.standard_normal(points.shape), labels)


def circles(n: int = 800, noise: float = 0.05, factor: float = 0.5, seed: int = 0) -> tuple[Floats, Floats]:
    """Points (n, 2) on the unit circle, labels (n, 1) −1, and on one of radius `factor`, labels 1."""
    rng = _generator(n, seed)
    outer = n // 2
    a = np.linspace(0, 2 * np.pi, outer, endpoint=False)
    b = np.linspace(0, 2 * np.pi, n - outer, endpoint=False)
    points = np.concatenate([np.stack([np.cos(a), np.sin(a)], 1), factor * np.stack([np.cos(b), np.sin(b)], 1)])
    labels = np.concatenate([-np.ones(outer), np.ones(n - outer)])[:, None]
    return _shuffled(rng, points + noise * rng.standard_normal(points.shape), labels)


def spirals(
    n: int = 900, classes: int = 3, noise: float = 0.1, turns: float = 0.75, seed: int = 0
) -> tuple[Floats, Ints]:
    """Points (n, 2) on `classes` arms that leave the origin and turn `turns` times, and the numbers of their arms (n,)."""
    if classes < 1:
        raise ValueError(f"spirals need at least one class, not {classes}")
    rng = _generator(n, seed)
    arm = np.arange(n) % classes
    radius = np.sqrt(rng.random(n))
    angle = 2 * np.pi * (turns * radius + arm / classes)
    points = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    points = points + noise * rng.standard_normal(points.shape) * radius[:, None]
    return points.astype(np.float32), arm.astype(np.int32)


def digits() -> tuple[Floats, Ints]:
    """scikit-learn's handwritten digits: images (1797, 8, 8, 1) with values from 0 to 1, and the digits (1797,)."""
    loaded: Any = _package("sklearn.datasets", "scikit-learn", "digits").load_digits()
    return (loaded.images[..., None] / 16).astype(np.float32), loaded.target.astype(np.int32)


def names() -> list[str]:
    """First names, lower case, each once, in alphabetical order."""
    package: Any = _package("names", "names", "names")
    files = [package.FILES["first:male"], package.FILES["first:female"]]
    found: set[str] = set()
    for file in files:
        with open(file, encoding="utf-8") as lines:
            found.update(line.split()[0].lower() for line in lines if line.strip())
    return sorted(found)


def _generator(n: int, seed: int) -> np.random.Generator:
    if n < 1:
        raise ValueError(f"at least one point is needed, not {n}")
    return np.random.Generator(np.random.Philox(seed))


def _shuffled(rng: np.random.Generator, points: NDArray[Any], labels: NDArray[Any]) -> tuple[Floats, Floats]:
    order = rng.permutation(len(points))
    return points[order].astype(np.float32), labels[order].astype(np.float32)


def _package(module: str, distribution: str, what: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"the data set `{what}` comes from the package {distribution}, which is not installed: "
            f"pip install {distribution}"
        ) from error
