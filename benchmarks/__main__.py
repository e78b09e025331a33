"""The command: `python -m benchmarks [--case NAME]... [--peer NAME]... [--threads 1 2] [--budget SECONDS] [--json FILE]`."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.cases import CASES, Case
from benchmarks.fresh import KINDS
from benchmarks.goals import Judged, judged
from benchmarks.machine import description, usable_cpus
from benchmarks.peers import LIBRARIES, PEERS
from benchmarks.processes import end_group, environment, python_process
from benchmarks.results import Ceilings, Results
from benchmarks.runner import note, progress, time_case
from benchmarks.table import text_of


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    results = Results()
    cpus = usable_cpus()
    stopped = False
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # `kill` and `timeout` end the peers too, as Ctrl-C does
    try:
        _measure(options, cpus, results)
    except KeyboardInterrupt:
        stopped = True
        note(results, "stopped before the end")
    finally:
        progress("", keep=False)
    machine, goals = description(), judged(results)
    print(text_of(results, machine, goals))
    if options.json:
        Path(options.json).write_text(json.dumps(_as_data(results, machine, goals), indent=1), encoding="utf-8")
    return 130 if stopped else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ocn beside numpy, PyTorch and JAX.")
    several: dict[str, Any] = {"action": "extend", "nargs": "+", "metavar": "NAME"}
    parser.add_argument("--case", **several, help="only these cases or families; `--case list` names them")
    parser.add_argument("--peer", **several, choices=list(PEERS), help=f"only these: {', '.join(PEERS)}")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="numbers of threads (1 2)")
    parser.add_argument("--budget", type=float, default=2.0, help="seconds for which each row is timed (2)")
    parser.add_argument("--json", metavar="FILE", help="write everything measured to this file")
    options = parser.parse_args(arguments)
    names = {n for c in CASES for n in (c.name, c.family)} | set(KINDS)
    if options.case == ["list"]:
        for case in CASES:
            print(f"{case.name:24} {case.summary}")
        print(*KINDS, sep="\n")
        sys.exit(0)
    unknown = [n for n in options.case or () if n not in names]
    if unknown or options.budget <= 0 or min(options.threads) < 1:
        parser.error(f"there is no case {', '.join(unknown)}" if unknown else "threads and budget are greater than 0")
    return options


def _measure(options: argparse.Namespace, cpus: list[int], results: Results) -> None:
    peers = _installed(options.peer or list(PEERS), results)
    threads = _possible(options.threads, cpus, results)
    cases = [c for c in CASES if not options.case or c.name in options.case or c.family in options.case]
    if any(c.unit != "call" for c in cases):
        for number in threads:
            progress(f"ceilings, {number} thread{'s' * (number > 1)}")
            found = _ceilings(number, cpus, results)
            if found is not None:
                results.ceilings[number] = found
    for case in cases:
        for number in threads:
            time_case(case, number, peers, cpus, options.budget, results)
    for name, kind in KINDS.items():
        if not options.case or name in options.case:
            kind(peers, max(threads), cpus, options.budget, results)


def _installed(names: Sequence[str], results: Results) -> list[str]:
    found: list[str] = []
    for name in names:
        if importlib.util.find_spec(LIBRARIES.get(name, name)) is None:
            note(results, f"{name} is left out: it is not installed")
        else:
            found.append(name)
    return found


def _possible(threads: Sequence[int], cpus: Sequence[int], results: Results) -> list[int]:
    """The numbers of threads that this machine has processors for."""
    if cpus and max(threads) > len(cpus):
        note(results, f"there are {len(cpus)} processors: no measurement with more threads")
        return [n for n in threads if n <= len(cpus)] or [len(cpus)]
    return list(threads)


def _ceilings(threads: int, cpus: list[int], results: Results) -> Ceilings | None:
    """Measured in a process of its own, so that its arrays are gone afterwards."""
    request = json.dumps({"threads": threads, "cpus": cpus[:threads]})
    with tempfile.TemporaryDirectory() as folder:
        command = ["-m", "benchmarks.ceilings", request]
        process = python_process(command, environment(threads, Path(folder)), stderr=subprocess.PIPE)
        try:
            output, errors = process.communicate()
        finally:
            end_group(process)
    if process.returncode != 0:
        lines = errors.decode(errors="replace").strip().splitlines() or [""]
        note(results, f"the ceilings could not be measured: {lines[-1]}")
        return None
    return Ceilings(**json.loads(output))


def _as_data(results: Results, machine: dict[str, str], goals: Sequence[Judged]) -> dict[str, Any]:
    """Everything, for `json`."""
    return {
        "machine": machine,
        "versions": results.versions,
        "ceilings": [dataclasses.asdict(c) for c in results.ceilings.values()],
        "rows": [{**dataclasses.asdict(row), "case": _case_name(row.case)} for row in results.rows],
        "singles": [dataclasses.asdict(single) for single in results.singles],
        "void": [{"case": name, "threads": n, "why": why} for (name, n), why in results.void.items()],
        "notes": results.notes,
        "goals": [dataclasses.asdict(goal) for goal in goals],
    }


def _case_name(case: Case) -> str:
    return case.name


if __name__ == "__main__":
    sys.exit(main())
