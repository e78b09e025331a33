"""Errors that a caller of a program meets: diagnostics as an exception."""

from __future__ import annotations

from collections.abc import Sequence

from ocannl_lang.diagnostics.model import Diagnostic


class ProgramErrors(Exception):
    """A program is faulty, or a call does not fit it. `diagnostics` say why; the first error is the main one."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = list(diagnostics)
        errors = [d for d in self.diagnostics if d.severity == "error"] or self.diagnostics
        super().__init__(errors[0].message if errors else "this program is faulty")
