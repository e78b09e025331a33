"""Makes the nodes of axes notation and of types. Each function is named after a rule or an alias of the grammar."""

from __future__ import annotations

from typing import Any

from ocannl_lang.diagnostics.model import Diagnostic
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast
from ocannl_lang.syntax.build_expressions import int_value
from ocannl_lang.syntax.context import Context
from ocannl_lang.syntax.tokens import Token, name_text

# A term or part before its place says what it is: `(factor, label)` where factor or label may be absent.
_Term = tuple[Any, Any, Span]


def notation(c: Context, start: int, end: int, children: list[Any]) -> ast.Notation:
    slots, result = children
    return ast.Notation(Span(c.source, start, end), tuple(slots), result)


def slot_o(c: Context, start: int, end: int, children: list[Any]) -> ast.Slot:
    return ast.Slot(Span(c.source, start, end), None, None, tuple(children[0]))


def slot_bo(c: Context, start: int, end: int, children: list[Any]) -> ast.Slot:
    return ast.Slot(Span(c.source, start, end), tuple(children[0]), None, tuple(children[1]))


def slot_io(c: Context, start: int, end: int, children: list[Any]) -> ast.Slot:
    return ast.Slot(Span(c.source, start, end), None, tuple(children[0]), tuple(children[1]))


def slot_bio(c: Context, start: int, end: int, children: list[Any]) -> ast.Slot:
    batch, inputs, outputs = children
    return ast.Slot(Span(c.source, start, end), tuple(batch), tuple(inputs), tuple(outputs))


def part_name(c: Context, start: int, end: int, children: list[Any]) -> _Term:
    return None, c.ident(children[0]), Span(c.source, start, end)


def part_int(c: Context, start: int, end: int, children: list[Any]) -> _Term:
    span = Span(c.source, start, end)
    return ast.IntLit(span, int_value(c.text[start:end])), None, span


def part_expr(c: Context, start: int, end: int, children: list[Any]) -> _Term:
    return children[0], None, Span(c.source, start, end)


def scaled(c: Context, start: int, end: int, children: list[Any]) -> _Term:
    (factor, label, span), _, of = children
    if factor is None:
        factor = ast.Name(span, label.name)
    return factor, c.ident(of), Span(c.source, start, end)


def axis_term(c: Context, start: int, end: int, children: list[Any]) -> ast.SlotAxis:
    factor, label, span = children[0]
    if label is None:
        return ast.AxisFixed(span, factor)
    if factor is None:
        return ast.AxisLabel(span, label.name)
    return ast.AxisStrided(span, ast.AffineTerm(span, factor, label), None)


def axis_sum(c: Context, start: int, end: int, children: list[Any]) -> ast.SlotAxis:
    left, _, right = children
    span = Span(c.source, start, end)
    out, kernel = _affine(left), _affine(right)
    if out is None:
        message = "the first term of a sum of positions is a label"
        place = left[2]
        swapped = f"`{c.text[right[2].start : right[2].end]} + {c.text[place.start : place.end]}`"
        c.collector.report(
            Diagnostic("E0409", message, place, helps=(f"write {swapped}",) if kernel is not None else ())
        )
        return ast.AxisWild(span)
    if kernel is None:
        return ast.AxisStrided(span, out, right[0])
    return ast.AxisAffine(span, out, kernel, False)


def axis_padded(c: Context, start: int, end: int, children: list[Any]) -> ast.SlotAxis:
    left, right = children
    span = Span(c.source, start, end)
    out, kernel = _affine(left), _affine(right)
    if out is None or kernel is None:
        place = left[2] if out is None else right[2]
        message = "both sides of `=+` are labels, such as `2*o =+ k`"
        c.collector.report(Diagnostic("E0409", message, place))
        return ast.AxisWild(span)
    return ast.AxisAffine(span, out, kernel, True)


def _affine(term: _Term) -> ast.AffineTerm | None:
    factor, label, span = term
    return None if label is None else ast.AffineTerm(span, factor, label)


def axis_concat(c: Context, start: int, end: int, children: list[Any]) -> ast.AxisConcat:
    parts = tuple(factor if label is None else label for factor, label, _ in children)
    return ast.AxisConcat(Span(c.source, start, end), parts)


def axis_ellipsis(c: Context, start: int, end: int, children: list[Any]) -> ast.AxisEllipsis:
    return ast.AxisEllipsis(Span(c.source, start, end))


def axis_rowvar(c: Context, start: int, end: int, children: list[Any]) -> ast.AxisRowVar:
    return ast.AxisRowVar(Span(c.source, start, end), name_text(c.text[start + 2 : end - 2]))


def axis_wild(c: Context, start: int, end: int, children: list[Any]) -> ast.AxisWild:
    return ast.AxisWild(Span(c.source, start, end))


def axis_collapse(c: Context, start: int, end: int, children: list[Any]) -> ast.AxisCollapse:
    return ast.AxisCollapse(Span(c.source, start, end), c.ident(children[0]))


# ---------------------------------------------------------------- types


def scalar_type(c: Context, start: int, end: int, children: list[Any]) -> ast.TensorType:
    return ast.TensorType(Span(c.source, start, end), c.text[start:end], None, None, (), True)


def tensor_type(c: Context, start: int, end: int, children: list[Any]) -> ast.TensorType:
    precision, slot = children
    word = None if precision is None else c.word(precision)
    return ast.TensorType(Span(c.source, start, end), word, slot.batch, slot.input, slot.output, False)


def named_type(c: Context, start: int, end: int, children: list[Any]) -> ast.NamedType:
    return ast.NamedType(Span(c.source, start, end), name_text(c.text[start:end]))


def index_type(c: Context, start: int, end: int, children: list[Any]) -> ast.GenericType:
    return ast.GenericType(Span(c.source, start, end), "index", (children[0],))


def generic_type(c: Context, start: int, end: int, children: list[Any]) -> ast.GenericType:
    return ast.GenericType(Span(c.source, start, end), name_text(c.word(children[0])), tuple(children[1:]))


def tuple_type(c: Context, start: int, end: int, children: list[Any]) -> ast.TupleType:
    return ast.TupleType(Span(c.source, start, end), tuple(children))


def type_axis_name(c: Context, start: int, end: int, children: list[Any]) -> ast.TypeAxisName:
    word, basis = children
    return ast.TypeAxisName(Span(c.source, start, end), name_text(c.word(word)), _basis(c, basis))


def type_axis_int(c: Context, start: int, end: int, children: list[Any]) -> ast.TypeAxisSize:
    number, basis = children
    value = ast.IntLit(c.span(number[1], number[2]), int_value(c.word(number)))
    return ast.TypeAxisSize(Span(c.source, start, end), value, _basis(c, basis))


def type_axis_expr(c: Context, start: int, end: int, children: list[Any]) -> ast.TypeAxisSize:
    value, basis = children
    return ast.TypeAxisSize(Span(c.source, start, end), value, _basis(c, basis))


def _basis(c: Context, token: Token | None) -> ast.Ident | None:
    return None if token is None else c.ident(token)


def type_axis_ellipsis(c: Context, start: int, end: int, children: list[Any]) -> ast.TypeAxisEllipsis:
    return ast.TypeAxisEllipsis(Span(c.source, start, end))


def type_axis_rowvar(c: Context, start: int, end: int, children: list[Any]) -> ast.TypeAxisRowVar:
    return ast.TypeAxisRowVar(Span(c.source, start, end), name_text(c.text[start + 2 : end - 2]))


def type_axis_any(c: Context, start: int, end: int, children: list[Any]) -> ast.TypeAxisAny:
    return ast.TypeAxisAny(Span(c.source, start, end))


BUILDERS = {
    "notation": notation, "infix_notation": notation, "slot_o": slot_o, "slot_bo": slot_bo, "slot_io": slot_io,
    "slot_bio": slot_bio, "part_name": part_name, "part_int": part_int, "part_expr": part_expr, "scaled": scaled,
    "axis_term": axis_term, "axis_sum": axis_sum, "axis_padded": axis_padded, "axis_concat": axis_concat,
    "axis_ellipsis": axis_ellipsis, "axis_rowvar": axis_rowvar, "axis_wild": axis_wild, "axis_collapse": axis_collapse,
    "scalar_type": scalar_type, "tensor_type": tensor_type, "named_type": named_type, "index_type": index_type,
    "generic_type": generic_type, "tuple_type": tuple_type, "type_axis_name": type_axis_name, "type_axis_int": type_axis_int,
    "type_axis_expr": type_axis_expr, "type_axis_ellipsis": type_axis_ellipsis, "type_axis_rowvar": type_axis_rowvar,
    "type_axis_any": type_axis_any,
}  # fmt: skip
