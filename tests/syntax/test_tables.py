"""The grammar has no conflicts, and its tables are kept safely."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from ocannl_lang.resources import cache_dir, grammar_text, stdlib_dir
from ocannl_lang.syntax import build_expressions, build_notation, build_statements
from ocannl_lang.syntax.tables import build_data, load_tables

ROOT = Path(__file__).resolve().parents[2]


def test_the_grammar_has_no_conflicts(caplog: pytest.LogCaptureFixture) -> None:
    import lark

    lark.logger.addHandler(caplog.handler)
    with caplog.at_level(logging.DEBUG, logger=lark.logger.name):
        lark.Lark(grammar_text(), parser="lalr", lexer="basic", start=["module", "interpolation"], debug=True)
    lark.logger.removeHandler(caplog.handler)
    assert "onflict" not in caplog.text


@pytest.mark.slow
def test_the_tables_do_not_depend_on_hashes() -> None:
    code = (
        "import hashlib, json; from ocannl_lang.resources import grammar_text; from ocannl_lang.syntax.tables import build_data;"
        "print(hashlib.sha256(json.dumps(build_data(grammar_text())).encode()).hexdigest())"
    )
    results = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    ]
    assert len(set(results)) == 1


def test_every_terminal_has_a_name() -> None:
    names = load_tables().names[: load_tables().terminal_count]
    assert not [n for n in names if n.startswith("__")]
    rules = re.sub(r"^(?://|_?[A-Z]).*$|\[|\]", "", grammar_text(), flags=re.M)
    assert '"' not in rules


def test_every_rule_has_its_function() -> None:
    functions = {**build_expressions.BUILDERS, **build_notation.BUILDERS, **build_statements.BUILDERS}
    lists = {"top_line", "params", "args", "items", "slots", "axes", "type_axes", "exprs", "dotted"}
    for rule in load_tables().rules:
        assert rule.passes or rule.is_list or rule.name in functions or rule.name in lists, rule.name


def test_the_cache_is_used_repaired_and_dispensable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = build_data(grammar_text())
    monkeypatch.setattr("ocannl_lang.syntax.tables.build_data", lambda _: data)
    monkeypatch.setenv("OCN_CACHE_DIR", str(tmp_path / "cache"))
    fresh = load_tables.__wrapped__()
    (file,) = (tmp_path / "cache").iterdir()
    kept = file.read_text(encoding="utf-8")
    assert load_tables.__wrapped__().action == fresh.action
    for damage in ("", "{", "[]", '{"names": []}', kept[:500], kept.replace('"terminals":', '"terminal":')):
        file.write_text(damage, encoding="utf-8")
        with pytest.warns(UserWarning, match="damaged"):
            assert load_tables.__wrapped__().action == fresh.action
        assert file.read_text(encoding="utf-8") == kept
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    monkeypatch.setenv("OCN_CACHE_DIR", str(blocked / "cache"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_tables.__wrapped__().action == fresh.action


def test_the_cache_folder_follows_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCN_CACHE_DIR", "own")
    assert cache_dir() == Path("own")
    monkeypatch.delenv("OCN_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "xdg")
    assert cache_dir() == Path("xdg") / "ocn"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "local")
    assert cache_dir() == Path("local") / "ocn" / "cache"
    monkeypatch.setattr("sys.platform", "darwin")
    assert cache_dir() == Path.home() / "Library" / "Caches" / "ocn"
    monkeypatch.setattr("sys.platform", "linux")
    assert cache_dir() == Path.home() / ".cache" / "ocn"


def test_the_standard_library_is_found() -> None:
    assert (stdlib_dir() / "nn.ocn").is_file()
