"""The tokens of a text as the parser reads them, those in the braces of strings included, with names of terminals."""

from __future__ import annotations

from ocannl_lang.diagnostics.model import Collector
from ocannl_lang.source import Source
from ocannl_lang.syntax import strings
from ocannl_lang.syntax.ast import Comment
from ocannl_lang.syntax.context import Context
from ocannl_lang.syntax.layout import lay_out
from ocannl_lang.syntax.machine import run
from ocannl_lang.syntax.parser import builders, parse_expression
from ocannl_lang.syntax.recovery import Recovery
from ocannl_lang.syntax.tables import END, load_tables
from ocannl_lang.syntax.tokens import Token, cut

Read = list[tuple[str, int, int]]


def read(text: str) -> tuple[Read, tuple[Comment, ...]]:
    """The tokens `(terminal, start, end)` in their final readings, and the comments. The text has no mistakes."""
    source = Source("highlighted.ocn", text)
    tokens, comments = _read(source, 0, len(text), "module")
    return sorted(tokens, key=lambda token: (token[1], -token[2])), comments


def _read(source: Source, start: int, end: int, goal: str) -> tuple[Read, tuple[Comment, ...]]:
    tables, collector = load_tables(), Collector()
    pieces = cut(source, start, end, collector)
    tokens = lay_out(source, pieces, collector)
    if goal != "module":
        tokens = [token for token in tokens if token.end > token.start]
    tokens.append(Token(tables.ids[END], end, end))
    context = Context(source, source.text, collector, pieces.docs, parse_expression)
    # The machine puts other readings of words into the list where the grammar asks for them.
    run(tables, tokens, goal, context, builders(), Recovery(context, tables, ()))
    assert not collector.diagnostics, [(d.message, d.span.line) for d in collector.diagnostics]
    found = [(tables.names[kind], first, last) for kind, first, last in tokens if last > first]
    for name, first, last in list(found):
        if name == "STRING":
            for piece in strings.split(source, first, last, collector):
                if piece.text is None:
                    found += _read(source, piece.start, piece.end, "interpolation")[0]
    return found, tuple(pieces.comments)
