"""A graph with the sizes of one call, ready to run: solved, lowered, compiled, bound to the parameters of the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from ocannl_lang.graph.dtypes import dtype as dtype_of
from ocannl_lang.graph.ir import Graph
from ocannl_lang.loops.ir import Buffer, Program
from ocannl_lang.loops.lower import lower
from ocannl_lang.shapes import Solution, SolvedShape
from ocn_runtime.cpu import result_array

if TYPE_CHECKING:
    from ocannl_lang.codegen.cpu import CompiledProgram

Array = NDArray[Any]
Runner = Callable[[Sequence[Array], Sequence[Array], int, int], None]
"""`runner(inputs, outputs, seed, call_count)`: one call, results written into `outputs`."""


class Storage(Protocol):
    """Where persistent buffers get their arrays."""

    def array(self, buffer: Buffer, solution: Solution) -> Array: ...


@dataclass(frozen=True, slots=True, eq=False)
class Executable:
    """One graph for one combination of sizes. `compiled`: its machine code, None where it is interpreted."""

    program: Program
    solution: Solution
    result_shapes: tuple[SolvedShape, ...]
    runner: Runner
    compiled: CompiledProgram | None = None

    def run(
        self, inputs: Sequence[Array], seed: int, call_count: int, out: Sequence[Array] | None = None
    ) -> list[Array]:
        """The results of one call; `out` gives arrays to write into."""
        outputs = (
            list(out) if out is not None else [result_array(b.shape, dtype_of(b.prec)) for b in self.program.outputs]
        )
        self.runner(inputs, outputs, seed, call_count)
        return outputs


def make_executable(
    graph: Graph, solution: Solution, precisions: Mapping[Any, str], storage: Storage, backend: str, threads: int
) -> Executable:
    """Lower and compile. Raises `codegen.Unsupported` for what the backend cannot do."""
    program = lower(graph, solution, precisions)
    shapes = tuple(solution.shape(v.shape) for v in graph.results)
    if backend == "reference":
        return Executable(program, solution, shapes, _reference(program, storage, solution))
    from ocannl_lang.codegen.cpu import compile_program

    compiled = compile_program(program, threads=threads)
    runner = compiled.bind({b: storage.array(b, solution) for b in persistent_buffers(program)})
    return Executable(program, solution, shapes, runner, compiled)


def persistent_buffers(program: Program) -> list[Buffer]:
    return [b for b in program.buffers() if b.role in ("param", "state", "data")]


def _reference(program: Program, storage: Storage, solution: Solution) -> Runner:
    from ocannl_lang.codegen.reference import run_program

    fixed = {b: storage.array(b, solution) for b in persistent_buffers(program)}

    def run(inputs: Sequence[Array], outputs: Sequence[Array], seed: int, call_count: int) -> None:
        bound = {**fixed, **dict(zip(program.inputs, inputs))}
        for out, result in zip(outputs, run_program(program, bound, seed=seed, call_count=call_count)):
            out[...] = result

    return run
