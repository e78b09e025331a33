"""Turns line ends into the structure that the grammar sees: newlines that end statements, and blocks.

A newline ends a statement unless it stands inside brackets, after a sign that asks for more (a binary operator, `=`, `,`, `->`, ...), before
`|>`, or inside a choice that goes on with `then` or `else`. Brackets leave this file balanced: one that is not closed is reported and closed
where its statement ends at the latest, so that it spoils nothing beyond it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ocannl_lang.diagnostics.model import Collector, Diagnostic, Edit, Fix, Label
from ocannl_lang.source import Source, Span
from ocannl_lang.syntax.tokens import LINE, Cut, Token, lexicon

_OPENING = {"_LPAR": "(", "_LSQB": "[", "_LBRACE": "{"}
_CLOSING = {"_RPAR": ")", "_RSQB": "]", "_RBRACE": "}"}
_PAIRS = {"_LPAR": "_RPAR", "_LSQB": "_RSQB", "_LBRACE": "_RBRACE"}
_ASKS_FOR_MORE = (
    "PLUS", "MINUS", "STAR", "MULOP", "POWER", "COMPARE", "EINSUM", "DOTDOT", "_PIPE", "AND", "OR", "NOT", "IN", "IS", "_THEN",
    "_EQUAL", "ASSIGN", "_ARROW", "_COMMA",
)  # fmt: skip
# Words that start a statement or a definition and stand in no expression.
_STARTERS = (
    "LET", "VAR", "FN", "OP", "CD", "ROUTINE", "EXTERN", "IMPORT", "FROM", "WHILE", "BREAK", "CONTINUE", "RETURN", "EXPECT",
)  # fmt: skip
_CONTINUES = re.compile(r"\|>|then\b")
_ELSE = re.compile(r"else\b")


@dataclass(frozen=True, slots=True, eq=False)
class _Kinds:
    newline: int
    indent: int
    dedent: int
    then: int
    else_: int
    einsum: int
    closer_of: dict[int, int]
    opener_of: dict[int, int]
    asks: frozenset[int]
    starters: frozenset[int]
    signs: dict[int, str]


@lru_cache(maxsize=1)
def _kinds() -> _Kinds:
    ids = lexicon().ids
    return _Kinds(
        newline=ids["_NEWLINE"],
        indent=ids["INDENT"],
        dedent=ids["DEDENT"],
        then=ids["_THEN"],
        else_=ids["_ELSE"],
        einsum=ids["EINSUM"],
        closer_of={ids[a]: ids[b] for a, b in _PAIRS.items()},
        opener_of={ids[b]: ids[a] for a, b in _PAIRS.items()},
        asks=frozenset(ids[name] for name in _ASKS_FOR_MORE),
        starters=frozenset(ids[name] for name in _STARTERS),
        signs={ids[name]: text for name, text in (_OPENING | _CLOSING).items()},
    )


def lay_out(source: Source, cut: Cut, collector: Collector) -> list[Token]:
    """The tokens with newlines, indents and dedents; every bracket is closed. Tokens of layout are empty, at the end of the one before."""
    kinds = _kinds()
    text = source.text
    closer_of, opener_of, asks, starters = kinds.closer_of, kinds.opener_of, kinds.asks, kinds.starters
    newline, dedent, then, else_ = kinds.newline, kinds.dedent, kinds.then, kinds.else_
    result: list[Token] = []
    add = result.append
    raw = cut.tokens
    levels = [0]
    brackets: list[tuple[Token, bool]] = []
    before = -2
    end = 0
    # How many `then`s of this statement still wait for their `else`, and whether the last `else` belonged to one.
    open_choices = 0
    is_choice = False
    for index, token in enumerate(raw):
        kind = token.kind
        if kind != LINE:
            if kind in closer_of:
                brackets.append((token, before == kinds.einsum))
            elif kind in opener_of:
                continues = _close(source, token, brackets, result, kinds, collector, cut.spoilt)
                if continues is None:
                    if result and result[-1].end > end:
                        before, end = result[-1].kind, result[-1].end
                    continue
                if continues:
                    # The brace of an infix einsum asks for its right side.
                    add(token)
                    before, end = kinds.einsum, token.end
                    continue
            elif kind == then:
                open_choices += not brackets
            elif kind == else_ and not brackets:
                is_choice = open_choices > 0
                open_choices -= is_choice
            add(token)
            before, end = kind, token.end
            continue
        start = token.end
        at_end = index == len(raw) - 1
        follower = -2 if at_end else raw[index + 1].kind
        if follower == LINE:
            continue
        column = _column(source, start, collector) if not at_end else 0
        if brackets:
            is_new = column == 0 and follower not in opener_of
            if not (at_end or is_new or (follower in starters and brackets[-1][0].start < token.start)):
                continue
            _close_all(source, token, brackets, result, kinds, collector, cut.spoilt)
        elif not at_end and before in asks and follower not in starters and (column > 0 or levels[-1] == 0):
            # As with brackets, a line at the margin ends what an operator has left open in a body.
            continue
        elif at_end:
            break
        elif (result and _CONTINUES.match(text, start)) or (is_choice and before == else_):
            continue
        elif open_choices and _ELSE.match(text, start):
            continue
        if at_end:
            break
        if result and before != newline:
            add(Token(newline, end, end))
        if column > levels[-1]:
            levels.append(column)
            add(Token(kinds.indent, end, end))
        elif column < levels[-1]:
            while len(levels) > 1 and levels[-2] >= column:
                levels.pop()
                add(Token(dedent, end, end))
            if levels[-1] > column:
                _uneven(source, start, column, levels, collector)
                levels[-1] = column
        before = newline
        open_choices = 0
    if brackets:
        _close_all(source, None, brackets, result, kinds, collector, cut.spoilt)
    if result and before != newline:
        add(Token(newline, end, end))
    for _ in levels[1:]:
        add(Token(dedent, end, end))
    return result


def _column(source: Source, start: int, collector: Collector) -> int:
    """The width of the indentation before `start`, in spaces; a tab in it is reported."""
    text = source.text
    line_start = text.rfind("\n", 0, start) + 1
    indentation = text[line_start:start]
    if "\t" not in indentation:
        return len(indentation.lstrip("\ufeff"))
    first = line_start + indentation.index("\t")
    spaces = indentation.expandtabs(4)
    fix = Fix("indent with spaces", (Edit(Span(source, line_start, start), spaces),))
    helps = ("indent with spaces: four for each level",)
    collector.report(Diagnostic("E0101", "tab in indentation", Span(source, first, first + 1), helps=helps, fix=fix))
    return len(spaces)


def _uneven(source: Source, start: int, column: int, levels: list[int], collector: Collector) -> None:
    line_end = source.text.find("\n", start)
    span = Span(source, start, len(source.text) if line_end < 0 else line_end)
    outer = levels[-2] if len(levels) > 1 else 0
    label = f"indented by {column}, the lines before by {levels[-1]} and {outer}"
    message = "this line is indented like none of the blocks around it"
    collector.report(Diagnostic("E0102", message, span, label=label))


def _close(
    source: Source,
    token: Token,
    brackets: list[tuple[Token, bool]],
    result: list[Token],
    kinds: _Kinds,
    collector: Collector,
    spoilt: list[tuple[int, int]],
) -> bool | None:
    """Matches a closing bracket: whether it ends an infix einsum's notation, or None where it is left out."""
    wanted = kinds.opener_of[token.kind]
    if brackets and brackets[-1][0].kind == wanted:
        return brackets.pop()[1]
    sign = kinds.signs[token.kind]
    span = Span(source, token.start, token.end)
    if not any(opening.kind == wanted for opening, _ in brackets):
        if not brackets:
            fix = Fix(f"remove `{sign}`", (Edit(span, ""),))
            collector.report(Diagnostic("E0102", f"unexpected `{sign}`", span, label="nothing is open here", fix=fix))
            return None
        opening, _ = brackets.pop()
        right = kinds.signs[kinds.closer_of[opening.kind]]
        left = kinds.signs[opening.kind]
        label = Label(Span(source, opening.start, opening.end), f"`{left}` is opened here")
        fix = Fix(f"write `{right}`", (Edit(span, right),))
        message = f"expected `{right}`, found `{sign}`"
        collector.report(Diagnostic("E0102", message, span, labels=(label,), fix=fix))
        result.append(Token(kinds.closer_of[opening.kind], token.start, token.end))
        return None
    while brackets[-1][0].kind != wanted:
        opening, _ = brackets.pop()
        _unclosed(source, opening, token.start, f"`{sign}` comes first", kinds, collector)
        result.append(Token(kinds.closer_of[opening.kind], token.start, token.start))
        spoilt.append((opening.start, token.start))
    return brackets.pop()[1]


def _close_all(
    source: Source,
    line: Token | None,
    brackets: list[tuple[Token, bool]],
    result: list[Token],
    kinds: _Kinds,
    collector: Collector,
    spoilt: list[tuple[int, int]],
) -> None:
    end = result[-1].end
    for opening, _ in reversed(brackets):
        where = "" if line is None else "a new statement starts before it is closed"
        _unclosed(source, opening, end, where, kinds, collector)
        result.append(Token(kinds.closer_of[opening.kind], end, end))
        spoilt.append((opening.start, end))
    brackets.clear()


def _unclosed(source: Source, opening: Token, end: int, label: str, kinds: _Kinds, collector: Collector) -> None:
    left = kinds.signs[opening.kind]
    right = kinds.signs[kinds.closer_of[opening.kind]]
    span = Span(source, opening.start, opening.end)
    fix = Fix(f"insert `{right}`", (Edit(Span(source, end, end), right),))
    collector.report(Diagnostic("E0103", f"`{left}` is not closed", span, label=label, fix=fix))
