"""Files that can be made again: kept with a checksum, written whole or not at all.

A file is its content preceded by the checksum. It is written to a temporary file and renamed, so that a reader never sees half of
one; a damaged one is as good as none, with a warning. A folder that cannot be written is no error.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from pathlib import Path

_CHECKSUM = 32


def read_cached(path: Path) -> bytes | None:
    """The content of a file of `write_cached`, None if it is not there or damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if len(data) > _CHECKSUM and hashlib.sha256(data[_CHECKSUM:]).digest() == data[:_CHECKSUM]:
        return data[_CHECKSUM:]
    warnings.warn(f"the cached file {path} is damaged and is built again", stacklevel=3)
    return None


def write_cached(path: Path, content: bytes) -> None:
    """Keep `content`, which is not empty, for `read_cached`."""
    import tempfile

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing")
        try:
            with os.fdopen(handle, "wb") as f:
                f.write(hashlib.sha256(content).digest() + content)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
    except OSError:
        return
