"""Ops with their own derivative: `forward:` and `backward:` (section 4)."""

from __future__ import annotations

from ocannl_lang.build import tensors
from ocannl_lang.build.context import Binding, Build, Ctx, fail
from ocannl_lang.build.values import POISON, CellRef, ResultRef, Static
from ocannl_lang.graph.ir import Cell, Custom, Seed, Value
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast


def has_sections(definition: ast.OpDef) -> bool:
    return any(isinstance(s, ast.Section) for s in definition.body)


def run_custom(ctx: Ctx, definition: ast.OpDef, span: Span) -> Static:
    """Execute `forward` for the value; then `backward` with a stand-in for the gradient of the result."""
    from ocannl_lang.build.statements import execute

    build, scope = ctx.build, ctx.frame.scope
    sections = {s.kind: s for s in definition.body if isinstance(s, ast.Section)}
    others = tuple(s for s in definition.body if not isinstance(s, ast.Section))
    if "forward" not in sections:
        raise fail("E0301", "`backward:` without `forward:`", definition.name.span, "the value must be computed too")
    key = object()
    scope["result"] = Binding(ResultRef(key))
    execute(ctx, others)
    outcome = execute(ctx, sections["forward"].body)
    del outcome
    inner = build.results.get(key)
    if inner is None:
        if build.world.collector.has_errors:
            return POISON
        raise fail("E0503", "`forward:` does not assign `result`", sections["forward"].span)
    if "backward" not in sections:
        return inner
    arguments = {
        p.name.name: b.value
        for p in definition.params
        if (b := scope.get(p.name.name)) is not None and isinstance(b.value, (Value, CellRef))
    }
    parameters = [b.value for b in scope.values() if isinstance(b.value, CellRef) and b.value.cell.kind == "parameter"]
    targets: list[Value] = []
    for value in (*arguments.values(), *parameters):
        tensor = tensors.deref(build, value, build.origin(span))
        if isinstance(tensor, Value) and tensor not in targets:
            targets.append(tensor)
    origin = build.origin(span, "other", definition.name.name)
    seed = tensors.new_value(
        build, Seed(), inner.shape, origin, precision=inner.precision, name="result.grad", scalar=inner.scalar
    )
    contributions = _backward(ctx, sections["backward"], key, seed, targets, span)
    result = tensors.new_value(
        build, Custom(inner, seed, contributions), inner.shape, origin, precision=inner.precision, scalar=inner.scalar,
        differentiable=any(v.differentiable for v, _ in contributions),
    )  # fmt: skip
    return result


def _backward(
    ctx: Ctx, section: ast.Section, key: object, seed: Value, targets: list[Value], span: Span
) -> tuple[tuple[Value, Value], ...]:
    """Run `backward` with empty gradients of the operands; what it leaves there are the contributions."""
    from ocannl_lang.build.gradients import grad_key
    from ocannl_lang.build.statements import execute

    build: Build = ctx.build
    outside = dict(build.grads)
    versions: dict[Cell, Value] = dict(build.versions)
    keys = [grad_key(build, t) for t in targets]
    for k in keys:
        build.grads.pop(k, None)
    build.results[key, "grad"] = seed
    try:
        execute(ctx, section.body)
        return tuple((t, build.grads[k]) for t, k in zip(targets, keys) if k in build.grads)
    finally:
        build.grads = outside
        build.versions.update(versions)
        build.results.pop((key, "grad"), None)
        del span
