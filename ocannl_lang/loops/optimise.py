"""Loop optimisation: the passes in their order. Each keeps the meaning of a program; most make it smaller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ocannl_lang.loops.ir import Program
from ocannl_lang.loops.passes.common import share_common
from ocannl_lang.loops.passes.dead import remove_dead
from ocannl_lang.loops.passes.inline import inline
from ocannl_lang.loops.passes.merge import merge_chains
from ocannl_lang.loops.passes.one_hot import use_positions
from ocannl_lang.loops.passes.pad import pad_windows
from ocannl_lang.loops.passes.parts import take_in_parts
from ocannl_lang.loops.passes.simplify import simplify


@dataclass(frozen=True, slots=True)
class Pass:
    """A named function from programs to programs."""

    name: str
    run: Callable[[Program], Program]


PASSES: tuple[Pass, ...] = (
    Pass("dead", remove_dead),
    Pass("simplify", simplify),
    Pass("merge", merge_chains),
    Pass("common", share_common),
    Pass("inline", inline),
    Pass("simplify again", simplify),
    Pass("one-hot", use_positions),
    Pass("common again", share_common),
    Pass("dead again", remove_dead),
    Pass("inline again", inline),
    Pass("pad", pad_windows),
    Pass("parts", take_in_parts),
    Pass("simplify at last", simplify),
    Pass("dead at last", remove_dead),
)


def optimise(program: Program, passes: Sequence[Pass] = PASSES) -> Program:
    """The program after all passes."""
    for p in passes:
        program = p.run(program)
    return program
