"""Loops that always run through neighbouring elements together become one loop.

Where every statement of a group reads and writes two axes of a buffer in full, one after the other in memory, the buffer is seen as
one with a longer axis: a *view*, a buffer of another shape at the same place. Longer loops fill vectors better and tile better.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ocannl_lang.loops.ir import (
    Access,
    Affine,
    Apply,
    Assign,
    Buffer,
    Dynamic,
    Expr,
    Index,
    Position,
    Random,
    Var,
    accesses,
)

_Pair = tuple[Var, Var]


@dataclass(frozen=True, slots=True)
class Collapsed:
    """Assignments over fewer, longer loops, and of what buffer each of their views is one."""

    assigns: list[Assign]
    views: dict[Buffer, Buffer]


def collapse(assigns: Sequence[Assign]) -> Collapsed:
    """The group with loops joined wherever all of it allows."""
    pairs, axes = _joinable(assigns)
    single = _single_axes(assigns)
    views: dict[Buffer, Buffer] = {}
    of: dict[Buffer, Buffer] = {}
    for a in assigns:
        for x in _accesses(a):
            b = x.buffer
            if b not in of:
                shape = _joined_shape(b, axes, single)
                of[b] = b if shape == b.shape else Buffer(b.name, shape, b.prec, b.role, b.key, b.value)
                if of[b] is not b:
                    views[of[b]] = b
    if not views and not any(pairs):
        return Collapsed(list(assigns), {})
    return Collapsed([_Rewriter(p, of, axes, single).assign(a) for a, p in zip(assigns, pairs, strict=True)], views)


# ---------------------------------------------------------------- what can be joined


def _joinable(assigns: Sequence[Assign]) -> tuple[list[set[_Pair]], set[tuple[Buffer, int]]]:
    """For each assignment the pairs of loops, and the pairs of axes (by the first of the two), that can be joined."""
    axes = {(x.buffer, n) for a in assigns for x in _accesses(a) for n in range(len(x.index) - 1)}
    pairs = [_candidates(a) for a in assigns]
    changed = True
    while changed:
        changed = False
        for a, own in zip(assigns, pairs, strict=True):
            for pair in list(own):
                if not all(_together(x, pair, axes) for x in _accesses(a)):
                    own.discard(pair)
                    changed = True
            for x in _accesses(a):
                for n in range(len(x.index) - 1):
                    if (x.buffer, n) in axes and _pair_at(x, n) not in own:
                        axes.discard((x.buffer, n))
                        changed = True
    return pairs, axes


def _candidates(a: Assign) -> set[_Pair]:
    found: set[_Pair] = set()
    for x in _accesses(a):
        for n in range(len(x.index) - 1):
            pair = _pair_at(x, n)
            if pair is not None and _linear(a, pair):
                found.add(pair)
    # A loop goes with one other only.
    seconds = [v for _, v in found]
    firsts = [u for u, _ in found]
    return {p for p in found if seconds.count(p[1]) == 1 and firsts.count(p[0]) == 1}


def _pair_at(x: Access, n: int) -> _Pair | None:
    """The loops that run through axes n and n + 1 of an access in full."""
    i, j = x.index[n], x.index[n + 1]
    if not isinstance(i, Affine) or not isinstance(j, Affine):
        return None
    if len(i.terms) != 1 or len(j.terms) != 1 or i.offset or j.offset:
        return None
    (u, c), (v, d) = i.terms[0], j.terms[0]
    shape = x.buffer.shape
    if c != 1 or d != 1 or u is v or u.size != shape[n] or v.size != shape[n + 1]:
        return None
    return u, v


def _together(x: Access, pair: _Pair, axes: set[tuple[Buffer, int]]) -> bool:
    """Whether an access has both loops of a pair on neighbouring axes that can be joined, or none of them anywhere."""
    places = [n for n, i in enumerate(x.index) if isinstance(i, Affine) and any(v in pair for v, _ in i.terms)]
    if not places:
        return True
    return len(places) == 2 and (x.buffer, places[0]) in axes and _pair_at(x, places[0]) == pair


def _linear(a: Assign, pair: _Pair) -> bool:
    """Whether positions that are used as numbers, too, depend on the two loops as on one."""
    return all(_coefficient(i, pair[0]) == _coefficient(i, pair[1]) * pair[1].size for i in _positions(a.value))


def _coefficient(index: Affine, var: Var) -> int:
    return next((c for v, c in index.terms if v is var), 0)


def _positions(expr: Expr) -> Iterator[Affine]:
    match expr:
        case Position(index=index):
            yield index
        case Apply(args=args):
            for x in args:
                yield from _positions(x)
        case Random(counter=counter, position=position):
            yield position
            if counter is not None:
                yield from _positions(counter)
        case Access(index=index):
            for i in index:
                if isinstance(i, Dynamic):
                    yield from _positions(i.value)
        case _:
            return


def _accesses(a: Assign) -> list[Access]:
    found = [a.target, *accesses(a.value)]
    for i in a.target.index:
        if isinstance(i, Dynamic):
            found.extend(accesses(i.value))
    return found


def _single_axes(assigns: Sequence[Assign]) -> set[tuple[Buffer, int]]:
    """Axes of one position that every access reads at 0."""
    found: set[tuple[Buffer, int]] = set()
    other: set[tuple[Buffer, int]] = set()
    for a in assigns:
        for x in _accesses(a):
            for n, (i, size) in enumerate(zip(x.index, x.buffer.shape, strict=True)):
                (found if size == 1 and i == Affine() else other).add((x.buffer, n))
    return found - other


def _joined_shape(b: Buffer, axes: set[tuple[Buffer, int]], single: set[tuple[Buffer, int]]) -> tuple[int, ...]:
    shape: list[int] = []
    for n, size in enumerate(b.shape):
        if (b, n) in single:
            continue
        if n and (b, n - 1) in axes:
            shape[-1] *= size
        else:
            shape.append(size)
    return tuple(shape)


# ---------------------------------------------------------------- joining


class _Rewriter:
    """Rewrites one assignment."""

    def __init__(
        self,
        pairs: set[_Pair],
        of: dict[Buffer, Buffer],
        axes: set[tuple[Buffer, int]],
        single: set[tuple[Buffer, int]],
    ) -> None:
        self._of = of
        self._axes = axes
        self._single = single
        after = dict(pairs)
        seconds = set(after.values())
        self._new: dict[Var, Var] = {}
        for first in after:
            if first in seconds:
                continue
            chain = [first]
            while chain[-1] in after:
                chain.append(after[chain[-1]])
            size = 1
            for v in chain:
                size *= v.size
            joined = Var(first.name, size)
            for v in chain:
                self._new[v] = joined
        self._last = {v for v in seconds if v not in after}

    def assign(self, a: Assign) -> Assign:
        loops = tuple(dict.fromkeys(self._new.get(v, v) for v in a.loops))
        return Assign(self._access(a.target), a.accum, a.fresh, loops, self._expr(a.value), a.origin)

    def _access(self, x: Access) -> Access:
        index: list[Index] = []
        for n, i in enumerate(x.index):
            if (x.buffer, n) in self._single or (n and (x.buffer, n - 1) in self._axes):
                continue
            if (x.buffer, n) in self._axes:
                assert isinstance(i, Affine)
                index.append(Affine.of(self._new[i.terms[0][0]]))
            else:
                index.append(self._index(i))
        return Access(self._of[x.buffer], tuple(index), x.guarded, x.fill)

    def _index(self, i: Index) -> Index:
        return Dynamic(self._expr(i.value)) if isinstance(i, Dynamic) else self._affine(i)

    def _affine(self, i: Affine) -> Affine:
        terms: dict[Var, int] = {}
        for v, c in i.terms:
            new = self._new.get(v)
            if new is None:
                terms[v] = c
            elif v in self._last:
                terms[new] = c
        return Affine(tuple(sorted(terms.items(), key=lambda t: t[0].id)), i.offset)

    def _expr(self, e: Expr) -> Expr:
        match e:
            case Access():
                return self._access(e)
            case Apply(fn=fn, args=args, prec=prec):
                return Apply(fn, tuple(self._expr(x) for x in args), prec)
            case Position(index=index, prec=prec):
                return Position(self._affine(index), prec)
            case Random(dist=dist, stream=stream, counter=counter, position=position, prec=prec):
                inner = None if counter is None else self._expr(counter)
                return Random(dist, stream, inner, self._affine(position), prec)
            case _:
                return e
