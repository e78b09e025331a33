"""Goes on after a token that the grammar does not allow.

First the token's other reading is tried (`contextual.py`), then the known slips (`slips.py`), some of which can be
repaired on the spot. Else the mistake is reported with what was expected, and the smallest part of the tree that
holds it is given up: an expression inside its brackets or after its `=`, a parameter, a statement, a definition.
Since brackets are balanced and blocks are marked before parsing starts, the end of each of these is known, and what
follows is read as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ocannl_lang.diagnostics.model import Diagnostic, Fix
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast
from ocannl_lang.syntax.context import Context
from ocannl_lang.syntax.contextual import reread
from ocannl_lang.syntax.machine import Machine, accepts
from ocannl_lang.syntax.messages import expected_words, found_words
from ocannl_lang.syntax.slips import Place, Slip, find
from ocannl_lang.syntax.tables import END, Tables
from ocannl_lang.syntax.tokens import Token, name_text

_OPENERS = ("_LPAR", "_LSQB", "_LBRACE")
_CLOSERS = ("_RPAR", "_RSQB", "_RBRACE")
_LAYOUT = ("_NEWLINE", "INDENT", "DEDENT", END)


@dataclass(slots=True)
class Recovery:
    """The machine's `on_error` for one text. `spoilt` are the ranges in which an unclosed bracket was reported
    already.
    """

    context: Context
    tables: Tables
    spoilt: tuple[tuple[int, int], ...] = ()
    last: int = -1
    dropped: set[int] = field(default_factory=set[int])

    def __call__(self, machine: Machine) -> None:
        if reread(machine, self.context.text):
            return
        machine.settle()
        token = machine.tokens[machine.index]
        is_again = machine.index <= self.last
        self.last = machine.index
        place = self._place(machine, token)
        if self._indented(machine, place, is_again) or self._empty_block(machine, place, is_again):
            return
        slip = find(place)
        if not is_again:
            self._report(machine, token, slip)
        if slip is not None and slip.repair is not None and not is_again:
            if slip.spoils:
                self._break(machine, machine.index)
            slip.repair(machine)
            if accepts(self.tables, machine.states, machine.tokens[machine.index].kind):
                return
        self._give_up(machine)

    # ------------------------------------------------------------ reports

    def _report(self, machine: Machine, token: Token, slip: Slip | None) -> None:
        if any(start <= token.start <= end for start, end in self.spoilt):
            return
        span = Span(self.context.source, token.start, token.end)
        if slip is not None:
            self._add(slip.span or span, slip.message, slip.helps, slip.fix)
            return
        found = found_words(machine, token, self.context.text)
        expected = expected_words(machine)
        message = f"expected {expected}, found {found}" if expected else f"unexpected {found}"
        self._add(span, message)

    def _add(self, span: Span, message: str, helps: tuple[str, ...] = (), fix: Fix | None = None) -> None:
        self.context.collector.report(Diagnostic("E0102", message, span, helps=helps, fix=fix))

    def _place(self, machine: Machine, token: Token) -> Place:
        names, text = self.tables.names, self.context.text
        tokens, i = machine.tokens, machine.index
        before = tokens[i - 1] if i > 0 else None
        after = tokens[i + 1] if i + 1 < len(tokens) else token
        goto = self.tables.goto[machine.states[-1]]
        return Place(
            machine=machine,
            source=self.context.source,
            token=token,
            name=names[token.kind],
            text=text[token.start : token.end],
            before=before,
            before_name=names[before.kind] if before is not None else "",
            before_text=text[before.start : before.end] if before is not None else "",
            after_name=names[after.kind],
            after_text=text[after.start : after.end],
            at_top=self.tables.ids["item"] in goto,
            at_statement=self.tables.ids["simple"] in goto,
        )

    # ------------------------------------------------------------ layout

    def _indented(self, machine: Machine, place: Place, is_again: bool) -> bool:
        """A block that belongs to nothing: its lines are read as lines of the block around it."""
        if place.name != "INDENT" or not (place.at_top or place.at_statement):
            return False
        tokens, i = machine.tokens, machine.index
        names = self.tables.names
        if not is_again:
            helps = ("indent it like the line before it",)
            following = tokens[i + 1]
            self._add(self._span(following), "this line is indented more than the one before it", helps)
        depth = 0
        for j in range(i, len(tokens)):
            depth += (names[tokens[j].kind] == "INDENT") - (names[tokens[j].kind] == "DEDENT")
            if depth == 0:
                del tokens[j]
                break
        del tokens[i]
        self.last = i - 1
        return True

    def _empty_block(self, machine: Machine, place: Place, is_again: bool) -> bool:
        """A `:` with no block below it."""
        block = self.tables.ids["block"]
        if place.before_name != "_NEWLINE" or len(machine.states) < 2 or not place.allows("INDENT"):
            return False
        below = self.tables.goto[machine.states[-2]]
        if block not in below:
            return False
        colon = machine.tokens[machine.index - 2]
        if not is_again and not any(start <= colon.start <= end for start, end in self.spoilt):
            helps = ("the lines of a block stand below it, indented by four spaces",)
            self._add(self._span(colon), "expected an indented block after `:`", helps)
        at = colon.end
        machine.pop_to(len(machine.states) - 1)
        statement = ast.ErrorStmt(Span(self.context.source, at, at))
        machine.push(below[block], (statement,), at, at)
        return True

    def _span(self, token: Token) -> Span:
        return Span(self.context.source, token.start, token.end)

    # ------------------------------------------------------------ giving up a part

    def _give_up(self, machine: Machine) -> None:
        """Replaces the smallest part of the tree that holds the mistake, and goes on after it."""
        ids = self.tables.ids
        expr, parameter, simple, item = ids["expr"], ids["param_decl"], ids["simple"], ids["item"]
        for height in range(len(machine.states), 0, -1):
            goto = self.tables.goto[machine.states[height - 1]]
            if item in goto or simple in goto:
                self._give_up_statement(machine, height)
                return
            for symbol in (expr, parameter):
                if symbol not in goto:
                    continue
                stop = self._resumption(machine, height, goto[symbol])
                if stop is None:
                    continue
                start, end = self._extent(machine, height, stop)
                span = Span(self.context.source, start, end)
                if symbol == parameter:
                    self._break(machine, machine.index)
                    value: ast.Expr | ast.ParamDecl = ast.ParamDecl(span, ast.Ident(span, ""), None, None)
                else:
                    value = ast.ErrorExpr(span)
                machine.pop_to(height)
                machine.push(goto[symbol], value, start, end)
                machine.index = stop
                return
        self._give_up_all(machine)

    def _resumption(self, machine: Machine, height: int, state: int) -> int | None:
        """The next token that can follow when the symbols above `height` and the tokens before it are replaced by one
        symbol.
        """
        names = self.tables.names
        depth = self._open_brackets(machine, height)
        states = [*machine.states[:height], state]
        for j in range(machine.index, len(machine.tokens)):
            name = names[machine.tokens[j].kind]
            if depth == 0 and accepts(self.tables, states, machine.tokens[j].kind):
                # A sign that could go on with the expression is part of what is given up.
                if name in _LAYOUT or name in _CLOSERS or name in _STOPS:
                    return j
            if name in _OPENERS:
                depth += 1
            elif name in _CLOSERS:
                depth -= 1
                if depth < 0:
                    return None
            elif name in _LAYOUT:
                return None
        return None

    def _open_brackets(self, machine: Machine, height: int) -> int:
        names = self.tables.names
        return sum(isinstance(v, Token) and names[v.kind] in _OPENERS for v in machine.values[height:])

    def _extent(self, machine: Machine, height: int, stop: int) -> tuple[int, int]:
        """The range of the symbols above `height` and of the tokens before `stop`."""
        tokens, i = machine.tokens, machine.index
        if len(machine.states) > height:
            start = machine.starts[height]
            return start, max(machine.end, tokens[stop - 1].end if stop > i else start)
        if stop > i:
            return tokens[i].start, tokens[stop - 1].end
        return machine.end, machine.end

    def _give_up_statement(self, machine: Machine, height: int) -> None:
        """Gives up the statement or definition that starts at `height`; a block below it is still read for its own
        mistakes.
        """
        tables, tokens = self.tables, machine.tokens
        ids, names = tables.ids, tables.names
        goto = tables.goto[machine.states[height - 1]]
        at_top = ids["item"] in goto
        stop = self._line_end(machine, height)
        start, end = self._extent(machine, height, stop)
        first = next((k for k in range(machine.index, -1, -1) if tokens[k].start <= start and tokens[k].end > start), 0)
        bound = tuple(dict.fromkeys(self._bound_names(tokens[first:stop])))
        machine.pop_to(height)
        follower = tokens[stop + 1] if stop + 1 < len(tokens) else None
        opens_block = (
            names[tokens[stop].kind] == "_NEWLINE" and follower is not None and names[follower.kind] == "INDENT"
        )
        if opens_block and (at_top or "stmt" in {names[symbol] for symbol in goto}):
            self._head(machine, at_top, stop, start, end, bound)
            return
        symbol = ids["top_simple" if at_top or ids["simple"] not in goto else "simple"]
        if symbol in goto and (
            stop > machine.index or height < len(machine.states) or names[tokens[stop].kind] in ("_NEWLINE",)
        ):
            machine.push(goto[symbol], ast.ErrorStmt(Span(self.context.source, start, end), bound), start, end)
            machine.index = stop
            if accepts(tables, machine.states, tokens[stop].kind):
                return
            machine.pop_to(height)
        self._skip_line(machine, stop)

    def _line_end(self, machine: Machine, height: int) -> int:
        names = self.tables.names
        depth = self._open_brackets(machine, height)
        for j in range(machine.index, len(machine.tokens)):
            name = names[machine.tokens[j].kind]
            if name in _OPENERS:
                depth += 1
            elif name in _CLOSERS:
                depth -= 1
            elif name in _LAYOUT or (name == "_SEMICOLON" and depth <= 0):
                return j
        return len(machine.tokens) - 1

    def _head(self, machine: Machine, at_top: bool, stop: int, start: int, end: int, bound: tuple[str, ...]) -> None:
        """Puts the head of a definition or loop in the place of a broken one, so that its block is read."""
        tables, tokens = self.tables, machine.tokens
        ids = tables.ids
        words = ("FN", "NAME", "_LPAR", "_RPAR") if at_top else ("WHILE",)
        for word in words:
            state = tables.action[machine.states[-1]][ids[word]]
            machine.push(state, Token(ids[word], start, start), start, start)
        if not at_top:
            expr = ids["expr"]
            span = Span(self.context.source, start, end)
            machine.push(tables.goto[machine.states[-1]][expr], ast.ErrorExpr(span), start, end)
        self.context.broken[start] = bound
        if stop > 0 and tables.names[tokens[stop - 1].kind] == "_COLON" and stop - 1 >= machine.index:
            machine.index = stop - 1
        else:
            tokens.insert(stop, Token(ids["_COLON"], end, end))
            machine.index = stop

    def _skip_line(self, machine: Machine, stop: int) -> None:
        """The last resort inside a file: leaves out tokens up to one that can start something."""
        tokens = machine.tokens
        j = max(stop, machine.index)
        while j < len(tokens) - 1:
            j += 1
            if accepts(self.tables, machine.states, tokens[j].kind):
                break
        machine.index = j
        if not accepts(self.tables, machine.states, tokens[j].kind):
            self._give_up_all(machine)

    def _give_up_all(self, machine: Machine) -> None:
        """Ends the parse with what was read: nothing can be done with the rest."""
        tables = self.tables
        is_inner = tables.starts["interpolation"] == machine.states[0]
        start = "interpolation" if is_inner else "module"
        source = self.context.source
        items = [v for value in machine.values[1:2] if isinstance(value, list) for v in value]
        machine.pop_to(1)
        end = machine.tokens[-1].end
        value = ast.ErrorExpr(Span(source, machine.tokens[0].start, end)) if is_inner else tuple(_flat(items))
        machine.push(tables.ends[start], value, 0, end)
        machine.index = len(machine.tokens) - 1

    # ------------------------------------------------------------ what a broken part would have bound

    def _break(self, machine: Machine, stop: int) -> None:
        """Marks the definition that is being read as broken."""
        height = 2 if len(machine.values) > 1 and isinstance(machine.values[1], list) else 1
        start = machine.starts[height] if len(machine.starts) > height else machine.tokens[machine.index].start
        first = next((k for k in range(stop, -1, -1) if machine.tokens[k].start <= start), 0)
        self.context.broken[start] = tuple(self._bound_names(machine.tokens[first : stop + 2]))

    def _bound_names(self, tokens: list[Token]) -> Iterator[str]:
        """The names that a statement with these tokens would have bound, as far as its first words tell."""
        names, text = self.tables.names, self.context.text
        if not tokens:
            return
        word = names[tokens[0].kind]
        opening = text[tokens[0].start : tokens[0].end]
        if word in ("FN", "OP", "CD", "ROUTINE") or opening in ("def", "func", "fun", "function", "class"):
            for token in tokens[1:2]:
                if names[token.kind] == "NAME":
                    yield self._word(token)
            return
        if word in ("FROM", "IMPORT", "EXTERN"):
            yield from (self._word(token) for token in tokens[1:] if names[token.kind] == "NAME")
            return
        if word not in ("LET", "VAR", "DIM", "ROW", "STATE", "DATA", "BASIS", "FOR", "NAME"):
            return
        depth = 0
        bound: list[str] = []
        for token in tokens if word == "NAME" else tokens[1:]:
            name = names[token.kind]
            depth += (name in _OPENERS) - (name in _CLOSERS)
            if depth == 0 and name == "NAME":
                bound.append(self._word(token))
            if depth == 0 and word != "DIM" and name in ("_EQUAL", "_COLON", "IN"):
                yield from bound
                return
        if word != "NAME":
            yield from bound

    def _word(self, token: Token) -> str:
        return name_text(self.context.text[token.start : token.end])


# Tokens that end what is given up although they are no closing brackets.
_STOPS = ("_COMMA", "_SEMICOLON", "_COLON", "_EQUAL", "_THEN", "_ELSE", "FOR", "IN", "IF")


def _flat(items: list[object]) -> Iterator[ast.Definition]:
    for item in items:
        if isinstance(item, list):
            yield from item
        else:
            yield item  # pyright: ignore[reportReturnType]
