"""Diagnostics as a terminal shows them: a title, excerpts with underlines and labels, notes and helps."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from ocannl_lang.diagnostics.model import Diagnostic
from ocannl_lang.source import Source, Span

_TAB = 4
# Lines between two shown ones are shown themselves where they are no more than these.
_SHORT_GAP = 1


@dataclass(frozen=True, slots=True)
class _Mark:
    """An underline in one line, in columns of the terminal from 0, with its label."""

    line: int
    start: int
    end: int
    text: str
    is_primary: bool


@dataclass(frozen=True, slots=True)
class _Paint:
    """Wraps pieces of text in escape sequences, or leaves them as they are."""

    on: bool
    severity: str

    def title(self, text: str) -> str:
        return self._wrap("1;33" if self.severity == "warning" else "1;31", text)

    def bold(self, text: str) -> str:
        return self._wrap("1", text)

    def primary(self, text: str) -> str:
        return self._wrap("33" if self.severity == "warning" else "31", text)

    def frame(self, text: str) -> str:
        return self._wrap("34", text)

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and text else text


def render_text(diagnostic: Diagnostic, *, color: bool = False) -> str:
    """The whole message, without a line end after its last line."""
    paint = _Paint(color, diagnostic.severity)
    files = _marks_by_file(diagnostic)
    gutter = max((len(str(m.line)) for _, marks in files for m in marks), default=1)
    bar = " " * gutter + " " + paint.frame("│")
    title = paint.title(f"{diagnostic.severity}[{diagnostic.code}]") + paint.bold(f": {diagnostic.message}")
    lines = [title]
    for i, (source, marks) in enumerate(files):
        place = diagnostic.span if i == 0 else _first_label(diagnostic, source)
        if place.start == place.end == 0 and len(marks) <= 1:
            # about the file as a whole: no line of it says more
            lines.append(" " * gutter + " " + paint.frame("┌─") + f" {source.path}")
            lines.append(bar)
            continue
        line, column = source.position(place.start)
        lines.append(" " * gutter + " " + paint.frame("┌─") + f" {source.path}:{line}:{column}")
        lines.append(bar)
        lines.extend(_excerpt(source, marks, gutter, bar, paint))
        lines.append(bar)
    lead = " " * gutter + " " + paint.frame("=") + " "
    for note in diagnostic.notes:
        lines.extend(_hanging(note, lead, gutter))
    for text in diagnostic.helps:
        lines.extend(_hanging(f"{paint.bold('help')}: {text}", lead, gutter))
    if not diagnostic.notes and not diagnostic.helps:
        lines.pop()
    return "\n".join(line.rstrip() for line in lines)


def _hanging(text: str, lead: str, gutter: int) -> Iterable[str]:
    first, *more = text.split("\n")
    yield lead + first
    for line in more:
        yield " " * (gutter + 3) + line


def _first_label(diagnostic: Diagnostic, source: Source) -> Span:
    return next(label.span for label in diagnostic.labels if label.span.source.path == source.path)


# ---------------------------------------------------------------- marks


def _marks_by_file(diagnostic: Diagnostic) -> list[tuple[Source, list[_Mark]]]:
    """The underlines of each file: that of the primary place first, the others in the order of their labels."""
    files: dict[str, tuple[Source, list[_Mark]]] = {}
    places = [(diagnostic.span, diagnostic.label, True)]
    places += [(label.span, label.text, False) for label in diagnostic.labels]
    for span, text, is_primary in places:
        _, marks = files.setdefault(span.source.path, (span.source, []))
        marks.extend(_marks(span, text, is_primary))
    return list(files.values())


def _marks(span: Span, text: str, is_primary: bool) -> Iterable[_Mark]:
    """One underline for a place in one line; for one of several lines those of its first and last line, the label at
    the last.
    """
    source = span.source
    start, end = span.start, span.end
    while end > start and source.text[end - 1] in " \t\r\n":
        end -= 1
    first_line, first_column = source.position(start)
    last_line, last_column = source.position(end)
    if first_line == last_line:
        yield _mark(source, first_line, first_column, last_column, text, is_primary)
        return
    yield _mark(source, first_line, first_column, len(source.line(first_line)) + 1, "", is_primary)
    content = source.line(last_line)
    indentation = len(content) - len(content.lstrip())
    yield _mark(source, last_line, min(indentation + 1, last_column - 1), last_column, text, is_primary)


def _mark(source: Source, line: int, start: int, end: int, text: str, is_primary: bool) -> _Mark:
    content = source.line(line)
    left = display_width(content[: start - 1]) + max(0, start - 1 - len(content))
    right = max(left + 1, display_width(content[: end - 1]))
    return _Mark(line, left, right, text, is_primary)


# ---------------------------------------------------------------- excerpts


def _excerpt(source: Source, marks: list[_Mark], gutter: int, bar: str, paint: _Paint) -> Iterable[str]:
    before = 0
    for line in sorted({m.line for m in marks}):
        if before and 1 < line - before <= _SHORT_GAP + 1:
            for between in range(before + 1, line):
                yield _numbered(source, between, gutter, paint)
        elif before and line - before > 1:
            yield " " * gutter + " " + paint.frame("·")
        yield _numbered(source, line, gutter, paint)
        for below in _underlines([m for m in marks if m.line == line], paint):
            yield f"{bar} {below}"
        before = line


def _numbered(source: Source, line: int, gutter: int, paint: _Paint) -> str:
    return paint.frame(f"{line:>{gutter}} │") + f" {expand(source.line(line))}"


def _underlines(marks: list[_Mark], paint: _Paint) -> Iterable[str]:
    """The lines under one line of text: underlines, the last label beside them, the others below on stems."""
    width = max(m.end for m in marks)
    signs = [" "] * width
    primaries = [False] * width
    for m in sorted(marks, key=lambda m: m.is_primary):
        for column in range(m.start, m.end):
            signs[column] = "^" if m.is_primary else "-"
            primaries[column] = m.is_primary
    labelled = sorted((m for m in marks if m.text), key=lambda m: (m.start, m.is_primary))
    beside = labelled[-1] if labelled and labelled[-1].end == width and "\n" not in labelled[-1].text else None
    if beside is not None and any(m.start == beside.start for m in labelled[:-1]):
        beside = None
    top = _painted(signs, primaries, paint)
    yield f"{top} {_label(beside, paint)}" if beside is not None else top
    hanging = [m for m in labelled if m is not beside]
    if not hanging:
        return
    yield _stems(hanging, paint)
    while hanging:
        m = hanging.pop()
        left = [other for other in hanging if other.start < m.start]
        for text in m.text.split("\n"):
            stems = _stems(left, paint)
            yield stems + " " * (m.start - _stem_width(left)) + _label_text(text, m, paint)


def _stems(marks: list[_Mark], paint: _Paint) -> str:
    pieces: list[str] = []
    column = 0
    for start in sorted({m.start for m in marks}):
        is_primary = any(m.is_primary for m in marks if m.start == start)
        pieces.append(" " * (start - column) + (paint.primary("│") if is_primary else paint.frame("│")))
        column = start + 1
    return "".join(pieces)


def _stem_width(marks: list[_Mark]) -> int:
    return max((m.start + 1 for m in marks), default=0)


def _label(mark: _Mark, paint: _Paint) -> str:
    return _label_text(mark.text, mark, paint)


def _label_text(text: str, mark: _Mark, paint: _Paint) -> str:
    return paint.primary(text) if mark.is_primary else paint.frame(text)


def _painted(signs: list[str], primaries: list[bool], paint: _Paint) -> str:
    pieces: list[str] = []
    for (sign, is_primary), run in groupby(zip(signs, primaries)):
        text = sign * len(list(run))
        pieces.append(text if sign == " " else paint.primary(text) if is_primary else paint.frame(text))
    return "".join(pieces)


# ---------------------------------------------------------------- widths


def expand(text: str) -> str:
    """A line as it is shown: tabs as spaces up to the next multiple of four, control characters replaced."""
    pieces: list[str] = []
    column = 0
    for character in text:
        piece = _shown(character, column)
        pieces.append(piece)
        column += sum(map(_width, piece))
    return "".join(pieces)


def display_width(text: str) -> int:
    """The number of columns that a terminal needs for `text`, which starts a line."""
    if text.isascii() and text.isprintable():
        return len(text)
    return sum(map(_width, expand(text)))


def _shown(character: str, column: int) -> str:
    if character == "\t":
        return " " * (_TAB - column % _TAB)
    return "\ufffd" if unicodedata.category(character) in ("Cc", "Cs") else character


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
