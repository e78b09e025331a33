"""Text to syntax tree: `parse` is the stage's one public function.

A text is cut into tokens (`tokens.py`), these are laid out in blocks (`layout.py`), and the machine (`machine.py`)
runs the grammar's tables (`tables.py`) over them, calling the builder functions (`build_*.py`) on the way.
`contextual.py` decides between readings of a word, `recovery.py` goes on after a mistake, `messages.py` finds the
words for it.
"""

from __future__ import annotations

from functools import lru_cache

from ocannl_lang.diagnostics.model import Collector
from ocannl_lang.source import Source, Span
from ocannl_lang.syntax import ast, build_expressions, build_notation, build_statements
from ocannl_lang.syntax.context import Context
from ocannl_lang.syntax.layout import lay_out
from ocannl_lang.syntax.machine import Build, run
from ocannl_lang.syntax.recovery import Recovery
from ocannl_lang.syntax.tables import END, Tables, load_tables
from ocannl_lang.syntax.tokens import LINE, Token, cut


def parse(source: Source, collector: Collector) -> ast.Module:
    """The tree of `source`. Mistakes are reported, and what follows them is parsed; no text raises."""
    tables = load_tables()
    pieces = cut(source, 0, len(source.text), collector)
    tokens = lay_out(source, pieces, collector)
    context = Context(source, source.text, collector, pieces.docs, parse_expression)
    end = tokens[-1].end if tokens else 0
    tokens.append(Token(tables.ids[END], end, end))
    items = run(tables, tokens, "module", context, builders(), Recovery(context, tables, tuple(pieces.spoilt)))
    doc = pieces.module_doc
    if doc is None:
        first = items[0].span.start if items else len(source.text)
        if not items or isinstance(items[0], (ast.Import, ast.FromImport, ast.BasisDef)):
            doc = pieces.docs.get(first)
    comments = tuple(pieces.comments)
    return ast.Module(Span(source, 0, len(source.text)), source, items, comments, doc)


def parse_expression(source: Source, start: int, end: int, collector: Collector) -> ast.Expr:
    """The expression at `start:end`, as it stands in the braces of a string."""
    tables = load_tables()
    pieces = cut(source, start, end, collector)
    tokens = [token for token in lay_out(source, pieces, collector) if token.kind not in layout_kinds(tables)]
    if not tokens:
        return ast.ErrorExpr(Span(source, start, end))
    context = Context(source, source.text, collector, {}, parse_expression)
    tokens.append(Token(tables.ids[END], tokens[-1].end, tokens[-1].end))
    return run(tables, tokens, "interpolation", context, builders(), Recovery(context, tables, tuple(pieces.spoilt)))


@lru_cache(maxsize=1)
def builders() -> tuple[Build | None, ...]:
    """The builder function of each rule, by number."""
    table: dict[str, Build] = {**build_expressions.BUILDERS, **build_notation.BUILDERS, **build_statements.BUILDERS}
    return tuple(table.get(rule.name) for rule in load_tables().rules)


def layout_kinds(tables: Tables) -> frozenset[int]:
    return frozenset((LINE, tables.ids["_NEWLINE"], tables.ids["INDENT"], tables.ids["DEDENT"]))
