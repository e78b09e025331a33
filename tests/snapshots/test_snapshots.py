"""Programs and what the compiler makes of them, as files to read; `pytest --update-snapshots` writes them anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from ocannl_lang.build import context
from ocannl_lang.diagnostics.codes import CODES
from tests.snapshots.documents import Document, diagnostics, made_anew, read, rendered

DOCUMENTS = [read(p) for p in sorted(Path(__file__).parent.glob("*.md"))]

WHILE_RUNNING = frozenset({"E0602", "E0701", "E0703", "E0801", "E0802", "E0803"})
"""Codes that only running a program can report: `tests/errors` has them."""


@pytest.fixture(autouse=True)
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build that does not end is found soon."""
    monkeypatch.setattr(context, "STEP_BUDGET", 20_000)


def _name(document: Document) -> str:
    return document.path.stem


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_is_as_it_was(document: Document, update_snapshots: bool) -> None:
    text = made_anew(document)
    if update_snapshots:
        document.path.write_text(text, encoding="utf-8", newline="\n")
        return
    assert text == document.path.read_text(encoding="utf-8")


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if d.code], ids=_name)
def test_reports_its_code_and_nothing_else(document: Document) -> None:
    assert {d.code for d in diagnostics(document.files("SOURCE"))} == {document.code}


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if d.code], ids=_name)
def test_the_repaired_program_reports_nothing(document: Document) -> None:
    assert rendered(diagnostics(document.files("REPAIRED"))) == ""


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if not d.code], ids=_name)
def test_a_sound_program_reports_nothing(document: Document) -> None:
    assert rendered(diagnostics(document.files("SOURCE"))) == ""


def test_every_code_has_one() -> None:
    assert {d.code for d in DOCUMENTS if d.code} == set(CODES) - WHILE_RUNNING


def test_no_internal_word_is_told() -> None:
    internal = ("DimVar", "RowVar", "None", "Poison", "Symbolic", "OpRef", "Token", "object at", "lark", "assert")
    for document in DOCUMENTS:
        text = document.sections.get(("DIAGNOSTICS", ""), "")
        assert not [w for w in internal if w in text], document.path.name
