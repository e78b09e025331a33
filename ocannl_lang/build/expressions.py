"""Evaluating expressions: every expression has a static value or adds tensors to the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ocannl_lang.build import tensors
from ocannl_lang.build.context import Binding, Ctx, fail, step
from ocannl_lang.build.values import (
    POISON,
    Builtin,
    CdRef,
    CellRef,
    DimRef,
    Instance,
    OpaqueOp,
    OpRef,
    Poison,
    ResultRef,
    RoutineRef,
    RowRef,
    Static,
    Symbolic,
)
from ocannl_lang.graph.ir import Value
from ocannl_lang.host.array import HostArray
from ocannl_lang.shapes.terms import RowProduct, Size, SizeOp, Unknown
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast


def evaluate(ctx: Ctx, expr: ast.Expr) -> Static:
    """The value of an expression. A complete op becomes an instance; cells stay references (see `as_tensor`)."""
    value = evaluate_callee(ctx, expr)
    if isinstance(value, OpRef) and value.complete:
        from ocannl_lang.build.instances import instance_at

        return instance_at(ctx, value, expr)
    return value


def evaluate_callee(ctx: Ctx, expr: ast.Expr) -> Static:
    """As `evaluate`, but an op stays an op, so that it can be configured further."""
    step(ctx, expr.span)
    return _EVALUATORS[type(expr)](ctx, expr)


# ---------------------------------------------------------------- names


def lookup(ctx: Ctx, name: str) -> Static | None:
    """What a name means here: local, of the module, or built in. None if nothing (also for `none`, which no name has)."""
    from ocannl_lang.build.modules import module_member

    binding = ctx.frame.scope.get(name)
    if binding is not None:
        return binding.value
    member = module_member(ctx, ctx.frame.module, name)
    if member is not None:
        return member
    return builtin(ctx, name)


def builtin(ctx: Ctx, name: str) -> Static | None:
    from ocannl_lang.build.functions import is_builtin

    if name == "training":
        return ctx.build.training
    return Builtin(name) if is_builtin(name) else None


def _name(ctx: Ctx, expr: ast.Name) -> Static:
    binding = ctx.frame.scope.get(expr.name)
    if binding is not None:
        value = binding.value
        return _sized(ctx, value) if isinstance(value, (DimRef, RowRef)) else value
    value = lookup(ctx, expr.name)
    if value is None:
        raise fail("E0201", f"unknown name `{expr.name}`", expr.span, "nothing of this name is known here")
    return value


def _sized(ctx: Ctx, value: DimRef | RowRef) -> Static:
    """A dim or row as a number: an int once inference has fixed it."""
    term = value.dim if isinstance(value, DimRef) else RowProduct(value.row)
    return resolved(ctx, Symbolic(term, True))


def resolved(ctx: Ctx, number: Symbolic) -> Static:
    """A symbolic number as a Python number if what is known so far fixes it."""
    term = number.term
    if isinstance(term, Size):
        return number if isinstance(term.value, Unknown) else term.value
    known = ctx.build.solver.evaluate(term)
    if known is None or isinstance(known, Unknown) or not isinstance(known, (int, float)):
        return number
    return int(known) if number.whole else float(known)


# ---------------------------------------------------------------- literals and control


def _literal(ctx: Ctx, expr: ast.IntLit | ast.FloatLit | ast.BoolLit) -> Static:
    del ctx
    return expr.value


def _none(ctx: Ctx, expr: ast.NoneLit) -> Static:
    del ctx, expr
    return None


def _string(ctx: Ctx, expr: ast.StrLit) -> Static:
    from ocannl_lang.host.builtins import format_value

    texts: list[str] = []
    for part in expr.parts:
        if isinstance(part, str):
            texts.append(part)
            continue
        value = as_host(ctx, evaluate(ctx, part.value))
        if isinstance(value, Poison):
            return POISON
        if isinstance(value, Symbolic):
            raise fail("E0702", "this size is not known while the program is built", part.span)
        if isinstance(value, Value):
            raise fail("E0303", "the value of a tensor is not known while the program is built", part.span, "a tensor")
        try:
            texts.append(format_value(value, part.format))
        except (ValueError, TypeError) as error:
            raise fail("E0301", f"the format `{part.format}` does not fit", part.span, str(error)) from error
    return "".join(texts)


def as_host(ctx: Ctx, value: Static) -> Static:
    """In host code a cell reference reads as an array."""
    if isinstance(value, CellRef) and ctx.services is not None:
        return ctx.services.read_cell(value.cell)
    return value


def _list(ctx: Ctx, expr: ast.ListExpr) -> Static:
    if len(expr.items) == 1 and isinstance(expr.items[0], ast.Comprehension):
        return comprehension(ctx, expr.items[0])
    return [evaluate(ctx, item) for item in expr.items]


def _tuple(ctx: Ctx, expr: ast.TupleExpr) -> Static:
    return tuple(evaluate(ctx, item) for item in expr.items)


def _paren(ctx: Ctx, expr: ast.Paren) -> Static:
    return evaluate_callee(ctx, expr.inner)


def comprehension(ctx: Ctx, expr: ast.Comprehension) -> list[Static]:
    """`[value for pattern in iterable if condition]`; each turn is a place of its own."""
    frame = ctx.frame
    saved = {i.name: frame.scope.get(i.name) for i in expr.pattern}
    turns = frame.turns
    found: list[Static] = []
    try:
        for turn, item in enumerate(iterate(ctx, evaluate(ctx, expr.iterable), expr.iterable.span)):
            frame.turns = (*turns, turn)
            bind_pattern(ctx, expr.pattern, item, expr.span)
            if expr.condition is None or condition(ctx, expr.condition):
                found.append(evaluate(ctx, expr.value))
    finally:
        frame.turns = turns
        for name, binding in saved.items():
            if binding is None:
                frame.scope.pop(name, None)
            else:
                frame.scope[name] = binding
    return found


def bind_pattern(
    ctx: Ctx, pattern: tuple[ast.Ident, ...], value: Static, span: Span, *, rebindable: bool = False
) -> None:
    """Bind one name to the value, or several names to its parts."""
    scope = ctx.frame.scope
    if len(pattern) == 1:
        scope[pattern[0].name] = Binding(value, rebindable)
        return
    for ident, part in zip(pattern, unpack(ctx, value, len(pattern), span)):
        scope[ident.name] = Binding(part, rebindable)


def unpack(ctx: Ctx, value: Static, count: int, span: Span) -> list[Static]:
    """The `count` parts of a tuple or list."""
    from ocannl_lang.build.types import describe

    del ctx
    if isinstance(value, Poison):
        return [POISON] * count
    if not isinstance(value, (tuple, list)):
        raise fail("E0301", f"{count} names for one value", span, f"this is {describe(value)}")
    if len(value) != count:
        raise fail("E0301", f"{count} names for {len(value)} values", span)
    return list(value)


def iterate(ctx: Ctx, value: Static, span: Span) -> Iterable[Static]:
    """The turns of a loop over a static value or, in host code, over an array."""
    from ocannl_lang.build.types import describe

    match value:
        case Poison():
            return ()
        case list() | tuple() | range() | str():
            return list(value) if isinstance(value, list) else value
        case dict():
            return list(value)
        case HostArray():
            if value.data.ndim == 0:
                raise fail("E0301", "a loop over a number", span, "this tensor has no axes")
            return [index_value(ctx, value, i, span) for i in range(value.data.shape[0])]
        case Symbolic() | DimRef() | RowRef():
            raise fail(
                "E0702", "the bound of this loop is not known while the program is built", span,
                "it depends on a size that only a call fixes",
            )  # fmt: skip
        case Value() | CellRef():
            raise fail("E0303", "a loop over a tensor", span, "loops are carried out while the program is built")
        case _ if hasattr(value, "__next__") or (hasattr(value, "__iter__") and ctx.services is not None):
            return value
        case _:
            raise fail("E0301", "this cannot be looped over", span, f"this is {describe(value)}")


def condition(ctx: Ctx, expr: ast.Expr) -> bool:
    """A static condition as a bool."""
    from ocannl_lang.build.types import describe

    value = as_host(ctx, evaluate(ctx, expr))
    match value:
        case bool():
            return value
        case Poison():
            raise PoisonedCondition
        case Symbolic() | DimRef() | RowRef():
            raise fail(
                "E0702", "this condition depends on a size that is not fixed yet", expr.span,
                "only a call fixes it",
            )  # fmt: skip
        case HostArray() if value.data.size == 1:
            return bool(value.data.reshape(()).item())
        case int() if ctx.services is not None and value in (0, 1):
            return bool(value)
        case Value() | CellRef():
            raise fail(
                "E0303", "a condition on a tensor", expr.span, "its value is not known while the program is built",
                helps=("`where(c, a, b)` selects between tensors",),
            )  # fmt: skip
        case _:
            raise fail("E0301", "a condition is a bool", expr.span, f"this is {describe(value)}")


class PoisonedCondition(Exception):
    """A condition that depends on something already reported: neither branch is taken."""


def _if(ctx: Ctx, expr: ast.IfExpr) -> Static:
    return evaluate(ctx, expr.then if condition(ctx, expr.condition) else expr.otherwise)


def _is_none(ctx: Ctx, expr: ast.IsNone) -> Static:
    value = evaluate(ctx, expr.operand)
    if isinstance(value, Poison):
        return POISON
    return (value is None) != expr.negated


def _error(ctx: Ctx, expr: ast.ErrorExpr) -> Static:
    del ctx, expr
    return POISON


# ---------------------------------------------------------------- members, indices, slots


def _attr(ctx: Ctx, expr: ast.Attr) -> Static:
    from ocannl_lang.build.members import member

    return member(ctx, evaluate(ctx, expr.base), expr)


def _bracket(ctx: Ctx, expr: ast.Bracket) -> Static:
    """`f[…]` configures, `t[i]` indexes: the value decides."""
    from ocannl_lang.build.calls import configure

    base = evaluate_callee(ctx, expr.base)
    if isinstance(base, (OpRef, CdRef, Builtin, OpaqueOp, RoutineRef)):
        return configure(ctx, base, expr)
    if isinstance(base, Instance):
        raise fail("E0302", f"`{expr.base.span.text}` is configured already", expr.span)
    if len(expr.args) != 1 or expr.args[0].name is not None:
        written = "".join(f"[{a.value.span.text}]" for a in expr.args)
        raise fail(
            "E0302",
            "an index is one value",
            expr.span,
            helps=(f"index axis by axis: `{expr.base.span.text}{written}`",),
        )
    return index_value(ctx, base, evaluate(ctx, expr.args[0].value), expr.span)


def index_value(ctx: Ctx, base: Static, index: Static, span: Span) -> Static:
    from ocannl_lang.build.slices import index_tensor
    from ocannl_lang.build.types import describe

    if isinstance(base, Poison) or isinstance(index, Poison):
        return POISON
    if isinstance(base, (Value, CellRef, HostArray, ResultRef)):
        return index_tensor(ctx, base, index, span)
    if isinstance(base, dict):
        if index not in base:
            raise fail("E0304", f"the dict has no key {index!r}", span)
        return base[index]
    if isinstance(base, (list, tuple, str, range)):
        if isinstance(index, bool) or not isinstance(index, int):
            if isinstance(index, range):
                return base[index.start : index.stop]
            raise fail("E0301", "an index is an int", span, f"this is {describe(index)}")
        if not -len(base) <= index < len(base):
            raise fail("E0304", f"no element {index}", span, f"there are {len(base)}")
        return base[index]
    raise fail("E0301", f"{describe(base)} cannot be indexed", span)


def _slice(ctx: Ctx, expr: ast.Slice) -> Static:
    from ocannl_lang.build.slices import slice_tensor
    from ocannl_lang.build.types import describe

    base = evaluate(ctx, expr.base)
    low = None if expr.low is None else evaluate(ctx, expr.low)
    high = None if expr.high is None else evaluate(ctx, expr.high)
    if any(isinstance(v, Poison) for v in (base, low, high)):
        return POISON
    if isinstance(base, (Value, CellRef, HostArray, ResultRef)):
        return slice_tensor(ctx, base, low, high, expr.span)
    if isinstance(base, (list, tuple, str)):
        for bound in (low, high):
            if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int)):
                raise fail("E0301", "the ends of a slice are ints", expr.span, f"this is {describe(bound)}")
        return base[low:high]
    raise fail("E0301", f"{describe(base)} cannot be sliced", expr.span)


def _with_slots(ctx: Ctx, expr: ast.WithSlots) -> Static:
    from ocannl_lang.build.calls import give_slots

    return give_slots(ctx, evaluate_callee(ctx, expr.base), expr)


def _call(ctx: Ctx, expr: ast.Call) -> Static:
    from ocannl_lang.build.calls import call

    return call(ctx, expr)


def _pipe(ctx: Ctx, expr: ast.Pipe) -> Static:
    from ocannl_lang.build.calls import pipe

    return pipe(ctx, expr)


def _unary(ctx: Ctx, expr: ast.Unary) -> Static:
    from ocannl_lang.build.operators import unary

    return unary(ctx, expr)


def _binary(ctx: Ctx, expr: ast.Binary) -> Static:
    from ocannl_lang.build.operators import binary

    return binary(ctx, expr)


def _einsum(ctx: Ctx, expr: ast.EinsumInfix) -> Static:
    from ocannl_lang.build.functions import notation_call

    args = [evaluate(ctx, expr.left), evaluate(ctx, expr.right)]
    return notation_call(ctx, expr.op, expr.notation, ctx.frame, args, [expr.left.span, expr.right.span], expr.span)


def _param(ctx: Ctx, expr: ast.ParamExpr) -> Static:
    from ocannl_lang.build.instances import parameter

    return parameter(ctx, expr)


def _comprehension(ctx: Ctx, expr: ast.Comprehension) -> Static:
    return comprehension(ctx, expr)


_EVALUATORS: dict[type, Callable[[Ctx, Any], Static]] = {
    ast.Name: _name, ast.IntLit: _literal, ast.FloatLit: _literal, ast.BoolLit: _literal, ast.NoneLit: _none,
    ast.StrLit: _string, ast.Unary: _unary, ast.Binary: _binary, ast.IsNone: _is_none, ast.IfExpr: _if, ast.Pipe: _pipe,
    ast.EinsumInfix: _einsum, ast.Call: _call, ast.Bracket: _bracket, ast.Slice: _slice, ast.WithSlots: _with_slots,
    ast.Attr: _attr, ast.ListExpr: _list, ast.TupleExpr: _tuple, ast.Paren: _paren, ast.Comprehension: _comprehension,
    ast.ParamExpr: _param, ast.ErrorExpr: _error,
}  # fmt: skip


# ---------------------------------------------------------------- tensors from values


def is_tensor(value: Static) -> bool:
    return isinstance(value, (Value, CellRef, HostArray, ResultRef))


def as_tensor(ctx: Ctx, value: Static, span: Span, *, leaf: bool = False, name: str = "") -> Value:
    """A static value where a tensor is needed (section 2): numbers are constants, lists stack.

    `leaf`: a number takes any shape that is asked of it, not only in pointwise places.
    """
    from ocannl_lang.build.literals import list_tensor
    from ocannl_lang.build.types import describe

    build = ctx.build
    origin = build.origin(span, "literal", span.text if len(span.text) < 24 else "")
    match value:
        case Value():
            return value
        case CellRef():
            return tensors.cell_value(build, value.cell, origin)
        case ResultRef():
            current = build.results.get(value.key)
            if current is None:
                raise fail("E0503", "`result` is read before it is written", span)
            return current
        case bool():
            return tensors.number(build, int(value), origin)
        case int() | float():
            make = tensors.number_leaf if leaf else tensors.number
            return make(build, value, origin)
        case Symbolic() | DimRef() | RowRef():
            term = (
                value.term
                if isinstance(value, Symbolic)
                else value.dim
                if isinstance(value, DimRef)
                else RowProduct(value.row)
            )
            make = tensors.number_leaf if leaf else tensors.number
            return make(
                build, SizeOp("int" if not isinstance(value, Symbolic) or value.whole else "float", (term,)), origin
            )
        case list() | tuple() | range():
            return list_tensor(ctx, value, span)
        case Poison():
            raise Poisoned
        case HostArray():
            raise AssertionError("host arrays are lifted before they reach the graph")
        case None:
            raise fail(
                "E0301", "a tensor is needed here", span, "this is `none`", helps=("test it with `is none` first",)
            )
        case _:
            raise fail(
                "E0301", "a tensor is needed here", span, f"this is {describe(value)}{_call_hint(value)}", helps=()
            )


def _call_hint(value: Static) -> str:
    return ", not applied to anything" if isinstance(value, (OpRef, Instance, Builtin)) else ""


class Poisoned(Exception):
    """An operand was reported as faulty: the result is poison too."""
