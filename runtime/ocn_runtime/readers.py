"""Arrays and texts from files: npy, npz, csv, idx; whatever is in the file, nothing in it is ever run.

Sizes are checked before memory is asked for, so a damaged or hostile file gives a `DataError` and not a full machine.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ocn_runtime.precisions import dtype_name, precision_of

LIMIT = 1 << 36  # bytes of one array: 64 GiB

_IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MEMBER = re.compile(r"(.*\.npz):([^:/\\]+)", re.IGNORECASE | re.DOTALL)


class DataError(Exception):
    """A file that is missing, unreadable, or holds something else than was asked for."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def read_array(path: str | os.PathLike[str], *, limit: int = LIMIT) -> NDArray[Any]:
    """The array in a file, of a type that has a precision and in native byte order.

    `x.npy`; `x.npz`, which must hold one array, or `x.npz:name`; `x.csv` (rows by columns, a header is left out); files
    in idx format under any name, also compressed (`train-images-idx3-ubyte.gz`). Logical values become u8, small ints
    i32; the numbers of a csv file are i32 if all are ints, else f32. `limit` bounds the size in bytes.
    """
    text = os.fspath(path)
    member = _MEMBER.fullmatch(text)
    file, name = (Path(member[1]), member[2]) if member and not os.path.exists(text) else (Path(text), None)
    try:
        with file.open("rb") as stream:
            array = _read(file, stream, name, limit)
    except OSError as error:
        raise DataError(_os_message(file, error)) from error
    return _with_precision(array, file)


def split_member(path: str) -> tuple[str, str]:
    """`"x.npz:name"` as the file's name and `":name"`; the second is empty for other names."""
    member = _MEMBER.fullmatch(path)
    return (member[1], f":{member[2]}") if member else (path, "")


def read_text(path: str | os.PathLike[str], *, limit: int = 1 << 31) -> str:
    """The text of a UTF-8 file, line ends as `\\n`. `limit` bounds its size in bytes."""
    file = Path(path)
    try:
        if file.stat().st_size > limit:
            raise DataError(f"{file.name} is larger than {limit} bytes")
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(_os_message(file, error)) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{file.name} is no UTF-8 text (byte {error.start})") from error


def _read(file: Path, stream: BinaryIO, member: str | None, limit: int) -> NDArray[Any]:
    suffix = file.suffix.lower()
    start = stream.read(8)
    stream.seek(0)
    if suffix == ".npz":
        return _read_npz(file, stream, member, limit)
    if start.startswith(b"\x93NUMPY"):
        return _read_npy(file.name, stream, os.fstat(stream.fileno()).st_size, limit)
    if start.startswith(b"\x1f\x8b"):
        try:
            with gzip.open(stream) as unpacked:
                return _read_idx(file.name, unpacked, None, limit)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(f"{file.name} is damaged: it cannot be unpacked") from error
    if suffix in (".csv", ".tsv", ".txt"):
        return _read_csv(file, stream, limit)
    if len(start) >= 4 and start[:2] == b"\0\0" and start[2] in _IDX_TYPES:
        return _read_idx(file.name, stream, os.fstat(stream.fileno()).st_size, limit)
    if suffix == ".npy":
        raise DataError(f"{file.name} is damaged: it does not start like an npy file")
    raise DataError(f"{file.name} is no file of arrays that is known: npy, npz, csv or idx")


def _read_npy(name: str, stream: BinaryIO, size: int, limit: int) -> NDArray[Any]:
    """An npy file of `size` bytes. The header is read first: it says how much memory the array needs."""
    try:
        version = np.lib.format.read_magic(stream)
        # Version 3 differs from 2 in the encoding of field names only, and arrays with fields are refused anyway.
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        else:
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
    except ValueError as error:
        raise DataError(f"{name} is damaged: its header cannot be read") from error
    if dtype.hasobject or dtype.names is not None:
        raise DataError(f"{name} holds Python objects, not an array of numbers")
    _check_type(name, dtype)
    count = _count(name, shape)
    _check_size(name, count * dtype.itemsize, limit)
    if stream.tell() + count * dtype.itemsize > size:
        raise DataError(f"{name} is damaged: it ends before its array of {_shape(shape)} does")
    data = _read_exactly(name, stream, count * dtype.itemsize)
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


def _read_npz(file: Path, stream: BinaryIO, member: str | None, limit: int) -> NDArray[Any]:
    try:
        with zipfile.ZipFile(stream) as archive:
            arrays = {i.filename.removesuffix(".npy"): i for i in archive.infolist() if i.filename.endswith(".npy")}
            names = ", ".join(sorted(arrays))
            if member is None and len(arrays) != 1:
                hint = f": {names}; say which, as in {file.name}:{min(arrays)}" if arrays else ""
                raise DataError(f"{file.name} holds {len(arrays)} arrays{hint}")
            if member is not None and member not in arrays:
                raise DataError(f"{file.name} holds no array {member}, but {names or 'nothing'}")
            info = arrays[member] if member is not None else next(iter(arrays.values()))
            _check_size(file.name, info.file_size, limit)
            with archive.open(info) as unpacked:
                return _read_npy(f"{file.name}:{info.filename.removesuffix('.npy')}", unpacked, info.file_size, limit)  # pyright: ignore[reportArgumentType]
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{file.name} is damaged: it cannot be unpacked") from error


def _read_idx(name: str, stream: Any, size: int | None, limit: int) -> NDArray[Any]:
    """The format of MNIST, big-endian: 0, 0, a type, the number of axes, their sizes. `size` is None if packed."""
    head: bytes = stream.read(4)
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _IDX_TYPES:
        raise DataError(f"{name} is no idx file")
    axes = head[3]
    sizes: bytes = stream.read(4 * axes)
    if len(sizes) < 4 * axes:
        raise DataError(f"{name} is damaged: it ends within its header")
    shape: tuple[int, ...] = struct.unpack(f">{axes}I", sizes)
    dtype = np.dtype(_IDX_TYPES[head[2]])
    length = _count(name, shape) * dtype.itemsize
    _check_size(name, length, limit)
    if size is not None and 4 + 4 * axes + length > size:
        raise DataError(f"{name} is damaged: it ends before its array of {_shape(shape)} does")
    return np.frombuffer(_read_exactly(name, stream, length), dtype).reshape(shape)


def _read_csv(file: Path, stream: BinaryIO, limit: int) -> NDArray[Any]:
    _check_size(file.name, os.fstat(stream.fileno()).st_size, limit)
    try:
        with io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
            reader = csv.reader(text, delimiter=_delimiter(text))
            rows = [(reader.line_num, row) for row in reader if any(row)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{file.name} is no table of numbers in UTF-8 text") from error
    if rows and not any(_is_number(cell) for cell in rows[0][1]):
        rows = rows[1:]
    if not rows:
        raise DataError(f"{file.name} holds no numbers")
    columns = len(rows[0][1])
    for line, row in rows:
        if len(row) != columns:
            raise DataError(f"{file.name}, line {line}: {len(row)} columns, where line {rows[0][0]} has {columns}")
        for number, cell in enumerate(row, 1):
            if not _is_number(cell):
                what = f"`{cell.strip()}` is no number" if cell.strip() else "there is no number"
                raise DataError(f"{file.name}, line {line}, column {number}: {what}")
    values = [[cell.strip() for cell in row] for _, row in rows]
    if all(re.fullmatch(r"[+-]?\d+", cell) for row in values for cell in row):
        numbers = [[int(cell) for cell in row] for row in values]
        largest = max(max(abs(n) for n in row) for row in numbers)
        if largest < 2**31:
            return np.array(numbers, np.int32)
        if largest < 2**63:
            return np.array(numbers, np.int64)
    return np.array([[float(cell) for cell in row] for row in values], np.float64).astype(np.float32)


def _delimiter(text: io.TextIOWrapper) -> str:
    """Comma, semicolon or tab: the one that the first line has most of, a comma if it has none."""
    first = text.readline()
    text.seek(0)
    return max(",;\t", key=first.count)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _with_precision(array: NDArray[Any], file: Path) -> NDArray[Any]:
    """The array in native byte order and in a type that has a precision; it can be written to."""
    native = array.dtype.newbyteorder("=")
    if precision_of(native) is not None:
        return np.require(array.astype(native), requirements=["C", "W"])
    match native.name:
        case "bool":
            return array.astype(np.uint8)
        case "int8" | "int16":
            return array.astype(np.int32)
        case "uint64" if array.size == 0 or int(array.max()) < 2**63:
            return array.astype(np.int64)
        case "uint64":
            raise DataError(f"{file.name} holds whole numbers that are too large for i64")
        case _:
            raise DataError(f"{file.name} holds {dtype_name(native)}, which is no precision of a tensor")


def _check_type(name: str, dtype: np.dtype[Any]) -> None:
    # Types of ml_dtypes are stored by numpy as raw bytes without a name, so kind "V" says nothing of what they hold.
    if dtype.kind not in "biuf":
        what = {"U": "text", "S": "text", "c": "complex numbers", "M": "dates", "m": "times"}.get(
            dtype.kind, "raw bytes"
        )
        raise DataError(f"{name} holds {what}, not an array of numbers")


def _count(name: str, shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        if size < 0:
            raise DataError(f"{name} is damaged: it has an axis of size {size}")
        count *= size
    return count


def _check_size(name: str, size: int, limit: int) -> None:
    if size > limit:
        raise DataError(f"{name} holds {size} bytes, more than the {limit} that are allowed")


def _read_exactly(name: str, stream: Any, size: int) -> bytearray:
    """`size` bytes, asked for in pieces: a packed file may promise more than it holds."""
    data = bytearray()
    while len(data) < size:
        piece: bytes = stream.read(min(size - len(data), 1 << 26))
        if not piece:
            raise DataError(f"{name} is damaged: it ends before its array does")
        data += piece
    return data


def _shape(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def _os_message(file: Path, error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return f"there is no file {file}"
        case PermissionError():
            return f"{file} may not be read"
        case IsADirectoryError():
            return f"{file} is a folder"
        case _:
            return f"{file} cannot be read: {error.strerror or error}"
