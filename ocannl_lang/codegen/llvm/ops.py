"""Typed instructions on numbers and vectors: the vocabulary in which everything else is written.

Operands may be literals, numbers or vectors; where one operand is a vector the others are splatted. Only intrinsics that every
target expands inline are used: an unknown one would become a call of a library function.
"""

from __future__ import annotations

from dataclasses import dataclass

from ocannl_lang.codegen.llvm.target import Target
from ocannl_lang.codegen.llvm.types import FLOATS, NARROW, SIZES, UNSIGNED, Value, literal, llvm_type, suffix
from ocannl_lang.codegen.llvm.writer import Writer

_FLOAT_COMPARE = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "uno": "uno"}
_SIGNED_COMPARE = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_UNSIGNED_COMPARE = {"eq": "eq", "ne": "ne", "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge"}


def const(value: float | int, prec: str) -> Value:
    """A literal."""
    return Value(literal(value, prec), prec)


def is_literal(value: Value) -> bool:
    return not value.text.startswith("%")


@dataclass(frozen=True, slots=True)
class Ops:
    """Instructions written by `w` for `target`."""

    w: Writer
    target: Target

    # ------------------------------------------------------------ operands

    def text(self, v: Value, lanes: int) -> str:
        """The operand as it stands in an instruction on `lanes` lanes."""
        if v.lanes == lanes:
            return v.text
        assert v.lanes == 1, "vectors of two widths in one instruction"
        if is_literal(v):
            return f"splat ({llvm_type(v.prec)} {v.text})"
        return self.splat(v, lanes).text

    def splat(self, v: Value, lanes: int) -> Value:
        """A number in every lane."""
        if v.lanes == lanes:
            return v
        if is_literal(v):
            return Value(self.text(v, lanes), v.prec, lanes)
        t = llvm_type(v.prec, lanes)
        one = self.w.pure(f"insertelement {t} poison, {llvm_type(v.prec)} {v.text}, i64 0", [v.text])
        all_ = self.w.pure(f"shufflevector {t} {one}, {t} poison, <{lanes} x i32> zeroinitializer", [one])
        return Value(all_, v.prec, lanes)

    def lane(self, v: Value, index: int) -> Value:
        """One number of a vector."""
        if v.lanes == 1:
            return v
        text = self.w.pure(f"extractelement {llvm_type(v.prec, v.lanes)} {v.text}, i64 {index}", [v.text])
        return Value(text, v.prec)

    def gathered(self, parts: list[Value], lanes: int) -> Value:
        """A vector of numbers; lanes beyond them hold anything."""
        t = llvm_type(parts[0].prec, lanes)
        text = "poison"
        for i, part in enumerate(parts):
            text = self.w.pure(
                f"insertelement {t} {text}, {llvm_type(part.prec)} {part.text}, i64 {i}", [text, part.text]
            )
        return Value(text, parts[0].prec, lanes)

    def iota(self, lanes: int, prec: str, start: int = 0, step: int = 1) -> Value:
        """start, start + step, …"""
        t = llvm_type(prec)
        if lanes == 1:
            return const(start, prec)
        items = ", ".join(f"{t} {literal(start + step * i, prec)}" for i in range(lanes))
        # Written through an instruction: a constant vector is no scalar literal.
        return Value(self.w.pure(f"add <{lanes} x {t}> <{items}>, zeroinitializer", []), prec, lanes)

    # ------------------------------------------------------------ instructions

    def binary(self, op: str, a: Value, b: Value) -> Value:
        lanes = max(a.lanes, b.lanes)
        x, y = self.text(a, lanes), self.text(b, lanes)
        return Value(self.w.pure(f"{op} {llvm_type(a.prec, lanes)} {x}, {y}", [x, y]), a.prec, lanes)

    def add(self, a: Value, b: Value) -> Value:
        return self.binary("fadd" if a.prec in FLOATS else "add", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self.binary("fsub" if a.prec in FLOATS else "sub", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        return self.binary("fmul" if a.prec in FLOATS else "mul", a, b)

    def fdiv(self, a: Value, b: Value) -> Value:
        return self.binary("fdiv", a, b)

    def band(self, a: Value, b: Value) -> Value:
        return self.binary("and", a, b)

    def bor(self, a: Value, b: Value) -> Value:
        return self.binary("or", a, b)

    def bxor(self, a: Value, b: Value) -> Value:
        return self.binary("xor", a, b)

    def shl(self, a: Value, bits: int) -> Value:
        return self.binary("shl", a, const(bits, a.prec))

    def lshr(self, a: Value, bits: int) -> Value:
        return self.binary("lshr", a, const(bits, a.prec))

    def ashr(self, a: Value, bits: int) -> Value:
        return self.binary("ashr", a, const(bits, a.prec))

    def neg(self, a: Value) -> Value:
        if a.prec in FLOATS:
            x = self.text(a, a.lanes)
            return Value(self.w.pure(f"fneg {llvm_type(a.prec, a.lanes)} {x}", [x]), a.prec, a.lanes)
        return self.sub(const(0, a.prec), a)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """a·b + c, in one rounding where the machine can."""
        if not self.target.fma or a.prec not in FLOATS:
            return self.add(self.mul(a, b), c)
        return self.intrinsic("fma", a, b, c)

    def intrinsic(self, name: str, *args: Value) -> Value:
        """`llvm.name` of operands that have the result's type."""
        lanes = max(a.lanes for a in args)
        prec = args[0].prec
        t = llvm_type(prec, lanes)
        text = self.w.call(t, f"llvm.{name}.{suffix(prec, lanes)}", [(t, self.text(a, lanes)) for a in args])
        return Value(text, prec, lanes)

    def compare(self, how: str, a: Value, b: Value) -> Value:
        """`eq ne lt le gt ge` as i1; of floats, `ne` holds for NaN and the others do not."""
        lanes = max(a.lanes, b.lanes)
        if a.prec in FLOATS:
            op = "fcmp " + _FLOAT_COMPARE[how]
        else:
            op = "icmp " + (_UNSIGNED_COMPARE if a.prec in UNSIGNED or a.prec == "bool" else _SIGNED_COMPARE)[how]
        x, y = self.text(a, lanes), self.text(b, lanes)
        return Value(self.w.pure(f"{op} {llvm_type(a.prec, lanes)} {x}, {y}", [x, y]), "bool", lanes)

    def select(self, c: Value, a: Value, b: Value) -> Value:
        lanes = max(c.lanes, a.lanes, b.lanes)
        x, y = self.text(a, lanes), self.text(b, lanes)
        t = llvm_type(a.prec, lanes)
        ct = llvm_type("bool", c.lanes)
        return Value(self.w.pure(f"select {ct} {c.text}, {t} {x}, {t} {y}", [c.text, x, y]), a.prec, lanes)

    def both(self, a: Value | None, b: Value | None) -> Value | None:
        """Both conditions, None standing for one that always holds."""
        if a is None or b is None:
            return a if b is None else b
        return self.band(a, b)

    def cast(self, op: str, a: Value, prec: str) -> Value:
        """A conversion instruction."""
        x = self.text(a, a.lanes)
        return Value(
            self.w.pure(f"{op} {llvm_type(a.prec, a.lanes)} {x} to {llvm_type(prec, a.lanes)}", [x]), prec, a.lanes
        )

    def bits(self, a: Value, prec: str) -> Value:
        """The same bits, read as `prec`."""
        return self.cast("bitcast", a, prec)

    def convert(self, a: Value, prec: str) -> Value:
        """The number in another precision: floats to ints towards zero, saturating, NaN to 0; ints to ints modulo their range."""
        if a.prec == prec:
            return a
        if a.prec in NARROW or prec in NARROW:
            from ocannl_lang.codegen.llvm.narrow import narrowed, widened

            wide = widened(self, a) if a.prec in NARROW else self.convert(a, "f32")
            return narrowed(self, wide, prec) if prec in NARROW else self.convert(wide, prec)
        if a.prec == "bool":
            number = self.cast("uitofp" if prec in FLOATS else "zext", a, prec)
            self.w.conditions[number.text] = a.text
            return number
        if prec == "bool":
            known = self.w.conditions.get(a.text)
            if known is not None:
                return Value(known, "bool", a.lanes)
            return self.compare("ne", a, const(0, a.prec))
        if a.prec in FLOATS and prec in FLOATS:
            return self.cast("fpext" if prec == "f64" else "fptrunc", a, prec)
        if prec in FLOATS:
            return self.cast("uitofp" if a.prec in UNSIGNED else "sitofp", a, prec)
        if a.prec in FLOATS:
            t, r = llvm_type(a.prec, a.lanes), llvm_type(prec, a.lanes)
            # Unsigned 32 bits and below go through a wider signed type, as their numpy conversions do for numbers in range.
            sign = "u" if prec in UNSIGNED else "s"
            name = f"llvm.fpto{sign}i.sat.{suffix(prec, a.lanes)}.{suffix(a.prec, a.lanes)}"
            return Value(self.w.call(r, name, [(t, self.text(a, a.lanes))]), prec, a.lanes)
        if SIZES[a.prec] < SIZES[prec]:
            return self.cast("zext" if a.prec in UNSIGNED else "sext", a, prec)
        if SIZES[a.prec] > SIZES[prec]:
            return self.cast("trunc", a, prec)
        return Value(a.text, prec, a.lanes)

    def mask(self, count: int, lanes: int) -> Value:
        """A constant condition that holds in the first `count` lanes."""
        items = ", ".join("i1 true" if i < count else "i1 false" for i in range(lanes))
        return Value(f"<{items}>", "bool", lanes)

    # ------------------------------------------------------------ rounding and extremes

    def rounded(self, name: str, a: Value) -> Value:
        """`floor ceil trunc roundeven` of a float."""
        if self.target.rounds:
            return self.intrinsic(name, a)
        return self._rounded_by_adding(name, a)

    def _rounded_by_adding(self, name: str, a: Value) -> Value:
        # Numbers of 2^23 (2^52) and more are whole; below, adding and subtracting that much rounds to even.
        big = const(2.0**23 if a.prec == "f32" else 2.0**52, a.prec)
        size = self.intrinsic("fabs", a)
        even = self.intrinsic("copysign", self.sub(self.add(size, big), big), a)
        one, zero = const(1.0, a.prec), const(0.0, a.prec)
        if name == "roundeven":
            result = even
        elif name == "floor":
            result = self.sub(even, self.select(self.compare("gt", even, a), one, zero))
        elif name == "ceil":
            result = self.add(even, self.select(self.compare("lt", even, a), one, zero))
        else:
            up = self.intrinsic("fabs", even)
            down = self.sub(up, self.select(self.compare("gt", up, size), one, zero))
            result = self.intrinsic("copysign", down, a)
        result = self.intrinsic("copysign", result, a)
        return self.select(self.compare("lt", size, big), result, a)

    def abs(self, a: Value) -> Value:
        if a.prec in FLOATS:
            return self.intrinsic("fabs", a)
        if a.prec in UNSIGNED:
            return a
        return self.select(self.compare("lt", a, const(0, a.prec)), self.neg(a), a)

    def max(self, a: Value, b: Value) -> Value:
        """The greater one; NaN where one of them is."""
        return self._extreme("gt", a, b)

    def min(self, a: Value, b: Value) -> Value:
        """The lesser one; NaN where one of them is."""
        return self._extreme("lt", a, b)

    def _extreme(self, how: str, a: Value, b: Value) -> Value:
        best = self.select(self.compare(how, a, b), a, b)
        if a.prec not in FLOATS or is_literal(a):
            return best
        # The comparison is false for NaN, which already gives `b`; only a NaN in `a` remains.
        return self.select(self.compare("uno", a, a), a, best)
