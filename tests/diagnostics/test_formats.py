"""Diagnostics for programs: one line each, JSON, SARIF; and the table of codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ocannl_lang.diagnostics.codes import CODES, EXPLAIN_DIR, explain
from ocannl_lang.diagnostics.model import Diagnostic, Edit, Fix, Label
from ocannl_lang.diagnostics.render import count_line, render_all
from ocannl_lang.source import Source, Span
from tests.syntax.support import parsed

SOURCE = Source("net.ocn", "op f(x) = y\nop g(x) = z\n")
ERROR = Diagnostic(
    "E0201", "no `y`", Span(SOURCE, 10, 11), "here", (Label(Span(SOURCE, 5, 6), "the nearest"),), ("why",), ("what",),
    Fix("write `x`", (Edit(Span(SOURCE, 10, 11), "x"),)),
)  # fmt: skip
WARNING = Diagnostic("W0901", "unused", Span(SOURCE, 15, 16))


def test_one_line_each() -> None:
    assert (
        render_all([ERROR, WARNING], "concise")
        == "net.ocn:1:11: error[E0201]: no `y`\nnet.ocn:2:4: warning[W0901]: unused"
    )


def test_a_count_closes_the_text() -> None:
    assert render_all([ERROR, WARNING], "human").endswith("\n\n1 error, 1 warning")
    assert render_all([], "human") == ""
    assert count_line([ERROR, ERROR]) == "2 errors"
    assert count_line([WARNING]) == "1 warning"
    assert count_line([]) == "no errors"


def test_json() -> None:
    (data, _) = json.loads(render_all([ERROR, WARNING], "json"))
    assert data["code"] == "E0201"
    assert data["severity"] == "error"
    assert (data["line"], data["column"], data["end_line"], data["end_column"]) == (1, 11, 1, 12)
    assert data["labels"] == [
        {"file": "net.ocn", "line": 1, "column": 6, "end_line": 1, "end_column": 7, "text": "the nearest"}
    ]
    assert data["fix"]["edits"][0]["replacement"] == "x"
    assert json.loads(render_all([], "json")) == []


def test_sarif() -> None:
    data = json.loads(render_all([ERROR, WARNING], "sarif"))
    assert data["version"] == "2.1.0"
    (run,) = data["runs"]
    assert [r["id"] for r in run["tool"]["driver"]["rules"]] == ["E0201", "W0901"]
    first, second = run["results"]
    assert (first["level"], second["level"]) == ("error", "warning")
    assert first["locations"][0]["physicalLocation"]["region"] == {
        "startLine": 1, "startColumn": 11, "endLine": 1, "endColumn": 12,
    }  # fmt: skip
    assert first["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"] == {"text": "x"}
    assert "relatedLocations" not in second


def test_unknown_formats_are_bugs() -> None:
    with pytest.raises(ValueError, match="no format"):
        render_all([], "xml")


def test_every_code_has_a_page() -> None:
    assert {p.stem for p in EXPLAIN_DIR.glob("*.md")} == set(CODES)
    for code, info in CODES.items():
        page = explain(code)
        assert page.startswith(f"# {code}: {info.title}\n")
        assert "```" in page
    assert explain("e0405") == explain("E0405")
    with pytest.raises(KeyError):
        explain("E9999")


def test_pages_of_syntax_errors_show_them_and_their_repair() -> None:
    for code in CODES:
        for options, text in re.findall(r"^```ocn([^\n]*)\n(.*?)^```", explain(code), re.S | re.M):
            wanted = [code] if f"error={code}" in options and code.startswith("E01") else []
            assert [d.code for d in parsed(text)[1]] == wanted, (code, text)


def test_every_code_of_the_definition_is_in_the_table() -> None:
    page = Path(__file__).resolve().parents[3] / "shared" / "design" / "language.md"
    if not page.is_file():
        pytest.skip("the language's definition is not here")
    text = page.read_text(encoding="utf-8")
    section = text[text.index("## 13. Diagnostics") :]
    assert set(re.findall(r"\b[EW]0\d{3}\b", section)) == set(CODES)
