"""Arguments for a routine that nobody calls with data: their shapes from its signature, their values made up.

Sizes that the signature leaves open are given by name, for an argument (`x=64x2`) or for a size (`n=64`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocannl_lang.driver.program import Routine, bind_sizes
from ocannl_lang.graph import ir
from ocannl_lang.graph.dtypes import INTS
from ocannl_lang.graph.ir import Value
from ocannl_lang.loops.ir import Access, Apply, Buffer, Dynamic, Expr, Position, Program, accesses
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
    """The shapes of a routine's arguments. Raises `ProgramErrors` (E0701) where given ones do not fit the signature."""
    inputs = routine.built.graph.inputs
    sizes = _sizes(inputs, given)
    shapes: list[tuple[int, ...]] = []
    for value in inputs:
        shape = given.get(value.name) or _known(value, sizes)
        if shape is None:
            written = next(text for name, _, text in routine.inputs if name == value.name)
            return Unsized(f"`{value.name}: {written}`", _how_to_give(value, sizes))
        shapes.append(shape)
    return shapes


def _how_to_give(value: Value, sizes: Mapping[Unknown, int]) -> str:
    rows = [value.shape.row(kind) for kind in ROW_KINDS]
    dims = _dims(value)
    if any(r.var is not None for r in rows) or any(isinstance(d, DimVar) for d in dims):
        return f"--shape {value.name}=" + "x".join(str(2 + i) for i in range(max(1, len(dims))))
    unknown = [d.value for d in dims if isinstance(d, Size) and isinstance(d.value, Unknown)]
    return " ".join(f"--shape {u.name}=64" for u in dict.fromkeys(unknown) if u not in sizes)


def shape_names(routine: Routine) -> list[str]:
    """The arguments of a routine and the sizes of its signature, to which shapes can be given."""
    inputs = routine.built.graph.inputs
    sizes = [d.value.name for v in inputs for d in _dims(v) if isinstance(d, Size) and isinstance(d.value, Unknown)]
    return list(dict.fromkeys([*(v.name for v in inputs), *sizes]))


def _sizes(inputs: Sequence[Value], given: Shapes) -> dict[Unknown, int]:
    """What is given says about the sizes in the signature. A name of both an argument and a size is the argument's."""
    arguments = {v.name for v in inputs}
    found: dict[Unknown, int] = {}
    for dim in (d for v in inputs for d in _dims(v)):
        if isinstance(dim, Size) and isinstance(dim.value, Unknown) and dim.value.name not in arguments:
            own = given.get(dim.value.name)
            if own is not None and len(own) == 1:
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
    # Ints that are computed from an input stand for it; buffers that hold positions stand for these.
    source: dict[Buffer, Buffer] = {b: b for b in program.inputs}
    ranges: dict[Buffer, int] = {}
    found: dict[Buffer, int] = {}
    for assign in program.assigns:
        target, value = assign.target.buffer, _plain(assign.value)
        if isinstance(value, Position):
            ranges[target] = value.index.bounds()[1] + 1
        elif target.prec in INTS and target.prec != "u8":
            inputs = (source[a.buffer] for a in accesses(value) if a.buffer in source)
            source.update((target, b) for b in inputs if b.prec in INTS)
        for used, size in _positions([assign.value, assign.target], ranges):
            for b in (source[a.buffer] for a in accesses(used) if a.buffer in source):
                found[b] = min(size, found.get(b, size))
    return found


def _positions(expressions: Sequence[Expr], ranges: Mapping[Buffer, int]) -> Iterator[tuple[Expr, int]]:
    """What is used as a position, or compared with one (as `one_hot` does), and how many positions there are."""
    stack = list(expressions)
    while stack:
        match stack.pop():
            case Access(buffer=buffer, index=index):
                for i, size in zip(index, buffer.shape, strict=True):
                    if isinstance(i, Dynamic):
                        yield i.value, size
                        stack.append(i.value)
            case Apply(fn="eq", args=(a, b)):
                for x, y in ((a, _plain(b)), (b, _plain(a))):
                    if isinstance(y, Position):
                        yield x, y.index.bounds()[1] + 1
                    elif isinstance(y, Access) and y.buffer in ranges:
                        yield x, ranges[y.buffer]
                stack += (a, b)
            case Apply(args=args):
                stack += args
            case _:
                pass


def _plain(e: Expr) -> Expr:
    """An expression without conversions around it."""
    while isinstance(e, Apply) and e.fn == "convert":
        e = e.args[0]
    return e
