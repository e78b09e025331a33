"""Schedules as data: named transforms of kernels, applied by pure functions.

A loop is named by its variable; the parts that a transform makes of a loop `i` are called `i.o` and `i.i`. What is left over where
a size does not divide stands behind as another loop of the inner part's name, so that later transforms treat both alike.

    Split("i", 6)       for i in 100  →  for i.o in 16: for i.i in 6;  for i.i in 4
    Block("k", 256, "j.o")  within each turn of j.o: the sums over the first 256 turns of k, stored; then over the next, …
    Stage(b, "i", "j.i", 8)  what turns of i read of b is copied before the loop, with turns of j.i side by side
    Order(("j", "i"))   i: j: …  →  j: i: …  for loops that stand directly inside one another
    Sink("i.i")         moves a loop inwards, over all statements of its body, down to the innermost ones; registers that
                        a turn has for itself become arrays of registers
    Mark("i.i", kind)   says how a loop runs
    Lanes("k.i")        a sum over a vector loop is kept lane by lane and put together after the loops
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union

from ocannl_lang.loops.ir import Access, Affine, Buffer, Var, accesses
from ocannl_lang.schedule.blocks import block
from ocannl_lang.schedule.ir import Kernel, Kind, Loop, Space, Stmt
from ocannl_lang.schedule.lanes import lanes
from ocannl_lang.schedule.legality import IllegalTransform, check_independent, distinct, only_sums
from ocannl_lang.schedule.staging import stage
from ocannl_lang.schedule.trees import computes, each_loop, loop_vars, renewed, replaced, substituted, written


@dataclass(frozen=True, slots=True)
class Packed:
    """An operand of a nest that is read from `copy` instead: [`outer` loops, tile, loops of the sum `sums`, place in the tile]."""

    operand: Access
    copy: Buffer
    outer: tuple[Var, ...]
    sums: tuple[Var, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """Splits a loop into turns of `factor`; operands may be read from copies that lie in this order."""

    loop: str
    factor: int
    packed: tuple[Packed, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Takes a loop of a sum in stretches, one after the other for all that stands inside `within`. Sums wait in memory meanwhile."""

    loop: str
    size: int
    within: str


@dataclass(frozen=True, slots=True)
class Stage:
    """Copies what a loop reads of a buffer into memory of the thread before the loop. `lanes` turn over at a time where the copy has to."""

    buffer: Buffer
    loop: str
    vector: str
    lanes: int


@dataclass(frozen=True, slots=True)
class Sink:
    """Moves a loop inwards."""

    loop: str


@dataclass(frozen=True, slots=True)
class Order:
    """Puts loops that stand directly inside one another into this order."""

    loops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """Says how a loop runs."""

    loop: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Lanes:
    """Keeps sums over a vector loop lane by lane."""

    loop: str


Transform = Union[Split, Order, Block, Stage, Sink, Mark, Lanes]


def apply(kernel: Kernel, steps: Sequence[Transform]) -> Kernel:
    """The kernel after all steps. Raises `IllegalTransform`."""
    spaces = dict(kernel.spaces)
    body = kernel.body
    for step in steps:
        body = _applied(body, step, spaces)
    used = {a.buffer for c in computes(body) for a in (c.target, *accesses(c.value))}
    note = "; ".join(filter(None, [kernel.note, *(describe(s) for s in steps)]))
    return Kernel(body, {b: s for b, s in spaces.items() if b in used}, kernel.views, note)


def describe(step: Transform) -> str:
    """A step as it is printed."""
    match step:
        case Split(loop=loop, factor=factor, packed=packed):
            return f"split {loop} {factor}" + "".join(f" packing {p.operand.buffer.name}" for p in packed)
        case Order(loops=loops):
            return f"order {' '.join(loops)}"
        case Block(loop=loop, size=size, within=within):
            return f"block {loop} {size} in {within}"
        case Stage(buffer=buffer, loop=loop, vector=vector):
            return f"stage {buffer.name} for {loop} along {vector}"
        case Sink(loop=loop):
            return f"sink {loop}"
        case Mark(loop=loop, kind=kind):
            return f"{kind} {loop}"
        case Lanes(loop=loop):
            return f"lanes {loop}"


def _applied(body: tuple[Stmt, ...], step: Transform, spaces: dict[Buffer, Space]) -> tuple[Stmt, ...]:
    match step:
        case Split(loop=name, factor=factor, packed=packed):
            return each_loop(body, name, lambda loop: split(loop, factor, packed))
        case Order(loops=names):
            return _ordered(body, names, spaces)
        case Block(loop=name, size=size, within=within):
            return each_loop(
                body, within, lambda loop: (Loop(loop.var, loop.kind, block(loop.body, name, size, loop.var, spaces)),)
            )
        case Stage(buffer=buffer, loop=name, vector=vector, lanes=width):
            return each_loop(body, name, lambda loop: stage(loop, buffer, vector, width, spaces))
        case Sink(loop=name):
            return each_loop(body, name, lambda loop: sink(loop, spaces))
        case Mark(loop=name, kind=kind):
            return each_loop(body, name, lambda loop: (_marked(loop, kind, spaces),))
        case Lanes(loop=name):
            return lanes(body, name, spaces)


# ---------------------------------------------------------------- splitting


def split(loop: Loop, factor: int, packed: Sequence[Packed] = ()) -> tuple[Stmt, ...]:
    """Turns of `factor`, and the rest."""
    var = loop.var
    whole, rest = divmod(var.size, factor)
    outer, inner = f"{var.name}.o", f"{var.name}.i"
    result: list[Stmt] = []
    if whole:
        o, i = Var(outer, whole), Var(inner, factor)
        body = _from_copies(loop.body, packed, Affine.of(o), Affine.of(i))
        inside = renewed(substituted(body, {var: Affine(((o, factor), (i, 1)))}))
        result.append(Loop(o, loop.kind, (Loop(i, loop.kind, inside),)))
    if rest:
        t = Var(inner, rest)
        body = _from_copies(loop.body, packed, Affine((), whole), Affine.of(t))
        inside = renewed(substituted(body, {var: Affine(((t, 1),), whole * factor)}))
        result.append(Loop(t, loop.kind, inside))
    return tuple(result)


def _from_copies(body: tuple[Stmt, ...], packed: Sequence[Packed], tile: Affine, place: Affine) -> tuple[Stmt, ...]:
    if not packed:
        return body

    def change(a: Access) -> Access:
        for p in packed:
            if a == p.operand:
                outer, sums = (tuple(Affine.of(v) for v in vs) for vs in (p.outer, p.sums))
                return Access(p.copy, (*outer, tile, *sums, place))
        return a

    return replaced(body, change)


def _marked(loop: Loop, kind: Kind, spaces: dict[Buffer, Space]) -> Loop:
    if kind == "parallel":
        check_independent(loop, spaces)
    return Loop(loop.var, kind, loop.body)


def _ordered(body: tuple[Stmt, ...], names: tuple[str, ...], spaces: dict[Buffer, Space]) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for s in body:
        if not isinstance(s, Loop):
            result.append(s)
            continue
        if s.var.name not in names:
            result.append(Loop(s.var, s.kind, _ordered(s.body, names, spaces)))
            continue
        chain: list[Loop] = [s]
        while len(chain) < len(names):
            inner = chain[-1].body
            if len(inner) != 1 or not isinstance(inner[0], Loop):
                raise IllegalTransform(f"{names} do not stand directly inside one another")
            chain.append(inner[0])
        by_name = {x.var.name: x for x in chain}
        inside = chain[-1].body
        if any(_shares_memory(inside, x.var, spaces) for x in chain):
            raise IllegalTransform(f"{names} share memory that is one turn's own")
        for x in chain:
            if not only_sums(inside, spaces):
                check_independent(x, spaces)
        for name in reversed(names):
            if name not in by_name:
                raise IllegalTransform(f"{name} does not stand directly inside {s.var.name}")
            inside = (Loop(by_name[name].var, by_name[name].kind, inside),)
        result.extend(inside)
    return tuple(result)


# ---------------------------------------------------------------- sinking


def sink(loop: Loop, spaces: dict[Buffer, Space]) -> tuple[Stmt, ...]:
    """The loop over each statement of its body, as far in as serial loops go."""
    check_independent(loop, spaces)
    if _shares_memory(loop.body, loop.var, spaces):
        raise IllegalTransform(f"{loop.var.name} has memory that is one turn's own")
    own = [b for b in written(loop.body) if spaces.get(b) == "register"]
    wider: dict[Buffer, Buffer] = {}
    for b in own:
        wider[b] = Buffer(b.name, (loop.var.size, *b.shape), b.prec)
        spaces[wider[b]] = "register"
    here = Affine.of(loop.var)

    def widened(a: Access) -> Access:
        new = wider.get(a.buffer)
        return a if new is None else Access(new, (here, *a.index), a.guarded, a.fill)

    return _distributed(loop, replaced(loop.body, widened))


def _shares_memory(body: tuple[Stmt, ...], var: Var, spaces: dict[Buffer, Space]) -> bool:
    """Whether turns of a loop use the same local memory one after the other."""
    inner = set(loop_vars(body))
    return any(spaces.get(c.target.buffer) == "local" and not distinct(c.target, var, inner) for c in computes(body))


def _distributed(loop: Loop, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    run: list[Stmt] = []

    def close() -> None:
        # One loop for statements that follow each other: what one makes and the next uses stays in a register.
        if run:
            own = Var(loop.var.name, loop.var.size)
            result.append(Loop(own, loop.kind, substituted(tuple(run), {loop.var: Affine.of(own)})))
            run.clear()

    for s in body:
        if isinstance(s, Loop) and s.kind in ("serial", "parallel"):
            close()
            result.append(Loop(s.var, s.kind, _distributed(loop, s.body)))
        else:
            run.append(s)
    close()
    return tuple(result)
