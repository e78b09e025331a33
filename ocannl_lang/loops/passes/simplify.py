"""Algebra and constants: operations that do nothing, operations on numbers, loops of one turn, guards that always hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ocannl_lang.graph.dtypes import dtype, is_float
from ocannl_lang.graph.numeric import convert as numpy_convert
from ocannl_lang.graph.primitives import PRIMITIVES
from ocannl_lang.loops.ir import Access, Affine, Apply, Assign, Const, Dynamic, Expr, Index, Position, Program, Random
from ocannl_lang.loops.lower_expr import const, convert, is_number, precision, substitute, substitute_index


def simplify(program: Program) -> Program:
    """Every expression and every nest in its simplest form; assignments that never write are left out."""
    assigns = [s for a in program.assigns if (s := _assign(a)) is not None]
    return Program(program.name, program.inputs, program.outputs, assigns, program.stores)


def _assign(a: Assign) -> Assign | None:
    single = {v: Affine() for v in a.loops if v.size == 1}
    loops, target, value = a.loops, a.target, a.value
    if single:
        loops = tuple(v for v in loops if v not in single)
        target = Access(target.buffer, tuple(substitute_index(i, single) for i in target.index), target.guarded)
        value = substitute(value, single)
    index = tuple(_index(i) for i in target.index)
    guarded = target.guarded and not _inside(index, target.buffer.shape)
    target = Access(target.buffer, index, guarded)
    if not a.fresh and (any(v.size == 0 for v in loops) or _outside(index, target.buffer.shape)):
        return None
    return Assign(target, a.accum, a.fresh, loops, simplified(value), a.origin)


def simplified(expr: Expr) -> Expr:
    """An expression of equal value (up to the sign of zeros) with less to do."""
    match expr:
        case Const():
            return expr
        case Position(index=index, prec=prec):
            return expr if index.terms else _number(index.offset, prec)
        case Access(buffer=buffer, index=index, guarded=guarded, fill=fill):
            return _access(Access(buffer, tuple(_index(i) for i in index), guarded, fill))
        case Random(dist=dist, stream=stream, counter=counter, position=position, prec=prec):
            return Random(dist, stream, None if counter is None else simplified(counter), position, prec)
        case Apply(fn=fn, args=args, prec=prec):
            return _apply(fn, tuple(simplified(a) for a in args), prec)


def _index(index: Index) -> Index:
    if isinstance(index, Affine):
        return index
    value = simplified(index.value)
    match value:
        case Const(value=number):
            return Affine((), int(number))
        case Position(index=position):
            return position
        case _:
            return Dynamic(value)


def _access(access: Access) -> Expr:
    shape = access.buffer.shape
    if _outside(access.index, shape):
        return _number(access.fill, access.buffer.prec)
    if access.guarded and _inside(access.index, shape):
        return Access(access.buffer, access.index)
    return access


def _inside(index: tuple[Index, ...], shape: tuple[int, ...]) -> bool:
    for i, size in zip(index, shape, strict=True):
        if isinstance(i, Dynamic):
            return False
        low, high = i.bounds()
        if low < 0 or high >= size:
            return False
    return True


def _outside(index: tuple[Index, ...], shape: tuple[int, ...]) -> bool:
    """Whether no position is ever in range."""
    for i, size in zip(index, shape, strict=True):
        if size == 0:
            return True
        if isinstance(i, Affine) and all(v.size for v, _ in i.terms):
            low, high = i.bounds()
            if high < 0 or low >= size:
                return True
    return False


# ---------------------------------------------------------------- operations


def _apply(fn: str, args: tuple[Expr, ...], prec: str) -> Expr:
    if fn == "stop_gradient":
        return args[0]
    if fn == "convert":
        return _convert(args[0], prec)
    if all(isinstance(a, Const) for a in args) and fn in PRIMITIVES:
        return _folded(fn, [a for a in args if isinstance(a, Const)], prec)
    rule = _RULES.get(fn)
    found = None if rule is None else rule(args, prec)
    return Apply(fn, args, prec) if found is None else found


def _convert(a: Expr, prec: str) -> Expr:
    of = precision(a)
    if of == prec:
        return a
    match a:
        case Const():
            return _number(numpy_convert(np.asarray(a.value, dtype(of)), dtype(prec)).item(), prec)
        case Position():
            return convert(a, prec)
        case Apply(fn="convert", args=(inner,)) if _holds(of, precision(inner)) and _direct(of, precision(inner), prec):
            return _convert(inner, prec)
        case _:
            return Apply("convert", (a,), prec)


def _direct(middle: str, inner: str, prec: str) -> bool:
    # A float saturates on its way to an int, an int wraps.
    return is_float(prec) or not is_float(middle) or _holds(prec, inner)


def _holds(wide: str, narrow: str) -> bool:
    """Whether every value of `narrow` is one of `wide`."""
    order = ("u8", "i32", "i64") if wide in ("i32", "i64") else ("u8", "f32", "f64") if wide == "f32" else ()
    if wide == "f64":
        return narrow in ("u8", "u16", "i32", "u32", "f32", "f16", "bf16")
    return narrow in order and order.index(narrow) < order.index(wide)


def _folded(fn: str, args: list[Const], prec: str) -> Expr:
    with np.errstate(all="ignore"):
        values = [np.asarray(a.value).astype(dtype(a.prec)) for a in args]
        return _number(np.asarray(PRIMITIVES[fn].numpy(*values)).astype(dtype(prec)).item(), prec)


def _number(value: float | int, prec: str) -> Const:
    if isinstance(value, float) and not is_float(prec) and not math.isfinite(value):
        return Const(value, prec)
    return const(value, prec)


def _add(args: tuple[Expr, ...], prec: str) -> Expr | None:
    a, b = args
    if is_number(a, 0):
        return b
    if is_number(b, 0):
        return a
    match a, b:
        case _, Apply(fn="neg", args=(x,)):
            return Apply("sub", (a, x), prec)
        case Apply(fn="neg", args=(x,)), _:
            return Apply("sub", (b, x), prec)
        case _:
            return None


def _sub(args: tuple[Expr, ...], prec: str) -> Expr | None:
    a, b = args
    if is_number(b, 0):
        return a
    if is_number(a, 0):
        return _apply("neg", (b,), prec)
    match b:
        case Apply(fn="neg", args=(x,)):
            return Apply("add", (a, x), prec)
        case _:
            return None


def _mul(args: tuple[Expr, ...], prec: str) -> Expr | None:
    a, b = args
    for x, y in ((a, b), (b, a)):
        if is_number(x, 1):
            return y
        if is_number(x, -1):
            return _apply("neg", (y,), prec)
        if is_number(x, 0) and not is_float(prec):
            return x
    return None


def _div(args: tuple[Expr, ...], prec: str) -> Expr | None:
    a, b = args
    if is_number(b, 1):
        return a
    if isinstance(b, Const) and is_float(prec) and _power_of_two(b.value):
        return Apply("mul", (a, const(1.0 / b.value, prec)), prec)
    return None


def _power_of_two(value: float | int) -> bool:
    return value != 0 and math.isfinite(value) and abs(math.frexp(value)[0]) == 0.5 and abs(math.log2(abs(value))) < 100


def _neg(args: tuple[Expr, ...], prec: str) -> Expr | None:
    match args[0]:
        case Apply(fn="neg", args=(x,)):
            return x
        case Apply(fn="sub", args=(x, y)):
            return Apply("sub", (y, x), prec)
        case _:
            return None


def _where(args: tuple[Expr, ...], prec: str) -> Expr | None:
    condition, a, b = args
    if isinstance(condition, Const):
        return a if condition.value else b
    if isinstance(condition, Apply) and condition.fn in ("not", "convert") and len(condition.args) == 1:
        inner = condition.args[0]
        if condition.fn == "not":
            return _apply("where", (inner, b, a), prec)
        if precision(inner) == "u8":
            return _apply("where", (inner, a, b), prec)
    return a if a == b else None


def _pow(args: tuple[Expr, ...], prec: str) -> Expr | None:
    a, b = args
    if is_number(b, 1):
        return a
    if is_number(b, 2):
        return Apply("mul", (a, a), prec)
    return None


def _not(args: tuple[Expr, ...], prec: str) -> Expr | None:
    # Only an integer comparison has an exact opposite: NaN fails both.
    opposite = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
    match args[0]:
        case Apply(fn=fn, args=(a, b)) if fn in opposite and (not is_float(precision(a)) or fn in ("eq", "ne")):
            return Apply(opposite[fn], (a, b), prec)
        case _:
            return None


def _idempotent(name: str) -> Callable[[tuple[Expr, ...], str], Expr | None]:
    def rule(args: tuple[Expr, ...], prec: str) -> Expr | None:
        match args[0]:
            case Apply(fn=fn) if fn == name:
                return args[0]
            case _:
                return None

    return rule


def _same(args: tuple[Expr, ...], prec: str) -> Expr | None:
    return args[0] if args[0] == args[1] else None


_RULES: dict[str, Callable[[tuple[Expr, ...], str], Any]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "neg": _neg,
    "where": _where,
    "pow": _pow,
    "not": _not,
    "relu": _idempotent("relu"),
    "abs": _idempotent("abs"),
    "floor": _idempotent("floor"),
    "max": _same,
    "min": _same,
}
