"""Where the files beside the code are: the grammar, the standard library, and the user's cache folder.

In a checkout the first two stand in the top folders `grammar/` and `stdlib/`, in an installed package in
`ocannl_lang/_data/`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def grammar_text() -> str:
    """The text of `ocn.lark`, the grammar of the language."""
    return (_data_dir("grammar") / "ocn.lark").read_text(encoding="utf-8")


def stdlib_dir() -> Path:
    """The folder with the standard library's `*.ocn` files."""
    return _data_dir("stdlib")


def source_dirs() -> list[Path]:
    """The folders of everything that decides what the compiler makes of a program: its own code, grammar and standard library."""
    import ocn_runtime

    runtime = [Path(p).resolve() for p in ocn_runtime.__path__]
    return [_PACKAGE, *runtime, _data_dir("grammar"), stdlib_dir()]


def cache_dir() -> Path:
    """The folder for files that can be made again, which need not exist.

    `OCN_CACHE_DIR` names it; else it is `ocn` in the place that the platform has for caches.
    """
    if own := os.environ.get("OCN_CACHE_DIR"):
        return Path(own)
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg) / "ocn"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "ocn" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ocn"
    return Path.home() / ".cache" / "ocn"


def _data_dir(name: str) -> Path:
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
