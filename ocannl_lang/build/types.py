"""Types as written become shapes (section 3), and values are checked against them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ocannl_lang.build import tensors
from ocannl_lang.build.context import Binding, Ctx, fail
from ocannl_lang.build.notation import Evaluate, static_size
from ocannl_lang.build.values import DimRef, OpaqueOp, OpRef, RowRef, Static, Symbolic
from ocannl_lang.shapes.terms import EMPTY, Dim, DimVar, Origin, Row, RowKind, RowVar, Shape, Size, Unknown
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast

NewName = Literal["unknown", "variable", "error"]
"""What a size name that is not in scope becomes: an unknown that a call fixes, a variable to infer, or an error."""


@dataclass(frozen=True, slots=True, eq=False)
class TypedShape:
    """A tensor type as terms. `written` are the rows that the text states; the others are free."""

    shape: Shape
    written: tuple[RowKind, ...]
    precision: str | None
    scalar: bool


def tensor_type(
    ctx: Ctx, type: ast.TensorType, name: str, origin: Origin, evaluate: Evaluate, *, new_names: NewName,
    missing: Literal["empty", "free"], free: Shape | None = None,
) -> TypedShape:  # fmt: skip
    """The shape that a type states for the tensor `name`.

    A row that is left out is empty, or (`missing == "free"`) that of `free`, or a new variable.
    """
    if type.scalar:
        return TypedShape(Shape(), ("batch", "output", "input"), type.precision, True)
    rows: dict[RowKind, Row] = {}
    written: list[RowKind] = []
    local: dict[str, RowVar] = {}
    parts: tuple[tuple[RowKind, Sequence[ast.TypeAxis] | None], ...] = (
        ("batch", type.batch), ("output", type.output), ("input", type.input),
    )  # fmt: skip
    bare = not type.output and type.batch is None and type.input is None
    for kind, axes in parts:
        if axes is not None:
            rows[kind] = _row(ctx, axes, kind, name, origin, evaluate, new_names, local)
            written.append(kind)
        elif missing == "empty" or bare:
            rows[kind] = EMPTY
            written.append(kind)
        else:
            rows[kind] = free.row(kind) if free else tensors.fresh_row(f"the {kind} axes of `{name}`", origin)
    return TypedShape(Shape(rows["batch"], rows["output"], rows["input"]), tuple(written), type.precision, False)


def _row(
    ctx: Ctx, axes: Sequence[ast.TypeAxis], kind: RowKind, name: str, origin: Origin, evaluate: Evaluate,
    new_names: NewName, local: dict[str, RowVar],
) -> Row:  # fmt: skip
    before: list[Dim] = []
    after: list[Dim] = []
    variable: RowVar | None = None
    for axis in axes:
        match axis:
            case ast.TypeAxisEllipsis(span=span) | ast.TypeAxisRowVar(span=span):
                if variable is not None:
                    raise fail("E0409", "two row variables in one row", span)
                variable = _row_var(ctx, axis, kind, name, origin, local, new_names)
            case _:
                dims = _listed(ctx, axis, origin) or [_axis(ctx, axis, kind, name, origin, evaluate, new_names)]
                (before if variable is None else after).extend(dims)
    return Row((), None, tuple(before)) if variable is None else Row(tuple(before), variable, tuple(after))


def _listed(ctx: Ctx, axis: ast.TypeAxis, origin: Origin) -> list[Dim]:
    """A name of a list of sizes stands for so many axes."""
    from ocannl_lang.build.expressions import lookup

    if not isinstance(axis, ast.TypeAxisName):
        return []
    value = lookup(ctx, axis.name)
    if not isinstance(value, (list, tuple)) or not value:
        return []
    at = Origin(axis.span, origin.frames, "declaration", axis.name)
    return [with_basis(ctx, _sized(ctx, v, axis.span, axis.name, at), axis.basis, at) for v in value]


def _row_var(
    ctx: Ctx, axis: ast.TypeAxisEllipsis | ast.TypeAxisRowVar, kind: RowKind, name: str, origin: Origin,
    local: dict[str, RowVar], new_names: NewName,
) -> RowVar:  # fmt: skip
    at = Origin(axis.span, origin.frames, "declaration", axis.span.text)
    if isinstance(axis, ast.TypeAxisEllipsis):
        return RowVar(f"further {kind} axes of `{name}`", at)
    scope, dotted = ctx.frame.scope, f"..{axis.name}.."
    for key in (axis.name, dotted):
        bound = scope.get(key)
        if bound is not None and isinstance(bound.value, RowRef):
            return bound.value.var
    if axis.name not in local:
        local[axis.name] = RowVar(f"`..{axis.name}..`", at)
        if new_names != "error":
            # a parameter may have the name of a row; the dotted name finds the row all the same
            scope[dotted] = Binding(RowRef(axis.name, local[axis.name]))
            scope.setdefault(axis.name, scope[dotted])
    return local[axis.name]


def _axis(
    ctx: Ctx, axis: ast.TypeAxis, kind: RowKind, name: str, origin: Origin, evaluate: Evaluate, new_names: NewName
) -> Dim:
    at = Origin(axis.span, origin.frames, "declaration", axis.span.text)
    match axis:
        case ast.TypeAxisAny():
            return DimVar(f"an axis of `{name}`", at)
        case ast.TypeAxisSize(value=value, basis=basis):
            number = evaluate(ctx, value)
            dim = _sized(ctx, number, value.span, name, at)
        case ast.TypeAxisName(name=size_name, basis=basis, span=span):
            dim = named_size(ctx, size_name, span, name, at, new_names, kind)
        case _:
            raise AssertionError(f"not an axis of a type: {axis}")
    return with_basis(ctx, dim, basis, at)


def _sized(ctx: Ctx, number: Static, span: Span, name: str, at: Origin) -> Dim:
    size = static_size(number)
    if size is None:
        raise fail("E0301", "a size is a static int", span, f"this is {describe(number)}")
    if isinstance(size, int):
        if size < 0:
            raise fail("E0301", f"a size of {size}", span, "sizes are 0 or more")
        return Size(size, why=at, text="" if span.text == str(size) else span.text)
    if isinstance(size, (Size, DimVar)):
        return size
    return tensors.size_dim(ctx.build, Symbolic(size, True), f"a size of `{name}`", at)


def named_size(ctx: Ctx, size_name: str, span: Span, name: str, at: Origin, new_names: NewName, kind: RowKind) -> Dim:
    """A size given by name: a static int or dim in scope; in a signature an unknown name introduces a dim."""
    from ocannl_lang.build.expressions import lookup

    value = lookup(ctx, size_name)
    if new_names != "error" and not isinstance(value, (int, DimRef, RowRef, Symbolic)):
        value = None  # in a signature only sizes are meant; any other name in scope is one by chance
    if value is not None:
        if isinstance(value, DimRef):
            return value.dim
        if isinstance(value, RowRef):
            raise fail("E0301", f"`{size_name}` is a row, not one axis", span, f"write `..{size_name}..`")
        return _sized(ctx, value, span, name, at)
    match new_names:
        case "unknown":
            dim: Dim = Size(Unknown(size_name, ctx.build.graph.name), why=at)
        case "variable":
            dim = DimVar(f"`{size_name}`", at)
        case _:
            raise fail("E0201", f"unknown name `{size_name}`", span, "there is no size of this name here")
    ctx.frame.scope[size_name] = Binding(DimRef(size_name, dim))
    return dim


def with_basis(ctx: Ctx, dim: Dim, basis: ast.Ident | None, at: Origin) -> Dim:
    """The size in units of a basis. A variable that gets a basis is tied to a new one that carries it."""
    if basis is None:
        return dim
    if basis.name != "default" and basis.name not in ctx.world.bases:
        raise fail(
            "E0201", f"unknown basis `{basis.name}`", basis.span, "no `basis` declares it",
            helps=(f"declare it at the top of the module: `basis {basis.name}`",),
        )  # fmt: skip
    if isinstance(dim, Size):
        return Size(dim.value, basis.name, at, dim.text)
    ctx.build.units.append((dim, basis.name, at))
    return dim


# ---------------------------------------------------------------- static types


def describe(value: Any) -> str:
    """What kind of value this is, in words."""
    from ocannl_lang.build import values as v
    from ocannl_lang.graph.ir import Value
    from ocannl_lang.host.array import HostArray

    match value:
        case None:
            return "`none`"
        case bool():
            return "a bool"
        case int():
            return "an int"
        case float():
            return "a float"
        case str():
            return "a string"
        case list():
            return "a list"
        case tuple():
            return "a tuple"
        case dict():
            return "a dict"
        case range():
            return "a range"
        case Value() | v.CellRef() | HostArray() | v.ResultRef():
            return "a tensor"
        case v.OpRef() | v.OpaqueOp():
            return "an op"
        case v.Instance():
            return "an op"
        case v.CdRef():
            return "a cd"
        case v.RoutineRef():
            return "a routine"
        case v.Symbolic() | v.DimRef() | v.RowRef():
            return "a size that is not fixed yet"
        case v.FnRef() | v.Builtin() | v.Method() | v.ExternRef() | v.Intrinsic():
            return "a function"
        case v.ModuleRef():
            return "a module"
        case _:
            return "a value of another kind"


def check_static(value: Static, type: ast.TypeExpr | None, what: str, span: Span) -> Static:
    """A static value for a place with a declared static type; an int serves as a float. E0301 otherwise."""
    if type is None or _fits(value, type):
        return float(value) if isinstance(type, ast.NamedType) and type.name == "float" and _is_int(value) else value
    raise fail("E0301", f"{what} is {type.span.text}", span, f"this is {describe(value)}")


def _is_int(value: Static) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _fits(value: Static, type: ast.TypeExpr) -> bool:
    from ocannl_lang.build.values import Builtin, FnRef, Instance

    match type:
        case ast.NamedType(name=name):
            if isinstance(value, (Symbolic, DimRef, RowRef)):
                whole = not isinstance(value, Symbolic) or value.whole
                return name == "float" or (name == "int" and whole)
            match name:
                case "int":
                    return _is_int(value)
                case "float":
                    return _is_int(value) or isinstance(value, float)
                case "bool":
                    return isinstance(value, bool)
                case "str":
                    return isinstance(value, str)
                case "op":
                    return isinstance(value, (OpRef, OpaqueOp, Instance, Builtin, FnRef))
                case "list":
                    return isinstance(value, (list, range))
                case "dict":
                    return isinstance(value, dict)
                case _:
                    return True
        case ast.GenericType(name="list", args=args):
            item = args[0]
            return isinstance(value, (list, range)) and (
                not isinstance(item, (ast.NamedType, ast.GenericType, ast.TupleType))
                or all(_fits(v, item) for v in value)
            )
        case ast.GenericType(name="dict"):
            return isinstance(value, dict)
        case ast.TupleType(items=items):
            return isinstance(value, tuple) and len(value) == len(items) and all(map(_fits, value, items))
        case _:
            return True
