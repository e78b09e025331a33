"""What is measured in processes of their own: checking, compiling, starting, compile times by depth; and steps beside a busy process.

Each kind gives `Single`s: `check`, `compile`, `warm start`, `warm start memory`, `layers`, `loaded`.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.cases import LAYERS, STEPS, Case, case_named, gpt_mini
from benchmarks.processes import PeerFailed, busy_processor, end_group, environment, peer_process, python_process
from benchmarks.results import OWN, Results, Single
from benchmarks.runner import PAUSE_SECONDS, TURN_SECONDS, note, progress, typical
from benchmarks.values import write_values

SUBJECTS = ("mlp", "gpt_mini")
"""The programs that are checked, compiled, started and loaded."""

REPEATS = 3


def check(peers: Sequence[str], threads: int, cpus: Sequence[int], budget: float, results: Results) -> None:
    """The time of `ocn check`, from the start of its process to its end."""
    if OWN not in peers:
        return
    for subject in SUBJECTS:
        progress(f"check: {subject}")
        times = [_checked(subject, threads) for _ in range(REPEATS)]
        results.singles.append(Single("check", subject, OWN, statistics.median(times)))


def _checked(subject: str, threads: int) -> float:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        begin = time.perf_counter()
        command = ["-m", "ocannl_lang", "check", f"benchmarks/programs/{subject}.ocn"]
        process = python_process(command, environment(threads, Path(folder)), stderr=subprocess.DEVNULL)
        try:
            process.communicate()
        finally:
            end_group(process)
        return time.perf_counter() - begin


def compile_times(peers: Sequence[str], threads: int, cpus: Sequence[int], budget: float, results: Results) -> None:
    """Cold: every process has an empty cache."""
    for subject in SUBJECTS:
        _compile(case_named(subject), "compile", peers, threads, cpus, REPEATS, results)


def layers(peers: Sequence[str], threads: int, cpus: Sequence[int], budget: float, results: Results) -> None:
    """Cold compile times of a model like `gpt_mini` with more and more layers."""
    some = [p for p in peers if p in (OWN, "jax")]
    for depth in LAYERS:
        _compile(gpt_mini(depth), "layers", some, threads, cpus, REPEATS if depth <= 2 else 2, results)


def _compile(
    case: Case, kind: str, peers: Sequence[str], threads: int, cpus: Sequence[int], repeats: int, results: Results
) -> None:
    """Adds the least of some cold compile times of each peer that compiles; the peers take turns."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "values.npz"
        write_values(case, file)
        times: dict[str, list[float]] = {}
        for number in range(repeats):
            for peer in peers:
                if peer in ("numpy", "torch") or (number and peer not in times):
                    continue
                progress(f"{kind}: {case.name}, {peer}")
                request = {"peer": peer, "case": case.name, "values": str(file), "cpus": list(cpus[:threads])}
                try:
                    with peer_process(request, environment(threads, Path(folder) / f"{peer}{number}")) as process:
                        said = process.answer()
                        times.setdefault(peer, []).append(said["compile"])
                        results.versions.update(said["versions"])
                except PeerFailed as reason:
                    note(results, f"{kind} of {case.name}: {peer} failed: {reason}")
        subject = str(case.sizes[0]) if kind == "layers" else case.name
        results.singles.extend(Single(kind, subject, peer, min(found)) for peer, found in times.items())


def warm_starts(peers: Sequence[str], threads: int, cpus: Sequence[int], budget: float, results: Results) -> None:
    """From the start of a process to its first result, where an earlier process has left its caches; and the memory after 20 steps.

    `bare` is Python with numpy alone.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for subject in SUBJECTS:
            case = case_named(subject)
            file = Path(folder) / f"{subject}.npz"
            write_values(case, file)
            times: dict[str, list[float]] = {}
            memory: dict[str, list[float]] = {}
            for number in range(-1, REPEATS):
                for peer in ("bare", *peers):
                    progress(f"warm start: {subject}, {peer}")
                    with contextlib.suppress(_LeftOut):
                        seconds, peak = _started(case, peer, threads, cpus, file, Path(folder) / peer, results)
                        if number >= 0:
                            times.setdefault(peer, []).append(seconds)
                            memory.setdefault(peer, []).append(peak)
            for peer, found in times.items():
                results.singles.append(Single("warm start", subject, peer, statistics.median(found)))
                results.singles.append(Single("warm start memory", subject, peer, statistics.median(memory[peer])))


class _LeftOut(Exception):
    """A peer failed; there is a note."""


def _started(
    case: Case, peer: str, threads: int, cpus: Sequence[int], file: Path, cache: Path, results: Results
) -> tuple[float, float]:
    """Seconds to the first result, and the peak of the memory in bytes after `STEPS` steps."""
    request = {"peer": peer, "case": case.name, "values": str(file), "cpus": list(cpus[:threads]), "ready": False}
    try:
        with peer_process(request, environment(threads, cache)) as process:
            said = process.answer()
            seconds = time.perf_counter() - process.begin
            results.versions.update(said["versions"])
            peak = said["peak"] if peer == "bare" else process.ask(do="run", calls=STEPS - 1)["peak"]
            return seconds, peak
    except PeerFailed as reason:
        note(results, f"warm start of {case.name}: {peer} failed: {reason}")
        raise _LeftOut from None


def loaded(peers: Sequence[str], threads: int, cpus: Sequence[int], budget: float, results: Results) -> None:
    """Steps while another process keeps one of the processors busy: the ratio to the time without it."""
    for subject in SUBJECTS:
        for peer in peers:
            if peer == "torch.compile":  # as torch, after a long compilation
                continue
            progress(f"load: {subject}, {peer}")
            try:
                ratio = _loaded(case_named(subject), peer, threads, cpus, budget)
                results.singles.append(Single("loaded", subject, peer, ratio))
            except PeerFailed as reason:
                note(results, f"load of {subject}: {peer} failed: {reason}")


def _loaded(case: Case, peer: str, threads: int, cpus: Sequence[int], budget: float) -> float:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "values.npz"
        write_values(case, file)
        request = {"peer": peer, "case": case.name, "values": str(file), "cpus": list(cpus[:threads])}
        with peer_process(request, environment(threads, Path(folder))) as process:
            process.answer()
            process.ask(do="run", calls=STEPS)
            quiet, busy = [], []
            length = min(TURN_SECONDS, budget / 3)
            for _ in range(max(3, round(budget / length))):
                quiet.append(process.ask(do="turn", seconds=length))
                with busy_processor(cpus):
                    busy.append(process.ask(do="turn", seconds=length))
                time.sleep(PAUSE_SECONDS)
            return statistics.median(t["median"] for t in busy) / typical(quiet)


KINDS = {"check": check, "compile": compile_times, "start": warm_starts, "layers": layers, "load": loaded}
"""By the names that the command line takes."""
