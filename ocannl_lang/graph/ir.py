"""The graph of a routine: values in single-assignment form, made by building, before any size is known.

Every tensor that the text computes is a `Value` with a shape of terms (`shapes.terms`), and is never changed: an assignment makes
a new value, the next version of its `Cell`. So what was computed from an older version keeps its meaning by itself. Order matters only
through operands. What a routine needs is what its results and the final versions of its cells reach.

Gradients are values too: `GradOf(value, backprop)`. They are expanded into assignments when sizes are known, since the derivative
of an assignment over loops is an assignment over the same loops, whatever the notation was.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Literal, Union

import numpy as np
from numpy.typing import NDArray

from ocannl_lang.shapes.terms import Dim, Origin, RowVar, Shape, SizeTerm
from ocannl_lang.source import Span

_ids = itertools.count(1)

CellKind = Literal["parameter", "state"]


@dataclass(slots=True, eq=False)
class Cell:
    """Storage that outlives a call: a parameter or a state. `path` is its key in checkpoints.

    `init` computes its first content: a graph value without inputs, of the cell's own shape, None for the default (parameters:
    uniform in ±1/√fan_in with input axes, else normal with deviation 0.02; states: zero). `shared_key` names where it stands.
    """

    kind: CellKind
    path: str
    shape: Shape
    precision: str | None
    init: Value | None
    origin: Origin
    id: int = field(default_factory=_ids.__next__)


# ---------------------------------------------------------------- axes notation, resolved


@dataclass(frozen=True, slots=True)
class Label:
    """An axis that iterates; equal `dim` objects and equal `key` iterate together. `key` is unique to the label in its notation."""

    key: str
    dim: Dim


@dataclass(frozen=True, slots=True)
class Fixed:
    """A fixed position: a static number, or an `index` value (a scalar int tensor)."""

    position: SizeTerm | Value


@dataclass(frozen=True, slots=True)
class WindowAxis:
    """Position `stride*out + dilation*kernel` (minus the left padding where `padded`)."""

    stride: int
    out: Label
    dilation: int
    kernel: Label
    padded: bool


@dataclass(frozen=True, slots=True)
class StridedAxis:
    """Position `stride*label + offset`."""

    stride: int
    label: Label
    offset: int


@dataclass(frozen=True, slots=True)
class ConcatAxis:
    """Parts one after the other. A part with a Label of key "" is an anonymous stretch of that size."""

    parts: tuple[Label, ...]


Axis = Union[Label, Fixed, WindowAxis, StridedAxis, ConcatAxis]


@dataclass(frozen=True, slots=True)
class SlotRow:
    """Axes before and after a row variable; without one all axes are in `trail`."""

    lead: tuple[Axis, ...] = ()
    var: RowVar | None = None
    trail: tuple[Axis, ...] = ()


@dataclass(frozen=True, slots=True)
class SlotShape:
    batch: SlotRow = SlotRow()
    output: SlotRow = SlotRow()
    input: SlotRow = SlotRow()


# ---------------------------------------------------------------- operations


@dataclass(frozen=True, slots=True, eq=False)
class CellValue:
    """What a cell holds when the routine is called."""

    cell: Cell


@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """An argument of the routine. `kind`: a tensor, a scalar number, or an `index` below `limit` (an i32 scalar)."""

    name: str
    kind: Literal["tensor", "scalar", "index"]
    limit: Dim | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """A constant tensor that is loaded when first needed; `key` names the `data` definition."""

    key: str


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """A static number, maybe depending on sizes. The same number at every position of its (leaf) shape."""

    value: SizeTerm


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """Written-out numbers in memory order."""

    value: NDArray[np.generic]


@dataclass(frozen=True, slots=True, eq=False)
class Arange:
    """0, 1, 2, … along its one output axis."""


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """A random tensor: `dist` is `uniform` in [0, 1) or `normal`; `place` is the path of the place that draws (hashed into the stream).

    `counter` replaces the call count of the routine.
    """

    dist: Literal["uniform", "normal"]
    place: str
    counter: Value | None


@dataclass(frozen=True, slots=True, eq=False)
class Map:
    """A primitive of `graph.primitives`, position by position; operands broadcast (rows align as `shapes.terms.RowLe` says)."""

    fn: str
    args: tuple[Value, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """`left * right` (+ `addend`, for `fma`): contracts left's input row with right's output row."""

    left: Value
    right: Value
    addend: Value | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Transpose:
    """Input and output rows exchanged."""

    operand: Value


@dataclass(frozen=True, slots=True, eq=False)
class Reduce:
    """Axes notation: result{result} = ⊕ over what is missing of ⊗ of the operands.

    `accum`: add, mul, max, min, or, and, mean (add divided by the number of turns that reach a position), argmax, argmin (position of
    the first greatest or least along the one reduced axis, i32).
    `combine`: mul (product of operands), add (sum of operands), and; irrelevant for one operand; `concat`: each turn has exactly one
    operand that the choice of parts makes active.
    """

    accum: Literal["add", "mul", "max", "min", "or", "and", "mean", "argmax", "argmin"]
    combine: Literal["mul", "add", "and", "concat"]
    args: tuple[Value, ...]
    slots: tuple[SlotShape, ...]
    result: SlotShape


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """Operands one after the other along a new leading axis of row `row`; each broadcasts into its place."""

    row: Literal["batch", "output", "input"]
    args: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class SlotLeaf:
    """`value{slot}` inside an assignment in index notation."""

    value: Value
    slot: SlotShape


@dataclass(frozen=True, slots=True)
class SlotApply:
    fn: str
    args: tuple[SlotTree, ...]


SlotTree = Union[SlotLeaf, SlotApply]


@dataclass(frozen=True, slots=True, eq=False)
class Assigned:
    """The next version of a cell or of a gradient: `prev` with an assignment carried out on it.

    Pointwise (`slot` is None): prev (accum) value, value broadcasting into the target's shape; `set` or `fresh` do not read prev.
    In index notation: over all labels, target{slot} (accum)= tree. `fresh` starts from accum's neutral element everywhere; else
    positions that nothing reaches keep prev's content. `accum` also takes sub, div, pow where `fresh` is false: prev fn value.
    """

    prev: Value | None
    accum: Literal["set", "add", "sub", "mul", "div", "pow", "max", "min", "and", "or"]
    fresh: bool
    slot: SlotShape | None
    tree: SlotTree | Value


@dataclass(frozen=True, slots=True, eq=False)
class Custom:
    """The result of an op with its own derivative: equal to `inner` in value.

    Its gradient does not go through `inner`: `contributions` are (operand, value to add to the operand's gradient), computed from the leaf
    `seed`, which stands for the gradient of this value.
    """

    inner: Value
    seed: Value
    contributions: tuple[tuple[Value, Value], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Seed:
    """Stands for the gradient of a `Custom` value in its contributions."""


@dataclass(frozen=True, slots=True, eq=False)
class GradOf:
    """The gradient of `of` after `backprop` (of `of`'s shape)."""

    of: Value
    backprop: Backprop


Operation = Union[
    CellValue,
    Input,
    Data,
    Number,
    Array,
    Arange,
    Draw,
    Map,
    Product,
    Transpose,
    Reduce,
    Stack,
    Assigned,
    Custom,
    Seed,
    GradOf,
]


@dataclass(slots=True, eq=False)
class Value:
    """A tensor of a graph.

    `precision`: as declared, else None until `graph.precision` infers it. `scalar`: decided from the text (section 2 of the language).
    `name`: what the user calls it, "" if nothing. `differentiable`: a gradient can flow through it.
    """

    op: Operation
    shape: Shape
    precision: str | None
    scalar: bool
    name: str
    origin: Origin
    differentiable: bool
    id: int = field(default_factory=_ids.__next__)


@dataclass(slots=True, eq=False)
class Backprop:
    """One backward pass from `root`.

    `seed`: the gradient of the root it starts from, None for 1. `before`: gradients that were there already and are added to, by the value
    they belong to. Versions of one cell share their gradient: `leaf_of` maps every later version of a cell to the value under which its
    gradient is kept (the first version).
    """

    root: Value
    seed: Value | None
    before: dict[Value, Value]
    leaf_of: dict[Value, Value]


@dataclass(slots=True)
class Graph:
    """One routine (or the run of an op on host arrays, or an initial value).

    `inputs` in the order of the signature; `results` in the order of the text; `finals`: the last version of every cell that was
    assigned. `unknowns` are introduced by the signature and fixed by the arguments. `tuple_result`: results come as a tuple.
    """

    name: str
    inputs: list[Value]
    results: list[Value]
    finals: dict[Cell, Value]
    tuple_result: bool
    span: Span | None
    values: list[Value] = field(default_factory=list[Value])


def operands(value: Value) -> tuple[Value, ...]:
    """The values that `value` is computed from, in order; for `GradOf` the value it is the gradient of and the root of the pass."""
    match value.op:
        case Map(args=args) | Stack(args=args):
            return args
        case Reduce(args=args, slots=slots, result=result):
            return (*args, *(v for s in (*slots, result) for v in _slot_values(s)))
        case Product(left=left, right=right, addend=addend):
            return (left, right) if addend is None else (left, right, addend)
        case Transpose(operand=operand):
            return (operand,)
        case Assigned(prev=prev, slot=slot, tree=tree):
            before = () if prev is None else (prev,)
            target = () if slot is None else _slot_values(slot)
            return (*before, *target, *((tree,) if isinstance(tree, Value) else _tree_values(tree)))
        case Custom(inner=inner):
            return (inner,)
        case Draw(counter=counter) if counter is not None:
            return (counter,)
        case GradOf(of=of, backprop=backprop):
            seed = () if backprop.seed is None else (backprop.seed,)
            return (of, backprop.root, *seed, *backprop.before.values())
        case _:
            return ()


def _tree_values(tree: SlotTree) -> tuple[Value, ...]:
    match tree:
        case SlotLeaf(value=value, slot=slot):
            return (value, *_slot_values(slot))
        case SlotApply(args=args):
            return tuple(v for a in args for v in _tree_values(a))


def _slot_values(slot: SlotShape) -> tuple[Value, ...]:
    return tuple(
        axis.position
        for row in (slot.batch, slot.output, slot.input)
        for axis in (*row.lead, *row.trail)
        if isinstance(axis, Fixed) and isinstance(axis.position, Value)
    )
