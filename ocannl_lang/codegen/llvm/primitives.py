"""The primitives of `graph.primitives` as instructions."""

from __future__ import annotations

from collections.abc import Callable

from ocannl_lang.codegen.llvm import math
from ocannl_lang.codegen.llvm.ops import Ops, const
from ocannl_lang.codegen.llvm.types import FLOATS, NARROW, SIZES, UNSIGNED, Value
from ocannl_lang.loops.ir import Accum, Const, Expr

Emit = Callable[[Ops, "list[Value]", str], Value]


def apply(o: Ops, fn: str, args: list[Value], exprs: tuple[Expr, ...], prec: str) -> Value:
    """The value of primitive `fn`; `exprs` are the operands as written, for those that a constant makes simpler."""
    if fn != "convert" and (prec in NARROW or any(a.prec in NARROW for a in args)):
        # Computed in f32, rounded once.
        wide = [o.convert(a, "f32") if a.prec in NARROW else a for a in args]
        if prec not in NARROW:
            return apply(o, fn, wide, exprs, prec)
        return o.convert(apply(o, fn, wide, exprs, "f32"), prec)
    if fn == "pow":
        exponent = exprs[1]
        if isinstance(exponent, Const) and float(exponent.value).is_integer() and abs(exponent.value) <= 64:
            return math.integer_power(o, args[0], int(exponent.value))
    if fn == "pow" and prec not in FLOATS:
        return _integer_pow(o, args[0], args[1])
    return EMITTERS[fn](o, args, prec)


def accumulate(o: Ops, accum: Accum, old: Value, new: Value) -> Value:
    """`old` (accum)= `new`."""
    if old.prec in NARROW and accum != "set":
        return o.convert(accumulate(o, accum, o.convert(old, "f32"), o.convert(new, "f32")), old.prec)
    match accum:
        case "set":
            return new
        case "add":
            return o.add(old, new)
        case "mul":
            return o.mul(old, new)
        case "max":
            return o.max(old, new)
        case "min":
            return o.min(old, new)
        case "or":
            return o.convert(o.bor(truth(o, old), truth(o, new)), old.prec)
        case "and":
            return o.convert(o.band(truth(o, old), truth(o, new)), old.prec)


def truth(o: Ops, a: Value) -> Value:
    """Whether a number is not 0."""
    return o.convert(a, "bool")


def _number(o: Ops, condition: Value, prec: str) -> Value:
    return o.convert(condition, prec)


def _compare(how: str) -> Emit:
    return lambda o, a, prec: _number(o, o.compare(how, a[0], a[1]), prec)


def _divided(o: Ops, a: Value, b: Value, op: str) -> tuple[Value, Value]:
    """Integer quotient or remainder towards zero with a divisor that cannot trap, and whether the divisor was 0."""
    zero = o.compare("eq", b, const(0, b.prec))
    safe = o.select(zero, const(1, b.prec), b)
    if b.prec not in UNSIGNED:
        # The least number divided by -1 overflows: take it as a negation.
        minus = o.compare("eq", b, const(-1, b.prec))
        safe = o.select(minus, const(1, b.prec), safe)
        q = o.binary("s" + op, a, safe)
        return (o.select(minus, o.neg(q), q) if op == "div" else q), zero
    return o.binary("u" + op, a, safe), zero


def _quotient(o: Ops, a: list[Value], prec: str) -> Value:
    if prec in FLOATS:
        return o.fdiv(a[0], a[1])
    q, zero = _divided(o, a[0], a[1], "div")
    return o.select(zero, const(0, prec), q)


def _floordiv(o: Ops, a: list[Value], prec: str) -> Value:
    x, y = a
    if prec in FLOATS:
        return _float_floordiv(o, x, y)
    q, zero = _divided(o, x, y, "div")
    if prec not in UNSIGNED:
        r = o.sub(x, o.mul(q, y))
        apart = o.compare("lt", o.bxor(r, y), const(0, prec))
        down = o.band(o.compare("ne", r, const(0, prec)), apart)
        q = o.sub(q, o.convert(down, prec))
    return o.select(zero, const(0, prec), q)


def _float_floordiv(o: Ops, x: Value, y: Value) -> Value:
    """⌊x/y⌋ from the exact remainder, as numpy has it: 1 // 0.1 is 9."""
    r = _remainder(o, x, y)
    zero, one = const(0.0, x.prec), const(1.0, x.prec)
    q = o.fdiv(o.sub(x, r), y)
    q = o.sub(q, o.select(_apart(o, r, y), one, zero))
    whole = o.rounded("floor", q)
    whole = o.add(whole, o.select(o.compare("gt", o.sub(q, whole), const(0.5, x.prec)), one, zero))
    exact = o.fdiv(x, y)
    whole = o.select(o.compare("eq", q, zero), o.intrinsic("copysign", zero, exact), whole)
    return o.select(o.compare("eq", y, zero), exact, whole)


def _float_mod(o: Ops, x: Value, y: Value) -> Value:
    """x - y·⌊x/y⌋ with the divisor's sign."""
    r = _remainder(o, x, y)
    zero = const(0.0, x.prec)
    r = o.select(_apart(o, r, y), o.add(r, y), r)
    return o.select(o.compare("eq", r, zero), o.intrinsic("copysign", zero, y), r)


def _apart(o: Ops, r: Value, y: Value) -> Value:
    """Whether a remainder is not 0 and has the other sign than the divisor."""
    zero = const(0.0, r.prec)
    return o.band(o.compare("ne", r, zero), o.bxor(o.compare("lt", r, zero), o.compare("lt", y, zero)))


def _remainder(o: Ops, x: Value, y: Value) -> Value:
    """x - y·trunc(x/y), with x's sign; NaN for an infinite x or y = 0. Exact where the quotient is below 2^24 (2^53)."""
    r = o.fma(o.neg(o.rounded("trunc", o.fdiv(x, y))), y, x) if o.target.fma else _split_remainder(o, x, y)
    size = o.abs(y)
    zero = const(0.0, x.prec)
    # The rounded quotient may be one too great or too small.
    wrong = o.band(o.compare("ne", r, zero), o.bxor(o.compare("lt", r, zero), o.compare("lt", x, zero)))
    r = o.select(wrong, o.add(r, o.intrinsic("copysign", size, x)), r)
    over = o.compare("ge", o.abs(r), size)
    r = o.select(over, o.sub(r, o.intrinsic("copysign", size, r)), r)
    r = o.select(o.compare("lt", o.abs(x), size), x, r)
    bad = o.bor(o.compare("eq", o.abs(x), const(float("inf"), x.prec)), o.compare("eq", y, zero))
    return o.select(bad, const(float("nan"), x.prec), r)


def _split_remainder(o: Ops, x: Value, y: Value) -> Value:
    """x - trunc(x/y)·y without a fused multiply-add: in f64 the product of f32 numbers is exact."""
    if x.prec == "f64":
        return o.sub(x, o.mul(o.rounded("trunc", o.fdiv(x, y)), y))
    a, b = o.convert(x, "f64"), o.convert(y, "f64")
    return o.convert(o.sub(a, o.mul(o.rounded("trunc", o.fdiv(a, b)), b)), "f32")


def _mod(o: Ops, a: list[Value], prec: str) -> Value:
    x, y = a
    if prec in FLOATS:
        return _float_mod(o, x, y)
    r, zero = _divided(o, x, y, "rem")
    if prec not in UNSIGNED:
        apart = o.band(o.compare("ne", r, const(0, prec)), o.compare("lt", o.bxor(r, y), const(0, prec)))
        r = o.select(apart, o.add(r, y), r)
    return o.select(zero, const(0, prec), r)


def _integer_pow(o: Ops, a: Value, b: Value) -> Value:
    """a^b modulo the range of the precision, by the bits of b."""
    result: Value = const(1, a.prec)
    square, left = a, b
    for _ in range(SIZES[b.prec] * 8 - 1):
        odd = o.compare("ne", o.band(left, const(1, b.prec)), const(0, b.prec))
        result = o.select(odd, o.mul(result, square), result)
        left = o.lshr(left, 1)
        square = o.mul(square, square)
    return result


def _relu(o: Ops, a: list[Value], prec: str) -> Value:
    # In this order NaN stays NaN, and it is one instruction.
    return a[0] if prec in UNSIGNED else o.select(o.compare("gt", const(0, prec), a[0]), const(0, prec), a[0])


def _sign(o: Ops, a: list[Value], prec: str) -> Value:
    x, zero, one = a[0], const(0, prec), const(1, prec)
    if prec in UNSIGNED:
        return o.select(o.compare("ne", x, zero), one, zero)
    up = o.compare("gt", x, zero)
    down = o.compare("lt", x, zero)
    return o.select(up, one, o.select(down, const(-1, prec), x if prec in FLOATS else zero))


def _unary(f: Callable[[Ops, Value], Value]) -> Emit:
    return lambda o, a, prec: f(o, a[0])


def _rounding(name: str) -> Emit:
    return lambda o, a, prec: o.rounded(name, a[0]) if prec in FLOATS else a[0]


def _sat01(o: Ops, a: list[Value], prec: str) -> Value:
    return _clamp(o, [a[0], const(0, prec), const(1, prec)], prec)


def _clamp(o: Ops, a: list[Value], prec: str) -> Value:
    x, low, high = a
    x = o.select(o.compare("lt", x, low), low, x)
    return o.select(o.compare("gt", x, high), high, x)


def _sqrt(o: Ops, a: list[Value], prec: str) -> Value:
    return o.intrinsic("sqrt", a[0])


def _where(o: Ops, a: list[Value], prec: str) -> Value:
    return o.select(truth(o, a[0]), a[1], a[2])


def _recip(o: Ops, x: Value) -> Value:
    return _quotient(o, [const(1, x.prec), x], x.prec)


EMITTERS: dict[str, Emit] = {
    "add": lambda o, a, prec: o.add(a[0], a[1]),
    "sub": lambda o, a, prec: o.sub(a[0], a[1]),
    "mul": lambda o, a, prec: o.mul(a[0], a[1]),
    "div": _quotient,
    "floordiv": _floordiv,
    "mod": _mod,
    "neg": _unary(Ops.neg),
    "pow": lambda o, a, prec: math.power(o, a[0], a[1]),
    "min": lambda o, a, prec: o.min(a[0], a[1]),
    "max": lambda o, a, prec: o.max(a[0], a[1]),
    "eq": _compare("eq"),
    "ne": _compare("ne"),
    "lt": _compare("lt"),
    "le": _compare("le"),
    "gt": _compare("gt"),
    "ge": _compare("ge"),
    "and": lambda o, a, prec: _number(o, o.band(truth(o, a[0]), truth(o, a[1])), prec),
    "or": lambda o, a, prec: _number(o, o.bor(truth(o, a[0]), truth(o, a[1])), prec),
    "not": lambda o, a, prec: _number(o, o.compare("eq", a[0], const(0, a[0].prec)), prec),
    "where": _where,
    "relu": _relu,
    "sigmoid": _unary(math.sigmoid),
    "tanh": _unary(math.tanh),
    "exp": _unary(math.exp),
    "log": _unary(math.log),
    "exp2": _unary(math.exp2),
    "log2": _unary(math.log2),
    "sin": _unary(math.sin),
    "cos": _unary(math.cos),
    "sqrt": _sqrt,
    "rsqrt": lambda o, a, prec: _recip(o, o.intrinsic("sqrt", a[0])),
    "recip": _unary(_recip),
    "abs": _unary(Ops.abs),
    "sign": _sign,
    "floor": _rounding("floor"),
    "ceil": _rounding("ceil"),
    "round": _rounding("roundeven"),
    "erf": _unary(math.erf),
    "gelu": _unary(math.gelu),
    "gelu_tanh": _unary(math.gelu_tanh),
    "silu": _unary(math.silu),
    "softplus": _unary(math.softplus),
    "sat01": _sat01,
    "fma": lambda o, a, prec: o.fma(a[0], a[1], a[2]),
    "clamp": _clamp,
    "convert": lambda o, a, prec: o.convert(a[0], prec),
    "stop_gradient": lambda o, a, prec: a[0],
}
