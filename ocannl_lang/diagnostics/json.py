"""Diagnostics as JSON: a list of objects with places as lines and columns, both from 1."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ocannl_lang.diagnostics.model import Diagnostic
from ocannl_lang.source import Span


def render_json(diagnostics: Sequence[Diagnostic]) -> str:
    """The diagnostics as a JSON list."""
    return json.dumps([as_data(d) for d in diagnostics], ensure_ascii=False, indent=2)


def as_data(diagnostic: Diagnostic) -> dict[str, Any]:
    """One diagnostic as plain data."""
    fix = diagnostic.fix
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        **place(diagnostic.span),
        "label": diagnostic.label,
        "labels": [{**place(label.span), "text": label.text} for label in diagnostic.labels],
        "notes": list(diagnostic.notes),
        "helps": list(diagnostic.helps),
        "fix": None
        if fix is None
        else {
            "title": fix.title,
            "edits": [{**place(edit.span), "replacement": edit.replacement} for edit in fix.edits],
        },
    }


def place(span: Span) -> dict[str, Any]:
    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(span.end)
    return {
        "file": span.source.path,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
    }
