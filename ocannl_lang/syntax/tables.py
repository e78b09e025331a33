"""The parse tables: made by Lark from the grammar, kept as JSON in the cache folder.

Lark turns the grammar into LALR(1) tables in about half a second; reading them from the cache takes a few
milliseconds. The file in the cache is named after the content of the grammar and the version of its own format. A
damaged file is made again with a warning, and a folder that cannot be written is no error.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ocannl_lang.resources import cache_dir, grammar_text

# Raised whenever the tables are made or written in another way.
FORMAT = 1
STARTS = ("module", "interpolation")
END = "$END"


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One production.

    `name` is its alias, or its left side; `length` counts the symbols of its right side. `keep` lists the symbols
    that become children: `(index, splice, nones)`, where `splice` puts in the items of a list and `nones` optional
    parts that are absent precede; `trailing` such parts follow. `plain` holds the indices alone where nothing is
    spliced and nothing is absent, else None. A rule that `passes` hands its only child on.
    """

    name: str
    left: int
    length: int
    keep: tuple[tuple[int, bool, int], ...]
    trailing: int
    plain: tuple[int, ...] | None
    passes: bool
    is_list: bool


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """LALR(1) tables with numbers for symbols and states.

    `action[state][terminal]` is a state to shift to, or `-1 - rule` to reduce; `goto[state][nonterminal]` is a state.
    `names` are those of all symbols, terminals first; `patterns` the texts that each terminal matches, in the
    grammar's order: `(terminal, is_literal, pattern)`.
    """

    names: tuple[str, ...]
    ids: dict[str, int]
    terminal_count: int
    action: tuple[dict[int, int], ...]
    goto: tuple[dict[int, int], ...]
    rules: tuple[Rule, ...]
    starts: dict[str, int]
    ends: dict[str, int]
    patterns: tuple[tuple[str, bool, str], ...]
    chains: tuple[dict[int, int], ...]
    """`chains[state][left * terminal_count + terminal]`: where the reduction to `left` leads before `terminal` once
    rules that only pass their child on are followed. It fills while parsing and depends on nothing but the tables.
    """


@lru_cache(maxsize=1)
def load_tables() -> Tables:
    """The tables of the grammar, from the cache where possible."""
    grammar = grammar_text()
    key = hashlib.sha256(f"{FORMAT}\n{grammar}".encode()).hexdigest()[:24]
    path = cache_dir() / f"grammar-{key}.json"
    data = _read(path)
    if data is not None:
        try:
            return _from_data(data)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            warnings.warn(f"the cache file {path} is damaged and is made again", stacklevel=2)
    data = build_data(grammar)
    _write(path, data)
    return _from_data(data)


def build_data(grammar: str) -> dict[str, Any]:
    """The tables as plain data, computed by Lark."""
    import lark

    tool: Any = lark.Lark(grammar, parser="lalr", lexer="basic", start=list(STARTS), maybe_placeholders=True)
    table = tool.parser.parser.parser.parse_table
    terminals = sorted({t.name for t in tool.terminals} | set(_declared(tool)) | {END})
    nonterminals = sorted({rule.origin.name for rule in tool.rules})
    names = terminals + nonterminals
    ids = {name: i for i, name in enumerate(names)}
    rule_ids = {id(rule): i for i, rule in enumerate(tool.rules)}
    by_value = {_key(rule): i for i, rule in enumerate(tool.rules)}
    order = _state_order(table, names)
    numbers = {state: i for i, state in enumerate(order)}
    actions: list[list[list[int]]] = []
    for state in order:
        row: list[list[int]] = []
        for name, (action, argument) in table.states[state].items():
            if str(action) == "Shift":
                row.append([ids[name], numbers[argument]])
            else:
                rule = rule_ids.get(id(argument))
                row.append([ids[name], -1 - (by_value[_key(argument)] if rule is None else rule)])
        actions.append(sorted(row))
    return {
        "names": names,
        "terminals": len(terminals),
        "actions": actions,
        "rules": [_rule_data(rule, ids) for rule in tool.rules],
        "starts": {name: numbers[table.start_states[name]] for name in STARTS},
        "ends": {name: numbers[table.end_states[name]] for name in STARTS},
        "patterns": [
            [
                t.name,
                type(t.pattern).__name__ == "PatternStr",
                t.pattern.to_regexp() if t.pattern.flags else t.pattern.value,
            ]
            for t in tool.terminals
        ],
    }


def _declared(tool: Any) -> set[str]:
    return {symbol.name for rule in tool.rules for symbol in rule.expansion if symbol.is_term}


def _key(rule: Any) -> tuple[str, tuple[str, ...], str]:
    return rule.origin.name, tuple(s.name for s in rule.expansion), rule.alias or ""


def _state_order(table: Any, names: list[str]) -> list[Any]:
    """The states in an order that depends on the grammar alone: breadth first from the starts, by names of symbols."""
    order = [table.start_states[name] for name in STARTS]
    seen = set(order)
    for state in order:
        row = table.states[state]
        for name in sorted(row):
            action, argument = row[name]
            if str(action) == "Shift" and argument not in seen:
                seen.add(argument)
                order.append(argument)
    for name in STARTS:
        if table.end_states[name] not in seen:
            seen.add(table.end_states[name])
            order.append(table.end_states[name])
    return order


def _rule_data(rule: Any, ids: dict[str, int]) -> list[Any]:
    """`[name, left, length, keep, trailing, passes]`, following Lark's conventions for names with `_` and for absent
    options.
    """
    expansion = rule.expansion
    absent = [0] * (len(expansion) + 1)
    if rule.options.empty_indices:
        position = 0
        for is_absent in rule.options.empty_indices:
            if is_absent:
                absent[position] += 1
            else:
                position += 1
    keep: list[list[Any]] = []
    nones = 0
    for i, symbol in enumerate(expansion):
        nones += absent[i]
        if not (symbol.is_term and symbol.name.startswith("_")):
            keep.append([i, not symbol.is_term and symbol.name.startswith("_"), nones])
            nones = 0
    trailing = nones + absent[len(expansion)]
    passes = bool(rule.options.expand1) and rule.alias is None and len(expansion) == 1
    return [rule.alias or rule.origin.name, ids[rule.origin.name], len(expansion), keep, trailing, passes]


def _from_data(data: dict[str, Any]) -> Tables:
    names = tuple(data["names"])
    count = int(data["terminals"])
    rules: list[Rule] = []
    for name, left, length, keep, trailing, passes in data["rules"]:
        is_plain = not trailing and not any(splice or nones for _, splice, nones in keep)
        plain = tuple(i for i, _, _ in keep) if is_plain else None
        kept = tuple((int(i), bool(splice), int(nones)) for i, splice, nones in keep)
        rules.append(Rule(name, left, length, kept, trailing, plain, passes, names[left].startswith("__")))
    return Tables(
        names=names,
        ids={name: i for i, name in enumerate(names)},
        terminal_count=count,
        action=tuple({symbol: to for symbol, to in row if symbol < count} for row in data["actions"]),
        goto=tuple({symbol: to for symbol, to in row if symbol >= count} for row in data["actions"]),
        rules=tuple(rules),
        starts=dict(data["starts"]),
        ends=dict(data["ends"]),
        patterns=tuple((name, bool(literal), pattern) for name, literal, pattern in data["patterns"]),
        chains=tuple({} for _ in data["actions"]),
    )


def _read(path: Path) -> dict[str, Any] | None:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    try:
        data = json.loads(text)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _write(path: Path, data: dict[str, Any]) -> None:
    """Writes beside the place and renames, so that no reader sees half a file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(data, file, separators=(",", ":"))
            os.replace(name, path)
        except OSError:
            os.unlink(name)
    except OSError:
        return
