"""A session: the way in for the command line, the importer and the editor. Checks programs and opens them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ocannl_lang.build.values import Static
from ocannl_lang.diagnostics.model import Collector, Diagnostic
from ocannl_lang.driver.checking import Checked, check_program
from ocannl_lang.driver.collecting import fewer_collections
from ocannl_lang.driver.depth import room_for_nesting
from ocannl_lang.driver.errors import ProgramErrors
from ocannl_lang.driver.modules import ModuleSet, Reader, load_modules, read_file
from ocannl_lang.driver.options import BACKENDS, UnknownDevice, run_options
from ocannl_lang.driver.program import Program
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast

__all__ = ["BACKENDS", "Session", "UnknownDevice", "settable"]


def settable(module: ast.Module) -> list[str]:
    """What `--set` and `load` may give: top-level lets and the configuration of routines."""
    found: dict[str, None] = {}
    for item in module.items:
        if isinstance(item, ast.Let):
            found.update(dict.fromkeys(n.name for n in item.names))
        elif isinstance(item, ast.RoutineDef):
            found.update(dict.fromkeys(p.name.name for p in item.config))
    return list(found)


def _settable_help(modules: ModuleSet) -> str:
    names = settable(modules.modules[""].syntax)
    return f"there are {', '.join(f'`{n}`' for n in names)}" if names else "this program has nothing to set"


class Session:
    """Options that hold for every program it opens. `reader` gives the text of a file; an editor answers from its buffers."""

    def __init__(
        self, *, seed: int = 0, device: str = "cpu", backend: str | None = None, threads: int | None = None,
        settings: Mapping[str, Static] | None = None, reader: Reader = read_file,
    ) -> None:  # fmt: skip
        self.options = run_options(seed, device, backend, threads)
        self.settings = dict(settings or {})
        self.reader = reader

    def check(self, path: str | Path) -> list[Diagnostic]:
        """All diagnostics of a program, by place. Never runs it."""
        checked = self.checked(path)
        return checked if isinstance(checked, list) else checked.diagnostics

    def checked(self, path: str | Path) -> Checked | list[Diagnostic]:
        """The checked program; only diagnostics where the file cannot be read."""
        with fewer_collections():
            return self._checked(path)

    def _checked(self, path: str | Path) -> Checked | list[Diagnostic]:
        from ocannl_lang.host.intrinsics import INTRINSICS

        collector = Collector()
        intrinsics: dict[str, dict[str, Any]] = {k: dict(v) for k, v in INTRINSICS.items()}
        modules = load_modules(Path(path), self.reader, {k: list(v) for k, v in intrinsics.items()}, collector)
        if modules is None:
            return collector.sorted()
        unknown = [n for n in self.settings if n not in settable(modules.modules[""].syntax)]
        for name in unknown:
            span = modules.modules[""].syntax.span
            collector.report(
                Diagnostic(
                    "E0201", f"there is no `{name}` to set", Span(span.source, 0, 0), helps=(_settable_help(modules),)
                )
            )
        if unknown:
            return collector.sorted()
        with room_for_nesting():
            return check_program(modules, collector, intrinsics, self.settings, self.settings)

    def open(self, path: str | Path) -> Program:
        """A program ready to run. Raises `ProgramErrors` if it has errors."""
        checked = self.checked(path)
        if isinstance(checked, list):
            raise ProgramErrors(checked)
        if checked.has_errors:
            raise ProgramErrors(checked.diagnostics)
        return Program(checked, self.options, Path(path))
