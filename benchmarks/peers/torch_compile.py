"""PyTorch with `torch.compile`: the losses and blocks of `peers/torch.py`, compiled with inductor; the optimiser is its fused one."""

from __future__ import annotations

import torch

from benchmarks.cases import Case
from benchmarks.peers import Job, Unsuited
from benchmarks.peers import torch as eager
from benchmarks.values import Values


def ready() -> None:
    eager.ready()
    torch.compile(lambda t: t + 1)(torch.zeros(8))


def versions() -> dict[str, str]:
    return {"torch.compile": torch.__version__}


def job(case: Case, values: Values) -> Job:
    if case.family in ("gemm", "call"):
        raise Unsuited("runs the product of torch as it is" if case.family == "gemm" else "as torch")
    return eager.job_with(case, values, lambda function: torch.compile(function, dynamic=False))
