"""Values written in Ocn outside of a program: on the command line (`--set sizes=[16,16]`), and defaults that can be shown."""

from __future__ import annotations

from typing import Any

from ocannl_lang.diagnostics.model import Collector
from ocannl_lang.source import Source
from ocannl_lang.syntax import ast


class NotLiteral(Exception):
    """The text or expression is no literal."""


def parse_literal(text: str) -> Any:
    """The value of a number, string, bool, `none`, list, tuple, range or `dict(…)` in Ocn's notation. Raises `NotLiteral`."""
    from ocannl_lang.syntax.parser import parse_expression

    collector = Collector()
    expression = parse_expression(Source("literal", text), 0, len(text), collector)
    if collector.diagnostics:
        raise NotLiteral(collector.diagnostics[0].message)
    return literal_value(expression)


def literal_value(expression: ast.Expr) -> Any:
    """The value of an expression made of literals alone. Raises `NotLiteral` for all others."""
    match expression:
        case ast.IntLit() | ast.FloatLit() | ast.BoolLit():
            return expression.value
        case ast.NoneLit():
            return None
        case ast.StrLit() if all(isinstance(part, str) for part in expression.parts):
            return "".join(str(part) for part in expression.parts)
        case ast.Paren():
            return literal_value(expression.inner)
        case ast.Unary(op="-"):
            return -_number(expression.operand)
        case ast.ListExpr():
            return [literal_value(item) for item in expression.items]
        case ast.TupleExpr():
            return tuple(literal_value(item) for item in expression.items)
        case ast.Binary(op=".."):
            low, high = _number(expression.left), _number(expression.right)
            if isinstance(low, int) and isinstance(high, int):
                return range(low, high)
            raise NotLiteral
        case ast.Binary():
            return _arithmetic(expression)
        case ast.Call(function=ast.Name(name="dict")):
            return _dict(expression.args)
        case _:
            raise NotLiteral


def _number(expression: ast.Expr) -> int | float:
    value = literal_value(expression)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise NotLiteral
    return value


def _arithmetic(expression: ast.Binary) -> int | float:
    """Constants such as `2 * 8` or `1 / 3`; powers are left out, since they can be larger than memory."""
    left, right = _number(expression.left), _number(expression.right)
    try:
        match expression.op:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/":
                return left / right
            case "//":
                return left // right
            case _:
                raise NotLiteral
    except (ArithmeticError, ValueError):
        raise NotLiteral from None


def _dict(args: tuple[ast.Arg, ...]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for arg in args:
        value = literal_value(arg.value)
        if arg.name is not None:
            found[arg.name.name] = value
            continue
        try:
            found.update(value)
        except (TypeError, ValueError):
            raise NotLiteral from None
    return found
