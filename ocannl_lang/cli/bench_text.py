"""The report of `ocn bench` as tables and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from ocannl_lang.driver.arguments import Unsized
from ocannl_lang.driver.bench import KernelReport, Report, RoutineReport, Unmeasured
from ocannl_lang.source import Span

_SHOWN_NAMES = 2
_WIDEST_NAME = 44
_STEADY = 1.25


def report_text(report: Report, *, sort: str = "time", schedules: bool = False) -> str:
    """All routines, then what their kernels are compared with."""
    parts = [
        _routine_text(r, sort, schedules) if isinstance(r, RoutineReport) else _unmeasured_text(r)
        for r in report.routines
    ]
    machine = _machine_lines(report)
    return "\n\n".join([*parts, *(["\n".join(machine)] if machine else [])])


def _unmeasured_text(r: Unmeasured) -> str:
    if isinstance(r.reason, Unsized):
        return f"routine {r.name}: not measured: the program does not fix the size of {r.reason.what}; give {r.reason.helps}"
    first = next((d for d in r.reason if d.severity == "error"), r.reason[0])
    return f"routine {r.name}: not measured: {first.message}"


# ---------------------------------------------------------------- routines


@dataclass(slots=True)
class _Row:
    """Equal kernels together."""

    kernels: list[KernelReport]

    @property
    def seconds(self) -> float:
        return sum(k.seconds for k in self.kernels)

    @property
    def operations(self) -> int:
        return sum(k.work.operations for k in self.kernels)

    @property
    def bytes(self) -> int:
        return sum(k.work.bytes for k in self.kernels)

    @property
    def share(self) -> float:
        whole = self.seconds
        return sum(k.share * k.seconds for k in self.kernels) / whole if whole else 0.0

    @property
    def bound(self) -> str:
        """What bounds most of the time."""
        times: dict[str, float] = {}
        for k in self.kernels:
            times[k.bound] = times.get(k.bound, 0.0) + k.seconds
        return max(times, key=lambda b: times[b])


def _routine_text(r: RoutineReport, sort: str, schedules: bool) -> str:
    arguments = ", ".join(f"{name}: {_shape(shape)}" for name, shape in r.arguments)
    summary = (
        f"  {duration(r.seconds)} a call: {duration(r.kernel_seconds)} in {_count(len(r.kernels), 'kernel')}, "
        f"{duration(r.call_seconds)} for an empty call; arena {amount(r.arena)}; median of {r.passes} calls"
    )
    lines = [f"routine {r.name}({arguments})", summary]
    if r.seconds > _STEADY * r.quick_seconds:
        lines.append(
            f"  the calls vary: the quickest tenth take up to {duration(r.quick_seconds)}; is something else running here?"
        )
    if not r.kernels:
        return lines[0] + "\n  nothing to compute"
    rows = _rows(r.kernels, sort)
    head = ("time", "each", "share", "flop", "GFLOP/s", "bytes", "GB/s", "of limit", "bound by", "threads", "kernel")
    table: list[tuple[str, ...]] = [head]
    whole = r.kernel_seconds or 1.0
    for row in rows:
        table.append(_cells(row, whole))
    widths = [max(len(cells[i]) for cells in table) for i in range(len(head))]
    for n, cells in enumerate(table):
        padded = [
            c.ljust(w) if i in (8, 10) else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True))
        ]
        lines.append(("  " + "  ".join(padded)).rstrip())
        if schedules and n:
            lines.append(f"      {rows[n - 1].kernels[0].schedule or 'as it is'}")
    return "\n".join(lines)


def _rows(kernels: Sequence[KernelReport], sort: str) -> list[_Row]:
    if sort == "order":
        return [_Row([k]) for k in kernels]
    groups: dict[int, _Row] = {}
    for k in kernels:
        groups.setdefault(k.code, _Row([])).kernels.append(k)
    return sorted(groups.values(), key=lambda row: -row.seconds)


def _cells(row: _Row, whole: float) -> tuple[str, ...]:
    seconds = max(row.seconds, 1e-12)
    n = len(row.kernels)
    rate = row.operations / seconds * 1e-9
    flow = row.bytes / seconds * 1e-9
    functions = any(k.work.functions for k in row.kernels)
    return (
        duration(row.seconds),
        duration(row.seconds / n) if n > 1 else "",
        f"{100 * row.seconds / whole:.1f} %",
        operations(row.operations) + ("*" if functions else "") if row.operations else "-",
        f"{rate:.1f}" if row.operations else "-",
        amount(row.bytes),
        f"{flow:.1f}",
        f"{100 * row.share:.0f} %",
        row.bound,
        str(max(k.threads for k in row.kernels)),
        _kernel_name(row.kernels[0]) + (f"  ×{n}" if n > 1 else ""),
    )


def _kernel_name(k: KernelReport) -> str:
    names = list(k.writes)
    text = ", ".join(names[:_SHOWN_NAMES]) + (f" +{len(names) - _SHOWN_NAMES}" if len(names) > _SHOWN_NAMES else "")
    if len(text) > _WIDEST_NAME:
        text = text[: _WIDEST_NAME - 1] + "…"
    return text + (f" ({_place(k.place)})" if k.place is not None else "")


def _place(span: Span) -> str:
    return f"{PurePath(span.source.path).name}:{span.line}"


def _machine_lines(report: Report) -> list[str]:
    lines: list[str] = []
    for c in report.ceilings.values():
        moved = ", ".join(f"{amount(b.size)} {b.read * 1e-9:.0f}/{b.copy * 1e-9:.0f}" for b in c.bandwidths)
        lines.append(
            f"limits with {_count(c.threads, 'thread')}: {c.flops * 1e-9:.0f} GFLOP/s in f32, {c.flops64 * 1e-9:.0f} in f64; "
            f"GB/s when reading/copying {moved}"
        )
    if lines:
        lines.append("* functions (division, roots, exponentials, …) count as several operations")
    return lines


# ---------------------------------------------------------------- numbers


def duration(seconds: float) -> str:
    """A time with three digits and its unit."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= factor:
            return f"{_digits(seconds / factor)} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def amount(count: int) -> str:
    """A number of bytes."""
    for factor, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= factor:
            return f"{_digits(count / factor)} {unit}"
    return f"{count} B"


def operations(count: int) -> str:
    """A number of operations."""
    for factor, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= factor:
            return f"{_digits(count / factor)} {unit}"
    return str(count)


def _digits(x: float) -> str:
    return f"{x:.2f}" if x < 10 else f"{x:.1f}" if x < 100 else f"{x:.0f}"


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _shape(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "a number"


# ---------------------------------------------------------------- JSON


def report_json(report: Report) -> str:
    """Everything that was measured, times in seconds, every kernel on its own and in the order in which they run."""
    return json.dumps(
        {
            "threads": report.threads,
            "ceilings": [
                {
                    "threads": c.threads,
                    "flops": c.flops,
                    "flops_f64": c.flops64,
                    "bandwidths": [{"bytes": b.size, "read": b.read, "copy": b.copy} for b in c.bandwidths],
                }
                for c in report.ceilings.values()
            ],
            "routines": [
                _routine_json(r) if isinstance(r, RoutineReport) else _unmeasured_json(r) for r in report.routines
            ],
        },
        indent=2,
        ensure_ascii=False,
    )


def _unmeasured_json(r: Unmeasured) -> dict[str, Any]:
    if isinstance(r.reason, Unsized):
        return {
            "name": r.name,
            "measured": False,
            "reason": f"the size of {r.reason.what} is open",
            "help": r.reason.helps,
        }
    return {"name": r.name, "measured": False, "reason": "; ".join(d.message for d in r.reason)}


def _routine_json(r: RoutineReport) -> dict[str, Any]:
    return {
        "name": r.name,
        "measured": True,
        "arguments": {name: list(shape) for name, shape in r.arguments},
        "seconds": r.seconds,
        "quick_seconds": r.quick_seconds,
        "kernel_seconds": r.kernel_seconds,
        "call_seconds": r.call_seconds,
        "arena": r.arena,
        "passes": r.passes,
        "kernels": [_kernel_json(k) for k in r.kernels],
    }


def _kernel_json(k: KernelReport) -> dict[str, Any]:
    return {
        "writes": list(k.writes),
        "place": None if k.place is None else {"file": k.place.source.path, "line": k.place.line},
        "seconds": k.seconds,
        "quick_seconds": k.quick_seconds,
        "operations": k.work.operations,
        "functions": k.work.functions,
        "bytes_read": k.work.read,
        "bytes_written": k.work.written,
        "share": k.share,
        "bound": k.bound,
        "threads": k.threads,
        "schedule": k.schedule,
        "code": k.code,
    }
