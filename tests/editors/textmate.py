"""A small interpreter of TextMate grammars, line by line as editors do it, with Python's `re` for Oniguruma.

It knows what the grammar of Ocn uses: `match`, `begin` and `end`, `captures` with names and patterns, and includes from
the repository. Of the patterns in force the leftmost match wins, the end of the region before others at one place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

Rule = dict[str, Any]
Scopes = tuple[str, ...]


@dataclass(slots=True)
class Tokeniser:
    """Gives every character of a text the scopes it has, outermost first."""

    grammar: Rule
    expanded: dict[int, list[Rule]] = field(default_factory=dict)

    def scopes(self, text: str) -> list[Scopes]:
        stack: list[tuple[Rule, Scopes]] = [(self.grammar, ())]
        result: list[Scopes] = []
        for line in text.splitlines(keepends=True):
            painted: list[Scopes] = [()] * len(line)
            self._run(line, 0, len(line), stack, painted)
            result += painted
        return result

    def _run(self, line: str, start: int, end: int, stack: list[tuple[Rule, Scopes]], painted: list[Scopes]) -> None:
        position = start
        steps = 0
        while True:
            steps += 1
            assert steps < 10 * len(line) + 100, f"no way on in {line!r}"
            rule, scopes = stack[-1]
            m, found = self._next(line, position, end, rule, is_nested=len(stack) > 1)
            _paint(painted, position, m.start() if m else end, scopes)
            if m is None:
                break
            if found is None:
                self._captures(m, rule.get("endCaptures", {}), scopes, line, painted)
                stack.pop()
            elif "begin" in found:
                inner = (*scopes, found["name"]) if "name" in found else scopes
                self._captures(m, found.get("beginCaptures", {}), inner, line, painted)
                stack.append((found, inner))
            else:
                inner = (*scopes, found["name"]) if "name" in found else scopes
                self._captures(m, found.get("captures", {}), inner, line, painted)
                assert m.end() > m.start(), f"{found['match']} matches nothing"
            position = m.end()

    def _next(
        self, line: str, position: int, end: int, rule: Rule, *, is_nested: bool
    ) -> tuple[re.Match[str] | None, Rule | None]:
        """The next match and its rule, None where it ends the region `rule`."""
        best, which = None, None
        if is_nested and "end" in rule:
            best = compiled(rule["end"]).search(line, position, end)
        for other in self._patterns(rule):
            if best is not None and best.start() == position:
                break
            m = compiled(other.get("match") or other["begin"]).search(line, position, end)
            if m is not None and (best is None or m.start() < best.start()):
                best, which = m, other
        return best, which

    def _patterns(self, rule: Rule) -> list[Rule]:
        known = self.expanded.get(id(rule))
        if known is None:
            known = self.expanded[id(rule)] = list(self._expand(rule.get("patterns", []), ()))
        return known

    def _expand(self, patterns: list[Rule], within: tuple[str, ...]) -> list[Rule]:
        flat: list[Rule] = []
        for rule in patterns:
            name = rule.get("include", "").removeprefix("#")
            if name:
                if name not in within:
                    flat += self._expand([self.grammar["repository"][name]], (*within, name))
            elif "match" in rule or "begin" in rule:
                flat.append(rule)
            else:
                flat += self._expand(rule["patterns"], within)
        return flat

    def _captures(self, m: re.Match[str], captures: Rule, scopes: Scopes, line: str, painted: list[Scopes]) -> None:
        _paint(painted, m.start(), m.end(), scopes)
        for group, rule in sorted(captures.items(), key=lambda item: int(item[0])):
            start, end = m.span(int(group))
            if start < 0:
                continue
            inner = (*scopes, rule["name"]) if "name" in rule else scopes
            _paint(painted, start, end, inner)
            if "patterns" in rule:
                self._run(line, start, end, [(rule, inner)], painted)


def _paint(painted: list[Scopes], start: int, end: int, scopes: Scopes) -> None:
    for i in range(start, end):
        painted[i] = scopes


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def all_patterns(rule: Any) -> list[str]:
    """Every regular expression of a grammar."""
    if isinstance(rule, list):
        return [p for part in rule for p in all_patterns(part)]
    if not isinstance(rule, dict):
        return []
    own = [rule[key] for key in ("match", "begin", "end") if key in rule]
    return own + [p for part in rule.values() for p in all_patterns(part)]
