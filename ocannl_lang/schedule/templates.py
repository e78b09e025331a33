"""Groups that differ in nothing but their buffers are scheduled once.

Layers repeat: a network of many equal layers has few different groups. The kernels of the first are the template of the others.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ocannl_lang.loops.ir import (
    Access,
    Affine,
    Apply,
    Assign,
    Buffer,
    Const,
    Dynamic,
    Expr,
    Index,
    Position,
    Random,
    Var,
)
from ocannl_lang.loops.lower_expr import map_accesses
from ocannl_lang.schedule.ir import Compute, Kernel, Loop, Stmt
from ocannl_lang.schedule.steps import Packed, Split, Stage, Transform

_Key = tuple[object, ...]
_MOST = 4096
_known: OrderedDict[_Key, tuple[list[Buffer], list[Kernel]]] = OrderedDict()
_lock = threading.Lock()


def from_template(
    assigns: Sequence[Assign], needed: Iterable[Buffer], target: str, make: Callable[[], list[Kernel]]
) -> list[Kernel]:
    """The kernels of a group: made by `make` the first time, later ones renamed from those."""
    describe = _Describe(set(needed))
    key = (target, *(describe.assign(a) for a in assigns))
    buffers = list(describe.buffers)
    with _lock:
        found = _known.get(key)
    if found is None:
        kernels = make()
        with _lock:
            _known[key] = buffers, kernels
            while len(_known) > _MOST:
                _known.popitem(last=False)
        return kernels
    originals, kernels = found
    by = dict(zip(originals, buffers, strict=True))
    return [_renamed(k, by) for k in kernels]


class _Describe:
    """Assignments as nested tuples that are equal where the code is: buffers and loops are numbers."""

    def __init__(self, needed: set[Buffer]) -> None:
        self.needed = needed
        self.buffers: dict[Buffer, int] = {}
        self._loops: dict[Var, int] = {}

    def assign(self, a: Assign) -> _Key:
        self._loops = {v: n for n, v in enumerate(a.loops)}
        return (
            a.accum,
            a.fresh,
            tuple(v.size for v in a.loops),
            self._access(a.target),
            self._expr(a.value),
        )

    def _buffer(self, b: Buffer) -> _Key:
        n = self.buffers.get(b)
        if n is not None:
            return (n,)
        n = self.buffers[b] = len(self.buffers)
        return n, b.shape, b.prec, b in self.needed

    def _access(self, a: Access) -> _Key:
        return ("access", self._buffer(a.buffer), tuple(self._index(i) for i in a.index), a.guarded, repr(a.fill))

    def _index(self, i: Index) -> _Key:
        return ("data", self._expr(i.value)) if isinstance(i, Dynamic) else self._affine(i)

    def _affine(self, i: Affine) -> _Key:
        return (i.offset, *sorted((self._loops[v], c) for v, c in i.terms))

    def _expr(self, e: Expr) -> _Key:
        match e:
            case Const(value=value, prec=prec):
                return ("const", repr(value), prec)
            case Position(index=index, prec=prec):
                return ("position", self._affine(index), prec)
            case Access():
                return self._access(e)
            case Apply(fn=fn, args=args, prec=prec):
                return (fn, prec, *(self._expr(x) for x in args))
            case Random(dist=dist, stream=stream, counter=counter, position=position, prec=prec):
                inner = None if counter is None else self._expr(counter)
                return ("random", dist, stream, inner, self._affine(position), prec)


def schedule_of(k: Kernel) -> tuple[Kernel, tuple[Transform, ...]]:
    """A kernel as it was before its steps, and these, on its own buffers."""
    if k.original is None:
        return k.before or k, k.steps
    before, steps = schedule_of(k.original)
    renaming = _Renaming({*before.spaces, *k.original.spaces}, k.renaming)
    views = {renaming.of(view): renaming.of(base) for view, base in before.views.items()}
    return Kernel(renaming.body(before.body), before.spaces, views), tuple(renaming.step(s) for s in steps)


def _renamed(k: Kernel, by: dict[Buffer, Buffer]) -> Kernel:
    """A kernel on other buffers. Private memory gets buffers of its own, which the kernels of a group share by `by`."""
    renaming = _Renaming(set(k.spaces), by)
    views = {renaming.of(view): renaming.of(base) for view, base in k.views.items()}
    return Kernel(renaming.body(k.body), k.spaces, views, k.note, k, by)


@dataclass(frozen=True, slots=True)
class _Renaming:
    """Other buffers, by `by`, for all but the `private` ones. Buffers that `by` does not know get new ones there."""

    private: set[Buffer]
    by: dict[Buffer, Buffer]

    def of(self, b: Buffer) -> Buffer:
        if b in self.private:
            return b
        if b not in self.by:
            self.by[b] = Buffer(b.name, b.shape, b.prec, b.role, b.key, b.value)
        return self.by[b]

    def body(self, stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        result: list[Stmt] = []
        for s in stmts:
            match s:
                case Loop(var=var, kind=kind, body=inner):
                    result.append(Loop(var, kind, self.body(inner)))
                case Compute(target=target, accum=accum, value=value):
                    moved = map_accesses(value, self._access, {})
                    result.append(Compute(self._access(target), accum, moved))
        return tuple(result)

    def step(self, s: Transform) -> Transform:
        match s:
            case Split(loop=loop, factor=factor, packed=packed) if packed:
                own = (Packed(self._access(p.operand), self.of(p.copy), p.outer, p.sums) for p in packed)
                return Split(loop, factor, tuple(own))
            case Stage(buffer=buffer, loop=loop, vector=vector, lanes=lanes):
                return Stage(self.of(buffer), loop, vector, lanes)
            case _:
                return s

    def _access(self, a: Access) -> Access:
        return Access(self.of(a.buffer), tuple(self._index(i) for i in a.index), a.guarded, a.fill)

    def _index(self, i: Index) -> Index:
        return Dynamic(map_accesses(i.value, self._access, {})) if isinstance(i, Dynamic) else i
