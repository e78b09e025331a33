"""Sums over a vector loop: kept lane by lane, and put together after the loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ocannl_lang.graph.primitives import neutral
from ocannl_lang.loops.ir import Access, Affine, Buffer, Const, Var
from ocannl_lang.schedule.ir import Compute, Loop, Space, Stmt
from ocannl_lang.schedule.trees import loop_vars, reads


def lanes(body: tuple[Stmt, ...], name: str, spaces: dict[Buffer, Space]) -> tuple[Stmt, ...]:
    """Sums of registers over the vector loops called `name`, lane by lane."""
    result: list[Stmt] = []
    n = 0
    while n < len(body):
        s = body[n]
        n += 1
        if not isinstance(s, Loop):
            result.append(s)
            continue
        sums = _sums(s, name, spaces, set())
        ready = {b for b in sums if _cleared(result, b)}
        if not ready:
            result.append(Loop(s.var, s.kind, lanes(s.body, name, spaces)))
            continue
        # Loops that go on with the same sums, as what a split left over does, share the lanes.
        run = [s]
        while n < len(body) and isinstance(body[n], Loop) and set(_sums(body[n], name, spaces, set())) == set(sums):
            following = body[n]
            assert isinstance(following, Loop)
            run.append(following)
            n += 1
        width = max(v.size for x in run for v in _loops_named(x, name))
        wide: dict[Buffer, Buffer] = {}
        for b in sorted(ready, key=lambda b: b.id):
            wide[b] = Buffer(b.name, (width,), b.prec)
            spaces[wide[b]] = "register"
        result.extend(_clear(wide, sums, width, name))
        result.extend(_with_lanes(x, name, wide) for x in run)
        result.extend(_put_together(wide, sums, width, name))
    return tuple(result)


def _sums(s: Stmt, name: str, spaces: dict[Buffer, Space], inside: set[Var]) -> dict[Buffer, Compute]:
    """Scalar registers that are accumulated in loops called `name` and not otherwise touched."""
    found: dict[Buffer, Compute] = {}
    if isinstance(s, Compute):
        if inside and s.accum != "set" and not s.target.index and spaces.get(s.target.buffer) == "register":
            found[s.target.buffer] = s
        return found
    for x in s.body:
        found.update(_sums(x, name, spaces, inside | {s.var} if s.var.name == name else inside))
    return {b: c for b, c in found.items() if not reads([s], b)}


def _cleared(before: Sequence[Stmt], b: Buffer) -> bool:
    return any(isinstance(s, Compute) and s.target.buffer is b and s.accum == "set" for s in before)


def _loops_named(s: Stmt, name: str) -> list[Var]:
    return [v for v in loop_vars([s]) if v.name == name]


def _clear(wide: Mapping[Buffer, Buffer], sums: Mapping[Buffer, Compute], width: int, name: str) -> list[Stmt]:
    result: list[Stmt] = []
    for b, w in wide.items():
        v = Var(name, width)
        start = Const(neutral(sums[b].accum, b.prec), b.prec)
        result.append(Loop(v, "vector", (Compute(Access(w, (Affine.of(v),)), "set", start),)))
    return result


def _put_together(wide: Mapping[Buffer, Buffer], sums: Mapping[Buffer, Compute], width: int, name: str) -> list[Stmt]:
    result: list[Stmt] = []
    for b, w in wide.items():
        v = Var(name, width)
        result.append(Loop(v, "vector", (Compute(Access(b, ()), sums[b].accum, Access(w, (Affine.of(v),))),)))
    return result


def _with_lanes(s: Stmt, name: str, wide: Mapping[Buffer, Buffer], lane: Var | None = None) -> Stmt:
    if isinstance(s, Loop):
        inner = s.var if s.var.name == name else lane
        return Loop(s.var, s.kind, tuple(_with_lanes(x, name, wide, inner) for x in s.body))
    if s.target.buffer in wide and lane is not None:
        return Compute(Access(wide[s.target.buffer], (Affine.of(lane),)), s.accum, s.value)
    return s
