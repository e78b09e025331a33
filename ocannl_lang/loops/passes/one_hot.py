"""Products with one-hot vectors become gathers and scatters.

Σ_k w[o, k]·(k == ids[b])         →   w[o, ids[b]], 0 where the id is out of range
g[o, k] += e[b, o]·(k == ids[b])  →   g[o, ids[b]] += e[b, o], nothing where it is out of range
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ocannl_lang.graph.dtypes import is_float
from ocannl_lang.loops.ir import Access, Affine, Apply, Assign, Const, Dynamic, Expr, Position, Program, Random, Var
from ocannl_lang.loops.lower_expr import const, convert, is_number, precision, variables


def use_positions(program: Program) -> Program:
    """The program with sums over one-hot factors taken at the one position that counts."""
    return Program(program.name, program.inputs, program.outputs, [_assign(a) for a in program.assigns], program.stores)


def _assign(a: Assign) -> Assign:
    if a.accum != "add":
        return a
    changed = True
    while changed:
        changed = False
        for hot in _factors(a.value):
            found = _at(a, hot)
            if found is not None:
                a, changed = found, True
                break
    return a


@dataclass(frozen=True, slots=True)
class _Hot:
    """A factor that is 1 where `var` is `position` and else 0; `rest` is the product without it."""

    var: Var
    position: Expr
    rest: Expr


def _factors(expr: Expr) -> Iterator[_Hot]:
    """The one-hot factors of a product."""
    match expr:
        case Apply(fn="mul", args=(a, b), prec=prec):
            for x, y in ((a, b), (b, a)):
                for hot in _factors(x):
                    rest = y if is_number(hot.rest, 1) else Apply("mul", (hot.rest, y), prec)
                    yield _Hot(hot.var, hot.position, rest)
        case Apply(fn="where", args=(condition, a, Const(value=0)), prec=prec):
            for var, position in _comparison(condition):
                yield _Hot(var, position, a)
        case Apply(fn="convert", args=(inner,), prec=prec):
            for var, position in _comparison(inner):
                yield _Hot(var, position, const(1, prec))
        case _:
            return


def _comparison(expr: Expr) -> Iterator[tuple[Var, Expr]]:
    match expr:
        case Apply(fn="convert", args=(inner,)):
            yield from _comparison(inner)
        case Apply(fn="eq", args=(a, b)):
            for x, y in ((a, b), (b, a)):
                match x:
                    case Position(index=Affine(terms=((var, 1),), offset=0), prec=prec):
                        whole = _whole(y, prec, var.size)
                        if whole is not None and var not in variables(whole):
                            yield var, whole
                    case _:
                        pass
        case _:
            return


def _whole(expr: Expr, prec: str, size: int) -> Expr | None:
    """An int expression that equals the position in the same turns, None where `expr` may be a fraction."""
    if not is_float(prec):
        return expr
    # Whole numbers below 2^24 (2^53) are exact as floats.
    limit = {"f32": 2**24, "f64": 2**53}.get(prec, 0)
    match expr:
        case Apply(fn="convert", args=(inner,)) if not is_float(precision(inner)) and size <= limit:
            return inner
        case _:
            return None


def _at(a: Assign, hot: _Hot) -> Assign | None:
    """The assignment with the loop of a one-hot factor replaced by its position."""
    var = hot.var
    if var not in a.loops:
        return None
    loops = tuple(v for v in a.loops if v is not var)
    used = [i for i in a.target.index if var in _index_vars(i)]
    if used and (len(used) > 1 or used[0] != Affine.of(var)):
        return None
    if used and not all(_exactly(i, size, var) for i, size in zip(a.target.index, a.target.buffer.shape, strict=True)):
        return None
    value = _moved(hot.rest, var, hot.position)
    if value is None:
        return None
    if not used and not _guards(hot.rest, var):
        # Nothing that is read says whether the position is in range.
        value = _in_range(hot.position, var.size, value)
    target = a.target
    if used:
        index = tuple(Dynamic(hot.position) if i == Affine.of(var) else i for i in target.index)
        target = Access(target.buffer, index, True)
    return Assign(target, a.accum, a.fresh, loops, value, a.origin)


def _exactly(index: object, size: int, var: Var) -> bool:
    return index != Affine.of(var) or size == var.size


def _index_vars(index: Affine | Dynamic) -> list[Var]:
    return [v for v, _ in index.terms] if isinstance(index, Affine) else list(variables(index.value))


def _guards(expr: Expr, var: Var) -> bool:
    """Whether the product is 0 anyway where `var` would be out of range: a factor is read at it, on an axis of its size."""
    match expr:
        case Access(buffer=buffer, index=index, guarded=False):
            return any(i == Affine.of(var) and s == var.size for i, s in zip(index, buffer.shape, strict=True))
        case Apply(fn="mul", args=args):
            return any(_guards(x, var) for x in args)
        case Apply(fn="convert" | "neg", args=args):
            return _guards(args[0], var)
        case _:
            return False


def _moved(expr: Expr, var: Var, at: Expr) -> Expr | None:
    """The expression at the position `at` of `var`, None where it cannot be said."""
    if var not in variables(expr):
        return expr
    match expr:
        case Position(index=Affine(terms=((v, 1),), offset=0), prec=prec) if v is var:
            return convert(at, prec)
        case Access(buffer=buffer, index=index, guarded=guarded):
            if guarded:
                return None
            new: list[Affine | Dynamic] = []
            for i in index:
                if var not in _index_vars(i):
                    new.append(i)
                elif i == Affine.of(var):
                    new.append(Dynamic(at))
                else:
                    return None
            return Access(buffer, tuple(new), True, 0)
        case Apply(fn=fn, args=args, prec=prec):
            parts: list[Expr] = []
            for x in args:
                part = _moved(x, var, at)
                if part is None:
                    return None
                parts.append(part)
            return Apply(fn, tuple(parts), prec)
        case Random():
            return None
        case _:
            return None


def _in_range(position: Expr, size: int, value: Expr) -> Expr:
    """`value` where 0 ≤ position < size, else 0."""
    prec = precision(position)
    low = Apply("ge", (position, const(0, prec)), "u8")
    high = Apply("lt", (position, const(size, prec)), "u8")
    return Apply("where", (Apply("and", (low, high), "u8"), value, const(0, precision(value))), precision(value))
