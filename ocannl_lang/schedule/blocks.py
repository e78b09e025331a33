"""Long sums in stretches: all tiles take the first stretch of the sum, then all take the next, while a part of the operands
stays in the cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ocannl_lang.loops.ir import Access, Affine, Buffer, Var
from ocannl_lang.schedule.ir import Compute, Loop, Space, Stmt
from ocannl_lang.schedule.legality import IllegalTransform
from ocannl_lang.schedule.trees import computes, renewed, substituted


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
        if (
            isinstance(s, Compute)
            and s.accum == "set"
            and s.value == Access(register, ())
            and s.target.buffer not in spaces
        ):
            if not s.target.guarded:
                return s.target
    return Access(Buffer("partial", tuple(v.size for v in chain), register.prec), tuple(Affine.of(v) for v in chain))
