"""Padded windows of products: an operand whose edges are tested again and again is copied once, edges included.

y[o] += x[o + k - 1]?·w[k]    →    p[i] = x[i - 1]?;  y[o] += p[o + k]·w[k]
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ocannl_lang.loops.facts import target_vars, turns, writers
from ocannl_lang.loops.ir import Access, Affine, Assign, Buffer, Expr, Program, Var
from ocannl_lang.loops.lower_expr import map_accesses

# Where each element of the copy is used so often, making it pays.
_LEAST_REUSE = 8
_MOST_GROWTH = 4

_Key = tuple[Buffer, tuple[tuple[int, int], ...], float | int]


def pad_windows(program: Program) -> Program:
    """The program with such copies."""
    written = writers(program)
    copies: dict[_Key, Buffer] = {}
    assigns: list[Assign] = []
    for n, a in enumerate(program.assigns):
        before: list[Assign] = []
        if _is_sum(a):
            a = _padded(a, copies, before, lambda b, n=n: all(w < n for w in written.get(b, ())))
        assigns += [*before, a]
    return Program(program.name, program.inputs, program.outputs, assigns, program.stores)


def _is_sum(a: Assign) -> bool:
    own = target_vars(a)
    return a.accum != "set" and any(v not in own and v.size > 1 for v in a.loops)


def _padded(a: Assign, copies: dict[_Key, Buffer], before: list[Assign], complete: Callable[[Buffer], bool]) -> Assign:
    def change(x: Access) -> Expr:
        ranges = _ranges(x)
        if ranges is None or not complete(x.buffer):
            return x
        size = math.prod(high - low + 1 for low, high in ranges)
        if size > _MOST_GROWTH * x.buffer.size or turns(a.loops) < _LEAST_REUSE * size:
            return x
        key = (x.buffer, ranges, x.fill)
        copy = copies.get(key)
        if copy is None:
            copy = copies[key] = Buffer(f"{x.buffer.name}.padded", tuple(h - l + 1 for l, h in ranges), x.buffer.prec)
            before.append(_copy(copy, x.buffer, ranges, x.fill))
        index = tuple(_shifted(i, low) for i, (low, _) in zip(x.index, ranges, strict=True))
        return Access(copy, index)

    value = map_accesses(a.value, change, {})
    return Assign(a.target, a.accum, a.fresh, a.loops, value, a.origin) if before or value != a.value else a


def _ranges(x: Access) -> tuple[tuple[int, int], ...] | None:
    """What the copy of a guarded operand holds of each axis, None where none is to be made."""
    if not x.guarded or 0 in x.buffer.shape:
        return None
    ranges: list[tuple[int, int]] = []
    for i, size in zip(x.index, x.buffer.shape, strict=True):
        if not isinstance(i, Affine):
            return None
        low, high = i.bounds()
        ranges.append((min(low, 0), max(high, size - 1)))
    return tuple(ranges)


def _shifted(index: object, low: int) -> Affine:
    assert isinstance(index, Affine)
    return Affine(index.terms, index.offset - low)


def _copy(copy: Buffer, source: Buffer, ranges: tuple[tuple[int, int], ...], fill: float | int) -> Assign:
    loops = tuple(Var(f"i{n}", size) for n, size in enumerate(copy.shape))
    index = tuple(Affine(((v, 1),), low) for v, (low, _) in zip(loops, ranges, strict=True))
    target = Access(copy, tuple(Affine.of(v) for v in loops))
    return Assign(target, "set", True, loops, Access(source, index, True, fill))
