"""Common slips, above all of people who come from Python: a message of its own for each, and where possible a repair.

A slip looks at the place where the parser stopped. If it knows it, it says what to report; with `repair` it also
changes the tokens or the stack so that parsing goes on as if the right thing stood there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ocannl_lang.diagnostics.model import Edit, Fix
from ocannl_lang.source import Source, Span
from ocannl_lang.syntax.machine import Machine, accepts
from ocannl_lang.syntax.tokens import Token


@dataclass(frozen=True, slots=True)
class Slip:
    """What to report, and how to go on: `repair` is called on the machine, or is None where the parser has to skip."""

    message: str = ""
    helps: tuple[str, ...] = ()
    fix: Fix | None = None
    span: Span | None = None
    repair: Callable[[Machine], None] | None = None
    spoils: bool = False
    """Whether the definition that is read is no longer what was meant."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the parser stopped: the offending token, its neighbours, and the texts of all three."""

    machine: Machine
    source: Source
    token: Token
    name: str
    text: str
    before: Token | None
    before_name: str
    before_text: str
    after_name: str
    after_text: str
    at_top: bool
    at_statement: bool

    def ids(self, name: str) -> int:
        return self.machine.tables.ids[name]

    def allows(self, name: str) -> bool:
        return accepts(self.machine.tables, self.machine.states, self.ids(name))

    def edit(self, title: str, replacement: str, start: int | None = None, end: int | None = None) -> Fix:
        first = self.token.start if start is None else start
        last = self.token.end if end is None else end
        return Fix(title, (Edit(Span(self.source, first, last), replacement),))

    def replace(self, name: str) -> Callable[[Machine], None]:
        """A repair that takes the token for one of the terminal `name`."""
        kind, token = self.ids(name), self.token

        def repair(machine: Machine) -> None:
            machine.tokens[machine.index] = Token(kind, token.start, token.end)

        return repair

    def insert(self, name: str) -> Callable[[Machine], None]:
        """A repair that puts an empty token of the terminal `name` before the token."""
        kind, at = self.ids(name), self.token.start

        def repair(machine: Machine) -> None:
            machine.tokens.insert(machine.index, Token(kind, at, at))

        return repair


def find(place: Place) -> Slip | None:
    """The first slip that knows the place."""
    for slip in _SLIPS:
        found = slip(place)
        if found is not None:
            return found
    return None


# ---------------------------------------------------------------- at the top of a module


def _python_definition(p: Place) -> Slip | None:
    if not (p.at_top and p.name == "NAME" and p.text in ("def", "func", "fun", "function") and p.after_name == "NAME"):
        return None
    helps = ("`fn` defines a function, `op` a differentiable tensor function, `routine` one that is compiled",)
    message = f"`{p.text}` starts no definition"
    return Slip(message, helps, p.edit("write `fn`", "fn"), repair=p.replace("FN"), spoils=True)


def _binding_without_let(p: Place) -> Slip | None:
    if not (p.at_top and p.name in ("NAME", "WILD")):
        return None
    tokens, i = p.machine.tokens, p.machine.index
    names = p.machine.tables.names
    j = i
    while names[tokens[j].kind] == "NAME" and names[tokens[j + 1].kind] == "_COMMA":
        j += 2
    if names[tokens[j].kind] != "NAME" or names[tokens[j + 1].kind] not in ("_EQUAL", "_COLON"):
        return None
    message = f"`{p.text}` is bound without `let`"
    return Slip(message, ("at the top of a module, write `let`",), _insertion(p, "let "), repair=p.insert("LET"))


def _main_without_parentheses(p: Place) -> Slip | None:
    if not (p.at_top and p.text == "main" and p.after_name == "_COLON"):
        return None
    start, end = p.token.start, p.token.end
    tokens = [Token(p.ids("MAIN"), start, end), Token(p.ids("_LPAR"), end, end), Token(p.ids("_RPAR"), end, end)]

    def repair(machine: Machine) -> None:
        machine.tokens[machine.index : machine.index + 1] = tokens

    helps = ("its parameters are the options of the command line; without any, write `main():`",)
    return Slip("`main` lacks its parentheses", helps, p.edit("write `main()`", "main()"), repair=repair)


def _test_without_string(p: Place) -> Slip | None:
    if p.at_top and p.text == "test" and p.after_name in ("NAME", "_COLON"):
        return Slip("a test is named by a string", ('write `test "what it shows":`',))
    return None


def _other_comment(p: Place) -> Slip | None:
    if (p.at_top or p.at_statement) and p.text == "//":
        return Slip("a comment starts with `#`", (), p.edit("write `#`", "#"))
    return None


def _import_list(p: Place) -> Slip | None:
    if p.before_name != "IMPORT":
        return None
    if p.name == "_LPAR":
        return Slip(
            "expected a name, found `(`", ("names stand without parentheses; after a `,` the next line goes on",)
        )
    if p.text == "*":
        return Slip("expected a name, found `*`", ("name what is imported, or import the module itself",))
    return None


def _var_at_top(p: Place) -> Slip | None:
    if not (p.at_top and p.name == "VAR"):
        return None
    message = "a `var` stands in a body"
    return Slip(
        message,
        ("at the top of a module, values are bound by `let`",),
        p.edit("write `let`", "let"),
        repair=p.replace("LET"),
    )


def _statement_at_top(p: Place) -> Slip | None:
    if not p.at_top or p.name in ("INDENT", "DEDENT", "_NEWLINE"):
        return None
    if p.text in _FOREIGN and p.after_name not in ("_LPAR", "_DOT", "_LSQB"):
        return Slip(f"`{p.text}` starts no definition", (_FOREIGN[p.text],))
    helps = ("statements stand in the body of `main():`, or of an `fn`, `op`, `cd`, `routine` or `test`",)
    return Slip(f"expected a definition, found `{p.text}`", helps)


# ---------------------------------------------------------------- statements


def _definition_inside(p: Place) -> Slip | None:
    if not p.at_statement or p.at_top:
        return None
    if p.name in ("FN", "OP", "CD", "ROUTINE", "EXTERN", "IMPORT", "FROM"):
        return Slip(f"`{p.text}` stands at the top of a module", ("move it out of this block",))
    return None


def _else_if(p: Place) -> Slip | None:
    if not (p.name == "IF" and p.before_name == "_ELSE" and p.before is not None and p.allows("_COLON")):
        return None
    kind, token = p.ids("_ELIF"), p.token

    def repair(machine: Machine) -> None:
        machine.pop_to(len(machine.states) - 1)
        machine.tokens[machine.index] = Token(kind, token.start, token.end)

    fix = p.edit("write `elif`", "elif", p.before.start, p.token.end)
    return Slip("expected `:` after `else`, found `if`", ("write `elif`",), fix, repair=repair)


def _else_alone(p: Place) -> Slip | None:
    if not (p.at_statement and p.name in ("_ELSE", "_ELIF")):
        return None
    return Slip(f"`{p.text}` has no `if` before it", ("it stands below its `if`, with the same indentation",))


def _else_on_the_line(p: Place) -> Slip | None:
    if p.name in ("_ELSE", "_ELIF") and not p.at_statement and p.allows("_NEWLINE") and p.after_name == "_COLON":
        return Slip(f"unexpected `{p.text}`", (f"put `{p.text}` on a line of its own",))
    return None


def _missing_colon(p: Place) -> Slip | None:
    if not (p.name == "_NEWLINE" and p.after_name == "INDENT" and p.allows("_COLON")):
        return None
    if p.machine.tables.names[p.machine.tokens[p.machine.index + 1].kind] != "INDENT":
        return None
    return Slip("expected `:`, found the end of the line", (), _insertion(p, ":"), repair=p.insert("_COLON"))


def _equal_in_condition(p: Place) -> Slip | None:
    if p.name != "_EQUAL" or not p.allows("COMPARE") or p.allows("_NEWLINE"):
        return None
    if not (p.allows("_COLON") or p.allows("_THEN") or p.allows("AND")):
        return None
    return Slip(
        "expected `==`, found `=`",
        ("`=` binds a name; compare with `==`",),
        p.edit("write `==`", "=="),
        repair=p.replace("COMPARE"),
    )


def _compare_for_equal(p: Place) -> Slip | None:
    if p.name == "COMPARE" and p.text == "==" and p.allows("_EQUAL"):
        return Slip(
            "expected `=`, found `==`",
            ("`==` compares; bind with `=`",),
            p.edit("write `=`", "="),
            repair=p.replace("_EQUAL"),
        )
    if p.name == "ASSIGN" and p.text == ":=" and p.allows("_EQUAL"):
        helps = ("a name is bound with `=`; `:=` sets a tensor",)
        return Slip("expected `=`, found `:=`", helps, p.edit("write `=`", "="), repair=p.replace("_EQUAL"))
    return None


def _operator_with_equal(p: Place) -> Slip | None:
    if p.name != "_EQUAL" or p.before_name != "MULOP" or p.before is None or p.before.end != p.token.start:
        return None
    return Slip(f"there is no `{p.before_text}=`", (f"write `x = x {p.before_text} e`",))


def _foreign_statement(p: Place) -> Slip | None:
    """A word of another language, which was taken for a name, before the place."""
    hint = _FOREIGN.get(p.before_text) if p.before_name == "NAME" else None
    if hint is None or p.before is None or p.name in ("_RPAR", "_RSQB", "_COMMA"):
        return None
    if p.before_text == "lambda" or _starts_line(p):
        fix = None
        if p.before_text == "assert":
            fix = p.edit("write `expect`", "expect", p.before.start, p.before.end)
        return Slip(f"there is no `{p.before_text}`", (hint,), fix, span=Span(p.source, p.before.start, p.before.end))
    if p.before_text in ("mut", "const", "val") and p.name == "NAME":
        return Slip(f"there is no `{p.before_text}`", (hint,), span=Span(p.source, p.before.start, p.before.end))
    return None


def _starts_line(p: Place) -> bool:
    assert p.before is not None
    line_start = p.source.text.rfind("\n", 0, p.before.start) + 1
    return not p.source.text[line_start : p.before.start].strip()


_FOREIGN = {
    "lambda": "there are no functions without a name: define an `fn` or an `op` at the top of the module",
    "assert": "write `expect condition`",
    "class": "there are no classes: an `op` holds parameters and states",
    "try": "there are no exceptions",
    "except": "there are no exceptions",
    "raise": 'write `expect condition, "message"`',
    "with": "there is no `with`",
    "del": "a value goes when nothing needs it",
    "global": "values at the top of a module are seen everywhere in it",
    "nonlocal": "values at the top of a module are seen everywhere in it",
    "yield": "write a list, or a comprehension `[e for x in xs]`",
    "async": "calls of routines are carried out in order",
    "await": "calls of routines are carried out in order",
    "match": "write `if` and `elif`",
    "switch": "write `if` and `elif`",
    "case": "write `if` and `elif`",
    "mut": "write `var` for a name that is bound anew",
    "const": "write `let`",
    "val": "write `let`",
    "elseif": "write `elif`",
    "elsif": "write `elif`",
    "until": "write `while not condition`",
    "unless": "write `if not condition`",
    "struct": "there are no records: use a tuple or `dict(a = 1)`",
    "type": "there are no names for types",
    "use": "write `import` or `from … import`",
    "include": "write `import` or `from … import`",
    "def": "`fn` defines a function, at the top of a module",
}


# ---------------------------------------------------------------- expressions


def _is_none_capital(p: Place) -> Slip | None:
    if p.name == "NAME" and p.text in ("None", "True", "False") and p.before_name in ("IS", "NOT") and p.allows("NONE"):
        if p.text == "None":
            return Slip("`none` is written small", (), p.edit("write `none`", "none"), repair=p.replace("NONE"))
        return Slip("`is` compares with `none` only", ("use the value itself, or `not`",))
    return None


def _is_something(p: Place) -> Slip | None:
    if p.before_name == "IS" and p.allows("NONE"):
        return Slip("`is` compares with `none` only", ("compare other values with `==`",))
    return None


def _chained_comparison(p: Place) -> Slip | None:
    if p.name != "COMPARE" or p.allows("COMPARE") or not (p.allows("AND") and p.allows("OR")):
        return None
    return Slip("comparisons do not chain", ("write `a < b and b < c`",))


def _python_choice(p: Place) -> Slip | None:
    if p.name != "IF" or p.before_name not in _ENDS_OF_EXPRESSIONS:
        return None
    tokens = p.machine.tokens
    names = p.machine.tables.names
    depth = 0
    for token in tokens[p.machine.index + 1 :]:
        name = names[token.kind]
        depth += (name in ("_LPAR", "_LSQB", "_LBRACE")) - (name in ("_RPAR", "_RSQB", "_RBRACE"))
        if depth < 0 or name in ("_NEWLINE", "_COLON", "_THEN", "_SEMICOLON"):
            break
        if depth == 0 and name == "_ELSE":
            return Slip("unexpected `if`", ("write a choice as `if condition then a else b`",))
    return None


_ENDS_OF_EXPRESSIONS = ("NAME", "INT", "FLOAT", "STRING", "TRUE", "FALSE", "NONE", "_RPAR", "_RSQB", "_RBRACE")


def _dict_braces(p: Place) -> Slip | None:
    if p.before_name != "_LBRACE" or p.name not in ("STRING", "_RBRACE", "INT", "FLOAT") or p.allows("ELLIPSIS"):
        return None
    helps = ("braces hold a parameter, such as `{w}`; a dictionary is `dict(a = 1, b = 2)`",)
    return Slip(f"expected a name, found {p.text if p.name == 'STRING' else f'`{p.text}`'}", helps)


def _string_prefix(p: Place) -> Slip | None:
    if p.name != "STRING" or p.before is None or p.before_name not in ("NAME", "STRING"):
        return None
    if p.before_text == "print":
        return Slip("`print` is a function", ("write `print(…)`",))
    if p.before_name == "STRING":
        return Slip("two strings stand side by side", ("join them with `+`",))
    if p.before.end == p.token.start and p.before_text.lower() in ("f", "r", "b", "u", "fr", "rf", "br", "rb"):
        before = p.before
        kind = p.ids("STRING")

        def repair(machine: Machine) -> None:
            machine.tokens[machine.index - 1 : machine.index + 1] = [Token(kind, p.token.start, p.token.end)]
            machine.index -= 1
            machine.pop_to(len(machine.states) - 1)

        fix = p.edit(f"remove `{p.before_text}`", "", before.start, before.end)
        helps = ("`{…}` is filled in without a prefix",)
        span = Span(p.source, before.start, before.end)
        can_repair = isinstance(p.machine.values[-1], Token)
        return Slip("a string has no prefix", helps, fix, span=span, repair=repair if can_repair else None)
    return Slip(f"unexpected string after `{p.before_text}`", (f"write `{p.before_text}(…)` for a call",))


def _wrong_sign(p: Place) -> Slip | None:
    if not (p.allows("PLUS") and p.allows("STAR")):
        return None
    if p.name == "_CARET":
        return Slip("unexpected `^`", ("the power is `**`",), p.edit("write `**`", "**"), repair=p.replace("POWER"))
    if p.name == "_BAR" and not p.allows("_BAR"):
        return Slip("unexpected `|`", ("write `or`",), p.edit("write `or`", "or"), repair=p.replace("OR"))
    if p.name == "_RESULT" and not p.allows("_RESULT"):
        return Slip("unexpected `=>`", ("write `>=`",), p.edit("write `>=`", ">="), repair=p.replace("COMPARE"))
    if p.name == "ELLIPSIS":
        return Slip("unexpected `...`", ("a range is `a..b`",), p.edit("write `..`", ".."), repair=p.replace("DOTDOT"))
    if p.name == "_PADDED" and p.allows("_EQUAL"):
        return Slip("unexpected `=+`", ("write `+=` to add, or `= ` without the `+`",), p.edit("write `+=`", "+="))
    return None


def _increment(p: Place) -> Slip | None:
    if p.name == "_NEWLINE" and p.before_name == "PLUS" and p.source.text.endswith("++", 0, p.token.start):
        return Slip("expected an expression, found the end of the line", ("write `x += 1` to count",))
    if p.name == "PLUS" and p.before_name in ("PLUS", "_EQUAL", "_LPAR", "_COMMA", "RETURN", "STAR"):
        helps = ("write `x += 1` to count",) if p.before_name == "PLUS" else ("a number has no sign `+`",)
        return Slip("unexpected `+`", helps)
    return None


def _pattern_in_parentheses(p: Place) -> Slip | None:
    if (
        p.name == "_LPAR"
        and p.before_name in ("FOR", "LET", "VAR", "_COMMA")
        and p.allows("NAME")
        and not p.allows("INT")
    ):
        return Slip("expected a name, found `(`", ("names that take a tuple apart stand without parentheses: `a, b`",))
    return None


# ---------------------------------------------------------------- axes and types


def _infix_without_result(p: Place) -> Slip | None:
    if p.name != "_RBRACE" or not p.allows("_RESULT") or p.allows("_RBRACE"):
        return None
    message = "this notation has no result"
    return Slip(message, ("write `=>` and the axes of the result: `{i, k; k, j => i, j}`",))


def _computed_size(p: Place) -> Slip | None:
    if p.name in ("STAR", "PLUS", "MINUS", "MULOP") and p.allows("ELLIPSIS"):
        return Slip(f"unexpected `{p.text}`", ("a computed size or position stands in parentheses: `(2 * d)`",))
    return None


def _loose_row(p: Place) -> Slip | None:
    if p.name == "DOTDOT" and p.allows("ELLIPSIS"):
        return Slip(
            "unexpected `..`", ("a row variable is written without spaces: `..r..`; `...` is any number of axes",)
        )
    return None


def _keyword_as_name(p: Place) -> Slip | None:
    if p.text.isidentifier() and p.name not in ("NAME", "WILD") and p.allows("NAME") and not p.allows("INT"):
        return Slip(f"expected a name, found the keyword `{p.text}`", ("take another name",))
    return None


def _insertion(p: Place, text: str) -> Fix:
    return p.edit(f"insert `{text.strip()}`", text, p.token.start, p.token.start)


_SLIPS: tuple[Callable[[Place], Slip | None], ...] = (
    _python_definition,
    _main_without_parentheses,
    _test_without_string,
    _other_comment,
    _import_list,
    _binding_without_let,
    _var_at_top,
    _statement_at_top,
    _definition_inside,
    _else_if,
    _else_alone,
    _else_on_the_line,
    _missing_colon,
    _equal_in_condition,
    _compare_for_equal,
    _operator_with_equal,
    _is_none_capital,
    _is_something,
    _string_prefix,
    _foreign_statement,
    _chained_comparison,
    _python_choice,
    _dict_braces,
    _wrong_sign,
    _increment,
    _pattern_in_parentheses,
    _infix_without_result,
    _computed_size,
    _loose_row,
    _keyword_as_name,
)
