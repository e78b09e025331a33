"""Kernels as text, for people and snapshots: what each computes, its nest, the steps of its schedule, and the loops that result.

    kernel 0 computes c: f32[13, 20]
      from net.ocn:3
      nest
        register sum: f32[]
        serial i in 13:
          …
      steps
        split j 16
        …
      loops
        …

`replay` reads the steps back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ocannl_lang.loops.ir import Buffer, Var
from ocannl_lang.loops.text import Names, access_text, expr_text
from ocannl_lang.schedule.ir import Kernel, Loop, Stmt
from ocannl_lang.schedule.steps import describe
from ocannl_lang.schedule.templates import schedule_of
from ocannl_lang.schedule.trees import computes

_ACCUM = {"set": "=", "add": "+=", "mul": "*=", "max": "max=", "min": "min=", "or": "or=", "and": "and="}


def dump(kernels: Sequence[Kernel], places: Mapping[Buffer, str] | None = None) -> str:
    """The kernels in the order in which they run. `places`: where in the source a buffer is computed."""
    names = Names()
    return "\n".join(schedule_text(k, names, f"kernel {i}", places or {}) for i, k in enumerate(kernels))


def schedule_text(kernel: Kernel, names: Names, title: str, places: Mapping[Buffer, str]) -> str:
    """One kernel: what it computes, its nest, its steps and its loops."""
    before, steps = schedule_of(kernel)
    made = list(dict.fromkeys(c.target.buffer for c in computes(before.body)))
    found = dict.fromkeys(place for b in made if (place := places.get(before.base(b))) is not None)
    # Names are given in the order of the text, so that a kernel's text has the same ones alone and after others.
    nest = kernel_text(before, names, "nest")
    written = [names.declared(b) for b in made if b not in before.spaces]
    lines = [f"{title} computes {', '.join(written)}", *([f"  from {', '.join(found)}"] if found else [])]
    lines.append(_indented(nest))
    if steps:
        lines += [
            "  steps",
            *(f"    {describe(s, names)}" for s in steps),
            _indented(kernel_text(kernel, names, "loops")),
        ]
    return "\n".join(lines) + "\n"


def steps_text(kernel: Kernel, names: Names | None = None) -> str:
    """The steps of a kernel, one a line."""
    names = names or Names()
    before, steps = schedule_of(kernel)
    kernel_text(before, names)
    return "".join(f"{describe(s, names)}\n" for s in steps)


def kernel_text(kernel: Kernel, names: Names | None = None, title: str = "kernel") -> str:
    """The private buffers and the loops of one kernel."""
    names = names or Names()
    lines = [title]
    for b, space in kernel.spaces.items():
        lines.append(f"  {space} {names.declared(b)}")
    _body(kernel.body, names, {}, 1, lines)
    return "\n".join(lines) + "\n"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


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
