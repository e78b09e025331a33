"""The Python interface on small programs."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import ocannl_lang as ocn

PROGRAM = """## A small program.

let width = 4

op net(x) = {w: [3 -> 2]} * x + {b: [2] = 0.}
let f = net

## Twice as much.
routine twice(x: f32[n | 3]) -> f32[n | 3]:
    return 2 * x

routine apply(x: f32[n | 3]) -> f32[n | 2]:
    return f(x)

routine several(x: f32[n | 3], k: f32) -> (f32[n | 3], f32):
    return x + k, k + width

routine pick(x: f32[5 | 3], i: index[5]) -> f32[3]:
    return x[i]

routine total(x: i32[n | ]) -> i32:
    return sum(x)

routine step(x: f32[n | 3], lr: f32) -> f32:
    let loss = mean(f(x) ** 2)
    update(loss)
    for p in params(loss):
        p -= lr * p.grad
    return loss

routine counted() -> f32:
    state calls: f32 = 0.
    calls += 1
    return calls
"""

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("api") / "small.ocn"
    path.write_text(PROGRAM)
    return path


@pytest.fixture(scope="module")
def code(file):
    return ocn.load(file, backend="reference")


@pytest.fixture
def m(code):
    return code.fork()


def test_results_are_arrays_numbers_and_tuples(m):
    assert np.array_equal(m.twice(X), 2 * X)
    assert m.total([1, 2, 3]) == 6 and type(m.total([1, 2, 3])) is int
    shifted, sum_ = m.several(X, 1)
    assert np.array_equal(shifted, X + 1) and sum_ == 5.0 and type(sum_) is float
    assert m.pick(np.arange(15).reshape(5, 3), 1).tolist() == [3, 4, 5]
    assert m.several(k=1, x=X)[1] == 5.0


def test_both_backends_agree(file, m):
    compiled = ocn.load(file)
    compiled.params.update(m.params)
    assert np.allclose(compiled.apply(X), m.apply(X), rtol=1e-6)


def test_settings_replace_top_level_lets(file):
    assert ocn.load(file, backend="reference", width=10).several(X, 1)[1] == 11.0


def test_a_routine_describes_itself(m):
    assert m.twice.__doc__ == "Twice as much."
    assert str(inspect.signature(m.several)) == "(x: 'f32[n | 3]', k: 'f32') -> '(f32[n | 3], f32)'"
    assert m.several.shapes == {"x": "f32[n | 3]", "k": "f32", "return": "(f32[n | 3], f32)"}
    assert m.total.source == "routine total(x: i32[n | ]) -> i32:\n    return sum(x)"
    assert m.__doc__ == "A small program." and m.__name__ == "small"
    assert sorted(m.routines) == ["apply", "counted", "pick", "several", "step", "total", "twice"]
    with pytest.raises(AttributeError, match="did you mean twice"):
        _ = m.twcie


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda m: m.twice(np.ones(3, np.float32)), "`x` has 2 axes"),
        (lambda m: m.twice(np.ones((2, 4), np.float32)), "4"),
        (lambda m: m.pick(np.ones((5, 3)), 5), "below 5, not 5"),
        (lambda m: m.pick(np.ones((5, 3)), 1.5), "`i` holds floats, and i32 is asked for"),
        (lambda m: m.total(np.array([2**40])), "`x` holds 1099511627776, which i32 cannot"),
        (lambda m: m.twice(np.full((2, 3), 1e300)), "too large for f32"),
        (lambda m: m.twice("text"), "cannot be read as an array"),
        (lambda m: m.twice(X.astype(np.float64), copy="never"), "needs a copy: it holds f64, not f32"),
        (lambda m: m.twice(X.T[:2].T, copy="never"), "needs a copy"),
    ],
)
def test_arguments_that_do_not_fit(m, call, message):
    with pytest.raises(ocn.OcnError, match=message) as caught:
        call(m)
    assert isinstance(caught.value, ValueError)
    assert caught.value.diagnostic.code == "E0701"
    assert "small.ocn:" in str(caught.value)


def test_wrong_numbers_of_arguments_are_type_errors(m):
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        m.twice()
    with pytest.raises(TypeError, match="too many positional arguments"):
        m.twice(X, X)
    with pytest.raises(TypeError, match="unexpected keyword argument 'y'"):
        m.twice(x=X, y=X)
    with pytest.raises(ValueError, match="copy is"):
        m.twice(X.tolist(), copy="always")


def test_results_into_given_arrays(m):
    out = np.empty((2, 3), np.float32)
    assert m.twice(X, out=out) is out and np.array_equal(out, 2 * X)
    x = X.copy()
    m.twice(x, out=x)
    assert np.array_equal(x, 2 * X)
    wide = np.empty((2, 3), np.float64)
    m.twice(X, out=wide)
    assert np.array_equal(wide, 2 * X)
    first, second = np.empty((2, 3), np.float32), np.empty((), np.float32)
    m.several(X, 1, out=(first, second))
    assert np.array_equal(first, X + 1) and second == 5


def test_out_that_holds_no_array_or_the_same_one_twice(m):
    first = np.empty((2, 3), np.float32)
    with pytest.raises(ocn.OcnError, match=r"out\[1\] cannot be read as an array: it is a NoneType"):
        m.several(X, 1, out=(first, None))
    with pytest.raises(ocn.OcnError, match=r"out\[0\] and out\[1\] lie in the same memory"):
        m.several(X, 1, out=(first, first[0, :1].reshape(())))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_calls_what_another_thread_was_in_the_middle_of(tmp_path):
    (tmp_path / "x.ocn").write_text("routine f(a: f32[n, n]) -> f32[n, n]:\n    return a +*{i, k; k, j => i, j} a\n")
    text = f"""
import os, threading, time, numpy as np, ocannl_lang
m = ocannl_lang.load({str(tmp_path / "x.ocn")!r})
a = np.ones((300, 300), np.float32)
expected = m.f(a)
def calls():
    while True: m.f(a)
threading.Thread(target=calls, daemon=True).start()
time.sleep(0.05)
for _ in range(5):
    child = os.fork()
    if child == 0: os._exit(not np.array_equal(m.f(a), expected))
    assert os.waitpid(child, 0)[1] == 0
"""
    # The thread is still in a call when Python ends.
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", text], timeout=300).returncode == 0


@pytest.mark.parametrize(
    "out, message",
    [
        (np.empty((3, 3), np.float32), r"out has the shape \[3, 3\], the result \[2, 3\]"),
        (np.empty((2, 6), np.float32)[:, ::2], "cannot be written to in place"),
        (np.empty((2, 3), np.int32), "a result holds floats"),
        ((np.empty(1), np.empty(1)), "2 arrays for 1 results"),
    ],
)
def test_out_must_fit(m, out, message):
    with pytest.raises(ocn.OcnError, match=message):
        m.twice(X, out=out)


def test_parameters_by_path(m):
    assert list(m.params) == ["f.w", "f.b", "counted.calls"]
    w = m.params["f.w"]
    assert w.shape == (2, 3) and w.dtype == np.float32
    w[:] = 7
    assert not np.array_equal(m.params["f.w"], w)
    m.params["f.w"] = np.ones((2, 3))
    assert np.array_equal(m.apply(X), X.sum(axis=1, keepdims=True).repeat(2, axis=1))
    with pytest.raises(KeyError, match=r"f\.q \(there is f\.w\)"):
        m.params["f.q"]
    with pytest.raises(ocn.OcnError, match="shape"):
        m.params["f.w"] = np.ones(3)
    with pytest.raises(ocn.OcnError, match="complex128"):
        m.params["f.w"] = np.ones((2, 3), complex)


def test_parameters_set_before_their_shape_is_known(tmp_path):
    path = tmp_path / "open.ocn"
    path.write_text(
        "op dense(x) = {w: [... -> 2]} * x\nlet f = dense\nroutine g(x: f32[n | m]) -> f32[n | 2]:\n    return f(x)\n"
    )
    m = ocn.load(path, backend="reference")
    with pytest.raises(ocn.OcnError, match=r"`f\.w` is not fixed yet"):
        m.params["f.w"]
    m.params["f.w"] = np.ones((2, 3))
    assert m.params["f.w"].shape == (2, 3)
    assert m.g(X).tolist() == [[3, 3], [12, 12]]
    other = ocn.load(path, backend="reference")
    other.params["f.w"] = np.ones((2, 5))
    with pytest.raises(ocn.OcnError, match=r"\[2, 5\]"):
        other.g(X)


def test_training_changes_the_parameters(m):
    losses = [m.step(X, 0.01) for _ in range(5)]
    assert losses == sorted(losses, reverse=True)


def test_save_and_load(m, tmp_path):
    m.counted()
    m.counted()
    m.step(X, 0.1)
    m.save(tmp_path / "a.safetensors")
    other = ocn.load(m.__file__, backend="reference", seed=5)
    other.load(tmp_path / "a.safetensors")
    assert np.array_equal(other.params["f.w"], m.params["f.w"])
    assert other.counted() == 3.0
    (tmp_path / "b.safetensors").write_bytes(b"nothing of the kind")
    before = other.params["f.w"]
    with pytest.raises(ocn.OcnError, match="no checkpoint") as caught:
        other.load(tmp_path / "b.safetensors")
    assert caught.value.diagnostic.code == "E0803"
    assert np.array_equal(other.params["f.w"], before)


def test_forks_are_independent_and_seeds_matter(file, m):
    fork = m.fork()
    assert np.array_equal(fork.params["f.w"], m.params["f.w"])
    fork.params["f.w"] = np.zeros((2, 3))
    assert not np.array_equal(fork.params["f.w"], m.params["f.w"])
    assert np.array_equal(ocn.load(file, backend="reference").params["f.w"], m.params["f.w"])
    assert not np.array_equal(ocn.load(file, backend="reference", seed=1).params["f.w"], m.params["f.w"])


def test_calls_from_several_threads(m):
    results = []

    def work():
        for _ in range(20):
            results.append(m.counted())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(results) == [float(i) for i in range(1, 81)]


def test_faulty_programs(tmp_path):
    path = tmp_path / "faulty.ocn"
    path.write_text("routine f(x: f32[n | 3]) -> f32[n | 4]:\n    return x\n\nroutine g(x: f32):\n    return y\n")
    found = ocn.check(path)
    assert [(d.line, d.severity) for d in found if d.severity == "error"]
    assert {d.code for d in found} >= {"E0201"}
    with pytest.raises(ocn.OcnError) as caught:
        ocn.load(path)
    assert caught.value.diagnostics == caught.value.diagnostics and "faulty.ocn" in str(caught.value)
    assert ocn.check(path)[0].render().startswith(("error", "warning"))
    with pytest.raises(FileNotFoundError):
        ocn.check(tmp_path / "none.ocn")
    with pytest.raises(FileNotFoundError):
        ocn.load(tmp_path / "none.ocn")


def test_devices_that_are_not_there(file):
    with pytest.raises(ocn.OcnError, match="`cuda:0` is not available") as caught:
        ocn.load(file, device="cuda:0")
    assert caught.value.diagnostic.code == "E0703" and not isinstance(caught.value, ValueError)


def test_import_hook(file, tmp_path, monkeypatch):
    (tmp_path / "imported.ocn").write_text(PROGRAM)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inner.ocn").write_text(PROGRAM)
    monkeypatch.syspath_prepend(tmp_path)
    finders = list(sys.meta_path)
    try:
        ocn.install(backend="reference")
        ocn.install(backend="reference", seed=3)
        assert len(sys.meta_path) == len(finders) + 1
        import folder.inner
        import imported

        assert imported.total([1, 2]) == folder.inner.total([1, 2]) == 3
        assert imported.__spec__ is not None and imported.__name__ == "imported"
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("no_such_module_here")
    finally:
        sys.meta_path[:] = finders
        for name in ("imported", "folder", "folder.inner"):
            sys.modules.pop(name, None)


def test_importing_the_package_is_light():
    program = (
        "import sys, ocannl_lang; ocannl_lang.load; heavy = {'lark', 'llvmlite', 'click', 'rich', 'safetensors', 'matplotlib'}"
        "; print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
