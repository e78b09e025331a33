"""A readable text form of the tree, for `ocn show --stage parse` and for snapshots.

Each node is its class and its fields, `Binary("+", left=Name(x), right=IntLit(1))`; absent fields are left out. What
does not fit in a line has its fields below it. Statements and definitions carry their line and column.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from ocannl_lang.syntax import ast
from ocannl_lang.syntax.walk import field_names, is_node

_WIDTH = 100
_PLACED = (*get_args(ast.Stmt), *get_args(ast.Definition))
# Plain texts that are names stand without quotes.
_BARE = ("name", "kind", "precision")


def dump(module: ast.Module) -> str:
    """The tree of a module, one definition after the other."""
    lines = ["Module"]
    if module.doc is not None:
        lines.append(f"  doc: {module.doc!r}")
    for item in module.items:
        lines.extend(_lines(item, "  ", ""))
    return "\n".join(lines) + "\n"


def dump_node(node: Any) -> str:
    """The text form of one node."""
    return "\n".join(_lines(node, "", ""))


def _lines(value: Any, indent: str, label: str) -> Iterator[str]:
    short = _inline(value)
    place = _place(value)
    if not isinstance(value, tuple) and not is_node(value):
        yield f"{indent}{label}{value!r}"
        return
    if len(indent) + len(label) + len(place) + len(short) <= _WIDTH and not _has_blocks(value):
        yield f"{indent}{label}{place}{short}"
        return
    if isinstance(value, tuple):
        yield f"{indent}{label.rstrip()}"
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _lines(item, indent + "  ", "- " if isinstance(item, tuple) else "")
        return
    scalars, parts = _split(value)
    heading = type(value).__name__ + (f"({', '.join(scalars)})" if scalars else "")
    yield f"{indent}{label}{place}{heading}"
    for name, part in parts:
        yield from _lines(part, indent + "  ", f"{name}: ")


def _place(value: Any) -> str:
    if not isinstance(value, _PLACED):
        return ""
    line, column = value.span.source.position(value.span.start)
    return f"{line}:{column} "


def _has_blocks(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(_has_blocks(item) or isinstance(item, _PLACED) for item in value)  # pyright: ignore[reportUnknownVariableType]
    return hasattr(value, "body") or isinstance(value, ast.If)


def _inline(value: Any) -> str:
    if isinstance(value, tuple):
        items = [_inline(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        return f"[{', '.join(items)}]"
    if not is_node(value):
        return repr(value)
    if isinstance(value, ast.Ident):
        return value.name
    scalars, parts = _split(value)
    if len(parts) == 1 and len(field_names(type(value))) == 1:
        return f"{type(value).__name__}({_inline(parts[0][1])})"
    pieces = [*scalars, *(f"{name}={_inline(part)}" for name, part in parts)]
    return f"{type(value).__name__}({', '.join(pieces)})" if pieces else type(value).__name__


def _split(node: Any) -> tuple[list[str], list[tuple[str, Any]]]:
    """The fields of a node that are plain values, as text, and those that hold nodes."""
    scalars: list[str] = []
    parts: list[tuple[str, Any]] = []
    for name in field_names(type(node)):
        value = getattr(node, name)
        if value is None or value is False or (value == () and name not in ("batch", "input")):
            if name == "value" and value is False:
                scalars.append("false")
            continue
        if isinstance(value, bool):
            scalars.append("true" if name == "value" else name)
        elif isinstance(value, ast.Ident) and name == "name":
            scalars.append(value.name)
        elif isinstance(value, str):
            scalars.append(value if name in _BARE else f'"{value}"' if name == "op" else f"{name}={value!r}")
        elif isinstance(value, (int, float)):
            scalars.append(repr(value))
        else:
            parts.append((name, value))
    return scalars, parts
