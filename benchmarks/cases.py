"""The cases: what each peer computes. A setup returns a function that does the work once and gives a number to compare."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Work = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Case:
    """`peers` by name, each a setup; `operations` of one run in floating-point operations."""

    name: str
    operations: float
    peers: dict[str, Callable[[], Work]]


# ---------------------------------------------------------------- a matrix product

SIZE = 512


def _matrices() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((SIZE, SIZE), np.float32), rng.standard_normal((SIZE, SIZE), np.float32)


def product_numpy() -> Work:
    a, b = _matrices()
    return lambda: float((a @ b)[0, 0])


def product_torch() -> Work:
    import torch

    a, b = (torch.from_numpy(m) for m in _matrices())
    return lambda: float((a @ b)[0, 0])


def product_ocn() -> Work:
    module = _program(
        f"routine f(a: f32[{SIZE}, {SIZE}], b: f32[{SIZE}, {SIZE}]): return a +*{{i, k; k, j => i, j}} b\n"
    )
    a, b = _matrices()
    return lambda: float(module.f(a, b)[0, 0])


# ---------------------------------------------------------------- a training step

BATCH, INPUTS, HIDDEN, CLASSES = 64, 784, 128, 10
RATE = 0.05


def _batch() -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((BATCH, INPUTS), np.float32)
    labels = rng.integers(0, CLASSES, BATCH).astype(np.int32)
    w1 = 0.05 * rng.standard_normal((HIDDEN, INPUTS), np.float32)
    w2 = 0.05 * rng.standard_normal((CLASSES, HIDDEN), np.float32)
    return x, labels, w1, w2


def step_torch() -> Work:
    import torch

    x, labels, w1, w2 = _batch()
    first, last = torch.nn.Linear(INPUTS, HIDDEN), torch.nn.Linear(HIDDEN, CLASSES)
    with torch.no_grad():
        first.weight.copy_(torch.from_numpy(w1))
        last.weight.copy_(torch.from_numpy(w2))
        first.bias.zero_()
        last.bias.zero_()
    optimiser = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=RATE)
    tx, ty = torch.from_numpy(x), torch.from_numpy(labels.astype(np.int64))

    def work() -> float:
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(last(torch.relu(first(tx))), ty)
        loss.backward()
        optimiser.step()
        return loss.item()

    return work


def step_ocn() -> Work:
    module = _program(
        "from loss import cross_entropy\nfrom nn import mlp\nfrom optim import sgd\n"
        f"let net = mlp[[{HIDDEN}], out = {CLASSES}]\n"
        f"routine step(x: f32[{BATCH} | {INPUTS}], labels: i32[{BATCH} | ], lr: f32) -> f32:\n"
        "    let loss = cross_entropy(net(x), labels)\n    update(loss)\n"
        "    for p in params(loss): sgd(p, lr)\n    return loss\n"
    )
    x, labels, w1, w2 = _batch()
    module.params["net.w"], module.params["net.w_out"] = w1, w2
    return lambda: float(module.step(x, labels, RATE))


def _program(text: str) -> Any:
    import ocannl_lang

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "program.ocn"
        file.write_text(text, encoding="utf-8")
        return ocannl_lang.load(file)


CASES = (
    Case(
        f"matrix product {SIZE}x{SIZE}x{SIZE}",
        2.0 * SIZE**3,
        {"ocn": product_ocn, "numpy": product_numpy, "torch": product_torch},
    ),
    Case(
        f"step of a perceptron {INPUTS}-{HIDDEN}-{CLASSES}, batch {BATCH}",
        2.0 * BATCH * (2 * INPUTS * HIDDEN + 3 * HIDDEN * CLASSES),
        {"ocn": step_ocn, "torch": step_torch},
    ),
)
