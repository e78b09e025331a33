"""What the machine tells: its processors, how busy others keep them, the memory of this process."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path


def usable_cpus() -> list[int]:
    """The processors that this process may use, those of different cores first; none where the system does not say."""
    if sys.platform != "linux":
        return []
    first: list[int] = []
    second: list[int] = []
    seen: set[str] = set()
    for cpu in sorted(os.sched_getaffinity(0)):
        core = _text(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").strip() or str(cpu)
        (second if core in seen else first).append(cpu)
        seen.add(core)
    return first + second


def limit_to(cpus: Sequence[int]) -> None:
    """Limits the calling thread, and what it starts later, to these processors; nothing if there are none."""
    if cpus and sys.platform == "linux":
        os.sched_setaffinity(0, cpus)


def peak_memory() -> int:
    """The most bytes of memory that this process has had at once so far; 0 where the system does not say."""
    for line in _text("/proc/self/status").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    if sys.platform == "win32":
        return 0
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


class Others:
    """How long the processors of this process have been busy with anything else since this object was made."""

    def __init__(self) -> None:
        self._cpus = usable_cpus()
        self._start = self._busy() - _own_time()

    def seconds(self) -> float:
        """0 where the system does not say. The system counts in hundredths of a second."""
        return max(0.0, self._busy() - _own_time() - self._start) if self._cpus else 0.0

    def _busy(self) -> float:
        """User, nice and system time, interrupts and time stolen by other machines, of all these processors."""
        names = {f"cpu{cpu}" for cpu in self._cpus}
        total = 0
        for line in _text("/proc/stat").splitlines():
            fields = line.split()
            if fields and fields[0] in names:
                total += sum(int(fields[i]) for i in (1, 2, 3, 6, 7, 8))
        return total / 100


def _own_time() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def description() -> dict[str, str]:
    """The machine in words."""
    model = next(
        (line.split(":")[1].strip() for line in _text("/proc/cpuinfo").splitlines() if "model name" in line), ""
    )
    return {
        "system": platform.platform(),
        "processor": model or platform.processor() or platform.machine(),
        "processors": str(os.cpu_count()),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d %H:%M"),
    }


def _text(file: str) -> str:
    with contextlib.suppress(OSError):
        return Path(file).read_text(encoding="utf-8")
    return ""
