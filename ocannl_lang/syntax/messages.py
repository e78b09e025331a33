"""Words for what a text lacks or has too much of: never the name of a terminal."""

from __future__ import annotations

from ocannl_lang.syntax.machine import Machine, accepts
from ocannl_lang.syntax.tables import END
from ocannl_lang.syntax.tokens import Token

# More alternatives than these confuse; the commonest come first.
_SHOWN = 4

_OPERATORS = frozenset(
    (
        "PLUS", "MINUS", "STAR", "MULOP", "POWER", "COMPARE", "EINSUM", "DOTDOT", "_PIPE", "AND", "OR", "IN", "NOT", "IS", "_DOT",
        "_LPAR", "_LSQB", "_LBRACE", "ASSIGN",
    )
)  # fmt: skip
_EXPRESSION = frozenset(
    (
        "NAME", "INT", "FLOAT", "STRING", "TRUE", "FALSE", "NONE", "_LPAR", "_LSQB", "_LBRACE", "MINUS", "NOT", "IF",
    )
)  # fmt: skip
_TYPE = frozenset(("PREC", "_LSQB", "NAME", "OP", "FN", "_INDEX", "_LPAR"))
_AXIS = frozenset(("NAME", "INT", "_LPAR", "ELLIPSIS", "ROWVAR", "WILD", "_COLLAPSE"))
_LAYOUT = {
    "_NEWLINE": "the end of the line",
    "INDENT": "an indented block",
    "DEDENT": "the end of the block",
    END: "the end of the file",
}
_FOUND = {
    "_NEWLINE": "the end of the line",
    "INDENT": "a line that is indented more",
    "DEDENT": "the end of the block",
    END: "the end of the file",
}
# The order in which alternatives are listed.
_WORDS = {
    "_COLON": "`:`", "_EQUAL": "`=`", "_RESULT": "`=>`", "_ARROW": "`->`", "_THEN": "`then`", "_ELSE": "`else`", "_AS": "`as`",
    "IN": "`in`", "IMPORT": "`import`", "_PY": "`py`", "NAME": "a name", "STRING": "a string", "INT": "a number", "NONE": "`none`",
    "NOT": "`not`", "_COMMA": "`,`", "_SEMICOLON": "`;`", "_RPAR": "`)`", "_RSQB": "`]`", "_RBRACE": "`}`", "_LPAR": "`(`",
    "_LSQB": "`[`", "_LBRACE": "`{`", "_DOT": "`.`", "_BAR": "`|`", "_CARET": "`^`", "FOR": "`for`", "IF": "`if`",
}  # fmt: skip


def found_words(machine: Machine, token: Token, text: str) -> str:
    """What stands in the text, for `found …`."""
    name = machine.tables.names[token.kind]
    if name == END and _is_inner(machine):
        return "the end of the braces"
    if name in _FOUND:
        return _FOUND[name]
    written = text[token.start : token.end]
    if name == "STRING" and (len(written) > 20 or "\n" in written):
        return "a string"
    return f"`{written}`"


def expected_words(machine: Machine) -> str:
    """What may come next, for `expected …`; empty where nothing sensible can be said."""
    tables = machine.tables
    row = tables.action[machine.states[-1]]
    allowed = {tables.names[kind] for kind in row if accepts(tables, machine.states, kind)}
    if _is_inner(machine) and accepts(tables, machine.states, tables.ids[END]):
        return "an operator or the end of the braces"
    return _joined(_alternatives(allowed))


def _is_inner(machine: Machine) -> bool:
    return machine.states[0] == machine.tables.starts["interpolation"]


def _alternatives(allowed: set[str]) -> list[str]:
    if {"FN", "ROUTINE", "CD"} <= allowed:
        return ["a definition"]
    if {"RETURN", "LET", "FOR"} <= allowed:
        return ["a statement"]
    if {"RETURN", "LET"} <= allowed:
        return ["a simple statement", *(["an indented block"] if "_NEWLINE" in allowed else [])]
    words: list[str] = []
    rest = set(allowed)
    if {"INT", "STRING", "NAME"} <= allowed:
        words.append("an expression")
        rest -= _EXPRESSION
    elif {"ELLIPSIS", "ROWVAR"} <= allowed:
        words.append("an axis")
        rest -= _AXIS | {"_COMMA"}
    elif "PREC" in allowed and "_LSQB" in allowed and "PLUS" not in allowed:
        words.append("a type")
        rest -= _TYPE
    elif {"PLUS", "STAR"} <= allowed:
        rest -= _OPERATORS
        if "_NEWLINE" in allowed:
            return ["an operator", "the end of the line"]
        if not rest:
            words.append("an operator")
        if rest & {"_COMMA", "_COLON", "_THEN", "_RPAR", "_RSQB", "_RBRACE"}:
            # `f(a` could also go on with a comprehension or name an argument; that is rarely what was meant.
            rest -= {"FOR", "_EQUAL", "IF"} if "_THEN" not in rest else {"FOR", "IF"}
    elif "_NEWLINE" in rest:
        rest.discard("_SEMICOLON")
    words += [word for name, word in _WORDS.items() if name in rest]
    words += [word for name, word in _LAYOUT.items() if name in rest and name != END]
    return words[:_SHOWN] if words else [_LAYOUT[name] for name in rest if name in _LAYOUT]


def _joined(words: list[str]) -> str:
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} or {words[-1]}"
