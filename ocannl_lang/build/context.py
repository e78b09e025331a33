"""What building carries around: the world of a program, one build per graph, one frame per body.

The `World` lives as long as a loaded program: modules, the tree of instances, all cells. A `Build` makes one graph. A `Frame` is one
execution of one body: its scope, the instance that owns what it makes, and the place it has come to.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from ocannl_lang.build.values import Instance, SlotArg, Static
from ocannl_lang.diagnostics.model import Collector, Diagnostic, Fix, Label
from ocannl_lang.graph.ir import Cell, Graph, Value
from ocannl_lang.shapes import Solver
from ocannl_lang.shapes.reasons import is_standard
from ocannl_lang.shapes.terms import Constraint, DimVar, Form, Leaf, Origin, Problem
from ocannl_lang.shapes.terms import Frame as OriginFrame
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast

STEP_BUDGET = 2_000_000
"""Statements and expressions that one build may evaluate before it counts as endless (E0305)."""
DEPTH_LIMIT = 200
"""Nested applications of ops and cds before they count as endless recursion (E0306)."""
CALL_LIMIT = 1000
"""The same for calls of functions."""

BodyKind = Literal["module", "op", "cd", "routine", "fn", "main", "test"]


class BuildError(Exception):
    """A fault of the program, found while building: ends the statement, is reported, and building goes on after it."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class BuildAbandoned(Exception):
    """This build cannot go on; what there is to say has been reported."""


def fail(
    code: str, message: str, span: Span, label: str = "", *, labels: tuple[Label, ...] = (), notes: tuple[str, ...] = (),
    helps: tuple[str, ...] = (), fix: Fix | None = None,
) -> BuildError:  # fmt: skip
    """The exception for a fault; the caller raises it."""
    return BuildError(Diagnostic(code, message, span, label, labels, notes, helps, fix))


def too_deep(span: Span) -> Diagnostic:
    """The fault of a body whose expressions or applications nest deeper than the compiler can follow."""
    return Diagnostic("E0306", "this nests too deeply", span, "more levels than can be followed")


def at_the_user(build: Build, d: Diagnostic) -> Diagnostic:
    """A fault found inside a standard op, told where the user's text applies that op."""
    if not is_standard(d.span):
        return d
    for frame in reversed(build.frames):
        if not is_standard(frame.span):
            inside = Label(d.span, d.label or f"in `{frame.callee}`")
            return replace(
                d, span=frame.span, label=f"in `{frame.callee}`, applied here", labels=(inside, *d.labels), fix=None
            )
    return d


class HostServices(Protocol):
    """What only host code may do; absent while a program is checked."""

    def call_host(self, name: str, args: tuple[Static, ...], kwargs: dict[str, Static], span: Span) -> Static: ...


@dataclass(slots=True, eq=False)
class ModuleEnv:
    """A module while the program lives: its top-level names, each resolved when first used.

    `name` is the dotted path, "" for the program's main file. `bindings` are evaluated top-level lets and resolved imports.
    """

    name: str
    syntax: ast.Module
    root: Instance
    definitions: dict[str, ast.Definition]
    bindings: dict[str, Static] = field(default_factory=dict[str, Static])
    faulty_calls: set[str] = field(default_factory=set[str])
    intrinsics: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(slots=True, eq=False)
class World:
    """One loaded program. `cells` by path; `settings` override top-level lets of the main module."""

    modules: dict[str, ModuleEnv]
    collector: Collector
    settings: Mapping[str, Static] = field(default_factory=dict[str, Static])
    cells: dict[str, Cell] = field(default_factory=dict[str, Cell])
    cell_problem: dict[Cell, Problem] = field(default_factory=dict[Cell, Problem])
    data: dict[str, Value] = field(default_factory=dict[str, Value])
    bases: dict[str, Span] = field(default_factory=dict[str, Span])
    top: Build | None = None


@dataclass(slots=True, eq=False)
class Build:
    """The making of one graph.

    `versions` is each cell's newest value, `first` the value it had at the start (under which its gradient is kept),
    `cell_of` finds the cell that a value is a version of. `grads` are the gradients as they stand now. `units` are the
    bases written on sizes that are still to be found.
    """

    world: World
    graph: Graph
    problem: Problem = field(default_factory=Problem)
    frames: list[OriginFrame] = field(default_factory=list[OriginFrame])
    versions: dict[Cell, Value] = field(default_factory=dict[Cell, Value])
    first: dict[Cell, Value] = field(default_factory=dict[Cell, Value])
    cell_of: dict[Value, Cell] = field(default_factory=dict[Value, Cell])
    leaf_of: dict[Value, Value] = field(default_factory=dict[Value, Value])
    grads: dict[Value, Value] = field(default_factory=dict[Value, Value])
    results: dict[object, Value] = field(default_factory=dict[object, Value])
    units: list[tuple[DimVar, str, Origin]] = field(default_factory=list[tuple[DimVar, str, Origin]])
    training: bool = False
    host: bool = False
    steps: int = 0
    _solver: Solver | None = None
    _told: tuple[int, int] = (0, 0)

    def add(self, constraint: Constraint) -> None:
        self.problem.constraints.append(constraint)

    def add_leaf(self, leaf: Leaf) -> None:
        self.problem.leaves.append(leaf)

    @property
    def solver(self) -> Solver:
        """What propagation finds from the constraints so far; it works only where something is asked."""
        if self._solver is None:
            self._solver = Solver()
        constraints, leaves = self._told
        for leaf in self.problem.leaves[leaves:]:
            self._solver.add_leaf(leaf)
        for constraint in self.problem.constraints[constraints:]:
            self._solver.add(constraint)
        self._told = (len(self.problem.constraints), len(self.problem.leaves))
        return self._solver

    def origin(self, span: Span, form: Form = "other", symbol: str = "") -> Origin:
        return Origin(span, tuple(self.frames), form, symbol)


_frame_ids = itertools.count(1)


@dataclass(slots=True, eq=False)
class Binding:
    """A name in a scope. `rebindable`: declared by `var`."""

    value: Static
    rebindable: bool = False


@dataclass(slots=True, eq=False)
class Frame:
    """One execution of a body.

    `owner` owns the instances, parameters and states made here. `turns` are the turns of the static loops and the calls of functions on
    the way to the current statement: with the node they identify a place. `fresh` are the instances made by the current statement.
    """

    kind: BodyKind
    module: ModuleEnv
    owner: Instance
    scope: dict[str, Binding] = field(default_factory=dict[str, Binding])
    slots: dict[str, SlotArg] = field(default_factory=dict[str, SlotArg])
    turns: tuple[Hashable, ...] = ()
    fresh: list[Instance] = field(default_factory=list[Instance])
    depth: int = 0
    state_prefix: str | None = None
    state_key: tuple[Hashable, ...] = ()
    id: int = field(default_factory=_frame_ids.__next__)


@dataclass(frozen=True, slots=True, eq=False)
class Ctx:
    """Where evaluation stands: which build, which frame. `services` is present in host code."""

    build: Build
    frame: Frame
    services: Any = None

    @property
    def world(self) -> World:
        return self.build.world

    def within(self, frame: Frame) -> Ctx:
        return Ctx(self.build, frame, self.services)


def step(ctx: Ctx, span: Span) -> None:
    """Count one step of the build; E0305 where the budget ends."""
    build = ctx.build
    build.steps += 1
    if build.steps > STEP_BUDGET and not build.host:
        owner = ctx.frame.owner.op
        if ctx.frame.kind == "op" and owner is not None:
            # what applies it would not end either: it is told once
            ctx.frame.module.faulty_calls.add(owner.name)
        build.world.collector.report(
            Diagnostic(
                "E0305", "this build does not end", span, f"still building after {STEP_BUDGET:,} steps",
                helps=("loops and recursion in ops, cds and routines run while the program is built: give them a bound",),
            )
        )  # fmt: skip
        raise BuildAbandoned
