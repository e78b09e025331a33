"""The initial parameters and the batches of each case, the same bits for every peer.

Layouts: matrices of dense layers are (input, output), kernels (output, input, height, width), images (channel, height, width),
keys and values (sequence, head, position, element). Each peer converts them to its own before anything is timed.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import BATCHES, GPT2, GPT_MINI, Case, Transformer

Array = NDArray[Any]
Values = dict[str, Array]

BATCH_NAMES = ("x", "y", "keys", "values")
"""What is no parameter; everything else is."""


def values_of(case: Case) -> Values:
    """All arrays of a case by name; `x` and `y` of a training case have its batches along the first axis."""
    draw = _Draw()
    match case.family:
        case "gemm":
            count, m, k, n = case.sizes
            more = (count,) if count > 1 else ()
            return {"a": draw.normal(*more, m, k), "b": draw.normal(*more, k, n)}
        case "pointwise":
            width = case.sizes[1]
            return {"x": draw.normal(*case.sizes), "gamma": _ones(width), "beta": _zeros(width)}
        case "mlp":
            layers = _dense(draw, (784, 128, 64, 10), lambda fan_in: (2 / fan_in) ** 0.5)
            return {**layers, "x": draw.unit(BATCHES, 64, 784), "y": draw.ids(10, BATCHES, 64)}
        case "makemore":
            return {
                "embedding": draw.normal(27, 10),
                "w1": draw.normal(30, 200, scale=(5 / 3) / 30**0.5),
                "b1": _zeros(200),
                "w2": draw.normal(200, 27, scale=0.01),
                "b2": _zeros(27),
                "x": draw.ids(27, BATCHES, 32, 3),
                "y": draw.ids(27, BATCHES, 32),
            }
        case "lenet":
            return {
                "k1": draw.normal(6, 1, 5, 5, scale=0.2),
                "c1": _zeros(6),
                "k2": draw.normal(16, 6, 5, 5, scale=(2 / 150) ** 0.5),
                "c2": _zeros(16),
                **_dense(draw, (256, 120, 84, 10), lambda fan_in: (2 / fan_in) ** 0.5),
                "x": draw.unit(BATCHES, 32, 1, 28, 28),
                "y": draw.ids(10, BATCHES, 32),
            }
        case "gpt_mini":
            return _gpt(draw, GPT_MINI, case.sizes[0])
        case "gpt2":
            return _one_block(draw, GPT2, whole=case.name == "gpt2_block")
        case _:
            return {"x": draw.normal(8)}


def write_values(case: Case, file: Path) -> None:
    """Writes the arrays of a case to an npz file."""
    np.savez(file, allow_pickle=False, **values_of(case))


def read_values(file: Path) -> Values:
    """Reads what `write_values` wrote."""
    with np.load(file) as found:
        return {name: found[name] for name in found.files}


def parameters_of(values: Values) -> Values:
    """The parameters among the arrays of a case."""
    return {name: value for name, value in values.items() if name not in BATCH_NAMES}


def block_of(values: dict[str, Any], layer: int) -> dict[str, Any]:
    """The parameters of one block of a GPT under their short names (`norm1.gamma`, `qkv.w`, …)."""
    start = f"{layer}."
    return {name[len(start) :]: value for name, value in values.items() if name.startswith(start)}


class _Draw:
    """Random arrays from one seeded generator."""

    def __init__(self) -> None:
        self.generator = np.random.default_rng(0)

    def normal(self, *shape: int, scale: float = 1.0) -> Array:
        return (scale * self.generator.standard_normal(shape)).astype(np.float32)

    def unit(self, *shape: int) -> Array:
        return self.generator.random(shape).astype(np.float32)

    def ids(self, below: int, *shape: int) -> Array:
        return self.generator.integers(0, below, shape).astype(np.int32)


def _zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


def _ones(*shape: int) -> Array:
    return np.ones(shape, np.float32)


def _dense(draw: _Draw, sizes: tuple[int, ...], scale: Any) -> Values:
    """The matrices `w1`, `w2`, … and biases `b1`, `b2`, … between layers of these sizes."""
    found: Values = {}
    for number, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes), start=1):
        found[f"w{number}"] = draw.normal(fan_in, fan_out, scale=scale(fan_in))
        found[f"b{number}"] = _zeros(fan_out)
    return found


def _block(draw: _Draw, g: Transformer, layer: int) -> Values:
    """One block; the columns of `qkv.w` are those of the queries, the keys, the values, each head by head."""
    found = {
        "norm1.gamma": _ones(g.width),
        "norm1.beta": _zeros(g.width),
        "qkv.w": draw.normal(g.width, 3 * g.width, scale=0.02),
        "qkv.b": _zeros(3 * g.width),
        "proj.w": draw.normal(g.width, g.width, scale=0.02),
        "proj.b": _zeros(g.width),
        "norm2.gamma": _ones(g.width),
        "norm2.beta": _zeros(g.width),
        "up.w": draw.normal(g.width, g.hidden, scale=0.02),
        "up.b": _zeros(g.hidden),
        "down.w": draw.normal(g.hidden, g.width, scale=0.02),
        "down.b": _zeros(g.width),
    }
    return {f"{layer}.{name}": value for name, value in found.items()}


def _gpt(draw: _Draw, g: Transformer, depth: int) -> Values:
    found: Values = {
        "tokens": draw.normal(g.vocabulary, g.width, scale=0.02),
        "positions": draw.normal(g.length, g.width, scale=0.02),
    }
    for layer in range(depth):
        found.update(_block(draw, g, layer))
    found["norm.gamma"], found["norm.beta"] = _ones(g.width), _zeros(g.width)
    found["head.w"] = draw.normal(g.width, g.vocabulary, scale=0.02)
    for name in ("x", "y"):
        found[name] = draw.ids(g.vocabulary, BATCHES, g.batch, g.length)
    return found


def _one_block(draw: _Draw, g: Transformer, whole: bool) -> Values:
    found = _block(draw, g, 0)
    found["x"] = draw.normal(1, g.length if whole else 1, g.width)
    if not whole:
        for name in ("keys", "values"):
            found[name] = draw.normal(1, g.heads, g.length, g.head)
    return found
