"""Computations on gradients (section 7): `update` and its parts, `t.grad`, `params`."""

from __future__ import annotations

from ocannl_lang.build import tensors
from ocannl_lang.build.context import Build, Ctx, fail
from ocannl_lang.build.expressions import as_tensor
from ocannl_lang.build.values import CellRef, ResultRef, Static
from ocannl_lang.graph.ir import (
    Assigned,
    Backprop,
    GradOf,
    Map,
    Value,
    operands,
)
from ocannl_lang.shapes.terms import OneNumber
from ocannl_lang.source import Span


def update(ctx: Ctx, value: Static, span: Span) -> None:
    """`update(loss)`: the gradients of everything the loss depends on are made anew from 1."""
    loss = _loss(ctx, value, span)
    build = ctx.build
    build.add(OneNumber(loss.shape, tensors.label_of(loss), build.origin(span, "gradient", "update")))
    for v in dependencies(build, loss):
        build.grads.pop(grad_key(build, v), None)
    _backprop(build, loss, None, span)


def zero_grads(ctx: Ctx, value: Static, span: Span) -> None:
    """Gradients of everything that the tensor depends on become zero."""
    root = as_tensor(ctx, value, span)
    for v in dependencies(ctx.build, root):
        key = grad_key(ctx.build, v)
        ctx.build.grads[key] = _zero(ctx.build, key, span)


def backprop(ctx: Ctx, value: Static, span: Span) -> None:
    """Adds to the gradients of everything that the tensor depends on, from the tensor's own gradient (1 if it has none)."""
    root = _loss(ctx, value, span)
    _backprop(ctx.build, root, _seed(ctx.build, root), span)


def _seed(build: Build, root: Value) -> Value | None:
    key = grad_key(build, root)
    grad = build.grads.get(key)
    return None if grad is None or _is_zero(grad) else grad


def _is_zero(grad: Value) -> bool:
    from ocannl_lang.graph.ir import Number

    if not (isinstance(grad.op, Assigned) and grad.op.accum == "set" and isinstance(grad.op.tree, Value)):
        return False
    return isinstance(grad.op.tree.op, Number) and grad.op.tree.op.value == 0


def _zero(build: Build, of: Value, span: Span) -> Value:
    origin = build.origin(span, "gradient", "zero_grads")
    zero = tensors.number(build, 0.0, origin)
    return tensors.new_value(
        build, Assigned(None, "set", True, None, zero), of.shape, origin, precision=of.precision, name=f"{of.name}.grad"
    )


def _loss(ctx: Ctx, value: Static, span: Span) -> Value:
    loss = as_tensor(ctx, value, span)
    if not loss.differentiable:
        raise fail(
            "E0502", "this has no gradient", span, "it depends on no parameter and no differentiable input",
            notes=("integers, comparisons and random numbers have no gradient",),
        )  # fmt: skip
    return loss


def _backprop(build: Build, root: Value, seed: Value | None, span: Span) -> None:
    origin = build.origin(span, "gradient", "backprop")
    before: dict[Value, Value] = {}
    node = Backprop(root, seed, before, dict(build.leaf_of))
    deps = dependencies(build, root)
    new: dict[Value, Value] = {}
    for v in deps:
        key = grad_key(build, v)
        if key in new:
            continue
        if key in build.grads and v is not root:
            if not _is_zero(build.grads[key]):
                before[key] = build.grads[key]
        name = f"{v.name}.grad" if v.name else ""
        new[key] = tensors.new_value(
            build, GradOf(key, node), key.shape, origin, precision=key.precision, name=name, scalar=key.scalar
        )
    build.grads.update(new)


def grad_key(build: Build, value: Value) -> Value:
    """Under which value a gradient is kept: versions of one cell share theirs."""
    cell = build.cell_of.get(value)
    return build.first[cell] if cell is not None else value


def dependencies(build: Build, root: Value) -> list[Value]:
    """The differentiable values that `root` depends on differentiably, itself included, operands first."""
    order: list[Value] = []
    seen: set[Value] = set()
    stack: list[tuple[Value, bool]] = [(root, False)]
    while stack:
        value, done = stack.pop()
        if done:
            order.append(value)
            continue
        if value in seen or not value.differentiable:
            continue
        seen.add(value)
        stack.append((value, True))
        for operand in reversed(_gradient_operands(value)):
            stack.append((operand, False))
    del build
    return order


def _gradient_operands(value: Value) -> tuple[Value, ...]:
    from ocannl_lang.graph.ir import Custom

    match value.op:
        case Custom(contributions=contributions):
            return tuple(operand for operand, _ in contributions)
        case Map(fn="stop_gradient"):
            return ()
        case Map(fn="where", args=args):
            return args[1:]
        case Assigned() | GradOf():
            return ()
        case _:
            return operands(value)


def parameters(ctx: Ctx, value: Static, span: Span) -> list[CellRef]:
    """The parameters that the tensor depends on, in the order of their paths."""
    build = ctx.build
    root = as_tensor(ctx, value, span)
    cells = {build.cell_of[v] for v in dependencies(build, root) if v in build.cell_of}
    return [CellRef(c) for c in sorted((c for c in cells if c.kind == "parameter"), key=lambda c: path_key(c.path))]


def path_key(path: str) -> tuple[tuple[int, str, int], ...]:
    """Sorts paths part by part, numbers by their value: `w_2` before `w_10`, `layers.2` before `layers.10`."""
    parts: list[tuple[int, str, int]] = []
    for part in path.split("."):
        base, _, suffix = part.rpartition("_")
        if part.isdigit():
            parts.append((0, "", int(part)))
        elif base and suffix.isdigit():
            parts.append((1, base, int(suffix)))
        else:
            parts.append((1, part, 0))
    return tuple(parts)


def read_grad(ctx: Ctx, base: Static, span: Span) -> Value:
    """`t.grad` as it stands now."""
    build = ctx.build
    if isinstance(base, ResultRef):
        grad = build.results.get((base.key, "grad"))
        if grad is None:
            raise fail("E0503", "`result.grad` is known in `backward:` only", span)
        return grad
    value = as_tensor(ctx, base, span)
    key = grad_key(build, value)
    grad = build.grads.get(key)
    if grad is not None:
        return grad
    if value.precision in tensors.INTEGERS:
        raise fail("E0502", "integers have no gradient", span, f"this is {value.precision}")
    if not value.differentiable:
        raise fail(
            "E0502", "this tensor has no gradient", span, "it depends on no parameter and no differentiable input"
        )
    raise fail(
        "E0503", "this gradient is read before it is computed", span,
        helps=("call `update(loss)` first, with a loss that depends on this tensor",),
    )  # fmt: skip
