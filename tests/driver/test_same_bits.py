"""The same program and seed give the same bits: loaded again, with any number of threads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ocannl_lang

PROGRAM = """
from loss import cross_entropy
from nn import conv2d, max_pool2d, mlp
from optim import adam
op reader(x):
    return mlp[[32, 32], out = 10](max_pool2d(relu(conv2d[8](x))))
let net = reader
routine train_step[training = true](images: f32[n | 8, 8, 1], labels: i32[n | ], lr: f32) -> f32:
    let loss = cross_entropy(net(images), labels)
    update(loss)
    for p in params(loss): adam(p, lr)
    return loss
"""


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_training_gives_the_same_bits(threads: int, tmp_path: Path) -> None:
    path = tmp_path / "model.ocn"
    path.write_text(PROGRAM)
    rng = np.random.default_rng(0)
    images, labels = rng.random((96, 8, 8, 1), np.float32), rng.integers(0, 10, 96).astype(np.int32)
    found: list[dict[str, np.ndarray]] = []
    losses: list[list[float]] = []
    for count in (1, threads):
        module = ocannl_lang.load(path, threads=count)
        losses.append([module.train_step(images, labels, 0.01) for _ in range(4)])
        found.append(dict(module.params))
    assert losses[0] == losses[1]
    assert losses[0][-1] < losses[0][0]
    for name, value in found[0].items():
        np.testing.assert_array_equal(value, found[1][name], err_msg=name)
