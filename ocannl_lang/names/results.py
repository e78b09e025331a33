"""What applying a function gives, as far as its definition tells without building it."""

from __future__ import annotations

from collections.abc import Iterator

from ocannl_lang.names.builtins import BUILTINS
from ocannl_lang.names.types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    TENSOR,
    UNKNOWN,
    BuiltIn,
    CallableDef,
    DictOf,
    ListOf,
    Tensor,
    TupleOf,
    Type,
    declared_type,
    join,
)  # fmt: skip
from ocannl_lang.syntax import ast


def returned(definition: CallableDef) -> Type:
    """The type of what a definition returns."""
    match definition:
        case ast.CdDef():
            return UNKNOWN
        case ast.FnDef() | ast.ExternDef():
            return declared_type(definition.result)
        case ast.OpDef() | ast.RoutineDef():
            if definition.result is not None:
                return declared_type(definition.result)
            if any(isinstance(s, ast.Section) for s in definition.body):
                return TENSOR
            return join(_tensors(value) for value in _returns(definition.body))


def _returns(statements: tuple[ast.Stmt, ...]) -> Iterator[ast.Expr | None]:
    for s in statements:
        match s:
            case ast.Return(value=value):
                yield value
            case ast.If(branches=branches, otherwise=otherwise):
                for _, body in branches:
                    yield from _returns(body)
                yield from _returns(otherwise or ())
            case ast.For(body=body) | ast.While(body=body) | ast.Section(body=body):
                yield from _returns(body)
            case ast.ErrorStmt():
                yield None
            case _:
                pass


def _tensors(e: ast.Expr | None) -> Type:
    """A tensor or a tuple of them where that is plain from the returned expression: an op turns numbers into tensors."""
    match e:
        case ast.Paren(inner=inner):
            return _tensors(inner)
        case ast.TupleExpr(items=items):
            return TupleOf((UNKNOWN,) * len(items))
        case ast.Binary() | ast.EinsumInfix() | ast.Unary() | ast.ParamExpr() | ast.IntLit() | ast.FloatLit():
            return TENSOR
        case ast.Call(function=ast.WithSlots(base=ast.Name(name=name))) | ast.Call(function=ast.Name(name=name)):
            found = BUILTINS.get(name)
            return TENSOR if found is not None and found.kind in ("pointwise", "reducer", "random") else UNKNOWN
        case _:
            return UNKNOWN


def builtin_result(function: BuiltIn, args: list[Type], *, building: bool) -> Type:
    """The type of what a built-in function gives for arguments of these types."""
    builtin = function.builtin
    match builtin.kind:
        case "pointwise":
            return _pointwise(args)
        case "reducer":
            if function.slots or any(isinstance(t, Tensor) for t in args):
                return TENSOR
            return UNKNOWN
        case "random" | "tensor function":
            return TENSOR
        case "computation":
            return ListOf(TENSOR) if builtin.name == "params" else UNKNOWN
        case "conversion":
            return _conversion(builtin.name, args)
        case "static function":
            return _static(builtin.name, args)
        case "host function":
            return _host(builtin.name, args)
        case "value":
            return UNKNOWN


def _pointwise(args: list[Type]) -> Type:
    if any(isinstance(t, Tensor) for t in args):
        return TENSOR
    return UNKNOWN


def _conversion(name: str, args: list[Type]) -> Type:
    match name:
        case "int":
            return INT
        case "float":
            return FLOAT
        case "str":
            return STR
        case "bool":
            return BOOL
        case _:
            return TENSOR if any(isinstance(t, Tensor) for t in args) else UNKNOWN


def _static(name: str, args: list[Type]) -> Type:
    items = [t.item if isinstance(t, ListOf) else UNKNOWN for t in args]
    match name:
        case "len":
            return INT
        case "range":
            return ListOf(INT)
        case "enumerate":
            return ListOf(TupleOf((INT, items[0]))) if len(items) == 1 else UNKNOWN
        case "zip":
            return ListOf(TupleOf(tuple(items))) if all(isinstance(t, ListOf) for t in args) and items else UNKNOWN
        case "sorted" | "reversed" | "list":
            return ListOf(items[0]) if items else ListOf(UNKNOWN)
        case "dict":
            return DictOf()
        case _:
            return UNKNOWN


def _host(name: str, args: list[Type]) -> Type:
    match name:
        case "print" | "save":
            return NONE
        case "random":
            return FLOAT
        case "progress":
            return args[0] if args else UNKNOWN
        case "read_text":
            return STR
        case "read_array":
            return TENSOR
        case _:
            return UNKNOWN
