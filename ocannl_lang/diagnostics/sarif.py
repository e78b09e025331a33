"""Diagnostics as SARIF 2.1.0, the format that code hosts read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ocannl_lang.diagnostics.codes import CODES
from ocannl_lang.diagnostics.model import Diagnostic
from ocannl_lang.source import Span

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render_sarif(diagnostics: Sequence[Diagnostic]) -> str:
    """The diagnostics as one run of the tool `ocn`."""
    used = sorted({d.code for d in diagnostics})
    driver: dict[str, Any] = {"name": "ocn", "version": _version(), "rules": [_rule(code) for code in used]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(d, used) for d in diagnostics],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, ensure_ascii=False, indent=2)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # slow to import, and rarely needed

    try:
        return version("ocannl-lang")
    except PackageNotFoundError:
        return "0"


def _rule(code: str) -> dict[str, Any]:
    info = CODES.get(code)
    rule: dict[str, Any] = {"id": code}
    if info is not None:
        rule["shortDescription"] = {"text": info.title}
        rule["properties"] = {"area": info.area}
    return rule


def _result(diagnostic: Diagnostic, used: list[str]) -> dict[str, Any]:
    text = "\n".join([diagnostic.message, *diagnostic.notes, *(f"help: {text}" for text in diagnostic.helps)])
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": used.index(diagnostic.code),
        "level": diagnostic.severity,
        "message": {"text": text},
        "locations": [_location(diagnostic.span, diagnostic.label)],
    }
    if diagnostic.labels:
        result["relatedLocations"] = [_location(label.span, label.text) for label in diagnostic.labels]
    if diagnostic.fix is not None:
        changes = [
            {
                "artifactLocation": _artifact(edit.span),
                "replacements": [{"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.replacement}}],
            }
            for edit in diagnostic.fix.edits
        ]
        result["fixes"] = [{"description": {"text": diagnostic.fix.title}, "artifactChanges": changes}]
    return result


def _location(span: Span, text: str) -> dict[str, Any]:
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": _artifact(span), "region": _region(span)}}
    if text:
        location["message"] = {"text": text}
    return location


def _artifact(span: Span) -> dict[str, str]:
    path = Path(span.source.path)
    return {"uri": path.as_uri() if path.is_absolute() else path.as_posix()}


def _region(span: Span) -> dict[str, int]:
    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(span.end)
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}
