"""Walking and rewriting loop trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ocannl_lang.loops.ir import Access, Affine, Buffer, Var, accesses
from ocannl_lang.loops.lower_expr import map_accesses, substitute, substitute_index
from ocannl_lang.schedule.ir import Compute, Loop, Stmt


def computes(body: Sequence[Stmt]) -> list[Compute]:
    """All elementary assignments of a tree, in order."""
    found: list[Compute] = []
    for stmt in body:
        if isinstance(stmt, Compute):
            found.append(stmt)
        else:
            found.extend(computes(stmt.body))
    return found


def written(body: Sequence[Stmt]) -> set[Buffer]:
    """What a tree writes."""
    return {c.target.buffer for c in computes(body)}


def loop_vars(body: Sequence[Stmt]) -> list[Var]:
    """The variables of all loops, the outer ones first."""
    found: list[Var] = []
    for s in body:
        if isinstance(s, Loop):
            found.append(s.var)
            found.extend(loop_vars(s.body))
    return found


def reads(body: Sequence[Stmt], b: Buffer) -> bool:
    """Whether a tree reads a buffer."""
    return any(a.buffer is b for c in computes(body) for a in accesses(c.value))


def each_loop(body: tuple[Stmt, ...], name: str, change: Callable[[Loop], tuple[Stmt, ...]]) -> tuple[Stmt, ...]:
    """The tree with every loop of that name changed."""
    result: list[Stmt] = []
    for s in body:
        if not isinstance(s, Loop):
            result.append(s)
        elif s.var.name == name:
            result.extend(change(s))
        else:
            result.append(Loop(s.var, s.kind, each_loop(s.body, name, change)))
    return tuple(result)


def loops_named(body: Sequence[Stmt], name: str) -> list[Loop]:
    """The loops of that name, none inside another."""
    found: list[Loop] = []
    for s in body:
        if isinstance(s, Loop):
            found.extend([s] if s.var.name == name else loops_named(s.body, name))
    return found


def renewed(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The same statements with loop variables of their own."""
    result: list[Stmt] = []
    for s in body:
        if isinstance(s, Loop):
            own = Var(s.var.name, s.var.size)
            result.append(Loop(own, s.kind, renewed(substituted(s.body, {s.var: Affine.of(own)}))))
        else:
            result.append(s)
    return tuple(result)


def substituted(body: tuple[Stmt, ...], at: Mapping[Var, Affine]) -> tuple[Stmt, ...]:
    """The statements with loop variables replaced by positions."""
    result: list[Stmt] = []
    for s in body:
        match s:
            case Loop(var=var, kind=kind, body=inner):
                result.append(Loop(var, kind, substituted(inner, at)))
            case Compute(target=target, accum=accum, value=value):
                moved = Access(target.buffer, tuple(substitute_index(i, at) for i in target.index), target.guarded)
                result.append(Compute(moved, accum, substitute(value, at)))
    return tuple(result)


def replaced(body: tuple[Stmt, ...], change: Callable[[Access], Access]) -> tuple[Stmt, ...]:
    """The statements with every access changed, outside of positions from data."""
    result: list[Stmt] = []
    for s in body:
        match s:
            case Loop(var=var, kind=kind, body=inner):
                result.append(Loop(var, kind, replaced(inner, change)))
            case Compute(target=target, accum=accum, value=value):
                result.append(Compute(change(target), accum, map_accesses(value, change, {})))
    return tuple(result)
