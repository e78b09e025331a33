"""Instances, parameters and states: who owns them, which place they stand at, what they are called (section 4)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ocannl_lang.build import tensors
from ocannl_lang.build.context import Binding, Build, Ctx, Frame, fail
from ocannl_lang.build.expressions import Poisoned, as_tensor, evaluate
from ocannl_lang.build.types import TypedShape, tensor_type
from ocannl_lang.build.values import CellRef, Instance, OpRef, Poison, Static
from ocannl_lang.graph.ir import Cell, Graph, Input, Value, operands
from ocannl_lang.shapes.terms import EMPTY, ROW_KINDS, Origin, RowLe, Shape, Side
from ocannl_lang.syntax import ast


def place(frame: Frame, node: object) -> Hashable:
    """What identifies a place: the text, the static turns around it and the calls of functions that led to it."""
    return (node, frame.turns, frame.state_key)


def instance_at(ctx: Ctx, op: OpRef, node: object) -> Instance:
    """The instance of a complete op at this place; made the first time."""
    frame = ctx.frame
    key = (*_hashable(place(frame, node)), _config_key(op))
    found = frame.owner.places.get(key)
    if found is None:
        found = Instance(op, frame.owner, op.name)
        frame.owner.places[key] = found
        frame.fresh.append(found)
    return found


def _hashable(key: Hashable) -> tuple[Hashable, ...]:
    return key if isinstance(key, tuple) else (key,)


def _config_key(op: OpRef) -> str:
    return ";".join(f"{n}={v!r}" if isinstance(v, (int, float, str, bool, list, tuple)) else n for n, v in op.config)


def settle_names(frame: Frame, names: list[str], value: Static) -> None:
    """At the end of a statement: a `let` names the instances it binds, all others are named after their ops."""
    fresh = [i for i in frame.fresh if i.name is None]
    frame.fresh.clear()
    if not fresh:
        return
    members = _named_by_let(names, value, fresh)
    named = {id(i) for i in members}
    owner = frame.owner
    front: Instance | None = None
    parts: list[Static] = [] if isinstance(value, Instance) or not members else list(value)
    if isinstance(value, Instance) and id(value) in named:
        value.name = owner.claim(names[0], value)
        front = value
    elif len(names) > 1 and members:
        for name, part in zip(names, parts):
            if isinstance(part, Instance) and id(part) in named:
                part.name = owner.claim(name, part)
    elif members:
        front = Instance(None, owner, names[0])
        front.name = owner.claim(names[0], front)
        for i, part in enumerate(parts):
            if isinstance(part, Instance) and id(part) in named:
                part.owner, part.name = front, str(i)
                front.members[str(i)] = part
    for instance in fresh:
        if id(instance) not in named and instance.name is None:
            if front is not None and instance.owner is owner:
                instance.owner = front
            assert instance.owner is not None
            instance.name = instance.owner.claim(instance.base, instance)


def _named_by_let(names: list[str], value: Static, fresh: list[Instance]) -> list[Instance]:
    ids = {id(i) for i in fresh}
    if not names:
        return []
    parts = [value] if isinstance(value, Instance) else list(value) if isinstance(value, (list, tuple)) else []
    if not parts or not all(isinstance(p, Instance) for p in parts):
        return []
    return [p for p in parts if id(p) in ids]


# ---------------------------------------------------------------- parameters


def parameter(ctx: Ctx, expr: ast.ParamExpr) -> Static:
    """`{name: type = init}`: declares at the first execution, and is the parameter."""
    frame = ctx.frame
    if frame.kind == "fn" or frame.kind in ("main", "test", "module"):
        raise fail(
            "E0501", "a parameter cannot stand here", expr.span,
            helps=("parameters belong to ops and routines",),
        )  # fmt: skip
    key = ("param", *_hashable(place(frame, expr)))
    cell = frame.owner.places.get(key)
    if cell is None:
        name = expr.name.name
        claimed = frame.owner.claim(name, None)
        cell = _new_cell(ctx, "parameter", frame.owner.child_path(claimed), name, expr.type, expr.init, expr)
        frame.owner.members[claimed] = cell
        frame.owner.places[key] = cell
    ref = CellRef(cell)
    frame.scope[expr.name.name] = Binding(ref)
    return ref


def declare_state(ctx: Ctx, stmt: ast.StateDecl) -> None:
    """`state name: type = init`."""
    frame = ctx.frame
    key = ("state", *_hashable(place(frame, stmt)))
    cell = frame.owner.places.get(key)
    if cell is None:
        name = stmt.name.name
        if frame.state_prefix is None:
            claimed = frame.owner.claim(name, None)
        else:
            claimed = frame.owner.claim(f"{frame.state_prefix}.{name}", None)
        cell = _new_cell(ctx, "state", frame.owner.child_path(claimed), name, stmt.type, stmt.init, stmt)
        frame.owner.members[claimed] = cell
        frame.owner.places[key] = cell
    frame.scope[stmt.name.name] = Binding(CellRef(cell))


def _new_cell(
    ctx: Ctx, kind: Any, path: str, name: str, type: ast.TypeExpr | None, init: ast.Expr | None,
    node: ast.ParamExpr | ast.StateDecl,
) -> Cell:  # fmt: skip
    origin = Origin(node.name.span, (), "declaration", name)
    typed = _cell_shape(ctx, kind, type, name, origin)
    shape = typed.shape
    cell = Cell(kind, path, shape, typed.precision, None, origin)
    ctx.world.cells.setdefault(path, cell)
    if init is not None:
        cell.init = _initial_value(ctx, cell, init, origin)
    return cell


def _cell_shape(ctx: Ctx, kind: str, type: ast.TypeExpr | None, name: str, origin: Origin) -> TypedShape:
    """What the type says; parameters have no batch axes unless it writes them."""
    what = f"`{name}`"
    free = tensors.fresh_shape(what, origin)
    if kind == "parameter":
        free = Shape(EMPTY, free.output, free.input)
    if type is None:
        return TypedShape(free, (), None, False)
    if not isinstance(type, ast.TensorType):
        raise fail(
            "E0301", "a tensor type is needed here", type.span, helps=("for example `f32[16]` or `[... -> 16]`",)
        )
    return tensor_type(
        ctx,
        type,
        name,
        origin,
        evaluate,
        new_names="error",
        missing="free" if kind == "parameter" else "empty",
        free=free,
    )


def _initial_value(ctx: Ctx, cell: Cell, init: ast.Expr, origin: Origin) -> Value | None:
    """The graph of an initial value, of the cell's shape. Its constraints are solved with those of the build it stands in."""
    build = ctx.build
    graph = Graph(f"{cell.path}.init", [], [], {}, False, init.span)
    inner = Build(ctx.world, graph, build.problem, list(build.frames), training=build.training)
    root = Instance(None, None, "init", f"{cell.path}.init")
    frame = Frame(
        "op", ctx.frame.module, root, dict(ctx.frame.scope), ctx.frame.slots, ctx.frame.turns, depth=ctx.frame.depth
    )
    sub = Ctx(inner, frame)
    value = evaluate(sub, init)
    if isinstance(value, Poison):
        raise Poisoned
    tensor = as_tensor(sub, value, init.span)
    if _reads_outside(tensor):
        raise fail("E0303", "an initial value cannot depend on inputs or parameters", init.span)
    at = Origin(init.span, tuple(build.frames), "declaration", "=")
    for kind in ROW_KINDS:
        sup = tensor.shape.row(kind)
        if sup != EMPTY:
            name = cell.path.rsplit(".", 1)[-1]
            build.add(
                RowLe(
                    cell.shape.row(kind),
                    sup,
                    Side(name, kind, origin.span),
                    Side("its initial value", kind, init.span),
                    at,
                )
            )
    return tensor


def _reads_outside(value: Value) -> bool:
    from ocannl_lang.graph.ir import CellValue

    stack, seen = [value], {value}
    while stack:
        v = stack.pop()
        if isinstance(v.op, (Input, CellValue)):
            return True
        for o in operands(v):
            if o not in seen:
                seen.add(o)
                stack.append(o)
    return False


def draw_place(ctx: Ctx, node: object, name: str) -> str:
    """The path of a place that draws random numbers, unique in its owner."""
    owner = ctx.frame.owner
    key = ("draw", *_hashable(place(ctx.frame, node)))
    found = owner.places.get(key)
    if found is None:
        count = owner.used.get(f"/{name}", 0)
        owner.used[f"/{name}"] = count + 1
        found = f"{owner.path}/{name}" if count == 0 else f"{owner.path}/{name}_{count}"
        owner.places[key] = found
    return found


def cells_of(instance: Instance) -> list[Cell]:
    """All parameters and states of an instance and of those inside it, in the order of their paths' making."""
    found: list[Cell] = []
    for member in instance.members.values():
        match member:
            case Cell():
                found.append(member)
            case Instance():
                found.extend(cells_of(member))
            case _:
                pass
    return found
