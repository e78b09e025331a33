"""Assignments (section 7): targets, pointwise and in index notation."""

from __future__ import annotations

from typing import Any

from ocannl_lang.build import tensors
from ocannl_lang.build.context import Build, Ctx, fail
from ocannl_lang.build.expressions import as_tensor, evaluate, evaluate_callee
from ocannl_lang.build.gradients import grad_key
from ocannl_lang.build.notation import Notation, equate
from ocannl_lang.build.operators import POINTWISE
from ocannl_lang.build.types import describe
from ocannl_lang.build.values import Builtin, CellRef, Poison, ResultRef, Static
from ocannl_lang.graph.ir import Assigned, Cell, Input, Number, SlotApply, SlotLeaf, SlotShape, SlotTree, Value
from ocannl_lang.shapes.terms import Origin
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast

ACCUMULATE = {
    "": "set", "+": "add", "-": "sub", "*": "mul", "/": "div", "**": "pow", "max": "max", "min": "min", "and": "and",
    "or": "or",
}  # fmt: skip


class Target:
    """What an assignment writes: a cell, a gradient, or the `result` of an own derivative."""

    __slots__ = ("key", "kind", "like", "name", "span")

    def __init__(self, kind: str, key: Any, like: Value | None, name: str, span: Span) -> None:
        self.kind, self.key, self.like, self.name, self.span = kind, key, like, name, span


def assign(ctx: Ctx, stmt: ast.Assign) -> None:
    """`target op value`, where target is a tensor."""
    notation: ast.Notation | None = None
    target_expr = stmt.target
    if isinstance(target_expr, ast.WithSlots):
        notation, target_expr = target_expr.notation, target_expr.base
    target = find_target(ctx, target_expr)
    if target is None:
        return
    fresh = stmt.op.startswith(":") and stmt.op != ":="
    word = stmt.op.strip(":").removesuffix("=") if stmt.op != ":=" else ""
    accum = ACCUMULATE[word]
    origin = ctx.build.origin(stmt.span, "assignment", stmt.op)
    if notation is None:
        value = as_tensor(ctx, evaluate(ctx, stmt.value), stmt.value.span)
        _assign_pointwise(ctx, target, accum, fresh, value, origin)
    else:
        _assign_slots(ctx, target, accum, fresh, notation, stmt, origin)


def find_target(ctx: Ctx, expr: ast.Expr) -> Target | None:
    """The target that an expression names; E0501 if it names none."""
    build = ctx.build
    if isinstance(expr, ast.Paren):
        return find_target(ctx, expr.inner)
    if isinstance(expr, ast.Attr) and expr.name.name == "grad":
        base = evaluate(ctx, expr.base)
        if isinstance(base, Poison):
            return None
        if isinstance(base, ResultRef):
            raise fail("E0501", "`result.grad` is given, not assigned", expr.span)
        value = as_tensor(ctx, base, expr.base.span)
        if value.precision in tensors.INTEGERS:
            raise fail("E0502", "integers have no gradient", expr.span)
        key = grad_key(build, value)
        return Target("grad", key, key, f"{tensors.label_of(value)}.grad", expr.span)
    value = evaluate_callee(ctx, expr)
    match value:
        case Poison():
            return None
        case CellRef(cell=cell):
            if ctx.frame.kind == "op" and cell.kind == "parameter":
                raise fail(
                    "E0501", "an op does not assign its parameters", expr.span, "only its own states",
                    helps=("assign it in a cd or a routine",),
                )  # fmt: skip
            current = tensors.cell_value(build, cell, build.origin(expr.span))
            return Target("cell", cell, current, current.name, expr.span)
        case ResultRef(key=key):
            return Target("result", key, None, "result", expr.span)
        case Value() if (
            value in build.cell_of and build.versions.get(build.cell_of[value]) is value and ctx.frame.kind != "op"
        ):
            cell = build.cell_of[value]
            return Target("cell", cell, value, value.name, expr.span)
        case _:
            raise fail(
                "E0501", "this cannot be assigned", expr.span, _what_it_is(value),
                notes=("targets are parameters, states, gradients and the tensor parameters of a cd",),
                helps=("declare it with `state` to keep a value, or use `var` and `=` to bind a name anew",),
            )  # fmt: skip


def _what_it_is(value: Any) -> str:
    """What stands in the place of a target."""
    match value:
        case Value(op=Input(kind="tensor")):
            return "an argument, which can only be read"
        case Value():
            return "a computed tensor"
        case _:
            return f"it is {describe(value)}"


def _previous(ctx: Ctx, target: Target, origin: Origin, *, needed: bool) -> Value | None:
    build = ctx.build
    match target.kind:
        case "cell":
            return tensors.cell_value(build, target.key, origin)
        case "grad":
            found = build.grads.get(target.key)
        case _:
            found = build.results.get(target.key)
    if found is None and needed:
        raise fail(
            "E0503", f"`{target.name}` is read before it is written", target.span,
            helps=("start afresh with a colon in front: `:+=`",),
        )  # fmt: skip
    return found


def _assign_pointwise(ctx: Ctx, target: Target, accum: str, fresh: bool, value: Value, origin: Origin) -> None:
    build = ctx.build
    if target.kind == "grad" and accum == "add" and target.key not in build.grads:
        fresh = True
    reads = accum != "set" and not fresh
    prev = _previous(ctx, target, origin, needed=reads)
    if accum in ("sub",) and fresh:
        value, accum = tensors.map_values(build, "neg", [value], origin), "add"
    if target.like is not None:
        shape, precision, scalar = target.like.shape, target.like.precision, target.like.scalar
    elif prev is not None:
        shape, precision, scalar = prev.shape, prev.precision, prev.scalar
    else:
        if value.scalar:
            shape = value.shape
        else:
            shape = tensors.fresh_shape("`result`", origin)
        precision, scalar = None, value.scalar
    new = tensors.new_value(
        build, Assigned(prev if reads else None, accum, fresh, None, value),  # pyright: ignore[reportArgumentType]
        shape, origin, precision=precision, scalar=scalar, name=target.name, differentiable=_version_differentiable(target),
    )  # fmt: skip
    for kind in ("batch", "output", "input"):
        tensors.broadcast(build, new, value, kind, origin)
    _store(build, target, new)


def _version_differentiable(target: Target) -> bool:
    return target.kind == "cell" and isinstance(target.key, Cell) and target.key.kind == "parameter"


def _store(build: Build, target: Target, new: Value) -> None:
    match target.kind:
        case "cell":
            cell: Cell = target.key
            build.versions[cell] = new
            build.cell_of[new] = cell
            build.leaf_of[new] = build.first[cell]
            build.graph.finals[cell] = new
        case "grad":
            build.grads[target.key] = new
        case _:
            build.results[target.key] = new


# ---------------------------------------------------------------- index notation


def _assign_slots(
    ctx: Ctx, target: Target, accum: str, fresh: bool, notation: ast.Notation, stmt: ast.Assign, origin: Origin
) -> None:
    build = ctx.build
    if notation.result is not None or len(notation.slots) != 1:
        raise fail("E0409", "a target has one slot", notation.span, "without `=>`")
    if target.kind == "grad" and accum == "add" and target.key not in build.grads:
        fresh = True
    if target.kind == "result" and accum == "set" and target.key not in build.results:
        fresh = True
    scope = Notation(ctx, origin, evaluate)
    tree, leaves = _tree(ctx, scope, stmt.value, origin)
    if accum == "sub":
        tree, accum = SlotApply("neg", (tree,)), "add"
    elif accum == "div":
        tree, accum = SlotApply("recip", (tree,)), "mul"
    elif accum == "pow":
        raise fail("E0409", "`**=` has no index notation", stmt.op_span, "write it without slots")
    slot = scope.slot(notation.slots[0], result=True)
    prev = _previous(ctx, target, origin, needed=not fresh)
    like = target.like or prev
    shape = like.shape if like is not None else tensors.fresh_shape("`result`", origin)
    new = tensors.new_value(
        build, Assigned(None if fresh else prev, accum, fresh, slot, tree),  # pyright: ignore[reportArgumentType]
        shape, origin, precision=like.precision if like else None, scalar=like.scalar if like else False, name=target.name,
        differentiable=_version_differentiable(target),
    )  # fmt: skip
    for leaf, at in leaves:
        equate(build, leaf.value, leaf.slot, origin, result=False, at=at)
    equate(build, new, slot, origin, result=True, at=notation.span)
    _store(build, target, new)


Leaves = list[tuple[SlotLeaf, Span]]


def _tree(ctx: Ctx, scope: Notation, expr: ast.Expr, origin: Origin) -> tuple[SlotTree, Leaves]:
    """The right side: pointwise operations over tensors with slots, scalars and numbers."""
    build = ctx.build
    match expr:
        case ast.Paren(inner=inner):
            return _tree(ctx, scope, inner, origin)
        case ast.WithSlots(base=base, notation=notation) if not isinstance(evaluate_quietly(ctx, base), Builtin):
            if notation.result is not None or len(notation.slots) != 1:
                raise fail("E0409", "in index notation each tensor has one slot", notation.span)
            value = as_tensor(ctx, evaluate(ctx, base), base.span, leaf=True)
            leaf = SlotLeaf(value, scope.slot(notation.slots[0], result=False))
            return leaf, [(leaf, notation.span)]
        case ast.Binary(op=op, left=left, right=right) if op in POINTWISE or op == "*":
            if not (_has_slots(ctx, left) or _has_slots(ctx, right)):
                return _scalar(ctx, expr)
            a, more = _tree(ctx, scope, left, origin)
            b, others = _tree(ctx, scope, right, origin)
            if op == "*" and _has_slots(ctx, left) and _has_slots(ctx, right):
                raise fail(
                    "E0409", "`*` contracts whole tensors", expr.op_span, "in index notation the product is `*.`",
                )  # fmt: skip
            return SlotApply(POINTWISE.get(op, "mul"), (a, b)), more + others
        case ast.Unary(op=op, operand=operand) if _has_slots(ctx, operand):
            a, more = _tree(ctx, scope, operand, origin)
            return SlotApply("neg" if op == "-" else "not", (a,)), more
        case ast.Call(function=function, args=args) if any(_has_slots(ctx, a.value) for a in args):
            return _tree_call(ctx, scope, function, args, origin)
        case _:
            del build
            return _scalar(ctx, expr)


def _tree_call(
    ctx: Ctx, scope: Notation, function: ast.Expr, args: tuple[ast.Arg, ...], origin: Origin
) -> tuple[SlotTree, Leaves]:
    from ocannl_lang.build.functions import UNARY

    named = evaluate_callee(ctx, function)
    pointwise = {"max": "max", "min": "min", "where": "where", "pow": "pow", "clamp": "clamp"}
    if not isinstance(named, Builtin) or named.name not in UNARY | pointwise.keys():
        raise fail("E0409", "index notation takes pointwise functions only", function.span)
    fn = pointwise.get(named.name, named.name)
    if named.name == "gelu" and dict(named.config).get("approximate"):
        fn = "gelu_tanh"
    parts = [_tree(ctx, scope, a.value, origin) for a in args]
    return SlotApply(fn, tuple(t for t, _ in parts)), [leaf for _, found in parts for leaf in found]


def _scalar(ctx: Ctx, expr: ast.Expr) -> tuple[SlotTree, Leaves]:
    value = as_tensor(ctx, evaluate(ctx, expr), expr.span)
    if not value.scalar and not isinstance(value.op, Number):
        raise fail(
            "E0409", "every tensor needs its slot in index notation", expr.span, f"write `{expr.span.text}{{…}}`",
        )  # fmt: skip
    return SlotLeaf(value, SlotShape()), []


def evaluate_quietly(ctx: Ctx, expr: ast.Expr) -> Static:
    """What a name stands for, without making anything; None for other expressions."""
    from ocannl_lang.build.expressions import lookup

    return lookup(ctx, expr.name) if isinstance(expr, ast.Name) else None


def _has_slots(ctx: Ctx, expr: ast.Expr) -> bool:
    match expr:
        case ast.WithSlots(base=base):
            return not isinstance(evaluate_quietly(ctx, base), Builtin)
        case ast.Paren(inner=inner) | ast.Unary(operand=inner):
            return _has_slots(ctx, inner)
        case ast.Binary(left=left, right=right):
            return _has_slots(ctx, left) or _has_slots(ctx, right)
        case ast.Call(args=args):
            return any(_has_slots(ctx, a.value) for a in args)
        case _:
            return False
