"""Times the cases: every peer in a process of its own, all taking turns, one at a time.

A turn counts if nothing else kept the processors busy in it. Turns go on until every peer has been timed for the budget in turns
that count, or `EXTEND` times the budget is over; a peer without any turn that counts is judged by its fastest ones.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.cases import STEPS, Case
from benchmarks.processes import PeerFailed, PeerProcess, environment, peer_process
from benchmarks.results import Results, Row
from benchmarks.values import write_values

TURN_SECONDS = 0.2
EXTEND = 4
QUIET_SHARE = 0.12
"""A turn counts if others kept the processors busy for less than this part of it (and a hundredth of a second, the clock's grain)."""

PAUSE_SECONDS = 0.03
"""Between turns: threads that spin after their work have gone to sleep by then."""

TOLERANCE = 1e-4
"""Numbers of two peers may differ by this part."""


@dataclass(slots=True)
class Player:
    """A peer in the game: its process, what it said at the start, its turns."""

    name: str
    process: PeerProcess
    compile: float
    start: float
    number: float
    peak: int
    turns: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def quiet(self) -> list[dict[str, Any]]:
        return [t for t in self.turns if is_quiet(t)]

    def quiet_seconds(self) -> float:
        return sum(t["seconds"] for t in self.quiet())


def time_case(
    case: Case, threads: int, peers: Sequence[str], cpus: Sequence[int], budget: float, results: Results
) -> None:
    """Adds the rows of a case to the results. What fails is a note."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, ExitStack() as stack:
        file = Path(folder) / "values.npz"
        write_values(case, file)
        players: list[Player] = []
        for peer in peers:
            progress(f"{case.name}, {threads} thread{'s' * (threads > 1)}: {peer} starts")
            player = _start(case, threads, peer, cpus, file, Path(folder) / peer, stack, results)
            if player is not None:
                players.append(player)
        _compare(case, threads, players, results)
        players = _take_turns(case, threads, players, budget, results)
        results.rows.extend(_row(case, threads, p) for p in players if p.turns)


def _start(
    case: Case,
    threads: int,
    peer: str,
    cpus: Sequence[int],
    file: Path,
    cache: Path,
    stack: ExitStack,
    results: Results,
) -> Player | None:
    """Starts a peer and runs it until its number is there: a step's loss after `STEPS` steps, else that of the first call."""
    request = {"peer": peer, "case": case.name, "values": str(file), "cpus": list(cpus[:threads])}
    try:
        process = stack.enter_context(peer_process(request, environment(threads, cache)))
        said = process.answer()
        start = time.perf_counter() - process.begin
        if "unsuited" in said:
            note(results, f"{case.name}: {peer} is left out: {said['unsuited']}")
            return None
        results.versions.update(said["versions"])
        number, peak = said["number"], said["peak"]
        if case.trained:
            after = process.ask(do="run", calls=STEPS - 1)
            number, peak = after["number"], after["peak"]
        return Player(peer, process, said["compile"], start, number, peak)
    except PeerFailed as reason:
        note(results, f"{case.name}, {threads} threads: {peer} failed: {reason}")
        return None


def _compare(case: Case, threads: int, players: Sequence[Player], results: Results) -> None:
    """Declares a case void if the numbers of the peers differ."""
    if not players:
        return
    if differ([p.number for p in players]):
        said = ", ".join(f"{p.name} {p.number:.6g}" for p in players)
        results.void[case.name, threads] = f"the numbers differ: {said}"


def differ(numbers: Sequence[float]) -> bool:
    """Whether two of them are further apart than `TOLERANCE`; a number that is none differs from all."""
    spread = max(numbers) - min(numbers)
    return any(n != n for n in numbers) or spread > TOLERANCE * abs(statistics.median(numbers))


def _take_turns(case: Case, threads: int, players: list[Player], budget: float, results: Results) -> list[Player]:
    """Rounds of turns, each started by another peer; those that fail drop out."""
    begin = time.perf_counter()
    length = min(TURN_SECONDS, budget / 3)
    number = 0
    while players:
        progress(f"{case.name}, {threads} thread{'s' * (threads > 1)}: round {number + 1}")
        shift = number % len(players)
        for player in players[shift:] + players[:shift]:
            time.sleep(PAUSE_SECONDS)
            try:
                player.turns.append(player.process.ask(do="turn", seconds=length))
            except PeerFailed as reason:
                note(results, f"{case.name}, {threads} threads: {player.name} failed: {reason}")
                player.turns.clear()
        players = [p for p in players if p.turns]
        number += 1
        spent = time.perf_counter() - begin
        enough = all(p.quiet_seconds() >= budget for p in players)
        if number >= 3 and (enough or spent > EXTEND * budget * len(players)):
            break
    return players


def is_quiet(turn: dict[str, Any]) -> bool:
    """Whether nothing else kept the processors busy in a turn."""
    return turn["others"] < QUIET_SHARE * turn["seconds"] + 0.01


def typical(turns: Sequence[dict[str, Any]]) -> float:
    """The median time of a call over the turns that count, or over the fastest quarter if none does."""
    quiet = [t["median"] for t in turns if is_quiet(t)]
    return statistics.median(quiet or sorted(t["median"] for t in turns)[: max(1, len(turns) // 4)])


def _row(case: Case, threads: int, player: Player) -> Row:
    return Row(
        case=case,
        threads=threads,
        peer=player.name,
        median=typical(player.turns),
        least=min(t["least"] for t in player.turns),
        calls=sum(t["calls"] for t in player.turns),
        quiet=len(player.quiet()) / len(player.turns),
        compile=player.compile,
        start=player.start,
        peak=player.peak,
        number=player.number,
    )


def note(results: Results, text: str) -> None:
    """Keeps a remark for the end, once."""
    if text not in results.notes:
        results.notes.append(text)
        progress(text, keep=True)


def progress(text: str, keep: bool = False) -> None:
    """A line on standard error: on a terminal one that the next overwrites, else one for every case, peer and remark."""
    with contextlib.suppress(OSError):
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{text[:110]}" + "\n" * keep)
        elif ": round" not in text:
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
