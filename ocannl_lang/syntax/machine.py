"""Runs the parse tables over tokens and calls the builder for each rule.

The machine knows no language: on a token that the tables do not allow it hands its stack to `on_error`, which changes
stack, tokens or place (see `ocannl_lang.syntax.recovery`), and goes on. Rules that only pass their child on are
followed at once and remembered, which makes the parser several times faster for a grammar with a level for each
strength of operators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ocannl_lang.syntax.tables import END, Tables
from ocannl_lang.syntax.tokens import Token

Build = Callable[[Any, int, int, list[Any]], Any]


@dataclass(slots=True)
class Machine:
    """The state of one parse.

    `states` and the stacks beside it have one entry for each symbol read, above a first one for the start; `starts`
    are the symbols' places in the text, and `end` is the end of the last one. `index` is the place of the next token.
    """

    tables: Tables
    tokens: list[Token]
    context: Any
    builders: Sequence[Build | None]
    states: list[int]
    values: list[Any] = field(default_factory=lambda: [None])
    starts: list[int] = field(default_factory=lambda: [0])
    end: int = 0
    index: int = 0

    def pop_to(self, height: int) -> None:
        """Forgets the symbols above the first `height` entries."""
        del self.states[height:], self.values[height:], self.starts[height:]

    def push(self, state: int, value: Any, start: int, end: int) -> None:
        self.states.append(state)
        self.values.append(value)
        self.starts.append(start)
        self.end = end

    def settle(self) -> None:
        """Does the reductions that are certain whatever comes next, so that the stack shows what has been read."""
        tables = self.tables
        while True:
            acts = set(tables.action[self.states[-1]].values())
            act = acts.pop() if len(acts) == 1 else 0
            if act >= 0:
                return
            rule = tables.rules[-1 - act]
            height = len(self.states) - rule.length
            start = self.starts[height] if rule.length else self.end
            children = _children(rule.keep, rule.trailing, self.values[height:])
            build = self.builders[-1 - act]
            if rule.passes:
                value = self.values[-1]
            else:
                value = children if build is None else build(self.context, start, self.end, children)
            self.pop_to(height)
            self.push(tables.goto[self.states[-1]][rule.left], value, start, self.end)


OnError = Callable[[Machine], None]


def run(
    tables: Tables,
    tokens: list[Token],
    start: str,
    context: Any,
    builders: Sequence[Build | None],
    on_error: OnError,
) -> Any:
    """The value of the start symbol. `builders[rule]` makes a rule's value of its children; None makes a list of
    them.

    `tokens` ends with one of the kind `$END`. What has been read last always ends where its last token does, so that
    a rule ends at `end`.
    """
    machine = Machine(tables, tokens, context, builders, [tables.starts[start]])
    end_state, end_kind = tables.ends[start], tables.ids[END]
    action, chains, count = tables.action, tables.chains, tables.terminal_count
    rules = [
        (r.length, r.passes, r.plain, r, build, r.left * count) for r, build in zip(tables.rules, builders, strict=True)
    ]
    states, values, starts = machine.states, machine.values, machine.starts
    state, index, end = states[-1], 0, 0
    token = tokens[0]
    kind, first, last = token
    while True:
        act = action[state].get(kind)
        if act is None:
            if kind == end_kind and state == end_state:
                return values[-1]
            machine.index, machine.end = index, end
            on_error(machine)
            index, end = machine.index, machine.end
            state = states[-1]
            token = tokens[index]
            kind, first, last = token
            continue
        if act >= 0:
            states.append(act)
            values.append(token)
            starts.append(first)
            state, end = act, last
            index += 1
            token = tokens[index]
            kind, first, last = token
            continue
        length, passes, plain, rule, build, left = rules[-1 - act]
        if length == 1:
            if passes:
                value = values[-1]
            else:
                children = (
                    [values[-1]]
                    if plain
                    else []
                    if plain is not None
                    else _children(rule.keep, rule.trailing, values[-1:])
                )
                value = children if build is None else build(context, starts[-1], end, children)
            values[-1] = value
            states.pop()
        elif length:
            if plain is not None:
                base = len(values) - length
                children = [values[base + i] for i in plain]
            else:
                children = _children(rule.keep, rule.trailing, values[-length:])
            value = children if build is None else build(context, starts[-length], end, children)
            length -= 1
            del states[~length:], values[-length:], starts[-length:]
            values[-1] = value
        else:
            children = [None] * rule.trailing
            values.append(children if build is None else build(context, end, end, children))
            starts.append(end)
        below = states[-1]
        memo = chains[below]
        key = left + kind
        state = memo.get(key)
        if state is None:
            state = memo[key] = _chain(tables, below, rule.left, kind)
        states.append(state)


def _chain(tables: Tables, below: int, left: int, kind: int) -> int:
    """The state after `left` above `below`, once the rules that only pass it on before a token of `kind` are
    followed.
    """
    goto = tables.goto[below]
    state = goto[left]
    while (act := tables.action[state].get(kind)) is not None and act < 0 and tables.rules[-1 - act].passes:
        state = goto[tables.rules[-1 - act].left]
    return state


def _children(keep: tuple[tuple[int, bool, int], ...], trailing: int, values: list[Any]) -> list[Any]:
    """The children of a rule: absent optional parts are None, lists of helper rules are spliced in."""
    children: list[Any] = []
    for i, splice, nones in keep:
        for _ in range(nones):
            children.append(None)
        if not splice:
            children.append(values[i])
        elif children:
            children.extend(values[i])
        else:
            # The first part of a repeated rule: nobody else holds this list.
            children = values[i]
    for _ in range(trailing):
        children.append(None)
    return children


def follow(tables: Tables, states: list[int], kind: int) -> list[int] | None:
    """The states after the tokens so far and one of `kind`, or None if it cannot come next. `states` is not changed."""
    stack = list(states)
    while True:
        act = tables.action[stack[-1]].get(kind)
        if act is None:
            return None
        if act >= 0:
            stack.append(act)
            return stack
        rule = tables.rules[-1 - act]
        if rule.length:
            del stack[-rule.length :]
        stack.append(tables.goto[stack[-1]][rule.left])


def accepts(tables: Tables, states: list[int], kind: int) -> bool:
    """Whether a token of `kind` can come next."""
    if kind == tables.ids[END]:
        stack = list(states)
        while (act := tables.action[stack[-1]].get(kind)) is not None and act < 0:
            rule = tables.rules[-1 - act]
            if rule.length:
                del stack[-rule.length :]
            stack.append(tables.goto[stack[-1]][rule.left])
        return stack[-1] in tables.ends.values()
    return follow(tables, states, kind) is not None
