"""W0904: parameters that a loss is computed from and that no gradient can reach."""

from __future__ import annotations

from collections.abc import Iterable

from ocannl_lang.build.gradients import dependencies
from ocannl_lang.build.routines import BuiltRoutine
from ocannl_lang.diagnostics.model import Collector, Diagnostic
from ocannl_lang.graph.ir import Cell, CellValue, Custom, GradOf, Map, Value, operands
from ocannl_lang.shapes.reasons import is_standard


def report_untrained(routines: Iterable[BuiltRoutine], collector: Collector) -> None:
    """Warn of each parameter that some loss depends on, only where nothing can be derived, and that nothing else assigns.

    `stop_gradient` says that this is meant, and an op with its own derivative answers for itself.
    """
    used: dict[Cell, None] = {}
    trained: set[Cell] = set()
    for routine in routines:
        trained.update(routine.graph.finals)
        for root in _losses(routine):
            used.update(dict.fromkeys(_read(root)))
            trained.update(v.op.cell for v in dependencies(routine.build, root) if isinstance(v.op, CellValue))
    for cell in used:
        if cell.kind == "parameter" and cell not in trained and not is_standard(cell.origin.span):
            name = cell.path.rsplit(".", 1)[-1]
            collector.report(
                Diagnostic(
                    "W0904", f"`{name}` is never trained", cell.origin.span, "no gradient reaches it",
                    notes=("the loss depends on it only through what has no derivative, such as a comparison",),
                    helps=(f"`stop_gradient({name})` says that this is meant",),
                )
            )  # fmt: skip


def _losses(routine: BuiltRoutine) -> list[Value]:
    """What gradients are taken of, each once, in the order of the text."""
    return list(dict.fromkeys(v.op.backprop.root for v in routine.graph.values if isinstance(v.op, GradOf)))


def _read(root: Value) -> list[Cell]:
    """The parameters and states that a value is computed from."""
    found: list[Cell] = []
    seen = {root}
    stack = [root]
    while stack:
        value = stack.pop()
        match value.op:
            case CellValue(cell=cell):
                found.append(cell)
            case Map(fn="stop_gradient") | Custom() | GradOf():
                continue
            case _:
                pass
        for operand in operands(value):
            if operand not in seen:
                seen.add(operand)
                stack.append(operand)
    return found
