"""Turns line ends into the structure that the grammar sees: newlines that end statements, and blocks.

A newline ends a statement unless it stands inside brackets, after a sign that asks for more (a binary operator, `=`,
`,`, `->`, ...), before `|>`, or inside a choice that goes on with `then` or `else`. Brackets leave this file
balanced: one that is not closed is reported and closed where its statement ends at the latest, so that it spoils
nothing beyond it.
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


@dataclass(frozen=True, slots=True, eq=False)
class _Kinds:
    newline: int
    indent: int
    dedent: int
    then: int
    else_: int
    colon: int
    einsum: int
    star: int
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
        colon=ids["_COLON"],
        einsum=ids["EINSUM"],
        star=ids["STAR"],
        closer_of={ids[a]: ids[b] for a, b in _PAIRS.items()},
        opener_of={ids[b]: ids[a] for a, b in _PAIRS.items()},
        asks=frozenset(ids[name] for name in _ASKS_FOR_MORE),
        starters=frozenset(ids[name] for name in _STARTERS),
        signs={ids[name]: text for name, text in (_OPENING | _CLOSING).items()},
    )


@dataclass(slots=True)
class _Layout:
    """What is known while a text is laid out: open brackets (each with whether an infix einsum's sign precedes it),
    the indentations of the open blocks, and how many `then`s of the statement wait for their `else`.
    """

    source: Source
    cut: Cut
    collector: Collector
    kinds: _Kinds
    result: list[Token]
    brackets: list[tuple[Token, bool]]
    levels: list[int]
    open_choices: int = 0
    is_choice: bool = False


def lay_out(source: Source, cut: Cut, collector: Collector) -> list[Token]:
    """The tokens with newlines, indents and dedents; every bracket is closed. Tokens of layout are empty, at the end
    of the one before.
    """
    kinds = _kinds()
    layout = _Layout(source, cut, collector, kinds, [], [], [0])
    result, brackets, raw = layout.result, layout.brackets, cut.tokens
    closer_of, opener_of, then, else_, newline = (
        kinds.closer_of,
        kinds.opener_of,
        kinds.then,
        kinds.else_,
        kinds.newline,
    )
    add = result.append
    before, end = newline, 0
    for index, token in enumerate(raw):
        kind, _, stop = token
        if kind == LINE:
            if index < len(raw) - 1 and raw[index + 1].kind != LINE and _ends(layout, token, raw[index + 1], before):
                before, end = newline, _new_line(layout, token, before, end)
            continue
        if kind in closer_of:
            brackets.append((token, before == kinds.einsum))
        elif kind in opener_of:
            continues = _close(layout, token)
            if continues is None:
                if result and result[-1].end > end:
                    before, _, end = result[-1]
                continue
            if continues:
                # The brace of an infix einsum asks for its right side, as any operator does.
                kind = kinds.star
        elif kind == then:
            layout.open_choices += not brackets
        elif kind == else_ and not brackets:
            layout.is_choice = layout.open_choices > 0
            layout.open_choices -= layout.is_choice
        add(token)
        before, end = kind, stop
        if stop in cut.torn and brackets:
            _close_torn(layout, token)
    if brackets:
        _close_all(layout, "")
    if result and before != newline:
        add(Token(newline, end, end))
    for _ in layout.levels[1:]:
        add(Token(kinds.dedent, end, end))
    return result


def _ends(layout: _Layout, line: Token, following: Token, before: int) -> bool:
    """Whether the line end `line` ends the statement, where the next line starts with the token `following`."""
    kinds, text = layout.kinds, layout.source.text
    column = _column(layout.source, line.end, layout.collector)
    at_margin = column == 0
    if layout.brackets:
        is_new = (at_margin and following.kind not in kinds.opener_of) or following.kind in kinds.starters
        if is_new:
            _close_all(layout, "a new statement starts before it is closed")
        return is_new
    if before in kinds.asks and following.kind not in kinds.starters:
        # As with brackets, a line at the margin ends what a sign has left open in a body.
        return at_margin and layout.levels[-1] > 0
    if layout.result and _CONTINUES.match(text, line.end):
        return False
    if layout.is_choice and before == kinds.else_:
        return False
    return not (layout.open_choices and following.kind == kinds.else_)


def _new_line(layout: _Layout, line: Token, before: int, end: int) -> int:
    """Ends the statement and opens or closes blocks; returns where the text so far ends."""
    kinds, levels, add = layout.kinds, layout.levels, layout.result.append
    end = max(end, layout.result[-1].end) if layout.result else end
    if layout.result and before != kinds.newline:
        add(Token(kinds.newline, end, end))
    column = _level(layout, line.end)
    if column > levels[-1]:
        levels.append(column)
        add(Token(kinds.indent, end, end))
    elif column < levels[-1]:
        while len(levels) > 1 and levels[-2] >= column:
            levels.pop()
            add(Token(kinds.dedent, end, end))
        if levels[-1] > column:
            _uneven(layout.source, line.end, column, levels, layout.collector)
            levels[-1] = column
    layout.open_choices = 0
    return end


def _level(layout: _Layout, start: int) -> int:
    """The column of the line that starts at `start`. One with tabs, which is reported, goes where it fits best."""
    text = layout.source.text
    indentation = text[text.rfind("\n", 0, start) + 1 : start]
    if "\t" not in indentation:
        return len(indentation.lstrip("\ufeff"))
    levels, result = layout.levels, layout.result
    opens = len(result) > 1 and result[-2].kind == layout.kinds.colon
    widths = [len(indentation.expandtabs(size)) for size in (4, 8, 2)]
    if opens:
        return max(widths[0], levels[-1] + 1)
    return next((width for width in widths if width in levels), levels[-1])


def _column(source: Source, start: int, collector: Collector) -> int:
    """The width of the indentation before `start`; a tab in it is reported."""
    text = source.text
    line_start = text.rfind("\n", 0, start) + 1
    tab = text.find("\t", line_start, start)
    if tab >= 0:
        fix = Fix("indent with spaces", (Edit(Span(source, line_start, start), text[line_start:start].expandtabs(4)),))
        helps = ("indent with spaces: four for each level",)
        collector.report(Diagnostic("E0101", "tab in indentation", Span(source, tab, tab + 1), helps=helps, fix=fix))
    return start - line_start


def _uneven(source: Source, start: int, column: int, levels: list[int], collector: Collector) -> None:
    line_end = source.text.find("\n", start)
    span = Span(source, start, len(source.text) if line_end < 0 else line_end)
    outer = levels[-2] if len(levels) > 1 else 0
    label = f"indented by {column}, the lines before by {levels[-1]} and {outer}"
    message = "this line is indented like none of the blocks around it"
    collector.report(Diagnostic("E0102", message, span, label=label))


def _close(layout: _Layout, token: Token) -> bool | None:
    """Matches a closing bracket: whether it ends an infix einsum's notation, or None where it is left out."""
    source, brackets, result, kinds, collector = (
        layout.source, layout.brackets, layout.result, layout.kinds, layout.collector
    )  # fmt: skip
    wanted = kinds.opener_of[token.kind]
    if brackets and brackets[-1][0].kind == wanted:
        return brackets.pop()[1]
    sign = kinds.signs[token.kind]
    span = Span(source, token.start, token.end)
    if not brackets:
        fix = Fix(f"remove `{sign}`", (Edit(span, ""),))
        collector.report(Diagnostic("E0102", f"unexpected `{sign}`", span, label="nothing is open here", fix=fix))
        layout.cut.spoilt.append((source.text.rfind("\n", 0, token.start) + 1, token.end))
        return None
    if not any(opening.kind == wanted for opening, _ in brackets):
        opening, _ = brackets.pop()
        right = kinds.signs[kinds.closer_of[opening.kind]]
        label = Label(Span(source, opening.start, opening.end), f"`{kinds.signs[opening.kind]}` is opened here")
        fix = Fix(f"write `{right}`", (Edit(span, right),))
        message = f"expected `{right}`, found `{sign}`"
        collector.report(Diagnostic("E0102", message, span, labels=(label,), fix=fix))
        result.append(Token(kinds.closer_of[opening.kind], token.start, token.end))
        return None
    while brackets[-1][0].kind != wanted:
        _close_one(layout, f"`{sign}` comes first")
    return brackets.pop()[1]


def _close_torn(layout: _Layout, string: Token) -> None:
    """Closes the brackets of a line whose end an unclosed string has swallowed: that is one mistake, and reported."""
    kinds, result = layout.kinds, layout.result
    line_start = layout.source.text.rfind("\n", 0, string.start) + 1
    while layout.brackets and layout.brackets[-1][0].start >= line_start:
        opening, _ = layout.brackets.pop()
        result.append(Token(kinds.closer_of[opening.kind], string.end, string.end))


def _close_all(layout: _Layout, label: str) -> None:
    while layout.brackets:
        _close_one(layout, label)


def _close_one(layout: _Layout, label: str) -> None:
    """Reports the innermost open bracket as unclosed, and closes it after what has been read."""
    kinds, source = layout.kinds, layout.source
    opening, _ = layout.brackets.pop()
    end = layout.result[-1].end
    left = kinds.signs[opening.kind]
    right = kinds.signs[kinds.closer_of[opening.kind]]
    span = Span(source, opening.start, opening.end)
    fix = Fix(f"insert `{right}`", (Edit(Span(source, end, end), right),))
    layout.collector.report(Diagnostic("E0103", f"`{left}` is not closed", span, label=label, fix=fix))
    layout.result.append(Token(kinds.closer_of[opening.kind], end, end))
    layout.cut.spoilt.append((opening.start, end))
