"""Where every buffer of a routine lives.

Temporaries share one arena: a place is reused once nothing reads what was there. The final content of a persistent buffer is written
straight into its place where no later kernel reads what it held before; else it is copied there at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Union

from ocannl_lang.codegen.llvm.types import SIZES
from ocannl_lang.loops.ir import Access, Affine, Assign, Buffer, Program, Var, accesses
from ocannl_lang.schedule.ir import Compute, Kernel, Loop, Stmt
from ocannl_lang.schedule.legality import disjoint
from ocannl_lang.schedule.trees import computes

ALIGN = 64


@dataclass(frozen=True, slots=True)
class Outside:
    """An array of the caller: a persistent buffer, argument number `number`, or result number `number`."""

    kind: Literal["persistent", "input", "output", "const"]
    number: int


@dataclass(frozen=True, slots=True)
class Arena:
    """`offset` bytes into the arena."""

    offset: int


Home = Union[Outside, Arena]


@dataclass(frozen=True, slots=True)
class Plan:
    """The kernels to run, homes of their buffers, and the size of the arena in bytes.

    `persistent` are the persistent buffers by number.
    """

    kernels: tuple[Kernel, ...]
    homes: dict[Buffer, Home]
    arena: int
    persistent: tuple[Buffer, ...]


def prepare(program: Program) -> Program:
    """The same program with a temporary of its own for every result and every stored content."""
    first: list[Assign] = []
    last: list[Assign] = []
    taken: set[Buffer] = set()
    stores: list[tuple[Buffer, Buffer]] = []
    outputs: list[Buffer] = []

    def own(b: Buffer) -> Buffer:
        if b.role == "temp" and b not in taken:
            taken.add(b)
            return b
        fresh = Buffer(b.name, b.shape, b.prec)
        (last if b.role == "temp" else first).append(copy(fresh, b))
        taken.add(fresh)
        return fresh

    for persistent, final in program.stores:
        if persistent is not final:
            stores.append((persistent, own(final)))
    for b in program.outputs:
        outputs.append(own(b))
    return Program(program.name, program.inputs, tuple(outputs), [*first, *program.assigns, *last], tuple(stores))


def copy(target: Buffer, source: Buffer) -> Assign:
    """target = source."""
    loops = tuple(Var(f"i{k}", s) for k, s in enumerate(target.shape))
    index = tuple(Affine.of(v) for v in loops)
    return Assign(Access(target, index), "set", True, loops, Access(source, index))


def plan(
    program: Program, kernels: Sequence[Kernel], copies: Sequence[tuple[Buffer, Buffer, Sequence[Kernel]]]
) -> Plan:
    """Homes for the buffers of a prepared program. `copies` are kernels that carry out stores that cannot be in place."""
    homes: dict[Buffer, Home] = {b: Outside("input", i) for i, b in enumerate(program.inputs)}
    persistent: dict[Buffer, None] = {}
    constants = 0
    for b in program.buffers():
        if b.role in ("param", "state", "data"):
            persistent.setdefault(b)
        elif b.role == "const":
            homes[b] = Outside("const", constants)
            constants += 1
    homes.update({b: Outside("persistent", i) for i, b in enumerate(persistent)})
    homes.update({b: Outside("output", i) for i, b in enumerate(program.outputs)})
    reading: dict[Buffer, list[int]] = {}
    writing: dict[Buffer, list[int]] = {}
    for i, k in enumerate(kernels):
        u = _uses(k)
        for b in u.reads:
            reading.setdefault(b, []).append(i)
        for b in u.writes:
            writing.setdefault(b, []).append(i)
    final: list[Kernel] = []
    dropped: set[int] = set()
    for p, b, copying in copies:
        idle = {i for i in writing.get(b, ()) if is_copy(kernels[i], p, b)}
        changing = [i for i in writing.get(b, ()) if i not in idle]
        if _in_place(p, b, kernels, [i for i in reading.get(p, ()) if i not in idle], changing):
            homes[b] = homes[p]
            dropped |= idle
        else:
            final.extend(copying)
    kept = [k for i, k in enumerate(kernels) if i not in dropped]
    kept.extend(final)
    size = _arena(kept, homes)
    return Plan(tuple(kept), homes, size, tuple(persistent))


@dataclass(frozen=True, slots=True)
class _Uses:
    reads: dict[Buffer, None]
    writes: dict[Buffer, None]


def _uses(kernel: Kernel) -> _Uses:
    reads: dict[Buffer, None] = {}
    writes: dict[Buffer, None] = {}
    for c in computes(kernel.body):
        reads.update(dict.fromkeys(kernel.base(a.buffer) for a in accesses(c.value)))
        for index in c.target.index:
            if not isinstance(index, Affine):
                reads.update(dict.fromkeys(kernel.base(a.buffer) for a in accesses(index.value)))
        writes[kernel.base(c.target.buffer)] = None
    return _Uses(reads, writes)


def is_copy(kernel: Kernel, source: Buffer, target: Buffer) -> bool:
    """Whether a kernel does nothing but copy one buffer to the same positions of another."""
    return all(
        c.accum == "set"
        and kernel.base(c.target.buffer) is target
        and isinstance(c.value, Access)
        and kernel.base(c.value.buffer) is source
        and c.value.index == c.target.index
        and not c.target.guarded
        for c in computes(kernel.body)
    )


def _in_place(p: Buffer, b: Buffer, kernels: Sequence[Kernel], reading: list[int], changing: list[int]) -> bool:
    """Whether `b` may be written where `p` is: nothing reads `p` once `b` has been changed."""
    if not changing or not reading or reading[-1] < changing[0]:
        return True
    if reading[-1] > changing[0]:
        return False
    kernel = kernels[changing[0]]
    return _same_positions(kernel, kernel.body, p, b) and _written_once(kernel, b)


def _written_once(kernel: Kernel, b: Buffer) -> bool:
    """Whether statements that are not in one turn together write different positions: `b` is not where sums wait."""
    groups = list(_writes(kernel, kernel.body, b))
    return all(
        disjoint(x, y) for n, these in enumerate(groups) for those in groups[n + 1 :] for x in these for y in those
    )


def _writes(kernel: Kernel, body: tuple[Stmt, ...], b: Buffer) -> Iterator[list[Access]]:
    """Where `b` is written, by the bodies of loops."""
    here = [s.target for s in body if isinstance(s, Compute) and kernel.base(s.target.buffer) is b]
    if here:
        yield here
    for s in body:
        if isinstance(s, Loop):
            yield from _writes(kernel, s.body, b)


def _same_positions(kernel: Kernel, body: tuple[Stmt, ...], p: Buffer, b: Buffer) -> bool:
    """Whether each position of `p` is read only by what then writes that position of `b`."""
    here = [s for s in body if isinstance(s, Compute)]
    writes = [i for i, c in enumerate(here) if kernel.base(c.target.buffer) is b]
    for i, c in enumerate(here):
        for a in accesses(c.value):
            if kernel.base(a.buffer) is p:
                if a.guarded or not any(i <= w and here[w].target.index == a.index for w in writes):
                    return False
                if not all(here[w].target.index == a.index for w in writes):
                    return False
    return all(_same_positions(kernel, s.body, p, b) for s in body if isinstance(s, Loop))


def _arena(kernels: Sequence[Kernel], homes: dict[Buffer, Home]) -> int:
    """Gives every other buffer a place; the size of the arena."""
    last: dict[Buffer, int] = {}
    first: dict[Buffer, int] = {}
    for i, kernel in enumerate(kernels):
        u = _uses(kernel)
        for b in (*u.reads, *u.writes):
            if b not in homes and b not in kernel.spaces:
                first.setdefault(b, i)
                last[b] = i
    starts: dict[int, list[Buffer]] = {}
    ends: dict[int, list[Buffer]] = {}
    for b in first:
        starts.setdefault(first[b], []).append(b)
        ends.setdefault(last[b], []).append(b)
    free: list[tuple[int, int]] = []
    top = 0
    for i in range(len(kernels)):
        for b in sorted(starts.get(i, ()), key=lambda b: -_bytes(b)):
            offset, free, top = _allocate(free, top, _bytes(b))
            homes[b] = Arena(offset)
        for b in ends.get(i, ()):
            home = homes[b]
            assert isinstance(home, Arena)
            free = _released(free, home.offset, _bytes(b))
    return top


def _bytes(b: Buffer) -> int:
    return max(1, -(-b.size * SIZES[b.prec] // ALIGN)) * ALIGN


def _allocate(free: list[tuple[int, int]], top: int, size: int) -> tuple[int, list[tuple[int, int]], int]:
    """The smallest free stretch that fits, else the end: offset, what stays free, the new top. Stretches are (offset, size)."""
    fitting = [(s, o) for o, s in free if s >= size]
    if fitting:
        s, o = min(fitting)
        left = [(a, b) for a, b in free if a != o]
        if s > size:
            left.append((o + size, s - size))
        return o, left, top
    if free:
        o, s = max(free)
        if o + s == top:
            return o, [f for f in free if f[0] != o], o + size
    return top, free, top + size


def _released(free: list[tuple[int, int]], offset: int, size: int) -> list[tuple[int, int]]:
    """The free stretches with one more, joined with its neighbours."""
    start, end = offset, offset + size
    kept: list[tuple[int, int]] = []
    for o, s in free:
        if o + s == start:
            start = o
        elif o == end:
            end = o + s
        else:
            kept.append((o, s))
    return [*kept, (start, end - start)]
