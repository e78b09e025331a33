"""The Python interface: load a module, call its routines with arrays, read and write its parameters.

import ocannl_lang as ocn
m = ocn.load("model.ocn")
loss = m.train_step(x, y, 0.1)
m.params["net.w"]
"""

from __future__ import annotations

import difflib
import inspect
import os
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ocannl_lang.diagnostics.model import Diagnostic
from ocannl_lang.host.interop import Misfit, as_array, convert, fit
from ocannl_lang.source import Source, Span
from ocn_runtime.calls import UNPREPARED, PreparedCall, Taken, number_or_array, prepare_call
from ocn_runtime.cpu import Routine as Runner

if TYPE_CHECKING:
    from ocannl_lang.driver.execution import Executable
    from ocannl_lang.driver.program import Program
    from ocannl_lang.driver.program import Routine as Compiled

Array = NDArray[Any]
Copy = Literal["if_needed", "never"]


def load(
    path: str | os.PathLike[str],
    *,
    seed: int = 0,
    device: str = "cpu",
    backend: str | None = None,
    threads: int | None = None,
    **settings: Any,
) -> Module:
    """The module in a file, ready to be called: its routines are attributes.

    `seed` is that of all random numbers, `device` is `"cpu"` or `"reference"` (the plain evaluator; `backend` is
    another way to say it), `threads` the number of threads at most. `settings` replace the values of top-level `let`s.
    Raises `OcnError` for a faulty program and for a device that is not there, `FileNotFoundError` if there is no such
    file.
    """
    from ocannl_lang.driver.errors import ProgramErrors
    from ocannl_lang.driver.session import Session, UnknownDevice

    file = _existing(path)
    try:
        session = Session(seed=seed, device=device, backend=backend, threads=threads, settings=settings)
        return Module(session.open(file))
    except UnknownDevice as error:
        raise error_of([Diagnostic("E0703", str(error), _nowhere(file))]) from None
    except ProgramErrors as error:
        raise error_of(error.diagnostics) from None


def check(path: str | os.PathLike[str]) -> list[Diagnostic]:
    """All diagnostics of a module and of what it imports, by place. Runs nothing. `FileNotFoundError` if there is no such file."""
    from ocannl_lang.driver.session import Session

    return Session().check(_existing(path))


def install(**options: Any) -> None:
    """From now on `import model` finds `model.ocn` on `sys.path`, after Python's own modules. The options are those of `load`."""
    from ocannl_lang.importer import install_finder

    install_finder(lambda path: load(path, **options))


class OcnError(Exception):
    """A faulty program, or a call that does not fit it. The text is what the command line shows, with excerpts.

    `diagnostics` holds everything there is to say, `diagnostic` the first error of it.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = list(diagnostics)
        errors = [d for d in self.diagnostics if d.severity == "error"]
        self.diagnostic = (errors or self.diagnostics)[0]
        super().__init__("\n\n".join(d.render() for d in errors or self.diagnostics))


class OcnShapeError(OcnError, ValueError):
    """An `OcnError` about shapes, arguments, or arrays in files."""


def error_of(diagnostics: Sequence[Diagnostic]) -> OcnError:
    """The exception for these diagnostics."""
    first = next((d.code for d in diagnostics if d.severity == "error"), "")
    about_shapes = first.startswith("E04") or first in ("E0701", "E0702", "E0802", "E0803")
    return (OcnShapeError if about_shapes else OcnError)(diagnostics)


class Module(ModuleType):
    """A loaded module: its routines as attributes, `params`, `save` and `load` for what it has learned.

    Calls from several threads are carried out one after the other; `fork()` gives a second module with its own
    parameters.
    """

    def __init__(self, program: Program) -> None:
        super().__init__(program.path.stem, program.module.doc)
        self.__file__ = str(program.path)
        self._program = program
        self._lock = threading.RLock()
        self.params = Params(program, self._lock)
        self.routines: dict[str, Routine] = {
            name: Routine(program, routine, self._lock) for name, routine in program.routines.items()
        }
        for name, routine in self.routines.items():
            if "." not in name and not hasattr(self, name):
                setattr(self, name, routine)

    def __getattr__(self, name: str) -> Routine:
        near = difflib.get_close_matches(name, list(self.__dict__.get("routines", {})), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise AttributeError(f"module {self.__name__!r} has no routine {name!r}{hint}")

    def __repr__(self) -> str:
        return f"<Ocn module {self.__name__!r} from {self.__file__!r}>"

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """What the compiler has to say about the module: warnings, since it has no errors."""
        return list(self._program.checked.diagnostics)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all parameters and states to a safetensors file, whole or not at all."""
        from ocannl_lang.driver.running import save_cells

        with self._lock, _errors(self._program):
            save_cells(self._program, self._program.cells(), Path(path))

    def load(self, path: str | os.PathLike[str]) -> None:
        """Reads parameters and states from a file of `save`. What does not fit raises `OcnError`, and nothing changes."""
        from ocannl_lang.driver.running import load_cells

        with self._lock, _errors(self._program):
            load_cells(self._program, self._program.cells(), Path(path), exact=True)

    def fork(self) -> Module:
        """A module with the same code and, at first, the same parameters and states, of which it has its own from now on."""
        with self._lock:
            return Module(_forked(self._program))


class Routine:
    """A routine of a module, called with arrays and numbers.

    Tensors are numpy arrays, DLPack producers, buffers or nested lists, with their axes in memory order (batch,
    output, input); they are read in place where layout and precision fit. Results without axes come back as numbers,
    several results as a tuple.
    """

    def __init__(self, program: Program, compiled: Compiled, lock: threading.RLock) -> None:
        self._program = program
        self._compiled = compiled
        self._lock = lock
        self._names = [name for name, _, _ in compiled.inputs]
        self._dtypes: list[np.dtype[Any]] = []
        self._prepared: PreparedCall | None = None
        self._calls: dict[Executable, PreparedCall] = {}
        self._faults = _faults()
        self.__name__ = compiled.name
        self.__qualname__ = compiled.name
        self.__doc__ = compiled.doc
        self.__signature__ = _signature(compiled)

    def __call__(self, *args: Any, out: Any = None, copy: Copy = "if_needed", **named: Any) -> Any:
        """Runs the routine. `out` is an array, or a tuple of them, for the results; `copy="never"` refuses to copy arguments."""
        # The common case first: the sizes of the last call, and nothing to convert.
        if self._prepared is not None and not named:
            results = self._prepared(args, out)
            if results is not UNPREPARED:
                return results
        if named or len(args) != len(self._names):
            args = self._in_order(args, named)
        try:
            dtypes = self._dtypes or self._input_dtypes()
            arrays = [self._argument(i, a, d, copy) for i, (a, d) in enumerate(zip(args, dtypes))]
            if out is not None:
                return self._into(out, arrays)
            with self._lock:
                results = self._run(arrays, None)
        except self._faults as error:
            raise error_from(error, self._program) from None
        if not self._compiled.tuple_result:
            return number_or_array(results[0]) if results else None
        return tuple(map(number_or_array, results))

    def __repr__(self) -> str:
        return f"<Ocn routine {self.__name__}{self.__signature__}>"

    @property
    def shapes(self) -> dict[str, str]:
        """The types of the arguments by name, and of the result under `return`, in the language's notation."""
        found = {name: text for name, _, text in self._compiled.inputs}
        result = self._compiled.built.definition.result
        return {**found, "return": result.span.text} if result is not None else found

    @property
    def source(self) -> str:
        """The text of the routine."""
        return self._compiled.span.text

    def _run(self, arrays: list[Array], out: list[Array] | None) -> list[Array]:
        """One call, after which calls with arrays of these shapes are prepared."""
        results, executable = self._compiled.invoke(arrays, out)
        self._prepared = self._calls.get(executable) or self._prepare(executable, arrays)
        return results

    def _prepare(self, executable: Executable, arrays: list[Array]) -> PreparedCall | None:
        from ocannl_lang.graph.dtypes import dtype

        runner = executable.runner
        if not isinstance(runner, Runner):
            return None
        limits = self._compiled.limits(arrays)
        found = self._calls[executable] = prepare_call(
            runner,
            [Taken(a.shape, d, limit) for a, d, limit in zip(arrays, self._dtypes, limits, strict=True)],
            [Taken(tuple(b.shape), dtype(b.prec)) for b in executable.program.outputs],
            self._lock,
            self._compiled,
            self._program.options.seed,
            as_tuple=self._compiled.tuple_result,
        )
        return found

    def _input_dtypes(self) -> list[np.dtype[Any]]:
        with self._lock:
            self._dtypes = self._compiled.input_dtypes()
        return self._dtypes

    def _argument(self, position: int, value: Any, dtype: np.dtype[Any], copy: Copy) -> Array:
        if copy not in ("if_needed", "never"):
            raise ValueError(f'copy is "if_needed" or "never", not {copy!r}')
        try:
            return fit(value, dtype, copy=copy != "never")
        except Misfit as error:
            message = f"`{self._names[position]}` {error}"
            span = self._compiled.built.definition.params[position].name.span
            raise error_of([Diagnostic("E0701", message, span, "this argument does not fit")]) from None

    def _in_order(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments as they stand in the signature. Raises `TypeError`, as Python does for its own functions."""
        try:
            return self.__signature__.bind(*args, **named).args
        except TypeError as error:
            raise TypeError(f"{self.__name__}{self.__signature__}: {error}") from None

    def _into(self, out: Any, arrays: list[Array]) -> Any:
        """Runs with results written into the arrays of `out`."""
        given: list[Any] = list(out) if isinstance(out, (tuple, list)) else [out]
        with self._lock:
            outputs = self._compiled.executable(arrays).program.outputs
        if len(given) != len(outputs):
            raise self._misfit(f"out has {len(given)} arrays for {len(outputs)} results")
        targets: list[Array] = []
        for number, (value, buffer) in enumerate(zip(given, outputs, strict=True)):
            target = as_array(value)
            what = "out" if len(given) == 1 else f"out[{number}]"
            if not target.flags.writeable or not target.flags.c_contiguous:
                raise self._misfit(f"{what} cannot be written to in place")
            if target.shape != tuple(buffer.shape):
                raise self._misfit(f"{what} has the shape {list(target.shape)}, the result {list(buffer.shape)}")
            targets.append(target)
        direct = all(_is_direct(t, arrays, buffer.prec) for t, buffer in zip(targets, outputs, strict=True))
        with self._lock:
            results = self._run(arrays, targets if direct else None)
        if direct:
            return out
        for target, result in zip(targets, results, strict=True):
            try:
                np.copyto(target, convert(result, target.dtype))
            except Misfit as error:
                raise self._misfit(f"a result {error}") from None
        return out

    def _misfit(self, message: str) -> OcnError:
        return error_of([Diagnostic("E0701", message, self._compiled.built.definition.name.span)])


class Params(Mapping[str, Array]):
    """The parameters and states of a module by path. Reading copies out; writing checks the shape and copies in.

    One that is set before anything has fixed its shape is kept, and checked when it is built.
    """

    def __init__(self, program: Program, lock: threading.RLock) -> None:
        self._program = program
        self._lock = lock

    def __getitem__(self, path: str) -> Array:
        self._known(path)
        with self._lock, _errors(self._program):
            return self._program.params[path]

    def __setitem__(self, path: str, value: Any) -> None:
        self._known(path)
        with self._lock, _errors(self._program):
            try:
                array = fit(value, _cell_dtype(self._program, path))
            except Misfit as error:
                cell = self._program.checked.world.cells[path]
                raise error_of([Diagnostic("E0701", f"`{path}` {error}", cell.origin.span)]) from None
            self._program.params.set(path, array)

    def __iter__(self) -> Iterator[str]:
        return iter(self._program.params)

    def __len__(self) -> int:
        return len(self._program.params)

    def __contains__(self, path: object) -> bool:
        return path in self._program.checked.world.cells

    def __repr__(self) -> str:
        return f"Params({', '.join(self)})"

    def update(self, values: Mapping[str, Any]) -> None:
        """Sets several at once, one after the other."""
        for path, value in values.items():
            self[path] = value

    def _known(self, path: str) -> None:
        if path not in self:
            near = difflib.get_close_matches(path, list(self), n=1)
            raise KeyError(f"{path} (there is {near[0]})" if near else path)


def _faults() -> tuple[type[BaseException], ...]:
    """What running a program raises for faults of the program or of a call."""
    from ocannl_lang.driver.errors import ProgramErrors
    from ocannl_lang.host.context import HostError

    return ProgramErrors, HostError


def error_from(error: BaseException, program: Program) -> OcnError:
    """The `OcnError` of one of the `_faults`."""
    diagnostics: list[Diagnostic] | None = getattr(error, "diagnostics", None)
    if diagnostics is not None:
        return error_of(diagnostics)
    place = Span(program.module.source, 0, 0)
    code, notes, helps = (getattr(error, name) for name in ("code", "notes", "helps"))
    return error_of([Diagnostic(code, str(error), place, notes=notes, helps=helps)])


@contextmanager
def _errors(program: Program) -> Generator[None, None, None]:
    """Turns the errors of the driver and of host functions into `OcnError`s."""
    try:
        yield
    except _faults() as error:
        raise error_from(error, program) from None


def _is_direct(target: Array, arrays: list[Array], precision: str) -> bool:
    """Whether a result can be written there while the arguments are read."""
    from ocannl_lang.graph.dtypes import dtype

    return target.dtype == dtype(precision) and not any(np.may_share_memory(target, a) for a in arrays)


def _forked(program: Program) -> Program:
    """A program of the same code with copies of what it has learned; data is shared."""
    from ocannl_lang.driver.program import Program

    fork = Program(program.checked, program.options, program.path)
    fork.store.update({path: array.copy() for path, array in program.store.items()})
    fork.preset.update({path: array.copy() for path, array in program.preset.items()})
    fork.data.update(program.data)
    fork.data_sizes.update(program.data_sizes)
    for name, routine in fork.routines.items():
        routine.calls = program.routines[name].calls
    return fork


def _cell_dtype(program: Program, path: str) -> np.dtype[Any]:
    from ocannl_lang.graph.dtypes import dtype

    cell = program.checked.world.cells[path]
    return dtype(program.precisions().get(cell) or cell.precision or "f32")


def _signature(compiled: Compiled) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    params = [
        inspect.Parameter(name, kind, annotation=text or inspect.Parameter.empty) for name, _, text in compiled.inputs
    ]
    result = compiled.built.definition.result
    return inspect.Signature(params, return_annotation=result.span.text if result is not None else None)


def _existing(path: str | os.PathLike[str]) -> Path:
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"{file} is a folder" if file.is_dir() else f"there is no file {file}")
    return file


def _nowhere(file: Path) -> Span:
    return Span(Source(str(file), ""), 0, 0)
