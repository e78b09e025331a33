"""Operators (section 5): on static values they compute, on tensors they add to the graph."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable
from typing import Any

from ocannl_lang.build import tensors
from ocannl_lang.build.context import Ctx, fail
from ocannl_lang.build.expressions import Poisoned, as_host, as_tensor, evaluate, is_tensor
from ocannl_lang.build.values import POISON, DimRef, Poison, RowRef, Static, Symbolic
from ocannl_lang.graph.ir import Value
from ocannl_lang.shapes.terms import RowProduct, SizeOp, SizeTerm
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast

MOST_BITS = 100_000
"""The size of a static int beyond which a power is refused (E0304)."""
POINTWISE = {
    "+": "add", "-": "sub", "*.": "mul", "/": "div", "//": "floordiv", "%": "mod", "**": "pow",
    "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "and": "and", "or": "or",
}  # fmt: skip
"""The primitive of each operator that works position by position."""
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def binary(ctx: Ctx, expr: ast.Binary) -> Static:
    """`left op right`."""
    if expr.op in ("and", "or"):
        return _logic(ctx, expr)
    left = as_host(ctx, evaluate(ctx, expr.left))
    right = as_host(ctx, evaluate(ctx, expr.right))
    return apply_binary(ctx, expr.op, left, right, expr.span, expr.op_span, (expr.left.span, expr.right.span))


def apply_binary(
    ctx: Ctx, op: str, left: Static, right: Static, span: Span, op_span: Span, sides: tuple[Span, Span]
) -> Static:
    """The operator on two values, whatever they are."""
    if isinstance(left, Poison) or isinstance(right, Poison):
        return POISON
    if is_tensor(left) or is_tensor(right):
        if op in ("in", "not in", ".."):
            raise fail("E0301", f"`{op}` is for static values", op_span, "one side is a tensor")
        return lifted(ctx, [left, right], lambda c, v: tensor_binary(c, op, v[0], v[1], span, sides), span, (op, span))
    return static_binary(ctx, op, left, right, span)


def lifted(
    ctx: Ctx, args: list[Static], run: Callable[[Ctx, list[Static]], Static], span: Span, key: Hashable | None = None
) -> Static:
    """Run a tensor operation: in a build directly, in host code as a computation of its own.

    A `key` says that equal keys and arguments of equal kinds make the same computation, so that its code can be kept.
    """
    try:
        return run(ctx, args) if ctx.services is None else ctx.services.lift(ctx, args, run, span, key)
    except Poisoned:
        return POISON


def tensor_binary(ctx: Ctx, op: str, left: Static, right: Static, span: Span, sides: tuple[Span, Span]) -> Value:
    """The operator where at least one side is a tensor."""
    build = ctx.build
    if op == "**" and isinstance(right, int) and not isinstance(right, bool):
        base = as_tensor(ctx, left, sides[0])
        exponent = tensors.number(build, right, build.origin(sides[1], "literal", str(right)))
        return tensors.map_values(build, "pow", [base, exponent], build.origin(span, "pointwise", "**"))
    a, b = as_tensor(ctx, left, sides[0]), as_tensor(ctx, right, sides[1])
    if op == "*":
        if a.scalar or b.scalar:
            return tensors.map_values(build, "mul", [a, b], build.origin(span, "pointwise", "*"))
        return tensors.product(build, a, b, build.origin(span, "product", "*"))
    return tensors.map_values(build, POINTWISE[op], [a, b], build.origin(span, "pointwise", op))


def _logic(ctx: Ctx, expr: ast.Binary) -> Static:
    left = as_host(ctx, evaluate(ctx, expr.left))
    if isinstance(left, bool):
        if left == (expr.op == "or"):
            return left
        return evaluate(ctx, expr.right)
    right = as_host(ctx, evaluate(ctx, expr.right))
    if isinstance(left, Poison) or isinstance(right, Poison):
        return POISON
    if is_tensor(left) or is_tensor(right):
        sides = (expr.left.span, expr.right.span)
        return lifted(
            ctx, [left, right], lambda c, v: tensor_binary(c, expr.op, v[0], v[1], expr.span, sides), expr.span
        )
    return _mismatch(expr.op, left, right, expr.span)


def unary(ctx: Ctx, expr: ast.Unary) -> Static:
    """`-x`, `not x`."""
    value = as_host(ctx, evaluate(ctx, expr.operand))
    if isinstance(value, Poison):
        return POISON
    fn = "neg" if expr.op == "-" else "not"
    if is_tensor(value):

        def run(c: Ctx, v: list[Static]) -> Static:
            operand = as_tensor(c, v[0], expr.operand.span)
            return tensors.map_values(c.build, fn, [operand], c.build.origin(expr.span, "pointwise", expr.op))

        return lifted(ctx, [value], run, expr.span)
    if expr.op == "not":
        if isinstance(value, bool):
            return not value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        return -value
    elif isinstance(value, (Symbolic, DimRef, RowRef)):
        term, whole = static_term(value)
        return Symbolic(SizeOp("neg", (term,)), whole)
    from ocannl_lang.build.types import describe

    raise fail("E0301", f"`{expr.op}` does not apply", expr.span, f"this is {describe(value)}")


# ---------------------------------------------------------------- static values


def static_binary(ctx: Ctx, op: str, left: Static, right: Static, span: Span) -> Static:
    """The operator on static values; numbers that depend on sizes stay symbolic."""
    if op in ("in", "not in"):
        return _contains(left, right, span) == (op == "in")
    if isinstance(left, (Symbolic, DimRef, RowRef)) or isinstance(right, (Symbolic, DimRef, RowRef)):
        return _symbolic(ctx, op, left, right, span)
    if op in ("==", "!="):
        return COMPARISONS[op](left, right)
    number = _is_number(left) and _is_number(right)
    match op:
        case "<" | "<=" | ">" | ">=":
            if number or (type(left) is type(right) and isinstance(left, (str, list, tuple))):
                return COMPARISONS[op](left, right)
        case "..":
            if isinstance(left, int) and isinstance(right, int):
                return range(left, right)
        case "+":
            if number or (type(left) is type(right) and isinstance(left, (str, list, tuple))):
                return left + right
            if isinstance(left, (list, range)) and isinstance(right, (list, range)):
                return [*left, *right]
        case _ if number:
            return _arithmetic(op, left, right, span)
        case _:
            pass
    return _mismatch(op, left, right, span)


def _arithmetic(op: str, left: Any, right: Any, span: Span) -> Static:
    try:
        match op:
            case "-":
                return left - right
            case "*" | "*.":
                return left * right
            case "/":
                return left / right
            case "//":
                return left // right
            case "%":
                return left % right
            case _:
                if isinstance(left, int) and isinstance(right, int) and left.bit_length() * right > MOST_BITS:
                    raise OverflowError
                result = left**right
                return result if not isinstance(result, complex) else math.nan
    except ZeroDivisionError as error:
        raise fail("E0304", "division by zero", span) from error
    except OverflowError as error:
        raise fail("E0304", "this number is too large", span) from error


def _contains(left: Static, right: Static, span: Span) -> bool:
    if isinstance(right, (list, tuple, dict, range)) or (isinstance(right, str) and isinstance(left, str)):
        return left in right
    from ocannl_lang.build.types import describe

    raise fail("E0301", "nothing can be `in` this", span, f"the right side is {describe(right)}")


def static_term(value: Static) -> tuple[SizeTerm, bool]:
    """A static number as a term of sizes, and whether it is an int."""
    match value:
        case Symbolic(term=term, whole=whole):
            return term, whole
        case DimRef(dim=dim):
            return dim, True
        case RowRef():
            return RowProduct(value.row), True
        case _:
            return value, isinstance(value, int)


def _symbolic(ctx: Ctx, op: str, left: Static, right: Static, span: Span) -> Static:
    from ocannl_lang.build.expressions import resolved

    for v in (left, right):
        if not isinstance(v, (Symbolic, DimRef, RowRef)) and not _is_number(v):
            return _mismatch(op, left, right, span)
    (a, whole_a), (b, whole_b) = static_term(left), static_term(right)
    if op in COMPARISONS:
        if a == b and op in ("==", "<=", ">="):
            return True
        raise fail("E0702", "these sizes cannot be compared yet", span, "they are fixed by a call, not while building")
    if op == "..":
        raise fail(
            "E0702", "the end of this range is not fixed yet", span, "it depends on a size that only a call fixes"
        )
    whole = whole_a and whole_b and op != "/"
    return resolved(ctx, Symbolic(SizeOp("*" if op == "*." else op, (a, b)), whole))


def _is_number(value: Static) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _mismatch(op: str, left: Static, right: Static, span: Span) -> Static:
    from ocannl_lang.build.types import describe

    raise fail("E0301", f"`{op}` does not apply to {describe(left)} and {describe(right)}", span)
