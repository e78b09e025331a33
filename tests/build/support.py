"""Programs as texts, checked or opened."""

from __future__ import annotations

from pathlib import Path

from ocannl_lang.driver.checking import Checked
from ocannl_lang.driver.session import Session


def checked(text: str, tmp_path: Path, **settings: object) -> Checked:
    """A checked program; it may have errors."""
    path = tmp_path / "model.ocn"
    path.write_text(text, encoding="utf-8")
    found = Session(settings=settings).checked(path)
    assert isinstance(found, Checked), [d.render() for d in found]
    return found


def clean(text: str, tmp_path: Path) -> Checked:
    """A checked program without errors."""
    found = checked(text, tmp_path)
    assert not found.has_errors, "\n".join(d.render() for d in found.diagnostics)
    return found
