"""Resolution and static types never raise, whatever the text."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from ocannl_lang.names.nearest import distance
from tests.names.programs import ATTENTION, HALF_MOONS, check, found

TOKENS = re.findall(r"\w+|\s+|[^\w\s]", HALF_MOONS + ATTENTION)
PIECES = st.sampled_from([*sorted(set(TOKENS)), "{", "}", "(", ")", "[", "]", "=>", "..", "let", "if", "for", "\n    "])


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A program with pieces exchanged, left out and put in."""
    tokens = re.findall(r"\w+|\s+|[^\w\s]", draw(st.sampled_from([HALF_MOONS, ATTENTION])))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(tokens) - 1))
        match draw(st.integers(0, 3)):
            case 0:
                del tokens[at]
            case 1:
                tokens.insert(at, draw(PIECES))
            case 2:
                tokens[at] = draw(PIECES)
            case _:
                other = draw(st.integers(0, len(tokens) - 1))
                tokens[at], tokens[other] = tokens[other], tokens[at]
    return "".join(tokens)


@settings(max_examples=60, deadline=None)
@given(mutated())
def test_any_text_is_checked(text: str) -> None:
    assert [d.render() for d in check(text)] == [d.render() for d in check(text)]


def test_long_and_deep_expressions() -> None:
    assert found("fn f(n: int) = " + " + ".join(["n"] * 5_000) + "\n") == []
    found("fn f(n: int) = " + "(" * 3_000 + "n" + ")" * 3_000 + "\n")
    found("fn f(n: int) = " + "-" * 3_000 + "n\n")


@given(st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_distance_is_symmetric_and_zero_for_equal_texts(a: str, b: str) -> None:
    assert distance(a, b) == distance(b, a)
    assert (distance(a, b) == 0) == (a == b)
