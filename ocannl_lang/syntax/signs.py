"""Signs of other languages and of mathematics that Ocn writes in another way."""

from __future__ import annotations

# For each sign: a hint, what to write instead, and the terminal with which parsing goes on.
FOREIGN: dict[str, tuple[str, str | None, str | None]] = {
    "&&": ("write `and`", "and", "AND"),
    "&": ("write `and`", "and", "AND"),
    "||": ("write `or`", "or", "OR"),
    "!": ("write `not`", "not ", "NOT"),
    "~": ("write `not`", "not ", "NOT"),
    "@": ("the product of tensors is `*`", "*", "STAR"),
    "?": ("a choice is `if c then a else b`", None, None),
    "−": ("write `-`", "-", "MINUS"),
    "–": ("write `-`", "-", "MINUS"),
    "×": ("write `*` for the tensor product, `*.` for the pointwise one", "*", "STAR"),
    "·": ("write `*` for the tensor product, `*.` for the pointwise one", "*.", "MULOP"),
    "÷": ("write `/`", "/", "MULOP"),
    "≤": ("write `<=`", "<=", "COMPARE"),
    "≥": ("write `>=`", ">=", "COMPARE"),
    "≠": ("write `!=`", "!=", "COMPARE"),
    "→": ("write `->`", "->", "_ARROW"),
    "⇒": ("write `=>`", "=>", "_RESULT"),
    "…": ("write `...`", "...", "ELLIPSIS"),
    "“": ('strings stand in straight double quotes: `"text"`', '"', None),
    "”": ('strings stand in straight double quotes: `"text"`', '"', None),
    "„": ('strings stand in straight double quotes: `"text"`', '"', None),
}

# How an operator that was taken for another one is called in the tree.
MEANT: dict[str, str] = {
    **{sign: text.strip() for sign, (_, text, kind) in FOREIGN.items() if text is not None and kind is not None},
    "^": "**",
    "|": "or",
    "=": "==",
    "=>": ">=",
    "...": "..",
}
