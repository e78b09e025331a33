"""Sums into windows, turned around: from every turn adding to the positions of its window, to every position adding up
its turns.

    t[s·o + k - p] += g[o]·e    becomes    t[i] += Σ_k g[(i + p - k) / s]·e

so that positions can be computed independently of each other. With a stride s > 1 there is one assignment for each
remainder r of positions i = s·i' + r, which meets every s-th k only. Reads that now may lie outside are guarded:
`gate`, which `value` is linear in, is 0 there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ocannl_lang.loops.ir import Access, Affine, Buffer, Dynamic, Expr, Index, Var, accesses
from ocannl_lang.loops.lower_expr import guarded, map_accesses, substitute_index
from ocannl_lang.loops.lower_slots import combine


@dataclass(frozen=True, slots=True)
class Sum:
    """For all `loops`: target[index] += `value`, in which `gate` is a factor."""

    loops: tuple[Var, ...]
    index: tuple[Index, ...]
    value: Expr
    gate: Buffer


def gather(scattered: Sum, shape: Sequence[int]) -> list[Sum] | None:
    """The same sum without overlapping windows in the target, or None if it is not of that kind."""
    pieces = [scattered]
    for axis, size in enumerate(shape):
        pieces = [piece for s in pieces for piece in _turn_axis(s, axis, size)]
    if pieces == [scattered] or any(guarded(p.index, shape) for p in pieces):
        return None
    return pieces


@dataclass(frozen=True, slots=True)
class _Window:
    """An axis at `stride·out + dilation·kernel + offset`."""

    out: Var
    stride: int
    kernel: Var
    dilation: int
    offset: int


def _turn_axis(s: Sum, axis: int, size: int) -> list[Sum]:
    window = _window(s, axis)
    if window is None or size == 0 or _apart(s.index[axis], window, size):
        return [s]
    left, stride = -window.offset, window.stride
    pieces: list[Sum] = []
    for r in range(stride):
        first, carry = (r + left) % stride, (r + left) // stride
        # With stride 1 all kernel positions are met, whatever their dilation.
        steps = -(-(window.kernel.size - first) // stride)
        turns = -(-(size - r) // stride)
        if steps <= 0 or turns <= 0:
            continue
        loops = [v for v in s.loops if v not in (window.out, window.kernel)]
        place = _loop("i", turns, loops)
        step = _loop(window.kernel.name, steps, loops)
        by = {
            window.kernel: combine([(stride, step)], first),
            window.out: combine([(1, place), (-window.dilation, step)], carry),
        }
        index = tuple(
            combine([(stride, place)], r) if a == axis else substitute_index(i, by) for a, i in enumerate(s.index)
        )
        pieces.append(Sum(tuple(loops), index, map_accesses(s.value, _guard, by), s.gate))
    return pieces


def _apart(index: Index, window: _Window, size: int) -> bool:
    """Whether windows lie beside each other and within the axis: their turns write apart as they are."""
    assert isinstance(index, Affine)
    low, high = index.bounds()
    return window.dilation == 1 and window.kernel.size <= window.stride and low >= 0 and high < size


def _loop(name: str, size: int, loops: list[Var]) -> Affine:
    if size == 1:
        return Affine()
    var = Var(name, size)
    loops.append(var)
    return Affine.of(var)


def _guard(access: Access) -> Access:
    if access.guarded or not guarded(access.index, access.buffer.shape):
        return access
    return Access(access.buffer, access.index, True, access.fill)


def _window(s: Sum, axis: int) -> _Window | None:
    index = s.index[axis]
    if not isinstance(index, Affine) or len(index.terms) != 2:
        return None
    for out, kernel in (index.terms, index.terms[::-1]):
        (o, stride), (k, dilation) = out, kernel
        if stride < 1 or dilation < 1 or (stride > 1 and dilation > 1):
            continue
        elsewhere = {v for a, i in enumerate(s.index) if a != axis and isinstance(i, Affine) for v, _ in i.terms}
        if o in elsewhere or k in elsewhere or k.size > o.size * max(stride, 1) or not _gated(s, o):
            continue
        return _Window(o, stride, k, dilation, index.offset)
    return None


def _gated(s: Sum, var: Var) -> bool:
    """Whether the gate is 0 outside of the range of `var`, and positions from data do not follow it."""
    gates = [a for a in accesses(s.value) if a.buffer is s.gate]
    plain = all(
        any(i == Affine.of(var) and size == var.size for i, size in zip(a.index, a.buffer.shape, strict=True))
        and not a.fill
        for a in gates
    )
    dynamic = any(isinstance(i, Dynamic) for a in accesses(s.value) for i in a.index)
    return bool(gates) and plain and not dynamic and not any(isinstance(i, Dynamic) for i in s.index)
