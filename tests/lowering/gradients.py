"""Checking gradients against finite differences, in f64."""

from __future__ import annotations

from typing import Any

import numpy as np

from ocannl_lang.codegen.reference import run_program
from ocannl_lang.graph import ir
from ocannl_lang.graph.dtypes import dtype
from tests.graph.make import Dims, lowered, run, value


def gradients(
    inputs: dict[ir.Value, Any],
    root: ir.Value,
    wanted: list[ir.Value],
    dims: Dims | None = None,
    seed: Any = None,
    cells: Any = None,
) -> list[Any]:
    """The gradients of `root` for `wanted`, from the gradient `seed` of the root (1 if None)."""
    given = dict(inputs)
    start = None
    if seed is not None:
        start = value(ir.Input("seed", "tensor"), root.shape, "f64", differentiable=False)
        given[start] = seed
    backprop = ir.Backprop(root, start, {}, {})
    results = [value(ir.GradOf(v, backprop), v.shape, differentiable=False) for v in wanted]
    return run(given, results, dims, cells=cells)


def check(
    inputs: dict[ir.Value, Any],
    root: ir.Value,
    dims: Dims | None = None,
    step: float = 1e-6,
    tolerance: float = 2e-6,
) -> None:
    """All float inputs have the gradients that finite differences give, for a random gradient of the root."""
    wanted = [v for v in inputs if v.precision == "f64"]
    program = lowered(list(inputs), [root], dims)

    def forward(given: dict[ir.Value, Any]) -> Any:
        pairs = zip(program.inputs, given.values(), strict=True)
        (result,) = run_program(program, {b: np.asarray(x, dtype(b.prec)) for b, x in pairs})
        return result

    base = forward(inputs)
    # Positions that nothing reached hold infinities, which do not move.
    finite = np.isfinite(base)
    seed = np.where(finite, np.random.default_rng(7).standard_normal(base.shape), 0.0)
    found = gradients(inputs, root, wanted, dims, seed)
    for v, got in zip(wanted, found, strict=True):
        x = np.asarray(inputs[v], np.float64)
        numeric = np.zeros_like(x)
        for at in np.ndindex(x.shape):
            moved = np.zeros_like(x)
            moved[at] = step
            up, down = forward({**inputs, v: x + moved}), forward({**inputs, v: x - moved})
            numeric[at] = np.sum(seed * np.where(finite, up, 0.0) - seed * np.where(finite, down, 0.0)) / (2 * step)
        assert got.shape == x.shape
        np.testing.assert_allclose(got, numeric, rtol=tolerance, atol=tolerance, err_msg=v.name)
