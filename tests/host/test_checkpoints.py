"""Checkpoints: what is saved comes back, a file is whole or the old one, and what does not fit is said by name."""

from __future__ import annotations

import os

import ml_dtypes
import numpy as np
import pytest

from ocn_runtime import checkpoints
from ocn_runtime.checkpoints import CheckpointError, Expected
from ocn_runtime.precisions import DTYPES


def test_every_precision_comes_back(tmp_path):
    tensors = {f"net.{name}": np.arange(6).reshape(2, 3).astype(dtype) for name, dtype in DTYPES.items()}
    tensors["scalar"] = np.float32(2.5).reshape(())
    tensors["empty"] = np.zeros((0, 3), np.float32)
    tensors["transposed"] = np.arange(6, dtype=np.float32).reshape(2, 3).T
    checkpoints.save(tmp_path / "a.safetensors", tensors, {"seed": "7"})
    back = checkpoints.load(tmp_path / "a.safetensors")
    assert list(back.tensors) == sorted(tensors)
    assert back.metadata == {"seed": "7"}
    for name, array in tensors.items():
        assert back.tensors[name].dtype == array.dtype
        assert back.tensors[name].shape == array.shape
        assert np.array_equal(back.tensors[name].astype(np.float64), array.astype(np.float64))
        assert back.tensors[name].flags.writeable


def test_the_same_tensors_give_the_same_bytes(tmp_path):
    w = np.ones(3, ml_dtypes.bfloat16)
    checkpoints.save(tmp_path / "a", {"b": w, "a": w})
    checkpoints.save(tmp_path / "b", {"a": w, "b": w})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_torch_reads_it(tmp_path):
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file

    checkpoints.save(tmp_path / "a.safetensors", {"w": np.arange(4).astype(ml_dtypes.bfloat16)})
    assert load_file(tmp_path / "a.safetensors")["w"].dtype == torch.bfloat16


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "net.safetensors"
    checkpoints.save(path, {"w": np.zeros(3, np.float32)})
    before = path.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        checkpoints.save(path, {"w": np.ones(3, np.float32)})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["net.safetensors"]


def test_types_without_a_precision_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match="w holds complex64"):
        checkpoints.save(tmp_path / "a", {"w": np.zeros(2, np.complex64)})


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda b: b[:-3], "damaged"),
        (lambda b: b[:40], "damaged"),
        (lambda b: b"", "is empty"),
        (lambda b: b"PK\x03\x04 something else", "no checkpoint"),
        (lambda b: b[:8] + b"{" + b"x" * (len(b) - 9), "damaged"),
    ],
)
def test_damaged_and_foreign_files(tmp_path, change, message):
    path = tmp_path / "net.safetensors"
    checkpoints.save(path, {"net.w": np.zeros((3, 4), np.float32)})
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(CheckpointError, match=message):
        checkpoints.load(path)


@pytest.mark.parametrize(
    "expected, tensor, message",
    [
        ({"net.w": Expected((2, 3)), "net.b": Expected((2,)), "x": Expected()}, "x", "has no x"),
        ({"net.w": Expected((2, 3))}, "net.b", "holds net.b, which the program does not have"),
        ({"net.w": Expected((3, 2)), "net.b": Expected()}, "net.w", r"\[2, 3\] in .* and \[3, 2\] in the program"),
        ({"net.w": Expected((2, 3), "f64"), "net.b": Expected()}, "net.w", "f32 in net.safetensors and f64"),
        ({"net.w": Expected(), "net.bb": Expected()}, "net.b", "there is net.bb"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, expected, tensor, message):
    path = tmp_path / "net.safetensors"
    checkpoints.save(path, {"net.w": np.zeros((2, 3), np.float32), "net.b": np.zeros(2, np.float32)})
    with pytest.raises(CheckpointError, match=message) as caught:
        checkpoints.check(checkpoints.load(path), expected)
    assert caught.value.tensor == tensor


def test_a_part_of_a_checkpoint_can_be_asked_for(tmp_path):
    path = tmp_path / "net.safetensors"
    checkpoints.save(path, {"net.w": np.zeros((2, 3), np.float32), "other": np.zeros(2, np.float32)})
    checkpoints.check(checkpoints.load(path), {"net.w": Expected((2, 3), "f32")}, extra="ignore")
