"""Static types as far as the text tells them. `UNKNOWN` fits everything: where nothing is sure, nothing is said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Union

from ocannl_lang.names.builtins import Builtin
from ocannl_lang.syntax import ast

BasicName = Literal["int", "float", "bool", "str", "none"]
CallableDef = Union[ast.OpDef, ast.CdDef, ast.FnDef, ast.RoutineDef, ast.ExternDef]


@dataclass(frozen=True, slots=True)
class Unknown:
    pass


@dataclass(frozen=True, slots=True)
class Basic:
    name: BasicName


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list or a range."""

    item: Type


@dataclass(frozen=True, slots=True)
class TupleOf:
    items: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class DictOf:
    pass


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor while building, an array in host code. `index` is a position given to a routine."""

    index: bool = False


@dataclass(frozen=True, slots=True)
class Defined:
    """An op, cd, fn, routine or extern function of the program.

    `given` are the names of its configuration that are set, `slots` whether its axes notation is, `bound` whether a name
    holds it, so that it may be an instance.
    """

    definition: CallableDef
    given: frozenset[str] = frozenset()
    slots: bool = False
    bound: bool = False


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A built-in function; `slots` with axes notation, `configured` with its brackets."""

    builtin: Builtin
    slots: bool = False
    configured: bool = False


@dataclass(frozen=True, slots=True)
class AnyCallable:
    """An op, fn, instance, … that is not known more closely; `word` is the type as written."""

    word: str


@dataclass(frozen=True, slots=True)
class ModuleType:
    name: str


Type = Union[Unknown, Basic, ListOf, TupleOf, DictOf, Tensor, Defined, BuiltIn, AnyCallable, ModuleType]

UNKNOWN = Unknown()
INT, FLOAT, BOOL, STR, NONE = Basic("int"), Basic("float"), Basic("bool"), Basic("str"), Basic("none")
TENSOR = Tensor()
NUMBERS: tuple[Type, ...] = (INT, FLOAT, BOOL)

_BASIC_WORDS: dict[BasicName, str] = {
    "int": "an int", "float": "a float", "bool": "true or false", "str": "a string", "none": "none",
}  # fmt: skip


def words(t: Type) -> str:
    """The type in words for a message: "an int", "a list"."""
    match t:
        case Unknown():
            return "a value"
        case Basic(name=name):
            return _BASIC_WORDS[name]
        case ListOf(item=item):
            return "a list" if item not in _PLURALS else f"a list of {_PLURALS[item]}"
        case TupleOf():
            return "a tuple"
        case DictOf():
            return "a dict"
        case Tensor(index=index):
            return "an index" if index else "a tensor"
        case Defined(definition=definition):
            return f"{_article(kind_word(definition))} {kind_word(definition)}"
        case BuiltIn():
            return "a function"
        case AnyCallable(word=word):
            return f"{_article(word)} {word}"
        case ModuleType():
            return "a module"


_PLURALS: dict[Type, str] = {INT: "ints", FLOAT: "floats", BOOL: "bools", STR: "strings", TENSOR: "tensors"}


def _article(word: str) -> str:
    return "an" if word[:1] in "aeiou" else "a"


def kind_word(definition: CallableDef) -> str:
    match definition:
        case ast.OpDef():
            return "op"
        case ast.CdDef():
            return "cd"
        case ast.RoutineDef():
            return "routine"
        case ast.FnDef() | ast.ExternDef():
            return "fn"


def is_callable(t: Type) -> bool:
    return isinstance(t, (Defined, BuiltIn, AnyCallable))


def is_number(t: Type) -> bool:
    return t in NUMBERS


def join(types: Iterable[Type]) -> Type:
    """The type of a value that has one of these."""
    found = list(dict.fromkeys(types))
    if len(found) == 1:
        return found[0]
    if len(found) > 1 and all(isinstance(t, Tensor) for t in found):
        return TENSOR
    if len(found) > 1 and all(isinstance(t, ListOf) for t in found):
        return ListOf(join(t.item for t in found if isinstance(t, ListOf)))
    return UNKNOWN


def declared_type(t: ast.TypeExpr | ast.Expr | None) -> Type:
    """The type that a written type stands for."""
    match t:
        case ast.TensorType():
            return TENSOR
        case ast.NamedType(name=name):
            return _named(name)
        case ast.GenericType(name="list", args=args):
            return ListOf(declared_type(args[0])) if len(args) == 1 else ListOf(UNKNOWN)
        case ast.GenericType(name="tuple", args=args):
            return TupleOf(tuple(declared_type(a) for a in args))
        case ast.GenericType(name="dict"):
            return DictOf()
        case ast.GenericType(name="index"):
            return Tensor(index=True)
        case ast.TupleType(items=items):
            return TupleOf(tuple(declared_type(i) for i in items))
        case _:
            return UNKNOWN


def _named(name: str) -> Type:
    match name:
        case "int" | "float" | "bool" | "str" | "none":
            return Basic(name)
        case "dim" | "row":
            return INT
        case "list":
            return ListOf(UNKNOWN)
        case "dict":
            return DictOf()
        case "tensor" | "array":
            return TENSOR
        case "index":
            return Tensor(index=True)
        case "op" | "fn" | "instance" | "cd" | "routine":
            return AnyCallable(name)
        case _:
            return UNKNOWN


def fits(value: Type, wanted: Type) -> bool:
    """Whether a value may stand where `wanted` is declared. `none` fits everywhere, since anything may be optional."""
    if isinstance(value, Unknown) or isinstance(wanted, Unknown) or value == NONE:
        return True
    match wanted:
        case Basic(name=name):
            return value in _FITTING[name]
        case ListOf(item=item):
            return fits(value.item, item) if isinstance(value, ListOf) else _takes_apart(value)
        case TupleOf(items=items):
            if isinstance(value, TupleOf) and items:
                same = len(items) == len(value.items)
                return same and all(fits(v, w) for v, w in zip(value.items, items, strict=True))
            return _takes_apart(value)
        case DictOf():
            return isinstance(value, DictOf)
        case Tensor():
            return not (value == STR or is_callable(value) or isinstance(value, (DictOf, ModuleType)))
        case AnyCallable() | Defined() | BuiltIn():
            return is_callable(value)
        case ModuleType():
            return True


_FITTING: dict[BasicName, tuple[Type, ...]] = {
    "int": (INT, BOOL), "float": NUMBERS, "bool": NUMBERS, "str": (STR,), "none": (NONE,),
}  # fmt: skip


def _takes_apart(value: Type) -> bool:
    """Whether a value may be given where a list or a tuple is declared: a tensor or a string has elements too."""
    return not (is_number(value) or is_callable(value) or isinstance(value, (DictOf, ModuleType)))
