"""When a change of the order of turns keeps the meaning: what turns of a loop share, told from the accesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ocannl_lang.loops.ir import Access, Affine, Buffer, Dynamic, Index, Var, accesses
from ocannl_lang.loops.lower_expr import variables
from ocannl_lang.schedule.ir import Compute, Loop, Space, Stmt
from ocannl_lang.schedule.trees import computes, loop_vars, reads, written


class IllegalTransform(Exception):
    """A transform that would change the meaning of a kernel."""


def independent(loop: Loop, spaces: Mapping[Buffer, Space]) -> bool:
    """Whether the turns of a loop may run in any order or at the same time."""
    try:
        check_independent(loop, spaces)
    except IllegalTransform:
        return False
    return True


def check_independent(loop: Loop, spaces: Mapping[Buffer, Space]) -> None:
    """Different turns must not touch what another one writes, registers of a turn aside."""
    var = loop.var
    inner = set(loop_vars(loop.body))
    stored = [c.target for c in computes(loop.body)]
    for target in stored:
        b = target.buffer
        if b in spaces and set_first(loop.body, b, spaces):
            continue
        if not distinct(target, var, inner):
            raise IllegalTransform(f"turns of {var.name} meet in {b.name}")
    names = {t.buffer for t in stored if t.buffer not in spaces or not set_first(loop.body, t.buffer, spaces)}
    _check_reads(loop, names, stored, inner)


def check_vector(loop: Loop, spaces: Mapping[Buffer, Space]) -> None:
    """Turns that run side by side, statement by statement, must be independent or add up what none of them reads."""
    var = loop.var
    inner = set(loop_vars(loop.body))
    statements = computes(loop.body)
    stored = [c.target for c in statements]
    apart_: set[Buffer] = set()
    for c in statements:
        b = c.target.buffer
        if spaces.get(b) == "register" and set_first(loop.body, b, spaces):
            continue
        if distinct(c.target, var, inner):
            apart_.add(b)
            continue
        same = [x for x in statements if x.target.buffer is b]
        if any(x.accum == "set" or x.accum != c.accum or _moves(x.target, var) for x in same) or reads(loop.body, b):
            raise IllegalTransform(f"turns of {var.name} meet in {b.name}")
    _check_reads(loop, apart_, stored, inner)


def _check_reads(loop: Loop, names: set[Buffer], stored: Sequence[Access], inner: set[Var]) -> None:
    for c in computes(loop.body):
        dynamic = [a for i in c.target.index if isinstance(i, Dynamic) for a in accesses(i.value)]
        for a in (*accesses(c.value), *dynamic):
            if a.buffer in names and not _own_turn(a, stored, loop.var, inner):
                raise IllegalTransform(f"turns of {loop.var.name} read {a.buffer.name} of each other")


def _moves(target: Access, var: Var) -> bool:
    """Whether the position of a target depends on a loop."""
    return any(
        var in variables(i.value) if isinstance(i, Dynamic) else any(v is var for v, _ in i.terms) for i in target.index
    )


def shares_memory(body: Sequence[Stmt], var: Var, spaces: Mapping[Buffer, Space]) -> bool:
    """Whether turns of a loop use the same local memory one after the other."""
    inner = set(loop_vars(body))
    return any(spaces.get(c.target.buffer) == "local" and not distinct(c.target, var, inner) for c in computes(body))


def only_sums(body: Sequence[Stmt], spaces: Mapping[Buffer, Space]) -> bool:
    """Whether turns do nothing but add to registers that they do not read: their order does not matter."""
    sums = computes(body)
    added = {c.target.buffer for c in sums}
    return all(
        c.accum != "set"
        and spaces.get(c.target.buffer) == "register"
        and not added & {a.buffer for a in accesses(c.value)}
        for c in sums
    )


def apart(first: Loop, rest: Sequence[Stmt], spaces: Mapping[Buffer, Space]) -> bool:
    """Whether statements after a loop touch nothing that it writes, and write nothing that it touches: what a split left over."""
    mine, others = computes([first]), computes(rest)
    for a, b in ((mine, others), (others, mine)):
        for c in a:
            if c.target.buffer in spaces:
                if any(_touches(x, c.target.buffer) for x in b) and not set_first(rest, c.target.buffer, spaces):
                    return False
                continue
            for x in b:
                for y in (x.target, *accesses(x.value)):
                    if y.buffer is c.target.buffer and not disjoint(c.target, y):
                        return False
    return True


def _touches(c: Compute, b: Buffer) -> bool:
    return c.target.buffer is b or any(a.buffer is b for a in accesses(c.value))


def disjoint(a: Access, b: Access) -> bool:
    """Whether two accesses are never at one position in one turn of the loops around both."""
    for i, j in zip(a.index, b.index, strict=True):
        if isinstance(i, Affine) and isinstance(j, Affine):
            # Loops that both are in are at the same turn.
            difference = dict(i.terms)
            for v, c in j.terms:
                difference[v] = difference.get(v, 0) - c
            low, high = Affine(tuple(difference.items()), i.offset - j.offset).bounds()
            if low > 0 or high < 0:
                return True
    return False


def _own_turn(a: Access, stored: Sequence[Access], var: Var, inner: set[Var]) -> bool:
    """Whether, on some axis, turns of `var` keep `a` and all writes of its buffer in stretches of their own."""
    together = [a, *(t for t in stored if t.buffer is a.buffer)]
    for n in range(len(a.index)):
        parts = [_stretch(x.index[n], var, inner) for x in together]
        if any(p is None for p in parts):
            continue
        found = [p for p in parts if p is not None]
        if len({(c, outer) for c, outer, _, _ in found}) == 1:
            if max(high for _, _, _, high in found) - min(low for _, _, low, _ in found) < abs(found[0][0]):
                return True
    return False


def _stretch(index: Index, var: Var, inner: set[Var]) -> tuple[int, tuple[tuple[Var, int], ...], int, int] | None:
    """A position as c·var + terms of loops outside + something from low to high; None without `var`."""
    if not isinstance(index, Affine):
        return None
    c = next((c for v, c in index.terms if v is var), 0)
    if not c:
        return None
    outer = tuple((v, k) for v, k in index.terms if v is not var and v not in inner)
    low, high = Affine(tuple((v, k) for v, k in index.terms if v in inner), index.offset).bounds()
    return c, outer, low, high


def set_first(body: Sequence[Stmt], b: Buffer, spaces: Mapping[Buffer, Space]) -> bool:
    """Whether statements set private memory before they use it, all of it that they read."""
    return _begins_with_set(body, b) and (spaces.get(b) != "local" or _reads_what_it_sets(body, b))


def _begins_with_set(body: Sequence[Stmt], b: Buffer) -> bool:
    for s in body:
        if isinstance(s, Loop):
            if b in written(s.body) or reads(s.body, b):
                return _begins_with_set(s.body, b)
        elif s.target.buffer is b:
            return s.accum == "set" and all(a.buffer is not b for a in accesses(s.value))
        elif any(a.buffer is b for a in accesses(s.value)):
            return False
    return False


def _reads_what_it_sets(body: Sequence[Stmt], b: Buffer) -> bool:
    """Whether positions that are read lie within those that are set, as far as ranges along each axis tell."""
    statements = computes(body)
    sets = [c.target for c in statements if c.target.buffer is b and c.accum == "set"]
    used = [a for c in statements for a in accesses(c.value) if a.buffer is b]
    for n, size in enumerate(b.shape):
        low, high = _range(sets, n, size)
        least, greatest = _range(used, n, size)
        if used and (least < low or greatest > high):
            return False
    return True


def _range(found: Sequence[Access], axis: int, size: int) -> tuple[int, int]:
    parts = [i.bounds() if isinstance(i := a.index[axis], Affine) else (0, size - 1) for a in found]
    return min((low for low, _ in parts), default=size), max((high for _, high in parts), default=-1)


def distinct(target: Access, var: Var, inner: set[Var] | None = None) -> bool:
    """Whether different turns of `var` always write different positions, whatever the loops inside it (all others) do."""
    for index in target.index:
        if isinstance(index, Affine):
            c = next((abs(c) for v, c in index.terms if v is var), 0)
            others = sum(
                abs(k) * (v.size - 1) for v, k in index.terms if v is not var and (inner is None or v in inner)
            )
            if c > others:
                return True
    return False
