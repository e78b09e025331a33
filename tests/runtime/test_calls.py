"""Prepared calls: what the second call with the same arrays may take for granted, and what not."""

from __future__ import annotations

import threading
from typing import Any, cast

import numpy as np
import pytest

import ocannl_lang as ocn
from ocn_runtime.calls import UNPREPARED, Taken, prepare_call

PROGRAM = """
routine plus(x: f32[n | 3], y: f32[n | 3]) -> f32[n | 3]:
    return x + y

routine both(x: f32[n | 3], k: f32) -> (f32[n | 3], f32):
    return x + k, k * 2

routine pick(x: f32[5 | 3], i: index[5]) -> f32[3]:
    return x[i]

routine add(a: i32, b: f64) -> f64:
    return a + b

routine twice_the_least(x: f32[n | ]) -> f32:
    return 2 * min(x)

routine noise() -> f32[4]:
    return uniform()

routine step(x: f32[n | 3], lr: f32) -> f32:
    let loss = mean(({w: [3 -> 2] = 1.} * x) ** 2)
    update(loss)
    for p in params(loss):
        p -= lr * p.grad
    return loss
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("calls") / "calls.ocn"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def m(file):
    return ocn.load(file)


def ones(*shape: int):
    return np.ones(shape, np.float32)


def test_new_contents_of_the_same_arrays(m):
    x, y = ones(2, 3), ones(2, 3)
    for k in range(4):
        x[...] = k
        assert np.array_equal(m.plus(x, y), np.full((2, 3), k + 1))


def test_results_are_fresh_each_time(m):
    x = ones(2, 3)
    a = m.plus(x, x)
    b = m.plus(x, x)
    assert a is not b and not np.may_share_memory(a, b)


def test_an_array_that_changes_its_shape_in_place(m):
    x = np.arange(12, dtype=np.float32).reshape(4, 3).copy()
    m.plus(x, x)
    x.resize((2, 3), refcheck=False)
    assert np.array_equal(m.plus(x, x), 2 * x)
    x.resize((4, 3), refcheck=False)
    assert np.array_equal(m.plus(x, x), 2 * x)


def test_layouts_and_types_that_need_a_copy(m):
    x = ones(2, 3)
    for _ in range(2):
        m.plus(x, x)
        wide = np.arange(12, dtype=np.float32).reshape(2, 6)
        assert np.array_equal(m.plus(wide[:, ::2], x), wide[:, ::2] + 1)
        assert np.array_equal(m.plus(np.asfortranarray(wide[:, :3]), x), wide[:, :3] + 1)
        assert np.array_equal(m.plus(x.astype(np.float64), x), 2 * x)
        assert np.array_equal(m.plus([[1, 2, 3]], [[1, 1, 1]]), [[2, 3, 4]])


def test_out_again_and_again(m):
    x, y, out = ones(2, 3), ones(2, 3), np.zeros((2, 3), np.float32)
    for k in range(4):
        y[...] = k
        assert m.plus(x, y, out=out) is out
        assert np.all(out == k + 1)
    out.flags.writeable = False
    with pytest.raises(ocn.OcnError, match="cannot be written to"):
        m.plus(x, y, out=out)


def test_out_that_overlaps_an_argument(m):
    memory = np.arange(12, dtype=np.float32)
    x, y, apart = memory[:6].reshape(2, 3), ones(2, 3), np.zeros((2, 3), np.float32)
    m.plus(x, y, out=apart)
    for _ in range(3):
        overlapping = memory[1:7].reshape(2, 3)
        wanted = x + y
        m.plus(x, y, out=overlapping)
        assert np.array_equal(overlapping, wanted)
        m.plus(y, y, out=apart)
        # the same `out` as in the call before, but now it is also an argument
        wanted = apart + y
        m.plus(apart, y, out=apart)
        assert np.array_equal(apart, wanted)


def test_several_results_into_tuples_and_lists(m):
    x, a, k = ones(2, 3), np.zeros((2, 3), np.float32), np.zeros((), np.float32)
    other = np.zeros((2, 3), np.float32)
    targets = [a, k]
    for turn in range(3):
        m.both(x, float(turn), out=(a, k))
        assert np.all(a == turn + 1) and k == 2 * turn
        assert m.both(x, float(turn + 10), out=targets) is targets
        assert np.all(a == turn + 11)
        targets[0] = other
        m.both(x, float(turn + 20), out=targets)
        assert np.all(other == turn + 21) and np.all(a == turn + 11)
        targets[0] = a
        with pytest.raises(ocn.OcnError, match="out has 1 arrays for 2 results"):
            m.both(x, 1.0, out=(a,))


def test_numbers(m):
    for _ in range(2):
        assert m.add(2, 0.5) == 2.5
        assert m.add(True, 1) == 2.0
        assert m.add(np.int32(3), np.float64(0.25)) == 3.25
        assert m.add(np.array(4, np.int32), 0.5) == 4.5
        with pytest.raises(ocn.OcnError):
            m.add(2.5, 1.0)
        with pytest.raises(ocn.OcnError):
            m.add(1 << 40, 1.0)
        with pytest.raises(ocn.OcnError, match="too large for f32"):
            m.both(ones(1, 3), 1e39)
        assert np.isnan(m.both(ones(1, 3), float("nan"))[1])
        assert m.both(ones(1, 3), float("inf"))[1] == np.inf


def test_positions_stay_checked(m):
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    for i in range(5):
        assert np.array_equal(m.pick(x, i), x[i])
    for outside in (5, -1):
        with pytest.raises(ocn.OcnError, match=f"`i` is a position below 5, not {outside}"):
            m.pick(x, outside)


def test_sizes_in_turn(m):
    for n in (1, 2, 1, 3, 2):
        x = ones(n, 3)
        assert m.plus(x, x).shape == (n, 3)
        assert m.twice_the_least(np.arange(n, dtype=np.float32) + 1) == 2.0


def test_call_counts_go_on(file):
    a, b = ocn.load(file, seed=3), ocn.load(file, seed=3, device="reference")
    draws = [a.noise() for _ in range(4)]
    assert all(np.array_equal(d, b.noise()) for d in draws)
    assert len({d.tobytes() for d in draws}) == 4
    out = np.zeros(4, np.float32)
    assert np.array_equal(a.noise(out=out), b.noise())


def test_parameters_that_are_set_between_calls(m):
    x = ones(2, 3)
    first = m.step(x, 0.1)
    m.step(x, 0.1)
    m.params["step.w"] = np.ones((2, 3), np.float32)
    assert m.step(x, 0.1) == first
    fork = m.fork()
    assert fork.step(x, 0.0) == m.step(x, 0.0)


def test_several_threads(m):
    m.plus(ones(2, 3), ones(2, 3))
    wrong: list[int] = []

    def work(k: int) -> None:
        x, y, out = np.full((2, 3), k, np.float32), ones(2, 3), np.zeros((2, 3), np.float32)
        for _ in range(300):
            if not (np.all(m.plus(x, y) == k + 1) and np.all(m.plus(x, y, out=out) == k + 1)):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_call_in_the_middle_of_a_call(m):
    """As the handler of a signal makes it: the call that it interrupts keeps its arrays."""
    x, y = ones(2, 3), ones(2, 3)
    m.plus(x, y)
    runner = m.plus._routine.ready([x, y]).runner
    inner: list[float] = []

    class Interrupted:
        @property
        def calls(self) -> int:
            assert call((x, x), None) is UNPREPARED
            inner.append(m.plus(5 * x, 5 * x)[0, 0])
            return 0

        @calls.setter
        def calls(self, value: int) -> None:
            del value

    taken = Taken((2, 3), np.dtype(np.float32))
    call = prepare_call(runner, [taken, taken], [taken], threading.RLock(), cast(Any, Interrupted()), 0, as_tuple=False)
    assert call((x, y), None)[0, 0] == 2.0 and inner == [10.0]
