"""Assignments whose target nothing reads are left out."""

from __future__ import annotations

from ocannl_lang.loops.facts import kept, reads
from ocannl_lang.loops.ir import Assign, Buffer, Program


def remove_dead(program: Program) -> Program:
    """The program without what no result and no stored content needs."""
    needed: set[Buffer] = kept(program)
    alive: list[Assign] = []
    for a in reversed(program.assigns):
        if a.target.buffer in needed:
            alive.append(a)
            needed.update(r.buffer for r in reads(a))
    alive.reverse()
    return Program(program.name, program.inputs, program.outputs, alive, program.stores)
