"""Schedules as data: the steps of `steps`, applied to kernels by pure functions that check that the meaning stays."""

from __future__ import annotations

from collections.abc import Sequence

from ocannl_lang.loops.ir import Access, Affine, Buffer, Var, accesses
from ocannl_lang.schedule.blocks import block
from ocannl_lang.schedule.ir import Kernel, Kind, Loop, Space, Stmt
from ocannl_lang.schedule.lanes import lanes
from ocannl_lang.schedule.legality import (
    IllegalTransform,
    check_independent,
    check_vector,
    distinct,
    only_sums,
    set_first,
    shares_memory,
)
from ocannl_lang.schedule.staging import stage
from ocannl_lang.schedule.steps import (
    Block,
    Lanes,
    Mark,
    Order,
    Packed,
    Sink,
    Split,
    Stage,
    Transform,
    describe,
)
from ocannl_lang.schedule.trees import (
    computes,
    each_loop,
    loop_vars,
    loops_named,
    reads,
    renewed,
    replaced,
    substituted,
    written,
)

__all__ = ["Block", "Lanes", "Mark", "Order", "Packed", "Sink", "Split", "Stage", "Transform", "apply", "describe"]


def apply(kernel: Kernel, steps: Sequence[Transform]) -> Kernel:
    """The kernel after all steps, which it keeps along with what it was before. Raises `IllegalTransform`."""
    if not steps:
        return kernel
    spaces = dict(kernel.spaces)
    body = kernel.body
    before = kernel.before or kernel
    for n, step in enumerate(steps):
        if isinstance(step, Stage):
            _check_copied(step, before, (*kernel.steps, *steps[:n]))
        elif isinstance(step, Split):
            _check_packed(step, before)
        body = _applied(body, step, spaces)
    used = {a.buffer for c in computes(body) for a in (c.target, *accesses(c.value))}
    note = "; ".join(filter(None, [kernel.note, *(describe(s) for s in steps)]))
    return Kernel(
        body,
        {b: s for b, s in spaces.items() if b in used},
        kernel.views,
        note,
        before=before,
        steps=(*kernel.steps, *steps),
    )


def _applied(body: tuple[Stmt, ...], step: Transform, spaces: dict[Buffer, Space]) -> tuple[Stmt, ...]:
    there = {v.name for v in loop_vars(body)}
    for name in _named(step):
        if name not in there:
            raise IllegalTransform(f"there is no loop {name}")
    match step:
        case Split(loop=name, factor=factor, packed=packed):
            return each_loop(body, name, lambda loop: split(loop, factor, packed))
        case Order(loops=names):
            return _ordered(body, names, spaces)
        case Block(loop=name, size=size, within=within):
            return _in_stretches(body, name, size, within, spaces)
        case Stage(buffer=buffer, loop=name, vector=vector, lanes=width):
            made: list[Buffer] = []
            return each_loop(body, name, lambda loop: stage(loop, buffer, vector, width, made, spaces))
        case Sink(loop=name, past=past):
            return each_loop(body, name, lambda loop: sink(loop, spaces, past))
        case Mark(loop=name, kind=kind):
            return each_loop(body, name, lambda loop: (_marked(loop, kind, spaces),))
        case Lanes(loop=name):
            return lanes(body, name, spaces)


def _check_copied(step: Stage, before: Kernel, earlier: Sequence[Transform]) -> None:
    """What is copied is in the nest before all steps, or was packed: other memory has no name outside of this kernel."""
    known = {a.buffer for c in computes(before.body) for a in accesses(c.value)}
    known.update(p.copy for s in earlier if isinstance(s, Split) for p in s.packed)
    if step.buffer not in known:
        raise IllegalTransform(f"{step.buffer.name} is not of the nest")


def _check_packed(step: Split, before: Kernel) -> None:
    """What another kernel packs before this one must be there by then."""
    made = {before.base(b) for b in written(before.body)}
    for p in step.packed:
        if before.base(p.operand.buffer) in made:
            raise IllegalTransform(f"{p.operand.buffer.name} is made by the kernel itself")


def _named(step: Transform) -> tuple[str, ...]:
    """The loops that a step is about."""
    match step:
        case Order(loops=names):
            return names
        case Block(loop=name, within=within):
            return name, within
        case Sink(loop=name, past=past):
            return name, *past
        case Split(loop=name) | Stage(loop=name) | Mark(loop=name) | Lanes(loop=name):
            return (name,)


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
    elif kind == "vector":
        check_vector(loop, spaces)
    return Loop(loop.var, kind, loop.body)


def _in_stretches(
    body: tuple[Stmt, ...], name: str, size: int, within: str, spaces: dict[Buffer, Space]
) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for n, s in enumerate(body):
        if not isinstance(s, Loop):
            result.append(s)
        elif s.var.name != within:
            result.append(Loop(s.var, s.kind, _in_stretches(s.body, name, size, within, spaces)))
        else:
            result.append(Loop(s.var, s.kind, block(s.body, name, size, s.var, spaces)))
            rest = body[n + 1 :]
            if any(v.name == name and v.size > size for v in loop_vars(rest)):
                return (*result, *block(rest, name, size, None, spaces))
    return tuple(result)


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
        if any(shares_memory(inside, x.var, spaces) for x in chain):
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


def sink(loop: Loop, spaces: dict[Buffer, Space], past: Sequence[str] = ()) -> tuple[Stmt, ...]:
    """The loop over each statement of its body, as far in as serial loops go, or past loops of these names only."""
    check_independent(loop, spaces)
    if shares_memory(loop.body, loop.var, spaces):
        raise IllegalTransform(f"{loop.var.name} has memory that is one turn's own")
    inner = set(loop_vars(loop.body))
    # Those that turns use one after the other; others have a place for each turn already.
    reused = {c.target.buffer for c in computes(loop.body) if not distinct(c.target, loop.var, inner)}
    own = sorted((b for b in reused if spaces.get(b) == "register"), key=lambda b: b.id)
    if past:
        result = _distributed(loop, loop.body, past)
        for x in loops_named(result, loop.var.name):
            if any(_touched(x, b) and not set_first(x.body, b, spaces) for b in own):
                raise IllegalTransform(
                    f"{loop.var.name} would be parted between what sets a register and what reads it"
                )
        return result
    wider: dict[Buffer, Buffer] = {}
    for b in own:
        wider[b] = Buffer(b.name, (loop.var.size, *b.shape), b.prec)
        spaces[wider[b]] = "register"
    here = Affine.of(loop.var)

    def widened(a: Access) -> Access:
        new = wider.get(a.buffer)
        return a if new is None else Access(new, (here, *a.index), a.guarded, a.fill)

    return _distributed(loop, replaced(loop.body, widened), None)


def _touched(loop: Loop, b: Buffer) -> bool:
    return b in written(loop.body) or reads(loop.body, b)


def _distributed(loop: Loop, body: tuple[Stmt, ...], past: Sequence[str] | None) -> tuple[Stmt, ...]:
    """`past`: only past loops of these names, None: past all."""
    result: list[Stmt] = []
    run: list[Stmt] = []

    def close() -> None:
        # One loop for statements that follow each other: what one makes and the next uses stays in a register.
        if run:
            own = Var(loop.var.name, loop.var.size)
            result.append(Loop(own, loop.kind, substituted(tuple(run), {loop.var: Affine.of(own)})))
            run.clear()

    for s in body:
        if isinstance(s, Loop) and s.kind in ("serial", "parallel") and (past is None or s.var.name in past):
            close()
            result.append(Loop(s.var, s.kind, _distributed(loop, s.body, past)))
        else:
            run.append(s)
    close()
    return tuple(result)
