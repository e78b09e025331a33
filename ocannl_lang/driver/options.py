"""How a program is run: what a caller may choose."""

from __future__ import annotations

from dataclasses import dataclass

BACKENDS = {"cpu": "cpu", "llvm": "cpu", "reference": "reference"}


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a program is run. `threads` None: as many as the machine has cores."""

    seed: int = 0
    backend: str = "cpu"
    threads: int | None = None


class UnknownDevice(Exception):
    """No such device or backend here (E0703)."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the device `{name}` is not available here; there are {', '.join(sorted(BACKENDS))}")
        self.name = name


def run_options(seed: int, device: str, backend: str | None, threads: int | None) -> RunOptions:
    """The options a caller gave. Raises `ValueError` and `UnknownDevice` for those that cannot be."""
    if not _is_int_within(seed, 0, (1 << 64) - 1):
        raise ValueError(f"the seed is an int from 0 to 2**64 - 1, not {seed!r}")
    if threads is not None and not _is_int_within(threads, 1, 1 << 16):
        raise ValueError(f"the number of threads is an int of at least 1, not {threads!r}")
    name = backend or device
    if name not in BACKENDS:
        raise UnknownDevice(name)
    return RunOptions(seed, BACKENDS[name], threads)


def _is_int_within(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
