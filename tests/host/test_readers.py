"""Reading arrays and texts: every format, and a plain message for what is missing, damaged or of another kind."""

from __future__ import annotations

import gzip
import pickle
import struct

import numpy as np
import pytest

from ocn_runtime.readers import DataError, read_array, read_text


def idx(array: np.ndarray, code: int, dtype: str) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, code, array.ndim, *array.shape) + array.astype(dtype).tobytes()


@pytest.mark.parametrize(
    "given, dtype",
    [
        (np.arange(6, dtype=np.float32).reshape(2, 3), np.float32),
        (np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.float64),
        (np.arange(3, dtype=">f4"), np.float32),
        (np.array([True, False]), np.uint8),
        (np.array([1, -2], np.int8), np.int32),
        (np.array([1, 2], np.uint64), np.int64),
        (np.float32(3.5).reshape(()), np.float32),
        (np.zeros((0, 4), np.float32), np.float32),
    ],
)
def test_npy(tmp_path, given, dtype):
    np.save(tmp_path / "x.npy", given)
    array = read_array(tmp_path / "x.npy")
    assert array.dtype == dtype and array.shape == given.shape and array.flags.c_contiguous
    assert np.array_equal(array, given)
    array[...] = 0


def test_npz_with_one_array_and_by_name(tmp_path):
    np.savez(tmp_path / "one.npz", x=np.arange(3))
    assert read_array(tmp_path / "one.npz").tolist() == [0, 1, 2]
    np.savez_compressed(tmp_path / "two.npz", x=np.arange(3), y=np.ones((2, 2)))
    assert read_array(f"{tmp_path / 'two.npz'}:y").tolist() == [[1, 1], [1, 1]]
    with pytest.raises(DataError, match=r"holds 2 arrays: x, y; say which, as in two\.npz:x"):
        read_array(tmp_path / "two.npz")
    with pytest.raises(DataError, match="holds no array z, but x, y"):
        read_array(f"{tmp_path / 'two.npz'}:z")


@pytest.mark.parametrize(
    "text, values, dtype",
    [
        ("1,2\n3,4\n", [[1, 2], [3, 4]], np.int32),
        ("a,b\n1,2.5\n3,1e3\n", [[1, 2.5], [3, 1000]], np.float32),
        ("\ufeffwidth;height\r\n1;2\r\n\r\n3;4\r\n", [[1, 2], [3, 4]], np.int32),
        ("5\n6\n", [[5], [6]], np.int32),
        ("3000000000\n", [[3000000000]], np.int64),
        ("1\t nan\n", [[1, np.nan]], np.float32),
    ],
)
def test_csv(tmp_path, text, values, dtype):
    (tmp_path / "t.csv").write_bytes(text.encode())
    array = read_array(tmp_path / "t.csv")
    assert array.dtype == dtype
    assert np.array_equal(array, np.array(values), equal_nan=True)


@pytest.mark.parametrize(
    "text, message",
    [
        ("a,b\n1,2\n3\n", "line 3: 1 columns, where line 2 has 2"),
        ("1,2\n3,x\n", "line 2, column 2: `x` is no number"),
        ("1,2\n3,\n", "line 2, column 2: there is no number"),
        ("a,b\n", "holds no numbers"),
        ("", "holds no numbers"),
        ("1_000\n2_x\n", "`2_x` is no number"),
    ],
)
def test_csv_errors_say_where(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_array(tmp_path / "t.csv")


def test_idx(tmp_path):
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    (tmp_path / "images-idx3-ubyte").write_bytes(idx(images, 0x08, ">u1"))
    (tmp_path / "images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images, 0x08, ">u1"), mtime=0))
    assert np.array_equal(read_array(tmp_path / "images-idx3-ubyte"), images)
    assert np.array_equal(read_array(tmp_path / "images-idx3-ubyte.gz"), images)
    (tmp_path / "floats.idx").write_bytes(idx(np.ones(3), 0x0D, ">f4"))
    assert read_array(tmp_path / "floats.idx").dtype == np.float32


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


def test_nothing_in_a_file_is_run(tmp_path):
    np.save(tmp_path / "evil.npy", np.array([Evil()], object), allow_pickle=True)
    with pytest.raises(DataError, match="Python objects"):
        read_array(tmp_path / "evil.npy")
    np.savez(tmp_path / "evil.npz", x=np.array([Evil()], object))
    with pytest.raises(DataError, match="Python objects"):
        read_array(tmp_path / "evil.npz")
    (tmp_path / "evil.pkl").write_bytes(pickle.dumps([1]))
    with pytest.raises(DataError, match="no file of arrays that is known"):
        read_array(tmp_path / "evil.pkl")


def npy_header(shape: str) -> bytes:
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("x.npy", npy_header("(4, 3)"), r"ends before its array of \[4, 3\] does"),
        ("x.npy", npy_header("(1000000000, 1000000000)"), "more than the"),
        ("x.npy", npy_header("(-1,)"), "axis of size -1"),
        ("x.npy", npy_header("(4, 'x')"), "header cannot be read"),
        ("x.npy", b"\x93NUMPY\x01\x00\xff", "header cannot be read"),
        ("x.npy", b"hello", "does not start like an npy file"),
        ("x.npz", b"hello", "cannot be unpacked"),
        ("x.gz", gzip.compress(idx(np.ones(9), 0x0D, ">f4")[:-4], mtime=0), "ends before its array does"),
        ("x.gz", gzip.compress(idx(np.ones(9), 0x0D, ">f4"), mtime=0)[:-12], "cannot be unpacked"),
        ("x.gz", gzip.compress(b"hello, world", mtime=0), "no idx file"),
        ("x.idx", struct.pack(">BBBBI", 0, 0, 8, 2, 3), "ends within its header"),
        ("x.idx", struct.pack(">BBBBI", 0, 0, 8, 1, 3) + b"12", r"ends before its array of \[3\] does"),
        ("x.idx", struct.pack(">BBBB3I", 0, 0, 8, 3, 2**31, 2**31, 2**31), "more than the"),
        ("x.bin", b"hello, world", "no file of arrays that is known"),
    ],
)
def test_damaged_files(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_array(tmp_path / name)


@pytest.mark.parametrize("array, what", [(np.array(["a"]), "text"), (np.ones(2, complex), "complex numbers")])
def test_other_kinds_of_values(tmp_path, array, what):
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(DataError, match=f"holds {what}"):
        read_array(tmp_path / "x.npy")


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(DataError, match="there is no file"):
        read_array(tmp_path / "nothing.npy")
    with pytest.raises(DataError, match="is a folder"):
        read_array(tmp_path)
    with pytest.raises(DataError, match="there is no file"):
        read_text(tmp_path / "nothing.txt")


def test_texts(tmp_path):
    (tmp_path / "t.txt").write_bytes("\ufeffgrün\r\nrot\n".encode())
    assert read_text(tmp_path / "t.txt") == "grün\nrot\n"
    (tmp_path / "latin.txt").write_bytes("grün".encode("latin-1"))
    with pytest.raises(DataError, match=r"no UTF-8 text \(byte 2\)"):
        read_text(tmp_path / "latin.txt")
    with pytest.raises(DataError, match="larger than 3 bytes"):
        read_text(tmp_path / "t.txt", limit=3)
