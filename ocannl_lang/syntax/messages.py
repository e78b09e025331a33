"""Words for what a text lacks or has too much of."""

from __future__ import annotations


def sign_hint(piece: str) -> tuple[str, str | None, str | None]:
    """For a sign that Ocn does not have: a hint, what to write instead, and the terminal to go on with."""
    return _SIGNS.get(piece, ("", None, None))


_SIGNS: dict[str, tuple[str, str | None, str | None]] = {
    "&&": ("write `and`", "and", "AND"),
    "&": ("write `and`", "and", "AND"),
    "||": ("write `or`", "or", "OR"),
    "!": ("write `not`", "not ", "NOT"),
    "~": ("write `not`", "not ", "NOT"),
    "@": ("the product of tensors is `*`", "*", "STAR"),
    "?": ("a choice is `if c then a else b`", None, None),
}
