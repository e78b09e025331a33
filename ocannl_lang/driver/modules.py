"""Reading a file and everything that it imports (section 12)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ocannl_lang.diagnostics.model import Collector, Diagnostic
from ocannl_lang.driver.finding import Reader, find_module, project_root, read_file
from ocannl_lang.names.interface import Interface, interface
from ocannl_lang.resources import stdlib_dir
from ocannl_lang.source import Source
from ocannl_lang.syntax import ast
from ocannl_lang.syntax.parser import parse

__all__ = ["LoadedModule", "ModuleSet", "Reader", "find_module", "load_modules", "project_root", "read_file", "shown"]


@dataclass(frozen=True, slots=True, eq=False)
class LoadedModule:
    """A parsed module. `name` is its dotted path, "" for the file that was asked for; `standard`: from the standard library."""

    name: str
    path: Path
    syntax: ast.Module
    interface: Interface
    standard: bool


@dataclass(slots=True, eq=False)
class ModuleSet:
    """All modules that a file needs, in the order of discovery. Implements `names.interface.ModuleInterfaces`."""

    root: Path
    modules: dict[str, LoadedModule] = field(default_factory=dict[str, LoadedModule])
    _standard: dict[str, Interface | None] = field(default_factory=dict[str, "Interface | None"])

    def member(self, module_path: tuple[str, ...]) -> Interface | None:
        """The interface of a module; one of the standard library that is not imported is read for suggestions."""
        name = ".".join(module_path)
        found = self.modules.get(name)
        if found is not None:
            return found.interface
        if name not in self._standard:
            path = stdlib_dir() / Path(*module_path).with_suffix(".ocn")
            loaded = _load(name, path, read_file, (), Collector(), standard=True) if path.is_file() else None
            self._standard[name] = None if loaded is None else loaded.interface
        return self._standard[name]


def load_modules(
    path: Path, reader: Reader, intrinsics: dict[str, Iterable[str]], collector: Collector
) -> ModuleSet | None:
    """Parse a file and everything it imports. None if the file itself cannot be read (E0801)."""
    main = _load("", path, reader, (), collector, standard=False)
    if main is None:
        return None
    found = ModuleSet(project_root(path), {"": main})
    waiting = [main]
    edges: dict[str, list[tuple[str, ast.Import | ast.FromImport]]] = {}
    while waiting:
        importer = waiting.pop(0)
        for item in importer.syntax.items:
            if not isinstance(item, (ast.Import, ast.FromImport)):
                continue
            name = ".".join(p.name for p in item.path)
            edges.setdefault(importer.name, []).append((name, item))
            if name in found.modules:
                continue
            place = find_module(name, importer.path, found.root, reader)
            if place is None:
                continue
            if _same_file(place[0], path):
                found.modules[name] = main
                continue
            module = _load(name, place[0], reader, intrinsics.get(name, ()), collector, standard=place[1])
            if module is not None:
                found.modules[name] = module
                waiting.append(module)
    _report_cycles(found, edges, collector)
    return found


def _load(
    name: str, path: Path, reader: Reader, extra: Iterable[str], collector: Collector, *, standard: bool
) -> LoadedModule | None:
    try:
        text = read_file(path) if standard else reader(path)
        problem = None if text is not None else "there is no such file"
    except OSError as error:
        text, problem = None, error.strerror or "it cannot be read"
    except UnicodeDecodeError as error:
        text, problem = None, f"it is not UTF-8 text (byte {error.start})"
    if text is None:
        source = Source(str(path), "")
        collector.report(Diagnostic("E0801", f"cannot read {path}", _empty(source), str(problem)))
        return None
    syntax = parse(Source(shown(path, standard=standard), text), collector)
    return LoadedModule(name, path, syntax, interface(syntax, extra), standard)


def shown(path: Path, *, standard: bool) -> str:
    """The path as messages show it."""
    return f"<{path.stem}>" if standard else str(path)


def _empty(source: Source):
    from ocannl_lang.source import Span

    return Span(source, 0, 0)


def _same_file(a: Path, b: Path) -> bool:
    try:
        return a.resolve() == b.resolve()
    except OSError:
        return a == b


def _report_cycles(
    found: ModuleSet, edges: dict[str, list[tuple[str, ast.Import | ast.FromImport]]], collector: Collector
) -> None:
    """E0203 at the import that closes a cycle."""
    state: dict[str, int] = {}
    main = found.modules[""]

    def visit(name: str, trail: list[str]) -> None:
        state[name] = 1
        for target, item in edges.get(name, []):
            target = "" if found.modules.get(target) is main else target
            if target not in found.modules:
                continue
            if state.get(target) == 1:
                cycle = [*trail[trail.index(target) :], target] if target in trail else [target]
                names = " → ".join(n or main.path.stem for n in cycle)
                collector.report(
                    Diagnostic(
                        "E0203", "these modules import each other", item.span, "closes the circle", notes=(names,)
                    )
                )
            elif target not in state:
                visit(target, [*trail, target])
        state[name] = 2

    visit("", [""])
