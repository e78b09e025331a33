"""What the builder functions share while one text is parsed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ocannl_lang.diagnostics.model import Collector
from ocannl_lang.source import Source, Span
from ocannl_lang.syntax import ast
from ocannl_lang.syntax.tokens import Token, name_text


@dataclass(slots=True)
class Context:
    """`docs` maps the start of a definition or parameter to the documentation before it; `parse_inner` parses the
    expression of an interpolation; `broken` holds the places of tokens that recovery made up to stand for a broken
    head of a definition.
    """

    source: Source
    text: str
    collector: Collector
    docs: dict[int, str]
    parse_inner: Callable[[Source, int, int, Collector], ast.Expr]
    module_doc: str | None = None
    broken: dict[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])

    def span(self, start: int, end: int) -> Span:
        return Span(self.source, start, end)

    def word(self, token: Token) -> str:
        return self.text[token[1] : token[2]]

    def ident(self, token: Token) -> ast.Ident:
        start, end = token[1], token[2]
        return ast.Ident(Span(self.source, start, end), name_text(self.text[start:end]))
