"""Arrays from outside: read in place where they fit, converted where only rounding is lost, refused otherwise."""

from __future__ import annotations

import array

import ml_dtypes
import numpy as np
import pytest

from ocannl_lang.host.interop import Misfit, as_array, fit
from ocn_runtime.precisions import DTYPES

F32, F64, I32, U8, BF16, F16 = (DTYPES[name] for name in ("f32", "f64", "i32", "u8", "bf16", "f16"))


def test_what_fits_is_not_copied():
    x = np.ones((2, 3), np.float32)
    assert fit(x, F32) is x
    x.flags.writeable = False
    assert fit(x, F32) is x
    buffer = array.array("f", [1, 2])
    assert np.shares_memory(fit(buffer, F32), np.frombuffer(buffer, np.float32))


@pytest.mark.parametrize(
    "value, dtype, expected",
    [
        (np.array([0.1, 2]), F32, np.array([0.1, 2], np.float32)),
        (np.array([1, 2]), I32, np.array([1, 2], np.int32)),
        (np.array([1, 2]), F32, np.array([1, 2], np.float32)),
        (np.array([True, False]), U8, np.array([1, 0], np.uint8)),
        (np.array([True]), F32, np.array([1], np.float32)),
        (np.array([np.inf, np.nan]), F32, np.array([np.inf, np.nan], np.float32)),
        (np.array([1.0, 0.3], np.float32), BF16, np.array([1, 0.3], ml_dtypes.bfloat16)),
        (np.array([1.0], ml_dtypes.bfloat16), F32, np.array([1], np.float32)),
        (np.asfortranarray(np.ones((2, 3), np.float32)), F32, np.ones((2, 3), np.float32)),
        (np.array([1, 2], ">i4"), I32, np.array([1, 2], np.int32)),
        ([[1, 2], [3, 4]], F32, np.array([[1, 2], [3, 4]], np.float32)),
        (3, I32, np.array(3, np.int32)),
        (0.5, F32, np.array(0.5, np.float32)),
        (np.float64(0.5), F32, np.array(0.5, np.float32)),
        (bytearray(b"\x01\x02"), U8, np.array([1, 2], np.uint8)),
        (np.zeros((0, 3)), F32, np.zeros((0, 3), np.float32)),
    ],
)
def test_conversions_that_at_most_round(value, dtype, expected):
    got = fit(value, dtype)
    assert got.dtype == dtype and got.shape == expected.shape and got.flags.c_contiguous
    assert np.array_equal(got.astype(np.float64), expected.astype(np.float64), equal_nan=True)


@pytest.mark.parametrize(
    "value, dtype, message",
    [
        (np.array([1.0]), I32, "holds floats, and i32 is asked for"),
        (1.5, I32, "holds floats"),
        (np.array([2**31]), I32, "holds 2147483648, which i32 cannot"),
        (np.array([-1]), U8, "holds -1, which u8 cannot"),
        (np.array([1e300]), F32, r"holds 1e\+300, which is too large for f32"),
        (np.array([70000]), F16, "holds 70000, which is too large for f16"),
        (np.array([1j]), F32, "holds complex128"),
        (np.array(["a"]), F32, "and f32 is asked for"),
        ([[1], [1, 2]], F32, "a list whose parts differ in length"),
        ("text", F32, "it is a str"),
        (object(), F32, "it is a object"),
        (2**70, F32, "and f32 is asked for"),
    ],
)
def test_conversions_that_lose_more(value, dtype, message):
    with pytest.raises(Misfit, match=message):
        fit(value, dtype)


def test_copies_can_be_forbidden():
    with pytest.raises(Misfit, match="needs a copy: it holds f64, not f32"):
        fit(np.ones(3), F32, copy=False)
    with pytest.raises(Misfit, match="do not lie one after the other"):
        fit(np.ones((4, 4), np.float32).T[1:], F32, copy=False)
    assert fit(0.5, F32, copy=False) == 0.5


def test_torch_tensors_in_place():
    torch = pytest.importorskip("torch")
    t = torch.ones(2, 3)
    got = fit(t, F32, copy=False)
    t[0, 0] = 5
    assert got[0, 0] == 5
    narrow = fit(torch.tensor([1.5, 2], dtype=torch.bfloat16), BF16, copy=False)
    assert narrow.dtype == BF16 and narrow.astype(np.float32).tolist() == [1.5, 2]
    with pytest.raises(Misfit, match=r"x\.detach"):
        fit(torch.ones(2, requires_grad=True), F32)


def test_arrays_of_other_devices_are_copied_to_the_host():
    class OnDevice:
        def __dlpack__(self, **_):
            raise BufferError("not on the host")

        def __dlpack_device__(self):
            return (2, 0)

        def get(self):
            return np.ones(2, np.float32)

    assert as_array(OnDevice()).tolist() == [1, 1]
