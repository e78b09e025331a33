"""The examples check without a word, pass their own tests, and do what they say."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import ocannl_lang

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.ocn"))
MODULES = sorted((ROOT / "stdlib").glob("*.ocn"))


@pytest.mark.parametrize("path", [*MODULES, *EXAMPLES], ids=lambda p: p.name)
def test_checks_without_a_word(path: Path) -> None:
    found = ocannl_lang.check(path)
    assert not found, "\n".join(d.render() for d in found)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_passes_its_own_tests(path: Path, ocn: Callable[..., str]) -> None:
    pytest.importorskip("sklearn")
    ocn("test", str(path))


def test_digits_learns_to_read(ocn: Callable[..., str]) -> None:
    pytest.importorskip("sklearn")
    output = ocn("run", str(ROOT / "examples/digits.ocn"))
    shares = [float(s) for s in re.findall(r"test accuracy ([\d.]+) %", output)]
    assert shares[-1] >= 96.0, output


@pytest.mark.parametrize(("name", "options", "pattern", "least"), [
    ("half_moons", ("--epochs", "40"), r"accuracy ([\d.]+)", 0.97),
    ("convnet", ("--epochs", "6"), r"test accuracy ([\d.]+) %", 92.0),
])  # fmt: skip
@pytest.mark.slow
def test_other_examples_learn(
    name: str, options: tuple[str, ...], pattern: str, least: float, ocn: Callable[..., str]
) -> None:
    pytest.importorskip("sklearn")
    output = ocn("run", str(ROOT / f"examples/{name}.ocn"), *options)
    assert float(re.findall(pattern, output)[-1]) >= least, output


@pytest.mark.parametrize(("name", "options", "most"), [
    ("names", ("--epochs", "30", "--count", "3"), 2.2), ("attention", ("--steps", "100", "--count", "20"), 2.2),
])  # fmt: skip
@pytest.mark.slow
def test_character_models_learn(name: str, options: tuple[str, ...], most: float, ocn: Callable[..., str]) -> None:
    output = ocn("run", str(ROOT / f"examples/{name}.ocn"), *options)
    losses = [float(s) for s in re.findall(r"loss ([\d.]+)", output)]
    assert losses[-1] < most, output
