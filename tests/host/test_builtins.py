"""Built-in functions and methods of host code."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pytest

from ocannl_lang.host.array import HostArray
from ocannl_lang.host.builtins import HOST_FUNCTIONS, METHODS, HostContext, HostError
from ocannl_lang.host.methods import method_of
from ocannl_lang.host.random import HostRandom


@pytest.fixture
def host(tmp_path):
    return HostContext(stdout=io.StringIO(), stderr=io.StringIO(), base=tmp_path)


def f32(*values):
    return HostArray.of(np.array(values, np.float32))


def scalar(value, dtype: Any = np.float32):
    return HostArray(np.array(value, dtype), 0, 0, 0)


@pytest.mark.parametrize(
    "name, args, expected",
    [
        ("len", ([1, 2],), 2),
        ("len", ("grün",), 4),
        ("len", (f32([1, 2], [3, 4], [5, 6]),), 3),
        ("range", (3,), range(3)),
        ("range", (scalar(2, np.int32), 10, 3), range(2, 10, 3)),
        ("enumerate", (["a", "b"],), [(0, "a"), (1, "b")]),
        ("zip", ([1, 2], range(3)), [(1, 0), (2, 1)]),
        ("sorted", ([3, 1, 2],), [1, 2, 3]),
        ("sorted", ([scalar(3), scalar(1)],), None),
        ("sorted", ({"b": 1, "a": 2},), ["a", "b"]),
        ("reversed", (range(3),), [2, 1, 0]),
        ("sum", ([1, 2, 3],), 6),
        ("sum", ([1, scalar(0.5)],), 1.5),
        ("sum", ([],), 0),
        ("max", (1, 3, 2), 3),
        ("min", ([2, 1],), 1),
        ("mean", ([1, 2],), 1.5),
        ("any", ([False, True],), True),
        ("all", ([],), True),
        ("int", ("0xff",), 255),
        ("int", (-2.7,), -2),
        ("int", (scalar(3.9),), 3),
        ("float", ("1e-3",), 1e-3),
        ("str", (True,), "true"),
        ("bool", (0,), False),
        ("list", ("ab",), ["a", "b"]),
        ("dict", ([("a", 1)],), {"a": 1}),
        ("abs", (-3,), 3),
        ("round", (2.5,), 2),
        ("sqrt", (4,), 2.0),
        ("sign", (-0.5,), -1),
        ("sigmoid", (-1000,), 0.0),
        ("softplus", (1000,), 1000.0),
        ("clamp", (5, 0, 1), 1),
        ("pow", (2, 10), 1024),
        ("close", (1.0, 1.0000001), True),
        ("close", (1.0, 1.1), False),
        ("close", (1.0, 1.1, 0.2), True),
        ("close", (f32(1, 2), [1, 2]), True),
        ("close", (f32(1, math.inf), f32(1, math.inf)), True),
        ("close", (f32(math.nan), f32(math.nan)), False),
        ("close", ((1, f32(2)), (1, f32(2))), True),
        ("close", (f32(2, 2), 2), True),
    ],
)
def test_functions(host, name, args, expected):
    got = HOST_FUNCTIONS[name](host, args, {})
    if expected is None:
        got, expected = [float(x.data) for x in got], [1.0, 3.0]
    assert got == expected and type(got) is type(expected)


def test_named_arguments(host):
    host.call = lambda function, args: function(*args)
    call = HOST_FUNCTIONS["sorted"]
    assert call(host, (["bb", "a"],), {"reverse": True}) == ["bb", "a"]
    assert call(host, (["bb", "a"],), {"key": len}) == ["a", "bb"]
    assert HOST_FUNCTIONS["dict"](host, (), {"a": 1, "pairs": 2}) == {"a": 1, "pairs": 2}
    assert HOST_FUNCTIONS["enumerate"](host, ("ab",), {"start": 1}) == [(1, "a"), (2, "b")]


def test_reducing_an_array_keeps_its_precision_and_sums_ints_as_i32(host):
    total = HOST_FUNCTIONS["sum"](host, (f32(0.1, 0.2),), {})
    assert total.shape == () and total.data.dtype == np.float32
    ones = HostArray.of(np.ones((300, 2), np.uint8))
    assert HOST_FUNCTIONS["sum"](host, (ones,), {}).data == 600
    assert HOST_FUNCTIONS["sum"](host, (ones,), {}).data.dtype == np.int32
    assert HOST_FUNCTIONS["mean"](host, (ones,), {}).data.dtype == np.float32


@pytest.mark.parametrize(
    "name, args, code, message",
    [
        ("close", (1,), "E0302", r"wrong arguments for close\(a, b, tolerance = 1e-06\): .*'b'"),
        ("close", (f32(1, 2), f32(1, 2, 3)), "E0401", r"f32\[2 \| \] and the array f32\[3 \| \]"),
        ("len", (3,), "E0301", "an int has no length"),
        ("len", (scalar(3),), "E0301", "has no length"),
        ("sum", (3,), "E0301", "must be a list or an array, not an int"),
        ("sum", (["a"],), "E0301", "must be a number, not a string"),
        ("max", ([],), "E0304", "an empty list has no max"),
        ("range", (1, 2, 0), "E0304", "must not be 0"),
        ("range", (1.5,), "E0301", "must be an int, not a float"),
        ("sorted", ([1, "a"],), "E0301", "a string and an int have no order"),
        ("int", ("1.5",), "E0304", '"1.5" is no whole number'),
        ("int", (math.inf,), "E0304", "no whole number"),
        ("sqrt", (-1,), "E0304", r"sqrt\(-1\) has no value"),
        ("log", (0,), "E0304", "has no value"),
        ("recip", (0,), "E0304", "has no value"),
        ("exp", (1000,), "E0304", "is too large"),
        ("clamp", (1,), "E0302", "does not take 1 numbers"),
        ("choice", ([0, 0],), "E0304", "not all 0"),
        ("choice", ([1, -1],), "E0304", "not negative"),
        ("dict", ([1],), "E0301", "takes pairs"),
        ("read_array", ("no.npy",), "E0801", "there is no file"),
        ("read_text", (3,), "E0301", "must be a string, not an int"),
        ("save", (None, "x"), "E0304", "no parameters"),
    ],
)
def test_faults_of_the_program(host, name, args, code, message):
    with pytest.raises(HostError, match=message) as caught:
        HOST_FUNCTIONS[name](host, args, {})
    assert caught.value.code == code


def test_lazy_values_stay_lazy_and_keep_their_length(host):
    class Batches:
        def __iter__(self):
            return iter("abc")

        def __len__(self):
            return 3

    pairs = HOST_FUNCTIONS["enumerate"](host, (Batches(),), {})
    assert len(pairs) == 3
    assert list(pairs) == list(pairs) == [(0, "a"), (1, "b"), (2, "c")]
    zipped = HOST_FUNCTIONS["zip"](host, (range(2), Batches()), {})
    assert len(zipped) == 2 and list(zipped) == [(0, "a"), (1, "b")]


def test_arrays_are_gone_through_along_their_first_axis(host):
    rows = HOST_FUNCTIONS["list"](host, (HostArray(np.arange(6).reshape(2, 3), 1, 1, 0),), {})
    assert [(row.data.tolist(), row.batch, row.output) for row in rows] == [([0, 1, 2], 0, 1), ([3, 4, 5], 0, 1)]
    columns = HOST_FUNCTIONS["list"](host, (HostArray(np.arange(6).reshape(2, 3), 0, 1, 1),), {})
    assert (columns[0].output, columns[0].input) == (0, 1)
    assert all(isinstance(x.data, np.ndarray) for x in HOST_FUNCTIONS["list"](host, (f32(1, 2),), {}))


def test_random_numbers_depend_on_the_seed_alone():
    def draw(seed):
        host = HostContext(stdout=io.StringIO(), seed=seed)
        return (
            HOST_FUNCTIONS["random"](host, (), {}),
            HOST_FUNCTIONS["choice"](host, ([1, 2, 3],), {}),
            HOST_FUNCTIONS["shuffle"](host, (range(20),), {}),
            HOST_FUNCTIONS["shuffle"](host, (f32(*range(20)),), {}).data.tolist(),
        )

    assert draw(1) == draw(1) != draw(2)
    value, _, items, array = draw(1)
    assert 0 <= value < 1
    assert sorted(items) == sorted(array) == list(range(20)) and items != array


def test_every_built_in_name_of_host_code_is_there():
    from ocannl_lang.names import builtins as names

    kinds = {"pointwise", "static function", "conversion", "host function"}
    wanted = {n for n, b in names.BUILTINS.items() if b.kind in kinds} - set(names.PRECISIONS)
    assert wanted <= set(HOST_FUNCTIONS)
    methods = {("str", n) for n in names.STRING_METHODS} | {("list", n) for n in names.LIST_METHODS}
    assert methods | {("dict", n) for n in names.DICT_METHODS} <= set(METHODS)


def test_single_draws_and_many_are_one_stream():
    one, many = HostRandom(3, "place"), HostRandom(3, "place")
    expected = many.uniforms(600).tolist()
    assert [one.uniform() for _ in range(300)] + one.uniforms(10).tolist() + [
        one.uniform() for _ in range(290)
    ] == expected


def test_choice_follows_its_weights(host):
    counts = [0, 0, 0, 0]
    for _ in range(400):
        counts[HOST_FUNCTIONS["choice"](host, ([0, 1, 3, 0],), {})] += 1
    assert counts[0] == counts[3] == 0
    assert 220 < counts[2] < 340


def test_files_are_looked_for_beside_the_program_first(host, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "a.txt").write_text("beside")
    (tmp_path / "here" / "a.txt").write_text("current")
    (tmp_path / "here" / "b.txt").write_text("current")
    assert HOST_FUNCTIONS["read_text"](host, ("a.txt",), {}) == "beside"
    assert HOST_FUNCTIONS["read_text"](host, ("b.txt",), {}) == "current"
    np.savez(tmp_path / "x.npz", a=np.ones(2), b=np.zeros(3))
    assert HOST_FUNCTIONS["read_array"](host, ("x.npz:b",), {}).shape == (3,)


def test_saving_and_loading_go_to_the_program(host, tmp_path):
    seen = []
    host.save = lambda value, path: seen.append((value, path))
    HOST_FUNCTIONS["save"](host, ("net", "net.safetensors"), {})
    assert seen == [("net", tmp_path / "net.safetensors")]

    def missing(_value, path):
        path.read_bytes()

    host.load = missing
    with pytest.raises(HostError, match="there is no file"):
        HOST_FUNCTIONS["load"](host, ("net", "net.safetensors"), {})


@pytest.mark.parametrize(
    "value, name, args, expected",
    [
        ("a,b", "split", (",",), ["a", "b"]),
        (", ", "join", (["a", "b"],), "a, b"),
        ("abc", "find", ("c",), 2),
        ([1, 2], "index", (2,), 1),
        ({"a": 1}, "keys", (), ["a"]),
        ({"a": 1}, "items", (), [("a", 1)]),
        ({"a": 1}, "get", ("b", 2), 2),
        ((1, 1), "count", (1,), 2),
    ],
)
def test_methods(host, value, name, args, expected):
    method = method_of(value, name)
    assert method is not None and method(host, (value, *args), {}) == expected


def test_methods_that_change_a_list(host):
    xs = [3, 1]
    METHODS["list", "append"](host, (xs, 2), {})
    METHODS["list", "sort"](host, (xs,), {"reverse": True})
    assert xs == [3, 2, 1]
    assert METHODS["list", "pop"](host, (xs,), {}) == 1


@pytest.mark.parametrize(
    "value, name, args, message",
    [
        ([1], "index", (2,), "a list does not hold 2"),
        ([], "pop", (), "a list of 0 has no such element"),
        ({}, "pop", ("a",), "no key 'a'"),
        ("a", "join", ([1],), "a list of strings"),
        ("a", "upper", (1,), "upper"),
    ],
)
def test_faults_in_methods(host, value, name, args, message):
    method = method_of(value, name)
    assert method is not None
    with pytest.raises(HostError, match=message):
        method(host, (value, *args), {})
    assert method_of(value, "no_such_method") is None
