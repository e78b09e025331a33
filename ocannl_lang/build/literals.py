"""Lists and tuples as tensors (section 2): a list is a new leading output axis, a tuple an input axis, `batched` a batch axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from ocannl_lang.build import tensors
from ocannl_lang.build.context import Ctx, fail
from ocannl_lang.build.values import Static
from ocannl_lang.graph.ir import Value
from ocannl_lang.shapes.terms import RowKind
from ocannl_lang.source import Span


def list_tensor(ctx: Ctx, value: list[Static] | tuple[Static, ...] | range, span: Span) -> Value:
    """A nested list of numbers is one constant; with tensors inside, the parts are stacked."""
    kinds = _kinds(value)
    numbers = _numbers(value) if kinds is not None else None
    origin = ctx.build.origin(span, "literal", "[…]")
    if kinds is not None and numbers is not None:
        data = _array(numbers, span)
        return tensors.array(ctx.build, data, kinds, origin)
    return stack_values(ctx, "input" if isinstance(value, tuple) else "output", list(value), span)


def stack_values(ctx: Ctx, row: RowKind, items: list[Static], span: Span) -> Value:
    from ocannl_lang.build.expressions import as_tensor

    if not items:
        origin = ctx.build.origin(span, "literal", "[]")
        return tensors.array(ctx.build, np.zeros((0,), np.float64), [row], origin)
    args = [as_tensor(ctx, item, span) for item in items]
    return tensors.stack(ctx.build, row, args, ctx.build.origin(span, "stack", "[…]"))


def _kinds(value: Any) -> list[RowKind] | None:
    """The row of each nesting level, if all parts nest alike."""
    if not isinstance(value, (list, tuple, range)):
        return []
    inner = [_kinds(v) for v in value]
    first: list[RowKind] | None = inner[0] if inner else []
    if first is None or any(k != first for k in inner):
        return None
    return ["input" if isinstance(value, tuple) else "output", *first]


def _numbers(value: Any) -> Any | None:
    if isinstance(value, (list, tuple, range)):
        parts = [_numbers(v) for v in value]
        return None if any(p is None for p in parts) else parts
    return value if isinstance(value, (int, float)) else None


def _array(numbers: Any, span: Span) -> np.ndarray[Any, Any]:
    try:
        data = np.array(numbers)
    except (ValueError, OverflowError) as error:
        raise fail("E0401", "the rows of this list have different lengths", span) from error
    if data.dtype == object or data.dtype.kind not in "iufb":
        raise fail("E0401", "the rows of this list have different lengths", span)
    if data.dtype.kind == "b":
        return data.astype(np.int64)
    return data.astype(np.float64) if data.size == 0 else data
