"""Kernels as text, for people and snapshots."""

from __future__ import annotations

from collections.abc import Sequence

from ocannl_lang.loops.ir import Var
from ocannl_lang.loops.text import Names, access_text, expr_text
from ocannl_lang.schedule.ir import Kernel, Loop, Stmt

_ACCUM = {"set": "=", "add": "+=", "mul": "*=", "max": "max=", "min": "min=", "or": "or=", "and": "and="}


def dump(kernels: Sequence[Kernel]) -> str:
    """The kernels in the order in which they run."""
    names = Names()
    return "\n".join(kernel_text(k, names, f"kernel {i}") for i, k in enumerate(kernels))


def kernel_text(kernel: Kernel, names: Names | None = None, title: str = "kernel") -> str:
    """One kernel: its transforms, its private buffers and its loops."""
    names = names or Names()
    lines = [title + (f": {kernel.note}" if kernel.note else "")]
    for b, space in kernel.spaces.items():
        lines.append(f"  {space} {names.declared(b)}")
    _body(kernel.body, names, {}, 1, lines)
    return "\n".join(lines) + "\n"


def _body(body: Sequence[Stmt], names: Names, loops: dict[Var, str], depth: int, lines: list[str]) -> None:
    pad = "  " * depth
    for stmt in body:
        if isinstance(stmt, Loop):
            name, n = stmt.var.name or "i", 0
            while (own := name if n == 0 else f"{name}{n}") in loops.values():
                n += 1
            lines.append(f"{pad}{stmt.kind} {own} in {stmt.var.size}:")
            _body(stmt.body, names, {**loops, stmt.var: own}, depth + 1, lines)
        else:
            target = access_text(stmt.target, names, loops)
            lines.append(f"{pad}{target} {_ACCUM[stmt.accum]} {expr_text(stmt.value, names, loops)}")
