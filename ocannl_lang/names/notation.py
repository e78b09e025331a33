"""Names in axes notation: which are labels, and which are dims, rows, slot parameters or ints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ocannl_lang.diagnostics.model import Collector
from ocannl_lang.names import reports
from ocannl_lang.names.bindings import Binding, Names
from ocannl_lang.names.nearest import distance
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast


@dataclass(slots=True)
class Labels:
    """The labels of one notation, or of one assignment in index notation, whose notations share them.

    `extent` is its place, `occurrences` where each label stands, in the order of the text.
    """

    extent: Span
    occurrences: dict[str, list[Span]] = field(default_factory=dict[str, list[Span]])
    bindings: dict[str, Binding] = field(default_factory=dict[str, Binding])
    rows: dict[str, Binding] = field(default_factory=dict[str, Binding])


@dataclass(slots=True)
class NotationScope:
    """What a notation needs to know: the names around it and how to resolve an expression and an unknown slot."""

    names: Names
    collector: Collector
    owner: ast.Definition | None
    env: Mapping[str, Binding]
    declared: Callable[[Binding], bool]
    expression: Callable[[ast.Expr], None]
    unknown_slot: Callable[[ast.Ident], None]


def resolve_notation(notation: ast.Notation, labels: Labels, scope: NotationScope) -> None:
    """Resolve the names of a notation into `labels` and the scope around it."""
    for slot in notation.slots:
        _slot(slot, labels, scope)
    if notation.result is not None:
        _slot(notation.result, labels, scope)


def finish_labels(labels: Labels, scope: NotationScope) -> None:
    """Warn about labels that look like something else (W0903, W0905), once all notations of `labels` are resolved."""
    for name, places in labels.occurrences.items():
        static = scope.env.get(name) or scope.names.top.get(name)
        if static is not None and is_static_int(static):
            scope.collector.report(reports.label_shadows(name, places[0], static))
    accused: set[str] = set()
    for name, places in reversed(labels.occurrences.items()):
        if len(places) > 1:
            continue
        for other, other_places in labels.occurrences.items():
            if other != name and other not in accused and looks_misspelt(name, other):
                accused.add(name)
                scope.collector.report(reports.label_misspelt(name, places[0], other, other_places[0]))
                break


def is_static_int(binding: Binding) -> bool:
    """Whether the text says that this name is a static int."""
    match binding.node:
        case ast.ParamDecl(type=declared, default=default):
            return _is_int_type(declared) or (declared is None and isinstance(default, ast.IntLit))
        case ast.Let(type=declared, value=value) | ast.Var(type=declared, value=value) if binding.kind in (
            "let",
            "var",
        ):
            return _is_int_type(declared) or isinstance(value, ast.IntLit)
        case ast.For(iterable=iterable) | ast.Comprehension(iterable=iterable):
            return isinstance(iterable, ast.Binary) and iterable.op == ".."
        case _:
            return False


def _is_int_type(declared: ast.TypeExpr | None) -> bool:
    return isinstance(declared, ast.NamedType) and declared.name == "int"


def looks_misspelt(name: str, other: str) -> bool:
    """Whether one label may be the other with a slip of the keyboard.

    Families such as `d_k` and `d_v`, `h1` and `h2`, `row` and `rows` are meant.
    """
    words, others = name.split("_"), other.split("_")
    if len(words) != len(others):
        return name.replace("_", "") == other.replace("_", "") and len(name) >= 4
    different = [(a, b) for a, b in zip(words, others, strict=True) if a != b]
    if len(different) != 1:
        return False
    a, b = different[0]
    if min(len(a), len(b)) < 4 or a[0] != b[0] or a in (b + "s", b + "es") or b in (a + "s", a + "es"):
        return False
    if any(c.isdigit() for c in set(a) ^ set(b)) or a.rstrip("0123456789") == b.rstrip("0123456789"):
        return False
    if a[:-1] == b[:-1] or a[:-1] == b or b[:-1] == a:
        return False
    return distance(a, b, 1) == 1


def _slot(slot: ast.Slot, labels: Labels, scope: NotationScope) -> None:
    if slot.batch is None and slot.input is None and len(slot.output) == 1:
        match slot.output[0]:
            case ast.AxisLabel(span=span, name=name) as axis if _is_slot_parameter(name, scope):
                scope.names.use(axis, span, scope.env[name])
                return
            case _:
                pass
    for axis in (*(slot.batch or ()), *(slot.input or ()), *slot.output):
        _axis(axis, labels, scope)


def _is_slot_parameter(name: str, scope: NotationScope) -> bool:
    found = scope.env.get(name)
    return found is not None and found.kind == "slot"


def _axis(axis: ast.SlotAxis, labels: Labels, scope: NotationScope) -> None:
    match axis:
        case ast.AxisLabel(span=span, name=name):
            _label(axis, span, name, labels, scope)
        case ast.AxisFixed(value=value):
            scope.expression(value)
        case ast.AxisAffine(out=out, kernel=kernel):
            _term(out, labels, scope)
            _term(kernel, labels, scope)
        case ast.AxisStrided(term=term, offset=offset):
            _term(term, labels, scope)
            if offset is not None:
                scope.expression(offset)
        case ast.AxisConcat(parts=parts):
            for part in parts:
                if isinstance(part, ast.Ident):
                    _label(part, part.span, part.name, labels, scope)
                else:
                    scope.expression(part)
        case ast.AxisRowVar():
            _row(axis, labels, scope)
        case ast.AxisCollapse(name=name):
            if _is_slot_parameter(name.name, scope):
                scope.names.use(name, name.span, scope.env[name.name])
            else:
                scope.unknown_slot(name)
        case ast.AxisWild() | ast.AxisEllipsis():
            pass


def _term(term: ast.AffineTerm, labels: Labels, scope: NotationScope) -> None:
    if term.factor is not None:
        scope.expression(term.factor)
    _label(term.label, term.label.span, term.label.name, labels, scope)


def _label(node: object, span: Span, name: str, labels: Labels, scope: NotationScope) -> None:
    found = scope.env.get(name)
    if found is not None and found.kind == "dim" and scope.declared(found):
        scope.names.use(node, span, found)
        return
    labels.occurrences.setdefault(name, []).append(span)
    if name in labels.bindings:
        scope.names.use(node, span, labels.bindings[name])
        return
    binding = Binding(name, "label", span, node, labels.extent, scope.owner)
    labels.bindings[name] = binding
    scope.names.introduce(binding, node)


def _row(axis: ast.AxisRowVar, labels: Labels, scope: NotationScope) -> None:
    span = row_name_span(axis)
    found = scope.env.get(axis.name)
    if found is not None and found.kind == "row" and scope.declared(found):
        scope.names.use(axis, span, found)
    elif axis.name in labels.rows:
        scope.names.use(axis, span, labels.rows[axis.name])
    else:
        binding = Binding(axis.name, "label", span, axis, labels.extent, scope.owner)
        labels.rows[axis.name] = binding
        scope.names.introduce(binding, axis)


def row_name_span(axis: ast.AxisRowVar | ast.TypeAxisRowVar) -> Span:
    """The place of `r` in `..r..`."""
    return Span(axis.span.source, axis.span.start + 2, axis.span.end - 2)
