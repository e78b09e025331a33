"""A program that runs: its routines, its parameters, its data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocannl_lang.build.routines import BuiltRoutine, build_routine
from ocannl_lang.build.values import RoutineRef
from ocannl_lang.diagnostics.model import Collector, Diagnostic
from ocannl_lang.driver.checking import Checked, all_graphs
from ocannl_lang.driver.collecting import fewer_collections
from ocannl_lang.driver.errors import ProgramErrors
from ocannl_lang.driver.execution import Executable, make_executable
from ocannl_lang.driver.initial import Drawn, Initial, Zeros, drawn
from ocannl_lang.driver.options import RunOptions
from ocannl_lang.driver.positions import misplaced_positions
from ocannl_lang.graph import ir
from ocannl_lang.graph.dtypes import dtype as dtype_of
from ocannl_lang.graph.ir import Assigned, Cell, Graph, Value
from ocannl_lang.graph.precision import infer_precisions
from ocannl_lang.loops.ir import Buffer
from ocannl_lang.shapes import Solution, solve
from ocannl_lang.shapes.terms import (
    ROW_KINDS,
    Constraint,
    DimEq,
    DimVar,
    Problem,
    Row,
    RowEq,
    Side,
    Size,
    Unknown,
)
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast
from ocn_runtime.calls import Counter

Array = NDArray[Any]


class Program:
    """A checked program with the state of its parameters."""

    def __init__(self, checked: Checked, options: RunOptions, path: Path) -> None:
        self.checked = checked
        self.options = options
        self.path = path
        self.store: dict[str, Array] = {}
        self.preset: dict[str, Array] = {}
        self.data: dict[str, Array] = {}
        self.data_sizes: dict[Unknown, int] = {}
        self.routines = {name: Routine(self, built) for name, built in checked.routines.items()}
        self.params = Parameters(self)
        self._precisions: Mapping[Any, str] | None = checked.precisions or None
        # How the parameters that have been made began, and who says it of those that were computed: path, array, whether it is random.
        self.initials: dict[str, Initial | None] = {}
        self.describe: Callable[[str, Array, bool], Initial | None] = lambda path, array, random: None
        self._initial_graphs: dict[str, Graph] = {}
        self._initial_precisions: Mapping[Any, str] = {}
        self._variants: dict[tuple[str, str], Routine] = {}
        self._variant_graphs: list[Graph] = []

    def routine(self, name: str, ref: RoutineRef | None = None) -> Routine:
        """A routine by name; with a configured reference the variant that it asks for, built when first used."""
        found = self.routines[name]
        if ref is None or not ref.config:
            return found
        key = (name, repr(ref.config))
        variant = self._variants.get(key)
        if variant is None:
            world = self.checked.world
            outside, world.collector = world.collector, Collector()
            try:
                built = build_routine(world, ref.module, ref.definition, dict(ref.config))
                faults = [d for d in world.collector.diagnostics if d.severity == "error"]
            finally:
                world.collector = outside
            if faults:
                raise ProgramErrors(faults)
            self.checked.problem.constraints.extend(built.build.problem.constraints)
            self.checked.problem.leaves.extend(built.build.problem.leaves)
            self._variant_graphs.append(built.graph)
            self._precisions = None
            self._initial_graphs.clear()
            variant = self._variants[key] = Routine(self, built)
        return variant

    @property
    def module(self) -> ast.Module:
        return self.checked.main.syntax

    @property
    def threads(self) -> int:
        from ocn_runtime.cpu import default_threads

        return self.options.threads or default_threads()

    # ------------------------------------------------------------ solving

    def solve(
        self, bindings: Mapping[Unknown, int], extra: Sequence[Constraint] = (), more: Problem | None = None
    ) -> Solution:
        """The shapes of the whole program with the sizes of one call."""
        problem = self.checked.problem
        if extra or more is not None:
            problem = Problem(list(problem.constraints), list(problem.leaves))
            problem.constraints.extend(extra)
            if more is not None:
                problem.constraints.extend(more.constraints)
                problem.leaves.extend(more.leaves)
        return solve(problem, {**self.data_sizes, **bindings})

    def precisions(self, graph: Graph | None = None) -> Mapping[Any, str]:
        """Precisions of all values of the program's routines, or with those of one more graph."""
        if graph is None:
            if self._precisions is None:
                self._precisions = infer_precisions(self._graphs(), Collector())
            return self._precisions
        return infer_precisions([*self._graphs(), graph], Collector())

    def precision(self, cell: Cell) -> str:
        """The precision of a parameter or state."""
        return self.precisions().get(cell) or cell.precision or "f32"

    def fork(self) -> Program:
        """A program of the same code with copies of what it has learned; data is shared."""
        fork = Program(self.checked, self.options, self.path)
        fork.store.update({path: array.copy() for path, array in self.store.items()})
        fork.preset.update({path: array.copy() for path, array in self.preset.items()})
        fork.data.update(self.data)
        fork.data_sizes.update(self.data_sizes)
        fork.initials.update(self.initials)
        return fork

    def _graphs(self) -> list[Graph]:
        return [*all_graphs(self.checked), *self._variant_graphs]

    # ------------------------------------------------------------ storage

    def array(self, buffer: Buffer, solution: Solution) -> Array:
        """The array of a persistent buffer, made when first needed."""
        if buffer.role == "data":
            return self.data[buffer.key]
        cell = self.checked.world.cells[buffer.key]
        return self.cell_array(cell, solution)

    def cell_array(self, cell: Cell, solution: Solution) -> Array:
        """The array of a parameter or state; its size is fixed from now on. Raises `ProgramErrors` where it was fixed otherwise."""
        sizes = solution.shape(cell.shape).sizes
        shape = tuple(s for s in sizes if isinstance(s, int))
        if len(shape) != len(sizes):
            raise ProgramErrors([_undetermined(cell)])
        found = self.store.get(cell.path)
        if found is not None:
            if found.shape != shape:
                raise ProgramErrors([_other_size(cell, found.shape, shape)])
            return found
        precision = self.precision(cell)
        dtype = dtype_of(precision)
        preset = self.preset.pop(cell.path, None)
        if preset is not None:
            if preset.shape != shape:
                self.preset[cell.path] = preset
                raise ProgramErrors([_preset_size(cell, preset.shape, shape)])
            found = np.array(preset, dtype=dtype, order="C")
        else:
            found = self._initial(cell, shape, dtype, precision, solution)
        self.store[cell.path] = found
        return found

    def _initial(
        self, cell: Cell, shape: tuple[int, ...], dtype: np.dtype[Any], precision: str, solution: Solution
    ) -> Array:
        if cell.init is not None:
            found = self._computed_initial(cell, solution)
            random = _random(cell.init)
            if random is not None:
                self.initials[cell.path] = self.describe(cell.path, found, random)
            return found
        if cell.kind == "state" or dtype.kind in "iu":
            self.initials[cell.path] = Zeros()
            return np.zeros(shape, dtype)
        solved = solution.shape(cell.shape)
        batch, output, input = (
            tuple(n for n in r.sizes if isinstance(n, int)) for r in (solved.batch, solved.output, solved.input)
        )
        self.initials[cell.path] = Drawn(batch, output, input)
        return drawn(cell.path, batch, output, input, precision, self.options.seed)

    def _computed_initial(self, cell: Cell, solution: Solution) -> Array:
        """The initial value's graph, spread over the shape of the cell."""
        graph, precisions = self._initial_graph(cell)
        backend = (
            "reference" if self.options.backend == "reference" else _initial_backend(solution.shape(cell.shape).sizes)
        )
        executable = make_executable(graph, solution, precisions, self, backend, 1)
        (result,) = executable.run([], self.options.seed, 0)
        return result

    def _initial_graph(self, cell: Cell) -> tuple[Graph, Mapping[Any, str]]:
        """The graph of an initial value, with precisions: those of all initial values are found together."""
        if cell.path not in self._initial_graphs:
            found = self.precisions()
            for c in self.cells():
                if c.init is not None:
                    precision = found.get(c) or c.precision or "f32"
                    spread = Value(
                        Assigned(None, "set", True, None, c.init), c.shape, precision, False, c.path, c.origin, False
                    )
                    self._initial_graphs[c.path] = Graph(f"{c.path}.init", [], [spread], {}, False, None)
            self._initial_precisions = infer_precisions([*self._graphs(), *self._initial_graphs.values()], Collector())
        return self._initial_graphs[cell.path], self._initial_precisions

    def cells(self) -> list[Cell]:
        """All parameters and states, in the order of the text."""
        return list(self.checked.world.cells.values())

    def materialise(self) -> None:
        """Give every parameter whose sizes the program itself fixes its array."""
        solution = self.checked.solution
        if solution is None:
            return
        for cell in self.cells():
            if cell.path not in self.store and self.in_a_routine(cell):
                sizes = solution.shape(cell.shape).sizes
                if all(isinstance(s, int) for s in sizes):
                    self.cell_array(cell, solution)

    def in_a_routine(self, cell: Cell) -> bool:
        """Whether a routine has this parameter or state."""
        return any(cell in r.built.build.first for r in self.routines.values())

    # ------------------------------------------------------------ data

    def load_data(self, graph: Graph) -> None:
        """Load the data that a graph reads, and learn the sizes that files decide."""
        for value in reachable(graph):
            if isinstance(value.op, ir.Data) and value.op.key not in self.data:
                from ocannl_lang.driver.data import load_datum

                array, sizes = load_datum(self, value)
                self.data[value.op.key] = array
                self.data_sizes.update(sizes)


def _random(init: Value) -> bool | None:
    """Whether an initial value depends on the seed; None if it depends on more than the text and the seed."""
    found = list(reachable(Graph("", [], [init], {}, False, None)))
    if any(isinstance(v.op, (ir.CellValue, ir.Data)) for v in found):
        return None
    return any(isinstance(v.op, ir.Draw) for v in found)


def _initial_backend(sizes: Sequence[Any]) -> str:
    """Small initial values are not worth compiling."""
    count = 1
    for s in sizes:
        count *= int(s)
    return "reference" if count < 4_000_000 else "cpu"


def reachable(graph: Graph) -> Iterator[Value]:
    """All values that results and final versions need."""
    stack = [*graph.results, *graph.finals.values()]
    seen = set(stack)
    while stack:
        value = stack.pop()
        yield value
        operands = list(ir.operands(value))
        if isinstance(value.op, ir.Custom):
            operands += [v for pair in value.op.contributions for v in pair]
        for o in operands:
            if o not in seen:
                seen.add(o)
                stack.append(o)


# ---------------------------------------------------------------- routines


class Routine:
    """A routine of a program, called with arrays. Compiled once for each combination of sizes."""

    def __init__(self, program: Program, built: BuiltRoutine) -> None:
        self.program = program
        self.built = built
        self.counter = Counter()
        self._executables: dict[tuple[tuple[int, ...], ...], Executable] = {}
        self._dtypes: list[np.dtype[Any]] | None = None

    @property
    def name(self) -> str:
        return self.built.definition.name.name

    @property
    def doc(self) -> str | None:
        return self.built.definition.doc

    @property
    def span(self) -> Span:
        return self.built.definition.span

    @property
    def inputs(self) -> list[tuple[str, str, str]]:
        """Name, kind (`tensor`, `scalar`, `index`) and written type of each argument."""
        found: list[tuple[str, str, str]] = []
        for p, value in zip(self.built.definition.params, self.built.graph.inputs):
            assert isinstance(value.op, ir.Input)
            found.append((p.name.name, value.op.kind, p.type.span.text if p.type else ""))
        return found

    @property
    def tuple_result(self) -> bool:
        return self.built.graph.tuple_result

    @property
    def calls(self) -> int:
        """How often it was called."""
        return self.counter.calls

    def input_dtypes(self) -> list[np.dtype[Any]]:
        """The precision in which each argument is taken."""
        if self._dtypes is None:
            precisions = self.program.precisions()
            self._dtypes = [dtype_of(precisions.get(v) or v.precision or "f32") for v in self.built.graph.inputs]
        return self._dtypes

    def call(self, args: Sequence[Array], *, out: Sequence[Array] | None = None) -> list[Array]:
        """Run on arrays that have the precisions of `input_dtypes`. Raises `ProgramErrors` (E0701) where they do not fit."""
        return self.invoke(args, out)[0]

    def invoke(self, args: Sequence[Array], out: Sequence[Array] | None = None) -> tuple[list[Array], Executable]:
        """As `call`, with the code that ran."""
        executable = self.executable(args)
        count = self.counter.calls
        self.counter.calls += 1
        return executable.run(args, self.program.options.seed, count, out), executable

    def executable(self, args: Sequence[Array]) -> Executable:
        """The code for the sizes of these arguments."""
        key = tuple(a.shape for a in args)
        found = self._executables.get(key)
        if found is None:
            with fewer_collections():
                found = self._executables[key] = self._make(args)
        self.check_positions(args)
        return found

    def limits(self, args: Sequence[Array]) -> list[int | None]:
        """For each argument that is a position what it has to be below, for arguments of these sizes."""
        found: list[int | None] = []
        for value in self.built.graph.inputs:
            known = None
            if isinstance(value.op, ir.Input) and value.op.kind == "index":
                known = value.op.limit.value if isinstance(value.op.limit, Size) else None
                if isinstance(known, Unknown):
                    known = bind_sizes(self.built.graph.inputs, args)[0].get(known)
            found.append(known if isinstance(known, int) else None)
        return found

    def check_positions(self, args: Sequence[Array]) -> None:
        """Raises `ProgramErrors` (E0701) for a position that is outside."""
        for value, arg, limit in zip(self.built.graph.inputs, args, self.limits(args)):
            if limit is not None and not 0 <= int(arg) < limit:
                raise ProgramErrors([_misfit(value, f"`{value.name}` is a position below {limit}, not {int(arg)}")])

    def _make(self, args: Sequence[Array]) -> Executable:
        graph = self.built.graph
        program = self.program
        program.load_data(graph)
        bindings, extra = bind_sizes(graph.inputs, args)
        solution = program.solve(bindings, extra)
        faults = [e.diagnostic for e in solution.errors] or misplaced_positions(graph, solution)
        if faults:
            raise ProgramErrors(faults)
        from ocannl_lang.codegen.llvm.types import Unsupported

        try:
            return make_executable(
                graph, solution, program.precisions(), program, program.options.backend, program.threads
            )
        except Unsupported as error:
            raise ProgramErrors([Diagnostic("E0602", str(error), self.built.definition.name.span)]) from error


def bind_sizes(inputs: Sequence[Value], args: Sequence[Array]) -> tuple[dict[Unknown, int], list[Constraint]]:
    """What the arguments fix: the unknowns of the signature, and sizes that it leaves open."""
    bindings: dict[Unknown, int] = {}
    where: dict[Unknown, str] = {}
    extra: list[Constraint] = []
    if len(inputs) != len(args):
        raise ProgramErrors([_count_misfit(inputs, len(args))])
    for value, arg in zip(inputs, args):
        rows = [value.shape.row(kind) for kind in ROW_KINDS]
        fixed = sum(len(r.lead) + len(r.trail) for r in rows)
        open_rows = sum(r.var is not None for r in rows)
        spare = arg.ndim - fixed
        if spare < 0 or (spare > 0 and open_rows == 0):
            raise ProgramErrors([_rank_misfit(value, arg, fixed)])
        if open_rows > 1 and spare > 0:
            raise ProgramErrors(
                [_misfit(value, f"`{value.name}` has more than one row of any number of axes: give its type more axes")]
            )
        sizes = iter(arg.shape)
        for kind, row in zip(ROW_KINDS, rows):
            for dim in row.lead:
                _bind(value, dim, next(sizes), bindings, where, extra)
            if row.var is not None:
                axes = tuple(Size(next(sizes)) for _ in range(spare))
                side = Side(value.name, kind, value.origin.span)
                extra.append(RowEq(Row((), row.var, ()), Row((), None, axes), side, side, value.origin))
                spare = 0
            for dim in row.trail:
                _bind(value, dim, next(sizes), bindings, where, extra)
    return bindings, extra


def _bind(
    value: Value, dim: Size | DimVar, size: int, bindings: dict[Unknown, int], where: dict[Unknown, str],
    extra: list[Constraint],
) -> None:  # fmt: skip
    if isinstance(dim, DimVar):
        side = Side(value.name, "output", value.origin.span)
        extra.append(DimEq(dim, Size(size), side, side, value.origin))
        return
    if isinstance(dim.value, int):
        if dim.value != size:
            raise ProgramErrors([_misfit(value, f"`{value.name}` has an axis of size {dim.value}, not {size}")])
        return
    known = bindings.get(dim.value)
    if known is None:
        bindings[dim.value] = size
        where[dim.value] = value.name
    elif known != size:
        first = where[dim.value]
        raise ProgramErrors(
            [_misfit(value, f"`{dim.value.name}` is {known} in `{first}` and {size} in `{value.name}`")]
        )


def _misfit(value: Value, message: str) -> Diagnostic:
    return Diagnostic("E0701", message, value.origin.span, "this argument does not fit")


def _rank_misfit(value: Value, arg: Array, fixed: int) -> Diagnostic:
    got = f"{arg.ndim} ({', '.join(map(str, arg.shape))})" if arg.ndim else "none (a number)"
    axes = f"{fixed} ax{'i' if fixed == 1 else 'e'}s" if fixed else "no axes"
    return _misfit(value, f"`{value.name}` has {axes}, the argument {got}")


def _count_misfit(inputs: Sequence[Value], count: int) -> Diagnostic:
    wanted = ", ".join(f"`{v.name}`" for v in inputs) or "none"
    span = inputs[0].origin.span if inputs else Span(_nowhere(), 0, 0)
    return Diagnostic("E0701", f"{count} arguments where {len(inputs)} are taken", span, notes=(f"it takes {wanted}",))


def _nowhere() -> Any:
    from ocannl_lang.source import Source

    return Source("<call>", "")


def _undetermined(cell: Cell) -> Diagnostic:
    return Diagnostic(
        "E0407", f"the size of `{cell.path}` is not fixed by this call", cell.origin.span,
        "it depends on the arguments of another routine", helps=("call that routine first, or write the size",),
    )  # fmt: skip


def _other_size(cell: Cell, had: tuple[int, ...], wanted: tuple[int, ...]) -> Diagnostic:
    return Diagnostic(
        "E0701", f"`{cell.path}` has the shape {list(had)}, this call needs {list(wanted)}", cell.origin.span,
        "the first call fixed its size",
    )  # fmt: skip


def _preset_size(cell: Cell, had: tuple[int, ...], wanted: tuple[int, ...]) -> Diagnostic:
    return Diagnostic(
        "E0803", f"`{cell.path}` was given the shape {list(had)} and has {list(wanted)}", cell.origin.span
    )


# ---------------------------------------------------------------- parameters


class Parameters(Mapping[str, Array]):
    """Parameters and states by path. Reading copies out, writing checks and copies in."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def __getitem__(self, path: str) -> Array:
        program = self._program
        if path not in program.store and path not in program.preset:
            cell = program.checked.world.cells.get(path)
            if cell is None:
                raise KeyError(path)
            program.materialise()
        found = program.store.get(path)
        if found is None:
            found = program.preset.get(path)
        if found is None:
            raise ProgramErrors([_not_fixed_yet(program.checked.world.cells[path])])
        return found.copy()

    def __iter__(self) -> Iterator[str]:
        return iter(self._program.checked.world.cells)

    def __len__(self) -> int:
        return len(self._program.checked.world.cells)

    def set(self, path: str, value: Array) -> None:
        """Copy `value` into the parameter; one whose size nothing has fixed yet keeps it until then."""
        program = self._program
        cell = program.checked.world.cells.get(path)
        if cell is None:
            raise KeyError(path)
        found = program.store.get(path)
        if found is None:
            sizes = program.checked.solution.shape(cell.shape).sizes if program.checked.solution else ()
            if program.checked.solution and all(isinstance(s, int) for s in sizes) and tuple(sizes) != value.shape:
                raise ProgramErrors(
                    [_preset_size(cell, value.shape, tuple(int(s) for s in sizes if isinstance(s, int)))]
                )
            program.preset[path] = np.array(value)
            return
        if found.shape != value.shape:
            raise ProgramErrors([_preset_size(cell, value.shape, found.shape)])
        found[...] = value


def _not_fixed_yet(cell: Cell) -> Diagnostic:
    return Diagnostic(
        "E0407", f"the size of `{cell.path}` is not fixed yet", cell.origin.span, "a call of its routine fixes it"
    )
