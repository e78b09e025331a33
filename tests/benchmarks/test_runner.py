"""The machinery of the benchmarks: processes that answer and end, peers that fail, goals that are judged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks import ceilings
from benchmarks.cases import case_named
from benchmarks.goals import judged
from benchmarks.machine import usable_cpus
from benchmarks.processes import PeerFailed, environment, peer_process
from benchmarks.results import Ceilings, Results, Row, Single
from benchmarks.runner import differ, time_case
from benchmarks.table import text_of, time_text
from benchmarks.values import read_values, values_of, write_values
from ocannl_lang.codegen import ceilings as limits

CALL = case_named("call")


def row(case: str, peer: str, seconds: float, threads: int = 2) -> Row:
    return Row(case_named(case), threads, peer, seconds, seconds, 1, 1.0, 0.0, 0.0, 100, 1.0)


def test_peers_that_fail_are_notes() -> None:
    results = Results()
    time_case(CALL, 1, ["nobody", "numpy"], usable_cpus(), 0.01, results)
    assert [r.peer for r in results.rows] == ["numpy"]
    assert results.rows[0].median > 0
    assert len(results.notes) == 1 and "nobody failed" in results.notes[0]


def test_numbers_that_differ_make_a_case_void() -> None:
    assert not differ([2.0, 2.0001, 2.0001])
    assert differ([2.0, 2.0003])
    assert differ([2.0, float("nan")])


@pytest.mark.skipif(sys.platform == "win32", reason="asks the system for a process by its number")
def test_a_process_is_gone_after_an_interrupt(tmp_path: Path) -> None:
    write_values(CALL, tmp_path / "values.npz")
    request = {"peer": "numpy", "case": "call", "values": str(tmp_path / "values.npz"), "cpus": []}
    started = 0
    with pytest.raises(KeyboardInterrupt), peer_process(request, environment(1, tmp_path)) as process:
        process.answer()
        started = process.pid
        raise KeyboardInterrupt
    with pytest.raises(ProcessLookupError):
        os.kill(started, 0)


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_an_interrupted_run_shows_what_it_has(root: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "--case", "call", "--peer", "numpy", "--budget", "100"]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None and "numpy starts" in process.stderr.readline()
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate()
    assert process.returncode == 130
    assert "stopped before the end" in output


def test_a_process_that_cannot_start_says_why(tmp_path: Path) -> None:
    request = {"peer": "numpy", "case": "call", "values": str(tmp_path / "nothing.npz"), "cpus": []}
    with peer_process(request, environment(1, tmp_path)) as process, pytest.raises(PeerFailed, match=r"nothing\.npz"):
        process.answer()


def test_values_are_read_as_written(tmp_path: Path) -> None:
    case = case_named("makemore")
    write_values(case, tmp_path / "values.npz")
    written, read = values_of(case), read_values(tmp_path / "values.npz")
    assert list(read) == list(written) and all(np.array_equal(read[k], written[k]) for k in read)


def test_the_ceilings_are_those_of_ocn_bench(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bandwidths = tuple(limits.Bandwidth(size, 3e9, 2e9, 4e9) for size in limits.SIZES)
    measured = limits.Ceilings(1, 1e11, 5e10, bandwidths)
    monkeypatch.setattr(limits, "measure_ceilings", lambda threads, largest: measured)
    monkeypatch.setattr(ceilings, "limit_to", lambda cpus: None)
    assert ceilings.main('{"cpus": [0], "threads": 1}') == 0
    found = Ceilings(**json.loads(capsys.readouterr().out))
    assert (found.threads, found.flop, found.copy, found.bytes, found.large_stream) == (1, 1e11, 2e9, 4e9, 4e9)


def test_goals_are_judged_by_the_best_peer() -> None:
    results = Results(rows=[row("mlp", "ocn", 5e-4), row("mlp", "numpy", 2e-3), row("mlp", "jax", 1e-3)])
    found = {g.goal: g for g in judged(results)}
    goal = found["mlp: at most 0.6 of the time of the best peer"]
    assert (goal.reached, goal.verdict) == ("0.50 of jax", "yes")
    assert found["lenet: at most 0.4 of the time of the best peer"].verdict == "?"


def test_a_void_case_counts_for_no_goal() -> None:
    results = Results(rows=[row("mlp", "ocn", 5e-4), row("mlp", "jax", 1e-3)])
    results.void["mlp", 2] = "the numbers differ"
    assert all(g.verdict == "?" for g in judged(results))
    assert "VOID" in text_of(results, {}, [])


def test_products_are_judged_by_the_ceiling_and_by_the_peers() -> None:
    results = Results(ceilings={1: Ceilings(1, 8, 100e9, 1e9, 1e9, 1e9, 1e9)})
    work = case_named("gemm 512").work
    results.rows += [row("gemm 512", "ocn", work / 95e9, 1), row("gemm 512", "torch", work / 97e9, 1)]
    goal = next(g for g in judged(results) if g.goal.startswith("gemm 512, one thread"))
    assert goal.verdict == "no" and "95 %" in goal.reached and "torch" in goal.reached


def test_single_measurements_are_judged() -> None:
    results = Results(singles=[Single("layers", "2", "ocn", 1.0), Single("layers", "16", "ocn", 8.0)])
    assert [g.verdict for g in judged(results) if "16 layers" in g.goal] == ["yes"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(1.5, "1.50 s"), (0.0123, "12.3 ms"), (4.5e-7, "450 ns"), (123e-6, "123 µs")]
)
def test_times_have_three_digits(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


@pytest.mark.slow
def test_the_command_writes_what_it_measured(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    command = [
        "-m",
        "benchmarks",
        "--case",
        "call",
        "check",
        "--peer",
        "numpy",
        "ocn",
        "--threads",
        "1",
        "--budget",
        "0.02",
    ]
    subprocess.run([sys.executable, *command, "--json", str(file)], cwd=root, check=True, capture_output=True)
    found = json.loads(file.read_text(encoding="utf-8"))
    assert {r["peer"] for r in found["rows"]} == {"numpy", "ocn"}
    assert {s["kind"] for s in found["singles"]} == {"check"}
