"""Gradients of convolutions and pooling equal PyTorch's, and no position of a gradient waits for another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ocannl_lang.graph import ir
from ocannl_lang.loops.facts import separate
from ocannl_lang.loops.ir import Affine
from tests.graph.make import Dims, lowered, reduce, shape, tensor, value
from tests.lowering.gradients import gradients

torch: Any = pytest.importorskip("torch")
RNG = np.random.default_rng(3)


def convolution(
    stride: int, dilation: int, padded: bool, kernel: int
) -> tuple[Dims, ir.Value, ir.Value, ir.Value, int, int]:
    oh, ow = 4, 5
    span = dilation * (kernel - 1) + 1
    h, w = (stride * oh, stride * ow) if padded else (stride * (oh - 1) + span, stride * (ow - 1) + span)
    d = Dims(b=2, oh=oh, ow=ow, kh=kernel, kw=kernel, ic=3, oc=2)
    x, k = tensor("x", (h, w, 3), batch=(2,)), tensor("k", (2,), (kernel, kernel, 3))
    axes: dict[str, Any] = {
        "wh": d.window("oh", "kh", stride, dilation, padded),
        "ww": d.window("ow", "kw", stride, dilation, padded),
    }
    notation = "b | wh ww ic ; kh kw ic -> oc => b | oh ow oc"
    y = reduce(d, "add", notation, x, k, to=shape((oh, ow, 2), batch=(2,)), **axes)
    return d, x, k, y, h, w


CASES = [
    (1, 1, False, 3),
    (2, 1, False, 3),
    (1, 2, False, 3),
    (1, 1, True, 3),
    (2, 1, True, 3),
    (3, 1, True, 5),
    (2, 1, False, 2),
]


@pytest.mark.parametrize(("stride", "dilation", "padded", "kernel"), CASES)
def test_convolutions(stride: int, dilation: int, padded: bool, kernel: int) -> None:
    d, x, k, y, h, w = convolution(stride, dilation, padded, kernel)
    a, c, g = (
        RNG.standard_normal((2, h, w, 3)),
        RNG.standard_normal((2, kernel, kernel, 3)),
        RNG.standard_normal((2, 4, 5, 2)),
    )
    got = gradients({x: a, k: c}, y, [x, k], d, g)
    ta, tc = torch.tensor(a, requires_grad=True), torch.tensor(c, requires_grad=True)
    padding = (dilation * (kernel - 1)) // 2 if padded else 0
    out = torch.nn.functional.conv2d(
        ta.permute(0, 3, 1, 2), tc.permute(0, 3, 1, 2), stride=stride, dilation=dilation, padding=padding
    )
    out.backward(torch.tensor(g).permute(0, 3, 1, 2))
    np.testing.assert_allclose(got[0], ta.grad.numpy(), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(got[1], tc.grad.numpy(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("stride", "dilation", "padded", "kernel"), CASES)
def test_windows_are_turned_around(stride: int, dilation: int, padded: bool, kernel: int) -> None:
    d, x, k, y, _, _ = convolution(stride, dilation, padded, kernel)
    start = value(ir.Input("seed", "tensor"), y.shape, "f64", differentiable=False)
    backprop = ir.Backprop(y, start, {}, {})
    program = lowered([x, k, start], [value(ir.GradOf(x, backprop), x.shape, differentiable=False)], d)
    for assign in program.assigns:
        assert not assign.target.guarded
        assert all(isinstance(i, Affine) and separate(i) for i in assign.target.index)


@pytest.mark.parametrize(("stride", "kernel"), [(2, 2), (2, 3), (1, 3)])
def test_max_pooling(stride: int, kernel: int) -> None:
    n = stride * 3 + kernel
    d = Dims(b=2, o=4, p=4, k=kernel, l=kernel, c=3)
    x = tensor("x", (n, n, 3), batch=(2,))
    axes: dict[str, Any] = {"wh": d.window("o", "k", stride), "ww": d.window("p", "l", stride)}
    y = reduce(d, "max", "b | wh ww c => b | o p c", x, to=shape((4, 4, 3), batch=(2,)), **axes)
    a, g = RNG.standard_normal((2, n, n, 3)), RNG.standard_normal((2, 4, 4, 3))
    got = gradients({x: a}, y, [x], d, g)[0]
    ta = torch.tensor(a, requires_grad=True)
    torch.nn.functional.max_pool2d(ta.permute(0, 3, 1, 2), kernel, stride).backward(torch.tensor(g).permute(0, 3, 1, 2))
    np.testing.assert_allclose(got, ta.grad.numpy(), rtol=1e-10, atol=1e-10)
