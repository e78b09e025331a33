"""The runner: `python -m benchmarks [NAMES] [--rounds N] [--threads N]`."""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

from benchmarks.cases import CASES, Case

TURN_SECONDS = 0.05
"""How long a peer repeats its work in one turn."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ocn beside numpy and PyTorch.")
    parser.add_argument("names", nargs="*", help="only cases whose name contains one of these")
    parser.add_argument("--rounds", type=int, default=20, help="turns of each peer (20)")
    parser.add_argument("--threads", type=int, default=1, help="threads of each peer (1)")
    parser.add_argument("--worker", nargs=2, metavar=("CASE", "PEER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(CASES[int(options.worker[0])], options.worker[1])
    failed = False
    print(f"{'case':44} {'peer':6} {'median':>11} {'GFLOP/s':>9} {'ocn is':>14}")
    for index, case in enumerate(CASES):
        if not options.names or any(n in case.name for n in options.names):
            failed |= not compare(index, case, options.rounds, options.threads)
    return 1 if failed else 0


@dataclass(frozen=True, slots=True)
class Peer:
    name: str
    process: subprocess.Popen[str]
    first: float
    """The number that its first run gave."""


def compare(index: int, case: Case, rounds: int, threads: int) -> bool:
    """Run one case and print its rows; false if the peers disagree."""
    peers = [p for name in case.peers if (p := start(index, name, threads)) is not None]
    try:
        for peer in peers:
            if not math.isclose(peer.first, peers[0].first, rel_tol=1e-3, abs_tol=1e-4):
                print(f"{case.name:44} {peer.name} gives {peer.first}, {peers[0].name} {peers[0].first}")
                return False
        times: dict[str, list[float]] = {p.name: [] for p in peers}
        for turn in range(rounds):
            for peer in peers[turn % len(peers) :] + peers[: turn % len(peers)]:
                times[peer.name].append(ask(peer.process, "turn"))
    finally:
        for peer in peers:
            peer.process.kill()
            peer.process.wait()
    own = statistics.median(times["ocn"]) if "ocn" in times else math.nan
    for name, measured in times.items():
        median = statistics.median(measured)
        factor = "" if name == "ocn" else f"{median / own:.2f}x as fast"
        print(f"{case.name:44} {name:6} {1e6 * median:8.1f} µs {case.operations / median / 1e9:9.1f} {factor:>14}")
    return True


def start(index: int, name: str, threads: int) -> Peer | None:
    """The process of a peer, or None if its library is missing."""
    limits = {k: str(threads) for k in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OCN_THREADS")}
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks", "--worker", str(index), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **limits},
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    if line.startswith("missing") or not line:
        process.wait()
        print(f"({name}: {line.strip() or 'failed to start'})", file=sys.stderr)
        return None
    return Peer(name, process, float(line))


def ask(process: subprocess.Popen[str], what: str) -> float:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{what}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def work(case: Case, peer: str) -> int:
    """A peer's process: prints its first number, then for each line of standard input the seconds of one run."""
    try:
        run = case.peers[peer]()
    except ImportError as error:
        print(f"missing: {error}", flush=True)
        return 0
    print(run(), flush=True)
    for _ in range(3):
        run()
    for _ in sys.stdin:
        count, begin = 0, time.perf_counter()
        while count == 0 or time.perf_counter() - begin < TURN_SECONDS:
            run()
            count += 1
        print((time.perf_counter() - begin) / count, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
