"""Programs that are kept on disk: a warm start gives what a cold one gives, and notices every change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ocannl_lang as ocn

PROGRAM = """## A program to keep.
from parts import layer
from loss import mse

let width = 4

op net(x):
    let first, second = layer[width], layer[2]
    return second(tanh(first(x)))
let f = net

## One step.
routine step(x: f32[n | 3], y: f32[n | 2], lr: f32) -> f32:
    let loss = mse(f(x), y)
    update(loss)
    for p in params(loss):
        p -= lr * p.grad
    return loss

routine apply(x: f32[n | 3]) -> f32[n | 2]:
    return f(x)

routine pick(x: f32[5 | 3], i: index[5]) -> f32[3]:
    return x[i]

routine noisy(x: f32[n | 3]) -> (f32[n | 3], f32):
    state sum: f32 = 0.
    state seen: f32[n | 3]
    sum += 1
    seen := seen + x
    return seen + normal(), sum

routine table(k: f32) -> f32[4]:
    let values = [1., 2., 4., 8.]
    return values * k
"""
PARTS = "op layer[k: int](x) = {w: [... -> k] = normal() * 0.5} * x + {b: [k] = 0.25} + {c: bf16[k] = 1.5} + {d: [k]}\n"

X = np.arange(6, dtype=np.float32).reshape(2, 3) / 6
Y = np.ones((2, 2), np.float32)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OCN_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "parts.ocn").write_text(PARTS)
    path = folder / "kept.ocn"
    path.write_text(PROGRAM)
    return path


def use(m):
    """What everything gives, as bytes."""
    found = [m.step(X, Y, 0.1) for _ in range(3)]
    found += [m.apply(X), *m.noisy(X), *m.noisy(X), m.pick(np.resize(X, (5, 3)), 2), m.table(3.0)]
    found += [m.params[name] for name in m.params]
    return [np.asarray(f).tobytes() for f in found]


def is_warm(m) -> bool:
    return m._opened._program is None


def test_a_warm_start_gives_the_same_bits(file):
    cold = ocn.load(file, seed=5)
    assert not is_warm(cold)
    wanted = use(cold)
    warm = ocn.load(file, seed=5)
    assert use(warm) == wanted and is_warm(warm)
    assert list(warm.params) == list(cold.params)
    assert (warm.__doc__, warm.step.__doc__) == ("A program to keep.", "One step.")
    assert warm.step.shapes == cold.step.shapes and str(warm.step) == str(cold.step) and is_warm(warm)
    assert warm.step.source == cold.step.source
    assert use(warm.fork()) == use(cold.fork())


ONE_STEP = """
import sys, numpy as np, ocannl_lang as ocn
m = ocn.load(sys.argv[1])
x = np.arange(6, dtype=np.float32).reshape(2, 3) / 6
print(repr(m.step(x, np.ones((2, 2), np.float32), 0.1)))
"""


def other_process(file: Path, text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", text, str(file)], capture_output=True, text=True)


def test_another_process(file):
    wanted = ocn.load(file).step(X, Y, 0.1)
    assert other_process(file, ONE_STEP).stderr == ""
    light = """
heavy = ("syntax.", "shapes", "build", "names", "loops", "schedule", "codegen.cpu", "codegen.llvm.kernel")
assert not [m for m in sys.modules if m.startswith(tuple("ocannl_lang." + h for h in heavy))]
assert not {"lark", "rich", "click", "torch"} & set(sys.modules)
"""
    done = other_process(file, ONE_STEP + light)
    assert done.stderr == "" and float(done.stdout) == wanted


def test_seeds(file):
    wanted = {seed: use(ocn.load(file, seed=seed, device="reference"))[:1] for seed in (0, 1)}
    assert wanted[0] != wanted[1]
    for _ in range(2):
        for seed in (0, 1):
            got = np.frombuffer(use(ocn.load(file, seed=seed))[0])
            assert got == pytest.approx(np.frombuffer(wanted[seed][0]), rel=1e-5)
    warm = ocn.load(file, seed=1)
    warm.step(X, Y, 0.1)
    assert is_warm(warm)


def test_changes_of_the_text(file):
    first = ocn.load(file).apply(X)
    file.write_text(PROGRAM.replace("tanh", "sigmoid"))
    second = ocn.load(file).apply(X)
    assert not np.array_equal(first, second)
    file.with_name("parts.ocn").write_text(PARTS.replace("0.25", "0.75"))
    third = ocn.load(file).apply(X)
    assert not np.array_equal(second, third)
    file.write_text(PROGRAM)
    file.with_name("parts.ocn").write_text(PARTS)
    assert np.array_equal(ocn.load(file).apply(X), first)


def test_a_new_file_that_an_import_finds_first(file):
    y = np.zeros((2, 2), np.float32)
    before = ocn.load(file).step(X, y, 0.0)
    ocn.load(file).step(X, y, 0.0)
    file.with_name("loss.ocn").write_text("op mse(a, b) = 10 * mean((a - b) ** 2)\n")
    assert ocn.load(file).step(X, y, 0.0) == pytest.approx(10 * before, rel=1e-5)


def test_a_file_that_is_gone(file):
    ocn.load(file).apply(X)
    file.with_name("parts.ocn").unlink()
    with pytest.raises(ocn.OcnError, match="parts"):
        ocn.load(file)


def test_settings(file):
    sizes = []
    for width in (4, 7, 4, 7):
        m = ocn.load(file, width=width)
        m.apply(X)
        sizes.append(m.params["f.first.w"].shape[0])
    assert sizes == [4, 7, 4, 7] and is_warm(m)


def test_the_text_of_a_warm_program_may_change_later(file):
    ocn.load(file).apply(X)
    warm = ocn.load(file)
    file.write_text("routine other() -> f32:\n    return 1\n")
    file.with_name("parts.ocn").unlink()
    assert warm.apply(np.ones((7, 3), np.float32)).shape == (7, 2)
    assert not is_warm(warm) and "tanh" not in warm.apply.source


def test_another_working_folder(file, tmp_path, monkeypatch):
    monkeypatch.chdir(file.parent)
    ocn.load("kept.ocn").apply(X)
    warm = ocn.load("kept.ocn")
    monkeypatch.chdir(tmp_path)
    assert warm.apply(X).shape == (2, 2) and is_warm(warm)
    assert warm.apply(np.ones((7, 3), np.float32)).shape == (7, 2)


def test_errors_of_a_warm_program(file):
    cold = ocn.load(file)
    use(cold)
    warm = ocn.load(file)
    bad = [
        lambda m: m.apply(np.ones((2, 4), np.float32)),
        lambda m: m.pick(np.ones((5, 3), np.float32), 5),
        lambda m: m.step(X, Y[:1], 0.1),
        lambda m: m.table("x"),
        lambda m: m.apply(X, out=np.zeros((3, 2), np.float32)),
        lambda m: m.params.update({"f.first.w": np.zeros((1, 1))}),
        lambda m: m.load(file.with_name("no.safetensors")),
    ]
    for call in bad:
        with pytest.raises(ocn.OcnError) as a:
            call(cold)
        with pytest.raises(ocn.OcnError) as b:
            call(ocn.load(file))
        assert str(a.value) == str(b.value)
    assert is_warm(warm) and use(warm) == use(ocn.load(file))


def test_warnings_of_a_warm_program(file):
    file.write_text(
        PROGRAM + "\nop unused(x) = x + {w: [... -> 2]} * x\n\nop odd(x):\n    let nothing = 1\n    return x\n"
    )
    cold = ocn.load(file)
    cold.apply(X)
    assert cold.diagnostics
    assert [d.message for d in ocn.load(file).diagnostics] == [d.message for d in cold.diagnostics]


def test_parameters_of_a_warm_program(file, tmp_path):
    cold = ocn.load(file)
    use(cold)
    saved = tmp_path / "saved.safetensors"
    cold.save(saved)
    wanted = cold.apply(X)
    warm = ocn.load(file)
    warm.load(saved)
    assert np.array_equal(warm.apply(X), wanted) and is_warm(warm)
    again = tmp_path / "again.safetensors"
    warm.step(X, Y, 0.0)
    warm.noisy(X)
    warm.save(again)
    assert is_warm(warm)
    third = ocn.load(file)
    third.params.update({name: cold.params[name] for name in cold.params})
    assert np.array_equal(third.apply(X), wanted) and is_warm(third)
    for name in cold.params:
        if not name.startswith("noisy"):
            assert np.array_equal(third.params[name], cold.params[name])


def test_programs_that_only_ever_run_with_loaded_parameters(file, tmp_path):
    m = ocn.load(file)
    m.step(X, Y, 0.1)
    m.save(tmp_path / "saved.safetensors")
    for turn in range(3):
        n = ocn.load(file)
        n.load(tmp_path / "saved.safetensors")
        got = n.apply(np.ones((5, 3), np.float32))
        assert np.array_equal(got, m.apply(np.ones((5, 3), np.float32)))
        assert is_warm(n) == (turn > 0)


@pytest.mark.parametrize("kind", ["programs", "routines", "contents"])
def test_damaged_files(file, tmp_path, kind):
    wanted = use(ocn.load(file))
    damage(tmp_path / "cache" / kind)
    with pytest.warns(UserWarning, match="is damaged and is built again"):
        assert use(ocn.load(file)) == wanted
    again = ocn.load(file)
    assert use(again) == wanted and is_warm(again)


def test_damaged_objects(file, tmp_path):
    wanted = other_process(file, ONE_STEP).stdout
    damage(tmp_path / "cache" / "objects")
    done = other_process(file, ONE_STEP)
    assert done.stdout == wanted and "is damaged and is built again" in done.stderr
    done = other_process(file, ONE_STEP)
    assert done.stdout == wanted and done.stderr == ""


def damage(folder: Path) -> None:
    files = [p for p in folder.rglob("*") if p.is_file()]
    assert files
    for p in files:
        content = p.read_bytes()
        p.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def test_missing_objects(file, tmp_path):
    wanted = other_process(file, ONE_STEP).stdout
    objects = list((tmp_path / "cache" / "objects").rglob("*.o"))
    for p in objects:
        p.unlink()
    done = other_process(file, ONE_STEP)
    assert done.stdout == wanted and done.stderr == ""
    assert all(p.is_file() for p in objects)


def test_a_cache_that_cannot_be_written(file, tmp_path):
    (tmp_path / "cache").write_text("")
    assert use(ocn.load(file)) == use(ocn.load(file))


def test_data_is_read_each_time(file):
    file.write_text("""
data table: f32[_ | 2] = read_array("table.npy")

routine total() -> f32:
    return sum(table)

routine rows() -> f32:
    return sum(0 * table + 1) / 2
""")
    for k in (1, 2):
        np.save(file.with_name("table.npy"), np.full((k, 2), k, np.float32))
        for _ in range(2):
            m = ocn.load(file)
            assert m.total() == 2 * k * k and m.rows() == k
