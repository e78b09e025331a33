"""The Python interface: load a module, call its routines with arrays, read and write its parameters.

import ocannl_lang as ocn
m = ocn.load("model.ocn")
loss = m.train_step(x, y, 0.1)
m.params["net.w"]
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ocannl_lang.diagnostics.model import Diagnostic
from ocannl_lang.driver.errors import ProgramErrors
from ocannl_lang.driver.opened import Opened, OpenedRoutine, Ready, open_program
from ocannl_lang.driver.options import UnknownDevice, run_options
from ocannl_lang.driver.saved import Signature
from ocannl_lang.host.errors import HostError
from ocannl_lang.host.interop import Misfit, as_array, convert, fit
from ocannl_lang.source import Source, Span
from ocn_runtime.calls import DirectCall, PreparedCall, direct_call, number_or_array
from ocn_runtime.cpu import Routine as Runner
from ocn_runtime.precisions import DTYPES

if TYPE_CHECKING:
    import inspect

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
    file = _existing(path)
    try:
        return Module(open_program(file, run_options(seed, device, backend, threads), settings))
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


# A process that is forked while another thread is in a call would wait for that thread, which it does not have. So the locks are taken
# before, which waits for calls to end.
_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_forking = threading.RLock()
_taken: list[Any] = []


def _before_fork() -> None:
    _forking.acquire()
    for lock in sorted(_locks, key=id):
        lock.acquire()
        _taken.append(lock)


def _after_fork() -> None:
    while _taken:
        _taken.pop().release()
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


class Module(ModuleType):
    """A loaded module: its routines as attributes, `params`, `save` and `load` for what it has learned.

    Calls from several threads are carried out one after the other; `fork()` gives a second module with its own
    parameters.
    """

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened.path.stem, opened.saved.doc)
        self.__file__ = str(opened.path)
        self._opened = opened
        self._lock = threading.RLock()
        _locks.add(self._lock)
        self.params = Params(opened, self._lock)
        self.routines: dict[str, Routine] = {
            name: Routine(routine, self._lock) for name, routine in opened.routines.items()
        }
        for name, routine in self.routines.items():
            if "." not in name and not hasattr(self, name):
                setattr(self, name, routine)

    # Routines are found in a third of the time: that of modules is slow where there is `__getattr__` too.
    __getattribute__ = object.__getattribute__

    def __getattr__(self, name: str) -> Routine:
        import difflib

        near = difflib.get_close_matches(name, list(self.__dict__.get("routines", {})), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise AttributeError(f"module {self.__name__!r} has no routine {name!r}{hint}")

    def __repr__(self) -> str:
        return f"<Ocn module {self.__name__!r} from {self.__file__!r}>"

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """What the compiler has to say about the module: warnings, since it has no errors."""
        return list(self._opened.program.checked.diagnostics)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all parameters and states to a safetensors file, whole or not at all."""
        with self._lock, _errors(self._opened):
            self._opened.save(Path(path))

    def load(self, path: str | os.PathLike[str]) -> None:
        """Reads parameters and states from a file of `save`. What does not fit raises `OcnError`, and nothing changes."""
        with self._lock, _errors(self._opened):
            self._opened.load(Path(path))

    def fork(self) -> Module:
        """A module with the same code and, at first, the same parameters and states, of which it has its own from now on."""
        with self._lock:
            return Module(self._opened.fork())


class Routine(functools.partial[Any]):
    """A routine of a module, called with arrays and numbers.

    Tensors are numpy arrays, DLPack producers, buffers or nested lists, with their axes in memory order (batch,
    output, input); they are read in place where layout and precision fit. Results without axes come back as numbers,
    several results as a tuple.
    """

    # A `partial`, since that passes a call on without a step in Python: at first to `_general`, later to a function that makes calls of
    # the sizes of the last one itself, and leaves the others to `_general`.
    if TYPE_CHECKING:

        def __call__(self, *args: Any, out: Any = None, copy: Copy = "if_needed", **named: Any) -> Any:
            """Runs the routine. `out` is an array, or a tuple of them, for the results; `copy="never"` refuses to copy arguments."""

    def __new__(cls, routine: OpenedRoutine, lock: threading.RLock) -> Routine:
        return super().__new__(cls, cls._general)

    def __init__(self, routine: OpenedRoutine, lock: threading.RLock) -> None:
        signature = routine.signature
        self._routine = routine
        self._lock = lock
        self._names = [name for name, _, _ in signature.inputs]
        self._dtypes = routine.dtypes
        self._as_tuple = signature.tuple_result
        self._direct: DirectCall | None = None
        self._prepared: dict[Ready, PreparedCall] = {}
        self.__name__ = self.__qualname__ = signature.name.rpartition(".")[2]
        self.__doc__ = signature.doc
        self._pass_on(self._general)

    def __get__(self, instance: object, owner: type | None = None) -> Routine:
        return self  # An attribute of a class is no method.

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} cannot be pickled or copied")

    def _pass_on(self, function: Callable[..., Any]) -> None:
        """From now on a call goes to this function."""
        self.__setstate__((function, (), {}, self.__dict__))

    def _general(self, *args: Any, out: Any = None, copy: Copy = "if_needed", **named: Any) -> Any:
        """A call with whatever arguments, as `__call__` says."""
        if named or len(args) != len(self._names):
            args = self._in_order(args, named)
        try:
            arrays = [self._argument(i, a, d, copy) for i, (a, d) in enumerate(zip(args, self._dtypes))]
            if out is not None:
                return self._into(out, arrays)
            with self._lock:
                results = self._run(self._routine.ready(arrays), arrays, None)
        except (ProgramErrors, HostError) as error:
            raise _error_from(error, self._routine.opened) from None
        if not self._as_tuple:
            return number_or_array(results[0]) if results else None
        return tuple(map(number_or_array, results))

    def __repr__(self) -> str:
        return f"<Ocn routine {self.__name__}{self.__signature__}>"

    @property
    def shapes(self) -> dict[str, str]:
        """The types of the arguments by name, and of the result under `return`, in the language's notation."""
        signature = self._routine.signature
        found = {name: text for name, _, text in signature.inputs}
        return {**found, "return": signature.result} if signature.result is not None else found

    @property
    def source(self) -> str:
        """The text of the routine."""
        return self._routine.compiled.span.text

    def __getattr__(self, name: str) -> Any:
        # `inspect` and its signatures are only for those who ask.
        if name != "__signature__":
            raise AttributeError(f"{self!r} has no attribute {name!r}")
        self.__signature__ = _signature(self._routine.signature)
        return self.__signature__

    def _run(self, ready: Ready, arrays: list[Array], out: list[Array] | None) -> list[Array]:
        """One call, after which calls with arrays of these shapes are prepared."""
        routine = self._routine
        seed = routine.opened.options.seed
        results = ready.run(arrays, out, seed, routine.counter)
        if isinstance(ready.runner, Runner):
            self._prepare(ready, ready.runner, seed)
        return results

    def _prepare(self, ready: Ready, runner: Runner, seed: int) -> None:
        """From now on calls like that go the direct way, if there is one."""
        if self._direct is None:
            self._direct = direct_call(runner.executor, self._general, self._lock)
            if self._direct is None:
                return
            self._pass_on(self._direct.function)
        prepared = self._prepared.get(ready)
        if prepared is None:
            prepared = self._prepared[ready] = PreparedCall(
                runner, ready.inputs, ready.results, self._routine.counter, seed, as_tuple=self._as_tuple
            )
        self._direct.use(prepared)

    def _argument(self, position: int, value: Any, dtype: np.dtype[Any], copy: Copy) -> Array:
        if copy not in ("if_needed", "never"):
            raise ValueError(f'copy is "if_needed" or "never", not {copy!r}')
        try:
            return fit(value, dtype, copy=copy != "never")
        except Misfit as error:
            message = f"`{self._names[position]}` {error}"
            span = self._routine.compiled.built.definition.params[position].name.span
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
            ready = self._routine.ready(arrays)
        wanted = ready.results
        if len(given) != len(wanted):
            raise self._misfit(f"out has {len(given)} arrays for {len(wanted)} results")
        targets: list[Array] = []
        for number, (value, result) in enumerate(zip(given, wanted, strict=True)):
            what = "out" if len(given) == 1 else f"out[{number}]"
            try:
                target = as_array(value)
            except Misfit as error:
                raise self._misfit(f"{what} {error}") from None
            if not target.flags.writeable or not target.flags.c_contiguous:
                raise self._misfit(f"{what} cannot be written to in place")
            if target.shape != result.shape:
                raise self._misfit(f"{what} has the shape {list(target.shape)}, the result {list(result.shape)}")
            for earlier, other in enumerate(targets):
                if np.may_share_memory(target, other):
                    raise self._misfit(f"out[{earlier}] and {what} lie in the same memory")
            targets.append(target)
        direct = all(_is_direct(t, arrays, r.dtype) for t, r in zip(targets, wanted, strict=True))
        with self._lock:
            results = self._run(ready, arrays, targets if direct else None)
        if direct:
            return out
        for target, result in zip(targets, results, strict=True):
            try:
                np.copyto(target, convert(result, target.dtype))
            except Misfit as error:
                raise self._misfit(f"a result {error}") from None
        return out

    def _misfit(self, message: str) -> OcnError:
        return error_of([Diagnostic("E0701", message, self._routine.compiled.built.definition.name.span)])


class Params(Mapping[str, Array]):
    """The parameters and states of a module by path. Reading copies out; writing checks the shape and copies in.

    One that is set before anything has fixed its shape is kept, and checked when it is built.
    """

    def __init__(self, opened: Opened, lock: threading.RLock) -> None:
        self._opened = opened
        self._lock = lock

    def __getitem__(self, path: str) -> Array:
        self._known(path)
        with self._lock, _errors(self._opened):
            return self._opened.parameter(path)

    def __setitem__(self, path: str, value: Any) -> None:
        self._known(path)
        with self._lock, _errors(self._opened):
            try:
                array = fit(value, DTYPES[self._opened.cells[path].precision])
            except Misfit as error:
                span = self._opened.program.checked.world.cells[path].origin.span
                raise error_of([Diagnostic("E0701", f"`{path}` {error}", span)]) from None
            self._opened.set_parameter(path, array)

    def __iter__(self) -> Iterator[str]:
        return iter(self._opened.cells)

    def __len__(self) -> int:
        return len(self._opened.cells)

    def __contains__(self, path: object) -> bool:
        return path in self._opened.cells

    def __repr__(self) -> str:
        return f"Params({', '.join(self)})"

    def update(self, values: Mapping[str, Any]) -> None:
        """Sets several at once, one after the other."""
        for path, value in values.items():
            self[path] = value

    def _known(self, path: str) -> None:
        if path not in self:
            import difflib

            near = difflib.get_close_matches(path, list(self), n=1)
            raise KeyError(f"{path} (there is {near[0]})" if near else path)


@contextmanager
def _errors(opened: Opened) -> Generator[None, None, None]:
    """Turns the errors of the driver and of host functions into `OcnError`s."""
    try:
        yield
    except (ProgramErrors, HostError) as error:
        raise _error_from(error, opened) from None


def _error_from(error: ProgramErrors | HostError, opened: Opened) -> OcnError:
    if isinstance(error, ProgramErrors):
        return error_of(error.diagnostics)
    place = Span(opened.program.module.source, 0, 0)
    return error_of([Diagnostic(error.code, str(error), place, notes=error.notes, helps=error.helps)])


def _is_direct(target: Array, arrays: list[Array], dtype: np.dtype[Any]) -> bool:
    """Whether a result can be written there while the arguments are read."""
    return target.dtype == dtype and not any(np.may_share_memory(target, a) for a in arrays)


def _signature(signature: Signature) -> inspect.Signature:
    import inspect

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    params = [
        inspect.Parameter(name, kind, annotation=text or inspect.Parameter.empty) for name, _, text in signature.inputs
    ]
    return inspect.Signature(params, return_annotation=signature.result)


def _existing(path: str | os.PathLike[str]) -> Path:
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"{file} is a folder" if file.is_dir() else f"there is no file {file}")
    return file


def _nowhere(file: Path) -> Span:
    return Span(Source(str(file), ""), 0, 0)
