"""The results as text."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.goals import Judged
from benchmarks.results import OWN, Ceilings, Results, Row

HEAD = ("case", "thr", "peer", "median", "of best peer", "rate", "ceiling", "compile", "start", "memory", "number", "")


def text_of(results: Results, machine: dict[str, str], judged: Sequence[Judged]) -> str:
    """Everything: the machine, the table of the cases, the single measurements, remarks, goals."""
    parts = [", ".join(machine.values()), "  ".join(f"{k} {v}" for k, v in results.versions.items())]
    parts += [_ceilings(c) for c in results.ceilings.values()]
    if results.rows:
        parts += ["", *_aligned([HEAD, *_rows(results)])]
    parts += [f"void: {name}, {threads} threads: {why}" for (name, threads), why in results.void.items()]
    if results.singles:
        parts += ["", *_aligned([("measured", "of", "peer", "value"), *_singles(results)])]
    if results.notes:
        parts += ["", *results.notes]
    if judged:
        parts += ["", *_aligned([("goal", "reached", "holds"), *((j.goal, j.reached, j.verdict) for j in judged)])]
        counts = {v: sum(j.verdict == v for j in judged) for v in ("yes", "no", "?")}
        parts.append(f"{counts['yes']} goals hold, {counts['no']} do not, {counts['?']} were not measured")
    return "\n".join(parts)


def _rows(results: Results) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, threads in dict.fromkeys((r.case.name, r.threads) for r in results.rows):
        rows = [r for r in results.rows if (r.case.name, r.threads) == (name, threads)]
        for row in sorted(rows, key=lambda r: r.median):
            found.append(_row(row, results))
    return found


def _row(row: Row, results: Results) -> tuple[str, ...]:
    best = results.best_peer(row.case.name, row.threads)
    void = (row.case.name, row.threads) in results.void
    return (
        row.case.name,
        str(row.threads),
        row.peer + " *" * (row.peer == OWN),
        time_text(row.median),
        f"{row.median / best.median:.2f}" if best else "",
        ""
        if row.case.unit == "call"
        else f"{row.case.work / row.median / 1e9:.1f} {'GFLOP/s' if row.case.unit == 'flop' else 'GB/s'}",
        _share(row, results.ceilings.get(row.threads)),
        time_text(row.compile),
        time_text(row.start),
        f"{row.peak / 1e6:.0f} MB",
        f"{row.number:.6g}",
        " ".join(["VOID"] * void + [f"busy machine ({100 * row.quiet:.0f} % quiet)"] * (row.quiet < 0.5)),
    )


def _share(row: Row, ceilings: Ceilings | None) -> str:
    ceiling = ceiling_of(row, ceilings)
    return f"{100 * row.case.work / row.median / ceiling:.0f} %" if ceiling else ""


def ceiling_of(row: Row, ceilings: Ceilings | None) -> float | None:
    """What bounds a row: operations or bytes in a second."""
    if ceilings is None or row.case.unit == "call":
        return None
    return ceilings.flop if row.case.unit == "flop" else ceilings.bytes


def _ceilings(c: Ceilings) -> str:
    return (
        f"ceilings with {c.threads} thread{'s' * (c.threads > 1)}: {c.flop / 1e9:.1f} GFLOP/s (f32, vectors of {c.vector}); "
        f"copies of 16 MiB {c.copy / 1e9:.1f} GB/s, past the cache {c.stream / 1e9:.1f} GB/s; "
        f"of large arrays {c.large_copy / 1e9:.1f} and {c.large_stream / 1e9:.1f} GB/s"
    )


def _singles(results: Results) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for s in results.singles:
        subject = f"{s.subject} layers" if s.kind == "layers" else s.subject
        if s.kind.endswith("memory"):
            value = f"{s.value / 1e6:.0f} MB"
        else:
            value = f"{s.value:.2f} times slower" if s.kind == "loaded" else time_text(s.value)
        found.append(("compile" if s.kind == "layers" else s.kind, subject, s.peer, value))
    return found


def time_text(seconds: float) -> str:
    """Seconds with three digits and a fitting unit."""
    units = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
    unit, size = next(((u, s) for u, s in units if seconds >= s), units[-1])
    value = seconds / size
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} {unit}"


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns as wide as they need; a line under the first row."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]
