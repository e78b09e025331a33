"""The static type of an operation, and what is wrong with its operands."""

from __future__ import annotations

from dataclasses import dataclass

from ocannl_lang.names.types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    TENSOR,
    UNKNOWN,
    DictOf,
    ListOf,
    ModuleType,
    Tensor,
    TupleOf,
    Type,
    is_callable,
    is_number,
    words,
)  # fmt: skip

ARITHMETIC = ("+", "-", "*", "*.", "/", "//", "%", "**")
ORDER = ("<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an operation cannot be: the message, the operand at fault (0 left, 1 right), what to do."""

    message: str
    operand: int
    helps: tuple[str, ...] = ()


def binary(op: str, left: Type, right: Type) -> tuple[Type, Fault | None]:
    """The type of `left op right`; a fault only where it is sure."""
    if op in ARITHMETIC:
        return _arithmetic(op, left, right)
    if op in ORDER:
        return _order(op, left, right)
    if op in ("==", "!="):
        return _pointwise_bool(left, right), None
    if op in ("in", "not in"):
        if is_number(right) or right == NONE:
            return BOOL, Fault(f"`{op}` looks in a list, a dict or a string, not in {words(right)}", 1)
        return BOOL if not isinstance(left, Tensor) and not isinstance(right, Tensor) else UNKNOWN, None
    if op in ("and", "or"):
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            return TENSOR, None
        return BOOL if left == BOOL and right == BOOL else UNKNOWN, None
    return UNKNOWN, None


def _arithmetic(op: str, left: Type, right: Type) -> tuple[Type, Fault | None]:
    for i, operand in enumerate((left, right)):
        if is_callable(operand):
            return UNKNOWN, Fault(f"`{op}` needs values, and this is {words(operand)}", i, ("apply it first: `f(x)`",))
        if operand == NONE or isinstance(operand, (DictOf, ModuleType)):
            return UNKNOWN, Fault(f"`{op}` cannot be used on {words(operand)}", i)
    if STR in (left, right):
        return _text(op, left, right)
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        return TENSOR, None
    if is_number(left) and is_number(right):
        return _number(op, left, right), None
    if op == "+" and isinstance(left, ListOf) and isinstance(right, ListOf):
        return (left if left == right else ListOf(UNKNOWN)), None
    return UNKNOWN, None


def _text(op: str, left: Type, right: Type) -> tuple[Type, Fault | None]:
    other, place = (right, 1) if left == STR else (left, 0)
    if op == "+":
        if other in (STR, UNKNOWN):
            return STR, None
        return UNKNOWN, Fault(
            f"`+` joins a string with a string, not with {words(other)}",
            place,
            ('put values into text with braces: `"{x}"`',),
        )
    if op in ("*", "%"):
        return UNKNOWN, None
    return UNKNOWN, Fault(f"`{op}` cannot be used on a string", 0 if left == STR else 1)


def _number(op: str, left: Type, right: Type) -> Type:
    if op == "/" or FLOAT in (left, right):
        return FLOAT
    return UNKNOWN if op == "**" else INT


def _order(op: str, left: Type, right: Type) -> tuple[Type, Fault | None]:
    for i, operand in enumerate((left, right)):
        if is_callable(operand) or operand == NONE or isinstance(operand, (DictOf, ModuleType)):
            return BOOL, Fault(f"`{op}` cannot compare {words(operand)}", i)
    for i, (one, other) in enumerate(((left, right), (right, left))):
        if one == STR and (is_number(other) or isinstance(other, (Tensor, ListOf))):
            return BOOL, Fault(f"`{op}` cannot compare a string with {words(other)}", i)
    return _pointwise_bool(left, right), None


def _pointwise_bool(left: Type, right: Type) -> Type:
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        return TENSOR
    if isinstance(left, (ListOf, TupleOf)) != isinstance(right, (ListOf, TupleOf)):
        return UNKNOWN
    return UNKNOWN if UNKNOWN in (left, right) else BOOL
