"""Assignments that compute the same are computed once."""

from __future__ import annotations

from collections.abc import Callable

from ocannl_lang.loops.facts import covers, kept, target_vars, writers
from ocannl_lang.loops.ir import (
    Access,
    Affine,
    Apply,
    Assign,
    Buffer,
    Const,
    Dynamic,
    Expr,
    Position,
    Program,
    Random,
    Var,
    accesses,
)
from ocannl_lang.loops.lower_expr import map_accesses

_Key = tuple[object, ...]


def share_common(program: Program) -> Program:
    """Of buffers that are wholly written by equal assignments the first stays; the others become it."""
    written = writers(program)
    outside = kept(program)
    first: dict[_Key, Buffer] = {}
    same: dict[Buffer, Buffer] = {}
    assigns: list[Assign] = []
    for i, a in enumerate(program.assigns):
        a = _renamed(a, same)
        b = a.target.buffer
        if len(written[b]) == 1 and covers(a) and b.role == "temp" and (a.fresh or a.accum == "set"):
            key = _key(a)
            found = first.get(key)
            if found is None:
                # What it reads must not change before the second one would be computed.
                if all(written.get(r, [-1])[-1] < i for r in _read(a.value)):
                    first[key] = b
            elif b not in outside:
                same[b] = found
                continue
        assigns.append(a)
    return Program(program.name, program.inputs, program.outputs, assigns, program.stores)


def _renamed(a: Assign, same: dict[Buffer, Buffer]) -> Assign:
    if not same or not any(b in same for b in (*_read(a.value), *_read_by_target(a))):
        return a

    def change(access: Access) -> Expr:
        return Access(same.get(access.buffer, access.buffer), access.index, access.guarded, access.fill)

    index = tuple(i if isinstance(i, Affine) else Dynamic(_mapped(i.value, change)) for i in a.target.index)
    target = Access(a.target.buffer, index, a.target.guarded)
    return Assign(target, a.accum, a.fresh, a.loops, _mapped(a.value, change), a.origin)


def _mapped(expr: Expr, change: Callable[[Access], Expr]) -> Expr:
    return map_accesses(expr, change, {})


def _read(expr: Expr) -> list[Buffer]:
    return [x.buffer for x in accesses(expr)]


def _read_by_target(a: Assign) -> list[Buffer]:
    return [b for i in a.target.index if isinstance(i, Dynamic) for b in _read(i.value)]


def _key(a: Assign) -> _Key:
    """Equal for assignments that differ in nothing but the names of their loops and their target."""
    own = target_vars(a)
    order: dict[Var, int] = {}
    for v in (*own, *(v for v in a.loops if v not in own)):
        order[v] = len(order)
    sizes = tuple(v.size for v in order)
    b = a.target.buffer
    place = tuple(_affine_key(i, order) for i in a.target.index if isinstance(i, Affine))
    return (b.shape, b.prec, a.accum, sizes, place, _expr_key(a.value, order))


def _affine_key(index: Affine, order: dict[Var, int]) -> _Key:
    return (index.offset, *sorted((order[v], c) for v, c in index.terms))


def _expr_key(e: Expr, order: dict[Var, int]) -> _Key:
    match e:
        case Const(value=value, prec=prec):
            return ("const", repr(value), prec)
        case Position(index=index, prec=prec):
            return ("position", _affine_key(index, order), prec)
        case Access(buffer=buffer, index=index, guarded=guarded, fill=fill):
            at = tuple(
                _affine_key(i, order) if isinstance(i, Affine) else ("data", _expr_key(i.value, order)) for i in index
            )
            return ("access", buffer.id, at, guarded, repr(fill))
        case Apply(fn=fn, args=args, prec=prec):
            return (fn, prec, *(_expr_key(x, order) for x in args))
        case Random(dist=dist, stream=stream, counter=counter, position=position, prec=prec):
            inner = None if counter is None else _expr_key(counter, order)
            return ("random", dist, stream, inner, _affine_key(position, order), prec)
