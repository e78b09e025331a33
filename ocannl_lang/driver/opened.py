"""A program that is ready to be called: from what is kept of it on disk as far as that goes, else from its text.

Opening from disk reads no text and compiles nothing. Whatever it cannot answer (other sizes, errors, the text of a routine) it asks of the
`Program`, which is opened then, with the same parameters; and what that compiles is kept for the next process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ocannl_lang.driver import saved
from ocannl_lang.driver.finding import read_file
from ocannl_lang.driver.initial import Initial, Kept, filled, first_contents
from ocannl_lang.driver.options import RunOptions
from ocannl_lang.driver.saved import Bound, Constant, Found, SavedCell, SavedProgram, SavedRoutine, Signature
from ocannl_lang.resources import cache_dir
from ocn_runtime.calls import Counter, Taken
from ocn_runtime.cpu import Executor, Step, default_threads, result_array
from ocn_runtime.cpu import Routine as Runner
from ocn_runtime.precisions import DTYPES, dtype_name

if TYPE_CHECKING:
    from ocannl_lang.driver.execution import Executable
    from ocannl_lang.driver.program import Program
    from ocannl_lang.driver.program import Routine as Compiled
    from ocannl_lang.driver.session import Session

Array = NDArray[Any]
_LARGEST_CONTENTS = 1 << 26


@dataclass(frozen=True, slots=True, eq=False)
class Ready:
    """A routine for arguments of certain sizes: `runner(inputs, outputs, seed, call_count)`, and what it takes and gives."""

    runner: Callable[[Sequence[Array], Sequence[Array], int, int], None]
    inputs: tuple[Taken, ...]
    results: tuple[Taken, ...]

    def run(self, arrays: Sequence[Array], out: Sequence[Array] | None, seed: int, counter: Counter) -> list[Array]:
        """One call, into `out` if it is given."""
        outputs = list(out) if out is not None else [result_array(r.shape, r.dtype) for r in self.results]
        count = counter.calls
        counter.calls += 1
        self.runner(arrays, outputs, seed, count)
        return outputs


def open_program(path: Path, options: RunOptions, settings: Mapping[str, Any]) -> Opened:
    """The program in a file. Raises `ProgramErrors` if it has errors."""
    found = saved.load_program(path, settings) if options.backend == "cpu" else None
    if found is not None:
        return Opened(path, options, settings, found, None)
    program = _session(options, settings, None).open(path)
    found = _described(program, settings)
    if options.backend == "cpu" and found.key:
        saved.save_program(path, settings, found)
    return Opened(path, options, settings, found, program)


class Opened:
    """A program with the state of its parameters."""

    def __init__(
        self,
        path: Path,
        options: RunOptions,
        settings: Mapping[str, Any],
        found: SavedProgram,
        program: Program | None,
    ) -> None:
        self.path = path
        self.options = options
        self.settings = settings
        self.saved = found
        self.cells = {c.path: c for c in found.cells}
        self.store: dict[str, Array] = {} if program is None else program.store
        self.preset: dict[str, Array] = {} if program is None else program.preset
        self.initials: dict[str, Initial] = {}
        self.making = ""
        self._absolute = path.absolute()
        self._lock = threading.RLock()
        self._program = program
        self.routines = {s.name: OpenedRoutine(self, s) for s in found.routines}
        if program is not None:
            self._join(program)

    @property
    def program(self) -> Program:
        """The program itself, which is read and checked when first asked for. It shares the parameters and the counts of calls."""
        with self._lock:
            if self._program is None:
                # Messages show the path as it was given, as long as that leads there.
                path = self.path if self.path.absolute() == self._absolute else self._absolute
                program = _session(self.options, self.settings, self.saved).open(path)
                program.store, program.preset = self.store, self.preset
                self._join(program)
                self._program = program
            return self._program

    def _join(self, program: Program) -> None:
        for name, routine in self.routines.items():
            program.routines[name].counter = routine.counter
        if self.options.backend == "cpu" and self.saved.key:
            program.describe = self._describe

    def _describe(self, path: str, array: Array, random: bool) -> Initial | None:
        found = None if random else filled(array)
        if found is not None or array.nbytes > _LARGEST_CONTENTS:
            return found
        kept = Kept(saved.contents_name(self.saved.key, self.making, path), random)
        saved.save_contents(kept, self.options.seed, array.tobytes())
        return kept

    def fork(self) -> Opened:
        """The same program with copies of what it has learned; data is shared."""
        program = None if self._program is None else self._program.fork()
        fork = Opened(self.path, self.options, self.settings, self.saved, program)
        fork._absolute = self._absolute
        if program is None:
            fork.initials.update(self.initials)
            fork.store.update({path: array.copy() for path, array in self.store.items()})
            fork.preset.update({path: array.copy() for path, array in self.preset.items()})
        for name, routine in fork.routines.items():
            routine.counter.calls = self.routines[name].counter.calls
        return fork

    # ------------------------------------------------------------ parameters

    def parameter(self, path: str) -> Array:
        """A copy of a parameter or state. Raises `ProgramErrors` if its size is not fixed yet."""
        found = self.store.get(path)
        if found is None:
            found = self.preset.get(path)
        return self.program.params[path] if found is None else found.copy()

    def set_parameter(self, path: str, value: Array) -> None:
        """Copy into a parameter or state. Raises `ProgramErrors` if the shape is not its."""
        found = self.store.get(path)
        shape = self.cells[path].shape if found is None else found.shape
        if shape is not None and shape != value.shape:
            self.program.params.set(path, value)
        elif found is None:
            self.preset[path] = np.array(value)
        else:
            found[...] = value

    def save(self, path: Path) -> None:
        """Write all parameters and states to a checkpoint."""
        from ocn_runtime.checkpoints import save

        held = {c.path: self.store.get(c.path, self.preset.get(c.path)) for c in self.saved.cells}
        arrays = {name: array for name, array in held.items() if array is not None}
        if arrays and all(c.path in self.store for c in self.saved.cells if c.made):
            try:
                save(path, arrays)
                return
            except OSError:
                pass  # is told below
        from ocannl_lang.driver.running import save_cells

        save_cells(self.program, self.program.cells(), path)

    def load(self, path: Path) -> None:
        """Read parameters and states from a checkpoint. Raises `ProgramErrors`, and changes nothing, if they do not fit."""
        from ocn_runtime.checkpoints import CheckpointError
        from ocn_runtime.checkpoints import load as load_checkpoint

        try:
            tensors = dict(load_checkpoint(path).tensors)
        except (CheckpointError, OSError):
            tensors = {}
        if self._program is None and tensors and self._fits(tensors):
            for name, array in tensors.items():
                self.set_parameter(name, array)
            return
        from ocannl_lang.driver.running import load_cells

        load_cells(self.program, self.program.cells(), path, exact=True)

    def _fits(self, tensors: Mapping[str, Array]) -> bool:
        if any(name not in self.cells for name in tensors):
            return False
        for c in self.saved.cells:
            found = tensors.get(c.path)
            held = self.store.get(c.path)
            shape = c.shape if held is None else held.shape
            if found is None:
                if c.made or held is not None:
                    return False
            elif shape is not None and (found.shape != shape or found.dtype != DTYPES[c.precision]):
                return False
        return True

    def bound(self, wanted: Sequence[Bound]) -> list[tuple[int, Array]] | None:
        """The arrays of a kept routine, made when first needed; None if they are not to be had, or have other shapes."""
        arrays: list[tuple[int, Array]] = []
        self.initials.update({b.path: b.initial for b in wanted if b.initial is not None})
        for b in wanted:
            found = self.store.get(b.path)
            if found is None:
                found = self._made(b)
                if found is None:
                    return None
                self.store[b.path] = found
            if found.shape != b.shape or found.dtype != DTYPES[b.precision]:
                return None
            arrays.append((b.entry, found))
        return arrays

    def _made(self, b: Bound) -> Array | None:
        preset = self.preset.get(b.path)
        if preset is not None:
            if preset.shape != b.shape:
                return None
            del self.preset[b.path]
            return np.array(preset, dtype=DTYPES[b.precision], order="C")
        if b.initial is None:
            return None
        seed = self.options.seed
        return first_contents(
            b.initial, b.path, b.shape, b.precision, seed, lambda kept: saved.load_contents(kept, seed)
        )


# ---------------------------------------------------------------- routines


class OpenedRoutine:
    """A routine of an opened program."""

    def __init__(self, opened: Opened, signature: Signature) -> None:
        self.opened = opened
        self.signature = signature
        self.counter = Counter()
        self.dtypes = [DTYPES[p] for p in signature.precisions]
        self._ready: dict[tuple[tuple[int, ...], ...], Ready] = {}

    @property
    def compiled(self) -> Compiled:
        """The routine of the `Program`."""
        return self.opened.program.routines[self.signature.name]

    def ready(self, arrays: Sequence[Array]) -> Ready:
        """The code for the sizes of these arguments. Raises `ProgramErrors` (E0701) where they do not fit."""
        shapes = tuple(a.shape for a in arrays)
        found = self._ready.get(shapes)
        if found is None:
            found = self._ready[shapes] = self._restored(shapes) or self._compiled(arrays, shapes)
        if any(t.limit is not None and not 0 <= int(a) < t.limit for a, t in zip(arrays, found.inputs)):
            self.compiled.check_positions(arrays)
        return found

    def _restored(self, shapes: tuple[tuple[int, ...], ...]) -> Ready | None:
        opened = self.opened
        if opened.options.backend != "cpu" or not opened.saved.key:
            return None
        found = saved.load_routine(opened.saved.key, self._machine(), self.signature.name, shapes)
        if found is None:
            return None
        code = _linked(found)
        bound = None if code is None else opened.bound(found.bound)
        if code is None or bound is None:
            return None
        executor, steps, keep = code
        count = len(shapes)
        constants = [
            (c.entry, np.frombuffer(c.content, DTYPES[c.precision]).reshape(c.shape).copy()) for c in found.constants
        ]
        runner = Runner(
            executor,
            steps,
            found.table_size,
            range(1, 1 + count),
            range(1 + count, 1 + count + len(found.results)),
            [*constants, *bound],
            found.places,
            found.arena,
            found.scratch,
            self._threads,
            keep,
        )
        return Ready(
            runner,
            tuple(Taken(shape, d, n) for shape, d, n in zip(shapes, self.dtypes, found.limits, strict=True)),
            tuple(Taken(shape, DTYPES[precision]) for shape, precision in found.results),
        )

    @property
    def _threads(self) -> int:
        return self.opened.options.threads or default_threads()

    def _machine(self) -> str:
        """What code is made for."""
        from ocannl_lang.codegen.llvm.target import host_target

        return f"{host_target().key} {self._threads}"

    def _compiled(self, arrays: Sequence[Array], shapes: tuple[tuple[int, ...], ...]) -> Ready:
        compiled = self.compiled
        self.opened.making = f"{self.signature.name} {shapes}"
        try:
            executable = compiled.executable(arrays)
        finally:
            self.opened.making = ""
        limits = compiled.limits(arrays)
        if executable.compiled is not None and self.opened.saved.key:
            self._keep(shapes, executable, limits)
        return Ready(
            executable.runner,
            tuple(Taken(shape, d, n) for shape, d, n in zip(shapes, self.dtypes, limits, strict=True)),
            tuple(Taken(tuple(b.shape), DTYPES[b.prec]) for b in executable.program.outputs),
        )

    def _keep(self, shapes: tuple[tuple[int, ...], ...], executable: Executable, limits: Sequence[int | None]) -> None:
        from ocannl_lang.codegen.cpu import executor_object

        code = executable.compiled
        made = self.opened.program.initials
        initials = {**self.opened.initials, **{path: i for path, i in made.items() if i is not None}}
        if code is None or any(b.role == "data" for b in code.persistent):
            return
        record = SavedRoutine(
            tuple((tuple(b.shape), b.prec) for b in executable.program.outputs),
            tuple(limits),
            tuple((symbol, step.slots, step.turns) for symbol, step in zip(code.symbols, code.steps, strict=True)),
            code.objects,
            executor_object(),
            code.table_size,
            code.places,
            code.plan.arena,
            code.scratch,
            tuple(Bound(code.table[b], b.key, tuple(b.shape), b.prec, initials.get(b.key)) for b in code.persistent),
            tuple(Constant(entry, a.shape, dtype_name(a.dtype), a.tobytes()) for entry, a in code.constants),
        )
        saved.save_routine(self.opened.saved.key, self._machine(), self.signature.name, shapes, record)


def _linked(found: SavedRoutine) -> tuple[Executor, list[Step], object] | None:
    """The code of a kept routine in this process; None if an object is not there any more."""
    from ocannl_lang.codegen.linked import linked, process_executor
    from ocannl_lang.codegen.llvm.compile import cached_object

    cache = cache_dir()

    def code(name: str) -> bytes:
        content = cached_object(name, cache)
        if content is None:
            raise _Missing
        return content

    try:
        executor = process_executor(lambda: code(found.executor))
        addresses, keep = linked([s for s, _, _ in found.steps], lambda symbol: code(found.objects[symbol]))
    except _Missing:
        return None
    return (
        executor,
        [Step(at, slots, turns) for at, (_, slots, turns) in zip(addresses, found.steps, strict=True)],
        keep,
    )


class _Missing(Exception):
    """An object is not in the cache any more."""


# ---------------------------------------------------------------- programs


def _session(options: RunOptions, settings: Mapping[str, Any], known: SavedProgram | None) -> Session:
    """What opens the program. Of one that is `known` it reads the texts that were there when it was opened."""
    from ocannl_lang.driver.session import Session

    def reader(path: Path) -> str | None:
        return read_file(path) if known is None else known.texts.get(str(path.absolute()))

    return Session(
        seed=options.seed, backend=options.backend, threads=options.threads, settings=settings, reader=reader
    )


def _described(program: Program, settings: Mapping[str, Any]) -> SavedProgram:
    """What is kept of a program. Its key is empty if nothing is to be kept."""
    from ocannl_lang.driver.checking import all_graphs
    from ocannl_lang.driver.program import reachable
    from ocannl_lang.graph.ir import Data
    from ocannl_lang.syntax import ast

    modules = program.checked.modules
    texts: dict[str, str] = {}
    found: dict[Found, None] = {}
    for module in modules.modules.values():
        if module.standard:
            continue
        path = module.path.absolute()
        texts[str(path)] = module.syntax.source.text
        for item in module.syntax.items:
            if isinstance(item, (ast.Import, ast.FromImport)):
                place = saved.found_as(path, ".".join(p.name for p in item.path), modules.root)
                if place is not None:
                    found[place] = None
    solution = program.checked.solution
    cells: list[SavedCell] = []
    for cell in program.cells():
        sizes = () if solution is None else solution.shape(cell.shape).sizes
        fixed = solution is not None and all(isinstance(n, int) for n in sizes)
        shape = tuple(n for n in sizes if isinstance(n, int)) if fixed else None
        cells.append(SavedCell(cell.path, program.precision(cell), shape, fixed and program.in_a_routine(cell)))
    # Sizes may depend on files that routines read, even those of routines that read none.
    reads = any(isinstance(v.op, Data) for graph in all_graphs(program.checked) for v in reachable(graph))
    return SavedProgram(
        "" if reads else saved.program_key(str(modules.root), texts, settings),
        program.module.doc,
        tuple(_signature(name, routine) for name, routine in program.routines.items()),
        tuple(cells),
        str(modules.root),
        tuple(found),
        texts,
    )


def _signature(name: str, routine: Compiled) -> Signature:
    result = routine.built.definition.result
    return Signature(
        name,
        routine.doc,
        tuple(routine.inputs),
        tuple(dtype_name(d) for d in routine.input_dtypes()),
        result.span.text if result is not None else None,
        routine.tuple_result,
    )
