"""The goals, each with what was reached. All are about two threads unless they say otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.results import Results

Verdict = Literal["yes", "no", "?"]
MB = 1e6

SLACK = 1.01
"""No peer is called faster for one part in a hundred: so far apart are two measurements of the same."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A goal, what was reached, and whether it holds; `?` if that was not measured."""

    goal: str
    reached: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Reached:
    """What was reached, in words, and whether that is enough."""

    text: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Goal:
    """`judge` gives nothing if what it needs was not measured, or is void."""

    text: str
    judge: Callable[[Results], Reached | None]


def judged(results: Results) -> list[Judged]:
    """All goals."""
    found: list[Judged] = []
    for goal in GOALS:
        reached = goal.judge(results)
        if reached is None:
            found.append(Judged(goal.text, "not measured", "?"))
        else:
            found.append(Judged(goal.text, reached.text, "yes" if reached.holds else "no"))
    return found


def _square(n: int) -> Goal:
    """One thread: near the ceiling, and no peer faster."""
    share = 0.92 if n > 64 else 0.8

    def judge(results: Results) -> Reached | None:
        own, best = results.row(f"gemm {n}", 1), results.best_peer(f"gemm {n}", 1)
        ceilings = results.ceilings.get(1)
        if own is None or ceilings is None or (best is None and n > 64):
            return None
        rate = own.case.work / own.median
        ahead = n == 64 or (best is not None and own.median <= SLACK * best.median)
        text = f"{100 * rate / ceilings.flop:.0f} % of {ceilings.flop / 1e9:.0f} GFLOP/s"
        if best is not None:
            text += f", {own.median / best.median:.2f} of {best.peer}"
        return Reached(text, rate >= share * ceilings.flop and ahead)

    ahead = ", no peer faster" if n > 64 else ""
    return Goal(f"gemm {n}, one thread: at least {100 * share:.0f} % of the ceiling{ahead}", judge)


def _two_threads(n: int) -> Goal:
    def judge(results: Results) -> Reached | None:
        one, two = results.row(f"gemm {n}", 1), results.row(f"gemm {n}", 2)
        if one is None or two is None:
            return None
        return Reached(f"{one.median / two.median:.2f} times", one.median >= 1.85 * two.median)

    return Goal(f"gemm {n}: with two threads at least 1.85 times as fast as with one", judge)


def _times_as_fast(case: str, factor: float, threads: int = 2) -> Goal:
    def judge(results: Results) -> Reached | None:
        own, best = results.row(case, threads), results.best_peer(case, threads)
        if own is None or best is None:
            return None
        return Reached(f"{best.median / own.median:.2f} times {best.peer}", best.median >= factor * own.median)

    return Goal(f"{case}: at least {factor:g} times as fast as the best peer", judge)


def _fast_or_bound(case: str) -> Goal:
    def judge(results: Results) -> Reached | None:
        own, best, ceilings = results.row(case, 2), results.best_peer(case, 2), results.ceilings.get(2)
        if own is None or best is None or ceilings is None:
            return None
        share, times = own.case.work / own.median / ceilings.bytes, best.median / own.median
        return Reached(f"{times:.2f} times {best.peer}, {100 * share:.0f} % of a copy", times >= 1.5 or share >= 0.8)

    return Goal(f"{case}: at least 1.5 times as fast as the best peer, or 80 % of the bandwidth of a copy", judge)


def _part_of_best(case: str, part: float) -> Goal:
    def judge(results: Results) -> Reached | None:
        own, best = results.row(case, 2), results.best_peer(case, 2)
        if own is None or best is None:
            return None
        return Reached(f"{own.median / best.median:.2f} of {best.peer}", own.median <= part * best.median)

    return Goal(f"{case}: at most {part:g} of the time of the best peer", judge)


def _cold_compile(case: str) -> Goal:
    def judge(results: Results) -> Reached | None:
        own, jax = results.single("compile", case), results.single("compile", case, "jax")
        if own is None or jax is None:
            return None
        return Reached(f"{own:.2f} s, jax {jax:.2f} s", own <= jax)

    return Goal(f"cold compile of the step of {case}: at most as long as jax.jit's", judge)


def _depth(results: Results) -> Reached | None:
    two, sixteen = results.single("layers", "2"), results.single("layers", "16")
    if two is None or sixteen is None:
        return None
    return Reached(f"{sixteen / two:.1f} times ({two:.2f} s, {sixteen:.2f} s)", sixteen <= 9 * two)


def _warm_start(results: Results) -> Reached | None:
    own, bare = results.single("warm start", "mlp"), results.single("warm start", "mlp", "bare")
    if own is None:
        return None
    beside = f" (Python with numpy alone {bare:.2f} s)" if bare is not None else ""
    return Reached(f"{own:.2f} s{beside}", own <= 0.4)


def _warm_memory(subject: str, limit: float) -> Callable[[Results], Reached | None]:
    def judge(results: Results) -> Reached | None:
        own, bare = results.single("warm start memory", subject), results.single("warm start memory", subject, "bare")
        if own is None:
            return None
        beside = f" (Python with numpy alone {bare / MB:.0f} MB)" if bare is not None else ""
        return Reached(f"{own / MB:.0f} MB{beside}", own <= limit * MB)

    return judge


def _cold_memory(results: Results) -> Reached | None:
    own = results.row("gpt_mini", 2)
    return None if own is None else Reached(f"{own.peak / MB:.0f} MB", own.peak <= 150 * MB)


def _call(results: Results) -> Reached | None:
    own = results.row("call", 2) or results.row("call", 1)
    return None if own is None else Reached(f"{own.median * 1e6:.2f} µs", own.median < 5e-6)


def _load(case: str) -> Goal:
    def judge(results: Results) -> Reached | None:
        own = results.single("loaded", case)
        return None if own is None else Reached(f"{own:.2f} times", own <= 2.5)

    return Goal(f"step of {case} beside a busy process: at most 2.5 times slower", judge)


GOALS: Sequence[Goal] = (
    *(_square(n) for n in (64, 128, 256, 512, 1024, 2048)),
    *(_two_threads(n) for n in (256, 512, 1024, 2048)),
    *(_times_as_fast(f"gemm {name}", 1.1) for name in ("64x784x128", "32x512x2048", "1x768x3072", "16 of 128x64x128")),
    *(_fast_or_bound(name) for name in ("gelu", "softmax")),
    _times_as_fast("layer norm", 1.0),
    _part_of_best("mlp", 0.6),
    _part_of_best("makemore", 0.35),
    _part_of_best("lenet", 0.4),
    _part_of_best("gpt_mini", 0.7),
    _part_of_best("gpt2_block", 0.85),
    _part_of_best("gpt2_token", 0.85),
    _cold_compile("mlp"),
    _cold_compile("gpt_mini"),
    Goal("cold compile of 16 layers: at most 9 times as long as of 2 layers", _depth),
    Goal("warm start to the first result of mlp: at most 0.4 s", _warm_start),
    Goal("memory of mlp after a warm start: at most 120 MB", _warm_memory("mlp", 120)),
    Goal("a call of a small routine: less than 5 µs", _call),
    Goal("memory of the step of gpt_mini after a warm start: at most 150 MB", _warm_memory("gpt_mini", 150)),
    Goal("memory of the step of gpt_mini, compiled in the same process: at most 150 MB", _cold_memory),
    _load("mlp"),
    _load("gpt_mini"),
)
