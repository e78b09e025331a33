"""Names at the top of modules: definitions, imports, lets; each resolved when it is first used."""

from __future__ import annotations

from ocannl_lang.build import tensors
from ocannl_lang.build.context import Build, BuildAbandoned, BuildError, Ctx, Frame, ModuleEnv, World, fail, too_deep
from ocannl_lang.build.expressions import Poisoned, PoisonedCondition, evaluate, unpack
from ocannl_lang.build.instances import settle_names
from ocannl_lang.build.types import tensor_type
from ocannl_lang.build.values import (
    POISON,
    CdRef,
    ExternRef,
    FnRef,
    Intrinsic,
    ModuleRef,
    OpRef,
    RoutineRef,
    Static,
)
from ocannl_lang.diagnostics.model import Diagnostic
from ocannl_lang.graph import ir
from ocannl_lang.graph.ir import Graph, Value
from ocannl_lang.shapes.terms import DimVar, Origin, Size, Unknown
from ocannl_lang.syntax import ast


class _Evaluating:
    """Marks a top-level let that is being evaluated, to find those that need themselves."""


_EVALUATING = _Evaluating()


def top_build(world: World) -> Build:
    """The build in which top-level lets are evaluated."""
    if world.top is None:
        world.top = Build(world, Graph("", [], [], {}, False, None))
    return world.top


def module_frame(env: ModuleEnv) -> Frame:
    return Frame("module", env, env.root)


def module_member(ctx: Ctx, env: ModuleEnv, name: str) -> Static | None:
    """The top-level `name` of a module; None if it has none."""
    found = env.bindings.get(name)
    if isinstance(found, _Evaluating):
        definition = env.definitions[name]
        raise fail("E0306", f"`{name}` is needed to compute itself", definition.span)
    if found is not None:
        return found
    definition = env.definitions.get(name)
    if definition is None:
        intrinsic = env.intrinsics.get(name)
        return None if intrinsic is None else Intrinsic(name, intrinsic)
    value = _define(ctx, env, name, definition)
    env.bindings[name] = value
    return value


def _define(ctx: Ctx, env: ModuleEnv, name: str, definition: ast.Definition) -> Static:
    world = ctx.world
    match definition:
        case ast.OpDef():
            return OpRef(definition, env)
        case ast.FnDef():
            return FnRef(definition, env)
        case ast.CdDef():
            return CdRef(definition, env)
        case ast.RoutineDef():
            return RoutineRef(definition, env)
        case ast.ExternDef():
            return ExternRef(definition, env)
        case ast.Import(path=path):
            target = world.modules.get(".".join(p.name for p in path))
            return ModuleRef(target) if target is not None else POISON
        case ast.FromImport(path=path, items=items):
            target = world.modules.get(".".join(p.name for p in path))
            if target is None:
                return POISON
            for item in items:
                if (item.alias or item.name).name == name:
                    member = module_member(ctx, target, item.name.name)
                    return POISON if member is None else member
            return POISON
        case ast.Let():
            return _top_let(world, env, name, definition)
        case ast.DataDef():
            return _data(world, env, definition)
        case _:
            return POISON


def _top_let(world: World, env: ModuleEnv, name: str, definition: ast.Let) -> Static:
    """Evaluate a top-level let; all its names are bound."""
    ctx = Ctx(top_build(world), module_frame(env))
    names = [n.name for n in definition.names]
    if env.name == "" and len(names) == 1 and names[0] in world.settings:
        env.bindings[name] = world.settings[names[0]]
        return env.bindings[name]
    for n in names:
        env.bindings[n] = _EVALUATING
    try:
        value = evaluate(ctx, definition.value)
        from ocannl_lang.build.statements import typed

        value = typed(ctx, value, definition.type, names[0], definition.value)
        settle_names(ctx.frame, names, value)
        parts = [value] if len(names) == 1 else unpack(ctx, value, len(names), definition.value.span)
    except BuildError as error:
        world.collector.report(error.diagnostic)
        parts = [POISON] * len(names)
    except RecursionError:
        world.collector.report(too_deep(definition.value.span))
        parts = [POISON] * len(names)
    except (Poisoned, PoisonedCondition, BuildAbandoned):
        parts = [POISON] * len(names)
    for n, part in zip(names, parts):
        if isinstance(part, Value) and not part.name:
            part.name = n
        env.bindings[n] = part
    return env.bindings[name]


def _data(world: World, env: ModuleEnv, definition: ast.DataDef) -> Static:
    """A datum: its type is known, its content only when something is run."""
    name = definition.name.name
    if not isinstance(definition.type, ast.TensorType):
        world.collector.report(
            Diagnostic("E0301", "data is a tensor", definition.type.span, "a tensor type is needed here")
        )
        return POISON
    build = top_build(world)
    ctx = Ctx(build, module_frame(env))
    origin = build.origin(definition.name.span, "declaration", name)
    try:
        typed = tensor_type(ctx, definition.type, name, origin, evaluate, new_names="unknown", missing="empty")
    except BuildError as error:
        world.collector.report(error.diagnostic)
        return POISON
    key = f"{env.name}.{name}" if env.name else name
    shape = _fixed_by_file(typed.shape, key, origin)
    value = tensors.new_value(
        build, ir.Data(key), shape, origin, precision=typed.precision, name=name, scalar=typed.scalar
    )
    world.data[key] = value
    return value


def _fixed_by_file(shape: tensors.Shape, key: str, origin: Origin) -> tensors.Shape:
    """`_` in the type of a datum is a size that the file decides."""
    count = 0
    rows: list[tensors.Row] = []
    for kind in ("batch", "output", "input"):
        row = shape.row(kind)
        dims: list[Size | DimVar] = []
        for d in row.trail:
            if isinstance(d, DimVar):
                d = Size(Unknown(f"{key}'s size {count}", key), why=origin)
            count += 1
            dims.append(d)
        rows.append(tensors.Row(row.lead, row.var, tuple(dims)))
    return tensors.Shape(rows[0], rows[1], rows[2])


def evaluate_top(world: World, env: ModuleEnv) -> None:
    """Evaluate the module's lets in the order of the text."""
    ctx = Ctx(top_build(world), module_frame(env))
    for item in env.syntax.items:
        if isinstance(item, ast.Let):
            for n in item.names:
                try:
                    module_member(ctx, env, n.name)
                except BuildError as error:
                    world.collector.report(error.diagnostic)
                    env.bindings[n.name] = POISON
        elif isinstance(item, ast.DataDef):
            module_member(ctx, env, item.name.name)
        elif isinstance(item, ast.BasisDef):
            for n in item.names:
                world.bases[n.name] = n.span
