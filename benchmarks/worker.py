"""The process of a peer: prepares one case, then answers requests, one line of JSON each, until its input ends.

    python -m benchmarks.worker '{"peer": "ocn", "case": "mlp", "values": "mlp.npz", "cpus": [0]}'

Standard output carries the answers alone; whatever a library prints goes to standard error. Everything heavy is imported after the
processors of the process have been limited, so that every library sees only those.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from benchmarks.machine import Others, limit_to, peak_memory

if TYPE_CHECKING:
    from benchmarks.peers import Job

BLOCK_SECONDS = 0.002
"""Calls shorter than this are timed in blocks of about this length."""

WARM_SHARE = 0.1
"""The part of a turn that goes by before anything is timed: other peers have used the caches since the last turn."""


def main(text: str) -> int:
    request: dict[str, Any] = json.loads(text)
    limit_to(request["cpus"])
    answers = _own_output()
    if request["peer"] == "bare":
        return _bare(answers)

    from benchmarks.cases import case_named
    from benchmarks.peers import Unsuited, peer_named
    from benchmarks.values import read_values

    peer = peer_named(request["peer"])
    if request.get("ready", True):
        peer.ready()
    values = read_values(Path(request["values"]))
    try:
        job = peer.job(case_named(request["case"]), values)
    except Unsuited as reason:
        _answer(answers, {"unsuited": str(reason)})
        return 0
    begin = time.perf_counter()
    result = job.call()
    job.wait(result)
    first = time.perf_counter() - begin
    _answer(
        answers,
        {
            "compile": job.compiled + first,
            "number": job.value(result),
            "peak": peak_memory(),
            "versions": peer.versions(),
        },
    )
    for line in sys.stdin:
        _answer(answers, _reply(job, json.loads(line)))
    return 0


def _reply(job: Job, request: dict[str, Any]) -> dict[str, Any]:
    match request["do"]:
        case "run":
            return _run(job, request["calls"])
        case _:
            return _turn(job, request["seconds"])


def _run(job: Job, calls: int) -> dict[str, Any]:
    """So many calls without timing: the number of the last one, and the peak of the memory until then."""
    result: Any = None
    for _ in range(calls):
        result = job.call()
        job.wait(result)
    return {"number": job.value(result), "peak": peak_memory()}


def _turn(job: Job, seconds: float) -> dict[str, Any]:
    """The median and the least time of a call, of those that fit into so many seconds, and how busy the processors were otherwise."""
    call, wait = job.call, job.wait
    begin = time.perf_counter()
    calls = 0
    while calls == 0 or time.perf_counter() - begin < WARM_SHARE * seconds:
        wait(call())
        calls += 1
    block = max(1, round(BLOCK_SECONDS * calls / (time.perf_counter() - begin)))
    times: list[float] = []
    others = Others()
    begin = end = time.perf_counter()
    while not times or end - begin < seconds:
        start = end
        for _ in range(block):
            wait(call())
        end = time.perf_counter()
        times.append((end - start) / block)
    return {
        "median": statistics.median(times),
        "least": min(times),
        "calls": block * len(times),
        "seconds": end - begin,
        "others": others.seconds(),
    }


def _bare(answers: TextIO) -> int:
    """What Python and numpy alone cost: one product of two small matrices."""
    import numpy as np

    number = float(np.ones((64, 64), np.float32).dot(np.ones((64, 64), np.float32))[0, 0])
    _answer(answers, {"compile": 0.0, "number": number, "peak": peak_memory(), "versions": {}})
    return 0


def _own_output() -> TextIO:
    """Standard output as a file of its own; what else is written there goes to standard error."""
    own = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return own


def _answer(file: TextIO, answer: dict[str, Any]) -> None:
    file.write(json.dumps(answer) + "\n")
    file.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
