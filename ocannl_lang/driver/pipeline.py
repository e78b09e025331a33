"""The stages of the compiler, in order: what `ocn show --stage NAME` prints of each.

A stage has one input, one output and one public function. This list is the whole way of a program from text to machine code:

parse     text → syntax tree                                   `syntax.parser.parse`
names     syntax tree → every name resolved                    `names.resolve.resolve`
build     a routine → graph of values and shape constraints    `build.routines.build_routine`
shapes    constraints → sizes of everything                    `shapes.solve`
loops     graph with sizes → assignments over loops            `loops.lower.lower` (gradients are expanded here)
optimise  loops → fewer, larger loops                          `loops.optimise.optimise`
schedule  loops → kernels and a memory plan                    `schedule`
code      kernels → LLVM IR                                    `codegen.llvm`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ocannl_lang.build.text import dump_graph
from ocannl_lang.diagnostics.model import Diagnostic
from ocannl_lang.driver.checking import Checked
from ocannl_lang.driver.errors import ProgramErrors
from ocannl_lang.driver.program import Program, Routine
from ocannl_lang.graph.ir import CellValue, GradOf
from ocannl_lang.loops.ir import Program as Loops
from ocannl_lang.shapes.terms import ROW_KINDS, DimVar, Unknown


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: its name, what its text shows, and whether it is of the whole module or of one routine."""

    name: str
    shows: str
    text: Callable[[Program], str] | None = None
    routine_text: Callable[[Program, Routine], str] | None = None


def stage_text(program: Program, stage: str, routine: str | None = None) -> str:
    """What a stage made of the program, or of one of its routines. Raises `ProgramErrors` for a routine that does not exist.

    From `loops` on sizes must be known: unknown ones of the signature are taken as 2, 3, 4, … in the order of the signature.
    """
    found = next(s for s in STAGES if s.name == stage)
    if found.text is not None:
        return found.text(program)
    assert found.routine_text is not None
    names = list(program.routines) if routine is None else [routine]
    parts: list[str] = []
    for name in names:
        if name not in program.routines:
            known = ", ".join(f"`{n}`" for n in program.routines) or "none"
            raise ProgramErrors(
                [
                    Diagnostic(
                        "E0201", f"there is no routine `{name}`", program.module.span, notes=(f"there are {known}",)
                    )
                ]
            )
        text = found.routine_text(program, program.routines[name])
        parts.append(f"routine {name}\n{text}")
    return "\n\n".join(parts)


def sample_arguments(routine: Routine) -> list[np.ndarray]:
    """Arguments of small sizes that fit the signature: unknowns are 2, 3, 4, …"""
    sizes: dict[Unknown, int] = {}
    arrays: list[np.ndarray] = []
    for value, dtype in zip(routine.built.graph.inputs, routine.input_dtypes()):
        shape: list[int] = []
        for kind in ROW_KINDS:
            row = value.shape.row(kind)
            for dim in (*row.lead, *row.trail):
                if isinstance(dim, DimVar):
                    shape.append(2)
                elif isinstance(dim.value, int):
                    shape.append(dim.value)
                else:
                    shape.append(sizes.setdefault(dim.value, 2 + len(sizes)))
        arrays.append(np.zeros(shape, dtype))
    return arrays


def loops_of(program: Program, routine: Routine) -> Loops:
    """The loops of a routine for `sample_arguments`."""
    return routine.executable(sample_arguments(routine)).program


def _parse(program: Program) -> str:
    from ocannl_lang.syntax.text import dump

    return dump(program.module)


def _names(program: Program) -> str:
    lines: list[str] = []
    for module, names in program.checked.names.items():
        lines.append(f"module {module or program.path.stem}")
        for binding in names.bindings:
            place = f"{binding.span.line}" if binding.span is not None else "built in"
            uses = [str(span.line) for span in names.references(binding)]
            lines.append(f"  {binding.name} ({binding.kind}, {place}): used on {', '.join(uses) or 'no line'}")
    return "\n".join(lines)


def _build(program: Program, routine: Routine) -> str:
    del program
    return dump_graph(routine.built.graph)


def _shapes(program: Program, routine: Routine) -> str:
    return dump_graph(routine.built.graph, program.checked.solution, program.precisions())


def _loops(program: Program, routine: Routine) -> str:
    from ocannl_lang.loops.text import dump

    return dump(loops_of(program, routine))


def _optimised(program: Program, routine: Routine) -> str:
    from ocannl_lang.loops.optimise import optimise
    from ocannl_lang.loops.text import dump

    return dump(optimise(loops_of(program, routine)))


def _schedule(program: Program, routine: Routine) -> str:
    from ocannl_lang.codegen.cpu import schedule_text

    return schedule_text(loops_of(program, routine))


def _code(program: Program, routine: Routine) -> str:
    from ocannl_lang.codegen.cpu import llvm_text

    return llvm_text(loops_of(program, routine))


STAGES: tuple[Stage, ...] = (
    Stage("parse", "the syntax tree", _parse),
    Stage("names", "where each name comes from", _names),
    Stage("build", "the graph of each routine", None, _build),
    Stage("shapes", "the graph with shapes and precisions", None, _shapes),
    Stage("loops", "assignments over loops", None, _loops),
    Stage("optimise", "the same after optimisation", None, _optimised),
    Stage("schedule", "kernels and the memory plan", None, _schedule),
    Stage("code", "LLVM IR", None, _code),
)


# ---------------------------------------------------------------- schemes and shapes of a checked program


def scheme_lines(checked: Checked) -> list[str]:
    """The scheme of every op of the program's own modules, in the order of the text."""
    from ocannl_lang.shapes.schemes import scheme_text

    lines: list[str] = []
    for built in checked.ops:
        if not built.outputs:
            continue
        config = [p.name.name for p in built.op.definition.config if p.default is None]
        lines.append(
            scheme_text(
                built.op.name,
                config,
                [v.shape for _, v in built.inputs],
                [v.shape for v in built.outputs],
                built.build.solver,
            )
        )
    return lines


def shape_lines(checked: Checked) -> list[str]:
    """The shapes of every routine: its inputs, named tensors, parameters and results."""
    solution = checked.solution
    if solution is None:
        return []
    lines: list[str] = []
    for name, routine in checked.routines.items():
        lines.append(f"routine {name}")
        graph = routine.graph
        seen: set[int] = set()
        plain = [
            v for v in graph.values if v.name and not v.origin.frames and not isinstance(v.op, (CellValue, GradOf))
        ]
        named = [*graph.inputs, *plain, *graph.results]
        for v in named:
            if v.id in seen:
                continue
            seen.add(v.id)
            precision = checked.precisions.get(v) or v.precision or "f32"
            role = "result " if v in graph.results and v not in graph.inputs else ""
            label = v.name or " ".join(v.origin.span.text.split())[:40]
            lines.append(f"  {role}{label}: {precision}{solution.shape(v.shape)}")
        for cell in routine.build.first:
            precision = checked.precisions.get(cell) or cell.precision or "f32"
            lines.append(f"  {cell.kind} {cell.path}: {precision}{solution.shape(cell.shape)}")
    return lines
