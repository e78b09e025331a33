"""Measuring routines: how long each kernel takes, how much work it is, and what holds it back.

Kernels are timed where they stand: a pass runs all of them in their order, so that each finds the caches as in a real call, and the
median over many passes counts, less what reading the clock costs. The whole call is timed apart, from Python, as programs call it.
Parameters and states are copies and start every batch of passes from their first values, so that a training step neither runs away
nor changes anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ocannl_lang.codegen.ceilings import Ceilings, measure_ceilings
from ocannl_lang.codegen.cpu import CompiledProgram
from ocannl_lang.codegen.profile import StepTimer
from ocannl_lang.codegen.work import Work, work_of
from ocannl_lang.diagnostics.model import Diagnostic
from ocannl_lang.driver.arguments import Shapes, Unsized, argument_shapes, fill
from ocannl_lang.driver.errors import ProgramErrors
from ocannl_lang.driver.program import Program, Routine
from ocannl_lang.graph.dtypes import dtype
from ocannl_lang.loops.ir import Buffer
from ocannl_lang.schedule.ir import Kernel
from ocannl_lang.schedule.memory import Outside
from ocannl_lang.schedule.trees import computes
from ocannl_lang.source import Span
from ocn_runtime.cpu import Routine as BoundRoutine
from ocn_runtime.cpu import result_array

Array = NDArray[Any]
Bound = Literal["arithmetic", "memory", "latency/overhead"]

NEAR = 0.3
"""The share of a ceiling from which on it is what bounds a kernel."""
_QUICK = 10
_BATCH = 20
_MOST_PASSES = 2000
_LEAST_PASSES = 3


@dataclass(frozen=True, slots=True)
class KernelReport:
    """One kernel: the buffers that it writes, where they come from, its median time and that of the quickest tenth, its work.

    `share`: of what the machine could do, `bound`: what holds it back. `threads`: how many share its turns. Kernels with the same `code`
    are the same on other buffers.
    """

    writes: tuple[str, ...]
    place: Span | None
    seconds: float
    quick_seconds: float
    work: Work
    threads: int
    share: float
    bound: Bound
    schedule: str
    code: int


@dataclass(frozen=True, slots=True)
class RoutineReport:
    """One routine: its arguments, its arena in bytes, and times: of a whole call the median and the quickest tenth, of an empty call.

    `passes`: how many calls were measured.
    """

    name: str
    arguments: tuple[tuple[str, tuple[int, ...]], ...]
    kernels: tuple[KernelReport, ...]
    seconds: float
    quick_seconds: float
    call_seconds: float
    arena: int
    passes: int

    @property
    def kernel_seconds(self) -> float:
        return sum(k.seconds for k in self.kernels)


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A routine that could not be run: its sizes are open, or what it needs is not there."""

    name: str
    reason: Unsized | tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """All routines of a program. `ceilings`: what kernels are compared with, by the number of threads."""

    threads: int
    ceilings: Mapping[int, Ceilings]
    routines: tuple[RoutineReport | Unmeasured, ...]


def bench(
    program: Program, names: Sequence[str], *, shapes: Shapes | None = None, seconds: float = 1.0,
    begin: Callable[[str], None] = lambda _: None,
) -> Report:  # fmt: skip
    """Measures routines, each for about as many seconds. `begin` is told what comes next."""
    runs: list[_Run | Unmeasured] = []
    for name in names:
        begin(f"{name}: compiling")
        runs.append(_prepare(program, program.routines[name], name, shapes or {}))
    timer = StepTimer.of_host()
    measured: list[_Measured | Unmeasured] = []
    for run in runs:
        if isinstance(run, _Run):
            begin(f"{run.name}: measuring")
            measured.append(_measure(run, timer, seconds))
        else:
            measured.append(run)
    done = [m for m in measured if isinstance(m, _Measured)]
    begin("measuring the machine")
    largest = max((w.bytes for m in done for w in m.works), default=0)
    ceilings = {n: measure_ceilings(n, largest) for n in sorted({t for m in done for t in m.threads})}
    reports = tuple(_reported(m, ceilings) if isinstance(m, _Measured) else m for m in measured)
    return Report(program.threads, ceilings, reports)


# ---------------------------------------------------------------- preparing


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """A compiled routine with arguments and copies of what it keeps."""

    name: str
    routine: Routine
    compiled: CompiledProgram
    inputs: list[Array]
    outputs: list[Array]
    kept: dict[Buffer, Array]
    first: dict[Buffer, Array]

    def restore(self) -> None:
        for b, value in self.first.items():
            self.kept[b][...] = value


def _prepare(program: Program, routine: Routine, name: str, shapes: Shapes) -> _Run | Unmeasured:
    try:
        found = argument_shapes(routine, shapes)
        if isinstance(found, Unsized):
            return Unmeasured(name, found)
        inputs = [np.zeros(shape, kind) for shape, kind in zip(found, routine.input_dtypes(), strict=True)]
        executable = routine.executable(inputs)
        compiled = executable.compiled
        assert compiled is not None, "an interpreted program has no kernels"
        fill(routine, executable.program, inputs)
        kept: dict[Buffer, Array] = {}
        first: dict[Buffer, Array] = {}
        for b in compiled.persistent:
            kept[b] = program.array(b, executable.solution)
            if b.role != "data":
                first[b], kept[b] = kept[b], kept[b].copy()
    except ProgramErrors as error:
        return Unmeasured(name, tuple(error.diagnostics))
    outputs = [result_array(b.shape, dtype(b.prec)) for b in executable.program.outputs]
    return _Run(name, routine, compiled, inputs, outputs, kept, first)


# ---------------------------------------------------------------- measuring


@dataclass(frozen=True, slots=True, eq=False)
class _Measured:
    """Times in seconds: of whole calls, of an empty call, and of each step by pass."""

    run: _Run
    whole: list[float]
    call_seconds: float
    steps: NDArray[np.float64]
    works: list[Work]
    threads: list[int]


def _measure(run: _Run, timer: StepTimer, seconds: float) -> _Measured:
    bound = run.compiled.bind(run.kept)
    whole: list[float] = []
    passes: list[NDArray[np.int64]] = []
    _timed_calls(run, bound, 1)
    began = time.perf_counter()
    repeats = 1
    while len(whole) < _LEAST_PASSES or (time.perf_counter() - began < seconds and len(whole) < _MOST_PASSES):
        _start_afresh(run, bound, repeats)
        whole += _timed_calls(run, bound, repeats)
        _start_afresh(run, bound, repeats)
        passes.append(timer.passes(bound, repeats))
        repeats = max(1, min(_BATCH, int(0.1 * seconds / max(whole[0], 1e-9))))
    each = timer.nanoseconds_per_count() * 1e-9
    steps = np.maximum(np.concatenate(passes) - timer.empty(200), 0.0) * each
    works = [work_of(k) for k in run.compiled.plan.kernels]
    threads = [min(run.compiled.threads, max(1, s.turns)) for s in run.compiled.steps]
    return _Measured(run, whole, _empty_call(run), steps, works, threads)


def _start_afresh(run: _Run, bound: BoundRoutine, repeats: int) -> None:
    """Parameters as they were; for short routines a call that brings everything into the caches."""
    run.restore()
    if repeats > 1:
        bound(run.inputs, run.outputs, 0, 0)


def _timed_calls(run: _Run, bound: BoundRoutine, repeats: int) -> list[float]:
    times: list[float] = []
    for i in range(repeats):
        start = time.perf_counter()
        bound(run.inputs, run.outputs, 0, i)
        times.append(time.perf_counter() - start)
    return times


def _empty_call(run: _Run) -> float:
    """Seconds of a call with the same arrays that runs no kernel."""
    idle = replace(run.compiled, steps=()).bind(run.kept)
    times: list[float] = []
    for _ in range(20):
        start = time.perf_counter()
        for i in range(50):
            idle(run.inputs, run.outputs, 0, i)
        times.append((time.perf_counter() - start) / 50)
    return float(np.median(times))


# ---------------------------------------------------------------- reporting


def _reported(m: _Measured, ceilings: Mapping[int, Ceilings]) -> RoutineReport:
    run = m.run
    compiled = run.compiled
    origins = {a.target.buffer: a.origin for a in reversed(compiled.program.assigns)}
    names = _Names(compiled)
    medians = [float(t) for t in np.median(m.steps, axis=0)]
    quick = [float(t) for t in np.percentile(m.steps, _QUICK, axis=0)]
    codes: dict[int, int] = {}
    kernels: list[KernelReport] = []
    for i, kernel in enumerate(compiled.plan.kernels):
        share, bound = judged(m.works[i], medians[i], ceilings[m.threads[i]])
        writes = _written(kernel)
        place = next((o for b in [*writes, *_inside(kernel)] if (o := origins.get(b)) is not None), None)
        code = codes.setdefault(compiled.steps[i].function, i)
        kernels.append(
            KernelReport(
                tuple(dict.fromkeys(names.of(b) for b in writes)), place, medians[i], quick[i], m.works[i], m.threads[i],
                share, bound, kernel.note, code,
            )
        )  # fmt: skip
    arguments = tuple((v.name, a.shape) for v, a in zip(run.routine.built.graph.inputs, run.inputs, strict=True))
    return RoutineReport(
        run.name, arguments, tuple(kernels), float(np.median(m.whole)), float(np.percentile(m.whole, _QUICK)),
        m.call_seconds, compiled.plan.arena, len(m.whole),
    )  # fmt: skip


def judged(work: Work, seconds: float, ceilings: Ceilings) -> tuple[float, Bound]:
    """The greater share of its two ceilings that a kernel reaches, and what bounds it."""
    arithmetic = ceilings.arithmetic_seconds(work.flops, work.flops64)
    memory = ceilings.memory_seconds(work.read, work.written)
    share = max(arithmetic, memory) / max(seconds, 1e-9)
    if share < NEAR:
        return share, "latency/overhead"
    return share, "arithmetic" if arithmetic >= memory else "memory"


class _Names:
    """Names of buffers as the user wrote them: a new content of a parameter is that parameter."""

    def __init__(self, compiled: CompiledProgram) -> None:
        homes = compiled.plan.homes
        self._paths = {homes[b]: b.key or b.name for b in compiled.persistent}
        self._homes = homes

    def of(self, b: Buffer) -> str:
        home = self._homes.get(b)
        if isinstance(home, Outside) and home.kind == "persistent":
            return self._paths[home]
        return b.name or "a value"


def _written(kernel: Kernel) -> list[Buffer]:
    """The buffers outside of the kernel that it writes, in order."""
    found = (kernel.base(c.target.buffer) for c in computes(kernel.body) if c.target.buffer not in kernel.spaces)
    return list(dict.fromkeys(found))


def _inside(kernel: Kernel) -> list[Buffer]:
    return list(dict.fromkeys(c.target.buffer for c in computes(kernel.body)))
