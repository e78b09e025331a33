"""Gradients of pooling over random windows: overlapping, side by side, with gaps, with a rest that no window reaches."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocannl_lang.codegen.cpu import compile_program
from ocannl_lang.graph import ir
from ocannl_lang.loops.facts import covers
from ocannl_lang.loops.ir import Access, Affine, Apply, Assign, Buffer, Program, Var
from ocannl_lang.loops.optimise import optimise
from ocannl_lang.loops.passes.common import share_common
from ocannl_lang.loops.verify import verify
from tests.graph.make import Dims, apply, lowered, reduce, shape, tensor, value

torch: Any = pytest.importorskip("torch")
F = torch.nn.functional


def pooled(accum: str, strides: tuple[int, int], kernels: tuple[int, int], rests: tuple[int, int]) -> Program:
    """The gradient of relu(x) pooled, for x, from the gradient of the result; 3 by 2 windows of 2 rows and 3 channels."""
    h, w = (s * (o - 1) + k + r for s, o, k, r in zip(strides, (3, 2), kernels, rests))
    d = Dims(b=2, o=3, p=2, k=kernels[0], l=kernels[1], c=3)
    x = tensor("x", (h, w, 3), batch=(2,))
    axes: dict[str, Any] = {"wh": d.window("o", "k", strides[0]), "ww": d.window("p", "l", strides[1])}
    active = apply("relu", x, to=x.shape, precision="f64")
    y = reduce(d, accum, "b | wh ww c => b | o p c", active, to=shape((3, 2, 3), batch=(2,)), **axes)
    start = value(ir.Input("seed", "tensor"), y.shape, "f64", differentiable=False)
    return lowered([x, start], [value(ir.GradOf(x, ir.Backprop(y, start, {}, {})), x.shape, differentiable=False)], d)


def by_torch(accum: str, x: Any, g: Any, strides: tuple[int, int], kernels: tuple[int, int]) -> Any:
    t = torch.tensor(x, requires_grad=True)
    planes = torch.relu(t).permute(0, 3, 1, 2)
    if accum == "max":
        y = F.max_pool2d(planes, kernels, strides)
    else:
        y = F.avg_pool2d(planes, kernels, strides, divisor_override=1 if accum == "add" else None)
    y[:, :, :3, :2].backward(torch.tensor(g).permute(0, 3, 1, 2))
    return t.grad.numpy()


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32))
def test_random_windows(seed: int) -> None:
    r = random.Random(seed)
    accum = r.choice(("max", "add", "mean"))
    strides, kernels = ((r.randint(1, 3), r.randint(1, 3)) for _ in range(2))
    # A rest of less than a stride: one more window would not fit.
    rests = (r.randrange(strides[0]), r.randrange(strides[1]))
    program = pooled(accum, strides, kernels, rests)
    verify(optimise(program))
    n = np.random.default_rng(seed)
    # Nothing below 0, where all of a window may tie.
    x, g = n.random(program.inputs[0].shape) + 0.1, n.standard_normal(program.inputs[1].shape)
    (got,) = compile_program(program).run(dict(zip(program.inputs, (x, g))))
    np.testing.assert_allclose(got, by_torch(accum, x, g, strides, kernels), rtol=1e-12, atol=1e-12)


def test_windows_side_by_side_are_one_loop_nest() -> None:
    program = pooled("max", (2, 3), (2, 3), (0, 0))
    last = optimise(program).assigns[-1]
    assert last.accum == "set" and last.target.buffer in program.outputs
    assert [len(i.terms) for i in last.target.index if isinstance(i, Affine)] == [1, 2, 2, 1]


def test_digits_of_positions() -> None:
    i, k = Var("i", 3), Var("k", 2)
    x, a, b = Buffer("x", (3, 2), "f32", "input"), Buffer("a", (6,), "f32"), Buffer("b", (6,), "f32")
    source = Access(x, (Affine.of(i), Affine.of(k)))
    rows = Assign(Access(a, (Affine(((i, 2), (k, 1))),)), "set", False, (i, k), source)
    columns = Assign(Access(b, (Affine(((i, 1), (k, 3))),)), "set", False, (i, k), source)
    assert covers(rows) and covers(columns)
    for terms, offset in ((((i, 2), (k, 2)), 0), (((i, 1), (k, 1)), 0), (((i, 2), (k, 1)), 1), (((i, 2),), 0)):
        assert not covers(Assign(Access(a, (Affine(terms, offset),)), "set", False, (i, k), source))
    # Equal but for their places: not the same.
    n, y = Var("n", 6), Buffer("y", (6,), "f32")
    both = Apply("sub", (Access(a, (Affine.of(n),)), Access(b, (Affine.of(n),))), "f32")
    difference = Assign(Access(y, (Affine.of(n),)), "set", False, (n,), both)
    assert len(share_common(Program("p", (x,), (y,), [rows, columns, difference])).assigns) == 3
