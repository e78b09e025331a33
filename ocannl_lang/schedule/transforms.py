"""Schedules as data: named transforms of kernels, applied by pure functions.

A loop is named by its variable; the parts that a transform makes of a loop `i` are called `i.o` and `i.i`. What is left over where
a size does not divide stands behind as another loop of the inner part's name, so that later transforms treat both alike.

    Split("i", 6)       for i in 100  →  for i.o in 16: for i.i in 6;  for i.i in 4
    Block("k", 256, "j.o")  within each turn of j.o: the sums over the first 256 turns of k, stored; then over the next, …
    Order(("j", "i"))   i: j: …  →  j: i: …  for loops that stand directly inside one another
    Sink("i.i")         moves a loop inwards, over all statements of its body, down to the innermost ones; registers that
                        a turn has for itself become arrays of registers
    Mark("i.i", kind)   says how a loop runs
    Lanes("k.i")        a sum over a vector loop is kept lane by lane and put together after the loops
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Union

from ocannl_lang.graph.primitives import neutral
from ocannl_lang.loops.ir import Access, Affine, Buffer, Const, Expr, Index, Var, accesses
from ocannl_lang.loops.lower_expr import map_accesses, substitute, substitute_index, variables
from ocannl_lang.schedule.ir import Compute, Kernel, Kind, Loop, Space, Stmt
from ocannl_lang.schedule.nests import computes, written


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


Transform = Union[Split, Order, Block, Sink, Mark, Lanes]


class IllegalTransform(Exception):
    """A transform that would change the meaning of a kernel."""


def apply(kernel: Kernel, steps: Sequence[Transform]) -> Kernel:
    """The kernel after all steps. Raises `IllegalTransform`."""
    spaces = dict(kernel.spaces)
    body = kernel.body
    for step in steps:
        body = _applied(body, step, spaces)
    used = {a.buffer for c in computes(body) for a in (c.target, *accesses(c.value))}
    note = "; ".join(filter(None, [kernel.note, *(describe(s) for s in steps)]))
    return Kernel(body, {b: s for b, s in spaces.items() if b in used}, note)


def describe(step: Transform) -> str:
    """A step as it is printed."""
    match step:
        case Split(loop=loop, factor=factor, packed=packed):
            return f"split {loop} {factor}" + "".join(f" packing {p.operand.buffer.name}" for p in packed)
        case Order(loops=loops):
            return f"order {' '.join(loops)}"
        case Block(loop=loop, size=size, within=within):
            return f"block {loop} {size} in {within}"
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
                body, within, lambda loop: (Loop(loop.var, loop.kind, block(loop.body, name, size, spaces)),)
            )
        case Sink(loop=name):
            return each_loop(body, name, lambda loop: sink(loop, spaces))
        case Mark(loop=name, kind=kind):
            return each_loop(body, name, lambda loop: (_marked(loop, kind, spaces),))
        case Lanes(loop=name):
            return lanes(body, name, spaces)


def each_loop(
    body: tuple[Stmt, ...], name: str, change: Callable[[Loop], tuple[Stmt, ...]]
) -> tuple[Stmt, ...]:
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


def _marked(loop: Loop, kind: Kind, spaces: dict[Buffer, Space]) -> Loop:
    if kind == "parallel":
        _check_independent(loop, spaces)
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
        for x in chain:
            if not _only_sums(inside, spaces):
                _check_independent(x, spaces)
        for name in reversed(names):
            if name not in by_name:
                raise IllegalTransform(f"{name} does not stand directly inside {s.var.name}")
            inside = (Loop(by_name[name].var, by_name[name].kind, inside),)
        result.extend(inside)
    return tuple(result)


# ---------------------------------------------------------------- blocks of a sum


def block(body: tuple[Stmt, ...], name: str, size: int, spaces: dict[Buffer, Space]) -> tuple[Stmt, ...]:
    """The statements, each a chain of loops around a sum over `name`, with these sums in stretches of `size`."""
    nests = list(_sum_nests(body, (), name))
    whole, rest = divmod(nests[0].sum.var.size, size)
    # The last stretch has what is left over, so that no other one is short.
    middle = whole - (2 if rest == 0 else 1)
    turn = Var(f"{name}.o", middle)
    first: list[Stmt] = []
    inside: list[Stmt] = []
    end: list[Stmt] = []
    for n in nests:
        (register,) = {c.target.buffer for c in computes(n.sum.body)}
        place = _waiting(register, n.after, n.chain, spaces)
        fetch = Compute(Access(register, ()), "set", place)
        store = Compute(place, "set", Access(register, ()))
        first.append(_stretch_of(n, Affine(), size, n.before, (store,)))
        inside.append(_stretch_of(n, Affine(((turn, size),), size), size, (fetch,), (store,)))
        last = (middle + 1) * size
        end.append(_stretch_of(n, Affine((), last), n.sum.var.size - last, (fetch,), n.after))
    return (*first, *((Loop(turn, "serial", tuple(inside)),) if middle > 0 else ()), *end)


@dataclass(frozen=True, slots=True)
class _SumNest:
    """Loops directly inside one another, and in them one sum with what stands before and after it."""

    chain: tuple[Var, ...]
    before: tuple[Stmt, ...]
    sum: Loop
    after: tuple[Stmt, ...]


def _sum_nests(body: Sequence[Stmt], chain: tuple[Var, ...], name: str) -> Iterator[_SumNest]:
    loops = [(n, x) for n, x in enumerate(body) if isinstance(x, Loop)]
    if len(loops) == len(body):
        for _, x in loops:
            yield from _sum_nests(x.body, (*chain, x.var), name)
        return
    if len(loops) != 1:
        raise IllegalTransform(f"not one sum over {name}")
    at, outer = loops[0]
    if outer.var.name != name or len({c.target.buffer for c in computes(outer.body)}) != 1:
        raise IllegalTransform(f"{name} is not the outermost loop of one sum")
    yield _SumNest(chain, tuple(body[:at]), outer, tuple(body[at + 1 :]))


def _stretch_of(n: _SumNest, first: Affine, count: int, start: Sequence[Stmt], end: Sequence[Stmt]) -> Stmt:
    """The nest for `count` turns of its sum from `first` on."""
    own = Var(n.sum.var.name, count)
    at = Affine(tuple(sorted(((own, 1), *first.terms), key=lambda t: t[0].id)), first.offset)
    stmts: tuple[Stmt, ...] = (*start, Loop(own, "serial", substituted(n.sum.body, {n.sum.var: at})), *end)
    for v in reversed(n.chain):
        stmts = (Loop(v, "serial", stmts),)
    return renewed(stmts)[0]


def _waiting(register: Buffer, after: Sequence[Stmt], chain: Sequence[Var], spaces: dict[Buffer, Space]) -> Access:
    """Where the sums wait between stretches: where they are stored in the end, or a buffer of their own."""
    for s in after:
        if isinstance(s, Compute) and s.accum == "set" and s.value == Access(register, ()) and s.target.buffer not in spaces:
            if not s.target.guarded:
                return s.target
    return Access(Buffer("partial", tuple(v.size for v in chain), register.prec), tuple(Affine.of(v) for v in chain))


# ---------------------------------------------------------------- sinking


def sink(loop: Loop, spaces: dict[Buffer, Space]) -> tuple[Stmt, ...]:
    """The loop over each statement of its body, as far in as serial loops go."""
    _check_independent(loop, spaces)
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


def _distributed(loop: Loop, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for s in body:
        if isinstance(s, Loop) and s.kind in ("serial", "parallel"):
            result.append(Loop(s.var, s.kind, _distributed(loop, s.body)))
        else:
            own = Var(loop.var.name, loop.var.size)
            result.append(Loop(own, loop.kind, substituted((s,), {loop.var: Affine.of(own)})))
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


def independent(loop: Loop, spaces: Mapping[Buffer, Space]) -> bool:
    """Whether the turns of a loop may run in any order or at the same time."""
    try:
        _check_independent(loop, spaces)
    except IllegalTransform:
        return False
    return True


def _check_independent(loop: Loop, spaces: Mapping[Buffer, Space]) -> None:
    """Different turns must not touch what another one writes, registers of a turn aside."""
    var = loop.var
    inner = set(_loop_vars(loop.body))
    stored = [c.target for c in computes(loop.body)]
    for target in stored:
        b = target.buffer
        if spaces.get(b) == "register" and _set_first(loop.body, b):
            continue
        if not distinct(target, var, inner):
            raise IllegalTransform(f"turns of {var.name} meet in {b.name}")
    names = {t.buffer for t in stored if spaces.get(t.buffer) != "register"}
    for c in computes(loop.body):
        for a in accesses(c.value):
            if a.buffer in names and not _own_turn(a, stored, var, inner):
                raise IllegalTransform(f"turns of {var.name} read {a.buffer.name} of each other")


def _only_sums(body: Sequence[Stmt], spaces: Mapping[Buffer, Space]) -> bool:
    """Whether turns do nothing but add to registers that they do not read: their order does not matter."""
    sums = computes(body)
    added = {c.target.buffer for c in sums}
    return all(
        c.accum != "set" and spaces.get(c.target.buffer) == "register" and not added & {a.buffer for a in accesses(c.value)}
        for c in sums
    )


def apart(first: Loop, rest: Sequence[Stmt], spaces: Mapping[Buffer, Space]) -> bool:
    """Whether statements after a loop touch nothing that it writes, and write nothing that it touches: what a split left over."""
    mine, others = computes([first]), computes(rest)
    for a, b in ((mine, others), (others, mine)):
        for c in a:
            if spaces.get(c.target.buffer) == "register":
                if any(_touches(x, c.target.buffer) for x in b) and not all(_set_first([s], c.target.buffer) for s in rest):
                    return False
                continue
            for x in b:
                for y in (x.target, *accesses(x.value)):
                    if y.buffer is c.target.buffer and not _disjoint(c.target, y):
                        return False
    return True


def _touches(c: Compute, b: Buffer) -> bool:
    return c.target.buffer is b or any(a.buffer is b for a in accesses(c.value))


def _disjoint(a: Access, b: Access) -> bool:
    for i, j in zip(a.index, b.index, strict=True):
        if isinstance(i, Affine) and isinstance(j, Affine):
            (low, high), (start, end) = i.bounds(), j.bounds()
            if high < start or end < low:
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


def _set_first(body: Sequence[Stmt], b: Buffer) -> bool:
    """Whether a register is set in each turn before it is used."""
    for s in body:
        if isinstance(s, Loop):
            if b in written(s.body) or _reads(s.body, b):
                return _set_first(s.body, b)
        elif s.target.buffer is b:
            return s.accum == "set" and all(a.buffer is not b for a in accesses(s.value))
        elif any(a.buffer is b for a in accesses(s.value)):
            return False
    return False


def _reads(body: Sequence[Stmt], b: Buffer) -> bool:
    return any(a.buffer is b for c in computes(body) for a in accesses(c.value))


def _loop_vars(body: Sequence[Stmt]) -> list[Var]:
    found: list[Var] = []
    for s in body:
        if isinstance(s, Loop):
            found.append(s.var)
            found.extend(_loop_vars(s.body))
    return found


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


# ---------------------------------------------------------------- sums in lanes


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
    return {b: c for b, c in found.items() if not _reads([s], b)}


def _cleared(before: Sequence[Stmt], b: Buffer) -> bool:
    return any(isinstance(s, Compute) and s.target.buffer is b and s.accum == "set" for s in before)


def _loops_named(s: Stmt, name: str) -> list[Var]:
    return [v for v in _loop_vars([s]) if v.name == name]


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


def depends(expr: Expr, var: Var) -> bool:
    """Whether an expression changes with a loop."""
    return var in variables(expr)


__all__ = [
    "Block", "IllegalTransform", "Lanes", "Mark", "Order", "Packed", "Sink", "Split", "Transform", "apart", "apply", "block", "depends", "describe", "distinct",
    "each_loop", "independent", "lanes", "renewed", "replaced", "sink", "split", "substituted",
]  # fmt: skip
