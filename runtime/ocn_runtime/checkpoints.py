"""Checkpoints: named tensors in a safetensors file, written whole or not at all.

    save("net.safetensors", {"net.w": w, "net.b": b}, {"seed": "0"})
    checkpoint = load("net.safetensors")
    check(checkpoint, {"net.w": Expected((128, 784), "f32")})

The keys are the paths of parameters and states.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from ocn_runtime.precisions import DTYPES, dtype_name, precision_of

_STORED: dict[str, np.dtype[Any]] = {
    "F64": DTYPES["f64"],
    "F32": DTYPES["f32"],
    "BF16": DTYPES["bf16"],
    "F16": DTYPES["f16"],
    "F8_E5M2": DTYPES["f8e5m2"],
    "F8_E4M3": DTYPES["f8e4m3"],
    "I64": DTYPES["i64"],
    "I32": DTYPES["i32"],
    "U32": DTYPES["u32"],
    "U16": DTYPES["u16"],
    "U8": DTYPES["u8"],
    "BOOL": DTYPES["u8"],
}


class CheckpointError(Exception):
    """A checkpoint that cannot be used; `tensor` is the path of the tensor in question, "" where it is the file."""

    def __init__(self, message: str, tensor: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.tensor = tensor


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a file holds: tensors by path in the order of their paths, and free text by key."""

    path: Path
    tensors: dict[str, NDArray[Any]]
    metadata: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Expected:
    """The shape (memory order) and precision that a program asks of a tensor; None: anything."""

    shape: tuple[int, ...] | None = None
    precision: str | None = None


def save(
    path: str | os.PathLike[str], tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes the tensors to `path`: to a temporary file beside it first, which then takes its place.

    So a reader, or a run that is interrupted, sees the old file or the new one, never a part. Raises `CheckpointError`
    for a type that has no precision, `OSError` where the file cannot be written.
    """
    stored: dict[str, NDArray[Any]] = {}
    for name in sorted(tensors):
        array = np.asarray(tensors[name])
        if precision_of(array.dtype) is None:
            raise CheckpointError(f"{name} holds {array.dtype.name}, which is no precision of a tensor", name)
        # ascontiguousarray makes a vector of a scalar; the shape is put back.
        stored[name] = np.ascontiguousarray(array).reshape(array.shape)
    _write_atomically(Path(path), safetensors.numpy.save(stored, dict(metadata) if metadata else None))


def load(path: str | os.PathLike[str]) -> Checkpoint:
    """Reads a checkpoint. Raises `CheckpointError` for a damaged or foreign file, `OSError` if it cannot be read."""
    path = Path(path)
    content = path.read_bytes()
    try:
        entries = safetensors.deserialize(content)
    except safetensors.SafetensorError as error:
        raise CheckpointError(_damage(path, content)) from error
    tensors: dict[str, NDArray[Any]] = {}
    for name, entry in sorted(entries, key=lambda item: item[0]):
        dtype = _STORED.get(entry["dtype"])
        if dtype is None:
            message = f"{name} in {path.name} is stored as {entry['dtype'].lower()}, which is no precision of a tensor"
            raise CheckpointError(message, name)
        array = np.frombuffer(bytearray(entry["data"]), dtype=dtype.newbyteorder("<")).reshape(entry["shape"])
        tensors[name] = array if sys.byteorder == "little" else array.astype(dtype)
    return Checkpoint(path, tensors, _metadata(content))


def check(
    checkpoint: Checkpoint, expected: Mapping[str, Expected], *, extra: Literal["refuse", "ignore"] = "refuse"
) -> None:
    """Raises `CheckpointError` for the first tensor by path that is missing, unexpected, or does not fit."""
    file = checkpoint.path.name
    for name in sorted(set(checkpoint.tensors) | set(expected)):
        if name not in checkpoint.tensors:
            raise CheckpointError(f"{file} has no {name}{_like(name, checkpoint.tensors)}", name)
        if name not in expected:
            if extra == "ignore":
                continue
            raise CheckpointError(f"{file} holds {name}, which the program does not have{_like(name, expected)}", name)
        found, wanted = checkpoint.tensors[name], expected[name]
        if wanted.shape is not None and found.shape != tuple(wanted.shape):
            raise CheckpointError(
                f"{name} has the shape {_shape(found.shape)} in {file} and {_shape(wanted.shape)} in the program", name
            )
        if wanted.precision is not None and dtype_name(found.dtype) != wanted.precision:
            raise CheckpointError(
                f"{name} is {dtype_name(found.dtype)} in {file} and {wanted.precision} in the program", name
            )


def _write_atomically(path: Path, content: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if os.name == "posix":
            os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(path.parent)


def _mode(path: Path) -> int:
    """The mode of the file that is replaced, else the usual one: `mkstemp` makes files that only their owner reads."""
    try:
        return path.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _sync_folder(folder: Path) -> None:
    """Makes the new name last through a power failure, where the system has a way to ask for that."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _metadata(content: bytes) -> dict[str, str]:
    import json

    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    return {str(key): str(value) for key, value in header.get("__metadata__", {}).items()}


def _damage(path: Path, content: bytes) -> str:
    """What is wrong with a file that safetensors refuses: a checkpoint starts with a length and a JSON object."""
    if not content:
        return f"{path.name} is empty"
    length = int.from_bytes(content[:8], "little")
    if len(content) >= 9 and content[8:9] == b"{" and length <= 100_000_000:
        return f"{path.name} is damaged: it was cut short or changed after it was written"
    return f"{path.name} is no checkpoint: checkpoints are safetensors files"


def _like(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(names), n=1, cutoff=0.75)
    return f" (there is {near[0]})" if near else ""


def _shape(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"
