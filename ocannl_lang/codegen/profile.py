"""How long each step of a routine takes, in place: the steps run in their order, with the processor's clock read between them.

Every kernel finds the caches as those before it left them, as in a real call. The clock is the counter that all processors of a
machine share (`rdtsc` on x86, `cntvct_el0` on ARM), the system's own clock elsewhere; a count is set against Python's clock.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocannl_lang.codegen.cpu import executor
from ocannl_lang.codegen.llvm.compile import link, object_code
from ocannl_lang.codegen.llvm.target import Target, host_target
from ocannl_lang.resources import cache_dir
from ocn_runtime.cpu import RECORD_WORDS, Routine

_CALIBRATION_NS = 20_000_000

_TEXT = """
define void @ocn_timed(ptr %call, ptr %records, i64 %count, ptr %times) #0 {
entry:
  %any = icmp ne i64 %count, 0
  br i1 %any, label %step, label %done
step:
  %k = phi i64 [ 0, %entry ], [ %next, %step ]
  %now = call i64 @now()
  %tp = getelementptr i64, ptr %times, i64 %k
  store i64 %now, ptr %tp, align 8
  %record = getelementptr [RECORD_WORDS x i64], ptr %records, i64 %k
  call void %call(ptr %record)
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %step, label %done
done:
  %end = call i64 @now()
  %ep = getelementptr i64, ptr %times, i64 %count
  store i64 %end, ptr %ep, align 8
  ret void
}

attributes #0 = { nounwind }
"""

_X86 = """
declare i64 @llvm.readcyclecounter()

define internal i64 @now() #0 {
  %t = call i64 @llvm.readcyclecounter()
  ret i64 %t
}
"""

_ARM = """
declare i64 @llvm.read_volatile_register.i64(metadata)

define internal i64 @now() #0 {
  %t = call i64 @llvm.read_volatile_register.i64(metadata !0)
  ret i64 %t
}

!0 = !{!"cntvct_el0"}
"""

_SYSTEM = """
declare i32 @clock_gettime(i32, ptr)

define internal i64 @now() #0 {
  %time = alloca [2 x i64], align 8
  %r = call i32 @clock_gettime(i32 1, ptr %time)
  %s = load i64, ptr %time, align 8
  %np = getelementptr i64, ptr %time, i64 1
  %n = load i64, ptr %np, align 8
  %b = mul i64 %s, 1000000000
  %t = add i64 %b, %n
  ret i64 %t
}
"""


def timer_text(target: Target) -> str:
    """The module of the function that runs steps and notes the times."""
    arch = target.triple.split("-", 1)[0]
    clock = _X86 if arch in ("x86_64", "amd64", "i686") else _ARM if arch in ("aarch64", "arm64") else _SYSTEM
    return clock + _TEXT.replace("RECORD_WORDS", str(RECORD_WORDS))


@dataclass(slots=True)
class StepTimer:
    """Times of steps in nanoseconds. Counts become nanoseconds by what has passed on both clocks since it was made."""

    _call: Callable[..., None]
    _execute: int
    _keep: object
    _began: tuple[int, int] = (0, 0)

    @staticmethod
    def of_host() -> StepTimer:
        target = host_target()
        found, tracker = link([object_code(timer_text(target), target, cache_dir())], ["ocn_timed"])
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
        timer = StepTimer(kind(found["ocn_timed"]), executor().call, tracker)
        timer._began = timer._both()
        return timer

    def passes(self, routine: Routine, count: int) -> NDArray[np.int64]:
        """Runs the steps of a routine `count` times on the arrays of its last call: counts [pass, step]."""
        records = routine.records()
        steps = len(records) // RECORD_WORDS
        times = np.zeros((count, steps + 1), np.int64)
        for i in range(count):
            self._call(self._execute, ctypes.addressof(records), steps, times[i].ctypes.data)
        return np.diff(times, axis=1)

    def empty(self, count: int) -> float:
        """What noting a time and running no step costs, in counts: the median."""
        records = (ctypes.c_int64 * (RECORD_WORDS * count))()
        times = np.zeros(count + 1, np.int64)
        for _ in range(3):
            self._call(self._execute, ctypes.addressof(records), count, times.ctypes.data)
        return float(np.median(np.diff(times)))

    def nanoseconds_per_count(self) -> float:
        """What one count is; waits where too little time has passed to say."""
        while True:
            count, ns = self._both()
            if ns - self._began[1] >= _CALIBRATION_NS:
                return (ns - self._began[1]) / max(1, count - self._began[0])
            time.sleep(0.005)

    def _both(self) -> tuple[int, int]:
        times = np.zeros(1, np.int64)
        self._call(self._execute, None, 0, times.ctypes.data)
        return int(times[0]), time.perf_counter_ns()
