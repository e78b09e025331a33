"""Scalar expressions as values."""

from __future__ import annotations

from ocannl_lang.codegen.llvm import primitives, random
from ocannl_lang.codegen.llvm.access import load
from ocannl_lang.codegen.llvm.context import Context, Place
from ocannl_lang.codegen.llvm.ops import const
from ocannl_lang.codegen.llvm.types import FLOATS, Value
from ocannl_lang.loops.ir import Access, Affine, Apply, Const, Expr, Position, Random


def evaluate(ctx: Context, expr: Expr) -> Value:
    """The value of an expression at the current turn: a vector where it differs between lanes, else a number."""
    match expr:
        case Const(value=value, prec=prec):
            return const(value, prec)
        case Access():
            return load(ctx, expr)
        case Apply(fn=fn, args=args, prec=prec):
            return primitives.apply(ctx.o, fn, [evaluate(ctx, a) for a in args], args, prec)
        case Position(index=index, prec=prec):
            return position(ctx, index, prec)
        case Random():
            return random.draw(ctx, expr)


def position(ctx: Context, index: Affine, prec: str) -> Value:
    """An affine position as a number of `prec`."""
    o = ctx.o
    place = ctx.place(index)
    start = ctx.number(Place(place.offset, place.base, 0))
    if place.step == 0:
        return o.convert(start, prec)
    low, high = index.bounds()
    ints = "i32" if low >= -(2**31) and high < 2**31 and prec not in ("i64", "f64") else "i64"
    lanes = o.iota(ctx.lanes, ints, 0, place.step)
    at = o.add(lanes, o.convert(start, ints))
    return o.convert(at, prec) if prec in FLOATS or prec != ints else at
