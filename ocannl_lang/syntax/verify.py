"""Checks that a tree is well formed: places nest, stand in order, and say what their nodes say."""

from __future__ import annotations

from typing import Any

from ocannl_lang.source import Span
from ocannl_lang.syntax import ast
from ocannl_lang.syntax.tokens import name_text
from ocannl_lang.syntax.walk import children, descendants, is_node

# Rows may be empty, so that the place of a slot can begin or end in blanks.
_LOOSE = (ast.Slot, ast.Module, ast.Interpolation, ast.Comment)


def verify(module: ast.Module) -> None:
    """Raises `AssertionError` with the node in question if the tree is not what `parse` promises."""
    text = module.source.text
    _check(module.span.start == 0 and module.span.end == len(text), module, "does not cover the text")
    end = 0
    for item in module.items:
        _check(item.span.start >= end, item, "stands before the end of the definition above it")
        end = item.span.end
    for comment in module.comments:
        _check(comment.span.text == comment.text and comment.text.startswith("#"), comment, "is not its text")
    nodes = list(descendants(module))
    # What stands for a missing part is empty, and so has blanks beside it.
    is_whole = not any(isinstance(node, (ast.ErrorExpr, ast.ErrorStmt)) for node in nodes)
    for node in nodes:
        _verify_node(node, module, is_whole)


def _verify_node(node: Any, module: ast.Module, is_whole: bool) -> None:
    _check(is_node(node), node, "is no node")
    span: Span = node.span
    _check(span.source is module.source, node, "stands in another source")
    _check(0 <= span.start <= span.end <= len(module.source.text), node, "has no place in the text")
    if is_whole and not isinstance(node, _LOOSE):
        _check(span.text == span.text.strip(), node, "begins or ends in blanks")
    for name, child in children(node):
        inside = span.start <= child.span.start and child.span.end <= span.end
        _check(inside, child, f"does not lie in its parent {type(node).__name__}.{name}")
    match node:
        case ast.Name() | ast.Ident() | ast.AxisLabel() | ast.NamedType() if node.name:
            _check(name_text(span.text) == node.name, node, "is not its text")
        case ast.AxisRowVar() | ast.TypeAxisRowVar():
            _check(span.text == f"..{node.name}..", node, "is not its text")
        case ast.Binary() | ast.EinsumInfix():
            _check(node.left.span.end <= node.op_span.start, node, "has its operator before its left side")
            _check(node.op_span.end <= node.right.span.start, node, "has its operator after its right side")
        case ast.Assign():
            _check(node.op_span.text == node.op, node, "has another operator than its text")
        case _:
            pass


def _check(holds: bool, node: Any, problem: str) -> None:
    if not holds:
        span = getattr(node, "span", None)
        raise AssertionError(
            f"{type(node).__name__} at {span!r} {problem}: {span.text if span is not None else node!r}"
        )
