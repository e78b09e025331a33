"""The peers: each a module with `job`, which prepares a case and says how to run it once.

A peer is given what its users would give it: prepared batches in its own format, results written in place where that is usual, its
fused optimiser, donated buffers. `versions` names what it runs on; `ready` loads and starts everything that is not part of a program
(imports, backends), so that compile times are those of the program alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from benchmarks.cases import Case
from benchmarks.values import Values

PEERS = {
    "ocn": "benchmarks.peers.ocn",
    "numpy": "benchmarks.peers.numpy",
    "torch": "benchmarks.peers.torch",
    "torch.compile": "benchmarks.peers.torch_compile",
    "jax": "benchmarks.peers.jax",
}
"""The module of each peer."""

LIBRARIES = {"ocn": "ocannl_lang", "torch.compile": "torch"}
"""The library of a peer where it is called otherwise."""


@dataclass(frozen=True, slots=True)
class Job:
    """A case prepared by a peer.

    `call` does the work once and may return before it is done; `wait` returns when that result is there, `value` gives its number:
    the loss of a step, else `number_of` its result. `compiled` are the seconds that preparing spent on compiling.
    """

    call: Callable[[], Any]
    wait: Callable[[Any], object]
    value: Callable[[Any], float]
    compiled: float = 0.0


class Peer(Protocol):
    """What the module of a peer offers. `job` raises `Unsuited` for a case that it leaves out."""

    def ready(self) -> None: ...

    def versions(self) -> dict[str, str]: ...

    def job(self, case: Case, values: Values) -> Job: ...


class Unsuited(Exception):
    """A peer has nothing of its own to show in a case; the text says why."""


def peer_named(name: str) -> Peer:
    """The module of a peer. `ImportError` if its library is missing."""
    return cast(Peer, importlib.import_module(PEERS[name]))


def number_of(result: Any) -> float:
    """One number that tells results apart: the root of a mean of squares that weighs positions differently."""
    flat = np.asarray(result, np.float64).ravel()
    weights = 1 + np.arange(flat.size) % 97 / 97
    return float(np.sqrt((weights * flat**2).mean()))


def no_wait(_: object) -> None:
    """For results that are there when the call returns."""
