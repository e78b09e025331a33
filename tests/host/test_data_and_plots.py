"""What the standard modules `data` and `plot` have in Python."""

from __future__ import annotations

import io

import numpy as np
import pytest

from ocannl_lang.host.array import HostArray
from ocannl_lang.host.context import HostContext, HostError
from ocannl_lang.host.intrinsics import INTRINSICS


@pytest.fixture
def host(tmp_path):
    return HostContext(stdout=io.StringIO(), stderr=io.StringIO(), base=tmp_path)


def array(*shape, batch=1):
    return HostArray(np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape), batch, len(shape) - batch, 0)


def batches(host, *arrays, **kwargs):
    return INTRINSICS["data"]["batches"](host, arrays, kwargs)


def split(host, *args, **kwargs):
    return INTRINSICS["data"]["split"](host, args, kwargs)


def plot(host, name, *args, **kwargs):
    INTRINSICS["plot"][name](host, args, kwargs)
    return host.stdout.getvalue()


def test_batches_keep_the_smaller_last_one_and_can_be_gone_through_again(host):
    found = batches(host, array(7, 2), size=3)
    assert len(found) == 3
    for _ in range(2):
        assert [x.shape for x in found] == [(3, 2), (3, 2), (1, 2)]
    assert [x.shape for x in batches(host, array(7, 2), size=3, drop_last=True)] == [(3, 2)] * 2
    assert len(batches(host, array(2, 2), size=3, drop_last=True)) == 0
    first = next(iter(found))
    assert (first.batch, first.output) == (1, 1)


def test_a_seed_shuffles_all_arrays_alike(host):
    x, y = array(50, 2), array(50)

    def order(seed):
        return [int(v) for _, b in batches(host, x, y, size=8, seed=seed) for v in b.data]

    assert order(3) == order(3) != order(4)
    assert sorted(order(3)) == list(range(50)) and order(3) != list(range(50))
    for a, b in batches(host, x, y, size=8, seed=3):
        assert np.array_equal(a.data[:, 0], 2 * b.data)


def test_lists_are_arrays(host):
    (first, second) = batches(host, [[1, 2], [3, 4], [5, 6]], size=2)
    assert first.data.dtype == np.int32 and second.data.tolist() == [[5, 6]]


@pytest.mark.parametrize(
    "args, kwargs, message",
    [
        ((), {"size": 2}, "takes arrays and a size"),
        ((array(2),), {}, "takes arrays and a size"),
        ((array(2), array(3)), {"size": 2}, "differ in length"),
        ((array(2),), {"size": 0}, "at least 1, not 0"),
        ((array(2),), {"size": 2, "shuffle": True}, "wrong arguments"),
        ((3,), {"size": 2}, "has no length"),
    ],
)
def test_wrong_batches(host, args, kwargs, message):
    with pytest.raises(HostError, match=message):
        batches(host, *args, **kwargs)


def test_split(host):
    train, test = split(host, array(10, 2), [0.8, 0.2])
    assert train.shape == (8, 2) and test.data[:, 0].tolist() == [16, 18]
    parts = split(host, array(10), [0.33, 0.33, 0.34], seed=1)
    assert sorted(v for p in parts for v in p.data.tolist()) == list(range(10))
    assert [p.shape[0] for p in split(host, array(10), [0.5])] == [5]
    (x1, y1), (x2, _) = split(host, (array(10, 2), array(10)), [0.5, 0.5], seed=2)
    assert np.array_equal(x1.data[:, 0], 2 * y1.data) and x2.shape == (5, 2)
    assert np.array_equal(split(host, array(10), [0.5, 0.5], seed=2)[0].data, y1.data)
    with pytest.raises(HostError, match=r"add up to 1 at most: \[0\.8, 0\.3\]"):
        split(host, array(10), [0.8, 0.3])


def test_windows(host):
    windows = INTRINSICS["data"]["windows"]
    found = windows(host, ([1, 2, 3, 4, 5], 3), {})
    assert found.data.tolist() == [[1, 2, 3], [2, 3, 4], [3, 4, 5]]
    assert (found.data.dtype, found.batch, found.output) == (np.int32, 2, 0)
    assert windows(host, (HostArray.of(np.arange(6)), 2), {"step": 2}).data.tolist() == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(HostError, match="a window of 6 does not fit into 5 positions"):
        windows(host, ([1, 2, 3, 4, 5], 6), {})


def test_the_vocabulary_of_a_text(host):
    vocabulary = INTRINSICS["data"]["char_vocabulary"](host, ("banana",), {})
    assert vocabulary.members["chars"] == "abn" and vocabulary.members["size"] == len(vocabulary) == 3
    ids = vocabulary.members["encode"](host, ("nab",), {})
    assert ids.data.tolist() == [2, 0, 1] and ids.batch == 1
    assert vocabulary.members["decode"](host, (ids,), {}) == "nab"
    assert vocabulary.members["decode"](host, ([0, 2],), {}) == "an"
    with pytest.raises(HostError, match='the vocabulary has no "c"'):
        vocabulary.members["encode"](host, ("c",), {})
    with pytest.raises(HostError, match="3 characters, none at 3"):
        vocabulary.members["decode"](host, ([3],), {})


def test_a_line_as_text_shows_its_ranges(host):
    text = plot(host, "line", [0.0, 1.0, 4.0], title="loss").splitlines()
    assert text[0] == "loss"
    assert text[1].startswith("4 |") and text[-3].startswith("0 |") and text[-1].split() == ["0", "2"]
    assert all(len(line) < 80 for line in text)


def test_other_plots_as_text(host):
    points, labels = array(4, 2), HostArray.of(np.array([-1.0, 1, 1, -1], np.float32))
    assert "o" in plot(host, "scatter", points, labels) and "x" in plot(host, "scatter", points, labels)
    assert "3" in plot(host, "histogram", [1, 1, 1, 5], bins=2)
    assert plot(host, "image", array(4, 4)).splitlines()[-1].endswith("@@")
    host.call = lambda _function, args: HostArray.of(args[0].data[:, :1] - 3)
    assert "." in plot(host, "boundary", "net", points, labels)


def test_nan_and_constant_series(host):
    assert plot(host, "line", [1.0, float("nan"), 1.0])
    assert plot(host, "line", [2])


@pytest.mark.parametrize(
    "name, args, kwargs",
    [
        ("line", ([1, 2, 3],), {"labels": ["loss"]}),
        ("scatter", ([1, 2], [3, 4]), {}),
        ("histogram", ([1, 2, 3],), {}),
        ("image", (array(5, 8, 8, 1),), {}),
        ("image", (array(8, 8, 3),), {"title": "one"}),
        ("boundary", ("net", array(4, 2), [0, 1, 0, 1]), {}),
    ],
)
def test_pictures_in_files(host, tmp_path, name, args, kwargs):
    pytest.importorskip("matplotlib")
    host.call = lambda _function, args: HostArray.of(args[0].data[:, :1] - 3)
    assert plot(host, name, *args, **kwargs, file="p.png") == ""
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_the_file_may_come_last(host, tmp_path):
    pytest.importorskip("matplotlib")
    plot(host, "line", [1, 2], "a.png")
    plot(host, "image", array(4, 4), "b.png")
    assert (tmp_path / "a.png").exists() and (tmp_path / "b.png").exists()


@pytest.mark.parametrize(
    "name, args, message",
    [
        ("line", (), "at least one series"),
        ("line", (array(2, 2),), "must have one axis"),
        ("scatter", (array(4, 3),), r"points are \[n \| 2\]"),
        ("scatter", (array(4, 2), [1]), "1 labels for 4 points"),
        ("image", (array(2, 2, 2, 2),), "an image is"),
        ("histogram", ([],), "at least one finite value"),
        ("line", ([1], "x.nonsense"), "no ending that says the kind"),
        ("line", ([1], "no/such/folder/x.png"), "cannot be written"),
    ],
)
def test_wrong_plots(host, name, args, message):
    pytest.importorskip("matplotlib")
    with pytest.raises(HostError, match=message):
        plot(host, name, *args)


def test_without_matplotlib_the_picture_is_text(host, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    assert plot(host, "line", [1, 2], "a.png")
    assert "need matplotlib" in host.stderr.getvalue()
