"""W0901: what is bound and never used."""

from __future__ import annotations

from ocannl_lang.diagnostics.model import Diagnostic, Edit, Fix
from ocannl_lang.names.bindings import Binding, Names
from ocannl_lang.names.scopes import ModuleScope
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast


def report_unused(shared: ModuleScope) -> None:
    """Warn about imports and about names of bodies that nothing reads.

    Silent are parameters, names of loops, what a signature introduces, names that start with `_`, and the top-level
    names of a module, which others may use. Of `let a, b = …` at least one has to be used.
    """
    names = shared.names
    used = _read(names)
    for b in names.bindings:
        if b.span is None or names.canonical(b) in used or b.name.startswith("_") or b.name in shared.mentioned:
            continue
        if b in shared.doubtful:
            continue
        if b.kind in ("import", "module") or (b.kind == "basis" and isinstance(b.node, ast.FromImport)):
            shared.collector.report(_unused_import(b, b.span))
        elif b.extent is not None and names.canonical(b) is b and _warned(b, names, used):
            shared.collector.report(_unused_local(b, b.span))


def _read(names: Names) -> set[Binding]:
    """The bindings that are read somewhere."""
    found: set[Binding] = set()
    for node, binding in names.uses.items():
        written = node in names.writes and binding.kind == "var"
        if node not in names.introductions and not written:
            found.add(names.canonical(binding))
    return found


def _warned(b: Binding, names: Names, used: set[Binding]) -> bool:
    match b.node:
        case ast.Let(names=idents) | ast.Var(names=idents):
            bound = [names.uses.get(ident) for ident in idents if ident.name != "_"]
            return b.kind in ("let", "var") and not any(o is not None and names.canonical(o) in used for o in bound)
        case ast.DimDecl() | ast.RowDecl() | ast.StateDecl():
            return True
        case _:
            return False


def _unused_import(b: Binding, span: Span) -> Diagnostic:
    what = f"`{b.name}` is imported and not used"
    return Diagnostic("W0901", what, span, "not used", fix=_remove_import(b))


def _remove_import(b: Binding) -> Fix:
    node = b.node
    assert isinstance(node, (ast.Import, ast.FromImport))
    whole = Fix("remove this import", (Edit(_line(node.span), ""),))
    if isinstance(node, ast.Import) or len(node.items) == 1:
        return whole
    index = next(i for i, item in enumerate(node.items) if (item.alias or item.name).span == b.span)
    item = node.items[index].span
    source = item.source
    if index + 1 < len(node.items):
        gap = Span(source, item.start, node.items[index + 1].span.start)
    else:
        gap = Span(source, node.items[index - 1].span.end, item.end)
    return Fix(f"do not import `{b.name}`", (Edit(gap, ""),))


def _line(span: Span) -> Span:
    """The span with the line ending after it."""
    text, end = span.source.text, span.end
    if text[end : end + 2] == "\r\n":
        end += 2
    elif text[end : end + 1] == "\n":
        end += 1
    return Span(span.source, span.start, end)


def _unused_local(b: Binding, span: Span) -> Diagnostic:
    fix = Fix(f"rename it to `_{b.name}`", (Edit(span, f"_{b.name}"),))
    help_text = "a leading `_` says that this is meant"
    return Diagnostic("W0901", f"`{b.name}` is not used", span, "not used", helps=(help_text,), fix=fix)
