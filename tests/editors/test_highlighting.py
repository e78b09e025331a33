"""Highlighting shows what the parser reads: in every program, the scopes of the TextMate grammar are those of the tokens."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from ocannl_lang.syntax import highlighting_terms
from ocannl_lang.syntax.highlighting import files, textmate
from ocannl_lang.syntax.highlighting_terms import SCOPES, check_tables
from tests.editors.textmate import Scopes, Tokeniser, all_patterns, compiled
from tests.editors.tokens import read

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = [ROOT / "tests/editors/sample.ocn", *sorted([*ROOT.glob("examples/*.ocn"), *ROOT.glob("stdlib/*.ocn")])]


@cache
def tokeniser() -> Tokeniser:
    return Tokeniser(textmate())


def scopes(text: str) -> list[Scopes]:
    return tokeniser().scopes(text)


def scope_of(text: str, part: str) -> str:
    """The innermost scope of the first `part` of `text`, without the language."""
    found = scopes(text)[text.index(part) :][: len(part)]
    assert len(set(found)) == 1, found
    return found[0][-1].removesuffix(".ocn") if found[0] else ""


def test_the_committed_files_are_those_that_the_grammar_gives():
    for name, text in files().items():
        committed = (ROOT / "editors" / name).read_text(encoding="utf-8")
        assert committed == text, f"{name} is out of date: run `python -m ocannl_lang.syntax.highlighting`"


def test_every_terminal_of_the_grammar_has_a_scope(monkeypatch: pytest.MonkeyPatch):
    check_tables()
    monkeypatch.delitem(highlighting_terms.SCOPES, "EXPECT")
    with pytest.raises(ValueError, match="EXPECT"):
        check_tables()


def test_the_patterns_mean_the_same_to_python_and_to_oniguruma():
    for pattern in all_patterns(textmate()):
        compiled(pattern)
        assert set(re.findall(r"\\([a-zA-Z])", pattern)) <= set("bdnstwWuUx"), pattern
        # Sets within sets and possessive repetition are read by one of the two only.
        assert not re.search(r"\[\[|&&|[*+?}]\+|\(\?[^:=!<]", re.sub(r"\\.", "", pattern)), pattern


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_scopes_are_those_of_the_tokens(path: Path):
    text = path.read_text(encoding="utf-8")
    found = scopes(text)
    tokens, comments = read(text)
    shown: list[str] = [""] * len(text)
    in_string = [False] * len(text)
    for comment in comments:
        kind = "comment.line.documentation" if comment.doc else "comment.line.number-sign"
        for i in range(comment.span.start, comment.span.end):
            assert any(scope == f"{kind}.ocn" for scope in found[i]), where(text, i, kind, found[i])
            shown[i] = "comment"
    for name, start, end in tokens:
        for i in range(start, end):
            shown[i] = SCOPES.get(name, "name")
            if name == "STRING":
                in_string[i] = True
            elif name != "NAME":
                assert found[i][-1:] == (f"{SCOPES[name]}.ocn",), where(text, i, SCOPES[name], found[i])
    for i, scope in enumerate(found):
        # Nothing else looks like a string, a comment, a number or a keyword.
        assert in_string[i] == any(part.startswith("string.") for part in scope) or text[i] == "\n", where(
            text, i, shown[i], scope
        )
        last = scope[-1] if scope else ""
        if last.startswith(("constant.numeric", "keyword", "storage", "constant.language", "comment")):
            assert last.startswith(shown[i] or "?"), where(text, i, shown[i], scope)


def test_the_sample_has_every_terminal():
    assert {name for name, _, _ in read(PROGRAMS[0].read_text(encoding="utf-8"))[0]} >= set(SCOPES)


def where(text: str, i: int, expected: str, found: Scopes) -> str:
    line = text.count("\n", 0, i) + 1
    return f"line {line}, {text.splitlines()[line - 1]!r} at {text[i : i + 12]!r}: {expected} expected, {found} found"


@pytest.mark.parametrize(
    ("text", "part", "scope"),
    [
        ("op dense[out: int](x):", "dense", "entity.name.function"),
        ("op dense[out: int](x):", "out", "variable.parameter"),
        ("op dense[out: int](x):", "int", "support.type"),
        ("op softmax{axes}(x) = x", "axes", "variable.parameter.slot"),
        ("    let y: [rows -> 3:rgb] = x", "rows", "variable.parameter.axis"),
        ("    let y: [rows -> 3:rgb] = x", "rgb", "entity.name.type.basis"),
        ("    let y: [rows] = rows2", "rows2", "variable.other"),
        ("let net = x", "net", "variable.other.definition"),
        ("    return {w: [n] = 0.} * x", "w", "entity.name.variable.parameter"),
        ("    return {w: [many] = 0.} * x", "many", "variable.parameter.axis"),
        ("    x = sum{i, j => i}(y)", "sum", "support.function.builtin"),
        ("    x = sum{i, j => i}(y)", "j", "variable.parameter.label"),
        ("    x = max{stride*o + k => o}(y)", "stride", "variable.other.static"),
        ("    x = softmax{i -> ...}[2.](y)", "softmax", "entity.name.function.call"),
        ("    x = f(size = 3)", "size", "variable.parameter"),
        ("    size = 3", "size", "variable.other"),
        ("    xs.append(sum)", "append", "entity.name.function.call"),
        ("    x = net.sum", "sum", "variable.other.property"),
        ("    for i in 0..len(x): f(i)", "len", "support.function.builtin"),
        ("    if training: f(i)", "training", "variable.language.builtin"),
        ("from init import normal", "normal", "variable.other.import"),
        ("from init import normal", "init", "entity.name.namespace"),
        ('    print("{loss:.3f}")', ".3f", "constant.other.placeholder"),
        ('    print("{loss:.3f}")', "loss", "variable.other"),
        ('    print("{{loss}}")', "{{", "constant.character.escape"),
        ("## the size of `x`", "`x`", "markup.inline.raw"),
    ],
)
def test_names_show_what_they_are(text: str, part: str, scope: str):
    assert scope_of(text, part) == scope


@pytest.mark.parametrize(
    "spoilt",
    [
        "let a = f(1, [2, {w: [n",
        "op f[a: int = (1(x):\n    return x",
        "let a = sum{i, j => (i",
        'let a = "not closed {f(',
        'let a = "not closed {f(}',
        "data a: f32[n",
        "from a import",
        "op f(x) ->",
        "let a",
    ],
)
def test_what_is_not_closed_ends_at_the_margin(spoilt: str):
    text = f"{spoilt}\nroutine step(x: f32) -> f32:\n    return x"
    assert scope_of(text, "routine") == SCOPES["ROUTINE"]
    assert scope_of(text, "step") == "entity.name.function"
    assert scopes(text)[text.rindex("return")] == (f"{SCOPES['RETURN']}.ocn",)
