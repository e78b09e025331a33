"""Fixed positions that depend on sizes: whether the axes have them is known when a call fixes the sizes (E0408)."""

from __future__ import annotations

from collections.abc import Iterator

from ocannl_lang.diagnostics.model import Diagnostic
from ocannl_lang.graph import ir
from ocannl_lang.graph.ir import Graph, SlotLeaf, SlotRow, SlotShape, SlotTree, Value
from ocannl_lang.shapes import Solution
from ocannl_lang.shapes.terms import ROW_KINDS


def misplaced_positions(graph: Graph, solution: Solution) -> list[Diagnostic]:
    """A fault for each operand that is read at a position which its axis does not have."""
    found: list[Diagnostic] = []
    for value in graph.values:
        for operand, slot in _slots(value):
            for kind in ROW_KINDS:
                row: SlotRow = getattr(slot, kind)
                sizes = solution.row(operand.shape.row(kind)).sizes
                count = len(row.trail)
                places = [(i, a) for i, a in enumerate(row.lead)]
                places += [(len(sizes) - count + i, a) for i, a in enumerate(row.trail)]
                for i, axis in places:
                    if isinstance(axis, ir.Fixed) and not isinstance(axis.position, (int, Value)) and i < len(sizes):
                        position, size = solution.number(axis.position), sizes[i]
                        if isinstance(position, (int, float)) and isinstance(size, int) and not 0 <= position < size:
                            message = f"there is no position {int(position)}: the axis has size {size}"
                            found.append(Diagnostic("E0408", message, value.origin.outer))
    return found


def _slots(value: Value) -> Iterator[tuple[Value, SlotShape]]:
    match value.op:
        case ir.Reduce(args=args, slots=slots):
            yield from zip(args, slots)
        case ir.Assigned(tree=tree) if not isinstance(tree, Value):
            yield from _leaves(tree)
        case _:
            pass


def _leaves(tree: SlotTree) -> Iterator[tuple[Value, SlotShape]]:
    if isinstance(tree, SlotLeaf):
        yield tree.value, tree.slot
    else:
        for arg in tree.args:
            yield from _leaves(arg)
