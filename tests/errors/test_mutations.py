"""Whatever is done to the text of a program, checking it gives diagnostics and never an exception."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ocannl_lang.build import context
from tests.snapshots.documents import diagnostics, read

ROOT = Path(__file__).resolve().parents[2]
TOKEN = re.compile(r'"[^"\n]*"|\w+|[ \t]+|\n[ \t]*|\.\.\.|\.\.|->|=>|:=|=\+|[^\w\s]')
WORDS = """
import from as let var fn op cd routine extern if then elif else for in while break continue return is and or not true false none
expect main test data basis dim row state
"""
KEYWORDS = frozenset(WORDS.split())


def programs() -> list[list[str]]:
    """Valid programs as tokens: the repaired ones of the snapshots, and the examples."""
    documents = [read(p) for p in sorted((ROOT / "tests/snapshots").glob("*.md"))]
    texts = [d.files("REPAIRED" if d.code else "SOURCE").get("net.ocn", "") for d in documents]
    texts += [p.read_text(encoding="utf-8") for p in sorted((ROOT / "examples").glob("*.ocn"))]
    return [TOKEN.findall(t) for t in texts]


def kind(token: str) -> str:
    """Tokens of one kind can take each other's place without breaking the grammar."""
    if token in KEYWORDS:
        return "keyword"
    if token[0].isalpha():
        return "name"
    if token[0].isdigit():
        return "number"
    return "sign" if token in "+-*/.|,;" else token


CHECKS = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
PROGRAMS = programs()
POOL: dict[str, list[str]] = {}
for _tokens in PROGRAMS:
    for _token in _tokens:
        if not _token.isspace():
            POOL.setdefault(kind(_token), []).append(_token)


@st.composite
def mutants(draw: st.DrawFn) -> str:
    tokens = list(draw(st.sampled_from(PROGRAMS)))
    places = [i for i, t in enumerate(tokens) if not t.isspace()]
    for _ in range(draw(st.integers(1, 3))):
        i = draw(st.sampled_from(places))
        match draw(st.sampled_from(["like", "like", "like", "like", "drop", "double", "other"])):
            case "like" if tokens[i]:
                tokens[i] = draw(st.sampled_from(POOL.get(kind(tokens[i]), [tokens[i]])))
            case "drop":
                tokens[i] = ""
            case "double":
                tokens[i] = f"{tokens[i]} {tokens[i]}"
            case _:
                tokens[i] = tokens[draw(st.sampled_from(places))]
    return "".join(tokens)


@pytest.fixture(autouse=True, scope="module")
def small_budget() -> object:
    """Loops that no longer end are found soon."""
    before, context.STEP_BUDGET = context.STEP_BUDGET, 20_000
    yield
    context.STEP_BUDGET = before


def holds(text: str) -> None:
    for d in diagnostics({"net.ocn": text}):
        assert d.render().startswith(f"{d.severity}[{d.code}]")


@given(mutants())
@settings(max_examples=60, deadline=None, suppress_health_check=CHECKS)
def test_a_mutated_program_is_checked_without_an_exception(text: str) -> None:
    holds(text)


@given(mutants())
@settings(max_examples=1000, deadline=None, suppress_health_check=CHECKS)
@pytest.mark.slow
def test_many_mutated_programs(text: str) -> None:
    holds(text)
