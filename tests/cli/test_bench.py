"""The command `ocn bench`."""

from __future__ import annotations

import json

import pytest

from ocannl_lang.cli.bench_text import amount, duration, operations
from ocannl_lang.cli.main import status_of

MODEL = """
op block(x) = relu({w: [32 -> 32]} * x)
op tower(x) = block(block(block(x)))
let net = tower

routine forward(x: f32[64 | 32]) -> f32[64 | 32]:
    return net(x)

routine of_n(x: f32[n | 32]) -> f32[n | 32]:
    return exp(net(x))
"""


@pytest.fixture
def ocn(tmp_path, monkeypatch, capsys):
    (tmp_path / "model.ocn").write_text(MODEL)
    (tmp_path / "bad.ocn").write_text("routine f(x: f32[3]) -> f32[3]:\n    return x + y\n")
    (tmp_path / "none.ocn").write_text("op f(x) = x\n")
    monkeypatch.chdir(tmp_path)

    def run(*args):
        status = status_of(["bench", *args])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


QUICK = ("--seconds", "0.01", "--threads", "1")


def test_a_table_of_kernels(ocn):
    status, out, err = ocn("model.ocn", "--shape", "n=8", *QUICK)
    assert (status, err) == (0, "")
    assert "routine forward(x: 64×32)" in out and "routine of_n(x: 8×32)" in out
    assert "GFLOP/s" in out and "bound by" in out and "for an empty call" in out
    assert "limits with 1 thread:" in out
    assert "×" in next(line for line in out.splitlines() if "model.ocn:2" in line)  # equal kernels in one line


def test_program_order_shows_every_kernel(ocn):
    _, out, _ = ocn("model.ocn", "--routine", "forward", "--sort", "order", *QUICK)
    lines = [line for line in out.splitlines() if "model.ocn:2" in line]
    assert len(lines) >= 3 and "  ×" not in out and "of_n" not in out


def test_schedules(ocn):
    _, out, _ = ocn("model.ocn", "--routine", "forward", "--schedules", *QUICK)
    assert "vector" in out


def test_json(ocn):
    status, out, _ = ocn("model.ocn", "--shape", "x=8x32", "--routine", "of_n", "--json", *QUICK)
    found = json.loads(out)
    (routine,) = found["routines"]
    assert status == 0 and routine["name"] == "of_n" and routine["arguments"] == {"x": [8, 32]}
    assert sum(k["operations"] for k in routine["kernels"]) >= 3 * 2 * 8 * 32 * 32
    assert all(
        k["seconds"] >= 0 and k["bound"] in ("arithmetic", "memory", "latency/overhead") for k in routine["kernels"]
    )
    assert found["threads"] == 1 and found["ceilings"][0]["flops"] > 0


def test_open_sizes_are_said_with_what_gives_them(ocn):
    status, out, _ = ocn("model.ocn", *QUICK)
    assert status == 0
    assert "routine of_n: not measured: the program does not fix the size of `x: f32[n | 32]`; give --shape n=64" in out
    status, out, _ = ocn("model.ocn", "--routine", "of_n", *QUICK)
    assert status == 1 and "not measured" in out


def test_shapes_that_do_not_fit(ocn):
    status, out, err = ocn("model.ocn", "--routine", "forward", "--shape", "x=64x31", *QUICK)
    assert status == 1 and "not measured" in out and "error[E0701]" in err


def test_faulty_programs(ocn):
    status, out, err = ocn("bad.ocn", *QUICK)
    assert (status, out) == (1, "") and "error[E0201]" in err
    status, out, err = ocn("none.ocn", *QUICK)
    assert (status, out) == (1, "") and "has no routines" in err


@pytest.mark.parametrize(
    "args, message",
    [
        ((), "Missing argument 'FILE'"),
        (("no.ocn",), "there is no file no.ocn"),
        (("model.ocn", "--routine", "backward"), "there is no routine backward; there are: forward, of_n"),
        (("model.ocn", "--shape", "n"), "not of the form name=2x3"),
        (("model.ocn", "--shape", "n=ax3"), "not of the form name=2x3"),
        (("model.ocn", "--shape", "m=3"), "no routine has an argument or a size m; there are: x, n"),
        (("model.ocn", "--seconds", "0"), "--seconds"),
        (("model.ocn", "--threads", "0"), "--threads"),
    ],
)
def test_wrong_use_ends_with_2(ocn, args, message):
    status, out, err = ocn(*args)
    assert (status, out) == (2, "") and message in err


def test_numbers_for_people():
    assert [duration(s) for s in (2.5, 0.0123, 1.5e-6, 4e-8)] == ["2.50 s", "12.3 ms", "1.50 µs", "40 ns"]
    assert [amount(n) for n in (12, 2048, 3 << 20)] == ["12 B", "2.00 KiB", "3.00 MiB"]
    assert [operations(n) for n in (999, 1_500, 2_000_000)] == ["999", "1.50 k", "2.00 M"]
