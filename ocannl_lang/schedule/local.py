"""Memory that one turn of the outer loops has for itself.

A buffer that only one kernel uses, each row of it within one turn of the outer loops, needs room for one row: it lies on the stack of
the thread, stays in the first cache, and costs no memory traffic.
"""

from __future__ import annotations

from collections.abc import Mapping

from ocannl_lang.codegen.llvm.types import SIZES
from ocannl_lang.loops.ir import Access, Affine, Buffer, Dynamic, Expr, Index, Var, accesses
from ocannl_lang.loops.lower_expr import map_accesses
from ocannl_lang.schedule.ir import Compute, Loop, Space, Stmt
from ocannl_lang.schedule.legality import set_first
from ocannl_lang.schedule.nests import Tree
from ocannl_lang.schedule.trees import computes

_MOST_BYTES = 32 * 1024


def with_local(t: Tree, outside: set[Buffer]) -> Tree:
    """The tree with such buffers made local. `outside`: what something else reads."""
    chain: list[Var] = []
    body: tuple[Stmt, ...] = t.body
    while len(body) == 1 and isinstance(body[0], Loop):
        chain.append(body[0].var)
        body = body[0].body
    if not chain or not any(isinstance(s, Loop) for s in body):
        return t
    found: dict[Buffer, list[Access]] = {}
    for c in computes(t.body):
        for a in (c.target, *accesses(c.value)):
            found.setdefault(a.buffer, []).append(a)
    written = {c.target.buffer for c in computes(t.body)}
    small: dict[Buffer, tuple[Buffer, list[int]]] = {}
    spaces: dict[Buffer, Space] = dict(t.spaces)
    left = _MOST_BYTES
    for b in sorted(written, key=lambda b: b.id):
        # What an earlier kernel began is not this one's own.
        if b in t.spaces or b in outside or b.role != "temp" or not set_first(t.body, b, t.spaces):
            continue
        kept = _kept_axes(found[b], chain)
        if kept is None:
            continue
        new = Buffer(b.name, tuple(b.shape[n] for n in kept), b.prec)
        size = new.size * SIZES[b.prec]
        if size <= left:
            left -= size
            small[b] = new, kept
            spaces[new] = "local"
    return Tree(_replaced(t.body, small), spaces) if small else t


def _kept_axes(uses: list[Access], chain: list[Var]) -> list[int] | None:
    """The axes that remain if those at the outer loops' own turns are left out, None if none can be."""
    first = uses[0].index
    if any(u.guarded for u in uses):
        return None
    own = [
        n for n, i in enumerate(first) if any(i == Affine.of(v) for v in chain) and all(u.index[n] == i for u in uses)
    ]
    return [n for n in range(len(first)) if n not in own] if own else None


def _replaced(body: tuple[Stmt, ...], small: Mapping[Buffer, tuple[Buffer, list[int]]]) -> tuple[Stmt, ...]:
    def change(a: Access) -> Access:
        found = small.get(a.buffer)
        if found is None:
            return Access(a.buffer, tuple(index(i) for i in a.index), a.guarded, a.fill)
        new, kept = found
        return Access(new, tuple(a.index[n] for n in kept))

    def index(i: Index) -> Index:
        return Dynamic(expr(i.value)) if isinstance(i, Dynamic) else i

    def expr(e: Expr) -> Expr:
        return map_accesses(e, change, {})

    result: list[Stmt] = []
    for s in body:
        match s:
            case Loop(var=var, kind=kind, body=inner):
                result.append(Loop(var, kind, _replaced(inner, small)))
            case Compute(target=target, accum=accum, value=value):
                result.append(Compute(change(target), accum, expr(value)))
    return tuple(result)
