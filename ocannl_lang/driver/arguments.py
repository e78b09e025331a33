"""Arguments for a routine that nobody calls with data: their shapes from its signature, their values made up.

Sizes that the signature leaves open are given by name, for an argument (`x=64x2`) or for a size (`n=64`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocannl_lang.driver.program import Routine, bind_sizes
from ocannl_lang.graph import ir
from ocannl_lang.graph.ir import Value
from ocannl_lang.loops.ir import Access, Affine, Apply, Buffer, Dynamic, Expr, Position, Program, accesses
from ocannl_lang.shapes.terms import ROW_KINDS, DimVar, Size, Unknown

Array = NDArray[Any]
Shapes = Mapping[str, tuple[int, ...]]

SCALAR = 0.01
"""What float scalars are: mostly rates and weights, with which a step must not run away."""


@dataclass(frozen=True, slots=True)
class Unsized:
    """A routine whose arguments have no known size: `what` is open, `helps` says how to give it."""

    what: str
    helps: str


def argument_shapes(routine: Routine, given: Shapes) -> list[tuple[int, ...]] | Unsized:
    """The shapes of a routine's arguments."""
    inputs = routine.built.graph.inputs
    written = {name: text for name, _, text in routine.inputs}
    sizes = _sizes(routine, given)
    shapes: list[tuple[int, ...]] = []
    for value in inputs:
        own = given.get(value.name)
        shape = own if own is not None and not _is_size(inputs, value.name) else _known(value, sizes)
        if shape is None:
            unknown = [d.value.name for d in _dims(value) if isinstance(d, Size) and isinstance(d.value, Unknown)]
            open_rows = any(value.shape.row(kind).var is not None for kind in ROW_KINDS)
            anonymous = any(isinstance(d, DimVar) for d in _dims(value))
            named = [n for n in dict.fromkeys(unknown) if (n,) and n not in given]
            if open_rows or anonymous or not named:
                helps = f"--shape {value.name}=2x3"
            else:
                helps = " ".join(f"--shape {n}=64" for n in named)
            return Unsized(f"`{value.name}: {written.get(value.name) or '?'}`", helps)
        shapes.append(shape)
    return shapes


def shape_names(routine: Routine) -> list[str]:
    """The arguments of a routine and the sizes of its signature, to which shapes can be given."""
    inputs = routine.built.graph.inputs
    sizes = [d.value.name for v in inputs for d in _dims(v) if isinstance(d, Size) and isinstance(d.value, Unknown)]
    return list(dict.fromkeys([*(v.name for v in inputs), *sizes]))


def _is_size(inputs: Sequence[Value], name: str) -> bool:
    """Whether a name that is given is that of a size only."""
    return all(v.name != name for v in inputs)


def _sizes(routine: Routine, given: Shapes) -> dict[Unknown, int]:
    """What the given shapes say about the sizes in the signature."""
    inputs = routine.built.graph.inputs
    found: dict[Unknown, int] = {}
    for value in inputs:
        for dim in _dims(value):
            if isinstance(dim, Size) and isinstance(dim.value, Unknown):
                own = given.get(dim.value.name)
                if own is not None and len(own) == 1 and _is_size(inputs, dim.value.name):
                    found[dim.value] = own[0]
    for value in inputs:
        own = given.get(value.name)
        if own is not None:
            bound, _ = bind_sizes([value], [np.broadcast_to(np.zeros((), np.uint8), own)])
            found.update(bound)
    return found


def _dims(value: Value) -> list[Size | DimVar]:
    return [d for kind in ROW_KINDS for d in (*value.shape.row(kind).lead, *value.shape.row(kind).trail)]


def _known(value: Value, sizes: Mapping[Unknown, int]) -> tuple[int, ...] | None:
    if any(value.shape.row(kind).var is not None for kind in ROW_KINDS):
        return None
    shape: list[int] = []
    for dim in _dims(value):
        size = dim.value if isinstance(dim, Size) else None
        if isinstance(size, Unknown):
            size = sizes.get(size)
        if size is None:
            return None
        shape.append(size)
    return tuple(shape)


# ---------------------------------------------------------------- values


def fill(routine: Routine, program: Program, arrays: Sequence[Array], seed: int = 0) -> None:
    """Gives arguments values, in place: floats normal, scalars small, ints below what they index, zero where they index nothing."""
    rng = np.random.default_rng(seed)
    limits = _limits(program)
    sizes, _ = bind_sizes(routine.built.graph.inputs, arrays)
    for value, buffer, array in zip(routine.built.graph.inputs, program.inputs, arrays, strict=True):
        op = value.op
        assert isinstance(op, ir.Input)
        if op.kind == "index":
            limit = op.limit.value if isinstance(op.limit, Size) else None
            limit = sizes.get(limit) if isinstance(limit, Unknown) else limit
            limits.setdefault(buffer, limit or 1)
        if array.dtype.kind in "iu":
            array[...] = rng.integers(0, max(1, limits.get(buffer, 1)), array.shape)
        elif op.kind == "scalar" or array.ndim == 0:
            array[...] = SCALAR
        else:
            array[...] = rng.standard_normal(array.shape).astype(array.dtype)


def _limits(program: Program) -> dict[Buffer, int]:
    """For each input of ints the least size that it is used as a position of."""
    source: dict[Buffer, Buffer] = {b: b for b in program.inputs}
    found: dict[Buffer, int] = {}

    def limit(e: Expr, size: int) -> None:
        for a in accesses(e):
            b = source.get(a.buffer)
            if b is not None:
                found[b] = min(size, found.get(b, size))

    def look(e: Expr) -> None:
        stack = [e]
        while stack:
            e = stack.pop()
            match e:
                case Apply(fn="eq", args=(a, b)):
                    for x, y in ((a, b), (b, a)):
                        if isinstance(_plain(y), Position):
                            position = _plain(y)
                            assert isinstance(position, Position)
                            limit(x, position.index.bounds()[1] + 1)
                    stack.extend((a, b))
                case Apply(args=args):
                    stack.extend(args)
                case Access():
                    indices(e)
                case _:
                    pass

    def indices(a: Access) -> None:
        for index, size in zip(a.index, a.buffer.shape, strict=True):
            if isinstance(index, Dynamic):
                limit(index.value, size)
                look(index.value)

    for assign in program.assigns:
        value = _plain(assign.value)
        if isinstance(value, Access) and value.buffer in source and all(isinstance(i, Affine) for i in value.index):
            source.setdefault(assign.target.buffer, source[value.buffer])
        look(assign.value)
        indices(assign.target)
    return found


def _plain(e: Expr) -> Expr:
    """An expression without conversions around it."""
    while isinstance(e, Apply) and e.fn == "convert":
        e = e.args[0]
    return e
