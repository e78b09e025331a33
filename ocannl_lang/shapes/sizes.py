"""Sizes that may contain unknowns: polynomials in a canonical form.

A size is an `int` where everything is known. Otherwise it is a `Sym`, a sum of products of unknowns and of calls that cannot be
worked out yet (`n // 2`, `sqrt(n)`). Equal forms are the same object by `==`; different forms count as different sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from ocannl_lang.shapes.terms import Unknown


@dataclass(frozen=True, slots=True)
class Call:
    """A function of sizes that is left as it is: `//`, `%`, `/`, `sqrt`, …"""

    op: str
    args: tuple[Number, ...]


Atom = Union[Unknown, Call]
Monomial = tuple[tuple[Atom, int], ...]


@dataclass(frozen=True, slots=True)
class Sym:
    """A sum of `coefficient * monomial`, sorted, without zeros, never a plain number."""

    terms: tuple[tuple[Monomial, int | float], ...]

    def __str__(self) -> str:
        return size_text(self)


SizeValue = Union[int, Sym]
Number = Union[int, float, Sym]


def of_unknown(unknown: Unknown) -> Sym:
    """The size that an unknown stands for."""
    return Sym(((((unknown, 1),), 1),))


def as_unknown(value: Number) -> Unknown | None:
    """The unknown that `value` is, if it is just one."""
    match value:
        case Sym(terms=((((Unknown() as unknown, 1),), 1),)):
            return unknown
        case _:
            return None


def add(a: Number, b: Number) -> Number:
    if not isinstance(a, Sym) and not isinstance(b, Sym):
        return a + b
    total = dict(_terms(a))
    for monomial, coefficient in _terms(b):
        total[monomial] = total.get(monomial, 0) + coefficient
    return _canonical(total)


def mul(a: Number, b: Number) -> Number:
    if not isinstance(a, Sym) and not isinstance(b, Sym):
        return a * b
    total: dict[Monomial, int | float] = {}
    for ma, ca in _terms(a):
        for mb, cb in _terms(b):
            monomial = _join(ma, mb)
            total[monomial] = total.get(monomial, 0) + ca * cb
    return _canonical(total)


def sub(a: Number, b: Number) -> Number:
    return add(a, mul(-1, b))


def product(values: Sequence[Number]) -> Number:
    total: Number = 1
    for value in values:
        total = mul(total, value)
    return total


def floordiv(a: Number, b: Number) -> Number:
    """`a // b`; the part of `a` that `b` divides is taken out of the quotient, so equal quotients look equal."""
    if not isinstance(a, Sym) and not isinstance(b, Sym):
        return a // b
    if isinstance(b, int) and b > 0 and _is_whole(a):
        whole, rest = _split(a, b)
        return add(whole, _call("//", (rest, b))) if isinstance(rest, Sym) else whole
    return 1 if a == b else _call("//", (a, b))


def modulo(a: Number, b: Number) -> Number:
    if not isinstance(a, Sym) and not isinstance(b, Sym):
        return a % b
    if isinstance(b, int) and b > 0 and _is_whole(a):
        rest = _split(a, b)[1]
        return _call("%", (rest, b)) if isinstance(rest, Sym) else rest
    return 0 if a == b else _call("%", (a, b))


def divide(a: Number, b: Number) -> Number:
    """`a / b`, kept exact where whole coefficients allow it."""
    if not isinstance(a, Sym) and not isinstance(b, Sym):
        return a / b
    if isinstance(b, int) and b > 0 and _is_whole(a) and all(c % b == 0 for _, c in _terms(a)):
        return _split(a, b)[0]
    return 1.0 if a == b else _call("/", (a, b))


def power(a: Number, b: Number) -> Number:
    if not isinstance(a, Sym) and not isinstance(b, Sym):
        return a**b
    if isinstance(b, int) and 0 <= b <= 16:
        return product([a] * b)
    return _call("**", (a, b))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": math.sqrt, "rsqrt": lambda x: 1 / math.sqrt(x), "recip": lambda x: 1 / x, "exp": math.exp, "log": math.log,
    "exp2": lambda x: 2.0**x, "log2": math.log2, "sin": math.sin, "cos": math.cos, "tan": math.tan, "tanh": math.tanh,
    "abs": abs, "floor": math.floor, "ceil": math.ceil, "round": round, "int": int, "float": float, "min": min, "max": max,
    "pow": pow, "sign": lambda x: (x > 0) - (x < 0),
}  # fmt: skip


def apply(op: str, args: Sequence[Number]) -> Number:
    """The value of `op` on `args`, as `SizeOp` names it. Raises `ArithmeticError` or `ValueError` where it has none."""
    match op, tuple(args):
        case "+", (a, b):
            return add(a, b)
        case "-", (a, b):
            return sub(a, b)
        case (("-" | "neg"), (a,)):
            return mul(-1, a)
        case "*", (a, b):
            return mul(a, b)
        case "//", (a, b):
            return floordiv(a, b)
        case "%", (a, b):
            return modulo(a, b)
        case "/", (a, b):
            return divide(a, b)
        case "**", (a, b):
            return power(a, b)
        case "int", (Sym() as a,) if _is_whole(a):
            return a
        case _, values if any(isinstance(v, Sym) for v in values):
            return _call(op, values)
        case _, values:
            return _FUNCTIONS[op](*values)


def replace(value: Number, bindings: Mapping[Unknown, int]) -> Number:
    """`value` with unknowns replaced by numbers."""
    if not isinstance(value, Sym):
        return value
    total: Number = 0
    for monomial, coefficient in value.terms:
        factor: Number = coefficient
        for atom, exponent in monomial:
            if isinstance(atom, Unknown):
                base: Number = bindings[atom] if atom in bindings else of_unknown(atom)
            else:
                base = apply(atom.op, [replace(a, bindings) for a in atom.args])
            factor = mul(factor, power(base, exponent))
        total = add(total, factor)
    return total


def has_calls(value: Number) -> bool:
    """Whether something in `value` could not be worked out, so that forms that differ may still be equal."""
    return isinstance(value, Sym) and any(isinstance(atom, Call) for monomial, _ in value.terms for atom, _ in monomial)


def owners_of(value: Number) -> list[str]:
    """Whose the unknowns in `value` are."""
    if not isinstance(value, Sym):
        return []
    found: dict[str, None] = {}
    for monomial, _ in value.terms:
        for atom, _ in monomial:
            for owner in [atom.owner] if isinstance(atom, Unknown) else [o for a in atom.args for o in owners_of(a)]:
                found.setdefault(owner)
    return list(found)


def size_text(value: Number) -> str:
    """`value` as people write it: `n`, `n + 3`, `2*n`, `(n - 1)//2`."""
    if not isinstance(value, Sym):
        return str(value)
    match value.terms:
        case ((((Call(op="//", args=(inner, int() as divisor)), 1),), 1), ((), int() as constant)):
            return f"{_factor_text(add(inner, constant * divisor))}//{divisor}"  # (n + 1)//2 - 1 reads as (n - 1)//2
        case _:
            pass
    out = ""
    for monomial, coefficient in value.terms:
        sign = "-" if coefficient < 0 else "+"
        body = _monomial_text(monomial, abs(coefficient))
        out = (f"-{body}" if sign == "-" else body) if not out else f"{out} {sign} {body}"
    return out


def _terms(value: Number) -> tuple[tuple[Monomial, int | float], ...]:
    if isinstance(value, Sym):
        return value.terms
    return (((), value),) if value != 0 else ()


def _canonical(total: dict[Monomial, int | float]) -> Number:
    terms = [(m, c) for m, c in total.items() if c != 0]
    if not terms:
        return 0
    if len(terms) == 1 and terms[0][0] == ():
        return terms[0][1]
    return Sym(tuple(sorted(terms, key=lambda t: (-sum(e for _, e in t[0]), [(_key(a), e) for a, e in t[0]]))))


def _key(atom: Atom) -> tuple[str, str]:
    return (atom.name, atom.owner) if isinstance(atom, Unknown) else (_atom_text(atom), repr(atom.args))


def _join(a: Monomial, b: Monomial) -> Monomial:
    if not a or not b:
        return a or b
    powers = dict(a)
    for atom, exponent in b:
        powers[atom] = powers.get(atom, 0) + exponent
    return tuple(sorted(powers.items(), key=lambda p: _key(p[0])))


def _call(op: str, args: tuple[Number, ...]) -> Sym:
    return Sym(((((Call(op, args), 1),), 1),))


def _is_whole(value: Number) -> bool:
    return all(isinstance(c, int) and all(e > 0 for _, e in m) for m, c in _terms(value))


def _split(value: Number, divisor: int) -> tuple[Number, Number]:
    """`(whole, rest)` with value = divisor·whole + rest and the coefficients of rest in 0 … divisor − 1."""
    whole: Number = 0
    rest: Number = 0
    for monomial, coefficient in _terms(value):
        term = _canonical({monomial: 1})
        whole = add(whole, mul(coefficient // divisor, term))
        rest = add(rest, mul(coefficient % divisor, term))
    return whole, rest


def _monomial_text(monomial: Monomial, coefficient: int | float) -> str:
    factors = [_atom_text(a) if e == 1 else f"{_atom_text(a)}**{e}" for a, e in monomial]
    if coefficient != 1 or not factors:
        factors.insert(0, str(coefficient))
    return "*".join(factors)


def _atom_text(atom: Atom) -> str:
    if isinstance(atom, Unknown):
        return atom.name
    if atom.op in ("//", "%", "/", "**") and len(atom.args) == 2:
        text = f"{_factor_text(atom.args[0])}{atom.op}{_factor_text(atom.args[1])}"
        return f"({text})"
    return f"{atom.op}({', '.join(size_text(a) for a in atom.args)})"


def _factor_text(value: Number) -> str:
    text = size_text(value)
    return f"({text})" if isinstance(value, Sym) and " " in text else text
