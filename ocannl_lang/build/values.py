"""The values that exist while a program is built, besides plain Python ints, floats, bools, strings, lists, tuples, dicts, ranges and None.

Ops and their instances, the tree of instances that gives parameters their paths, references to cells, dims and rows, static numbers that
depend on sizes, and the functions that can be called.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

from ocannl_lang.graph.ir import Cell, Value
from ocannl_lang.shapes.terms import Dim, Row, RowVar, SizeTerm
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast

if TYPE_CHECKING:
    from ocannl_lang.build.context import Frame, ModuleEnv

Static = Any
"""A static value. Which Python types stand for what is said in this module's docstring."""


@dataclass(frozen=True, slots=True, eq=False)
class SlotArg:
    """A slot given to an op's slot parameter; its labels stay those of the `frame` it was written in."""

    slot: ast.Slot
    frame: Frame


@dataclass(frozen=True, slots=True, eq=False)
class OpRef:
    """An op with some of its configuration: not yet an instance. `slots` are given iff the op has slot parameters and they were written."""

    definition: ast.OpDef
    module: ModuleEnv
    config: tuple[tuple[str, Static], ...] = ()
    slots: tuple[SlotArg, ...] = ()

    @property
    def name(self) -> str:
        return self.definition.name.name

    @property
    def key(self) -> str:
        """Identifies the definition across modules."""
        return f"{self.module.name}:{self.name}"

    def missing(self) -> list[str]:
        """Names of config parameters without a value or default."""
        given = {n for n, _ in self.config}
        return [p.name.name for p in self.definition.config if p.name.name not in given and p.default is None]

    @property
    def complete(self) -> bool:
        return not self.missing() and len(self.slots) == len(self.definition.slots)


@dataclass(frozen=True, slots=True, eq=False)
class OpaqueOp:
    """An unknown op: what a config parameter of type `op` is while an op is checked by itself."""

    name: str


@dataclass(slots=True, eq=False)
class Instance:
    """An op with its whole configuration and its own parameters, at one place of the program.

    `op` is None for the roots: modules, routines, main. `places` finds what was made at a place before (instances, cells, names of draws);
    `members` are what paths and `net.w` can name. The name is settled at the end of the statement that made the instance, since a `let`
    may give it one.
    """

    op: OpRef | None
    owner: Instance | None
    base: str
    name: str | None = None
    places: dict[Hashable, Any] = field(default_factory=dict[Hashable, Any])
    used: dict[str, int] = field(default_factory=dict[str, int])
    members: dict[str, Any] = field(default_factory=dict[str, Any])
    probed: bool = False

    @property
    def path(self) -> str:
        if self.owner is None:
            return self.name or ""
        if self.name is None:
            self.name = self.owner.claim(self.base, self)
        prefix = self.owner.path
        return f"{prefix}.{self.name}" if prefix else self.name

    def claim(self, base: str, member: Any) -> str:
        """A name for `member` in this instance that no other member has: `base`, `base_1`, …"""
        count = self.used.get(base, 0)
        self.used[base] = count + 1
        name = base if count == 0 else f"{base}_{count}"
        while name in self.members:
            count += 1
            self.used[base] = count + 1
            name = f"{base}_{count}"
        self.members[name] = member
        return name

    def child_path(self, name: str) -> str:
        prefix = self.path
        return f"{prefix}.{name}" if prefix else name


@dataclass(frozen=True, slots=True, eq=False)
class CellRef:
    """A parameter or state itself, not the value it has now: what can be assigned, and reads as its newest version."""

    cell: Cell


@dataclass(frozen=True, slots=True, eq=False)
class ResultRef:
    """`result` in an op with its own derivative. `key` finds its current value in the build."""

    key: object


@dataclass(frozen=True, slots=True, eq=False)
class DimRef:
    """A name for a size: declared by `dim`, or introduced by a signature. Axes notation means the `declared` ones only."""

    name: str
    dim: Dim
    declared: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class RowRef:
    """A name for a row; as a number it is the product of its sizes. Axes notation means the `declared` ones only."""

    name: str
    var: RowVar
    declared: bool = False

    @property
    def row(self) -> Row:
        return Row((), self.var, ())


@dataclass(frozen=True, slots=True)
class Symbolic:
    """A static number that depends on sizes which inference has not fixed yet. `whole`: it is an int."""

    term: SizeTerm
    whole: bool


@dataclass(frozen=True, slots=True, eq=False)
class FnRef:
    definition: ast.FnDef
    module: ModuleEnv


@dataclass(frozen=True, slots=True, eq=False)
class CdRef:
    definition: ast.CdDef
    module: ModuleEnv
    config: tuple[tuple[str, Static], ...] = ()
    slots: tuple[SlotArg, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class RoutineRef:
    definition: ast.RoutineDef
    module: ModuleEnv
    config: tuple[tuple[str, Static], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ExternRef:
    definition: ast.ExternDef
    module: ModuleEnv


@dataclass(frozen=True, slots=True, eq=False)
class Builtin:
    """A built-in function or reducer by name, with what was given to it in brackets or as axes notation so far."""

    name: str
    config: tuple[tuple[str, Static], ...] = ()
    notation: ast.Notation | None = None
    frame: Frame | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """`value.name`, to be called: a method of a string, list or dict."""

    value: Static
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Intrinsic:
    """A function of a standard module that Python implements; host code only."""

    name: str
    function: Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class ModuleRef:
    module: ModuleEnv


@dataclass(frozen=True, slots=True)
class Poison:
    """Stands for a value whose computation was reported as faulty: everything made from it is silent."""


POISON = Poison()

Tensor = Union[Value, CellRef]


@dataclass(frozen=True, slots=True)
class Returned:
    """A block ended by `return`."""

    value: Static
    span: Span
