"""The acceptance cases beside the checkout, where there are any: programs with the values and diagnostics they must give."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "acceptance"
CASES = sorted((FOLDER / "cases").glob("*.ocn")) if (FOLDER / "run.py").is_file() else []


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("acceptance_run", FOLDER / "run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not CASES, reason="no acceptance cases beside the checkout")
@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_case(runner: ModuleType, path: Path) -> None:
    problem = runner.run_case(path, None)
    assert problem is None, problem
