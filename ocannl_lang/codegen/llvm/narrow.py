"""Floats of 16 bits: stored as such, computed with in f32. Conversions by their bits, to the nearest, ties to even.

The half precision conversions follow Fabian Giesen's `float_to_half_fast3_rtne` and `half_to_float`.
"""

from __future__ import annotations

from ocannl_lang.codegen.llvm.ops import Ops, const
from ocannl_lang.codegen.llvm.types import Value


def widened(o: Ops, a: Value) -> Value:
    """A 16-bit float as f32, exactly."""
    bits = o.cast("zext", Value(a.text, "u16", a.lanes), "u32")
    if a.prec == "bf16":
        return o.bits(o.shl(bits, 16), "f32")
    exponent = const(0x7C00 << 13, "u32")
    whole = o.shl(o.band(bits, const(0x7FFF, "u32")), 13)
    found = o.band(whole, exponent)
    value = o.add(whole, const((127 - 15) << 23, "u32"))
    extreme = o.compare("eq", found, exponent)
    small = o.compare("eq", found, const(0, "u32"))
    value = o.add(value, o.select(extreme, const((128 - 16) << 23, "u32"), const(0, "u32")))
    # A subnormal: its mantissa is a multiple of 2^-24.
    renormal = o.sub(o.bits(o.add(value, const(1 << 23, "u32")), "f32"), const(2.0**-14, "f32"))
    value = o.select(small, o.bits(renormal, "u32"), value)
    sign = o.shl(o.band(bits, const(0x8000, "u32")), 16)
    return o.bits(o.bor(value, sign), "f32")


def narrowed(o: Ops, a: Value, prec: str) -> Value:
    """An f32 as a 16-bit float."""
    bits = o.bits(a, "u32")
    result = _to_bf16(o, a, bits) if prec == "bf16" else _to_f16(o, bits)
    return Value(o.cast("trunc", result, "u16").text, prec, a.lanes)


def _to_bf16(o: Ops, a: Value, bits: Value) -> Value:
    odd = o.band(o.lshr(bits, 16), const(1, "u32"))
    rounded = o.lshr(o.add(bits, o.add(odd, const(0x7FFF, "u32"))), 16)
    # Rounding must not turn a NaN into an infinity.
    quiet = o.bor(o.lshr(bits, 16), const(0x40, "u32"))
    return o.select(o.compare("uno", a, a), quiet, rounded)


def _to_f16(o: Ops, bits: Value) -> Value:
    sign = o.band(bits, const(0x80000000, "u32"))
    size = o.bxor(bits, sign)
    nan = o.compare("gt", size, const(0x7F800000, "u32"))
    extreme = o.select(nan, const(0x7E00, "u32"), const(0x7C00, "u32"))
    # Adding 0.5 puts what a subnormal keeps into the low bits.
    small = o.sub(o.bits(o.add(o.bits(size, "f32"), const(0.5, "f32")), "u32"), const(0x3F000000, "u32"))
    odd = o.band(o.lshr(size, 13), const(1, "u32"))
    usual = o.lshr(o.add(o.add(size, const((15 - 127) * (1 << 23) + 0xFFF, "u32")), odd), 13)
    result = o.select(o.compare("lt", size, const(0x38800000, "u32")), small, usual)
    result = o.select(o.compare("ge", size, const(0x47800000, "u32")), extreme, result)
    return o.bor(result, o.lshr(sign, 16))
