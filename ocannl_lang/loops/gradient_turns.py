"""What the operands of one value receive, from its nest of turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import replace

from ocannl_lang.graph.dtypes import compute_precision, is_float
from ocannl_lang.graph.ir import Value
from ocannl_lang.graph.primitives import PRIMITIVES
from ocannl_lang.loops.gradient_sums import Contribution, Gradient
from ocannl_lang.loops.ir import Access, Apply, Buffer, Const, Expr
from ocannl_lang.loops.lower_expr import apply, compare, const, convert, div, mul, precision, where
from ocannl_lang.loops.lower_nest import Nest, Turn, Writer
from ocannl_lang.loops.lower_shapes import whole
from ocannl_lang.source import Span

Slope = Callable[[Turn, Expr], Expr]
"""From the gradient of the target at a turn to the gradient of the turn's value."""


def contributions_of(
    writer: Writer, nest: Nest, buffer: Buffer, gradient: Gradient, wanted: Set[Value], origin: Span | None
) -> Iterator[tuple[Value, Contribution]]:
    """For each wanted operand of each turn what it receives. `buffer` holds the value, `gradient` its gradient."""
    turns = [t for t in nest.turns if any(v in wanted for _, v in t.leaves)]
    if not turns:
        return
    if nest.once or nest.accum in ("set", "add"):
        arriving, slope = gradient, _same
    elif nest.accum == "mul":
        arriving, slope = gradient, _product_slope(writer, nest, buffer, origin)
    else:
        arriving, slope = _shared(writer, nest, buffer, gradient, origin), _extremum_slope(buffer)
    for turn in turns:
        g = _at(arriving, turn, precision(turn.value))
        if nest.divisor is not None:
            g = div(g, convert(_divisor(nest.divisor, turn), precision(g)))
        stored = nest.once and nest.divisor is None and buffer.prec == precision(turn.value)
        result = _read(buffer, turn) if stored else turn.value
        leaves = {id(access): value for access, value in turn.leaves if value in wanted}
        for access, received in backward(turn.value, result, slope(turn, g), leaves):
            gate = arriving if isinstance(arriving, Buffer) else None
            yield leaves[id(access)], Contribution(turn.loops, access.index, access.guarded, received, gate)


def backward(expr: Expr, result: Expr, g: Expr, leaves: dict[int, Value]) -> Iterator[tuple[Access, Expr]]:
    """What each of the accesses `leaves` (by identity) in an expression receives from the gradient `g` of its value."""
    if isinstance(expr, Access):
        if id(expr) in leaves:
            yield expr, g
        return
    if not isinstance(expr, Apply) or not _has(expr, leaves):
        return
    if expr.fn == "convert" and isinstance(expr.args[0], Access):
        # The sum narrows it, once.
        yield expr.args[0], g
        return
    received = PRIMITIVES[expr.fn].derivative(expr.args, result, g)
    for arg, part in zip(expr.args, received, strict=True):
        if part is not None:
            yield from backward(arg, arg, part, leaves)


def _has(expr: Expr, leaves: dict[int, Value]) -> bool:
    match expr:
        case Access():
            return id(expr) in leaves
        case Apply(args=args):
            return any(_has(a, leaves) for a in args)
        case _:
            return False


def _same(turn: Turn, g: Expr) -> Expr:
    return g


def _at(gradient: Gradient, turn: Turn, prec: str) -> Expr:
    return convert(gradient if isinstance(gradient, Const) else _read(gradient, turn), prec)


def _read(buffer: Buffer, turn: Turn) -> Access:
    return Access(buffer, turn.index, turn.guarded, 0.0 if is_float(buffer.prec) else 0)


def _divisor(divisor: Buffer | int, turn: Turn) -> Expr:
    if isinstance(divisor, int):
        return const(divisor, "f64")
    return Access(divisor, turn.index, turn.guarded, 1.0)


# ---------------------------------------------------------------- maxima and minima


def _reaches(buffer: Buffer, turn: Turn) -> Expr:
    """Whether a turn is one of those that the extreme was taken from."""
    return compare("eq", convert(turn.value, buffer.prec), _read(buffer, turn))


def _shared(writer: Writer, nest: Nest, buffer: Buffer, gradient: Gradient, origin: Span | None) -> Gradient:
    """The gradient divided by the number of turns that tie for the extreme."""
    prec = compute_precision(buffer.prec)
    one, zero = const(1, prec), const(0, prec)
    count = writer.buffer(f"{buffer.name}.ties", buffer.shape, prec)
    ties = tuple(replace(t, value=where(_reaches(buffer, t), one, zero), leaves=()) for t in nest.turns)
    writer.nest(Nest("add", prec, ties), count, origin)
    target, loops = whole(writer.buffer(f"{buffer.name}.share", buffer.shape, prec))
    here = gradient if isinstance(gradient, Const) else Access(gradient, target.index)
    each = div(convert(here, prec), apply("max", Access(count, target.index), one))
    writer.assign(target, "set", loops, each, origin)
    return target.buffer


def _extremum_slope(buffer: Buffer) -> Slope:
    return lambda turn, g: where(_reaches(buffer, turn), g, const(0, precision(g)))


# ---------------------------------------------------------------- products


def _product_slope(writer: Writer, nest: Nest, buffer: Buffer, origin: Span | None) -> Slope:
    """Of a product of turns, exact where factors are 0: the product of the *other* factors.

    From the number of zeros and the product of the factors that are not 0.
    """
    prec = nest.working
    one, zero = const(1, prec), const(0, prec)

    def is_zero(turn: Turn) -> Expr:
        return compare("eq", turn.value, zero)

    zeros = writer.buffer(f"{buffer.name}.zeros", buffer.shape, prec)
    counted = tuple(replace(t, value=where(is_zero(t), one, zero), leaves=()) for t in nest.turns)
    writer.nest(Nest("add", prec, counted), zeros, origin)
    product = writer.buffer(f"{buffer.name}.nonzero", buffer.shape, prec)
    factors = tuple(replace(t, value=where(is_zero(t), one, t.value), leaves=()) for t in nest.turns)
    writer.nest(Nest("mul", prec, factors), product, origin)

    def slope(turn: Turn, g: Expr) -> Expr:
        others, count = _read(product, turn), _read(zeros, turn)
        at_zero = where(compare("eq", count, one), others, zero)
        elsewhere = where(compare("eq", count, zero), div(others, turn.value), zero)
        return mul(g, where(is_zero(turn), at_zero, elsewhere))

    return slope
