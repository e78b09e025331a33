"""Direct calls: what they take, what they leave to the general function, and what they leave behind."""

from __future__ import annotations

import copy
import dataclasses
import gc
import inspect
import pickle
import signal
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import ocannl_lang as ocn
from ocn_runtime import calls
from ocn_runtime.calls import LAYOUT, Counter, PreparedCall, as_expected, direct_call
from ocn_runtime.cpu import stop_pools

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
    """As the handler of a signal makes it: the call that it interrupts keeps its table."""
    x, y = ones(2, 3), ones(2, 3)
    m.plus(x, y)
    words = runner_of(m.plus, x, y).words
    words.busy = 1
    before = list(runner_of(m.plus, x, y).table)
    assert m.plus(5 * x, 5 * x)[0, 0] == 10.0
    assert list(runner_of(m.plus, x, y).table) == before and words.busy == 1
    words.busy = 0
    assert m.plus(x, y)[0, 0] == 2.0


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that signal")
def test_a_handler_of_a_signal_that_calls(m):
    x, y, z = ones(2, 3), ones(2, 3), 5 * ones(2, 3)
    inner: list[float] = []
    m.plus(x, y)
    before = signal.signal(signal.SIGALRM, lambda *_: inner.append(m.plus(z, z)[0, 0]))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        while len(inner) < 20:
            assert m.plus(x, y)[0, 0] == 2.0 and m.plus([[1, 1, 1]], [[1, 1, 1]])[0, 0] == 2.0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert set(inner) == {10.0}


# ---------------------------------------------------------------- the function itself


class General(Exception):
    """The general function was called."""


class Direct:
    """A direct call of a routine for these arguments, whose general function raises `General`."""

    def __init__(self, routine: Any, *arguments: Any, lock: Any = None) -> None:
        routine(*arguments)
        ready = routine._routine.ready([np.asarray(a, d) for a, d in zip(arguments, routine._dtypes)])
        self.counter = Counter()
        self.lock = lock or threading.RLock()
        self.words = ready.runner.words
        self.last: tuple[Any, ...] = ()
        self.prepared = PreparedCall(
            ready.runner, ready.inputs, ready.results, self.counter, 0, as_tuple=routine._as_tuple
        )
        call = direct_call(ready.runner.executor, self.general, self.lock)
        assert call is not None
        self.call = call
        call.use(self.prepared)

    def general(self, *args: Any, **named: Any) -> Any:
        self.last = args, named
        raise General

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.call.function(*args, **named)

    def refuses(self, *args: Any, **named: Any) -> bool:
        """Whether these arguments come to the general function as they are, and nothing else has happened."""
        before = self.counter.calls
        with pytest.raises(General):
            self(*args, **named)
        same = all(a is b for a, b in zip(args, self.last[0], strict=True)) and set(named) == set(self.last[1])
        return same and self.counter.calls == before and not self.words.busy and free(self.lock)


def runner_of(routine: Any, *arrays: Any) -> Any:
    return routine._routine.ready(list(arrays)).runner


def free(lock: Any) -> bool:
    """Whether another thread could take the lock."""
    got: list[bool] = []

    def take() -> None:
        got.append(lock.acquire(blocking=False))
        if got[0]:
            lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return got[0]


class Sub(np.ndarray):
    pass


def misaligned(*shape: int):
    n = 4 * int(np.prod(shape))
    return np.zeros(n + 1, np.uint8)[1:].view(np.float32).reshape(shape)


def read_only(*shape: int):
    a = ones(*shape)
    a.flags.writeable = False
    return a


UNFIT = {
    "type": np.ones((2, 3)),
    "bytes": np.ones((2, 3), np.dtype(np.float32).newbyteorder()),
    "another dtype of the same type": np.ones((2, 3), np.dtype(np.float32, metadata={"a": 1})),
    "order": np.asfortranarray(ones(2, 3)),
    "strides": ones(2, 6)[:, ::2],
    "alignment": misaligned(2, 3),
    "subclass": ones(2, 3).view(Sub),
    "size": ones(3, 3),
    "axes": ones(2, 3, 1),
    "no axes": ones(),
    "list": [[1.0, 1.0, 1.0]] * 2,
    "number": 1.0,
    "none": None,
}


@pytest.mark.parametrize("unfit", UNFIT.values(), ids=UNFIT)
def test_arrays_that_are_left(m, unfit):
    x, out = ones(2, 3), ones(2, 3)
    direct = Direct(m.plus, x, x)
    assert direct.refuses(unfit, x) and direct.refuses(x, unfit) and direct.refuses(x, unfit, out=out)
    if unfit is not None:
        assert direct.refuses(x, x, out=unfit)
    assert np.array_equal(direct(x, x), 2 * x)


def test_calls_that_are_left(m):
    x, out = ones(2, 3), ones(2, 3)
    direct = Direct(m.plus, x, x)
    assert direct.refuses() and direct.refuses(x) and direct.refuses(x, x, x)
    assert direct.refuses(x, x, copy="never") and direct.refuses(x, x, out=out, copy="never")
    assert direct.refuses(x, y=x) and direct.refuses(x=x, y=x)
    for targets in ((), (out, out), [], [out, out], "out", {0: out}):
        assert direct.refuses(x, x, out=targets)
    assert direct(x, x, out=None) is not None
    assert direct.counter.calls == 1


def test_results_are_not_written_to_what_is_read_or_read_only(m):
    memory = np.zeros(24, np.float32)
    x, y = memory[6:12].reshape(2, 3), memory[18:].reshape(2, 3)
    direct = Direct(m.plus, x, y)
    for start in range(19):
        out = memory[start : start + 6].reshape(2, 3)
        touches = abs(start - 6) < 6 or abs(start - 18) < 6
        assert direct.refuses(x, y, out=out) if touches else direct(x, y, out=out) is out
    assert direct.refuses(x, y, out=read_only(2, 3))
    assert direct.refuses(x, y, out=x)


def test_results_that_overlap_each_other(m):
    x, a, k = ones(2, 3), ones(2, 3), np.zeros((), np.float32)
    direct = Direct(m.both, x, 1.0)
    assert direct.refuses(x, 1.0, out=(a, a[0, :1].reshape(())))
    for targets in ((a, k), [a, k]):
        assert direct(x, 3.0, out=targets) is targets
        assert np.all(a == 4) and k == 6
    assert direct.refuses(x, 1.0, out=(a, read_only()))
    assert direct.refuses(x, 1.0, out=a)


def test_what_is_taken(m):
    x, fixed = ones(2, 3), read_only(2, 3)
    direct = Direct(m.plus, x, x)
    assert np.array_equal(direct(x, x), direct(fixed, fixed))
    assert direct(x, fixed).flags.owndata
    assert direct.counter.calls == 3


def test_nothing_at_all(m):
    x = ones(0, 3)
    direct = Direct(m.plus, x, x)
    assert direct(x, x).shape == (0, 3)
    assert direct(x, x, out=x) is x
    memory = ones(5, 3)
    out = memory[2:2]
    assert direct(memory[:0], memory[3:3], out=out) is out
    assert direct.refuses(ones(0, 2), x)


NUMBERS: list[tuple[Any, Any, bool]] = [
    (2, 0.5, True),
    (-(2**31), -1e300, True),
    (2**31 - 1, 0.0, True),
    (2**31, 0.5, False),
    (-(2**31) - 1, 0.5, False),
    (1 << 70, 0.5, False),
    (-(1 << 70), 0.5, False),
    (True, 0.5, False),
    (np.int32(1), 0.5, False),
    (np.ones((), np.int32), 0.5, False),
    (1.0, 0.5, False),
    (1, 1, False),
    (1, float("nan"), False),
    (1, float("inf"), False),
    (1, np.float64(0.5), False),
    (1, None, False),
]


@pytest.mark.parametrize(("a", "b", "taken"), NUMBERS)
def test_numbers_that_are_taken_and_left(m, a, b, taken):
    direct = Direct(m.add, 1, 1.0)
    if taken:
        assert direct(a, b) == a + b and type(direct(a, b)) is float
    else:
        assert direct.refuses(a, b)


def test_numbers_round_as_numpy_does(m):
    x = np.zeros((1, 3), np.float32)
    direct = Direct(m.both, x, 1.0)
    largest = float(np.finfo(np.float32).max)
    for k in (0.1, 1 / 3, 1e-42, 1e-60, largest, -largest, 16777217.0):
        assert direct(x, k)[0][0, 0] == np.float32(k)
    assert direct.refuses(x, np.nextafter(largest, np.inf).item()) and direct.refuses(x, 1e39)


def test_positions_below_the_limit_are_taken(m):
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    direct = Direct(m.pick, x, 0)
    assert all(np.array_equal(direct(x, i), x[i]) for i in range(5))
    assert direct.refuses(x, 5) and direct.refuses(x, -1)


def test_every_type_of_number(tmp_path):
    """As an argument and as a result."""
    kinds = ("f64", "f32", "bf16", "f16", "i64", "i32", "u32", "u16", "u8")
    text = "".join(f"routine of_{k}(a: {k}) -> {k}:\n    return a\n\n" for k in kinds)
    (tmp_path / "kinds.ocn").write_text(text)
    m = ocn.load(tmp_path / "kinds.ocn")
    for kind in kinds:
        routine = getattr(m, f"of_{kind}")
        number: Any = 1.5 if "f" in kind else 7
        for _ in range(3):
            assert routine(number) == number and type(routine(number)) is type(number)
        if kind in ("bf16", "f16"):
            assert Direct(routine, number).refuses(number)
        else:
            limits: Any = np.finfo(routine._dtypes[0]) if "f" in kind else np.iinfo(routine._dtypes[0])
            for end in (limits.min, limits.max):
                end = float(end) if "f" in kind else int(end)
                assert Direct(routine, number)(end) == end


def test_references_are_given_back(m):
    x, y, out, k = ones(2, 3), np.ones((2, 3)), ones(2, 3), np.zeros((), np.float32)
    plus, both = Direct(m.plus, x, x), Direct(m.both, x, 1.5)
    pair, listed, number = (out, k), [out, k], 123456.5
    held = (x, y, out, k, pair, listed, number, None, "out", np.ndarray, np.empty, x.dtype, plus.general)

    def turn() -> None:
        for arguments, named in (
            ((x, x), {}),
            ((x, x), {"out": out}),
            ((x, x), {"out": None}),
            ((x, y), {}),
            ((x, x), {"out": x}),
            ((x,), {"out": out}),
            ((x, x), {"out": pair}),
            ((x, x), {"copy": "never"}),
        ):
            try:
                plus(*arguments, **named)
            except General:
                plus.last = ()
        for arguments, named in (
            ((x, number), {}),
            ((x, number), {"out": pair}),
            ((x, number), {"out": listed}),
            ((x, number), {"out": [out]}),
            ((x, number), {"out": (out, y)}),
            ((y, number), {}),
        ):
            try:
                both(*arguments, **named)
            except General:
                both.last = ()

    turn()
    before = [sys.getrefcount(o) for o in held]
    for _ in range(50):
        turn()
    after = [sys.getrefcount(o) for o in held]
    assert max(abs(a - b) for a, b in zip(after, before, strict=True)) < 10


def test_results_are_given_away(m):
    x = ones(2, 3)
    plus, both = Direct(m.plus, x, x), Direct(m.both, x, 1.5)
    assert sys.getrefcount(plus(x, x)) <= 2
    pair = both(x, 1.5)
    assert type(pair) is tuple and sys.getrefcount(pair) <= 3 and sys.getrefcount(pair[0]) <= 3


def test_an_exception_while_a_result_is_made(m, monkeypatch: pytest.MonkeyPatch):
    def none(shape: Any, kind: Any) -> Any:
        raise MemoryError(shape)

    monkeypatch.setattr(calls, "LARGE_RESULT", 1)
    monkeypatch.setattr(calls, "result_array", none)
    x = ones(2, 3)
    for routine, arguments in ((m.plus, (x, x)), (m.both, (x, 1.0))):
        direct = Direct(routine, *arguments)
        before = sys.getrefcount(x)
        for _ in range(20):
            with pytest.raises(MemoryError):
                direct(*arguments)
        assert direct.counter.calls == 0 and not direct.words.busy and free(direct.lock)
        assert abs(sys.getrefcount(x) - before) < 10


def test_an_exception_while_the_lock_is_waited_for(m):
    class Interrupted:
        def acquire(self) -> bool:
            raise KeyboardInterrupt

        def release(self) -> None:
            raise AssertionError

    x = ones(2, 3)
    direct = Direct(m.plus, x, x, lock=Interrupted())
    with pytest.raises(KeyboardInterrupt):
        direct(x, x)
    assert direct.counter.calls == 0


def test_a_lock_that_cannot_be_released(m):
    class Broken:
        def acquire(self) -> bool:
            return True

        def release(self) -> None:
            raise RuntimeError

    x = ones(2, 3)
    direct = Direct(m.plus, x, x, lock=Broken())
    for arguments in ((x, x), (x, 1.0)):
        with pytest.raises(RuntimeError):
            direct(*arguments)


def test_code_that_runs_while_results_are_made(m, monkeypatch: pytest.MonkeyPatch):
    """A call in it is left to the general function; what it does to the arguments is seen."""
    x, y = ones(2, 3), ones(2, 3)
    made: list[tuple[int, ...]] = []

    def make(shape: tuple[int, ...], kind: Any) -> Any:
        with pytest.raises(General):
            direct(x, x)
        if made:
            y.resize((4, 3), refcheck=False)
        made.append(shape)
        return np.empty(shape, kind)

    monkeypatch.setattr(calls, "LARGE_RESULT", 1)
    monkeypatch.setattr(calls, "result_array", make)
    direct = Direct(m.plus, x, y)
    assert np.all(direct(x, y) == 2)
    assert direct.refuses(x, y) and made == [(2, 3), (2, 3)]


def test_threads_that_stop_between_calls(m):
    x = ones(2, 3)
    direct = Direct(m.plus, x, x)
    direct(x, x)
    stop_pools()
    assert direct.refuses(x, x)
    m.plus(x, x)
    assert np.array_equal(direct(x, x), 2 * x)


def test_without_a_prepared_call(m):
    x = ones(2, 3)
    direct = Direct(m.plus, x, x)
    direct.call.use(None)
    assert direct.refuses(x, x)
    with pytest.raises(General):
        direct(x, x, out=x)


def test_several_threads_at_one_function(m):
    x = ones(2, 3)
    direct = Direct(m.plus, x, x)
    wrong: list[int] = []

    def work(k: int) -> None:
        a, out = np.full((2, 3), k, np.float32), np.zeros((2, 3), np.float32)
        for _ in range(2000):
            if not (np.all(direct(a, x) == k + 1) and np.all(direct(a, x, out=out) == k + 1)):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and direct.counter.calls == 4 * 2 * 2000


# ---------------------------------------------------------------- where there is none


FIELDS = [f.name for f in dataclasses.fields(LAYOUT)]


def test_this_interpreter_is_as_expected():
    assert as_expected(LAYOUT)


@pytest.mark.parametrize("field", FIELDS)
def test_objects_that_look_otherwise(file, monkeypatch: pytest.MonkeyPatch, field: str):
    """Nothing is taken on faith: where one field lies elsewhere, all calls go the general way, with the same results."""
    flag = field in ("contiguous", "aligned", "writeable")
    other = dataclasses.replace(LAYOUT, **{field: 0x2000 if flag else getattr(LAYOUT, field) + 8})
    assert not as_expected(other)
    calls._method.cache_clear()
    monkeypatch.setattr(calls, "LAYOUT", other)
    try:
        m = ocn.load(file)
        x, out = ones(2, 3), ones(2, 3)
        for _ in range(3):
            assert np.array_equal(m.plus(x, x), 2 * x) and m.plus(x, x, out=out) is out
            assert m.add(2, 0.5) == 2.5
        assert m.plus._direct is None and m.plus.func == m.plus._general
    finally:
        calls._method.cache_clear()


def test_an_interpreter_that_lacks_a_function(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(calls.FUNCTIONS, "call", "PyObject_CallNobody")
    assert not as_expected(LAYOUT)


def test_an_interpreter_without_its_lock(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert not as_expected(LAYOUT)


# ---------------------------------------------------------------- routines as objects


def test_a_routine_is_what_it_was(m):
    x = ones(2, 3)
    for _ in range(2):
        assert repr(m.plus) == "<Ocn routine plus(x: 'f32[n | 3]', y: 'f32[n | 3]') -> 'f32[n | 3]'>"
        assert list(inspect.signature(m.plus).parameters) == ["x", "y"]
        assert m.plus.__name__ == "plus" and m.plus.shapes["return"] == "f32[n | 3]"
        m.plus(x, x)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            attempt(m.plus)


def test_a_routine_in_a_class_is_no_method(m):
    class Model:
        plus = m.plus

    x = ones(2, 3)
    for _ in range(2):
        assert np.array_equal(Model().plus(x, x), 2 * x)


def test_modules_are_freed(file):
    m = ocn.load(file)
    x = ones(2, 3)
    for _ in range(2):
        m.plus(x, x)
    gone = weakref.ref(m.plus)
    del m
    gc.collect()
    assert gone() is None
