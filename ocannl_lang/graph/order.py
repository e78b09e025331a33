"""Orders of values: what is needed, operands before what is computed from them. Without recursion: graphs are deep."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable

from ocannl_lang.graph.ir import Value

Dependencies = Callable[[Value], Iterable[Value]]


def reachable(roots: Iterable[Value], dependencies: Dependencies) -> dict[Value, tuple[Value, ...]]:
    """All values that the roots need, each with what it needs directly."""
    found: dict[Value, tuple[Value, ...]] = {}
    stack = list(roots)
    while stack:
        value = stack.pop()
        if value in found:
            continue
        found[value] = needs = tuple(dict.fromkeys(dependencies(value)))
        stack.extend(needs)
    return found


def topological(roots: Iterable[Value], dependencies: Dependencies) -> list[Value]:
    """The needed values, each after what it depends on, otherwise in the order of their making."""
    needs = reachable(roots, dependencies)
    users: dict[Value, list[Value]] = {v: [] for v in needs}
    missing = {v: len(n) for v, n in needs.items()}
    for value, operands in needs.items():
        for operand in operands:
            users[operand].append(value)
    ready = [(v.id, v) for v, n in missing.items() if n == 0]
    heapq.heapify(ready)
    order: list[Value] = []
    while ready:
        _, value = heapq.heappop(ready)
        order.append(value)
        for user in users[value]:
            missing[user] -= 1
            if missing[user] == 0:
                heapq.heappush(ready, (user.id, user))
    if len(order) != len(needs):
        raise ValueError("the graph has a cycle")
    return order
