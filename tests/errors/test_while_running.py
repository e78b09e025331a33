"""Errors that only running a program can find: arguments, devices, files, checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ocannl_lang
from ocannl_lang.diagnostics.model import Diagnostic

PAIR = "routine f(x: f32[n | 3], y: f32[n | 1]):\n    return x, y\n"
NET = "from nn import dense\nlet net = dense[4]\nroutine f(x: f32[n | 3]):\n    return net(x)\n"
Fault = Callable[..., Diagnostic]


def zeros(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, np.float32)


@pytest.fixture
def fault(tmp_path: Path) -> Fault:
    """What loading a text and calling its routine `f` with arguments raises."""

    def of(text: str, *args: Any, **options: Any) -> Diagnostic:
        file = tmp_path / "net.ocn"
        file.write_text(text, encoding="utf-8")
        with pytest.raises(ocannl_lang.OcnError) as raised:
            ocannl_lang.load(file, **options).f(*args)
        assert f"error[{raised.value.diagnostic.code}]" in str(raised.value)
        return raised.value.diagnostic

    return of


@pytest.mark.parametrize(("text", "args", "words"), [
    (PAIR, (zeros(2, 4), zeros(2, 1)), "size 3, not 4"),
    (PAIR, (zeros(2, 3), zeros(3, 1)), "`n` is 2 in `x` and 3 in `y`"),
    (PAIR, (zeros(2, 3, 1), zeros(2, 1)), "`x` has 2 axes"),
    (PAIR, ("text", zeros(2, 1)), "it is a str"),
    ("routine f(x: i32[n | 3]):\n    return x\n", (zeros(2, 3),), "i32"),
    ("routine f(x: f32[5 | 3], i: index[5]):\n    return x[i]\n", (zeros(5, 3), 7), "below 5, not 7"),
])  # fmt: skip
def test_an_argument_that_does_not_fit(fault: Fault, text: str, args: tuple[Any, ...], words: str) -> None:
    found = fault(text, *args)
    assert found.code == "E0701"
    assert words in found.message
    assert found.line == 1


def test_sizes_of_a_call_that_do_not_fit_the_program(fault: Fault) -> None:
    text = "from nn import max_pool2d\nroutine f(x: f32[n | h, w, 3]):\n    return max_pool2d(x)\n"
    found = fault(text, zeros(1, 5, 4, 3))
    assert (found.code, found.line) == ("E0406", 3)
    assert "5" in found.message


def test_a_device_that_is_not_there(fault: Fault) -> None:
    found = fault(PAIR, device="abacus")
    assert found.code == "E0703"
    assert "`abacus`" in found.message
    assert "cpu" in found.message


def test_a_file_that_is_missing_or_damaged(fault: Fault, tmp_path: Path) -> None:
    text = 'data d: f32[_ | 3] = read_array("d.npy")\nroutine f():\n    return d\n'
    missing = fault(text)
    assert missing.code == "E0801"
    assert "d.npy" in missing.message
    (tmp_path / "d.npy").write_text("no array")
    assert fault(text).code == "E0801"


def test_an_array_that_does_not_fit_its_type(fault: Fault, tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", zeros(4, 5))
    found = fault('data d: f32[_ | 3] = read_array("d.npy")\nroutine f():\n    return d\n')
    assert (found.code, found.line) == ("E0802", 1)
    assert "5" in found.message
    assert "3" in found.message


def test_a_checkpoint_that_does_not_fit(tmp_path: Path) -> None:
    file, checkpoint = tmp_path / "net.ocn", tmp_path / "net.safetensors"
    file.write_text(NET, encoding="utf-8")
    ocannl_lang.load(file).save(checkpoint)
    for changed, words in ((NET.replace("[4]", "[5]"), "`net.w`"), (NET.replace("net", "other"), "`other.w`")):
        file.write_text(changed, encoding="utf-8")
        with pytest.raises(ocannl_lang.OcnError, match="E0803") as raised:
            module = ocannl_lang.load(file)
            module.f(zeros(2, 3))
            module.load(checkpoint)
        assert words in raised.value.diagnostic.message


def test_a_precision_that_the_device_lacks(fault: Fault) -> None:
    text = "routine f(x: f8e4m3[n | 3]):\n    return x + 1\n"
    try:
        found = fault(text, zeros(2, 3))
    except pytest.fail.Exception:
        return  # this device has it
    assert found.code == "E0602"
    assert "f8e4m3" in found.message


def test_a_shape_error_is_a_value_error_with_its_text(tmp_path: Path) -> None:
    file = tmp_path / "net.ocn"
    file.write_text("routine f(x: f32[n | 3], y: f32[n | 4]):\n    return x + y\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"error\[E0401\]: sizes differ: 3 in `x`, 4 in `y`"):
        ocannl_lang.load(file)
