"""Diagnostics as data: what every stage reports, and nothing prints.

Stages report `Diagnostic`s to a `Collector`; exceptions are kept for bugs. Renderers (text, JSON, SARIF) live beside
this file.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ocannl_lang.source import Span


@dataclass(frozen=True, slots=True)
class Label:
    """A secondary place and what to say there."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text of `span` by `replacement`."""

    span: Span
    replacement: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A change that repairs the fault, as an editor can apply it."""

    title: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message about one place.

    `code` is a key of `ocannl_lang.diagnostics.codes.CODES`; `message` the one-line title; `span` the primary place
    with the short text `label`; `labels` further places, in the order in which they explain; `notes` say why, `helps`
    what to do.
    """

    code: str
    message: str
    span: Span
    label: str = ""
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()
    fix: Fix | None = None

    @property
    def severity(self) -> str:
        """`"error"` or `"warning"`."""
        return "warning" if self.code.startswith("W") else "error"

    @property
    def line(self) -> int:
        return self.span.source.position(self.span.start)[0]

    @property
    def column(self) -> int:
        return self.span.source.position(self.span.start)[1]

    @property
    def end_line(self) -> int:
        return self.span.source.position(self.span.end)[0]

    @property
    def end_column(self) -> int:
        return self.span.source.position(self.span.end)[1]

    def render(self, *, color: bool = False) -> str:
        """The message as a terminal shows it, with excerpts."""
        from ocannl_lang.diagnostics.text import render_text

        return render_text(self, color=color)


@dataclass(slots=True)
class Collector:
    """Where stages report to. The same message about the same place is kept once; `reports` counts it each time."""

    diagnostics: list[Diagnostic] = field(default_factory=list["Diagnostic"])
    reports: int = 0
    _seen: set[tuple[str, str, int, int, str]] = field(default_factory=set[tuple[str, str, int, int, str]], repr=False)

    def report(self, diagnostic: Diagnostic) -> None:
        self.reports += 1
        key = (
            diagnostic.code,
            diagnostic.span.source.path,
            diagnostic.span.start,
            diagnostic.span.end,
            diagnostic.message,
        )
        if key not in self._seen:
            self._seen.add(key)
            self.diagnostics.append(diagnostic)

    def forget(self, count: int) -> None:
        """Drop all but the first `count` diagnostics, as if they had never been reported."""
        for d in self.diagnostics[count:]:
            self._seen.discard((d.code, d.span.source.path, d.span.start, d.span.end, d.message))
        del self.diagnostics[count:]

    @property
    def has_errors(self) -> bool:
        return any(d.severity == "error" for d in self.diagnostics)

    def sorted(self) -> list[Diagnostic]:
        """All diagnostics by file and place, which no order of work can change."""
        return sorted(self.diagnostics, key=lambda d: (d.span.source.path, d.span.start, d.span.end, d.code, d.message))
