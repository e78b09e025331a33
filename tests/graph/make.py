"""Making graph values by hand, with sizes that are known: what tests of the graph and of lowering build their programs
from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ocannl_lang.graph import ir
from ocannl_lang.shapes.terms import DimVar, Origin, Row, RowVar, Shape, Size
from ocannl_lang.source import Source, Span

SOURCE = Source("test.ocn", "a test\n")
ORIGIN = Origin(Span(SOURCE, 0, 6))


def sizes(*dims: int) -> Row:
    return Row((), None, tuple(Size(d) for d in dims))


def shape(output: tuple[int, ...] = (), input: tuple[int, ...] = (), batch: tuple[int, ...] = ()) -> Shape:
    return Shape(sizes(*batch), sizes(*output), sizes(*input))


def value(
    op: Any,
    shape: Shape,
    precision: str | None = None,
    *,
    name: str = "",
    differentiable: bool = True,
    scalar: bool = False,
) -> ir.Value:
    return ir.Value(op, shape, precision, scalar, name, ORIGIN, differentiable)


def tensor(
    name: str,
    output: tuple[int, ...] = (),
    input: tuple[int, ...] = (),
    batch: tuple[int, ...] = (),
    precision: str | None = "f64",
) -> ir.Value:
    """A tensor argument."""
    return value(ir.Input(name, "tensor"), shape(output, input, batch), precision, name=name)


def number(x: Any, precision: str | None = None) -> ir.Value:
    return value(ir.Number(x), Shape(), precision, differentiable=False, scalar=True)


def apply(fn: str, *args: ir.Value, to: Shape, precision: str | None = None, differentiable: bool = True) -> ir.Value:
    return value(ir.Map(fn, args), to, precision, differentiable=differentiable)


def graph(
    inputs: list[ir.Value], results: list[ir.Value], finals: Mapping[ir.Cell, ir.Value] | None = None, name: str = "f"
) -> ir.Graph:
    return ir.Graph(name, inputs, results, dict(finals or {}), len(results) != 1, None)


def cell(path: str, at: Shape, precision: str | None = "f64", kind: Any = "parameter") -> ir.Cell:
    return ir.Cell(kind, path, at, precision, None, ORIGIN)


def cell_value(of: ir.Cell) -> ir.Value:
    return value(ir.CellValue(of), of.shape, None, name=of.path.split(".")[-1], differentiable=of.kind == "parameter")


class Dims:
    """Labels and row variables by name, with sizes: a solution for tests, in which every size is given."""

    def __init__(self, **dims: int | tuple[int, ...]) -> None:
        self.labels = {k: ir.Label(k, DimVar(k, ORIGIN)) for k, v in dims.items() if isinstance(v, int)}
        self.rows = {k: RowVar(k, ORIGIN) for k, v in dims.items() if not isinstance(v, int)}
        self.dim_sizes: dict[DimVar, int] = {}
        self.row_sizes: dict[RowVar, tuple[int, ...]] = {}
        for k, v in dims.items():
            if isinstance(v, int):
                dim = self.labels[k].dim
                assert isinstance(dim, DimVar)
                self.dim_sizes[dim] = v
            else:
                self.row_sizes[self.rows[k]] = v

    def __getitem__(self, name: str) -> ir.Label:
        return self.labels[name]

    def size(self, name: str) -> int:
        return self.dim_sizes[self.labels[name].dim]  # type: ignore[index]


def scalar_array(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(x)
