"""From the graph of a routine to loops: every value that is needed gets a buffer and the assignments that write it.

Values are lowered in an order in which operands come first, otherwise in the order of the text. A value is described
as a `lower_nest.Nest`, written out, and remembered, so that gradients (`loops.gradient`) can run over the same loops
with target and operands exchanged. What turns out not to be needed (a loss of which only the gradient is wanted) is
dropped at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ocannl_lang.graph.dtypes import compute_precision, dtype, is_float
from ocannl_lang.graph.ir import (
    Arange,
    Array,
    Assigned,
    Cell,
    CellValue,
    Custom,
    Data,
    Draw,
    GradOf,
    Graph,
    Input,
    Map,
    Number,
    Product,
    Reduce,
    Seed,
    Stack,
    Transpose,
    Value,
)
from ocannl_lang.graph.order import topological
from ocannl_lang.graph.precision import Key, working_precision
from ocannl_lang.graph.primitives import PRIMITIVES
from ocannl_lang.graph.random import stream_of
from ocannl_lang.loops.gradient import Gradients
from ocannl_lang.loops.ir import Access, Affine, Apply, Assign, Buffer, Dynamic, Expr, Index, Position, Program, Random
from ocannl_lang.loops.ir import accesses as accesses_of
from ocannl_lang.loops.lower_assign import lower_assigned
from ocannl_lang.loops.lower_expr import const, convert, guarded, mul
from ocannl_lang.loops.lower_nest import Leaves, Nest, Turn, Writer
from ocannl_lang.loops.lower_reduce import lower_reduce
from ocannl_lang.loops.lower_shapes import (
    Axes,
    Extents,
    Places,
    Solution,
    align,
    align_all,
    linear,
    places_of,
    row_places,
    solved_extents,
    whole,
)


def lower(graph: Graph, solution: Solution, precisions: Mapping[Key, str]) -> Program:
    """The loops of a routine whose sizes are all known.

    `solution` gives the sizes (of a problem solved with the sizes of the arguments), `precisions` is what
    `graph.precision.infer_precisions` found.
    """
    lowering = Lowering(graph, solution, dict(precisions))
    roots = [*graph.results, *graph.finals.values()]
    gradients = Gradients(lowering, roots)
    lowering.gradients = gradients
    for value in topological(roots, gradients.dependencies):
        lowering.lower(value)
    return lowering.program()


class Lowering:
    """The values of one routine and their buffers."""

    gradients: Gradients

    def __init__(self, graph: Graph, solution: Solution, precisions: dict[Key, str]) -> None:
        self.graph = graph
        self.solution = solution
        self.precisions = precisions
        self.writer = Writer()
        self.buffers: dict[Value, Buffer] = {}
        self.nests: dict[Value, Nest] = {}
        self._extents: dict[Value, Extents] = {}
        self._cells: dict[Cell, Buffer] = {}
        self._inputs = [self._make_input(v) for v in graph.inputs]

    # ------------------------------------------------------------ what operations read

    def extents(self, value: Value) -> Extents:
        found = self._extents.get(value)
        if found is None:
            found = self._extents[value] = solved_extents(self.solution, value.shape)
        return found

    def number(self, value: Value) -> float | int:
        """The number that a `Number` holds."""
        assert isinstance(value.op, Number)
        term = value.op.value
        found = term if isinstance(term, (int, float)) else self.solution.number(term)
        if not isinstance(found, (int, float)):
            raise TypeError(f"a number is still open: {found}")
        return found

    def buffer(self, value: Value) -> Buffer:
        """The buffer of a value that was lowered; a number is written into one when it has to be."""
        if isinstance(value.op, Number) and value not in self.buffers:
            buffer = self.temp(value)
            self.writer.fill(buffer, self.number(value), value.origin.span)
            self.buffers[value] = buffer
        return self.buffers[value]

    def temp(self, value: Value, name: str = "", prec: str = "") -> Buffer:
        return self.writer.buffer(
            name or value.name or _operation_name(value), self.extents(value).sizes, prec or self.precisions[value]
        )

    def read(self, value: Value, index: Sequence[Index], leaves: Leaves, fill: Callable[[str], float | int]) -> Expr:
        """One element of an operand in its own precision; outside of it `fill` of that precision."""
        sizes = self.extents(value).sizes
        outside = guarded(index, sizes)
        if isinstance(value.op, Number) and not outside:
            return const(self.number(value), self.precisions[value])
        buffer = self.buffer(value)
        access = Access(buffer, tuple(index), outside, fill(buffer.prec) if outside else 0)
        leaves.append((access, value))
        return access

    def read_as(
        self, value: Value, index: Sequence[Index], prec: str, leaves: Leaves, fill: Callable[[str], float | int]
    ) -> Expr:
        """The same in precision `prec`."""
        if isinstance(value.op, Number) and not guarded(index, self.extents(value).sizes):
            return const(self.number(value), prec)
        return convert(self.read(value, index, leaves, fill), prec)

    def read_position(self, value: Value) -> Expr:
        """A scalar int tensor as a position."""
        if isinstance(value.op, Number):
            return const(self.number(value), "i32")
        buffer = self.buffer(value)
        return Access(buffer, tuple(Affine() for _ in buffer.shape))

    # ------------------------------------------------------------ one value

    def lower(self, value: Value) -> None:
        """Write a value whose operands are there."""
        match value.op:
            case CellValue(cell=cell):
                self.buffers[value] = self._cell_buffer(cell, self.precisions[value])
            case Input():
                if value not in self.buffers:
                    self._inputs.append(self._make_input(value))
            case Data(key=key):
                self.buffers[value] = Buffer(
                    value.name or key, self.extents(value).sizes, self.precisions[value], "data", key
                )
            case Array(value=array):
                prec, shape = self.precisions[value], self.extents(value).sizes
                content = np.ascontiguousarray(array.astype(dtype(prec)).reshape(shape))
                self.buffers[value] = Buffer(value.name or "literal", shape, prec, "const", "", content)
            case Number() | Seed():
                pass
            case Assigned():
                lower_assigned(self, value, value.op)
            case Custom(inner=inner):
                self.buffers[value] = self.as_precision(inner, self.precisions[value])
            case GradOf():
                self.buffers[value] = self.gradients.gradient(value)
            case _:
                self.write(value, self._nest(value))

    def write(self, value: Value, nest: Nest) -> None:
        self.nests[value] = nest
        self.buffers[value] = buffer = self.temp(value)
        self.writer.nest(nest, buffer, value.origin.span)

    def as_precision(self, value: Value, prec: str) -> Buffer:
        """The buffer of a value, converted if it has another precision."""
        buffer = self.buffer(value)
        if buffer.prec == prec:
            return buffer
        target, loops = whole(self.temp(value, prec=prec))
        self.writer.assign(target, "set", loops, Access(buffer, target.index), value.origin.span)
        return target.buffer

    def _nest(self, value: Value) -> Nest:
        match value.op:
            case Map(fn=fn, args=args):
                return self._map(value, fn, args)
            case Product(left=left, right=right, addend=addend):
                return self._product(value, left, right, addend)
            case Transpose(operand=operand):
                return self._transpose(value, operand)
            case Stack(row=row, args=args):
                return self._stack(value, row, args)
            case Reduce():
                return lower_reduce(self, value, value.op)
            case Arange():
                places = places_of(self.extents(value))
                prec = self.precisions[value]
                return _pointwise(places, Position(places.index[-1] if places.index else Affine(), prec), prec, [])
            case Draw():
                return self._draw(value, value.op)
            case _:
                raise AssertionError(f"not an operation with loops: {value.op}")

    # ------------------------------------------------------------ operations

    def _map(self, value: Value, fn: str, args: tuple[Value, ...]) -> Nest:
        places = places_of(self.extents(value))
        working = working_precision(value, self.precisions)
        leaves: Leaves = []

        def operand(arg: Value, prec: str | None) -> Expr:
            index = align_all(self.extents(arg), places)
            if prec is None:
                return self.truth(arg, index, leaves)
            return self.read_as(arg, index, prec, leaves, _zero)

        match PRIMITIVES[fn].rule:
            case "declared":
                expr = operand(args[0], self.precisions[value])
            case "logic":
                expr = Apply(fn, tuple(operand(a, None) for a in args), "u8")
            case "compare":
                expr = Apply(fn, tuple(operand(a, working) for a in args), "u8")
            case "select":
                expr = Apply(fn, (operand(args[0], None), *(operand(a, working) for a in args[1:])), working)
            case _ if fn == "stop_gradient":
                expr = operand(args[0], working)
            case _:
                expr = Apply(fn, tuple(operand(a, working) for a in args), working)
        return _pointwise(places, expr, working, leaves)

    def truth(self, value: Value, index: Sequence[Index], leaves: Leaves) -> Expr:
        """An operand of logic: of any precision, a number as 0 or 1."""
        if isinstance(value.op, Number) and not guarded(index, self.extents(value).sizes):
            return const(1 if self.number(value) else 0, "u8")
        return self.read(value, index, leaves, _zero)

    def _product(self, value: Value, left: Value, right: Value, addend: Value | None) -> Nest:
        places = places_of(self.extents(value))
        a, b = self.extents(left), self.extents(right)
        working = working_precision(value, self.precisions)
        inner = list(places.loops)
        contracted = row_places(a.input.sizes, "k", inner)
        left_index = (*align(a.batch, places.batch), *align(a.output, places.output), *contracted)
        right_index = (
            *align(b.batch, places.batch),
            *align(b.output, contracted),
            *align(b.input, places.input),
        )
        leaves: Leaves = []
        factor = self.read_as(left, left_index, working, leaves, _zero)
        product = mul(factor, self.read_as(right, right_index, working, leaves, _zero))
        turn = Turn(tuple(inner), places.index, False, product, tuple(leaves))
        if addend is None:
            return Nest("add", working, (turn,))
        more: Leaves = []
        around = places_of(self.extents(value))
        added = self.read_as(addend, align_all(self.extents(addend), around), working, more, _zero)
        return Nest("add", working, (Turn(around.loops, around.index, False, added, tuple(more)), turn))

    def _transpose(self, value: Value, operand: Value) -> Nest:
        places = places_of(self.extents(value))
        of = self.extents(operand)
        leaves: Leaves = []
        index = (
            *align(of.batch, places.batch),
            *align(of.output, places.input),
            *align(of.input, places.output),
        )
        prec = compute_precision(self.precisions[value])
        return _pointwise(places, self.read_as(operand, index, prec, leaves, _zero), prec, leaves)

    def _stack(self, value: Value, row: str, args: tuple[Value, ...]) -> Nest:
        element = {kind: self.extents(value).row(kind) for kind in ("batch", "output", "input")}
        stacked = element[row]
        element[row] = Axes(stacked.lead[1:], stacked.trail) if stacked.lead else Axes((), stacked.trail[1:])
        working = working_precision(value, self.precisions)
        turns: list[Turn] = []
        for number, arg in enumerate(args):
            places = places_of(Extents(element["batch"], element["output"], element["input"]))
            leaves: Leaves = []
            expr = self.read_as(arg, align_all(self.extents(arg), places), working, leaves, _zero)
            index: list[Affine] = []
            for kind in ("batch", "output", "input"):
                if kind == row:
                    index.append(Affine((), number))
                index.extend(places.row(kind))
            turns.append(Turn(places.loops, tuple(index), False, expr, tuple(leaves)))
        return Nest("set", working, tuple(turns))

    def _draw(self, value: Value, op: Draw) -> Nest:
        places = places_of(self.extents(value))
        prec = "f64" if self.precisions[value] == "f64" else "f32"
        counter = None if op.counter is None else self.read_position(op.counter)
        position = linear(places.index, self.extents(value).sizes)
        return _pointwise(places, Random(op.dist, stream_of(op.place), counter, position, prec), prec, [])

    # ------------------------------------------------------------ storage

    def _make_input(self, value: Value) -> Buffer:
        assert isinstance(value.op, Input)
        name = value.op.name
        buffer = Buffer(name, self.extents(value).sizes, self.precisions[value], "input", name)
        self.buffers[value] = buffer
        return buffer

    def _cell_buffer(self, cell: Cell, prec: str) -> Buffer:
        found = self._cells.get(cell)
        if found is None:
            shape = solved_extents(self.solution, cell.shape).sizes
            role = "param" if cell.kind == "parameter" else "state"
            found = self._cells[cell] = Buffer(cell.path.rsplit(".", 1)[-1], shape, prec, role, cell.path)
        return found

    def program(self) -> Program:
        """The routine, with what nothing needs left out."""
        graph = self.graph
        outputs = tuple(self.buffer(v) for v in graph.results)
        stores: list[tuple[Buffer, Buffer]] = []
        for cell, final in graph.finals.items():
            prec = cell.precision or self.precisions.get(cell) or self.precisions[final]
            persistent = self._cell_buffer(cell, prec)
            content = self.as_precision(final, persistent.prec)
            if content is not persistent:
                stores.append((persistent, content))
        needed = {*outputs, *(content for _, content in stores)}
        assigns = _needed(self.writer.assigns, needed)
        return Program(graph.name, tuple(self._inputs), outputs, assigns, tuple(stores))


def _pointwise(places: Places, expr: Expr, working: str, leaves: Sequence[tuple[Access, Value]]) -> Nest:
    return Nest("set", working, (Turn(places.loops, places.index, False, expr, tuple(leaves)),))


def _needed(assigns: Sequence[Assign], needed: set[Buffer]) -> list[Assign]:
    kept: list[Assign] = []
    for assign in reversed(assigns):
        if assign.target.buffer not in needed:
            continue
        kept.append(assign)
        needed.update(a.buffer for a in accesses_of(assign.value))
        for index in assign.target.index:
            if isinstance(index, Dynamic):
                needed.update(a.buffer for a in accesses_of(index.value))
    return kept[::-1]


def _zero(prec: str) -> float | int:
    return 0.0 if is_float(prec) else 0


def _operation_name(value: Value) -> str:
    match value.op:
        case Map(fn=fn):
            return fn
        case Reduce(accum=accum):
            return accum
        case _:
            return type(value.op).__name__.lower()
