"""Makes the nodes of expressions. Each function is named after a rule or an alias of the grammar."""

from __future__ import annotations

from typing import Any

from ocannl_lang.diagnostics.model import Diagnostic, Edit, Fix
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast, strings
from ocannl_lang.syntax.context import Context
from ocannl_lang.syntax.signs import MEANT
from ocannl_lang.syntax.tokens import name_text


def name(c: Context, start: int, end: int, children: list[Any]) -> ast.Name | ast.BoolLit | ast.NoneLit:
    text = c.text[start:end]
    if text in _CAPITALISED:
        return _capitalised(c, Span(c.source, start, end), text)
    return ast.Name(Span(c.source, start, end), name_text(text))


_CAPITALISED = frozenset(("True", "False", "None"))


def _capitalised(c: Context, span: Span, text: str) -> ast.BoolLit | ast.NoneLit:
    """`True`, `False` and `None`, as Python spells them."""
    small = text.lower()
    fix = Fix(f"write `{small}`", (Edit(span, small),))
    c.collector.report(Diagnostic("E0102", f"`{text}` is written small: `{small}`", span, fix=fix))
    return ast.NoneLit(span) if text == "None" else ast.BoolLit(span, text == "True")


def int_lit(c: Context, start: int, end: int, children: list[Any]) -> ast.IntLit:
    return ast.IntLit(Span(c.source, start, end), int_value(c.text[start:end]))


def int_value(text: str) -> int:
    """The value of an int literal; 0 for one that was reported as no number."""
    try:
        return int(text, 16 if text.startswith("0x") else 10) if len(text) <= 4000 else 0
    except ValueError:
        return 0


def float_lit(c: Context, start: int, end: int, children: list[Any]) -> ast.FloatLit:
    text = c.text[start:end].replace("_", "")
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    return ast.FloatLit(Span(c.source, start, end), value)


def true_lit(c: Context, start: int, end: int, children: list[Any]) -> ast.BoolLit:
    return ast.BoolLit(Span(c.source, start, end), True)


def false_lit(c: Context, start: int, end: int, children: list[Any]) -> ast.BoolLit:
    return ast.BoolLit(Span(c.source, start, end), False)


def none_lit(c: Context, start: int, end: int, children: list[Any]) -> ast.NoneLit:
    return ast.NoneLit(Span(c.source, start, end))


def str_lit(c: Context, start: int, end: int, children: list[Any]) -> ast.StrLit:
    parts: list[str | ast.Interpolation] = []
    for piece in strings.split(c.source, start, end, c.collector):
        if piece.text is not None:
            parts.append(piece.text)
            continue
        value = c.parse_inner(c.source, piece.start, piece.end, c.collector)
        parts.append(ast.Interpolation(Span(c.source, piece.start - 1, piece.stop), value, piece.format))
    return ast.StrLit(Span(c.source, start, end), tuple(parts))


def unary(c: Context, start: int, end: int, children: list[Any]) -> ast.Unary:
    operator, operand = children
    text = c.word(operator)
    return ast.Unary(Span(c.source, start, end), MEANT.get(text, text), operand)


def binary(c: Context, start: int, end: int, children: list[Any]) -> ast.Binary:
    left, operator, right = children
    first, last = operator[1], operator[2]
    text = c.text[first:last]
    return ast.Binary(Span(c.source, start, end), MEANT.get(text, text), Span(c.source, first, last), left, right)


def not_in(c: Context, start: int, end: int, children: list[Any]) -> ast.Binary:
    left, negation, inside, right = children
    operator = Span(c.source, negation[1], inside[2])
    return ast.Binary(Span(c.source, start, end), "not in", operator, left, right)


def is_none(c: Context, start: int, end: int, children: list[Any]) -> ast.IsNone:
    return ast.IsNone(Span(c.source, start, end), children[0], False)


def is_not_none(c: Context, start: int, end: int, children: list[Any]) -> ast.IsNone:
    return ast.IsNone(Span(c.source, start, end), children[0], True)


def if_expr(c: Context, start: int, end: int, children: list[Any]) -> ast.IfExpr:
    _, condition, then, otherwise = children
    return ast.IfExpr(Span(c.source, start, end), condition, then, otherwise)


def pipe_expr(c: Context, start: int, end: int, children: list[Any]) -> ast.Pipe:
    value, function = children
    return ast.Pipe(Span(c.source, start, end), value, function)


def einsum_infix(c: Context, start: int, end: int, children: list[Any]) -> ast.EinsumInfix:
    left, operator, notation, right = children
    first, last = operator[1], operator[2]
    return ast.EinsumInfix(
        Span(c.source, start, end), c.text[first:last], Span(c.source, first, last), notation, left, right
    )


def call(c: Context, start: int, end: int, children: list[Any]) -> ast.Call:
    function, args = children
    args = args or []
    if len(args) > 1:
        for arg in args:
            if isinstance(arg.value, ast.Comprehension):
                _report_comprehension(c, arg.value)
    return ast.Call(Span(c.source, start, end), function, tuple(args))


def bracket(c: Context, start: int, end: int, children: list[Any]) -> ast.Bracket:
    base, args = children
    args = args or []
    for arg in args:
        if isinstance(arg.value, ast.Comprehension):
            _report_comprehension(c, arg.value)
    return ast.Bracket(Span(c.source, start, end), base, tuple(args))


def _report_comprehension(c: Context, value: ast.Comprehension) -> None:
    message = "a comprehension stands in brackets of its own here"
    c.collector.report(Diagnostic("E0102", message, value.span, helps=("write `[… for … in …]`",)))


def slice(c: Context, start: int, end: int, children: list[Any]) -> ast.Slice:
    base, low, high = children
    return ast.Slice(Span(c.source, start, end), base, low, high)


def with_slots(c: Context, start: int, end: int, children: list[Any]) -> ast.WithSlots:
    base, notation = children
    return ast.WithSlots(Span(c.source, start, end), base, notation)


def attr(c: Context, start: int, end: int, children: list[Any]) -> ast.Attr:
    base, member = children
    return ast.Attr(Span(c.source, start, end), base, c.ident(member))


def unit(c: Context, start: int, end: int, children: list[Any]) -> ast.TupleExpr:
    return ast.TupleExpr(Span(c.source, start, end), ())


def paren(c: Context, start: int, end: int, children: list[Any]) -> ast.Paren:
    return ast.Paren(Span(c.source, start, end), children[0])


def inner(c: Context, start: int, end: int, children: list[Any]) -> ast.Expr:
    return children[0]


def tuple_expr(c: Context, start: int, end: int, children: list[Any]) -> ast.TupleExpr:
    return ast.TupleExpr(Span(c.source, start, end), tuple(e for e in children if e is not None))


def list_expr(c: Context, start: int, end: int, children: list[Any]) -> ast.ListExpr:
    items = children[0] or []
    if len(items) > 1:
        for item in items:
            if isinstance(item, ast.Comprehension):
                _report_comprehension(c, item)
    return ast.ListExpr(Span(c.source, start, end), tuple(items))


def param(c: Context, start: int, end: int, children: list[Any]) -> ast.ParamExpr:
    word, type_, init = children
    return ast.ParamExpr(Span(c.source, start, end), c.ident(word), type_, init)


def positional(c: Context, start: int, end: int, children: list[Any]) -> ast.Arg:
    value = children[0]
    return ast.Arg(value.span, None, value)


def keyword(c: Context, start: int, end: int, children: list[Any]) -> ast.Arg:
    word, value = children
    return ast.Arg(Span(c.source, start, end), c.ident(word), value)


def comprehension(c: Context, start: int, end: int, children: list[Any]) -> ast.Comprehension:
    value, _for, pattern, _in, iterable, _if, condition = children
    return ast.Comprehension(Span(c.source, start, end), value, pattern, iterable, condition)


BUILDERS = {
    "name": name, "int_lit": int_lit, "float_lit": float_lit, "true_lit": true_lit, "false_lit": false_lit, "none_lit": none_lit,
    "str_lit": str_lit, "unary": unary, "binary": binary, "not_in": not_in, "is_none": is_none, "is_not_none": is_not_none,
    "if_expr": if_expr, "pipe_expr": pipe_expr, "einsum_infix": einsum_infix, "call": call, "bracket": bracket, "slice": slice,
    "with_slots": with_slots, "attr": attr, "unit": unit, "paren": paren, "inner": inner, "tuple": tuple_expr,
    "bare_tuple": tuple_expr, "list": list_expr, "param": param, "positional": positional, "keyword": keyword,
    "comprehension": comprehension,
}  # fmt: skip
