"""Building scalar expressions of the loops: precision of an expression, conversions, arithmetic that folds the trivial
cases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ocannl_lang.graph.dtypes import is_float
from ocannl_lang.loops.ir import Access, Affine, Apply, Const, Dynamic, Expr, Index, Position, Random, Var


def precision(expr: Expr) -> str:
    """The precision of an expression's value."""
    return expr.buffer.prec if isinstance(expr, Access) else expr.prec


def const(value: float | int, prec: str) -> Const:
    """A number, held as a float or an int as `prec` asks."""
    return Const(float(value) if is_float(prec) else int(value), prec)


def convert(expr: Expr, prec: str) -> Expr:
    """`expr` in precision `prec`; nothing to do if it has it."""
    if precision(expr) == prec:
        return expr
    if isinstance(expr, Const) and (is_float(prec) or isinstance(expr.value, int)):
        return const(expr.value, prec)
    if isinstance(expr, Position):
        return Position(expr.index, prec)
    return Apply("convert", (expr,), prec)


def apply(fn: str, *args: Expr) -> Expr:
    """A primitive on operands of one precision, with that precision as its result's."""
    return Apply(fn, args, precision(args[0]))


def compare(fn: str, a: Expr, b: Expr) -> Expr:
    return Apply(fn, (a, b), "u8")


def where(condition: Expr, a: Expr, b: Expr) -> Expr:
    return Apply("where", (condition, a, b), precision(a))


def mul(a: Expr, b: Expr) -> Expr:
    if is_number(a, 1):
        return b
    if is_number(b, 1):
        return a
    if isinstance(a, Const) and isinstance(b, Const):
        return const(a.value * b.value, a.prec)
    return apply("mul", a, b)


def add(a: Expr, b: Expr) -> Expr:
    return apply("add", a, b)


def sub(a: Expr, b: Expr) -> Expr:
    return apply("sub", a, b)


def div(a: Expr, b: Expr) -> Expr:
    if isinstance(a, Const) and isinstance(b, Const) and b.value and is_float(a.prec):
        return const(a.value / b.value, a.prec)
    return a if is_number(b, 1) else apply("div", a, b)


def neg(a: Expr) -> Expr:
    return const(-a.value, a.prec) if isinstance(a, Const) else apply("neg", a)


def scale(a: Expr, by: float) -> Expr:
    """`a` times a number."""
    return mul(a, const(by, precision(a)))


def is_number(expr: Expr, value: float) -> bool:
    return isinstance(expr, Const) and expr.value == value


# ---------------------------------------------------------------- positions


def affine(terms: Mapping[Var, int], offset: int = 0) -> Affine:
    """The canonical form: no zero coefficient, in the order of variable ids."""
    return Affine(tuple(sorted(((v, c) for v, c in terms.items() if c), key=lambda t: t[0].id)), offset)


def guarded(index: Sequence[Index], shape: Sequence[int]) -> bool:
    """Whether a position may lie outside."""
    return any(isinstance(i, Dynamic) or _outside(i, size) for i, size in zip(index, shape, strict=True))


def _outside(index: Affine, size: int) -> bool:
    low, high = index.bounds()
    return low < 0 or high >= size


def substitute(expr: Expr, by: Mapping[Var, Affine]) -> Expr:
    """`expr` with loop variables replaced by positions."""
    return map_accesses(expr, lambda a: a, by)


def substitute_index(index: Index, by: Mapping[Var, Affine]) -> Index:
    if isinstance(index, Dynamic):
        return Dynamic(substitute(index.value, by))
    return substitute_affine(index, by)


def substitute_affine(index: Affine, by: Mapping[Var, Affine]) -> Affine:
    terms: dict[Var, int] = {}
    offset = index.offset
    for var, c in index.terms:
        replacement = by.get(var)
        if replacement is None:
            terms[var] = terms.get(var, 0) + c
            continue
        offset += c * replacement.offset
        for v, k in replacement.terms:
            terms[v] = terms.get(v, 0) + c * k
    return affine(terms, offset)


def map_accesses(expr: Expr, change: Callable[[Access], Expr], by: Mapping[Var, Affine]) -> Expr:
    """`expr` with loop variables replaced, then each access changed."""
    match expr:
        case Const():
            return expr
        case Position(index=index, prec=prec):
            return Position(substitute_affine(index, by), prec)
        case Access(buffer=buffer, index=index, guarded=guarded, fill=fill):
            return change(Access(buffer, tuple(substitute_index(i, by) for i in index), guarded, fill))
        case Apply(fn=fn, args=args, prec=prec):
            return Apply(fn, tuple(map_accesses(a, change, by) for a in args), prec)
        case Random(dist=dist, stream=stream, counter=counter, position=position, prec=prec):
            inner = None if counter is None else map_accesses(counter, change, by)
            return Random(dist, stream, inner, substitute_affine(position, by), prec)


def variables(expr: Expr) -> dict[Var, None]:
    """The loop variables that occur in `expr`, in order of occurrence."""
    found: dict[Var, None] = {}
    stack: list[Expr] = [expr]
    while stack:
        e = stack.pop()
        match e:
            case Position(index=index):
                found.update((v, None) for v, _ in index.terms)
            case Access(index=index):
                for i in index:
                    if isinstance(i, Dynamic):
                        stack.append(i.value)
                    else:
                        found.update((v, None) for v, _ in i.terms)
            case Apply(args=args):
                stack.extend(reversed(args))
            case Random(counter=counter, position=position):
                found.update((v, None) for v, _ in position.terms)
                if counter is not None:
                    stack.append(counter)
            case Const():
                pass
    return found
