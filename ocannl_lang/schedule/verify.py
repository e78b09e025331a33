"""What the code generator takes for granted of a kernel. The tests run it after every schedule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ocannl_lang.codegen.llvm.types import SIZES
from ocannl_lang.loops.ir import Access, Affine, Buffer, Dynamic, Var, accesses
from ocannl_lang.schedule.ir import Compute, Kernel, Loop, Stmt
from ocannl_lang.schedule.legality import IllegalTransform, apart, check_independent, check_vector

# How much memory of its own a thread may need.
_MOST_LOCAL = 16 * 1024 * 1024


def verify(kernel: Kernel) -> None:
    """Raises `IllegalTransform` for a kernel that cannot be carried out as it stands.

    The parallel loop stands first, and what follows does not need it. Vector loops do not contain each other, and their turns may
    run side by side. Registers have constant positions; those with lanes have them last. Loops inside one another have different names.
    """
    for n, s in enumerate(kernel.body):
        _check_loops(s, (), kernel, first=n == 0)
    first = kernel.body[0]
    if isinstance(first, Loop) and first.kind == "parallel":
        check_independent(first, kernel.spaces)
        if not apart(first, kernel.body[1:], kernel.spaces):
            raise IllegalTransform(f"what follows {first.var.name} needs what its turns make")
    _check_registers(kernel)
    local = sum(b.size * SIZES.get(b.prec, 4) for b, space in kernel.spaces.items() if space == "local")
    if local > _MOST_LOCAL:
        raise IllegalTransform("too much memory for each thread")


def _check_loops(s: Stmt, around: tuple[Loop, ...], kernel: Kernel, *, first: bool) -> None:
    if isinstance(s, Compute):
        return
    name = s.var.name
    if any(x.var.name == name for x in around):
        raise IllegalTransform(f"{name} stands inside {name}")
    if s.kind == "parallel" and not first:
        raise IllegalTransform(f"{name} is parallel and not the first loop")
    if s.kind == "vector":
        if any(x.kind == "vector" for x in around):
            raise IllegalTransform(f"{name} is a vector loop inside another")
        check_vector(s, kernel.spaces)
    for x in s.body:
        _check_loops(x, (*around, s), kernel, first=False)


# ---------------------------------------------------------------- registers


@dataclass(frozen=True, slots=True)
class _Use:
    """An access of a register, the vector loop around it, whether it writes, and whether it starts afresh."""

    access: Access
    vector: Loop | None
    writes: bool
    sets: bool


def _check_registers(kernel: Kernel) -> None:
    uses: dict[Buffer, list[_Use]] = {b: [] for b, space in kernel.spaces.items() if space == "register"}
    for use in _uses(kernel.body, {}, None, uses):
        uses[use.access.buffer].append(use)
    for b, own in uses.items():
        lanes = {_lane(u) for u in own}
        if len(lanes) > 1:
            raise IllegalTransform(f"{b.name} is used lane by lane and otherwise")
        if True in lanes:
            for u in own:
                last = u.access.index[-1]
                assert isinstance(last, Affine)
                if u.sets and last.terms[0][0].size != b.shape[-1]:
                    raise IllegalTransform(f"not all lanes of {b.name} are set")
            continue
        # A value of its own in each lane, which nothing outside of the loop can see, and which cannot be added to.
        within = {u.vector for u in own if u.sets and u.vector is not None}
        if within and any(u.vector not in within or (u.writes and not u.sets) for u in own):
            raise IllegalTransform(f"{b.name} differs from lane to lane")


def _lane(use: _Use) -> bool:
    """Whether the last axis of a register is the lane."""
    if use.vector is None or not use.access.index:
        return False
    return use.access.index[-1] == Affine.of(use.vector.var)


def _uses(
    body: Sequence[Stmt], kinds: dict[Var, str], vector: Loop | None, registers: dict[Buffer, list[_Use]]
) -> Iterator[_Use]:
    for s in body:
        if isinstance(s, Loop):
            kind = "unrolled" if s.kind == "serial" and s.var.size == 1 else s.kind
            yield from _uses(s.body, {**kinds, s.var: kind}, s if s.kind == "vector" else vector, registers)
            continue
        dynamic = [a for i in s.target.index if isinstance(i, Dynamic) for a in accesses(i.value)]
        for a in (*accesses(s.value), *dynamic, s.target):
            if a.buffer in registers:
                writes = a is s.target
                use = _Use(a, vector, writes, writes and s.accum == "set")
                _check_position(use, kinds)
                yield use


def _check_position(use: _Use, kinds: dict[Var, str]) -> None:
    name = use.access.buffer.name
    index = use.access.index[:-1] if _lane(use) else use.access.index
    for i in index:
        if isinstance(i, Dynamic) or any(kinds[v] != "unrolled" for v, _ in i.terms):
            raise IllegalTransform(f"a position of {name} is not constant")


def code_size(kernel: Kernel, lanes: int) -> int:
    """How many statements a kernel has once its unrolled and vector loops are written out."""
    return _size(kernel.body, lanes)


def _size(body: Sequence[Stmt], lanes: int) -> int:
    total = 0
    for s in body:
        if isinstance(s, Compute):
            total += 1
            continue
        times = s.var.size if s.kind == "unrolled" else -(-s.var.size // lanes) if s.kind == "vector" else 1
        total += times * _size(s.body, lanes)
    return total
