"""Building whole graphs: a routine, an op by itself (for its scheme), an instance for its members."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ocannl_lang.build import tensors
from ocannl_lang.build.calls import config_scope, converted, introduce_result_names, run_op_body
from ocannl_lang.build.context import (
    DEPTH_LIMIT,
    Binding,
    Build,
    BuildAbandoned,
    BuildError,
    Ctx,
    Frame,
    ModuleEnv,
    World,
    fail,
    too_deep,
)
from ocannl_lang.build.expressions import Poisoned, PoisonedCondition, as_tensor, evaluate
from ocannl_lang.build.statements import Break, Continue, execute
from ocannl_lang.build.types import check_static, tensor_type
from ocannl_lang.build.values import (
    DimRef,
    Instance,
    OpaqueOp,
    OpRef,
    Poison,
    Returned,
    SlotArg,
    Static,
    Symbolic,
)
from ocannl_lang.graph import ir
from ocannl_lang.graph.ir import Graph, Value
from ocannl_lang.shapes.terms import Dim, DimVar, Leaf, Origin, Size, Unknown
from ocannl_lang.syntax import ast


@dataclass(frozen=True, slots=True, eq=False)
class BuiltRoutine:
    """A routine's graph with what is needed to solve and call it. `complete`: nothing was reported while it was built."""

    definition: ast.RoutineDef
    build: Build
    root: Instance
    complete: bool

    @property
    def graph(self) -> Graph:
        return self.build.graph


def build_routine(
    world: World, env: ModuleEnv, definition: ast.RoutineDef, config: Mapping[str, Static]
) -> BuiltRoutine:
    """Execute the routine's body once, with unknowns for the sizes of its signature."""
    name = definition.name.name
    owner_name = f"{env.name}.{name}" if env.name else name
    key = ("routine", definition)
    root = env.root.places.get(key)
    if root is None:
        root = Instance(None, None, name, owner_name)
        env.root.places[key] = root
    graph = Graph(owner_name, [], [], {}, False, definition.span)
    build = Build(world, graph)
    frame = Frame("routine", env, root)
    ctx = Ctx(build, frame)
    before = world.collector.reports
    try:
        _config(ctx, definition, config)
        for p in definition.params:
            frame.scope[p.name.name] = Binding(_input(ctx, p))
        outcome = execute(ctx, definition.body)
        if isinstance(outcome, Returned):
            _results(ctx, definition, outcome)
    except BuildError as error:
        world.collector.report(error.diagnostic)
    except RecursionError:
        world.collector.report(too_deep(definition.name.span))
    except (Poisoned, PoisonedCondition, BuildAbandoned, Break, Continue):
        pass
    complete = world.collector.reports == before
    return BuiltRoutine(definition, build, root, complete)


def _config(ctx: Ctx, definition: ast.RoutineDef, given: Mapping[str, Static]) -> None:
    for p in definition.config:
        name = p.name.name
        if name in given:
            value = check_static(given[name], p.type, f"`{name}`", p.span)
        elif p.default is None:
            raise fail("E0302", f"the config `{name}` of a routine needs a default", p.span)
        else:
            value = check_static(evaluate(ctx, p.default), p.type, f"`{name}`", p.default.span)
        if name == "training":
            ctx.build.training = bool(value)
        ctx.frame.scope[name] = Binding(value)


def _input(ctx: Ctx, p: ast.ParamDecl) -> Value:
    """An argument of the routine as a value."""
    build, name = ctx.build, p.name.name
    origin = build.origin(p.name.span, "argument", name)
    match p.type:
        case ast.TensorType():
            typed = tensor_type(ctx, p.type, name, origin, evaluate, new_names="unknown", missing="empty")
            precision = typed.precision
            value = tensors.new_value(
                build, ir.Input(name, "scalar" if typed.scalar else "tensor"), typed.shape, origin, precision=precision,
                scalar=typed.scalar, name=name, differentiable=precision not in tensors.INTEGERS,
            )  # fmt: skip
            build.add_leaf(Leaf("input", name, typed.shape, origin))
        case ast.GenericType(name="index", args=args) if len(args) == 1:
            limit = _limit(ctx, args[0])
            value = tensors.new_value(
                build, ir.Input(name, "index", limit), tensors.SCALAR, origin, precision="i32", scalar=True, name=name
            )
        case None:
            raise fail(
                "E0302", f"the input `{name}` needs a type", p.span, "an array, a scalar or an index",
                helps=(f"for example `{name}: f32[n | 10]`, `{name}: f32`, `{name}: index[n]`",),
            )  # fmt: skip
        case _:
            raise fail(
                "E0301", "an input is a tensor, a scalar or an `index`", p.type.span,
                helps=("static values are configuration: put them in brackets after the routine's name",),
            )  # fmt: skip
    build.graph.inputs.append(value)
    return value


def _limit(ctx: Ctx, arg: ast.TypeExpr | ast.Expr) -> Dim:
    from ocannl_lang.build.types import named_size

    origin = ctx.build.origin(arg.span, "declaration", arg.span.text)
    match arg:
        case ast.IntLit(value=value):
            return Size(value, why=origin)
        case ast.Name(name=name) | ast.NamedType(name=name):
            return named_size(ctx, name, arg.span, "the index", origin, "unknown", "batch")
        case _:
            value = evaluate(ctx, arg)  # pyright: ignore[reportArgumentType]
            if isinstance(value, (int, Symbolic)):
                return tensors.size_dim(ctx.build, value, "the limit of an index", origin)
            if isinstance(value, DimRef):
                return value.dim
            raise fail("E0301", "the limit of an index is a static int", arg.span)


def _results(ctx: Ctx, definition: ast.RoutineDef, outcome: Returned) -> None:
    value = outcome.value
    if isinstance(value, Poison) or value is None:
        return
    many = isinstance(value, tuple)
    parts: list[Static] = list(value) if many else [value]
    types: list[ast.TypeExpr | None] = [None] * len(parts)
    if isinstance(definition.result, ast.TupleType):
        if not many or len(definition.result.items) != len(parts):
            raise fail("E0412", f"{len(parts)} results where {len(definition.result.items)} are declared", outcome.span)
        types = list(definition.result.items)
    elif definition.result is not None:
        if many:
            raise fail("E0412", f"{len(parts)} results where one is declared", outcome.span)
        types = [definition.result]
    for part, type in zip(parts, types):
        if isinstance(part, Poison):
            continue
        tensor = as_tensor(ctx, part, outcome.span, leaf=not isinstance(part, (int, float)))
        if isinstance(type, ast.TensorType):
            tensor = ask_result(ctx, tensor, type, outcome)
        ctx.build.graph.results.append(tensor)
    ctx.build.graph.tuple_result = many


def ask_result(ctx: Ctx, value: Value, type: ast.TensorType, outcome: Returned) -> Value:
    """A result held to its declared type, where a row that is left out is empty."""
    build = ctx.build
    origin = build.origin(outcome.span, "annotation", type.span.text)
    typed = tensor_type(ctx, type, "the result", origin, evaluate, new_names="error", missing="empty")
    tensors.ask_shape(build, value, typed.shape, typed.written, origin, "the result", type.span)
    if typed.precision is not None and value.precision != typed.precision:
        if value.precision is None and not isinstance(value.op, (ir.Number, ir.Input, ir.CellValue)):
            value.precision = typed.precision
            return value
        return converted(build, value, typed.precision, build.origin(outcome.span, "pointwise", typed.precision))
    return value


# ---------------------------------------------------------------- ops by themselves


@dataclass(frozen=True, slots=True, eq=False)
class BuiltOp:
    """An op applied to arguments of which only its own types say anything."""

    op: OpRef
    build: Build
    inputs: list[tuple[str, Value]]
    outputs: list[Value]
    complete: bool
    undecided: bool


UNDECIDED = frozenset({"E0702", "E0301", "E0302", "E0303", "E0304", "E0305", "E0306"})
"""What a stand-in for an unknown configuration can cause; of an op checked by itself such faults prove nothing."""


Guess = Literal["unknown", "any"]
"""An int of the config without a value: an unknown like no other size, or whatever size the body makes of it."""


def build_op(
    world: World, op: OpRef, *, instance: Instance | None = None, training: bool = False, guess: Guess = "unknown"
) -> BuiltOp | None:
    """Apply an op by itself, as `instance` if one is given, else as one that is forgotten afterwards.

    Config without a value: an int is what `guess` says, an op is opaque; for others the op cannot be checked: None.
    """
    if instance is not None:
        return _build_op(world, op, instance, training, guess)
    cells, world.cells = world.cells, {}
    undo = _remembered(world)
    try:
        return _build_op(world, op, None, training, guess)
    finally:
        world.cells = cells
        undo()


def _remembered(world: World) -> Callable[[], None]:
    """Puts the instances of the program back as they are now: an op checked by itself may apply them, with all that makes."""
    seen: set[int] = set()
    before: list[tuple[Instance, tuple[Any, ...]]] = []
    roots = [env.root for env in world.modules.values()]
    stack: list[object] = [*roots, *(v for env in world.modules.values() for v in env.bindings.values())]
    while stack:
        match stack.pop():
            case Instance() as i if id(i) not in seen:
                seen.add(id(i))
                before.append((i, (i.owner, i.name, i.probed, dict(i.places), dict(i.used), dict(i.members))))
                stack += [*i.places.values(), *i.members.values()]
            case list() | tuple() as parts:
                stack += parts
            case _:
                pass

    def undo() -> None:
        for i, state in before:
            i.owner, i.name, i.probed, i.places, i.used, i.members = state

    return undo


def _build_op(world: World, op: OpRef, instance: Instance | None, training: bool, guess: Guess) -> BuiltOp | None:
    definition = op.definition
    stand_ins = False
    config = dict(op.config)
    for p in definition.config:
        if p.name.name in config or p.default is not None:
            continue
        value = _stand_in(p, op, guess)
        if value is None:
            return None
        config[p.name.name] = value
        stand_ins = True
    # an optional argument that is not given, too, may be what a body does not expect
    stand_ins = stand_ins or any(isinstance(p.default, ast.NoneLit) for p in definition.params)
    graph = Graph(op.name, [], [], {}, False, definition.span)
    build = Build(world, graph, training=training)
    frame_of_module = Frame("module", op.module, op.module.root)
    slots = op.slots or tuple(_free_slot(s, frame_of_module) for s in definition.slots)
    whole = OpRef(
        definition,
        op.module,
        tuple((p.name.name, config[p.name.name]) for p in definition.config if p.name.name in config),
        slots,
    )
    target = instance or Instance(whole, None, op.name, op.name)
    # with an unknown config no recursion ends, and how deep it goes proves nothing
    frame = Frame("op", op.module, target, depth=DEPTH_LIMIT - 24 if stand_ins else 0)
    for s, given in zip(definition.slots, slots):
        frame.slots[s.name] = given
    ctx = Ctx(build, frame)
    collector = world.collector
    before = len(collector.diagnostics)
    inputs: list[tuple[str, Value]] = []
    outputs: list[Value] = []
    try:
        config_scope(ctx, definition, whole.config, ctx)
        for p in definition.params:
            value = _free_argument(ctx, p)
            frame.scope[p.name.name] = Binding(value)
            if isinstance(value, Value):
                inputs.append((p.name.name, value))
        introduce_result_names(ctx, definition)
        result = run_op_body(ctx, definition, definition.name.span)
        from ocannl_lang.build.calls import check_op_result

        result = check_op_result(ctx, definition, result)
        outputs = [r for r in (result if isinstance(result, tuple) else (result,)) if isinstance(r, Value)]
    except BuildError as error:
        collector.report(error.diagnostic)
    except RecursionError:
        collector.report(too_deep(definition.name.span))
    except (Poisoned, PoisonedCondition, BuildAbandoned, Break, Continue):
        pass
    found = collector.diagnostics[before:]
    undecided = False
    if found:
        # what an argument has is not known either, so a size that is missing proves nothing
        proves_nothing = UNDECIDED if stand_ins else {"E0702"}
        kept = [d for d in found if d.code not in proves_nothing]
        undecided = len(kept) < len(found)
        if undecided and stand_ins:
            kept = []
        collector.forget(before)
        for d in kept:
            collector.report(d)
        found = kept
    return BuiltOp(op, build, inputs, outputs, not found and not undecided, undecided)


def _stand_in(p: ast.ParamDecl, op: OpRef, guess: Guess) -> Static:
    match p.type:
        case ast.NamedType(name="int") if guess == "any":
            name = p.name.name
            return Symbolic(DimVar(f"`{name}`", Origin(p.name.span, (), "declaration", name)), True)
        case ast.NamedType(name="int"):
            return Symbolic(Size(Unknown(p.name.name, op.name)), True)
        case ast.NamedType(name="op"):
            return OpaqueOp(p.name.name)
        case _:
            return None


def _free_slot(name: ast.Ident, frame: Frame) -> SlotArg:
    """`... | k`: what a slot parameter is while an op is checked by itself."""
    span = name.span
    slot = ast.Slot(span, (ast.AxisEllipsis(span),), None, (ast.AxisLabel(span, name.name),))
    return SlotArg(slot, frame)


def _free_argument(ctx: Ctx, p: ast.ParamDecl) -> Static:
    build, name = ctx.build, p.name.name
    if p.default is not None:
        if isinstance(p.default, ast.NoneLit):
            return None
        return evaluate(ctx, p.default)
    if isinstance(p.type, (ast.NamedType, ast.GenericType)):
        raise PoisonedCondition
    origin = build.origin(p.name.span, "argument", name)
    shape = tensors.fresh_shape(f"`{name}`", origin)
    precision: str | None = None
    scalar = False
    if isinstance(p.type, ast.TensorType):
        typed = tensor_type(ctx, p.type, name, origin, evaluate, new_names="variable", missing="free", free=shape)
        shape, precision, scalar = typed.shape, typed.precision, typed.scalar
    return tensors.new_value(
        build, ir.Input(name, "scalar" if scalar else "tensor"), shape, origin, precision=precision, scalar=scalar, name=name,
        differentiable=precision not in tensors.INTEGERS,
    )  # fmt: skip
