"""Values of host code held to written types: arguments of routines, results of foreign functions, data."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ocannl_lang.build.context import Ctx, fail
from ocannl_lang.build.expressions import evaluate, lookup
from ocannl_lang.build.types import check_static, describe
from ocannl_lang.build.values import Static
from ocannl_lang.graph.dtypes import dtype as dtype_of
from ocannl_lang.graph.ir import Value
from ocannl_lang.host.array import HostArray
from ocannl_lang.host.interop import Misfit, fit
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast

Array = NDArray[Any]
Code = Literal["E0802", "E0412", "E0701"]


def fit_argument(value: Static, dtype: np.dtype[Any], name: str, span: Span, wanted: Value | None = None) -> Array:
    """An argument of a routine as an array of its precision. Lossy conversions other than rounding are errors (E0701)."""
    del wanted
    data = _array(value, f"`{name}`", span, "E0701")
    return convert(data, dtype, f"`{name}`", span, "E0701")


def convert(data: Array, dtype: np.dtype[Any], what: str, span: Span, code: Code) -> Array:
    """`data` in another precision, unless that loses more than rounding."""
    try:
        return fit(data, dtype)
    except Misfit as misfit:
        raise fail(code, f"{what} {misfit}", span) from misfit


def _array(value: Static, what: str, span: Span, code: Code) -> Array:
    match value:
        case HostArray():
            return value.data
        case np.ndarray():
            return value
        case bool():
            return np.asarray(int(value))
        case int() | float():
            return np.asarray(value)
        case list() | tuple() | range():
            try:
                data = np.asarray([_array(v, what, span, code) for v in value])
            except ValueError as error:
                raise fail(code, f"the rows of {what} have different lengths", span) from error
            return data if data.size else data.astype(np.float32)
        case _ if hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
            return np.asarray(value)
        case _:
            raise fail(code, f"{what} is an array", span, f"this is {describe(value)}")


def fit_result(ctx: Ctx, value: Any, type: ast.TypeExpr | None, name: str, span: Span, code: Code = "E0802") -> Static:
    """A value from outside as the declared type says: arrays get their rows, numbers and lists are checked."""
    match type:
        case None:
            return _untyped(value)
        case ast.TupleType(items=items):
            if not isinstance(value, (tuple, list)) or len(value) != len(items):
                raise fail(code, f"`{name}` gives {len(items)} values", span, f"this is {_words(value)}")
            local: dict[str, int] = {}
            return tuple(_fit(ctx, v, t, name, span, code, local) for v, t in zip(value, items))
        case _:
            return _fit(ctx, value, type, name, span, code, {})


def _fit(ctx: Ctx, value: Any, type: ast.TypeExpr, name: str, span: Span, code: Code, local: dict[str, int]) -> Static:
    if not isinstance(type, ast.TensorType):
        return check_static(_untyped(value), type, f"the result of `{name}`", span)
    data = _array(value, f"`{name}`", span, code)
    return fit_array(ctx, data, type, name, span, code, local)


def fit_array(
    ctx: Ctx, data: Array, type: ast.TensorType, name: str, span: Span, code: Code, local: dict[str, int]
) -> HostArray:
    """An array with the rows of a written type; `local` holds the sizes that names stand for."""
    rows = (type.batch or (), type.output, type.input or ())
    axes = [axis for row in rows for axis in row]
    open_rows = [a for a in axes if isinstance(a, (ast.TypeAxisEllipsis, ast.TypeAxisRowVar))]
    spare = data.ndim - (len(axes) - len(open_rows))
    if spare < 0 or (spare > 0 and not open_rows) or len(open_rows) > 1:
        shown = list(data.shape)
        raise fail(
            code, f"`{name}` has {len(axes) - len(open_rows)} axes, not {data.ndim}", span, f"its shape is {shown}"
        )
    counts: list[int] = []
    position = 0
    bases: list[str] = []
    for row in rows:
        count = 0
        for axis in row:
            if isinstance(axis, (ast.TypeAxisEllipsis, ast.TypeAxisRowVar)):
                position, count = position + spare, count + spare
                bases += ["default"] * spare
                continue
            _check_axis(ctx, axis, data.shape[position], name, span, code, local)
            basis = None if isinstance(axis, ast.TypeAxisAny) else axis.basis
            bases.append(basis.name if basis else "default")
            position, count = position + 1, count + 1
        counts.append(count)
    if type.precision is not None:
        data = convert(data, dtype_of(type.precision), f"`{name}`", span, code)
    return HostArray(np.asarray(data, order="C"), counts[0], counts[1], counts[2], tuple(bases))


def _check_axis(
    ctx: Ctx, axis: ast.TypeAxis, size: int, name: str, span: Span, code: Code, local: dict[str, int]
) -> None:
    match axis:
        case ast.TypeAxisSize(value=value):
            wanted = evaluate(ctx, value)
        case ast.TypeAxisName(name=size_name):
            wanted = lookup(ctx, size_name)
            if not isinstance(wanted, int):
                wanted = local.setdefault(size_name, size)
        case _:
            return
    if isinstance(wanted, int) and wanted != size:
        text = axis.span.text
        says = f"the type says {wanted}" if text == str(wanted) else f"`{text}` is {wanted}"
        raise fail(code, f"`{name}` has an axis of size {size} where {says}", span)


def _untyped(value: Any) -> Static:
    """A value of Python as a static value or an array."""
    match value:
        case np.ndarray():
            return HostArray.of(value)
        case np.generic():
            return value.item()
        case list():
            return [_untyped(v) for v in value]
        case tuple():
            return tuple(_untyped(v) for v in value)
        case dict():
            return {k: _untyped(v) for k, v in value.items()}
        case _:
            return value


def _words(value: Any) -> str:
    return describe(_untyped(value))
