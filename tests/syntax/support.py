"""Short ways to parse in tests."""

from __future__ import annotations

from ocannl_lang.diagnostics.model import Collector, Diagnostic
from ocannl_lang.source import Source
from ocannl_lang.syntax import ast
from ocannl_lang.syntax.parser import parse
from ocannl_lang.syntax.text import dump_node
from ocannl_lang.syntax.verify import verify


def parsed(text: str) -> tuple[ast.Module, list[Diagnostic]]:
    """The verified tree and the diagnostics, by place."""
    collector = Collector()
    module = parse(Source("t.ocn", text), collector)
    verify(module)
    return module, collector.sorted()


def tree(text: str) -> ast.Module:
    """The tree of a text without mistakes."""
    module, diagnostics = parsed(text)
    assert not diagnostics, [d.render() for d in diagnostics]
    return module


def expression(text: str) -> str:
    """The text form of an expression."""
    item = tree(f"let value = {text}\n").items[0]
    assert isinstance(item, ast.Let)
    return flat(item.value)


def statement(text: str) -> str:
    """The text form of one statement in a body, without its place."""
    body = "\n".join("    " + line for line in text.split("\n"))
    item = tree(f"fn f():\n{body}\n").items[0]
    assert isinstance(item, ast.FnDef)
    assert len(item.body) == 1
    return flat(item.body[0])


def definition(text: str) -> str:
    """The text form of one definition, without its place."""
    module = tree(text)
    assert len(module.items) == 1
    return flat(module.items[0])


def flat(node: object) -> str:
    """The text form of a node in one line, without places."""
    import re

    from ocannl_lang.syntax.text import _inline

    assert dump_node(node)
    return re.sub(r"\s+", " ", _inline(node))


def messages(text: str) -> list[tuple[str, int, str]]:
    """Code, line and message of each diagnostic."""
    return [(d.code, d.line, d.message) for d in parsed(text)[1]]


def repaired(text: str, diagnostic: Diagnostic) -> str:
    """The text after the fix of a diagnostic is applied."""
    assert diagnostic.fix is not None
    for edit in sorted(diagnostic.fix.edits, key=lambda e: -e.span.start):
        text = text[: edit.span.start] + edit.replacement + text[edit.span.end :]
    return text
