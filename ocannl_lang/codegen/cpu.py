"""Programs to machine code on this CPU.

`compile_program` optimises, schedules, compiles what the cache does not have, and links; a `CompiledProgram` is bound to the arrays
of a context and called.
"""

from __future__ import annotations

import _thread
import hashlib
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocannl_lang.codegen.linked import is_linked, linked, process_executor
from ocannl_lang.codegen.llvm.compile import object_code, object_name
from ocannl_lang.codegen.llvm.kernel import Function, function_of
from ocannl_lang.codegen.llvm.pool import executor as executor_text
from ocannl_lang.codegen.llvm.target import Target, host_target, shared_by
from ocannl_lang.codegen.llvm.types import Unsupported, scalar_type
from ocannl_lang.graph.dtypes import dtype
from ocannl_lang.loops.ir import Buffer, Program
from ocannl_lang.loops.optimise import optimise
from ocannl_lang.resources import cache_dir
from ocannl_lang.schedule.groups import schedule
from ocannl_lang.schedule.ir import Kernel
from ocannl_lang.schedule.kernels import group_kernels
from ocannl_lang.schedule.memory import Arena, Outside, Plan, copy, plan, prepare
from ocannl_lang.schedule.text import dump
from ocn_runtime.cpu import Executor, Routine, Step, default_threads

Array = NDArray[Any]

__all__ = ["CompiledProgram", "Unsupported", "compile_program"]


@dataclass(frozen=True, slots=True, eq=False)
class CompiledProgram:
    """A program as machine code. `program` is as given; `persistent` are its parameters, states and data.

    `scratch` is how many bytes of memory each thread needs for itself. `symbols` are the names of the steps' functions in this
    process, `objects` those of their objects in the cache.
    """

    program: Program
    persistent: tuple[Buffer, ...]
    threads: int
    plan: Plan
    steps: tuple[Step, ...]
    table: dict[Buffer, int]
    constants: tuple[tuple[int, Array], ...]
    places: tuple[tuple[int, int], ...]
    table_size: int
    scratch: int
    symbols: tuple[str, ...]
    objects: Mapping[str, str]
    keep: tuple[object, ...] = field(repr=False)

    def bind(self, persistent: Mapping[Buffer, Array]) -> Routine:
        """The routine on the arrays of a context: `routine(inputs, outputs, seed, call_count)`. Parameters and states change in place."""
        fixed = list(self.constants)
        for b in self.persistent:
            fixed.append((self.table[b], _checked(b, persistent[b])))
        return Routine(
            executor(),
            self.steps,
            self.table_size,
            [1 + i for i in range(len(self.program.inputs))],
            [1 + len(self.program.inputs) + i for i in range(len(self.program.outputs))],
            fixed,
            self.places,
            self.plan.arena,
            self.scratch,
            self.threads,
            self.keep,
        )

    def run(
        self,
        bindings: Mapping[Buffer, Array],
        outputs: Sequence[Array] | None = None,
        *,
        seed: int = 0,
        call_count: int = 0,
    ) -> list[Array]:
        """One call, with arrays for the inputs and the persistent buffers; gives the results, in `outputs` if given."""
        if outputs is None:
            outputs = [np.empty(b.shape, dtype(b.prec)) for b in self.program.outputs]
        inputs = [_checked(b, bindings[b]) for b in self.program.inputs]
        results = [_checked(b, a) for b, a in zip(self.program.outputs, outputs, strict=True)]
        self.bind(bindings)(inputs, results, seed, call_count)
        return results


def compile_program(program: Program, *, threads: int = 1, target: Target | None = None) -> CompiledProgram:
    """Machine code for a program. Raises `Unsupported` for what this backend cannot do.

    `target`: what to compile for, if not for all that this machine can do; it must be able to run here.
    """
    target = shared_by(target or host_target(), threads)
    with _Code(target) as code:
        return _assemble(program, plan_program(program, target, code.add), threads, code)


def assemble(program: Program, planned: Plan, target: Target, threads: int = 1) -> CompiledProgram:
    """Machine code for a program whose kernels are planned."""
    with _Code(target) as code:
        return _assemble(program, planned, threads, code)


def plan_program(program: Program, target: Target, made: Callable[[Kernel], object] | None = None) -> Plan:
    """The kernels of a program and their memory. `made` is told each kernel at once; a few of them may not be needed in the end."""
    for b in program.buffers():
        scalar_type(b.prec)
    prepared = optimise(prepare(program))
    kernels: list[Kernel] = []
    for kernel in schedule(prepared, target):
        kernels.append(kernel)
        if made is not None:
            made(kernel)
    copies = [(p, b, group_kernels([copy(p, b)], [p], target)) for p, b in prepared.stores]
    return plan(prepared, kernels, copies)


def schedule_text(program: Program, target: Target | None = None) -> str:
    """The kernels in the order in which they run, and where their buffers lie; on this machine if not on another `target`."""
    found = plan_program(program, target or shared_by(host_target(), default_threads()))
    origins = {a.target.buffer: a.origin for a in reversed(program.assigns)}
    places = {b: f"{o.source.path}:{o.line}" for b, o in origins.items() if o is not None}
    lines = [dump(found.kernels, places), f"arena: {found.arena} bytes"]
    for buffer, home in found.homes.items():
        lines.append(f"  {buffer.name} {buffer.prec}{list(buffer.shape)}: {home_text(home)}")
    return "\n".join(lines)


def home_text(home: Outside | Arena) -> str:
    return f"arena at {home.offset}" if isinstance(home, Arena) else home.kind


def llvm_text(program: Program) -> str:
    """The LLVM IR of each kernel."""
    target = host_target()
    return "\n\n".join(function_of(k, target).text for k in plan_program(program, target).kernels)


# How long Python runs one thread while another waits, in seconds, where LLVM's small calls and planning take turns.
_TURN = 0.0002
_turns: list[float] = []
# A handler of a signal may come in the middle, and compile too.
_turns_lock = threading.RLock()


def _shorten_turns() -> None:
    with _turns_lock:
        _turns.append(sys.getswitchinterval())
        sys.setswitchinterval(min(_turns[0], _TURN))


def _restore_turns() -> None:
    with _turns_lock:
        last = _turns.pop()
        if not _turns:
            sys.setswitchinterval(last)


class _Code:
    """The code of kernels, made while others are still being planned: LLVM works without Python's lock.

    To be used as a context, in which kernels are added and `link` gives where their code is.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.texts: dict[str, str] = {}
        self._objects: dict[str, bytes | BaseException] = {}
        self._cache = cache_dir()
        # Queues and threads without locks of Python's own, which a handler of a signal that compiles, too, would wait for.
        self._wanted: SimpleQueue[str | None] = SimpleQueue()
        self._ready: SimpleQueue[tuple[str, bytes | BaseException]] = SimpleQueue()
        self._asked: set[str] = set()
        self._given_up = False

    def __enter__(self) -> _Code:
        _shorten_turns()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        _restore_turns()
        self._given_up = kind is not None
        self._wanted.put(None)

    def _work(self) -> None:
        while (symbol := self._wanted.get()) is not None and not self._given_up:
            try:
                found: bytes | BaseException = object_code(self.texts[symbol], self.target, self._cache)
            except BaseException as error:
                found = error
            self._ready.put((symbol, found))

    def _object(self, symbol: str) -> bytes:
        """The object of a function, once it is there."""
        while symbol not in self._objects:
            made, found = self._ready.get()
            self._objects[made] = found
        found = self._objects[symbol]
        if isinstance(found, BaseException):
            raise found
        return found

    def add(self, kernel: Kernel) -> tuple[Function, str]:
        """A kernel's function, and its name in this process: equal ones have the same."""
        f = function_of(kernel, self.target)
        symbol = "k" + hashlib.sha256(self.target.key.encode() + f.text.encode()).hexdigest()[:24]
        if symbol not in self.texts:
            self.texts[symbol] = f.text.replace("@kernel(", f"@{symbol}(")
            if not is_linked(symbol):
                if not self._asked:
                    _thread.start_new_thread(self._work, ())
                self._asked.add(symbol)
                self._wanted.put(symbol)
        return f, symbol

    def link(self, symbols: Sequence[str]) -> tuple[list[int], tuple[object, ...]]:
        """The addresses of functions, and what keeps them alive."""
        return linked(symbols, self._object)


def _assemble(program: Program, planned: Plan, threads: int, code: _Code) -> CompiledProgram:
    added = [code.add(kernel) for kernel in planned.kernels]
    functions, symbols = [f for f, _ in added], tuple(symbol for _, symbol in added)
    addresses, keep = code.link(symbols)
    table, places, constants, size = _table(program, planned, functions)
    steps = tuple(Step(addresses[i], tuple(table[b] for b in f.buffers), f.turns) for i, f in enumerate(functions))
    return CompiledProgram(
        program,
        planned.persistent,
        threads,
        planned,
        steps,
        table,
        tuple(constants),
        tuple(places),
        size,
        max((f.scratch for f in functions), default=0),
        symbols,
        {symbol: object_name(code.texts[symbol], code.target) for symbol in symbols},
        keep,
    )


def _table(
    program: Program, planned: Plan, functions: Sequence[Function]
) -> tuple[dict[Buffer, int], list[tuple[int, int]], list[tuple[int, Array]], int]:
    """Entries of buffers; entry 0 is the call's words, then the inputs, the results, and everything else."""
    inputs, outputs = len(program.inputs), len(program.outputs)
    table: dict[Buffer, int] = {}
    entries: dict[Outside | Arena, int] = {}
    places: list[tuple[int, int]] = []
    constants: list[tuple[int, Array]] = []
    size = 1 + inputs + outputs
    used = [b for f in functions for b in f.buffers]
    for b in (*planned.persistent, *used):
        home = planned.homes[b]
        match home:
            case Outside(kind="input", number=n):
                table[b] = 1 + n
                continue
            case Outside(kind="output", number=n):
                table[b] = 1 + inputs + n
                continue
            case _:
                pass
        if home not in entries:
            entries[home] = size
            size += 1
            if isinstance(home, Arena):
                places.append((entries[home], home.offset))
            elif home.kind == "const":
                assert b.value is not None
                constants.append((entries[home], np.ascontiguousarray(b.value, dtype(b.prec)).reshape(b.shape)))
        table[b] = entries[home]
    return table, places, constants, size


def executor_object() -> str:
    """The name of the executor's object in the cache."""
    target = host_target()
    return object_name(executor_text(target), target)


def executor() -> Executor:
    """The process's executor."""
    target = host_target()
    return process_executor(lambda: object_code(executor_text(target), target, cache_dir()))


def _checked(b: Buffer, array: Array) -> Array:
    if array.dtype != dtype(b.prec) or array.shape != b.shape or not array.flags.c_contiguous:
        raise ValueError(f"{b.name}: a contiguous array of {b.prec} and shape {b.shape} is needed")
    return array
