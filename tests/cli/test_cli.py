"""The command `ocn`: what it prints, and with which status it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from ocannl_lang.cli import main as command_line
from ocannl_lang.cli.main import status_of

GOOD = """## Counts.
let step = 2
let names = "none"

op dense[out: int](x) = {w: [... -> out]} * x

## Adds.
routine add(x: f32[n | 3], y: f32[n | 3]) -> f32[n | 3]:
    return x + y

routine apply(x: f32[n | 3]) -> f32[n | 2]:
    return dense[2](x)

## Counts up.
main(
    ## how far to count
    count: int = 3,
    fail: bool = false,
):
    for i in 0..count: print("{i * step}")
    print(names)
    print(read_text("beside.txt"))
    expect not fail, "asked to fail"

test "addition":
    expect close(add([[1., 2., 3.]], [[1., 1., 1.]]), [[2., 3., 4.]])

test "subtraction":
    print("printed by the test")
    expect 3 - step == 2
"""

BAD = """routine f(x: f32[n | 3]) -> f32[n | 3]:
    return x + unknown
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "good.ocn").write_text(GOOD)
    (tmp_path / "bad.ocn").write_text(BAD)
    (tmp_path / "beside.txt").write_text("beside the program")
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "OCN_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def ocn(folder, capsys):
    def run(*args):
        status = status_of(args)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def test_run(ocn):
    assert ocn("run", "good.ocn", "--count", "2") == (0, "0\n2\nnone\nbeside the program\n", "")


@pytest.mark.parametrize("args", [("--set", "step=5", "good.ocn"), ("good.ocn", "--set", "step=5")])
def test_settings_before_and_after_the_file(ocn, args):
    status, out, _ = ocn("run", *args)
    assert status == 0 and out.splitlines()[:3] == ["0", "5", "10"]


def test_settings_are_literals_and_add_up(ocn):
    status, out, err = ocn(
        "run", "--set", "step=3", "good.ocn", "--set", 'names="a, b"', "--seed", "1", "--device", "reference"
    )
    assert (status, err) == (0, "") and out.splitlines()[1:4] == ["3", "6", "a, b"]


@pytest.mark.parametrize(
    "args, message",
    [
        (("run",), "Missing argument 'FILE'"),
        (("run", "none.ocn"), "there is no file none.ocn"),
        (("run", "good.ocn", "--cuont", "1"), "--count"),
        (("run", "good.ocn", "--count", "x"), "'x' is not a whole number"),
        (("run", "--set", "step", "good.ocn"), "not of the form name=value"),
        (("run", "--set", "step=abc", "good.ocn"), "is not a literal"),
        (("run", "--set", "stepp=1", "good.ocn"), "Did you mean step?"),
        (("run", "--device", "toaster", "good.ocn"), "is not a device"),
        (("run", "--threads", "0", "good.ocn"), "--threads"),
        (("check", "--format", "xml"), "xml"),
        (("check", "none.ocn"), "there is no file none.ocn"),
        (("show", "good.ocn"), "--stage"),
        (("show", "good.ocn", "--stage", "tokens"), "tokens"),
        (("explain", "E9999"), "there is no code E9999"),
        (("frobnicate",), "frobnicate"),
    ],
)
def test_wrong_use_ends_with_2(ocn, args, message):
    status, out, err = ocn(*args)
    assert (status, out) == (2, "") and message in err


def test_failures_of_a_run_end_with_1(ocn):
    status, out, err = ocn("run", "good.ocn", "--fail")
    assert status == 1 and "beside the program" in out
    assert "asked to fail" in err and "good.ocn:" in err and "Traceback" not in err


def test_a_faulty_program_is_not_run(ocn):
    status, out, err = ocn("run", "bad.ocn")
    assert (status, out) == (1, "") and "error[E0201]" in err and "1 error" in err


def test_a_device_that_is_not_there(ocn):
    status, _, err = ocn("run", "--device", "cuda:0", "good.ocn")
    assert status == 1 and err.startswith("error[E0703]: the device `cuda:0` is not available")


def test_a_program_without_main(ocn, folder):
    (folder / "library.ocn").write_text("op double(x) = 2 * x\n")
    status, _, err = ocn("run", "library.ocn")
    assert status == 1 and "has no `main`" in err


def test_help_of_a_program(ocn):
    status, out, _ = ocn("run", "good.ocn", "--help")
    assert status == 0 and "Counts up." in out and "--count INT" in out and "how far to count" in out
    assert "--fail / --no-fail" in out and "--seed" in out


@pytest.mark.parametrize("args", [(), ("--help",), ("run", "--help"), ("check", "-h"), ("test", "-h"), ("show", "-h")])
def test_help_fits_a_screen_and_has_examples(ocn, args):
    status, out, _ = ocn(*args)
    assert status == 0 and out.count("\n") <= 40
    assert "ocn " in out.partition("Usage")[2].partition("\n")[2]


def test_check(ocn):
    status, out, err = ocn("check", "good.ocn")
    assert (status, err) == (0, "") and out == "1 file checked: nothing to report\n"
    status, out, _ = ocn("check")
    assert status == 1 and "error[E0201]" in out and "bad.ocn:2:16" in out and "1 error" in out


def test_check_in_other_formats(ocn):
    status, out, _ = ocn("check", "bad.ocn", "--format", "concise")
    assert status == 1 and out.startswith("bad.ocn:2:16: error[E0201]:") and out.count("\n") == 1
    assert ocn("check", "good.ocn", "--format", "concise") == (0, "", "")
    assert json.loads(ocn("check", "bad.ocn", "--format", "json")[1])
    assert json.loads(ocn("check", "bad.ocn", "--format", "sarif")[1])["version"] == "2.1.0"
    assert json.loads(ocn("check", "good.ocn", "--format", "json")[1]) == []


def test_schemes_and_shapes(ocn):
    assert "dense[out] : " in ocn("check", "good.ocn", "--schemes")[1]
    out = ocn("check", "good.ocn", "--shapes")[1]
    assert "routine apply" in out and "apply.dense.w: f32[3 -> 2]" in out


def test_folders_leave_out_what_is_hidden_or_built(ocn, folder):
    for name in (".hidden", "build", "inner"):
        (folder / name).mkdir()
        (folder / name / "x.ocn").write_text(BAD)
    _, out, _ = ocn("check", ".", "--format", "concise")
    assert sorted(line.split(":")[0] for line in out.splitlines()) == ["bad.ocn", os.path.join("inner", "x.ocn")]


def test_tests(ocn):
    status, out, _ = ocn("test", "good.ocn", "-k", "ADD")
    assert (status, out) == (0, "good.ocn\n  ok  addition\n1 passed\n")
    status, out, _ = ocn("test", "good.ocn")
    assert status == 1 and "1 passed, 1 failed" in out
    assert "failed  subtraction" in out and "printed by the test" in out and "left:  1" in out and "right: 2" in out
    status, out, _ = ocn("test")
    assert status == 1 and "bad.ocn: has errors" in out


def test_no_tests(ocn, folder):
    assert ocn("test", "good.ocn", "-k", "no such") == (1, "there are no tests of these names\n", "")
    (folder / "library.ocn").write_text("op double(x) = 2 * x\n")
    assert ocn("test", "library.ocn") == (0, "there are no tests\n", "")


@pytest.mark.parametrize("stage", ["parse", "names", "build", "shapes", "loops", "schedule", "code"])
def test_every_stage_can_be_shown(ocn, stage):
    status, out, err = ocn("show", "good.ocn", "--stage", stage)
    assert (status, err) == (0, "") and out.strip()


def test_show_one_routine(ocn):
    out = ocn("show", "good.ocn", "--stage", "shapes", "--routine", "add")[1]
    assert "add" in out and "apply" not in out
    status, _, err = ocn("show", "good.ocn", "--stage", "shapes", "--routine", "nope")
    assert status == 1 and "there is no routine `nope`" in err


def test_the_stages_that_can_be_shown_are_those_of_the_compiler():
    from ocannl_lang.cli.show import NAMES
    from ocannl_lang.driver.pipeline import STAGES

    assert tuple(stage.name for stage in STAGES) == NAMES


def test_the_tree_of_a_text_with_mistakes(ocn, folder):
    (folder / "broken.ocn").write_text("let x = (1\nlet y = 2\n")
    status, out, err = ocn("show", "broken.ocn", "--stage", "parse")
    assert status == 1 and "y" in out and "error[E0103]" in err


def test_explain(ocn):
    status, out, _ = ocn("explain", "e0405")
    assert status == 0 and "E0405" in out
    assert "E0405  tensor product does not contract" in ocn("explain")[1]
    assert "Did you mean E0405?" in ocn("explain", "E405")[2]


def test_info(ocn):
    status, out, _ = ocn("info")
    assert status == 0 and "numpy:" in out and "cache:" in out


def test_clean_removes_what_is_ours_alone(ocn, folder, monkeypatch):
    cache = folder / "cache"
    monkeypatch.setenv("OCN_CACHE_DIR", str(cache))
    (cache / "objects" / "ab").mkdir(parents=True)
    ours = [cache / "grammar-0123abcd.json", cache / "objects" / "ab" / ("ab" * 32 + ".o")]
    theirs = [cache / "notes.txt", cache / "other.tmp", cache / "objects" / "ab" / "x.o"]
    for file in (*ours, *theirs):
        file.write_text("x")
    status, out, _ = ocn("clean")
    assert status == 0 and "2 files removed" in out
    assert not any(file.exists() for file in ours) and all(file.exists() for file in theirs)
    assert ocn("clean")[0] == 0


def test_colours(ocn, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in ocn("check", "bad.ocn")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in ocn("check", "bad.ocn")[1]


def test_a_bug_of_ours_gives_no_traceback(ocn, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("of no use to the user")

    monkeypatch.setattr("ocannl_lang.driver.session.Session.open", fail)
    status, _, err = ocn("run", "good.ocn")
    assert status == 1 and "Traceback" not in err
    assert "a fault of ocn itself" in err and "ZeroDivisionError" in err and "cli/run.py" in err
    monkeypatch.setenv("OCN_DEBUG", "1")
    assert "Traceback" in ocn("run", "good.ocn")[2]


def test_interrupts_end_with_130(ocn, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("ocannl_lang.driver.session.Session.open", interrupt)
    status, out, err = ocn("run", "good.ocn")
    assert (status, out, err.strip()) == (130, "", "")


def environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def test_a_closed_pipe_is_silent(folder):
    (folder / "long.ocn").write_text("main():\n    for i in 0..100000: print(i)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "ocannl_lang", "run", "long.ocn"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, env=environment(),
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().strip() == b"0"
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 1 and error == b""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_in_a_running_program(folder):
    (folder / "endless.ocn").write_text('main():\n    print("started")\n    while true: let x = 1\n')
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "ocannl_lang", "run", "endless.ocn"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, env=environment(),
        # What runs the tests may ignore it, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline().strip() == b"started"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    assert process.returncode == 130 and b"Traceback" not in error


def complete(monkeypatch, capsys, words, incomplete):
    monkeypatch.setenv("COMP_WORDS", f"ocn {words} {incomplete}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) + 1))
    monkeypatch.setenv("_OCN_COMPLETE", "bash_complete")
    with pytest.raises(SystemExit):
        command_line.ocn.main(args=[], prog_name="ocn", complete_var="_OCN_COMPLETE")
    return [line.partition(",")[2] for line in capsys.readouterr().out.splitlines()]


def test_completion(folder, monkeypatch, capsys):
    assert complete(monkeypatch, capsys, "", "ch") == ["check"]
    assert complete(monkeypatch, capsys, "run", "g") == ["good.ocn"]
    assert "--count" in complete(monkeypatch, capsys, "run good.ocn", "--c")
    assert "E0405" in complete(monkeypatch, capsys, "explain", "E04")
    assert complete(monkeypatch, capsys, "show good.ocn --stage", "sch") == ["schedule"]
    assert complete(monkeypatch, capsys, "show good.ocn --routine", "a") == ["add", "apply"]
