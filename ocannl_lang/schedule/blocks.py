"""Long sums in stretches: all tiles take the first stretch of the sum, then all take the next, while a part of the operands
stays in the cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ocannl_lang.loops.ir import Access, Affine, Buffer, Var
from ocannl_lang.schedule.ir import Compute, Loop, Space, Stmt
from ocannl_lang.schedule.legality import IllegalTransform, apart, check_independent, shares_memory
from ocannl_lang.schedule.trees import computes, renewed, substituted


def block(
    body: tuple[Stmt, ...], name: str, size: int, around: Var | None, spaces: dict[Buffer, Space]
) -> tuple[Stmt, ...]:
    """The statements, each a chain of loops around a sum over `name`, with these sums in stretches of `size`.

    `around`: the loop that they are the body of, None for what is left over beside one. What the stretches add up to waits in
    memory. Each one begins from nothing and adds what waits at its end, so that no sum waits for memory.
    """
    _check_order(body, name, spaces)
    nests = list(_sum_nests(body, (), name, spaces))
    turns = nests[0].sum.var.size
    if turns <= size or any(n.sum.var.size != turns for n in nests):
        raise IllegalTransform(f"{name} does not have more than {size} turns everywhere")
    places = [_waiting(n, around, spaces) for n in nests]
    plain = all(_only_stores(n, p) for n, p in zip(nests, places, strict=True))
    whole, rest = divmod(turns, size)
    # The last stretch is like the others where the sums are only stored after it.
    middle = whole - 1 if plain or rest else whole - 2
    last = (middle + 1) * size
    turn = Var(f"{name}.b", middle)
    first: list[Stmt] = []
    inside: list[Stmt] = []
    end: list[Stmt] = []
    for n, place in zip(nests, places, strict=True):
        value = Access(_register(n), ())
        add = Compute(place, "add", value)
        first.extend(_stretch_of(n, Affine(), size, (Compute(place, "set", value),)))
        inside.extend(_stretch_of(n, Affine(((turn, size),), size), size, (add,)))
        if last < turns:
            after = (add,) if plain else (Compute(value, "add", place), *n.after)
            end.extend(_stretch_of(n, Affine((), last), turns - last, after))
    return (*first, *((Loop(turn, "serial", tuple(inside)),) if middle > 0 else ()), *end)


def _check_order(body: Sequence[Stmt], name: str, spaces: Mapping[Buffer, Space]) -> None:
    """Turns of the loops around the sums, and nests beside each other, must be free to run in another order."""
    loops = [s for s in body if isinstance(s, Loop)]
    if len(loops) != len(body):
        return
    for n, x in enumerate(loops):
        check_independent(x, spaces)
        if shares_memory(x.body, x.var, spaces):
            raise IllegalTransform(f"{x.var.name} has memory that is one turn's own")
        if not apart(x, loops[n + 1 :], spaces):
            raise IllegalTransform(f"the loops beside {x.var.name} need what it makes")
        _check_order(x.body, name, spaces)


@dataclass(frozen=True, slots=True)
class _SumNest:
    """Loops directly inside one another, and in them one sum with what stands before and after it."""

    chain: tuple[Var, ...]
    before: tuple[Stmt, ...]
    sum: Loop
    after: tuple[Stmt, ...]


def _sum_nests(
    body: Sequence[Stmt], chain: tuple[Var, ...], name: str, spaces: Mapping[Buffer, Space]
) -> Iterator[_SumNest]:
    loops = [(n, x) for n, x in enumerate(body) if isinstance(x, Loop)]
    if len(loops) == len(body):
        for _, x in loops:
            yield from _sum_nests(x.body, (*chain, x.var), name, spaces)
        return
    if len(loops) != 1:
        raise IllegalTransform(f"not one sum over {name}")
    at, outer = loops[0]
    if outer.var.name != name or len({c.target.buffer for c in computes(outer.body)}) != 1:
        raise IllegalTransform(f"{name} is not the outermost loop of one sum")
    before = body[:at]
    if any(not _repeatable(s, spaces) for s in before):
        raise IllegalTransform(f"what stands before the sum over {name} runs only once")
    yield _SumNest(chain, tuple(before), outer, tuple(body[at + 1 :]))


def _repeatable(s: Stmt, spaces: Mapping[Buffer, Space]) -> bool:
    """Whether a statement only sets a register."""
    return isinstance(s, Compute) and s.accum == "set" and spaces.get(s.target.buffer) == "register"


def _register(n: _SumNest) -> Buffer:
    sums = computes(n.sum.body)
    found = {c.target.buffer for c in sums}
    if len(found) != 1 or any(c.accum != "add" for c in sums):
        raise IllegalTransform(f"{n.sum.var.name} is not the loop of one sum")
    return sums[0].target.buffer


def _stretch_of(n: _SumNest, first: Affine, count: int, end: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The nest for `count` turns of its sum from `first` on."""
    own = Var(n.sum.var.name, count)
    at = Affine(tuple(sorted(((own, 1), *first.terms), key=lambda t: t[0].id)), first.offset)
    stmts: tuple[Stmt, ...] = (*n.before, Loop(own, "serial", substituted(n.sum.body, {n.sum.var: at})), *end)
    for v in reversed(n.chain):
        stmts = (Loop(v, "serial", stmts),)
    return renewed(stmts)


def _waiting(n: _SumNest, around: Var | None, spaces: dict[Buffer, Space]) -> Access:
    """Where the sums wait between stretches: where they are stored in the end, or a buffer of their own."""
    register = _register(n)
    for s in n.after:
        if isinstance(s, Compute) and s.accum == "set" and s.value == Access(register, ()):
            if s.target.buffer not in spaces and not s.target.guarded:
                return s.target
    stored = (s.target for s in n.after if isinstance(s, Compute) and s.accum == "set")
    for t in stored:
        # In the order of what is made of them; so every turn of every loop around has its own.
        if t.buffer not in spaces and not t.guarded and _one_place_each(t, n.chain):
            return Access(Buffer("partial", t.buffer.shape, register.prec), t.index)
    axes = n.chain if around is None else (around, *n.chain)
    return Access(Buffer("partial", tuple(v.size for v in axes), register.prec), tuple(map(Affine.of, axes)))


def _one_place_each(t: Access, chain: tuple[Var, ...]) -> bool:
    """Whether each turn of some loops has a position of its own."""
    used = [v for i in t.index if isinstance(i, Affine) for v, _ in i.terms]
    return all(isinstance(i, Affine) for i in t.index) and all(used.count(v) == 1 for v in chain)


def _only_stores(n: _SumNest, place: Access) -> bool:
    """Whether after the sum it is stored where it waits, and nothing else is done."""
    return len(n.after) == 1 and isinstance(s := n.after[0], Compute) and s.accum == "set" and s.target == place
