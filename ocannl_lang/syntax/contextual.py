"""The other reading of a token, where the parser cannot use the first.

`dim`, `f32`, `max=`, `..r..` and their like are cut as special tokens wherever the text allows it; in a place where
the grammar has no use for the special token they are names and plain signs.
"""

from __future__ import annotations

from ocannl_lang.syntax.machine import Machine, accepts
from ocannl_lang.syntax.tokens import Token

_NAME_TOO = (
    "MAIN", "TEST", "BASIS", "DATA", "DIM", "ROW", "STATE", "FORWARD", "BACKWARD", "_PY", "_COLLAPSE", "_INDEX", "PREC", "WILD",
)  # fmt: skip


def reread(machine: Machine, text: str) -> bool:
    """Puts the other reading in the place of the next token, if there is one that the parser can use."""
    ids = machine.tables.ids
    token = machine.tokens[machine.index]
    if token.kind in [ids[name] for name in _NAME_TOO]:
        other = [Token(ids["NAME"], token.start, token.end)]
    elif token.kind == ids["ASSIGN"]:
        other = _assign(ids, token, text[token.start : token.end])
    elif token.kind == ids["ROWVAR"]:
        start, end = token.start, token.end
        other = [
            Token(ids["DOTDOT"], start, start + 2),
            Token(ids["NAME"], start + 2, end - 2),
            Token(ids["DOTDOT"], end - 2, end),
        ]
    else:
        return False
    if not other or not accepts(machine.tables, machine.states, other[0].kind):
        return False
    machine.tokens[machine.index : machine.index + 1] = other
    return True


def _assign(ids: dict[str, int], token: Token, written: str) -> list[Token]:
    """`max=3` as a name and `=`, `:max=3` as `:`, a name and `=`."""
    start, end = token.start, token.end
    colon = [Token(ids["_COLON"], start, start + 1)] if written.startswith(":") else []
    word = written.removeprefix(":").removesuffix("=")
    if word in ("max", "min"):
        first = start + len(colon)
        return [*colon, Token(ids["NAME"], first, first + len(word)), Token(ids["_EQUAL"], end - 1, end)]
    return []
