"""How the terminals of the grammar are shown: `SCOPES` classes them, the functions ask the parser's tables for their texts.

A terminal that `SCOPES` lacks, or that the grammar no longer has, stops the generation of the files for editors.
"""

from __future__ import annotations

import re

from ocannl_lang.syntax.tables import load_tables

_BY_SCOPE = {
    "keyword.control.import": "IMPORT FROM _AS",
    "keyword.control": "IF _THEN _ELIF _ELSE FOR WHILE BREAK CONTINUE RETURN EXPECT FORWARD BACKWARD",
    "keyword.operator.word": "IS IN AND OR NOT",
    "keyword.other.collapse": "_COLLAPSE",
    "storage.type.function": "FN OP CD ROUTINE MAIN TEST",
    "storage.type": "LET VAR EXTERN BASIS DATA DIM ROW STATE",
    "storage.modifier": "_PY",
    "support.type.precision": "PREC",
    "support.type.index": "_INDEX",
    "constant.language": "TRUE FALSE NONE",
    "constant.numeric.float": "FLOAT",
    "constant.numeric.integer": "INT",
    "string.quoted": "STRING",
    "variable.language.axes": "ROWVAR ELLIPSIS WILD",
    "keyword.operator.assignment": "ASSIGN _EQUAL",
    "keyword.operator.comparison": "COMPARE",
    "keyword.operator.arithmetic": "PLUS MINUS STAR MULOP POWER",
    "keyword.operator.einsum": "EINSUM",
    "keyword.operator.axes": "_RESULT _ARROW _BAR _PADDED _CARET",
    "keyword.operator.pipe": "_PIPE",
    "keyword.operator.range": "DOTDOT",
    "punctuation.accessor": "_DOT",
    "punctuation.separator": "_COMMA _SEMICOLON _COLON",
    "punctuation.bracket.round": "_LPAR _RPAR",
    "punctuation.bracket.square": "_LSQB _RSQB",
    "punctuation.bracket.curly": "_LBRACE _RBRACE",
}

SCOPES: dict[str, str] = {terminal: scope for scope, names in _BY_SCOPE.items() for terminal in names.split()}
"""The scope of each terminal of the grammar except `NAME`, without the `.ocn` at its end."""


def check_tables() -> None:
    """Raises `ValueError` where `SCOPES` and the grammar do not have the same terminals."""
    terminals = {name for name, _, _ in load_tables().patterns} - {"NAME"}
    missing, surplus = sorted(terminals - set(SCOPES)), sorted(set(SCOPES) - terminals)
    if missing or surplus:
        raise ValueError(f"the scopes lack {missing} and have too many: {surplus}")


def pattern(*terminals: str) -> str:
    """A regular expression for any of these terminals, the longer signs first."""
    texts = {name: (is_literal, text) for name, is_literal, text in load_tables().patterns}
    literals = sorted((texts[name][1] for name in terminals if texts[name][0]), key=lambda text: (-len(text), text))
    others = [texts[name][1] for name in terminals if not texts[name][0]]
    return "|".join([*others, *(_escaped(text) for text in literals)])


def words(*terminals: str) -> list[str]:
    """The keywords among these terminals, in the order of the grammar."""
    return [text for name, is_literal, text in load_tables().patterns if name in terminals and is_literal]


def keyword_scopes() -> dict[str, list[str]]:
    """The words that are keywords everywhere, by scope."""
    found: dict[str, list[str]] = {}
    for name, is_literal, text in load_tables().patterns:
        if is_literal and text.isidentifier():
            found.setdefault(SCOPES[name], []).append(text)
    return found


def _escaped(text: str) -> str:
    return re.sub(r"([^\w\s=<>:;,@%!-])", r"\\\1", text)
