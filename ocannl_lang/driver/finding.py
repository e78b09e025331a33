"""Where a module is: beside the importing file, in the project's root, in the standard library (section 12)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ocannl_lang.resources import stdlib_dir

Reader = Callable[[Path], "str | None"]
"""The text of a file, None if there is no such file. An editor answers from its buffers."""


def read_file(path: Path) -> str | None:
    """The text of a file as it is on disk. Raises `OSError` or `UnicodeDecodeError` where it cannot be read."""
    if not path.is_file():
        return None
    return path.read_text(encoding="utf-8-sig")


def project_root(path: Path) -> Path:
    """The nearest folder above with `ocn.toml`; else the file's own folder."""
    folder = path.resolve().parent
    for candidate in (folder, *folder.parents):
        if (candidate / "ocn.toml").is_file():
            return candidate
    return folder


def find_module(name: str, importer: Path, root: Path, reader: Reader) -> tuple[Path, bool] | None:
    """The file of a module, and whether it is of the standard library."""
    relative = Path(*name.split(".")).with_suffix(".ocn")
    if importer.parent == stdlib_dir():
        standard = stdlib_dir() / relative
        return (standard, True) if standard.is_file() else None
    for folder in dict.fromkeys((importer.parent, root)):
        candidate = folder / relative
        if _readable(candidate, reader):
            return candidate, False
    standard = stdlib_dir() / relative
    return (standard, True) if standard.is_file() else None


def _readable(path: Path, reader: Reader) -> bool:
    try:
        return reader(path) is not None
    except (OSError, UnicodeDecodeError):
        return path.is_file()
