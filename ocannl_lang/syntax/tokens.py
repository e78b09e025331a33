"""Cuts a text into tokens, with the patterns that the grammar gives to its terminals.

A token is `(kind, start, end)`: the number of its terminal and its half-open range in the text. Line ends come out as
tokens of the kind `LINE`, whose range ends where the next line's first token starts; `ocannl_lang.syntax.layout`
makes blocks of them. What is no token is reported and left out, or taken as what was meant.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from ocannl_lang.diagnostics.model import Collector, Diagnostic, Edit, Fix
from ocannl_lang.source import Source, Span
from ocannl_lang.syntax import signs, strings
from ocannl_lang.syntax.ast import Comment
from ocannl_lang.syntax.tables import Tables, load_tables

LINE = -1

# Words that some places use as keywords, with the terminals that the grammar has for them.
WORDS = {
    "main": "MAIN", "test": "TEST", "basis": "BASIS", "data": "DATA", "dim": "DIM", "row": "ROW", "state": "STATE",
    "forward": "FORWARD", "backward": "BACKWARD", "py": "_PY", "collapse": "_COLLAPSE", "index": "_INDEX", "_": "WILD",
    "max": "ASSIGN", "min": "ASSIGN",
}  # fmt: skip
PRECISIONS = ("f64", "f32", "bf16", "f16", "f8e5m2", "f8e4m3", "i64", "i32", "u32x4", "u32", "u16", "u8")
ASSIGN_WORDS = ("and", "or")


class Token(NamedTuple):
    kind: int
    start: int
    end: int


@dataclass(slots=True)
class Cut:
    """What a text was cut into.

    `spoilt` are ranges in which a mistake was reported that may cause others, `torn` the ends of strings that are not
    closed. `docs` maps the start of a token to the documentation that stands on the lines before it, `module_doc` is
    the one at the top of the file.
    """

    tokens: list[Token]
    comments: list[Comment] = field(default_factory=list[Comment])
    docs: dict[int, str] = field(default_factory=dict[int, str])
    spoilt: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    torn: set[int] = field(default_factory=set[int])
    module_doc: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """The grammar's terminals, ready for cutting."""

    ids: dict[str, int]
    master: re.Pattern[str]
    groups: tuple[int, ...]
    keywords: dict[str, int]
    words: dict[str, tuple[int, re.Pattern[str] | None]]


# Kinds of groups of the master pattern that are no terminal.
_GROUP_LINE, _GROUP_COMMENT, _GROUP_TEXT, _GROUP_ODD = -1, -2, -3, -4

_LINE = r"(?:\r?\n[ \t\f]*(?:\#[^\n]*)?)+"
_TOP = re.compile(r"\ufeff?(?:[ \t\f]*(?:\#[^\n]*)?\r?\n)*[ \t\f]*(?:\#[^\n]*\Z)?")


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    return make_lexicon(load_tables())


def make_lexicon(tables: Tables) -> Lexicon:
    """Puts the patterns of the terminals into one, names and the commonest signs first."""
    ids = tables.ids
    literals = {text: name for name, is_literal, text in tables.patterns if is_literal}
    keywords = {text: ids[name] for text, name in literals.items() if text.isidentifier()}
    keywords.update(dict.fromkeys(PRECISIONS, ids["PREC"]))
    patterns = {name: text for name, is_literal, text in tables.patterns if not is_literal}
    words: dict[str, tuple[int, re.Pattern[str] | None]] = {word: (kind, None) for word, kind in keywords.items()}
    words.update({word: (ids[name], re.compile(patterns[name])) for word, name in WORDS.items()})
    words.update({word: (ids["ASSIGN"], re.compile(patterns["ASSIGN"])) for word in ASSIGN_WORDS})
    signs = sorted((text for text in literals if not text.isidentifier()), key=lambda text: (-len(text), text))
    # A sign that is the beginning of a longer one stands after it; those of one character that begin no other go first.
    alone = [t for t in "(),]}{;[^" if t in signs]
    regular = [name for name in ("ASSIGN", "EINSUM", "COMPARE", "MULOP", "ROWVAR") if name in patterns]
    longer = [t for t in signs if t not in alone]
    groups: list[int] = [0]
    parts: list[str] = []

    def add(kind: int, pattern: str) -> None:
        groups.append(kind)
        parts.append(f"({pattern})")

    add(ids["NAME"], patterns["NAME"])
    for text in alone:
        add(ids[literals[text]], re.escape(text))
    add(_GROUP_LINE, _LINE)
    add(ids["FLOAT"], patterns["FLOAT"])
    add(ids["INT"], patterns["INT"])
    add(ids["_RESULT"], "=>")
    add(ids["_ARROW"], "->")
    for name in regular:
        if name != "MULOP":
            add(ids[name], patterns[name])
    for text in longer:
        if len(text) > 1:
            add(ids[literals[text]], re.escape(text))
    add(ids["MULOP"], patterns["MULOP"])
    add(_GROUP_ODD, r"\*\.(?=[0-9])|\.(?=[0-9])|\|\|")
    for text in longer:
        if len(text) == 1:
            add(ids[literals[text]], re.escape(text))
    add(_GROUP_TEXT, r'"(?!"")[^"\\\n{}]*"')
    add(_GROUP_COMMENT, r"\#[^\n]*")
    master = re.compile(r"[ \t\f]*(?:\\\r?\n[ \t\f]*)*(?:" + "|".join(parts) + ")")
    return Lexicon(ids, master, tuple(groups), keywords, words)


def cut(source: Source, start: int, end: int, collector: Collector) -> Cut:
    """The tokens of `source.text[start:end]`."""
    lex = lexicon()
    text = source.text
    groups, words = lex.groups, lex.words
    ids = lex.ids
    name_kind, int_kind, float_kind, string_kind = ids["NAME"], ids["INT"], ids["FLOAT"], ids["STRING"]
    keywords = lex.keywords
    tokens: list[Token] = []
    result = Cut(tokens)
    # Calling the class itself takes twice the time.
    make, add = tuple.__new__, tokens.append
    position = start
    if start == 0:
        top: re.Match[str] = _TOP.match(text, 0, end)  # pyright: ignore[reportAssignmentType]
        position = top.end()
        _comments(source, 0, position, result, at_top=True)
        add(Token(LINE, 0, position))
    master: Any = lex.master  # `scanner` is known to every Python, and to no type checker
    # A scanner goes on by itself where it stopped; it is replaced where a token ends elsewhere than its pattern says.
    step = master.scanner(text, position, end).match
    while position < end:
        m = step()
        if m is None:
            position = _odd(source, position, end, result, collector, lex)
            step = master.scanner(text, position, end).match
            continue
        group: int = m.lastindex  # pyright: ignore[reportAssignmentType]
        kind = groups[group]
        first, position = m.span(group)
        if kind == name_kind:
            word = text[first:position]
            special = words.get(word)
            if special is not None:
                kind, pattern = special
                if pattern is not None:
                    found = pattern.match(text, first, end)
                    if found is None:
                        kind = keywords.get(word, name_kind)
                    elif found.end() != position:
                        position = found.end()
                        step = master.scanner(text, position, end).match
            elif not word.isascii():
                position = _long_name(source, first, position, end, collector)
                step = master.scanner(text, position, end).match
        elif kind in (int_kind, float_kind):
            stop = _number(source, kind == int_kind, first, position, end, collector)
            if stop != position:
                position = stop
                step = master.scanner(text, position, end).match
        elif kind < 0:
            if kind == _GROUP_LINE:
                kind = LINE
                if "#" in m[group]:
                    _comments(source, first, position, result, at_top=False)
            elif kind == _GROUP_COMMENT:
                _comment(source, first, position, result)
                continue
            elif kind == _GROUP_TEXT:
                kind = string_kind
            else:
                position = _odd(source, first, end, result, collector, lex)
                step = master.scanner(text, position, end).match
                continue
        add(make(Token, (kind, first, position)))
    return result


# ---------------------------------------------------------------- comments


def _comment(source: Source, start: int, end: int, result: Cut) -> None:
    text = source.text[start:end].rstrip("\r")
    is_doc = text.startswith("##") and not text.startswith("###")
    result.comments.append(Comment(Span(source, start, start + len(text)), text, is_doc))


def _comments(source: Source, start: int, end: int, result: Cut, *, at_top: bool) -> None:
    """The comments that have lines of their own, and the documentation among them.

    The last unbroken run of `##` lines documents the token that follows. At the top of the file the first one is the
    module's where a blank line follows it.
    """
    run: list[str] = []
    is_broken = False
    offset = start
    lines = source.text[start:end].split("\n")
    for i, line in enumerate(lines):
        is_next = i == len(lines) - 1 and end < len(source.text)
        body = line.lstrip(" \t\f\ufeff")
        if body.startswith("#"):
            at = offset + len(line) - len(body)
            _comment(source, at, at + len(body), result)
            comment = result.comments[-1]
            if comment.doc:
                run = [] if is_broken else run
                is_broken = False
                run.append(comment.text[2:].removeprefix(" "))
        elif not is_next and (i > 0 or at_top) and run:
            is_broken = True
            if at_top and result.module_doc is None:
                result.module_doc = "\n".join(run)
                run = []
        offset += len(line) + 1
    if run:
        result.docs[end] = "\n".join(run)


# ---------------------------------------------------------------- literals


def _number(source: Source, is_int: bool, start: int, end: int, limit: int, collector: Collector) -> int:
    """Checks the spelling of a number; returns where it ends, with what was run together with it."""
    text = source.text
    tail = end
    while tail < limit and (text[tail].isalnum() or text[tail] == "_"):
        tail += 1
    written = text[start:tail]
    span = Span(source, start, tail)
    if tail > end:
        base = re.fullmatch(r"0([bBoO])([0-9_]+)|0X([0-9a-fA-F_]+)", written)
        if base is not None:
            _bad(collector, span, f"`{written}` is no number", "write it in decimal or as `0x…`", _rewritten(written))
        elif is_int and text[end:tail].isidentifier() and not text[start:end].startswith("0x"):
            helps = f"a name cannot start with a digit; put `*` between `{text[start:end]}` and `{text[end:tail]}` for a product"
            _bad(collector, span, f"`{written}` is neither a number nor a name", helps, None)
        else:
            _bad(collector, span, f"`{written}` is no number", "", None)
    elif "_" in written and (
        "__" in written or written.rstrip(".").endswith("_") or "_." in written or "x_" in written or "_e" in written
    ):
        _bad(collector, span, f"`{written}` is no number", "`_` stands between two digits", None)
    elif written == "0x":
        _bad(collector, span, "`0x` lacks its digits", "", None)
    elif len(written) > 4000:
        _bad(collector, span, "this number is too long", "", None)
    elif not is_int and float(written.replace("_", "")) in (float("inf"),):
        _bad(collector, span, f"`{written}` is too large for a float", "", None)
    return tail


def _rewritten(written: str) -> str | None:
    try:
        return hex(int(written, 0))
    except ValueError:
        return None


def _bad(
    collector: Collector, span: Span, message: str, helps: str, replacement: str | None, code: str = "E0104"
) -> None:
    fix = None if replacement is None else Fix(f"write `{replacement}`", (Edit(span, replacement),))
    collector.report(Diagnostic(code, message, span, helps=(helps,) if helps else (), fix=fix))


def _long_name(source: Source, start: int, end: int, limit: int, collector: Collector) -> int:
    """The end of a name with letters beyond ASCII, which may go on with combining marks."""
    text = source.text
    while end < limit and not text[end].isascii() and text[start : end + 1].isidentifier():
        end += 1
    while end < limit and (text[end].isalnum() or text[end] == "_") and text[start : end + 1].isidentifier():
        end += 1
    if not text[start:end].isidentifier():
        span = Span(source, start, end)
        collector.report(
            Diagnostic(
                "E0102", f"`{text[start:end]}` is no name", span, notes=("names are made of letters, digits and `_`",)
            )
        )
    return end


def name_text(text: str) -> str:
    """A name as it is compared: composed and decomposed letters are one."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


# ---------------------------------------------------------------- what the master pattern does not match


def _odd(source: Source, position: int, end: int, result: Cut, collector: Collector, lex: Lexicon) -> int:
    """A string with braces or escapes, a misspelt literal, or a character that has no place here; returns where to go
    on.
    """
    text = source.text
    while position < end and text[position] in " \t\f":
        position += 1
    if position >= end:
        return end
    character = text[position]
    last = result.tokens[-1] if result.tokens else None
    if last is not None and last.end == position and text[last.start : position + 1].isidentifier():
        # A combining mark goes on with the name before it.
        stop = _long_name(source, last.start, position, end, collector)
        result.tokens[-1] = Token(lex.ids["NAME"], last.start, stop)
        return stop
    if character == '"':
        stop, is_closed = strings.scan(source, position, end, collector)
        if not is_closed:
            result.torn.add(stop)
            # A comma that it has swallowed is missed at the beginning of the next line.
            following = re.compile(r"\s*").match(text, stop)
            result.spoilt.append((position, following.end() if following is not None else stop))
        result.tokens.append(Token(lex.ids["STRING"], position, stop))
        return stop
    if character == "\ufeff" and position == 0:
        return position + 1
    if character == "*" and text.startswith("*.", position):
        return _product_before_digit(source, position, end, result, collector, lex)
    if character == ".":
        return _float_without_zero(source, position, end, result, collector, lex)
    if character == "\\":
        _unexpected(source, position, collector, "a backslash continues a line only at its end")
        _spoil(text, position, result)
        return position + 1
    if character == "\r":
        return position + 1
    if character == "'":
        return _single_quotes(source, position, end, result, collector, lex)
    piece = next((p for p in ("&&", "||") if text.startswith(p, position)), character)
    hint, replacement, kind = signs.FOREIGN.get(piece, ("", None, None))
    span = Span(source, position, position + len(piece))
    fix = None if replacement is None else Fix(f"write `{replacement}`", (Edit(span, replacement),))
    what = f"`{piece}`" if piece.isprintable() and not piece.isspace() else f"the character U+{ord(piece):04X}"
    collector.report(Diagnostic("E0102", f"unexpected {what}", span, helps=(hint,) if hint else (), fix=fix))
    if kind is not None:
        result.tokens.append(Token(lex.ids[kind], position, position + len(piece)))
    else:
        _spoil(text, position, result)
    return position + len(piece)


def _spoil(text: str, position: int, result: Cut) -> None:
    """Something was left out here: what the rest of the line lacks is no mistake of its own."""
    newline = text.find("\n", position)
    result.spoilt.append((position, len(text) if newline < 0 else newline))


def _unexpected(source: Source, position: int, collector: Collector, hint: str) -> None:
    span = Span(source, position, position + 1)
    collector.report(Diagnostic("E0102", f"unexpected `{source.text[position]}`", span, helps=(hint,)))


def _product_before_digit(
    source: Source, position: int, end: int, result: Cut, collector: Collector, lex: Lexicon
) -> int:
    """`*.5`, which is `*.` and 5 or `*` and .5."""
    stop = position + 2
    while stop < end and (source.text[stop].isdigit() or source.text[stop] == "_"):
        stop += 1
    digits = source.text[position + 2 : stop]
    span = Span(source, position, stop)
    fix = Fix(f"write `*. 0.{digits}`", (Edit(span, f"*. 0.{digits}"),))
    message = f"`*.{digits}` can be read in two ways"
    helps = (
        f"write `*. 0.{digits}` for the pointwise product with 0.{digits}, or `*. {digits}` for that with {digits}",
    )
    collector.report(Diagnostic("E0104", message, span, helps=helps, fix=fix))
    result.tokens.append(Token(lex.ids["MULOP"], position, position + 2))
    result.tokens.append(Token(lex.ids["INT"], position + 2, stop))
    return stop


def _float_without_zero(
    source: Source, position: int, end: int, result: Cut, collector: Collector, lex: Lexicon
) -> int:
    stop = position + 1
    while stop < end and (source.text[stop].isalnum() or source.text[stop] == "_"):
        stop += 1
    written = source.text[position:stop]
    span = Span(source, position, stop)
    fix = Fix(f"write `0{written}`", (Edit(span, f"0{written}"),))
    collector.report(
        Diagnostic(
            "E0104", f"`{written}` lacks a digit before the point", span, helps=(f"write `0{written}`",), fix=fix
        )
    )
    result.tokens.append(Token(lex.ids["FLOAT"], position, stop))
    return stop


def _single_quotes(source: Source, position: int, end: int, result: Cut, collector: Collector, lex: Lexicon) -> int:
    m = re.compile(r"'''(?:[^\\]|\\.)*?'''|'(?:[^'\\\n]|\\.)*'", re.S).match(source.text, position, end)
    if m is None:
        _unexpected(source, position, collector, 'strings stand in double quotes: `"text"`')
        _spoil(source.text, position, result)
        return position + 1
    span = Span(source, position, m.end())
    inner = m[0].strip("'")
    fix = None if '"' in inner or "\n" in inner else Fix("use double quotes", (Edit(span, f'"{inner}"'),))
    collector.report(Diagnostic("E0104", "strings stand in double quotes", span, helps=('write `"text"`',), fix=fix))
    result.tokens.append(Token(lex.ids["STRING"], position, m.end()))
    return m.end()
