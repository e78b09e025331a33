"""The extension for VS Code: its files belong together, and what it inserts is Ocn."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ocannl_lang.diagnostics.model import Collector
from ocannl_lang.source import Source
from ocannl_lang.syntax.parser import parse

FOLDER = Path(__file__).resolve().parents[2] / "editors/vscode"
# The pieces that stand in a body, with what is around them where they are parsed.
IN_A_BODY = {"Parameter", "Einsum", "Reduction", "Dims", "State", "Loop", "Choice"}


def load(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


SNIPPETS: dict[str, Any] = load("snippets.json")
CONFIGURATION: dict[str, Any] = load("language-configuration.json")


def test_the_extension_has_the_files_that_it_names():
    contributes = load("package.json")["contributes"]
    language, grammar, snippets = contributes["languages"][0], contributes["grammars"][0], contributes["snippets"][0]
    assert language["extensions"] == [".ocn"]
    assert language["id"] == grammar["language"] == snippets["language"]
    assert load(grammar["path"])["scopeName"] == grammar["scopeName"]
    assert load(language["configuration"]) == CONFIGURATION
    assert load(snippets["path"]) == SNIPPETS


def expanded(body: list[str]) -> str:
    """The text that a snippet leaves when nothing is changed."""
    text = "\n".join(body)
    before = ""
    while text != before:
        before = text
        text = re.sub(r"\$\{\d+\|([^,|]*)[^|]*\|\}", r"\1", text)
        text = re.sub(r"\$\{\d+:((?:[^{}$\\]|\\.|\{[^{}$]*\})*)\}", lambda m: re.sub(r"\\(.)", r"\1", m[1]), text)
    return re.sub(r"\$\d", "", text)


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippets_are_ocn(name: str):
    text = expanded(SNIPPETS[name]["body"])
    assert "$" not in text
    if name in IN_A_BODY:
        text = "fn f():\n" + "\n".join("    " + line for line in text.splitlines())
    collector = Collector()
    parse(Source(f"{name}.ocn", text + "\n"), collector)
    assert not collector.diagnostics, (text, [d.message for d in collector.diagnostics])


def test_prefixes_differ():
    prefixes = [snippet["prefix"] for snippet in SNIPPETS.values()]
    assert len(set(prefixes)) == len(prefixes)


@pytest.mark.parametrize(
    ("line", "indents"),
    [
        ("op f(x):", True),
        ("    if a == 1:  # why", True),
        ("main(", True),
        ('    print("a:")', False),
        ("    let a: [n] = x", False),
        ("    # note:", False),
        ("    let a = [", True),
    ],
)
def test_a_line_that_opens_a_block_indents_the_next(line: str, indents: bool):
    assert bool(re.search(CONFIGURATION["indentationRules"]["increaseIndentPattern"], line)) == indents


@pytest.mark.parametrize(
    ("line", "outdents"), [("    else:", True), ("    elif b:", True), ("    )", True), ("    x", False)]
)
def test_a_line_that_goes_on_with_the_block_outside_moves_out(line: str, outdents: bool):
    assert bool(re.search(CONFIGURATION["indentationRules"]["decreaseIndentPattern"], line)) == outdents
