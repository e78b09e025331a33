"""Running `main` and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ocannl_lang.build.context import Binding, BuildAbandoned, BuildError, Ctx, Frame, fail
from ocannl_lang.build.expressions import evaluate
from ocannl_lang.build.instances import cells_of
from ocannl_lang.build.modules import top_build
from ocannl_lang.build.statements import execute
from ocannl_lang.build.types import check_static
from ocannl_lang.build.values import Instance, Static
from ocannl_lang.driver.depth import room_for_nesting
from ocannl_lang.driver.errors import ProgramErrors
from ocannl_lang.driver.hosting import HostServices
from ocannl_lang.driver.program import Program
from ocannl_lang.graph.ir import Cell
from ocannl_lang.host.context import HostContext, HostError
from ocannl_lang.syntax import ast


def main_of(program: Program) -> ast.MainDef | None:
    """The program's `main`, if it has one."""
    for item in program.module.items:
        if isinstance(item, ast.MainDef):
            return item
    return None


def run_main(program: Program, options: Mapping[str, Static], host: HostContext) -> None:
    """Run `main` with values for its options; those not given have their defaults. Raises `ProgramErrors`."""
    main = main_of(program)
    if main is None:
        from ocannl_lang.diagnostics.model import Diagnostic

        raise ProgramErrors([Diagnostic("E0304", "this program has no `main`", program.module.span)])
    ctx = host_context(program, host, "main")
    try:
        for p in main.params:
            name = p.name.name
            if name in options:
                value = check_static(options[name], p.type, f"`{name}`", p.span)
            elif p.default is not None:
                value = check_static(evaluate(ctx, p.default), p.type, f"`{name}`", p.default.span)
            else:
                raise fail("E0302", f"`main` lacks `{name}`", p.span)
            ctx.frame.scope[name] = Binding(value)
        with room_for_nesting():
            execute(ctx, main.body)
    except BuildError as error:
        raise ProgramErrors([error.diagnostic]) from error
    except BuildAbandoned as error:
        raise ProgramErrors(program.checked.world.collector.diagnostics) from error


@dataclass(frozen=True, slots=True, eq=False)
class TestCase:
    """A `test` block. `run` raises `ProgramErrors` where an expectation fails."""

    __test__ = False
    program: Program
    definition: ast.TestDef

    @property
    def name(self) -> str:
        return self.definition.name

    def run(self, host: HostContext) -> None:
        ctx = host_context(self.program, host, "test")
        try:
            with room_for_nesting():
                execute(ctx, self.definition.body)
        except BuildError as error:
            raise ProgramErrors([error.diagnostic]) from error


def tests_of(program: Program) -> list[TestCase]:
    return [TestCase(program, item) for item in program.module.items if isinstance(item, ast.TestDef)]


def host_context(program: Program, host: HostContext, kind: Any) -> Ctx:
    """Where host code is evaluated: its own frame, with services that run things."""
    services = HostServices(program, host)
    host.save = lambda value, path: save_value(program, value, path)
    host.load = lambda value, path: load_value(program, value, path)
    env = program.checked.main
    frame = Frame(kind, env, Instance(None, None, kind, kind))
    build = top_build(program.checked.world)
    build.host = True
    return Ctx(build, frame, services)


# ---------------------------------------------------------------- checkpoints


def _cells(program: Program, value: Any) -> list[Cell]:
    if isinstance(value, Instance):
        return cells_of(value)
    if isinstance(value, (list, tuple)):
        return [c for v in value for c in _cells(program, v)]
    raise HostError("what is saved or loaded is an op with parameters, or a list of them", "E0301")


def save_value(program: Program, value: Any, path: Path) -> None:
    """`save(net, file)`: all parameters and states of an instance, by path."""
    save_cells(program, _cells(program, value), path)


def load_value(program: Program, value: Any, path: Path) -> None:
    """`load(net, file)`: what the file holds for the instance; all of it must be there and fit."""
    try:
        load_cells(program, _cells(program, value), path, exact=False)
    except ProgramErrors as error:
        first = error.diagnostics[0]
        raise HostError(first.message, first.code, notes=first.notes, helps=first.helps) from error


def save_cells(program: Program, cells: list[Cell], path: Path) -> None:
    """Write cells to a checkpoint; those whose sizes no call has fixed have no values yet and are left out."""
    from ocn_runtime.checkpoints import save

    program.materialise()
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for cell in cells:
        found = program.store.get(cell.path)
        if found is None:
            found = program.preset.get(cell.path)
        if found is not None:
            arrays[cell.path] = found
    if cells and not arrays:
        raise HostError("there is nothing to save yet: no call has fixed the sizes of these parameters", "E0803")
    try:
        save(path, arrays)
    except OSError as error:
        raise HostError(f"cannot write {path}: {error.strerror or error}", "E0801") from error


def load_cells(program: Program, cells: list[Cell], path: Path, *, exact: bool) -> None:
    """Read cells from a checkpoint. Raises `ProgramErrors` (E0803) that name the tensor."""
    from ocannl_lang.diagnostics.model import Diagnostic
    from ocn_runtime.checkpoints import CheckpointError, load

    span = replace(program.module.span, end=program.module.span.start)

    def problem(message: str) -> ProgramErrors:
        return ProgramErrors([Diagnostic("E0803", message, span)])

    try:
        checkpoint = load(path)
    except CheckpointError as error:
        raise problem(str(error)) from error
    except OSError as error:
        message = f"cannot read {path}: {error.strerror or error}"
        raise ProgramErrors([Diagnostic("E0801", message, span)]) from error
    tensors = dict(checkpoint.tensors)
    program.materialise()
    wanted = {c.path: c for c in cells}
    for name, cell in wanted.items():
        if name not in tensors:
            if name not in program.store:
                continue  # nothing has fixed its size here either: it begins as in a new program
            raise problem(f"the checkpoint has no tensor `{name}`")
        found = program.store.get(name)
        if found is not None and found.shape != tensors[name].shape:
            raise problem(
                f"`{name}` has the shape {list(tensors[name].shape)} in the checkpoint, not {list(found.shape)}"
            )
        if found is not None and found.dtype != tensors[name].dtype:
            raise problem(f"`{name}` is {tensors[name].dtype} in the checkpoint, not {found.dtype}")
        del cell
    if exact:
        for name in tensors:
            if name not in wanted:
                raise problem(f"the checkpoint has a tensor `{name}` that the program does not know")
    for name in wanted:
        if name not in tensors:
            continue
        try:
            program.params.set(name, tensors[name])
        except ProgramErrors as error:
            raise problem(error.diagnostics[0].message) from error
