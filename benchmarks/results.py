"""What was measured, as data: rows of the table, times of single processes, and what each goal needs of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.cases import Case

OWN = "ocn"


@dataclass(frozen=True, slots=True)
class Row:
    """A case by a peer. Times in seconds, memory in bytes.

    `compile` is the first call (for Ocn with the loading of the program), in a process whose library is loaded; `start` the time from
    the start of the process to the first result; `peak` the most memory until the number was there; `number` the loss after
    `STEPS` steps, or `number_of` the result. `quiet` is the part of the turns in which nothing else ran.
    """

    case: Case
    threads: int
    peer: str
    median: float
    least: float
    calls: int
    quiet: float
    compile: float
    start: float
    peak: int
    number: float


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What the machine can do with so many threads: f32 operations in a second, bytes copied in a second (read and written).

    `copy` and `stream` (past the cache) are those of arrays as large as in the pointwise cases; the others of arrays far larger than
    any cache.
    """

    threads: int
    vector: int
    flop: float
    copy: float
    stream: float
    large_copy: float
    large_stream: float

    @property
    def bytes(self) -> float:
        """The better of the two ways to copy."""
        return max(self.copy, self.stream)


@dataclass(frozen=True, slots=True)
class Single:
    """Something measured in processes of their own: seconds, or bytes for memory, or a ratio."""

    kind: str
    subject: str
    peer: str
    value: float


@dataclass(slots=True)
class Results:
    """Everything of one run. `void` says why a case with so many threads does not count."""

    rows: list[Row] = field(default_factory=list[Row])
    ceilings: dict[int, Ceilings] = field(default_factory=dict[int, Ceilings])
    singles: list[Single] = field(default_factory=list[Single])
    void: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    notes: list[str] = field(default_factory=list[str])
    versions: dict[str, str] = field(default_factory=dict[str, str])

    def row(self, case: str, threads: int, peer: str = OWN) -> Row | None:
        """The row, unless it is void."""
        if (case, threads) in self.void:
            return None
        return next((r for r in self.rows if (r.case.name, r.threads, r.peer) == (case, threads, peer)), None)

    def best_peer(self, case: str, threads: int) -> Row | None:
        """The fastest of the others in this case."""
        rows = [r for r in self.rows if (r.case.name, r.threads) == (case, threads) and r.peer != OWN]
        return min(rows, key=lambda r: r.median, default=None)

    def single(self, kind: str, subject: str, peer: str = OWN) -> float | None:
        """A single measurement."""
        return next((s.value for s in self.singles if (s.kind, s.subject, s.peer) == (kind, subject, peer)), None)
