"""Functions as polynomials on numbers and vectors, for f32 and f64, without calls of any library.

Arguments are reduced to a short interval, where a polynomial of nearly minimal error (Chebyshev fits of the quotients named in the
comments) gives the function; f32 results are within about 2 units in the last place, f64 results to some 1e-15. NaN, infinities,
subnormals and overflow behave as in IEEE libraries. Sines and cosines lose accuracy for arguments above about 1e9.
"""

from __future__ import annotations

from collections.abc import Sequence

from ocannl_lang.codegen.llvm.ops import Ops, const
from ocannl_lang.codegen.llvm.types import Value

_LOG2E = 1.4426950408889634
_LN2 = 0.6931471805599453
# 1.5·2^(bits of the mantissa): adding it rounds to a whole number and puts that into the low bits
_WHOLE = {"f32": 12582912.0, "f64": 6755399441055744.0}
_INF = float("inf")
_NAN = float("nan")

# (e^r - 1 - r) / r² on ±ln2/2
_EXP = {
    "f32": (0.000198919813, 0.00139345419, 0.00833331002, 0.0416664568, 0.166666667, 0.5),
    "f64": (
        2.0915442297780116e-09, 2.5106274733573296e-08, 2.75572718102198e-07, 2.755725283351691e-06, 2.4801587327007187e-05,
        0.00019841269876864356, 0.0013888888888883327, 0.008333333333325544, 0.04166666666666667, 0.1666666666666667, 0.5,
    ),
}  # fmt: skip
# 2^r on ±½, by Remez' exchange for the relative error
_EXP2_F32 = (0.000153473201, 0.00134001545, 0.00961848424, 0.0555032808, 0.240226469, 0.693147206, 1.0)
# (log(1 + f) - f + f²/2) / f³ on √½ - 1 … √2 - 1
_LOG_F32 = (
    0.0697162054,
    -0.114797486,
    0.116854236,
    -0.124256857,
    0.142490571,
    -0.166678024,
    0.200007158,
    -0.24999997,
    0.333333312,
)
# (log((1 + s) / (1 - s)) / s - 2) / s², in s², for |s| ≤ 3 - 2√2
_LOG_F64 = (
    0.14616460544201926, 0.1533172072201116, 0.1818288915169228, 0.22222211134432315, 0.2857142862597771, 0.399999999998995,
    0.666666666666667,
)  # fmt: skip
# (sin x / x - 1) / x² and (cos x - 1 + x²/2) / x⁴, in x², for |x| ≤ π/4
_SIN = {
    "f32": (2.72493141e-06, -0.00019840082, 0.00833333187, -0.166666667),
    "f64": (
        -7.586576588171073e-13, 1.6058529572267877e-10, -2.5052106219521895e-08, 2.755731921930192e-06, -0.00019841269841265017,
        0.008333333333333331, -0.16666666666666666,
    ),
}  # fmt: skip
_COS = {
    "f32": (-2.73004486e-07, 2.48005964e-05, -0.00138888877, 0.0416666667),
    "f64": (
        4.745804889760674e-14, -1.1470459749675607e-11, 2.087675578389404e-09, -2.7557319221382114e-07, 2.4801587301584618e-05,
        -0.0013888888888888887, 0.041666666666666664,
    ),
}  # fmt: skip
# π/2 in three parts of 33 bits, so that small multiples of each are exact
_HALF_PI = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624871116645580e-21)
# (tanh x / x - 1) / x², in x², for |x| ≤ 0.625
_TANH_F32 = (-0.00609671417, 0.020997179, -0.0538509096, 0.133327697, -0.333333289)
_TANH_F64 = (
    6.485163482793113e-06, -3.12011014257974e-05, 9.257116129556769e-05, -0.0002375906496055562, 0.0005896606577757043,
    -0.0014557754120478055, 0.0035921217511549622, -0.008863235103240878, 0.021869488519008305, -0.05396825396789699,
    0.13333333333333042, -0.3333333333333333,
)  # fmt: skip
# erf x / x - 1, in x², for |x| ≤ 0.9375 (f32), 1 (f64)
_ERF = {
    "f32": (-0.000593330573, 0.0049822151, -0.0267594407, 0.112816294, -0.376124773, 0.128379147),
    "f64": (
        5.957176147748911e-11, -1.1372848856791674e-09, 1.4659775274047436e-08, -1.6350312701054695e-07, 1.6461000484121368e-06,
        -1.4925595266831182e-05, 0.0001205533111164271, -0.000854832698083379, 0.0052239776248180145, -0.026866170645076792,
        0.11283791670954879, -0.3761263890318375, 0.1283791670955126,
    ),
}  # fmt: skip
# -log(erfc t) / t - 1 on 0.9 … 4
_ERFC_F32 = (
    -1.01184519e-06,
    3.37652255e-05,
    -0.000494089608,
    0.00428439239,
    -0.0250934346,
    0.107792232,
    0.634194742,
    0.128888767,
)
# e^(t²) · erfc t · (t + k), in (t - k) / (t + k), on 0 … 10.5 (f32, k = 3), 0 … 28 (f64, k = 4)
_ERFC_WHOLE = {
    "f32": (
        -0.000333150355, -0.000497142238, 0.00307963215, -0.00121720932, -0.0268374257, 0.119527078, -0.310466518,
        0.590228447, -0.883394464, 1.07400691,
    ),
    "f64": (
        -3.227131784144005e-09, -1.490396715699329e-08, 1.0296397494415425e-08, 1.2738540695049036e-07,
        -8.667466799943592e-08, -8.522279909356253e-07, 1.4314173217233973e-06, 4.699262077965546e-06,
        -1.88636825726794e-05, -3.637368094617784e-06, 0.00017681347792436317, -0.0004550520850287462,
        -0.0002809589581115879, 0.006112055557500744, -0.026370053333114825, 0.07638151491851647, -0.17401093724020053,
        0.3308515878775732, -0.540853831313232, 0.7732087022652453, -0.976548729080882, 1.095995661000491,
    ),
}  # fmt: skip


def polynomial(o: Ops, x: Value, coefficients: Sequence[float]) -> Value:
    """Horner's scheme, the highest power first."""
    result = const(coefficients[0], x.prec)
    for c in coefficients[1:]:
        result = o.fma(result, x, const(c, x.prec))
    return result


def _scale(o: Ops, y: Value, n: Value) -> Value:
    """y·2^n for a whole float n of any size that an exponential leaves, in two steps to meet subnormals and overflow."""
    ints, bias, shift = ("i32", 127, 23) if y.prec == "f32" else ("i64", 1023, 52)

    def power(k: Value) -> Value:
        # Adding _WHOLE brings a whole number to the low bits; the shift drops the rest.
        return o.bits(o.shl(o.bits(o.add(k, const(_WHOLE[y.prec] + bias, y.prec)), ints), shift), y.prec)

    half = o.rounded("floor", o.mul(n, const(0.5, y.prec)))
    return o.mul(o.mul(y, power(half)), power(o.sub(n, half)))


def _whole(o: Ops, n: Value) -> Value:
    """The low bits of a whole float of less than 2^51 as i64 (less than 2^22 as i32)."""
    ints = "i32" if n.prec == "f32" else "i64"
    return o.bits(o.add(n, const(_WHOLE[n.prec], n.prec)), ints)


def _float(o: Ops, i: Value, prec: str) -> Value:
    """A small int as a float."""
    if prec == "f32":
        return o.convert(i, prec)
    magic = o.bits(const(_WHOLE[prec], prec), "i64")
    return o.sub(o.bits(o.add(i, magic), prec), const(_WHOLE[prec], prec))


def _clamped(o: Ops, x: Value, low: float, high: float) -> Value:
    """x within bounds; NaN stays."""
    x = o.select(o.compare("lt", x, const(low, x.prec)), const(low, x.prec), x)
    return _at_most(o, x, high)


def _at_most(o: Ops, x: Value, high: float) -> Value:
    """x, or a bound where it is above; NaN stays."""
    return o.select(o.compare("gt", x, const(high, x.prec)), const(high, x.prec), x)


def _exp_of_parts(o: Ops, n: Value, r: Value) -> Value:
    """e^r · 2^n for |r| ≤ ln2/2."""
    p = polynomial(o, r, _EXP[r.prec])
    y = o.fma(o.mul(r, r), p, r)
    return _scale(o, o.add(y, const(1.0, r.prec)), n)


def exp(o: Ops, x: Value) -> Value:
    """e^x."""
    x = _clamped(o, x, -110.0, 100.0) if x.prec == "f32" else _clamped(o, x, -760.0, 720.0)
    n, r = _exp_parts(o, x)
    return _exp_of_parts(o, n, r)


def _plain_exp(o: Ops, x: Value) -> Value:
    """e^x in f32 for -87 ≤ x ≤ 88, where neither the result nor its scale leaves the normal numbers."""
    n, r = _exp_parts(o, x)
    y = o.fma(o.mul(r, r), polynomial(o, r, _EXP[r.prec]), r)
    scale = o.bits(o.shl(o.bits(o.add(n, const(_WHOLE["f32"] + 127, "f32")), "i32"), 23), "f32")
    return o.fma(y, scale, scale)


def _plain_exp2(o: Ops, x: Value) -> tuple[Value, Value]:
    """Two numbers whose product is 2^x, in f32 for -126 ≤ x ≤ 127."""
    n = o.rounded("roundeven", x)
    power = polynomial(o, o.sub(x, n), _EXP2_F32)
    return power, o.bits(o.shl(o.bits(o.add(n, const(_WHOLE["f32"] + 127, "f32")), "i32"), 23), "f32")


def _exp_parts(o: Ops, x: Value) -> tuple[Value, Value]:
    """n and r with x = n·ln2 + r, |r| ≤ ln2/2."""
    n = o.rounded("roundeven", o.mul(x, const(_LOG2E, x.prec)))
    high, low = (
        (0.693359375, -2.12194440e-4) if x.prec == "f32" else (6.93147180369123816490e-01, 1.90821492927058770002e-10)
    )
    r = o.fma(n, const(-high, x.prec), x)
    return n, o.fma(n, const(-low, x.prec), r)


def exp2(o: Ops, x: Value) -> Value:
    """2^x."""
    x = _clamped(o, x, -160.0, 140.0) if x.prec == "f32" else _clamped(o, x, -1100.0, 1030.0)
    n = o.rounded("roundeven", x)
    r = o.mul(o.sub(x, n), const(_LN2, x.prec))
    return _exp_of_parts(o, n, r)


def _log_parts(o: Ops, x: Value) -> tuple[Value, Value]:
    """x = 2^e·(1 + f) with 1 + f between √½ and √2, as (e, f), for positive finite x."""
    if x.prec == "f32":
        ints, shift, tiny, lift, root = "i32", 23, 2.0**-126, 25, 0x3F3504F3
    else:
        ints, shift, tiny, lift, root = "i64", 52, 2.0**-1022, 54, 0x3FE6A09E667F3BCD
    small = o.compare("lt", x, const(tiny, x.prec))
    normal = o.select(small, o.mul(x, const(2.0**lift, x.prec)), x)
    i = o.bits(normal, ints)
    # The exponent relative to √½, so that the mantissa lands in [√½, √2).
    shifted = o.sub(i, const(root, ints))
    e = o.ashr(shifted, shift)
    m = o.bits(o.sub(i, o.shl(e, shift)), x.prec)
    fe = _float(o, e, x.prec)
    fe = o.sub(fe, o.select(small, const(float(lift), x.prec), const(0.0, x.prec)))
    return fe, o.sub(m, const(1.0, x.prec))


def _log_edges(o: Ops, x: Value, y: Value) -> Value:
    """`y`, mended where x is 0, negative, infinite or NaN."""
    y = o.select(o.compare("lt", x, const(_INF, x.prec)), y, x)
    y = o.select(o.compare("eq", x, const(0.0, x.prec)), const(-_INF, x.prec), y)
    return o.select(o.compare("lt", x, const(0.0, x.prec)), const(_NAN, x.prec), y)


def _log1p_reduced(o: Ops, f: Value) -> tuple[Value, Value]:
    """log(1 + f) as f - (f²/2 - rest): gives f²/2 and rest."""
    half_square = o.mul(o.mul(f, f), const(0.5, f.prec))
    if f.prec == "f32":
        rest = o.mul(o.mul(polynomial(o, f, _LOG_F32), f), o.mul(f, f))
    else:
        s = o.fdiv(f, o.add(f, const(2.0, f.prec)))
        z = o.mul(s, s)
        rest = o.mul(s, o.add(half_square, o.mul(z, polynomial(o, z, _LOG_F64))))
    return half_square, rest


def log(o: Ops, x: Value) -> Value:
    """The natural logarithm."""
    e, f = _log_parts(o, x)
    half_square, rest = _log1p_reduced(o, f)
    high, low = (
        (0.693359375, -2.12194440e-4) if x.prec == "f32" else (6.93147180369123816490e-01, 1.90821492927058770002e-10)
    )
    tail = o.fma(e, const(low, x.prec), rest)
    y = o.fma(e, const(high, x.prec), o.sub(f, o.sub(half_square, tail)))
    return _log_edges(o, x, y)


def log2(o: Ops, x: Value) -> Value:
    """The logarithm to base 2."""
    e, f = _log_parts(o, x)
    half_square, rest = _log1p_reduced(o, f)
    # log2(1 + f) = (high + low)·log2(e) with a short `high`, so that its product is exact.
    ints, mask = ("i32", 0xFFFFF000) if x.prec == "f32" else ("i64", 0xFFFFFFFF00000000)
    high = o.bits(o.band(o.bits(o.sub(f, half_square), ints), const(mask, ints)), x.prec)
    low = o.add(o.sub(o.sub(f, high), half_square), rest)
    if x.prec == "f32":
        l_high, l_low = 1.4428710938, -1.7605285393e-04
    else:
        l_high, l_low = 1.44269504072144627571e00, 1.67517131648865118353e-10
    y = o.mul(o.add(low, high), const(l_low, x.prec))
    y = o.fma(low, const(l_high, x.prec), y)
    y = o.add(o.fma(high, const(l_high, x.prec), e), y)
    return _log_edges(o, x, y)


def log1p_unit(o: Ops, u: Value) -> Value:
    """log(1 + u) for u in 0 … 1, accurate for small u."""
    one = const(1.0, u.prec)
    w = o.add(u, one)
    lost = o.sub(u, o.sub(w, one))
    return o.add(log(o, w), o.fdiv(lost, w))


def tanh(o: Ops, x: Value) -> Value:
    """The hyperbolic tangent."""
    z = o.mul(x, x)
    small = o.fma(o.mul(polynomial(o, z, _TANH_F32 if x.prec == "f32" else _TANH_F64), z), x, x)
    size = o.abs(x)
    double = o.mul(size, const(2.0, x.prec))
    # Far out it is 1, so that the exponential need not go on.
    e = _plain_exp(o, _at_most(o, double, 44.0)) if x.prec == "f32" else exp(o, double)
    large = o.sub(const(1.0, x.prec), o.fdiv(const(2.0, x.prec), o.add(e, const(1.0, x.prec))))
    large = o.intrinsic("copysign", large, x)
    return o.select(o.compare("lt", size, const(0.625, x.prec)), small, large)


def sigmoid(o: Ops, x: Value) -> Value:
    """1 / (1 + e^-x), accurate in both tails."""
    one = const(1.0, x.prec)
    e = exp(o, o.neg(o.abs(x)))
    right = o.fdiv(one, o.add(e, one))
    return o.select(o.compare("lt", x, const(0.0, x.prec)), o.mul(e, right), right)


def silu(o: Ops, x: Value) -> Value:
    """x · sigmoid(x); 0 at -∞."""
    y = o.mul(x, sigmoid(o, x))
    return o.select(o.compare("eq", x, const(-_INF, x.prec)), const(0.0, x.prec), y)


def softplus(o: Ops, x: Value) -> Value:
    """log(1 + e^x), without overflow."""
    u = exp(o, o.neg(o.abs(x)))
    y = o.add(o.max(x, const(0.0, x.prec)), log1p_unit(o, u))
    return o.select(o.compare("uno", x, x), x, y)


def _turns(o: Ops, x: Value) -> tuple[Value, Value]:
    """x = q·π/2 + r with |r| ≤ π/4: r in x's precision and q modulo 2^32 as i32, worked out in f64."""
    wide = o.convert(x, "f64")
    q = o.rounded("roundeven", o.mul(wide, const(0.6366197723675814, "f64")))
    r = wide
    for part in _HALF_PI:
        r = o.fma(q, const(-part, "f64"), r)
    # Beyond the range of the reduction stay at least within the range of the function.
    r = _clamped(o, r, -0.7853981633974484, 0.7853981633974484)
    return o.convert(r, x.prec), o.convert(_whole(o, q), "i32")


def _quadrant(o: Ops, r: Value, q: Value) -> Value:
    """sin(r + q·π/2) for |r| ≤ π/4."""
    z = o.mul(r, r)
    s = o.fma(o.mul(polynomial(o, z, _SIN[r.prec]), z), r, r)
    c = o.fma(o.mul(z, z), polynomial(o, z, _COS[r.prec]), o.mul(z, const(-0.5, r.prec)))
    odd = o.compare("ne", o.band(q, const(1, "i32")), const(0, "i32"))
    y = o.select(odd, o.add(c, const(1.0, r.prec)), s)
    return o.select(o.compare("ne", o.band(q, const(2, "i32")), const(0, "i32")), o.neg(y), y)


def _sine(o: Ops, x: Value, quarter: int) -> Value:
    r, q = _turns(o, x)
    y = _quadrant(o, r, o.add(q, const(quarter, "i32")) if quarter else q)
    finite = o.compare("lt", o.abs(x), const(_INF, x.prec))
    return o.select(finite, y, const(_NAN, x.prec))


def sin(o: Ops, x: Value) -> Value:
    """The sine."""
    tiny = o.compare("eq", x, const(0.0, x.prec))
    return o.select(tiny, x, _sine(o, x, 0))


def cos(o: Ops, x: Value) -> Value:
    """The cosine."""
    return _sine(o, x, 1)


def cos_of_turns(o: Ops, u: Value) -> Value:
    """cos(2π·u) for u in 0 … 1, with an exact reduction."""
    quarters = o.mul(u, const(4.0, u.prec))
    q = o.rounded("roundeven", quarters)
    r = o.mul(o.sub(quarters, q), const(1.5707963267948966, u.prec))
    return _quadrant(o, r, o.add(o.convert(_whole(o, q), "i32"), const(1, "i32")))


def _erf_small(o: Ops, x: Value) -> Value:
    z = o.mul(x, x)
    return o.fma(polynomial(o, z, _ERF[x.prec]), x, x)


def _erfc_large(o: Ops, t: Value) -> Value:
    """erfc t for t ≥ 0.9 (f32), ≥ 1 (f64), to the accuracy of 1 - erfc."""
    if t.prec == "f32":
        bounded = _clamped(o, t, 0.0, 4.0)
        return exp(o, o.neg(o.fma(polynomial(o, bounded, _ERFC_F32), bounded, t)))
    return _erfc(o, t)


def _erfc(o: Ops, t: Value) -> Value:
    """erfc t for t ≥ 0, all digits of it also where it is small."""
    one = const(1.0, t.prec)
    k = const(3.0 if t.prec == "f32" else 4.0, t.prec)
    bounded = _clamped(o, t, 0.0, 10.5 if t.prec == "f32" else 28.0)
    r = o.fdiv(one, o.add(bounded, k))
    g = polynomial(o, o.mul(o.sub(bounded, k), r), _ERFC_WHOLE[t.prec])
    square = o.mul(bounded, bounded)
    e = exp(o, o.neg(square))
    if o.target.fma:
        # What rounding took from the square.
        e = o.fma(o.neg(e), o.fma(bounded, bounded, o.neg(square)), e)
    return o.mul(o.mul(e, g), r)


def erf(o: Ops, x: Value) -> Value:
    """The error function."""
    size = o.abs(x)
    limit = const(0.9375 if x.prec == "f32" else 1.0, x.prec)
    large = o.intrinsic("copysign", o.sub(const(1.0, x.prec), _erfc_large(o, size)), x)
    y = o.select(o.compare("lt", size, limit), _erf_small(o, x), large)
    return o.select(o.compare("uno", x, x), x, y)


def gelu(o: Ops, x: Value) -> Value:
    """x · Φ(x), exact: x/2 · erfc(-x/√2), which keeps the digits of the left tail."""
    tail = _erfc(o, o.abs(o.mul(x, const(0.7071067811865476, x.prec))))
    twice = o.select(o.compare("lt", x, const(0.0, x.prec)), tail, o.sub(const(2.0, x.prec), tail))
    y = o.mul(o.mul(x, const(0.5, x.prec)), twice)
    y = o.select(o.compare("uno", x, x), x, y)
    return o.select(o.compare("eq", x, const(-_INF, x.prec)), const(0.0, x.prec), y)


def gelu_tanh(o: Ops, x: Value) -> Value:
    """x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³))), Hendrycks and Gimpel's approximation."""
    if x.prec == "f32":
        # The same as x·sigmoid(2·√(2/π)·…), with a power of two for the exponential.
        factor = -2 * 0.7978845608028654 * _LOG2E
        inner = o.fma(o.mul(x, x), const(0.044715 * factor, x.prec), const(factor, x.prec))
        exponent = o.mul(x, inner)
        power, scale = _plain_exp2(o, _clamped(o, exponent, -126.0, 127.0))
        y = o.fdiv(x, o.fma(power, scale, const(1.0, x.prec)))
        # Beyond that the result is no normal number any more.
        return o.select(o.compare("gt", exponent, const(127.0, x.prec)), const(0.0, x.prec), y)
    inner = o.fma(o.mul(o.mul(x, x), x), const(0.044715, x.prec), x)
    t = tanh(o, o.mul(inner, const(0.7978845608028654, x.prec)))
    y = o.mul(o.mul(x, const(0.5, x.prec)), o.add(t, const(1.0, x.prec)))
    return o.select(o.compare("eq", x, const(-_INF, x.prec)), const(0.0, x.prec), y)


def power(o: Ops, a: Value, b: Value) -> Value:
    """a^b for floats, through f64; the special cases are those of C's `pow`."""
    wide_a, wide_b = o.convert(a, "f64"), o.convert(b, "f64")
    one, zero = const(1.0, "f64"), const(0.0, "f64")
    size = o.abs(wide_a)
    y = exp(o, o.mul(wide_b, log(o, size)))
    whole = o.compare("eq", o.rounded("trunc", wide_b), wide_b)
    halved = o.mul(wide_b, const(0.5, "f64"))
    odd = o.band(whole, o.compare("ne", o.rounded("trunc", halved), halved))
    signed = o.intrinsic("copysign", y, wide_a)
    y = o.select(odd, signed, y)
    finite = o.compare("lt", size, const(_INF, "f64"))
    bad = o.band(o.band(o.compare("lt", wide_a, zero), finite), o.compare("ne", whole, const(1, "bool")))
    y = o.select(bad, const(_NAN, "f64"), y)
    # |a| = 1 with an infinite exponent, and anything to the power 0, give 1.
    b_infinite = o.compare("eq", o.abs(wide_b), const(_INF, "f64"))
    y = o.select(o.band(o.compare("eq", size, one), b_infinite), one, y)
    y = o.select(o.compare("eq", wide_a, one), one, y)
    y = o.select(o.compare("eq", wide_b, zero), one, y)
    return o.convert(y, a.prec)


def integer_power(o: Ops, a: Value, b: int) -> Value:
    """a^b for a whole exponent, by repeated multiplication; b < 0 gives the reciprocal of a float."""
    result: Value | None = None
    square, n = a, abs(b)
    while n:
        if n & 1:
            result = square if result is None else o.mul(result, square)
        n >>= 1
        if n:
            square = o.mul(square, square)
    if result is None:
        return o.splat(const(1, a.prec), a.lanes)
    return o.fdiv(const(1.0, a.prec), result) if b < 0 else result
