"""Operands of a nest, copied into memory of the thread just before they are used again and again.

A block of an operand that every turn of a loop reads is copied before the loop into the order in which the loop reads it. It is then
in the second cache, side by side, whatever the distances in the original are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ocannl_lang.codegen.llvm.types import SIZES
from ocannl_lang.loops.facts import stride
from ocannl_lang.loops.ir import Access, Affine, Buffer, Var, accesses
from ocannl_lang.loops.lower_expr import substitute_index
from ocannl_lang.schedule.ir import Compute, Loop, Space, Stmt
from ocannl_lang.schedule.legality import IllegalTransform
from ocannl_lang.schedule.trees import computes, loop_vars, replaced, written

# Addresses that far apart meet in one place of the first cache.
_CACHE_WAY = 4096


def stage(
    loop: Loop, operand: Buffer, vector: str, lanes: int, made: list[Buffer], spaces: dict[Buffer, Space]
) -> tuple[Stmt, ...]:
    """The loop with what it reads of `operand` copied before it; turns of the loop `vector` lie side by side in the copy.

    `made`: memory for copies of the same operand for loops beside this one, which serves again where it is large enough.
    """
    found = list(dict.fromkeys(a for c in computes(loop.body) for a in accesses(c.value) if a.buffer is operand))
    if not found or operand in written(loop.body):
        raise IllegalTransform(f"{loop.var.name} does not only read {operand.name}")
    inside = loop_vars((loop,))
    copies: list[Stmt] = []
    by: dict[Access, Access] = {}
    free = list(made)
    for a in found:
        used = {v for i in a.index if isinstance(i, Affine) for v, _ in i.terms}
        if a.guarded or not all(isinstance(i, Affine) for i in a.index) or not used & set(inside):
            raise IllegalTransform(f"what {loop.var.name} reads of {operand.name} cannot be copied")
        axes = sorted((v for v in inside if v in used), key=lambda v: v.name == vector)
        copy = _memory(operand, tuple(v.size for v in axes), free, spaces)
        by[a] = Access(copy, _place(copy, map(Affine.of, axes)))
        if copy not in made:
            made.append(copy)
        copies.extend(_copy(a, copy, axes, lanes))
    return (*copies, Loop(loop.var, loop.kind, replaced(loop.body, lambda a: by.get(a, a))))


def _memory(operand: Buffer, shape: tuple[int, ...], free: list[Buffer], spaces: dict[Buffer, Space]) -> Buffer:
    """Memory for a copy: some that is free and has room along every axis, or more."""
    size = SIZES.get(operand.prec, 4)
    if len(shape) > 2 and math.prod(shape[1:]) * size % _CACHE_WAY == 0:
        # Else what is written one after the other, a part of each tile, would meet in few places of the caches.
        shape = (shape[0], shape[1] + 1, *shape[2:])
    for b in free:
        if len(shape) <= len(b.shape) and all(n <= room for n, room in zip(reversed(shape), reversed(b.shape))):
            free.remove(b)
            return b
    b = Buffer(f"{operand.name}.staged", shape, operand.prec)
    spaces[b] = "local"
    return b


def _copy(a: Access, copy: Buffer, axes: list[Var], lanes: int) -> tuple[Stmt, ...]:
    """copy[axes] = a, in the order in which `a` lies in memory."""
    own = {v: Var(f"{v.name}.c", v.size) for v in axes}
    last = own[axes[-1]]
    along = next((own[v] for v in axes if stride(a, v) == 1), last)
    at: dict[Var, Affine] = {v: Affine.of(x) for v, x in own.items()}
    outer = sorted((x for x in own.values() if x is not last and x is not along), key=lambda x: -_distance(a, own, x))
    if along is last or along.size < lanes:
        # A row of the original after the other.
        outer = sorted((x for x in own.values() if x is not last), key=lambda x: -_distance(a, own, x))
        return _nest([*outer], Loop(last, "vector", (_one(a, copy, axes, at),)))
    result: list[Stmt] = []
    whole, rest = divmod(along.size, lanes)
    original = next(v for v, x in own.items() if x is along)
    o, i = Var(f"{along.name}.o", whole), Var(f"{along.name}.i", lanes)
    turned = _one(a, copy, axes, {**at, original: Affine(((o, lanes), (i, 1)))})
    result.extend(_nest([*outer, o], Loop(i, "unrolled", (Loop(last, "vector", (turned,)),))))
    if rest:
        t = Var(f"{along.name}.i", rest)
        end = Var(last.name, last.size)
        at = {**at, original: Affine(((t, 1),), whole * lanes), axes[-1]: Affine.of(end)}
        renewed = {x: Var(x.name, x.size) for x in outer}
        at.update({v: Affine.of(renewed[x]) for v, x in own.items() if x in renewed})
        result.extend(_nest([*renewed.values(), t], Loop(end, "vector", (_one(a, copy, axes, at),))))
    return tuple(result)


def _distance(a: Access, own: dict[Var, Var], x: Var) -> int:
    return next(abs(stride(a, v) or 0) for v, y in own.items() if y is x)


def _one(a: Access, copy: Buffer, axes: list[Var], at: dict[Var, Affine]) -> Compute:
    source = Access(a.buffer, tuple(substitute_index(i, at) for i in a.index))
    return Compute(Access(copy, _place(copy, (at[v] for v in axes))), "set", source)


def _place(copy: Buffer, last: Iterable[Affine]) -> tuple[Affine, ...]:
    """A position in memory that may have more axes."""
    index = tuple(last)
    return (*(Affine() for _ in range(len(copy.shape) - len(index))), *index)


def _nest(loops: list[Var], inner: Stmt) -> tuple[Stmt, ...]:
    stmt = inner
    for v in reversed(loops):
        stmt = Loop(v, "serial", (stmt,))
    return (stmt,)
