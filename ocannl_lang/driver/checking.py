"""From text to a checked program: names, types, builds and shapes of everything in it. Runs nothing and reads no data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ocannl_lang.build.context import Build, ModuleEnv, World
from ocannl_lang.build.modules import evaluate_top, top_build
from ocannl_lang.build.routines import BuiltOp, BuiltRoutine, build_op, build_routine
from ocannl_lang.build.values import Instance, OpRef, Static
from ocannl_lang.diagnostics.model import Collector, Diagnostic, Label
from ocannl_lang.driver.broadcasts import mutual_stretches
from ocannl_lang.driver.modules import LoadedModule, ModuleSet
from ocannl_lang.driver.training import report_untrained
from ocannl_lang.graph.ir import Graph
from ocannl_lang.graph.precision import infer_precisions
from ocannl_lang.names.resolve import Names, resolve
from ocannl_lang.names.static_types import check_types
from ocannl_lang.shapes import Solution, solve
from ocannl_lang.shapes.state import ShapeError
from ocannl_lang.shapes.terms import Problem
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast


@dataclass(slots=True, eq=False)
class Checked:
    """A program with everything that is known without running it."""

    modules: ModuleSet
    world: World
    main: ModuleEnv
    names: dict[str, Names]
    routines: dict[str, BuiltRoutine] = field(default_factory=dict[str, BuiltRoutine])
    ops: list[BuiltOp] = field(default_factory=list[BuiltOp])
    problem: Problem = field(default_factory=Problem)
    solution: Solution | None = None
    precisions: dict[Any, str] = field(default_factory=dict[Any, str])
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])

    @property
    def has_errors(self) -> bool:
        return any(d.severity == "error" for d in self.diagnostics)


def check_program(
    modules: ModuleSet, parsing: Collector, intrinsics: Mapping[str, Mapping[str, Any]], settings: Mapping[str, Static],
    routine_config: Mapping[str, Static] | None = None,
) -> Checked:  # fmt: skip
    """Check all modules of a program. `parsing` holds what was reported so far."""
    early = Collector()
    for d in parsing.diagnostics:
        early.report(d)
    if parsing.has_errors:
        # what else is wrong is told when the text can be read: half a definition gives misleading errors
        return Checked(
            modules, make_world(modules, intrinsics, settings), _main_env(modules), {}, diagnostics=early.sorted()
        )
    names: dict[str, Names] = {}
    for name, module in modules.modules.items():
        if module.standard or (name and module is modules.modules[""]):
            continue
        names[name] = resolve(module.syntax, modules, early)
        check_types(module.syntax, names[name], early)
    world = make_world(modules, intrinsics, settings)
    checked = Checked(modules, world, world.modules[""], names)
    build_everything(checked, routine_config or {})
    late = [d for d in world.collector.diagnostics if not _said_before(d, early.diagnostics)]
    inside: set[tuple[str, str, tuple[Label, ...]]] = set()
    for d in late:
        # what an op expects fails in every application in the same way
        if d.code == "E0304" and d.labels:
            if (d.code, d.message, d.labels) in inside:
                continue
            inside.add((d.code, d.message, d.labels))
        early.report(d)
    checked.diagnostics = early.sorted()
    return checked


def _main_env(modules: ModuleSet) -> ModuleEnv:
    module = modules.modules[""]
    return ModuleEnv("", module.syntax, Instance(None, None, "", ""), {})


def make_world(
    modules: ModuleSet, intrinsics: Mapping[str, Mapping[str, Any]], settings: Mapping[str, Static]
) -> World:
    """The world of a program: an environment for each module."""
    world = World({}, Collector(), settings)
    by_module: dict[int, ModuleEnv] = {}
    for name, module in modules.modules.items():
        if id(module) not in by_module:
            root = Instance(None, None, name, name)
            by_module[id(module)] = ModuleEnv(
                name, module.syntax, root, _definitions(module), intrinsics=intrinsics.get(name, {})
            )
        world.modules[name] = by_module[id(module)]
    for module in modules.modules.values():
        for item in module.syntax.items:
            if isinstance(item, ast.BasisDef):
                for n in item.names:
                    world.bases[n.name] = n.span
    return world


def _definitions(module: LoadedModule) -> dict[str, ast.Definition]:
    """Top-level names with their definitions; of a name that is defined twice the first counts."""
    found: dict[str, ast.Definition] = {}
    for item in module.syntax.items:
        match item:
            case ast.OpDef() | ast.CdDef() | ast.FnDef() | ast.RoutineDef() | ast.ExternDef() | ast.DataDef():
                found.setdefault(item.name.name, item)
            case ast.Let():
                for n in item.names:
                    found.setdefault(n.name, item)
            case ast.Import(path=path, alias=alias):
                # `import a.b` is used as `b`, as its last part
                found.setdefault((alias or path[-1]).name, item)
            case ast.FromImport(items=items):
                for i in items:
                    found.setdefault((i.alias or i.name).name, item)
            case _:
                pass
    return found


# ---------------------------------------------------------------- building


def build_everything(checked: Checked, routine_config: Mapping[str, Static]) -> None:
    """Build every op by itself and every routine of the program's own modules, and solve their shapes."""
    world = checked.world
    own = [env for name, env in world.modules.items() if not checked.modules.modules[name].standard]
    own = list(dict.fromkeys(own))
    for env in own:
        evaluate_top(world, env)
    faulty, held = check_ops(checked, own)
    for env in own:
        for item in env.syntax.items:
            if isinstance(item, ast.RoutineDef):
                key = f"{env.name}.{item.name.name}" if env.name else item.name.name
                if key not in checked.routines:
                    checked.routines[key] = build_routine(world, env, item, routine_config)
    solve_routines(checked, faulty)
    for d in held:
        if not any(_told_inside(d, other) for other in world.collector.diagnostics):
            world.collector.report(d)


def _told_inside(d: Diagnostic, other: Diagnostic) -> bool:
    """Whether a fault inside an op is told already, there or at an application as a place inside."""
    spans = [other.span, *(label.span for label in other.labels)]
    return d.code == other.code and any(
        s.source is d.span.source and d.span.start <= s.start and s.end <= d.span.end for s in spans
    )


def check_ops(checked: Checked, own: list[ModuleEnv]) -> tuple[set[str], list[Diagnostic]]:
    """Check each op by itself: the keys of those whose body is contradictory.

    Also gives what is wrong with a configuration that is made, which its applications tell better if there are any.
    """
    world = checked.world
    held: list[Diagnostic] = []
    faulty: set[str] = set()
    left: set[str] = set()
    for env in own:
        for item in env.syntax.items:
            if isinstance(item, ast.OpDef) and env.definitions.get(item.name.name) is item:
                op = OpRef(item, env)
                built = build_op(world, op)
                if built is None or built.undecided:
                    left.add(op.key)
                if built is not None:
                    _check_op(checked, built, faulty)
    for env in own:
        for value in list(env.bindings.values()):
            for instance in _instances(value):
                if instance.op is not None and instance.op.key in left:
                    before = len(world.collector.diagnostics)
                    built = build_op(world, instance.op)
                    if built is not None:
                        _check_op(checked, built, set())
                    held += world.collector.diagnostics[before:]
                    world.collector.forget(before)
    return faulty, held


def _instances(value: Static) -> list[Instance]:
    if isinstance(value, Instance):
        return [value]
    if isinstance(value, (list, tuple)):
        return [i for v in value for i in _instances(v)]
    return []


def _check_op(checked: Checked, built: BuiltOp, faulty: set[str]) -> None:
    checked.ops.append(built)
    errors = _contradictions(built, faulty)
    if errors and built.op.missing():
        # a size that one value of the config gives contradicts nothing
        again = build_op(checked.world, built.op, guess="any")
        errors = [] if again is None or again.undecided else _contradictions(again, faulty)
    for e in errors:
        checked.world.collector.report(e.diagnostic)
    if errors or not (built.complete or built.undecided):
        faulty.add(built.op.key)


def _contradictions(built: BuiltOp, faulty: set[str]) -> list[ShapeError]:
    """What contradicts in an op by itself, apart from what is wrong with the ops that it applies."""
    return [e for e in built.build.solver.errors if not any(f.key in faulty for f in e.origin.frames)]


def solve_routines(checked: Checked, faulty: set[str]) -> None:
    """Solve the shapes of all routines together and report what contradicts."""
    world = checked.world
    checked.problem = joint_problem(top_build(world), list(checked.routines.values()))
    solution = solve(checked.problem)
    checked.solution = solution
    # what a statement that could not be built would have fixed is not forgotten
    whole = all(r.complete for r in checked.routines.values())
    told: set[Span] = set()
    for e in solution.errors:
        if any(f.key in faulty for f in e.origin.frames):
            continue
        if e.code == "E0407" and not whole:
            continue
        # one application that does not fit contradicts in many places: the first tells it
        if e.diagnostic.span in told:
            continue
        told.add(e.diagnostic.span)
        world.collector.report(e.diagnostic)
    for routine in checked.routines.values():
        report_units(routine.build, solution, faulty, world.collector)
    if not world.collector.has_errors:
        checked.precisions = infer_precisions(all_graphs(checked), world.collector)
        report_untrained(checked.routines.values(), world.collector)
        for routine in checked.routines.values():
            for d in mutual_stretches(routine.graph, solution):
                world.collector.report(d)


def report_units(build: Build, solution: Solution, faulty: set[str], collector: Collector) -> None:
    """E0404 for sizes that were written with a basis and turned out to have another."""
    for dim, basis, origin in build.units:
        found = solution.dim(dim)
        if found.basis == basis or found.broadcast or any(f.key in faulty for f in origin.frames):
            continue
        has = "no basis" if found.basis == "default" else f"the basis `{found.basis}`"
        inner = (Label(origin.span, f"`{basis}` is asked for here"),) if origin.frames else ()
        reasons = tuple(p for p in solution.why(dim) if p.span not in (origin.outer, origin.span))
        collector.report(
            Diagnostic(
                "E0404",
                f"bases differ: `{basis}` and {has}",
                origin.outer,
                f"this size has {has}",
                (*inner, *reasons[:3]),
            )
        )


def joint_problem(top: Build, routines: list[BuiltRoutine]) -> Problem:
    """Everything that is solved together, in the order of the text."""
    problem = Problem()
    for build in (top, *(r.build for r in routines)):
        problem.constraints.extend(build.problem.constraints)
        problem.leaves.extend(build.problem.leaves)
    return problem


def all_graphs(checked: Checked) -> list[Graph]:
    """The graphs of all routines, and those of initial values."""
    graphs = [r.graph for r in checked.routines.values()]
    for cell in checked.world.cells.values():
        if cell.init is not None:
            graphs.append(Graph(f"{cell.path}.init", [], [cell.init], {}, False, None))
    return graphs


def _said_before(d: Diagnostic, earlier: list[Diagnostic]) -> bool:
    """A fault that an earlier stage reported on the same line, maybe in other words."""
    for e in earlier:
        if e.span.source is not d.span.source or e.severity != "error":
            continue
        meets = e.line <= d.end_line and d.line <= e.end_line
        if meets and e.code[:3] == d.code[:3] and e.code[:3] in ("E01", "E02", "E03", "E05"):
            return True
    return False
