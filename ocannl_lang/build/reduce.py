"""Reducers and einsum: what a notation computes (section 6), and the reducers without axes."""

from __future__ import annotations

from collections.abc import Sequence

from ocannl_lang.build import tensors
from ocannl_lang.build.context import Build, Ctx, fail
from ocannl_lang.build.notation import Evaluate, Notation, equate
from ocannl_lang.graph import ir
from ocannl_lang.graph.ir import SlotRow, SlotShape, Value
from ocannl_lang.shapes.terms import SCALAR, Origin, RowVar
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast

REDUCERS: dict[str, tuple[str, str]] = {
    "sum": ("add", "mul"),
    "mean": ("mean", "mul"),
    "prod": ("mul", "mul"),
    "max": ("max", "add"),
    "min": ("min", "add"),
    "any": ("or", "and"),
    "all": ("and", "and"),
    "logsumexp": ("logsumexp", "add"),
    "argmax": ("argmax", "add"),
    "argmin": ("argmin", "add"),
    "einsum": ("add", "mul"),
    "concat": ("add", "concat"),
    "permute": ("add", "mul"),
}
"""How each reducer accumulates, and how it combines several operands."""
EINSUM_OPERATORS = {"+*": ("add", "mul"), "@^+": ("max", "add"), "@-+": ("min", "add"), "+++": ("add", "add")}
FIXED_PRECISION = {"or": "u8", "and": "u8", "argmax": "i32", "argmin": "i32"}
WITHOUT_GRADIENT = frozenset({"or", "and", "argmax", "argmin"})


def reduce_notation(
    ctx: Ctx, name: str, notation: ast.Notation, args: Sequence[Value], origin: Origin, evaluate: Evaluate,
    spans: Sequence[Span],
) -> Value:  # fmt: skip
    """`name{slots => result}(args)`; `name` is a reducer or an einsum operator, `spans` the places of the arguments."""
    accum, combine = REDUCERS.get(name) or EINSUM_OPERATORS[name]
    if notation.result is None:
        raise fail(
            "E0409", f"`{name}` needs `=>` and the slot of its result", notation.span,
            helps=(f"for example `{name}{{... | i => ... | 0}}`",),
        )  # fmt: skip
    if len(notation.slots) != len(args):
        raise fail(
            "E0409", f"{_count(len(notation.slots), 'slot')} for {_count(len(args), 'tensor')}", notation.span,
            "one slot for each tensor, separated by `;`",
        )  # fmt: skip
    scope = Notation(ctx, origin, evaluate)
    slots = [scope.slot(s, result=False) for s in notation.slots]
    result = scope.slot(notation.result, result=True)
    if name == "permute":
        _check_permute(notation, slots, result)
    if name in ("argmax", "argmin"):
        _check_position(name, notation, slots, result)
    if name == "concat" and len(args) > 1 and not any(_has_concat(r) for r in (result, *slots)):
        raise fail("E0409", "nothing is concatenated here", notation.span, "join axes of the result with `^`: `x^y`")
    at = [s.span for s in notation.slots]
    if accum == "logsumexp":
        return _logsumexp(ctx.build, combine, args, slots, result, origin, at, notation.result.span)
    return reduce_slots(ctx.build, accum, combine, args, slots, result, origin, at, notation.result.span)


def reduce_slots(
    build: Build, accum: str, combine: str, args: Sequence[Value], slots: Sequence[SlotShape], result: SlotShape,
    origin: Origin, at: Sequence[Span], result_at: Span,
) -> Value:  # fmt: skip
    """The operation itself, with its equations."""
    shape = tensors.fresh_shape(f"the result of `{origin.symbol}`", origin)
    if result == SlotShape():
        shape = SCALAR
    value = tensors.new_value(
        build,
        ir.Reduce(accum, combine, tuple(args), tuple(slots), result),  # pyright: ignore[reportArgumentType]
        shape,
        origin,
        precision=FIXED_PRECISION.get(accum),
        differentiable=accum not in WITHOUT_GRADIENT and any(a.differentiable for a in args),
    )
    for arg, slot, place in zip(args, slots, at):
        equate(build, arg, slot, origin, result=False, at=place)
    if shape is not SCALAR:
        equate(build, value, result, origin, result=True, at=result_at)
    return value


def reduce_all(ctx: Ctx, name: str, operand: Value, origin: Origin) -> Value:
    """`sum(x)` and the like: everything to a scalar."""
    accum, combine = REDUCERS[name]
    slot = whole_slot(origin)
    result = SlotShape()
    at = [origin.span]
    if accum == "logsumexp":
        value = _logsumexp(ctx.build, combine, [operand], [slot], result, origin, at, origin.span)
    else:
        value = reduce_slots(ctx.build, accum, combine, [operand], [slot], result, origin, at, origin.span)
    value.scalar = True
    return value


def whole_slot(origin: Origin) -> SlotShape:
    """`... | ... -> ...`: a row variable for each row."""
    return SlotShape(*(SlotRow((), RowVar(f"all {kind} axes", origin), ()) for kind in ("batch", "output", "input")))


def _logsumexp(
    build: Build, combine: str, args: Sequence[Value], slots: Sequence[SlotShape], result: SlotShape, origin: Origin,
    at: Sequence[Span], result_at: Span,
) -> Value:  # fmt: skip
    """log Σ exp, by way of the greatest value: m + log Σ exp(x - m), with m taken as 0 where it is infinite."""
    if len(args) != 1:
        raise fail("E0409", "`logsumexp` takes one tensor", origin.span)
    (x,), (slot,) = args, slots
    plain = _plain(slot, result, origin)
    if plain != slot:
        # windows and the like are laid out first: an axis outside which a window reads counts as -inf
        x = reduce_slots(build, "max", combine, args, slots, plain, origin, at, at[0])
        args, slots, slot = [x], [plain], plain
    top = reduce_slots(build, "max", combine, args, slots, result, origin, at, result_at)
    top = tensors.map_values(build, "stop_gradient", [top], origin)
    infinite = tensors.map_values(
        build,
        "eq",
        [tensors.map_values(build, "abs", [top], origin), tensors.number(build, float("inf"), origin)],
        origin,
    )
    shift = tensors.map_values(build, "where", [infinite, tensors.number(build, 0.0, origin), top], origin)
    # exp(x - shift) over the notation's own loops: the shift enters with the slot of the result, so it aligns exactly
    spread = spread_over(build, shift, result, slot, x, origin, at[0], result_at)
    moved = tensors.map_values(build, "exp", [tensors.map_values(build, "sub", [x, spread], origin)], origin)
    total = reduce_slots(build, "add", combine, [moved], slots, result, origin, at, result_at)
    log = tensors.map_values(build, "log", [total], origin)
    # where everything is infinite the maximum itself is the answer
    return tensors.map_values(build, "add", [log, shift], origin)


def spread_over(
    build: Build, value: Value, result: SlotShape, slot: SlotShape, like: Value, origin: Origin, at: Span, result_at: Span
) -> Value:  # fmt: skip
    """`value`, which has the slot `result`, repeated over the positions of `like`, which has the slot `slot`."""
    if value.shape is SCALAR or result == SlotShape():
        return value
    shape = like.shape
    spread = tensors.new_value(
        build, ir.Reduce("add", "mul", (value,), (result,), slot), shape, origin, differentiable=value.differentiable
    )
    return spread


def _plain(slot: SlotShape, result: SlotShape, origin: Origin) -> SlotShape:
    """The slot with each label on an axis of its own, once."""
    kept = _names(result)
    seen: set[str] = set()

    def once(label: ir.Label) -> list[ir.Axis]:
        if label.key in seen:
            return []
        seen.add(label.key)
        return [label]

    def axes(row: Sequence[ir.Axis]) -> tuple[ir.Axis, ...]:
        found: list[ir.Axis] = []
        for axis in row:
            match axis:
                case ir.Label():
                    found += once(axis)
                case ir.WindowAxis(out=out, kernel=kernel):
                    found += once(out) + once(kernel)
                case ir.StridedAxis(label=label):
                    found += once(label)
                case ir.ConcatAxis(parts=parts):
                    named = [p for p in parts if p.key in kept]
                    for p in named:
                        found += once(p)
                    if not named:
                        return (*found, axis)
                case _:
                    pass
        return tuple(found)

    del origin
    return SlotShape(
        *(SlotRow(axes(row.lead), row.var, axes(row.trail)) for row in (slot.batch, slot.output, slot.input))
    )


def _check_permute(notation: ast.Notation, slots: Sequence[SlotShape], result: SlotShape) -> None:
    if len(slots) != 1:
        raise fail("E0409", "`permute` takes one tensor", notation.span)
    kept = _names(result)
    for key, text in _names(slots[0]).items():
        if key not in kept:
            raise fail(
                "E0409", f"`permute` would reduce {text}", notation.span, f"{text} is missing from the result",
                helps=("use `sum` if the axis is to be summed",),
            )  # fmt: skip


def _check_position(name: str, notation: ast.Notation, slots: Sequence[SlotShape], result: SlotShape) -> None:
    """A position is a number along one axis. How many axes a row has is not known here, so rows pass."""
    kept = _names(result)
    reduced = {k: text for slot in slots for k, text in _names(slot).items() if k not in kept}
    labels = [text for k, text in reduced.items() if isinstance(k, str)]
    if len(labels) > 1 or not reduced:
        raise fail(
            "E0409", f"`{name}` reduces exactly one axis, not {' and '.join(labels) or 'none'}", notation.span,
            helps=("name the other axes in the result",) if labels else ("leave one axis out of the result",),
        )  # fmt: skip


def _names(slot: SlotShape) -> dict[object, str]:
    found: dict[object, str] = {}
    for row in (slot.batch, slot.output, slot.input):
        if row.var is not None:
            found[row.var.id] = row.var.purpose
        for axis in (*row.lead, *row.trail):
            match axis:
                case ir.Label(key=key):
                    found[key] = f"`{key.split(':')[-1]}`"
                case ir.WindowAxis(out=out, kernel=kernel):
                    found[out.key] = f"`{out.key.split(':')[-1]}`"
                    found[kernel.key] = f"`{kernel.key.split(':')[-1]}`"
                case ir.StridedAxis(label=label):
                    found[label.key] = f"`{label.key.split(':')[-1]}`"
                case ir.ConcatAxis(parts=parts):
                    for p in parts:
                        if p.key:
                            found[p.key] = f"`{p.key.split(':')[-1]}`"
                case _:
                    pass
    return found


def _has_concat(slot: SlotShape) -> bool:
    return any(
        isinstance(a, ir.ConcatAxis) for row in (slot.batch, slot.output, slot.input) for a in (*row.lead, *row.trail)
    )


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
