"""Ocn and numpy compute the same in the cases of the benchmarks."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.cases import CASES, Case, case_named, gpt_mini
from benchmarks.peers import peer_named
from benchmarks.values import values_of

QUICK = ("mlp", "makemore", "gemm 64", "gemm 16 of 128x64x128", "call")


def numbers(peer: str, case: Case, steps: int) -> list[float]:
    """The losses of the first steps, or the number of each call."""
    job = peer_named(peer).job(case, values_of(case))
    found: list[float] = []
    for _ in range(steps):
        result = job.call()
        job.wait(result)
        found.append(job.value(result))
    return found


@pytest.mark.parametrize("name", QUICK)
def test_ocn_and_numpy_agree(name: str) -> None:
    case = case_named(name)
    assert numbers("ocn", case, 6) == pytest.approx(numbers("numpy", case, 6), rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in CASES if c.name not in QUICK], ids=lambda c: c.name)
def test_ocn_and_numpy_agree_in_large_cases(case: Case) -> None:
    assert numbers("ocn", case, 6) == pytest.approx(numbers("numpy", case, 6), rel=1e-4)


@pytest.mark.slow
def test_ocn_and_numpy_agree_at_another_depth() -> None:
    assert numbers("ocn", gpt_mini(2), 3) == pytest.approx(numbers("numpy", gpt_mini(2), 3), rel=1e-4)


@pytest.mark.parametrize("name", ["mlp", "lenet"])
def test_values_are_the_same_every_time(name: str) -> None:
    first, second = values_of(case_named(name)), values_of(case_named(name))
    assert all(np.array_equal(first[k], second[k]) for k in first)
