"""Losses and their gradients equal PyTorch's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.stdlib.support import close, numbers, program

torch = pytest.importorskip("torch")
F = torch.nn.functional


def value_and_gradient(folder: Path, body: str, names: str, inputs: str, *args: np.ndarray):
    module = program(
        folder,
        f"from loss import {names}\nroutine f({inputs}):\n    let loss = {body}\n    update(loss)\n    return loss, x.grad\n",
    )
    return module.f(*args)


def check(got, x: np.ndarray, reference) -> None:
    leaf = torch.tensor(x, requires_grad=True)
    loss = reference(leaf)
    loss.backward()
    close(got[0], loss)
    close(got[1], leaf.grad)


PAIRED = [
    ("mse(x, y)", "mse", lambda y: lambda x: F.mse_loss(x, y)),
    ("mae(x, y)", "mae", lambda y: lambda x: F.l1_loss(x, y)),
    ("huber(x, y)", "huber", lambda y: lambda x: F.huber_loss(x, y)),
    ("huber[0.3](x, y)", "huber", lambda y: lambda x: F.huber_loss(x, y, delta=0.3)),
    ("hinge(x, sign(y))", "hinge", lambda y: lambda x: torch.relu(1 - torch.sign(y) * x).mean()),
    (
        "binary_cross_entropy_with_logits(x, sigmoid(y))",
        "binary_cross_entropy_with_logits",
        lambda y: lambda x: F.binary_cross_entropy_with_logits(x, torch.sigmoid(y)),
    ),
    (
        "binary_cross_entropy(sigmoid(x), sigmoid(y))",
        "binary_cross_entropy",
        lambda y: lambda x: F.binary_cross_entropy(torch.sigmoid(x), torch.sigmoid(y)),
    ),
]


@pytest.mark.parametrize(("body", "name", "reference"), PAIRED, ids=[p[0] for p in PAIRED])
def test_loss_of_two_tensors_of_one_shape(tmp_path: Path, body, name, reference):
    x, y = 2 * numbers(5, 3), 2 * numbers(5, 3, seed=1)
    got = value_and_gradient(tmp_path, body, name, "x: f32[n | 3], y: f32[n | 3]", x, y)
    check(got, x, reference(torch.tensor(y)))


def test_binary_cross_entropy_is_finite_at_the_ends(tmp_path: Path):
    module = program(
        tmp_path,
        "from loss import binary_cross_entropy\n"
        "routine f(p: f32[n], y: f32[n]) -> f32: return binary_cross_entropy(p, y)\n",
    )
    p, y = np.array([0, 1, 0], np.float32), np.array([0, 1, 1], np.float32)
    close(module.f(p, y), F.binary_cross_entropy(torch.tensor(p), torch.tensor(y)))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("batch", [(7,), (3, 4)])
def test_cross_entropy_with_ids(tmp_path: Path, smoothing: float, batch: tuple[int, ...]):
    x = 3 * numbers(*batch, 5)
    ids = np.random.default_rng(1).integers(0, 5, batch).astype(np.int32)
    axes = ", ".join("nm"[: len(batch)])
    body = f"cross_entropy[smoothing = {smoothing}](x, ids)"
    got = value_and_gradient(tmp_path, body, "cross_entropy", f"x: f32[{axes} | 5], ids: i32[{axes} | ]", x, ids)
    target = torch.tensor(ids.reshape(-1).astype(np.int64))
    check(got, x, lambda t: F.cross_entropy(t.reshape(-1, 5), target, label_smoothing=smoothing))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_with_probabilities(tmp_path: Path, smoothing: float):
    x = 3 * numbers(6, 4)
    y = np.exp(numbers(6, 4, seed=2))
    y /= y.sum(1, keepdims=True)
    body = f"cross_entropy[smoothing = {smoothing}](x, targets = y)"
    got = value_and_gradient(tmp_path, body, "cross_entropy", "x: f32[n | 4], y: f32[n | 4]", x, y)
    check(got, x, lambda t: F.cross_entropy(t, torch.tensor(y), label_smoothing=smoothing))


def test_cross_entropy_survives_large_scores(tmp_path: Path):
    x = np.array([[1e4, -1e4, 0], [-1e4, 1e4, 0]], np.float32)
    ids = np.array([0, 0], np.int32)
    got = value_and_gradient(
        tmp_path, "cross_entropy(x, ids)", "cross_entropy", "x: f32[n | 3], ids: i32[n | ]", x, ids
    )
    check(got, x, lambda t: F.cross_entropy(t, torch.tensor([0, 0])))


def test_kl_divergence(tmp_path: Path):
    x = numbers(5, 3)
    p = np.array([[0, 0.5, 0.5], [1, 0, 0], [0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.4, 0.4, 0.2]], np.float32)
    module = program(
        tmp_path,
        "from loss import kl\nfrom nn import log_softmax\n"
        "routine f(x: f32[n | 3], p: f32[n | 3]):\n"
        "    let loss = kl(log_softmax{... | k}(x), p)\n    update(loss)\n    return loss, x.grad\n",
    )
    reference = lambda t: F.kl_div(F.log_softmax(t, 1), torch.tensor(p), reduction="batchmean")  # noqa: E731
    check(module.f(x, p), x, reference)


def test_labels_that_lack_an_axis_are_an_error(tmp_path: Path):
    import ocannl_lang

    file = tmp_path / "program.ocn"
    file.write_text("from loss import mse\nroutine f(x: f32[n | 1], y: f32[n]): return mse(x, y)\n", encoding="utf-8")
    assert {d.code[:3] for d in ocannl_lang.check(file)} == {"E04"}
