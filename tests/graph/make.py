"""Making graph values by hand, with sizes that are known: what tests of the graph and of lowering build their programs
from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocannl_lang.codegen.reference import run_program
from ocannl_lang.diagnostics.model import Collector
from ocannl_lang.graph import ir
from ocannl_lang.graph.dtypes import dtype
from ocannl_lang.graph.precision import infer_precisions
from ocannl_lang.loops.ir import Program
from ocannl_lang.loops.lower import lower
from ocannl_lang.loops.verify import verify
from ocannl_lang.shapes.terms import DimVar, Origin, Row, RowVar, Shape, Size, SizeOp
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


@dataclass(frozen=True)
class Solved:
    """A solved axis."""

    size: int


@dataclass(frozen=True)
class SolvedAxes:
    """A solved row."""

    lead: tuple[Solved, ...]
    trail: tuple[Solved, ...]


class Dims:
    """Labels and row variables by name, with their sizes: a solution for tests, in which every size is given.

    `slot("a b | ..r.. c -> d")` reads a slot: names, numbers for fixed positions, `..r..`, and axes passed by `{…}`
    keyword.
    """

    def __init__(self, **sizes: int | tuple[int, ...]) -> None:
        self.labels = {k: ir.Label(k, DimVar(k, ORIGIN)) for k, v in sizes.items() if isinstance(v, int)}
        self.rows = {k: RowVar(k, ORIGIN) for k, v in sizes.items() if not isinstance(v, int)}
        self.sizes: dict[Any, Any] = {
            self.labels[k].dim if k in self.labels else self.rows[k]: v for k, v in sizes.items()
        }

    def __getitem__(self, name: str) -> ir.Label:
        return self.labels[name]

    def slot(self, text: str, **axes: Any) -> ir.SlotShape:
        batch, _, rest = text.rpartition("|")
        input, _, output = rest.rpartition("->")
        return ir.SlotShape(*(self._slot_row(r, axes) for r in (batch, output, input)))

    def _slot_row(self, text: str, axes: Mapping[str, Any]) -> ir.SlotRow:
        groups: list[list[Any]] = [[]]
        var = None
        for word in text.split():
            if word.startswith(".."):
                var = self.rows[word.strip(".")]
                groups.append([])
            elif word in axes:
                groups[-1].append(axes[word])
            elif word.isdigit():
                groups[-1].append(ir.Fixed(int(word)))
            else:
                groups[-1].append(self.labels[word])
        return (
            ir.SlotRow((), None, tuple(groups[0]))
            if var is None
            else ir.SlotRow(tuple(groups[0]), var, tuple(groups[1]))
        )

    def window(self, out: str, kernel: str, stride: int = 1, dilation: int = 1, padded: bool = False) -> ir.WindowAxis:
        return ir.WindowAxis(stride, self[out], dilation, self[kernel], padded)

    def concat(self, *parts: str | int) -> ir.ConcatAxis:
        return ir.ConcatAxis(tuple(ir.Label("", Size(p)) if isinstance(p, int) else self[p] for p in parts))

    # ------------------------------------------------------------ as a solution

    def dim(self, dim: Any) -> Solved:
        size: Any = dim.value if isinstance(dim, Size) else self.sizes[dim]
        return Solved(size)

    def row(self, row: Row) -> SolvedAxes:
        lead = tuple(self.dim(d) for d in row.lead)
        trail = tuple(self.dim(d) for d in row.trail)
        inner = () if row.var is None else tuple(Solved(n) for n in self.sizes[row.var])
        return SolvedAxes(lead, (*inner, *trail))

    def number(self, term: Any) -> Any:
        match term:
            case int() | float():
                return term
            case SizeOp(op="/", args=(a, b)):
                return self.number(a) / self.number(b)
            case _:
                return self.dim(term).size


def reduce(
    dims: Dims,
    accum: Any,
    slots: str,
    *args: ir.Value,
    combine: Any = None,
    to: Shape,
    precision: str | None = None,
    **axes: Any,
) -> ir.Value:
    """`slots` as `i k; k j => i j`."""
    operands, _, result = slots.partition("=>")
    parts = tuple(dims.slot(s, **axes) for s in operands.split(";"))
    combine = combine or ("and" if accum in ("and", "or") else "add" if accum in ("max", "min") else "mul")
    op = ir.Reduce(accum, combine, args, parts, dims.slot(result, **axes))
    differentiable = accum not in ("or", "and", "argmax", "argmin")
    return value(op, to, precision, differentiable=differentiable)


def lowered(
    inputs: list[ir.Value],
    results: list[ir.Value],
    dims: Dims | None = None,
    finals: Mapping[ir.Cell, ir.Value] | None = None,
) -> Program:
    """The loops of a routine made by hand."""
    built = graph(inputs, results, finals)
    collector = Collector()
    precisions = infer_precisions(built, collector)
    assert not collector.diagnostics, collector.diagnostics
    program = lower(built, dims or Dims(), precisions)
    verify(program)
    return program


def run(
    inputs: Mapping[ir.Value, Any],
    results: list[ir.Value],
    dims: Dims | None = None,
    finals: Mapping[ir.Cell, ir.Value] | None = None,
    cells: dict[str, Any] | None = None,
    seed: int = 0,
    call_count: int = 0,
) -> list[Any]:
    """Lowers and evaluates. `cells` gives arrays by path, which are updated."""
    program = lowered(list(inputs), results, dims, finals)
    storage: dict[Any, Any] = {
        b: np.asarray(x, dtype(b.prec)) for b, x in zip(program.inputs, inputs.values(), strict=True)
    }
    for b in program.buffers():
        if b.role in ("param", "state", "data"):
            assert cells is not None
            storage[b] = cells[b.key] = np.array(cells[b.key], dtype(b.prec))
    return run_program(program, storage, seed=seed, call_count=call_count)
