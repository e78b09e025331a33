"""Sizes with unknowns are kept in one form each, and read well."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocannl_lang.shapes.sizes import (
    add,
    apply,
    divide,
    floordiv,
    modulo,
    mul,
    of_unknown,
    power,
    replace,
    size_text,
    sub,
)
from ocannl_lang.shapes.terms import Unknown

N, M = Unknown("n", "f"), Unknown("m", "f")
n, m = of_unknown(N), of_unknown(M)


def test_forms_are_canonical() -> None:
    assert add(n, m) == add(m, n)
    assert sub(add(n, m), m) == n
    assert sub(n, n) == 0
    assert mul(add(n, 1), sub(n, 1)) == sub(mul(n, n), 1)
    assert n != m
    assert of_unknown(Unknown("n", "g")) != n


def test_quotients_take_out_what_divides() -> None:
    assert floordiv(mul(2, n), 2) == n
    assert floordiv(add(mul(4, n), 7), 4) == add(n, 1)
    assert add(floordiv(sub(n, 3), 2), 1) == floordiv(sub(n, 1), 2)
    assert modulo(add(mul(4, n), 7), 4) == 3
    assert divide(mul(6, n), 3) == mul(2, n)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (n, "n"),
        (add(n, 3), "n + 3"),
        (sub(mul(2, n), 1), "2*n - 1"),
        (mul(n, m), "m*n"),
        (floordiv(n, 2), "(n//2)"),
        (floordiv(sub(n, 1), 2), "(n - 1)//2"),
        (apply("sqrt", [n]), "sqrt(n)"),
        (mul(-1, n), "-n"),
        (power(n, 2), "n**2"),
    ],
)
def test_texts(value: object, text: str) -> None:
    assert size_text(value) == text  # type: ignore[arg-type]


whole = st.integers(-20, 20)


@given(st.lists(st.tuples(st.sampled_from("+-*/%"), whole), max_size=5), st.integers(1, 50), st.integers(1, 50))
def test_working_out_late_is_working_out_early(steps: list[tuple[str, int]], vn: int, vm: int) -> None:
    """Arithmetic with unknowns, then numbers put in, is arithmetic with the numbers."""
    symbolic, plain = add(n, mul(2, m)), vn + 2 * vm
    for op, number in steps:
        match op:
            case "+":
                symbolic, plain = add(symbolic, number), plain + number
            case "-":
                symbolic, plain = sub(symbolic, mul(n, number)), plain - vn * number
            case "*":
                symbolic, plain = mul(symbolic, number), plain * number
            case "/":
                symbolic, plain = floordiv(symbolic, abs(number) + 1), plain // (abs(number) + 1)
            case _:
                symbolic, plain = modulo(symbolic, abs(number) + 1), plain % (abs(number) + 1)
    assert replace(symbolic, {N: vn, M: vm}) == plain
