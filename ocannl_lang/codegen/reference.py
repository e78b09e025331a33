"""The reference evaluator: a `loops.ir.Program` carried out with numpy, assignment by assignment. The meaning of the
language.

Every assignment is evaluated over the grid of its loop variables: each variable is an array along its own axis, each
access an indexed read, each primitive its numpy reference in the precision that the expression says. Floating sums and
products of one assignment accumulate in f64 and are rounded once to the target's precision; ints accumulate in their
own precision, modulo 2^n.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocannl_lang.graph import random
from ocannl_lang.graph.dtypes import dtype, is_float
from ocannl_lang.graph.numeric import convert
from ocannl_lang.graph.primitives import PRIMITIVES, neutral
from ocannl_lang.loops.ir import (
    Access,
    Affine,
    Apply,
    Assign,
    Buffer,
    Const,
    Dynamic,
    Expr,
    Position,
    Program,
    Random,
    Var,
)
from ocannl_lang.loops.ir import Index as LoopIndex

Array = NDArray[Any]

# Turns that are evaluated at once; larger loop nests go piece by piece.
_GRID_LIMIT = 1 << 22

_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.logical_and,
    "or": np.logical_or,
}


def run_program(
    program: Program, storage: Mapping[Buffer, Array], *, seed: int = 0, call_count: int = 0
) -> list[Array]:
    """Carries out one call and returns the results in order.

    `storage` holds the arrays of inputs, parameters, states and data, in the buffers' shapes and precisions; those of
    parameters and states are updated in place at the end, as `program.stores` says.
    """
    run = _Run(storage, seed, call_count)
    with np.errstate(all="ignore"):
        for assign in program.assigns:
            run.assign(assign)
    results = [run.read(b).copy() for b in program.outputs]
    finals = [(persistent, run.read(final).copy()) for persistent, final in program.stores]
    for persistent, value in finals:
        storage[persistent][...] = value
    return results


class _Run:
    """The buffers of one call, and the grid of the assignment being carried out."""

    def __init__(self, storage: Mapping[Buffer, Array], seed: int, call_count: int) -> None:
        self._storage = storage
        self._seed = seed
        self._call_count = call_count
        self._temps: dict[Buffer, Array] = {}

    def read(self, buffer: Buffer) -> Array:
        """The content of a buffer, of its own shape and type."""
        if buffer.value is not None:
            return np.asarray(buffer.value).astype(dtype(buffer.prec)).reshape(buffer.shape)
        found = self._temps.get(buffer)
        array = self._storage[buffer] if found is None else found
        if array.shape != buffer.shape or array.dtype != dtype(buffer.prec):
            raise ValueError(f"buffer {buffer.name}: {array.dtype}{array.shape} is not {buffer.prec}{buffer.shape}")
        return array

    def assign(self, assign: Assign) -> None:
        buffer = assign.target.buffer
        if assign.fresh or buffer not in self._temps:
            start = neutral(assign.accum, buffer.prec)
            self._temps[buffer] = np.full(buffer.shape, start, dtype(buffer.prec))
        if assign.accum == "set":
            for grid in _grids(assign.loops):
                self._set(assign, grid)
            return
        wide = self._temps[buffer].astype(_accumulator(assign))
        for grid in _grids(assign.loops):
            self._accumulate(assign, grid, wide)
        self._temps[buffer] = wide.astype(dtype(buffer.prec))

    def _set(self, assign: Assign, grid: _Grid) -> None:
        place, inside = self._places(assign.target, grid)
        value = np.broadcast_to(self._value(assign.value, grid), grid.shape)
        inside = np.broadcast_to(inside, grid.shape)
        place = tuple(np.broadcast_to(p, grid.shape)[inside] for p in place)
        target = self._temps[assign.target.buffer]
        if place:
            target[place] = value[inside]
        elif inside.all():
            target[()] = value.reshape(-1)[-1]

    def _accumulate(self, assign: Assign, grid: _Grid, wide: Array) -> None:
        ufunc = _UFUNCS[assign.accum]
        place, inside = self._places(assign.target, grid)
        value = self._value(assign.value, grid)
        value = np.broadcast_to(value != 0 if wide.dtype == np.bool_ else value.astype(wide.dtype), grid.shape)
        # Loops that the target does not follow are reduced first; the others may still meet in one position.
        used = [
            max([p.shape[axis] for p in place] + [inside.shape[axis]], default=1) for axis in range(len(grid.shape))
        ]
        free = tuple(axis for axis, (n, size) in enumerate(zip(used, grid.shape, strict=True)) if n == 1 and size > 1)
        if free:
            value = ufunc.reduce(value, axis=free, keepdims=True, dtype=wide.dtype)  # numpy would widen ints
        inside = np.broadcast_to(inside, value.shape)
        place = tuple(np.broadcast_to(p, value.shape)[inside] for p in place)
        if place:
            ufunc.at(wide, place, value[inside])
        elif inside.size:
            wide[...] = ufunc(wide, ufunc.reduce(value[inside], dtype=wide.dtype))

    def _places(self, access: Access, grid: _Grid) -> tuple[tuple[Array, ...], Array]:
        """The positions of an access, clipped into the buffer, and where all of them lie inside."""
        inside = np.ones(grid.unit, np.bool_)
        places: list[Array] = []
        for index, size in zip(access.index, access.buffer.shape, strict=True):
            position = self._position(index, grid)
            if access.guarded or isinstance(index, Dynamic):
                inside = inside & (position >= 0) & (position < size)
                position = np.clip(position, 0, max(size - 1, 0))
            elif position.size and (position.min() < 0 or position.max() >= size):
                raise IndexError(f"position outside of axis of {size} in buffer {access.buffer.name}")
            places.append(position)
        return tuple(places), inside

    def _position(self, index: LoopIndex, grid: _Grid) -> Array:
        if isinstance(index, Dynamic):
            return self._value(index.value, grid).astype(np.int64)
        return grid.affine(index)

    def _value(self, expr: Expr, grid: _Grid) -> Array:
        """An array that broadcasts to the grid."""
        match expr:
            case Const(value=value, prec=prec):
                return np.full(grid.unit, value, dtype(prec))
            case Position(index=index, prec=prec):
                return grid.affine(index).astype(dtype(prec))
            case Access():
                return self._access(expr, grid)
            case Apply(fn="convert", args=(arg,), prec=prec):
                return convert(self._value(arg, grid), dtype(prec))
            case Apply(fn=fn, args=args, prec=prec):
                operands = [self._value(a, grid) for a in args]
                return np.asarray(PRIMITIVES[fn].numpy(*operands)).astype(dtype(prec))
            case Random():
                return self._random(expr, grid)

    def _access(self, access: Access, grid: _Grid) -> Array:
        array = self.read(access.buffer)
        place, inside = self._places(access, grid)
        if not place:
            return np.full(grid.unit, array, array.dtype)
        guarded = access.guarded or any(isinstance(i, Dynamic) for i in access.index)
        if not guarded:
            return array[place]
        fill = array.dtype.type(access.fill)
        if not array.size:
            return np.full(grid.unit, fill, array.dtype)
        return np.where(inside, array[place], fill)

    def _random(self, expr: Random, grid: _Grid) -> Array:
        count = self._call_count if expr.counter is None else self._value(expr.counter, grid)
        values = random.random_values(
            expr.dist,
            "f64" if expr.prec == "f64" else "f32",
            seed=self._seed,
            stream=expr.stream,
            count=count,
            position=grid.affine(expr.position),
        )
        return values.astype(dtype(expr.prec))


class _Grid:
    """Values of the loop variables, each along its own axis."""

    def __init__(self, ranges: Mapping[Var, range]) -> None:
        n = len(ranges)
        self.unit = (1,) * n
        self.shape = tuple(len(r) for r in ranges.values())
        self._values = {
            var: np.arange(r.start, r.stop, dtype=np.int64).reshape((1,) * i + (-1,) + (1,) * (n - i - 1))
            for i, (var, r) in enumerate(ranges.items())
        }

    def affine(self, index: Affine) -> Array:
        position = np.full(self.unit, index.offset, np.int64)
        for var, coefficient in index.terms:
            position = position + coefficient * self._values[var]
        return position


def _grids(loops: tuple[Var, ...]) -> Iterator[_Grid]:
    """The loop space in pieces of limited size; nothing if a loop has no turns."""
    pieces: list[list[range]] = []
    inner = math.prod(v.size for v in loops)
    for var in loops:
        inner = inner // var.size if var.size else 0
        step = max(1, min(var.size, _GRID_LIMIT // max(inner, 1)))
        pieces.append([range(start, min(start + step, var.size)) for start in range(0, var.size, step)])
    for ranges in itertools.product(*pieces):
        yield _Grid(dict(zip(loops, ranges, strict=True)))


def _accumulator(assign: Assign) -> np.dtype[Any]:
    if assign.accum in ("and", "or"):
        return np.dtype(np.bool_)
    prec = assign.target.buffer.prec
    return np.dtype(np.float64) if is_float(prec) and assign.accum in ("add", "mul") else dtype(prec)
