"""The syntax file of Vim: its regular expressions, and, where Vim is installed, what it shows."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ocannl_lang.syntax.highlighting_vim import vim_regex
from tests.editors.tokens import read

ROOT = Path(__file__).resolve().parents[2]
GROUPS = {
    "INT": {"ocnNumber"},
    "FLOAT": {"ocnFloat"},
    "OP": {"ocnDefinition"},
    "ROUTINE": {"ocnDefinition"},
    "LET": {"ocnDeclaration"},
    "RETURN": {"ocnControl"},
    "IF": {"ocnControl"},
    "AND": {"ocnWordOperator"},
    "TRUE": {"ocnConstant"},
    "MAIN": {"ocnContextual"},
    "TEST": {"ocnContextual"},
    "DATA": {"ocnContextual"},
    "DIM": {"ocnContextual"},
    "ROW": {"ocnContextual"},
    "STATE": {"ocnContextual"},
    "FORWARD": {"ocnSection"},
    "PREC": {"ocnPrecision"},
    "EINSUM": {"ocnEinsum"},
    "ROWVAR": {"ocnRow"},
    "ELLIPSIS": {"ocnRow"},
    "_RESULT": {"ocnAxesSign"},
    "STRING": {"ocnString"},
}


def test_regular_expressions_are_translated():
    assert vim_regex(r"dim(?=[ \t]+[^\W\d])") == r"dim%([ \t]+\K)@="
    assert vim_regex(r"\*\.(?![0-9])|=") == r"\*\.%([0-9])@!|\="
    with pytest.raises(ValueError, match="no translation"):
        vim_regex(r"\d")


@pytest.mark.skipif(shutil.which("vim") is None, reason="Vim is not installed")
@pytest.mark.parametrize(
    "path", [ROOT / "tests/editors/sample.ocn", ROOT / "examples/half_moons.ocn"], ids=lambda p: p.stem
)
def test_vim_shows_tokens_as_what_they_are(path: Path, tmp_path: Path):
    text = path.read_text(encoding="utf-8")
    script, output = tmp_path / "show.vim", tmp_path / "groups.txt"
    places = []
    for name, start, _ in read(text)[0]:
        line = text.count("\n", 0, start) + 1
        column = len(text[text.rfind("\n", 0, start) + 1 : start].encode()) + 1
        if name in GROUPS:
            places.append((name, line, column))
    script.write_text(
        "set nocompatible encoding=utf-8\n"
        f"set runtimepath^={ROOT}/editors/vim\n"
        f"edit {path}\nsyntax on\nsetlocal syntax=ocn\n"
        "let shown = []\n"
        f"for [line, column] in {[[line, column] for _, line, column in places]}\n"
        "  call add(shown, synIDattr(synID(line, column, 1), 'name'))\n"
        "endfor\n"
        f"call writefile(shown, '{output}')\nquitall!\n",
        encoding="utf-8",
    )
    command = ["vim", "-N", "-u", "NONE", "-i", "NONE", "-n", "-es", "-S", str(script)]
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    shown = output.read_text(encoding="utf-8").splitlines()
    lines = text.splitlines()
    wrong = [
        (line, lines[line - 1], column, name, group)
        for (name, line, column), group in zip(places, shown, strict=True)
        if group not in GROUPS[name]
    ]
    assert not wrong
