"""Every `ocn` and Python block of the documents runs, and so do the examples of the error pages.

A block's info string may say what is expected: `ocn error=E0405` must report that code and nothing else of severity error, `ocn run`
is also run, `ocn fragment` is not a program by itself. The blocks of one document are independent, except that a Python block finds
the last `ocn file=NAME` blocks of its document in the current folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "stdlib").glob("*.md")),
    *sorted((ROOT / "examples").glob("*.md")),
    *sorted((ROOT / "ocannl_lang/diagnostics/explain").glob("*.md")),
]
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", re.M | re.S)


@dataclass(frozen=True)
class Block:
    document: Path
    line: int
    language: str
    words: tuple[str, ...]
    text: str
    files: tuple[tuple[str, str], ...]
    """Named files of the same document that stand before this block."""

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"

    def option(self, name: str) -> str | None:
        return next((w.split("=", 1)[1] for w in self.words if w.startswith(f"{name}=")), None)


def blocks(language: str) -> list[Block]:
    found: list[Block] = []
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        files: list[tuple[str, str]] = []
        for match in FENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            words = tuple(match[2].split())
            block = Block(document, line, match[1], words, match[3], tuple(files))
            if block.option("file"):
                files.append((block.option("file") or "", block.text))
            if match[1] == language:
                found.append(block)
    return found


def place(block: Block, folder: Path) -> None:
    for name, text in block.files:
        (folder / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("block", blocks("ocn"), ids=str)
def test_ocn_block(block: Block, tmp_path: Path, ocn: Callable[..., str]) -> None:
    if "fragment" in block.words:
        pytest.skip("a fragment")
    import ocannl_lang

    place(block, tmp_path)
    file = tmp_path / (block.option("file") or "block.ocn")
    file.write_text(block.text, encoding="utf-8")
    found = ocannl_lang.check(file)
    wanted = block.option("error") or block.option("warning")
    if wanted:
        assert {d.code for d in found} == {wanted}, [d.render() for d in found]
        return
    assert not found, "\n".join(d.render() for d in found)
    if "run" in block.words:
        ocn("run", str(file))
    if 'test "' in block.text:
        ocn("test", str(file))


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_python_block(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place(block, tmp_path)
    monkeypatch.chdir(tmp_path)
    exec(compile(block.text, str(block), "exec"), {"__name__": "block"})


def test_links_inside_the_repository_lead_somewhere() -> None:
    broken: list[str] = []
    for document in DOCUMENTS:
        prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", document.read_text(encoding="utf-8")))
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
            if "://" not in target and not (document.parent / target).exists():
                broken.append(f"{document.relative_to(ROOT)}: {target}")
    assert not broken
