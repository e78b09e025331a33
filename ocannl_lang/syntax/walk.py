"""The children of any node of the tree, for whatever looks at all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from ocannl_lang.source import Source, Span


def children(node: Any) -> Iterator[tuple[str, Any]]:
    """The nodes directly below `node`, each with the name of its field, in the order of the fields."""
    for name in field_names(type(node)):
        for child in _nodes(getattr(node, name)):
            yield name, child


def descendants(node: Any) -> Iterator[Any]:
    """`node` and all nodes below it, parents first, in the order of the text of each."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed([child for _, child in children(top)]))


@cache
def field_names(kind: type) -> tuple[str, ...]:
    """The fields of a node's class but for its place."""
    return tuple(f.name for f in fields(kind) if f.name not in ("span", "source", "op_span", "target_span"))


def is_node(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, (type, Span, Source))


def _nodes(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)
    elif is_node(value):
        yield value
