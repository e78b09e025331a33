"""Host code that runs: what `main`, tests and functions they call may do besides what building can (section 11).

The evaluator is the one that builds graphs; in host code it asks these services wherever a tensor operation is to be carried out, a
routine called, a file read. A tensor operation on host arrays becomes a small graph of its own, and is run at once.
"""

from __future__ import annotations

import importlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocannl_lang.build import tensors
from ocannl_lang.build.calls import Given
from ocannl_lang.build.context import Build, BuildError, Ctx, Frame, fail
from ocannl_lang.build.expressions import as_tensor, evaluate
from ocannl_lang.build.operators import COMPARISONS, apply_binary
from ocannl_lang.build.reduce import REDUCERS
from ocannl_lang.build.types import describe
from ocannl_lang.build.values import (
    POISON,
    CellRef,
    ExternRef,
    Instance,
    Intrinsic,
    Method,
    Poison,
    RoutineRef,
    Static,
)
from ocannl_lang.diagnostics.model import Collector, Label
from ocannl_lang.driver.errors import ProgramErrors
from ocannl_lang.driver.execution import Executable, make_executable
from ocannl_lang.driver.hosttypes import fit_argument, fit_result
from ocannl_lang.driver.program import Program
from ocannl_lang.graph import ir
from ocannl_lang.graph.dtypes import precision_of_dtype
from ocannl_lang.graph.ir import Cell, Graph, Value
from ocannl_lang.host.array import HostArray
from ocannl_lang.host.builtins import HOST_FUNCTIONS
from ocannl_lang.host.context import HostContext, HostError
from ocannl_lang.host.methods import method_of
from ocannl_lang.shapes import SolvedShape, solve
from ocannl_lang.shapes.terms import Origin, Row, Shape, Size
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast

Array = NDArray[Any]
CACHED_OPERATIONS = 256
"""How many compiled operations on host arrays are kept."""


class HostServices:
    """The services of one run of host code."""

    def __init__(self, program: Program, host: HostContext) -> None:
        self.program = program
        self.host = host
        self._operations: OrderedDict[Hashable, tuple[Executable, list[int], bool]] = OrderedDict()

    # ------------------------------------------------------------ tensors

    def lift(
        self, ctx: Ctx, args: list[Static], run: Callable[[Ctx, list[Static]], Static], span: Span,
        key: Hashable | None = None,
    ) -> Static:  # fmt: skip
        """Carry out a tensor operation on host arrays. With a `key` its code is kept for arguments of the same sizes."""
        arrays: list[HostArray] = []
        collect_arrays(args, arrays)
        full_key = None
        if key is not None:
            full_key = (key, tuple(_signature(a) for a in args), self.program.options.backend)
            found = self._operations.get(full_key)
            if found is not None:
                self._operations.move_to_end(full_key)
                return self._run(found, arrays)
        made = self._make(ctx, args, arrays, run, span, compiled=key is not None and isinstance(key, Instance))
        if made is None:
            return POISON
        if full_key is not None:
            self._operations[full_key] = made
            if len(self._operations) > CACHED_OPERATIONS:
                self._operations.popitem(last=False)
        return self._run(made, arrays)

    def _run(self, made: tuple[Executable, list[int], bool], arrays: list[HostArray]) -> Static:
        executable, _, many = made
        inputs = [
            np.asarray(a.data, dtype=b.dtype, order="C")
            for a, b in zip(arrays, (np.empty(0, dtype_of(b.prec)) for b in executable.program.inputs))
        ]
        results = executable.run(inputs, self.program.options.seed, 0)
        values = [to_host(r, s) for r, s in zip(results, executable.result_shapes)]
        return tuple(values) if many else values[0]

    def _make(
        self, ctx: Ctx, args: list[Static], arrays: list[HostArray], run: Callable[[Ctx, list[Static]], Static], span: Span,
        *, compiled: bool,
    ) -> tuple[Executable, list[int], bool] | None:  # fmt: skip
        world = ctx.world
        graph = Graph("host", [], [], {}, False, span)
        build = Build(world, graph)
        sub = Ctx(build, ctx.frame, None)
        given = {id(a): _input(build, a, i, span) for i, a in enumerate(arrays)}
        graph.inputs = [given[id(a)] for a in arrays]
        outside, world.collector = world.collector, Collector()
        try:
            result = run(sub, [_replace(v, given) for v in args])
            faults = world.collector.diagnostics
        finally:
            world.collector = outside
        for d in faults:
            if d.severity == "error":
                raise BuildError(d)
        if isinstance(result, Poison):
            return None
        many = isinstance(result, tuple)
        parts = list(result) if many else [result]
        graph.results = [as_tensor(sub, p, span, leaf=True) for p in parts]
        for value in graph.results:
            if value.precision is None and _written_ints(value):
                value.precision = "i32"
        program = self.program
        program.load_data(graph)
        alone = not build.first
        solution = solve(build.problem) if alone else program.solve({}, more=build.problem)
        for e in solution.errors:
            raise BuildError(e.diagnostic)
        from ocannl_lang.graph.precision import infer_precisions

        precisions = infer_precisions(graph, Collector()) if alone else program.precisions(graph)
        backend = program.options.backend if compiled else "reference"
        executable = make_executable(graph, solution, precisions, program, backend, program.threads)
        return executable, [], many

    def read_cell(self, cell: Cell) -> HostArray:
        """What a parameter or state holds now."""
        array = self.program.params[cell.path]
        solution = self.program.checked.solution
        assert solution is not None
        shape = solution.shape(cell.shape)
        counts = [len(r.dims) for r in (shape.batch, shape.output, shape.input)]
        if sum(counts) != array.ndim:
            return HostArray.of(array)
        return HostArray(array, counts[0], counts[1], counts[2])

    def prefers_host(self, name: str, values: list[Static]) -> bool:
        """Whether numpy does it as well: reductions of a whole array."""
        return name in REDUCERS and name in HOST_FUNCTIONS and len(values) == 1 and isinstance(values[0], HostArray)

    # ------------------------------------------------------------ calls

    def call_builtin(self, ctx: Ctx, name: str, args: list[Given], span: Span) -> Static:
        """A built-in function of host code."""
        function = HOST_FUNCTIONS.get(name)
        if function is None:
            raise fail("E0303", f"`{name}` cannot be used in host code", span)
        return self._host_call(ctx, function, args, span)

    def apply(self, ctx: Ctx, function: Any, args: list[Given], span: Span) -> Static:
        """A routine, foreign function, method or other host function."""
        match function:
            case RoutineRef():
                return self._call_routine(ctx, function, args, span)
            case ExternRef():
                return self._call_extern(ctx, function, args, span)
            case Intrinsic(function=inner):
                return self._host_call(ctx, inner, args, span)
            case Method(value=value, name=name):
                method = method_of(value, name)
                if method is None:
                    raise fail("E0204", f"{describe(value)} has no `{name}`", span)
                return self._host_call(ctx, method, [Given(None, value, span), *args], span)
            case _:
                return self._host_call(ctx, function, args, span)

    def _host_call(self, ctx: Ctx, function: Any, args: list[Given], span: Span) -> Static:
        from ocannl_lang.build.expressions import as_host

        self.host.call = lambda f, values: self._call_back(ctx, f, values, span)
        plain = tuple(as_host(ctx, g.value) for g in args if g.name is None)
        named = {g.name: as_host(ctx, g.value) for g in args if g.name is not None}
        try:
            return function(self.host, plain, named)
        except HostError as error:
            raise fail(error.code, error.message, span, notes=error.notes, helps=error.helps) from error

    def _call_back(self, ctx: Ctx, function: Any, values: tuple[Any, ...], span: Span) -> Any:
        """A function of the program, called by a host function (a key of `sorted`, the classifier of a plot)."""
        from ocannl_lang.build.calls import apply

        node = ast.ErrorExpr(span)
        return apply(ctx, function, [Given(None, v, span) for v in values], node)

    def _call_routine(self, ctx: Ctx, ref: RoutineRef, args: list[Given], span: Span) -> Static:
        from ocannl_lang.build.calls import bind_arguments
        from ocannl_lang.build.expressions import as_host

        definition = ref.definition
        name = definition.name.name
        routine = self.program.routine(f"{ref.module.name}.{name}" if ref.module.name else name, ref)
        bound = bind_arguments(name, definition.params, args, span, definition.name.span)
        arrays: list[Array] = []
        for p, value, dtype in zip(definition.params, routine.built.graph.inputs, routine.input_dtypes()):
            given = bound[p.name.name]
            assert given is not None
            arrays.append(fit_argument(as_host(ctx, given.value), dtype, p.name.name, given.span, value))
        try:
            results, executable = routine.invoke(arrays)
        except ProgramErrors as error:
            first = error.diagnostics[0]
            if first.code != "E0701":
                raise
            raise fail(
                "E0701", first.message, span, "in this call", labels=(Label(first.span, first.label or "declared here"),)
            ) from error  # fmt: skip
        values = [to_host(r, s) for r, s in zip(results, executable.result_shapes)]
        if routine.tuple_result:
            return tuple(values)
        return values[0] if values else None

    def _call_extern(self, ctx: Ctx, ref: ExternRef, args: list[Given], span: Span) -> Static:
        from ocannl_lang.build.calls import bind_arguments
        from ocannl_lang.build.expressions import as_host
        from ocannl_lang.build.types import check_static

        definition = ref.definition
        name = definition.name.name
        bound = bind_arguments(name, definition.params, args, span, definition.name.span)
        values: list[Any] = []
        inside = ctx.within(Frame("fn", ref.module, ref.module.root))
        for p in definition.params:
            given = bound[p.name.name]
            if given is None:
                assert p.default is not None
                value, at = evaluate(inside, p.default), p.default.span
            else:
                value, at = as_host(ctx, given.value), given.span
            if isinstance(p.type, (ast.NamedType, ast.GenericType, ast.TupleType)):
                value = check_static(value, p.type, f"`{p.name.name}`", at)
            values.append(_plain(value))
        function = _foreign(definition, self.program.path.parent)
        try:
            result = function(*values)
        except Exception as error:
            raise fail(
                "E0304", f"`{name}` failed: {error}", span, f"{type(error).__name__} in Python",
                labels=(Label(definition.target_span, "the function"),),
            ) from error  # fmt: skip
        return fit_result(inside, result, definition.result, name, span)

    # ------------------------------------------------------------ statements

    def typed(self, ctx: Ctx, value: Static, type: ast.TensorType, name: str, span: Span) -> Static:
        """A `let` with a tensor type."""
        return fit_result(ctx, value, type, name, span, code="E0412")

    def set_element(self, ctx: Ctx, base: HostArray, index: Static, value: Static, span: Span) -> None:
        """`array[i] = value`."""
        del ctx
        if isinstance(index, bool) or not isinstance(index, (int, range)):
            raise fail("E0301", "an index is an int", span, f"this is {describe(index)}")
        place = slice(index.start, index.stop) if isinstance(index, range) else index
        try:
            base.data[place] = value.data if isinstance(value, HostArray) else value
        except (IndexError, ValueError, TypeError) as error:
            raise fail("E0304", "this element cannot be set", span, str(error)) from error

    def expect(self, ctx: Ctx, stmt: ast.Expect) -> None:
        """`expect condition, message`: both sides of a failed comparison are shown."""
        from ocannl_lang.build.expressions import as_host, condition
        from ocannl_lang.host.builtins import format_value

        notes: list[str] = []
        test = stmt.condition
        while isinstance(test, ast.Paren):
            test = test.inner
        if isinstance(test, ast.Binary) and test.op in COMPARISONS:
            left, right = as_host(ctx, evaluate(ctx, test.left)), as_host(ctx, evaluate(ctx, test.right))
            value = apply_binary(ctx, test.op, left, right, test.span, test.op_span, (test.left.span, test.right.span))
            holds = bool(np.all(value.data)) if isinstance(value, HostArray) else bool(value)
            notes = [f"left:  {format_value(left)}", f"right: {format_value(right)}"]
        elif isinstance(test, ast.Call):
            value = as_host(ctx, evaluate(ctx, test))
            holds = bool(np.all(value.data)) if isinstance(value, HostArray) else bool(value)
            if isinstance(test.function, ast.Name) and test.function.name == "close":
                shown = [format_value(as_host(ctx, evaluate(ctx, a.value))) for a in test.args[:2]]
                notes = [f"{side} {text}" for side, text in zip(("left: ", "right:"), shown)]
        else:
            holds = condition(ctx, stmt.condition)
        if holds:
            return
        message = "this expectation fails"
        if stmt.message is not None:
            text = evaluate(ctx, stmt.message)
            message = text if isinstance(text, str) else message
        raise fail("E0304", message, stmt.span, "does not hold", notes=tuple(notes))


# ---------------------------------------------------------------- arrays and values


def dtype_of(precision: str) -> np.dtype[Any]:
    from ocannl_lang.graph.dtypes import dtype

    return dtype(precision)


def _written_ints(value: Value) -> bool:
    """Whether a tensor is written out in ints: in host code no use decides its precision."""
    match value.op:
        case ir.Array(value=data):
            return data.dtype.kind in "iu"
        case ir.Number(value=number):
            return isinstance(number, int)
        case ir.Stack(args=args):
            return all(_written_ints(a) for a in args)
        case _:
            return False


def to_host(array: Array, shape: SolvedShape) -> Static:
    """A result in host code: a number if it has no axes."""
    counts = [len(r.dims) for r in (shape.batch, shape.output, shape.input)]
    if array.ndim == 0:
        return int(array) if array.dtype.kind in "biu" else float(array)
    return HostArray(array, counts[0], counts[1], counts[2], tuple(d.basis for d in shape.dims))


def collect_arrays(value: Static, found: list[HostArray]) -> None:
    """All host arrays in a value, each once."""
    if isinstance(value, HostArray):
        if not any(a is value for a in found):
            found.append(value)
    elif isinstance(value, (list, tuple)):
        for v in value:
            collect_arrays(v, found)


def _replace(value: Static, given: dict[int, Value]) -> Static:
    if isinstance(value, HostArray):
        return given[id(value)]
    if isinstance(value, list):
        return [_replace(v, given) for v in value]
    if isinstance(value, tuple):
        return tuple(_replace(v, given) for v in value)
    return value


def _input(build: Build, array: HostArray, number: int, span: Span) -> Value:
    bases = array.bases or ("default",) * array.data.ndim
    sizes = [Size(int(n), basis) for n, basis in zip(array.data.shape, bases)]
    b, o = array.batch, array.output
    rows = (sizes[:b], sizes[b : b + o], sizes[b + o :])
    shape = Shape(*(Row((), None, tuple(r)) for r in rows))
    kind = "tensor" if array.data.ndim else "scalar"
    precision = precision_of_dtype(array.data.dtype)
    return tensors.new_value(
        build, ir.Input(f"array {number + 1}", kind), shape, Origin(span), precision=precision, scalar=array.data.ndim == 0,
        differentiable=False,
    )  # fmt: skip


def _signature(value: Static) -> Hashable:
    match value:
        case HostArray():
            return (value.data.shape, value.data.dtype.str, value.batch, value.output, value.bases)
        case list() | tuple():
            return (type(value).__name__, *(_signature(v) for v in value))
        case int() | float() | str() | None:
            return (type(value).__name__, repr(value))
        case CellRef(cell=cell):
            return cell.path
        case _:
            return id(value)


def _plain(value: Any) -> Any:
    if isinstance(value, HostArray):
        return value.data
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(v) for v in value)
    return value


def _foreign(definition: ast.ExternDef, folder: Any) -> Any:
    """The Python function that an `extern` names. Modules beside the program are found too."""
    import sys

    module_name, _, attribute = definition.target.partition(":")
    if not attribute:
        raise fail("E0204", "a foreign function is named `module:function`", definition.target_span)
    path = str(folder)
    added = path not in sys.path
    if added:
        sys.path.insert(0, path)
    try:
        found: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except ImportError as error:
        raise fail("E0204", f"cannot import `{module_name}`", definition.target_span, str(error)) from error
    except AttributeError as error:
        raise fail("E0204", f"`{module_name}` has no `{attribute}`", definition.target_span) from error
    finally:
        if added:
            sys.path.remove(path)
    return found
