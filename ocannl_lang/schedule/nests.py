"""From assignments to one loop tree: loops are shared where the values that pass between assignments stay at their turn.

A tree has every sum in a register: the register is cleared before the outermost of its loops, and the target written after it.
A buffer that is written and read at the same positions in one turn is read from a register; if nothing else reads it, it is not
stored at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ocannl_lang.graph.primitives import neutral
from ocannl_lang.loops.facts import covers, target_vars
from ocannl_lang.loops.ir import (
    Access,
    Accum,
    Affine,
    Apply,
    Assign,
    Buffer,
    Const,
    Dynamic,
    Expr,
    Index,
    Var,
    accesses,
)
from ocannl_lang.loops.lower_expr import convert, map_accesses, substitute, substitute_index
from ocannl_lang.schedule.ir import Compute, Loop, Space, Stmt
from ocannl_lang.schedule.trees import computes, written


@dataclass(frozen=True, slots=True)
class Member:
    """An assignment on its way into a tree: loops that are still to be opened, those of the target first.

    `spatial`: how many of `loops` are the target's. `starts`: the target holds nothing yet. `sum`: the register of its sum, once its
    loops have begun.
    """

    target: Access
    accum: Accum
    value: Expr
    loops: tuple[Var, ...]
    spatial: int
    starts: bool
    sum: Access | None = None

    @property
    def candidates(self) -> tuple[Var, ...]:
        """The loops that may be opened next: any of the target's, then any of the sum's."""
        return self.loops[: self.spatial] if self.spatial else self.loops


def member(assign: Assign) -> Member:
    """An assignment without empty loops whose target holds, if it is fresh and not covered, the neutral element already."""
    own = target_vars(assign)
    rest = [v for v in assign.loops if v not in own]
    loops = (*own, *rest)
    starts = covers(assign) and (assign.fresh or assign.accum == "set")
    accum = assign.accum
    if accum == "set":
        # No two turns write one position: other loops do not matter.
        return Member(assign.target, accum, assign.value, loops, len(loops), starts)
    return Member(assign.target, accum, assign.value, loops, len(own), starts)


@dataclass(slots=True)
class Tree:
    """A loop tree and its private buffers."""

    body: tuple[Stmt, ...]
    spaces: dict[Buffer, Space]


def tree(members: Sequence[Member], needed: Iterable[Buffer]) -> Tree:
    """The loops of several assignments in order. `needed` are the buffers that something outside of them reads."""
    spaces: dict[Buffer, Space] = {}
    body = tuple(_build([_with_own_loops(m) for m in members], spaces))
    body = _forward(body, {}, spaces)
    return Tree(named(_without_unread(body, set(needed), spaces)), spaces)


def _with_own_loops(m: Member) -> Member:
    return rename(m, {v: Var(v.name, v.size) for v in m.loops})


# ---------------------------------------------------------------- sharing loops


def _build(members: list[Member], spaces: dict[Buffer, Space]) -> list[Stmt]:
    result: list[Stmt] = []
    i = 0
    while i < len(members):
        m = members[i]
        if not m.loops:
            result.append(_leaf(m))
            i += 1
            continue
        var, run = _run(members[i:])
        i += len(run)
        result.extend(_shared(var, run, spaces))
    return result


def _leaf(m: Member) -> Stmt:
    if m.sum is not None:
        return Compute(m.sum, m.accum, m.value)
    if not m.starts:
        return Compute(m.target, m.accum, m.value)
    return Compute(m.target, "set", _first_value(m))


def _first_value(m: Member) -> Expr:
    """What an accumulation holds after a single turn: of logic it is 0 or 1."""
    if m.accum not in ("and", "or"):
        return m.value
    prec = m.target.buffer.prec
    return convert(Apply("ne", (m.value, Const(0, prec)), "u8"), prec)


def _shared(var: Var, run: list[Member], spaces: dict[Buffer, Space]) -> list[Stmt]:
    """One loop for all of `run`, with the sums that begin here cleared before and stored after."""
    before: list[Stmt] = []
    after: list[Stmt] = []
    inside: list[Member] = []
    for m in run:
        rest = tuple(v for v in m.loops if v is not var)
        if m.spatial:
            inside.append(replace(m, loops=rest, spatial=m.spatial - 1))
            continue
        if m.sum is None:
            prec = m.target.buffer.prec
            register = Buffer("sum", (), prec)
            spaces[register] = "register"
            m = replace(m, sum=Access(register, ()))
            assert m.sum is not None
            before.append(Compute(m.sum, "set", Const(neutral(m.accum, prec), prec)))
            after.append(Compute(m.target, "set" if m.starts else m.accum, m.sum))
        inside.append(replace(m, loops=rest))
    return [*before, Loop(var, "serial", tuple(_build(inside, spaces))), *after]


def _run(members: Sequence[Member]) -> tuple[Var, list[Member]]:
    """The loop to open next and the members, from the first on, that share it, rewritten to its variable."""
    first = members[0]
    best: tuple[Var, list[Member]] | None = None
    for var in first.candidates:
        run = [first]
        for m in members[1:]:
            joined = _join(var, run, m)
            if joined is None:
                break
            run.append(joined)
        if best is None or len(run) > len(best[1]):
            best = var, run
        if len(run) == len(members):
            break
    assert best is not None
    return best


def _join(var: Var, run: Sequence[Member], m: Member) -> Member | None:
    """`m` with one of its loops renamed to `var`, if it may run in the same turns."""
    if not m.loops:
        return None
    for own in m.candidates:
        if own.size != var.size:
            continue
        renamed = rename(m, {own: var})
        if all(_aligned(var, earlier, renamed) for earlier in run):
            return renamed
    return None


def rename(m: Member, by: dict[Var, Var]) -> Member:
    """The same member with other loop variables."""
    at = {a: Affine.of(b) for a, b in by.items()}
    target = Access(m.target.buffer, tuple(substitute_index(i, at) for i in m.target.index), m.target.guarded)
    return replace(m, target=target, value=substitute(m.value, at), loops=tuple(by.get(v, v) for v in m.loops))


def _aligned(var: Var, a: Member, b: Member) -> bool:
    """Whether `b` may follow `a` within each turn of `var`: what passes between them stays at that turn."""
    written, rewritten = a.target, b.target
    touching = [x for x in _reads(b) if x.buffer is written.buffer]
    if rewritten.buffer is written.buffer:
        touching.append(rewritten)
    if not all(_same_turn(var, written, x) for x in touching):
        return False
    return all(_same_turn(var, x, rewritten) for x in _reads(a) if x.buffer is rewritten.buffer)


def _reads(m: Member) -> list[Access]:
    found = accesses(m.value)
    for i in m.target.index:
        if isinstance(i, Dynamic):
            found.extend(accesses(i.value))
    return found


def _same_turn(var: Var, a: Access, b: Access) -> bool:
    """Whether two accesses meet only in the same turn of `var`: on some axis both are at `var`."""
    here = Affine.of(var)
    return any(i == here and j == here for i, j in zip(a.index, b.index, strict=True))


def depth(members: Sequence[Member], m: Member) -> int:
    """How many loops from the outside `m` can share with all of `members`."""
    shared = 0
    current, new = [_with_own_loops(x) for x in members], _with_own_loops(m)
    while new.loops and all(x.loops for x in current):
        var, run = _run([*current, new])
        if len(run) != len(current) + 1:
            break
        shared += 1
        opened = [_opened(x, var) for x in run]
        current, new = opened[:-1], opened[-1]
    return shared


def outermost(members: Sequence[Member]) -> tuple[Var, list[Member]] | None:
    """The loop that all members would have around them, and the members with it; None if they share none."""
    var, run = _run([_with_own_loops(x) for x in members])
    return (var, run) if len(run) == len(members) else None


def _opened(m: Member, var: Var) -> Member:
    rest = tuple(v for v in m.loops if v is not var)
    return replace(m, loops=rest, spatial=max(0, m.spatial - 1))


# ---------------------------------------------------------------- registers instead of memory

_Known = dict[tuple[Buffer, tuple[Index, ...]], Access]


def _forward(body: tuple[Stmt, ...], known: _Known, spaces: dict[Buffer, Space]) -> tuple[Stmt, ...]:
    """Reads what was just written at the same position from a register."""
    known = dict(known)
    result: list[Stmt] = []
    for n, stmt in enumerate(body):
        if isinstance(stmt, Loop):
            inner = {k: v for k, v in known.items() if k[0] not in written(stmt.body)}
            known = dict(inner)
            result.append(Loop(stmt.var, stmt.kind, _forward(stmt.body, inner, spaces)))
            continue
        value = _from_registers(stmt.value, known)
        target = stmt.target
        b = target.buffer
        if b in spaces:
            result.append(Compute(target, stmt.accum, value))
            continue
        known = {k: v for k, v in known.items() if k[0] is not b}
        plain = not target.guarded and all(isinstance(i, Affine) for i in target.index)
        if stmt.accum == "set" and plain and _read_later(b, body[n + 1 :]):
            if not (isinstance(value, Access) and value.buffer in spaces):
                register = Buffer(b.name, (), b.prec)
                spaces[register] = "register"
                result.append(Compute(Access(register, ()), "set", value))
                value = Access(register, ())
            known[(b, target.index)] = value
        result.append(Compute(target, stmt.accum, value))
    return tuple(result)


def _from_registers(expr: Expr, known: _Known) -> Expr:
    if not known:
        return expr

    def change(a: Access) -> Expr:
        return a if a.guarded else known.get((a.buffer, a.index), a)

    return map_accesses(expr, change, {})


def _read_later(b: Buffer, body: Sequence[Stmt]) -> bool:
    return any(a.buffer is b for c in computes(body) for a in accesses(c.value))


def _without_unread(body: tuple[Stmt, ...], needed: set[Buffer], spaces: dict[Buffer, Space]) -> tuple[Stmt, ...]:
    """Without stores to buffers that nothing reads."""
    read = set(needed)
    for c in computes(body):
        read.update(a.buffer for a in accesses(c.value))
        for i in c.target.index:
            if isinstance(i, Dynamic):
                read.update(a.buffer for a in accesses(i.value))

    def kept(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        result: list[Stmt] = []
        for s in stmts:
            if isinstance(s, Loop):
                inner = kept(s.body)
                if inner:
                    result.append(Loop(s.var, s.kind, inner))
            elif s.target.buffer in read or s.target.buffer in spaces:
                result.append(s)
        return tuple(result)

    return kept(body)


def named(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The same tree with a name of its own for every loop."""
    return _named(body, {}, {})


def _named(body: tuple[Stmt, ...], used: dict[str, int], at: dict[Var, Affine]) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for s in body:
        if isinstance(s, Loop):
            base = s.var.name.split(".")[0] or "i"
            n = used.get(base, 0) + 1
            name = base if n == 1 else f"{base}{n}"
            while n > 1 and name in used:
                n += 1
                name = f"{base}{n}"
            used[base] = n
            used.setdefault(name, 1)
            own = Var(name, s.var.size)
            result.append(Loop(own, s.kind, _named(s.body, used, {**at, s.var: Affine.of(own)})))
        else:
            target = Access(s.target.buffer, tuple(substitute_index(i, at) for i in s.target.index), s.target.guarded)
            result.append(Compute(target, s.accum, substitute(s.value, at)))
    return tuple(result)
