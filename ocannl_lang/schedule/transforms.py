"""Transforms of loop trees: pure functions from statements to statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ocannl_lang.loops.ir import Access, Affine, Apply, Dynamic, Expr, Index, Position, Random, Var
from ocannl_lang.schedule.ir import Compute, Kind, Loop, Stmt


def split(loop: Loop, factor: int, outer: Kind, inner: Kind, tail: Kind | None = None) -> tuple[Stmt, ...]:
    """for v in n → for vo in n / factor: for vi in factor, then the rest as a loop of its own kind (`inner` if not given)."""
    var = loop.var
    whole, rest = divmod(var.size, factor)
    result: list[Stmt] = []
    if whole:
        o, i = Var(f"{var.name}o", whole), Var(f"{var.name}i", factor)
        at = Affine(tuple(t for t in ((o, factor), (i, 1)) if t[0].size > 1))
        inside = substitute(loop.body, {var: at})
        result.append(Loop(o, outer, (Loop(i, inner, inside),)) if whole > 1 else Loop(i, inner, inside))
    if rest:
        t = Var(f"{var.name}t", rest)
        at = Affine(((t, 1),) if rest > 1 else (), whole * factor)
        result.append(Loop(t, tail or inner, substitute(loop.body, {var: at})))
    return tuple(result)


def substitute(body: tuple[Stmt, ...], at: Mapping[Var, Affine]) -> tuple[Stmt, ...]:
    """The statements with loop variables replaced by affine positions."""
    result: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Loop(var=var, kind=kind, body=inner):
                result.append(Loop(var, kind, substitute(inner, at)))
            case Compute(target=target, accum=accum, value=value):
                result.append(Compute(at_access(target, at), accum, at_expr(value, at)))
    return tuple(result)


def at_affine(index: Affine, at: Mapping[Var, Affine]) -> Affine:
    """An affine position with variables replaced."""
    if not any(v in at for v, _ in index.terms):
        return index
    terms: dict[Var, int] = {}
    offset = index.offset
    for var, c in index.terms:
        new = at.get(var)
        if new is None:
            terms[var] = terms.get(var, 0) + c
            continue
        offset += c * new.offset
        for v, k in new.terms:
            terms[v] = terms.get(v, 0) + c * k
    return Affine(tuple(sorted(((v, c) for v, c in terms.items() if c), key=lambda t: t[0].id)), offset)


def at_index(index: Index, at: Mapping[Var, Affine]) -> Index:
    match index:
        case Affine():
            return at_affine(index, at)
        case Dynamic(value=value):
            return Dynamic(at_expr(value, at))


def at_access(access: Access, at: Mapping[Var, Affine]) -> Access:
    return Access(access.buffer, tuple(at_index(i, at) for i in access.index), access.guarded, access.fill)


def at_expr(expr: Expr, at: Mapping[Var, Affine]) -> Expr:
    """An expression with variables replaced."""
    match expr:
        case Access():
            return at_access(expr, at)
        case Apply(fn=fn, args=args, prec=prec):
            return Apply(fn, tuple(at_expr(a, at) for a in args), prec)
        case Position(index=index, prec=prec):
            return Position(at_affine(index, at), prec)
        case Random(dist=dist, stream=stream, counter=counter, position=position, prec=prec):
            return Random(dist, stream, None if counter is None else at_expr(counter, at), at_affine(position, at), prec)
        case _:
            return expr


def nest(loops: list[tuple[Var, Kind]], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Loops around a body, the first outermost."""
    for var, kind in reversed(loops):
        body = (Loop(var, kind, body),)
    return body


def map_access(expr: Expr, f: Callable[[Access], Expr]) -> Expr:
    """An expression with every access outside dynamic positions replaced."""
    match expr:
        case Access():
            return f(expr)
        case Apply(fn=fn, args=args, prec=prec):
            return Apply(fn, tuple(map_access(a, f) for a in args), prec)
        case Random(dist=dist, stream=stream, counter=counter, position=position, prec=prec) if counter is not None:
            return Random(dist, stream, map_access(counter, f), position, prec)
        case _:
            return expr
