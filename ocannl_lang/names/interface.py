"""What a module shows to others: the names it defines.

By interfaces, resolution works across modules without reading files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from ocannl_lang.source import Span
from ocannl_lang.syntax import ast

ExportKind = Literal["op", "cd", "fn", "routine", "extern", "data", "basis", "let", "import", "intrinsic"]


@dataclass(frozen=True, slots=True, eq=False)
class Export:
    """A top-level name of a module. `definition` is None for intrinsics: functions that are part of the compiler."""

    name: str
    kind: ExportKind
    definition: ast.Definition | None
    span: Span | None

    @property
    def private(self) -> bool:
        return self.name.startswith("_")

    @property
    def doc(self) -> str | None:
        match self.definition:
            case (
                ast.OpDef() | ast.CdDef() | ast.FnDef() | ast.RoutineDef() | ast.ExternDef() | ast.DataDef() | ast.Let()
            ):
                return self.definition.doc
            case _:
                return None


@dataclass(frozen=True, slots=True)
class Interface:
    """The top-level names of a module, private ones included.

    `broken`: parts of the module did not parse, so names may be missing.
    """

    exports: Mapping[str, Export]
    broken: bool = False
    doc: str | None = None

    def public(self) -> list[str]:
        return [name for name, export in self.exports.items() if not export.private and export.kind != "import"]


class ModuleInterfaces(Protocol):
    """Where resolution learns about other modules."""

    def member(self, module_path: tuple[str, ...]) -> Interface | None:
        """The interface of the module `a.b` for the path `("a", "b")`; None if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class FixedInterfaces:
    """Interfaces from a mapping."""

    modules: Mapping[tuple[str, ...], Interface]

    def member(self, module_path: tuple[str, ...]) -> Interface | None:
        return self.modules.get(module_path)


NO_MODULES = FixedInterfaces({})


def interface(module: ast.Module, intrinsics: Iterable[str] = ()) -> Interface:
    """The interface of a module; `intrinsics` are names that the compiler adds to it."""
    exports: dict[str, Export] = {}
    for name in intrinsics:
        exports[name] = Export(name, "intrinsic", None, None)
    for item in module.items:
        for ident, kind in introduced(item):
            if kind != "basis" or ident.name not in exports:
                exports[ident.name] = Export(ident.name, kind, item, ident.span)
    return Interface(exports, any(isinstance(item, ast.ErrorStmt) for item in module.items), module.doc)


def introduced(item: ast.Definition) -> Iterator[tuple[ast.Ident, ExportKind]]:
    """The names that a top-level item introduces, with what they are."""
    match item:
        case ast.OpDef():
            yield item.name, "op"
        case ast.CdDef():
            yield item.name, "cd"
        case ast.FnDef():
            yield item.name, "fn"
        case ast.RoutineDef():
            yield item.name, "routine"
        case ast.ExternDef():
            yield item.name, "extern"
        case ast.DataDef():
            yield item.name, "data"
        case ast.BasisDef():
            for name in item.names:
                yield name, "basis"
        case ast.Let():
            for name in item.names:
                if name.name != "_":
                    yield name, "let"
        case ast.Import():
            yield item.alias or item.path[-1], "import"
        case ast.FromImport():
            for part in item.items:
                yield part.alias or part.name, "import"
        case ast.MainDef() | ast.TestDef() | ast.ErrorStmt():
            return
