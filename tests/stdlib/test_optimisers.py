"""Optimisers take the steps that PyTorch's take, on a parameter with an input and an output axis."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.stdlib.support import close, numbers, program

torch = pytest.importorskip("torch")

PROGRAM = """
from optim import {name}
op linear(x) = {{w}} * x + {{b: [2] = 0.}}
let net = linear
routine step(x: f32[n | 3], y: f32[n | 2], lr: f32):
    let loss = mean((net(x) - y) ** 2)
    update(loss)
    for p in params(loss): {call}(p, lr)
    return loss
"""

CASES = [
    ("sgd", "", "SGD", {}),
    ("sgd", "[weight_decay = 0.1]", "SGD", {"weight_decay": 0.1}),
    ("sgd", "[momentum = 0.9]", "SGD", {"momentum": 0.9}),
    ("sgd", "[0.9, 0.1]", "SGD", {"momentum": 0.9, "weight_decay": 0.1}),
    ("sgd", "[momentum = 0.9, nesterov = true]", "SGD", {"momentum": 0.9, "nesterov": True}),
    ("adam", "", "Adam", {}),
    ("adam", "[0.8, 0.9, 1e-6]", "Adam", {"betas": (0.8, 0.9), "eps": 1e-6}),
    ("adam", "[weight_decay = 0.1]", "Adam", {"weight_decay": 0.1}),
    ("adamw", "", "AdamW", {}),
    ("adamw", "[weight_decay = 0.1]", "AdamW", {"weight_decay": 0.1}),
    ("rmsprop", "", "RMSprop", {}),
    ("rmsprop", "[momentum = 0.9]", "RMSprop", {"momentum": 0.9}),
    ("rmsprop", "[centred = true]", "RMSprop", {"centered": True}),
    ("rmsprop", "[decay = 0.9, weight_decay = 0.1]", "RMSprop", {"alpha": 0.9, "weight_decay": 0.1}),
    ("adagrad", "", "Adagrad", {}),
    ("adagrad", "[lr_decay = 0.1]", "Adagrad", {"lr_decay": 0.1}),
    ("adagrad", "[weight_decay = 0.1]", "Adagrad", {"weight_decay": 0.1}),
]


SELDOM = {
    "[0.9, 0.1]",
    "[0.8, 0.9, 1e-6]",
    "[lr_decay = 0.1]",
    "[decay = 0.9, weight_decay = 0.1]",
    "[weight_decay = 0.1]",
}


@pytest.mark.parametrize(
    ("name", "config", "reference", "options"),
    [pytest.param(*c, id=c[0] + c[1], marks=[pytest.mark.slow] if c[1] in SELDOM else []) for c in CASES],
)
def test_steps_equal_those_of_pytorch(tmp_path: Path, name: str, config: str, reference: str, options: dict):
    module = program(tmp_path, PROGRAM.format(name=name, call=name + config))
    x, y, w0 = numbers(8, 3), numbers(8, 2, seed=1), numbers(2, 3, seed=2)
    module.params["net.w"] = w0
    w, b = torch.tensor(w0, requires_grad=True), torch.zeros(2, requires_grad=True)
    optimiser = getattr(torch.optim, reference)([w, b], lr=0.05, **options)
    for _ in range(6):
        optimiser.zero_grad()
        loss = ((torch.tensor(x) @ w.T + b - torch.tensor(y)) ** 2).mean()
        loss.backward()
        optimiser.step()
        close(module.step(x, y, 0.05), loss)
    close(module.params["net.w"], w, 2e-5)
    close(module.params["net.b"], b, 2e-5)


def test_lion(tmp_path: Path):
    module = program(tmp_path, PROGRAM.format(name="lion", call="lion[weight_decay = 0.1]"))
    x, y, w = numbers(8, 3), numbers(8, 2, seed=1), numbers(2, 3, seed=2)
    module.params["net.w"] = w
    b, mw, mb = np.zeros(2, np.float32), np.zeros_like(w), np.zeros(2, np.float32)
    for _ in range(5):
        error = 2 * (x @ w.T + b - y) / y.size
        gw, gb = error.T @ x, error.sum(0)
        w = w * (1 - 0.01 * 0.1) - 0.01 * np.sign(0.9 * mw + 0.1 * gw)
        b = b * (1 - 0.01 * 0.1) - 0.01 * np.sign(0.9 * mb + 0.1 * gb)
        mw, mb = 0.99 * mw + 0.01 * gw, 0.99 * mb + 0.01 * gb
        module.step(x, y, 0.01)
    close(module.params["net.w"], w)
    close(module.params["net.b"], b)


GRADIENTS = """
from optim import {name}
op linear(x) = {{w}} * x + {{b: [2] = 0.}}
let net = linear
routine gradients(x: f32[n | 3], y: f32[n | 2], limit: f32):
    let loss = mean((net(x) - y) ** 2)
    update(loss)
{call}    return net.w.grad, net.b.grad
"""


@pytest.mark.parametrize("limit", [0.01, 100.0])
def test_clipping_by_the_global_norm(tmp_path: Path, limit: float):
    module = program(
        tmp_path, GRADIENTS.format(name="clip_by_global_norm", call="    clip_by_global_norm(params(loss), limit)\n")
    )
    x, y, w0 = numbers(8, 3), numbers(8, 2, seed=1), numbers(2, 3, seed=2)
    module.params["net.w"] = w0
    w, b = torch.tensor(w0, requires_grad=True), torch.zeros(2, requires_grad=True)
    ((torch.tensor(x) @ w.T + b - torch.tensor(y)) ** 2).mean().backward()
    torch.nn.utils.clip_grad_norm_([w, b], limit)
    got = module.gradients(x, y, limit)
    close(got[0], w.grad)
    close(got[1], b.grad)


def test_accumulated_gradients_are_the_mean_of_the_last_calls(tmp_path: Path):
    text = GRADIENTS.replace(", limit: f32", "")
    call = "    accumulate_gradients[3](params(loss))\n"
    module = program(tmp_path, text.format(name="accumulate_gradients", call=call))
    plain = program(tmp_path, text.format(name="sgd", call=""))
    w = numbers(2, 3, seed=2)
    module.params["net.w"] = w
    plain.params["net.w"] = w
    for turn in range(2):
        parts = []
        for i in range(3):
            x, y = numbers(4, 3, seed=10 * turn + i), numbers(4, 2, seed=100 * turn + i)
            parts.append(plain.gradients(x, y)[0])
            got = module.gradients(x, y)[0]
            close(got, np.mean(parts, 0) if i == 2 else np.zeros((2, 3)))


def test_schedules(tmp_path: Path, ocn: Callable[..., str]):
    file = tmp_path / "program.ocn"
    file.write_text(
        """
from optim import constant, step_decay, cosine, warmup, one_cycle
test "values":
    expect constant(0.1) == 0.1
    expect close(step_decay(1., 9, 5), 0.1)
    expect close(cosine(1., 0, 10), 1.)
    expect close(cosine(1., 5, 10), 0.5)
    expect close(cosine(1., 20, 10, 0.25), 0.25)
    expect close(warmup(1., 0, 4), 0.25)
    expect close(warmup(1., 9, 4), 1.)
    expect close(one_cycle(1., 0, 10), 0.04)
    expect close(one_cycle(1., 2, 10), 1.)
    expect close(one_cycle(1., 9, 10), 4e-6)
""",
        encoding="utf-8",
    )
    ocn("test", str(file))
