"""String literals: where they end, their escapes, and the expressions inside their braces.

`"text {expr:format}"`: `{{` and `}}` stand for braces, double quotes may occur inside the braces one level deep, and
`\"\"\"` makes a string of several lines.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ocannl_lang.diagnostics.model import Collector, Diagnostic, Edit, Fix
from ocannl_lang.source import Source, Span

_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "f": "\f", "v": "\v",
    "\\": "\\", '"': '"', "'": "'", "{": "{", "}": "}", "\n": "",
}  # fmt: skip
_DEFINITION = re.compile(
    r"\n(?=(?:import|from|let|fn|op|cd|routine|extern)\b|(?:main|test|data|basis)\b[ \t]*[\w(\"])", re.ASCII
)
_FORMAT = re.compile(r"(?:.?[<>=^])?[-+ ]?z?#?0?[0-9]*[_,]?(?:\.[0-9]+)?[bcdeEfFgGnosxX%]?", re.S)


class Piece(NamedTuple):
    """A part of a string: plain `text`, or (where `text` is None) the expression at `start:end` with its format, in
    braces that end at `stop`.
    """

    text: str | None
    start: int
    end: int
    stop: int
    format: str


def scan(source: Source, start: int, limit: int, collector: Collector) -> tuple[int, bool]:
    """Where the string that starts at `start` ends, and whether it is closed. One that is not is reported, and ends
    with its line.
    """
    text = source.text
    quotes = '"""' if text.startswith('"""', start) else '"'
    position = start + len(quotes)
    while position < limit:
        character = text[position]
        if text.startswith(quotes, position):
            return position + len(quotes), True
        if character == "\\":
            position += 2
        elif character == "\n" and quotes == '"':
            break
        elif character == "{":
            position = position + 2 if text.startswith("{{", position) else _skip_braces(text, position, limit, quotes)
        else:
            position += 1
    return _unclosed(source, start, limit, quotes, collector), False


def _skip_braces(text: str, position: int, limit: int, quotes: str) -> int:
    """The place after the `}` that closes the brace at `position`; one place on where nothing closes it."""
    depth = 0
    at = position
    while at < limit:
        character = text[at]
        if character in "{[(":
            depth += 1
        elif character in "}])":
            depth -= 1
            if depth == 0:
                return at + 1
        elif character == '"' and not (quotes == '"""' and text.startswith('"""', at)):
            inner = _INNER.match(text, at, limit)
            if inner is None:
                break
            at = inner.end()
            continue
        elif character == '"' or (character == "\n" and quotes == '"'):
            break
        at += 1
    return position + 1


_INNER = re.compile(r'"(?:[^"\\\n]|\\.)*"')


def _unclosed(source: Source, start: int, limit: int, quotes: str, collector: Collector) -> int:
    text = source.text
    if quotes == '"':
        newline = text.find("\n", start, limit)
        stop = limit if newline < 0 else newline
    else:
        following = _DEFINITION.search(text, start, limit)
        stop = limit if following is None else following.start()
    stop = max(start + len(quotes), start + len(text[start:stop].rstrip()))
    span = Span(source, start, min(stop, limit))
    fix = Fix(f"close it with `{quotes}`", (Edit(Span(source, span.end, span.end), quotes),))
    helps = ('a string of several lines stands in `"""`',) if quotes == '"' else ()
    shown = Span(source, start, start + len(quotes))
    collector.report(Diagnostic("E0104", "this string is not closed", shown, helps=helps, fix=fix))
    return span.end


def split(source: Source, start: int, end: int, collector: Collector) -> list[Piece]:
    """The pieces of the string literal at `start:end`, with escapes resolved; bad ones are reported."""
    text = source.text
    quote = text[start]
    size = 3 if text.startswith(quote * 3, start) and end - start >= 6 else 1
    is_closed = end - start >= 2 * size and text.endswith(quote * size, start + size, end)
    position, stop = start + size, end - size if is_closed else end
    body = text[position:stop]
    if "\\" not in body and "{" not in body and "}" not in body:
        return [Piece(body, position, stop, stop, "")] if body else []
    pieces: list[Piece] = []
    plain: list[str] = []
    plain_start = position
    quotes = quote * size
    while position < stop:
        character = text[position]
        if character == "\\":
            piece, position = _escape(source, position, stop, collector)
            plain.append(piece)
        elif character in "{}" and text.startswith(character * 2, position) and position + 1 < stop:
            plain.append(character)
            position += 2
        elif character == "{":
            if plain:
                pieces.append(Piece("".join(plain), plain_start, position, position, ""))
                plain = []
            position = _interpolation(source, position, stop, quotes, pieces, collector)
            plain_start = position
        else:
            if character == "}":
                _report(
                    collector,
                    source,
                    position,
                    position + 1,
                    "a single `}` in a string",
                    "write `}}` for a brace",
                    "}}",
                )
            plain.append(character)
            position += 1
    if plain:
        pieces.append(Piece("".join(plain), plain_start, stop, stop, ""))
    return pieces


def _escape(source: Source, position: int, stop: int, collector: Collector) -> tuple[str, int]:
    text = source.text
    follower = text[position + 1 : min(position + 2, stop)]
    digits = {"x": 2, "u": 4, "U": 8}.get(follower)
    if digits is not None:
        written = text[position + 2 : min(position + 2 + digits, stop)]
        if (
            len(written) == digits
            and all(c in "0123456789abcdefABCDEF" for c in written)
            and int(written, 16) < 0x110000
        ):
            return chr(int(written, 16)), position + 2 + digits
        message = f"`\\{follower}` needs {digits} hexadecimal digits"
        _report(collector, source, position, position + 2, message, "", None)
        return "", position + 2
    if follower == "\r" and text.startswith("\n", position + 2):
        return "", position + 3
    if follower in _ESCAPES and follower:
        return _ESCAPES[follower], position + 2
    end = min(position + 2, stop)
    message = f"`{text[position:end]}` is no escape"
    _report(collector, source, position, end, message, "write `\\\\` for a backslash", "\\\\" + follower)
    return text[position:end], max(end, position + 1)


def _interpolation(
    source: Source, position: int, stop: int, quotes: str, pieces: list[Piece], collector: Collector
) -> int:
    """Adds the piece for the brace at `position`; returns the place after it."""
    text = source.text
    after = _skip_braces(text, position, stop, quotes)
    if after == position + 1:
        _report(
            collector,
            source,
            position,
            position + 1,
            "this `{` in a string is not closed",
            "write `{{` for a brace",
            "{{",
        )
        pieces.append(Piece("{", position, position + 1, position + 1, ""))
        return position + 1
    inner_start, inner_end = position + 1, after - 1
    colon = _format_colon(text, inner_start, inner_end)
    form = ""
    if colon is not None:
        form = text[colon + 1 : inner_end]
        inner_end = colon
        if not _FORMAT.fullmatch(form):
            message = f"`{form}` is no format"
            _report(
                collector,
                source,
                colon + 1,
                after - 1,
                message,
                "formats are those of Python, such as `.3f` or `>8`",
                None,
            )
            form = ""
    if not text[inner_start:inner_end].strip():
        _report(
            collector,
            source,
            position,
            after,
            "there is no expression in these braces",
            "write `{{` and `}}` for braces",
            None,
        )
        pieces.append(Piece("", position, after, after, ""))
        return after
    pieces.append(Piece(None, inner_start, inner_end, after, form))
    return after


def _format_colon(text: str, start: int, end: int) -> int | None:
    """The place of the `:` that begins a format: outside of brackets and inner strings."""
    depth = 0
    at = start
    while at < end:
        character = text[at]
        if character in "{[(":
            depth += 1
        elif character in "}])":
            depth -= 1
        elif character == '"':
            inner = _INNER.match(text, at, end)
            at = inner.end() if inner is not None else at + 1
            continue
        elif character == ":" and depth == 0:
            return at
        at += 1
    return None


def _report(
    collector: Collector, source: Source, start: int, end: int, message: str, helps: str, replacement: str | None
) -> None:
    span = Span(source, start, end)
    fix = None if replacement is None else Fix(f"write `{replacement}`", (Edit(span, replacement),))
    collector.report(Diagnostic("E0104", message, span, helps=(helps,) if helps else (), fix=fix))
