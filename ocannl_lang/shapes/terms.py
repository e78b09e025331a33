"""What shape inference speaks about: axes, rows, shapes, and the constraints between them.

A tensor has three rows of axes. An axis is a `Size` that is known (a number, or an unknown of a signature) or a `DimVar` to be
solved. A row is `lead`, then possibly a row variable for any number of axes, then `trail`; a row without a variable is closed and
keeps all its axes in `trail`. Constraints carry an `Origin` and the two `Side`s they compare, so that an error can tell the story.

Memory order of a tensor's axes is batch, output, input.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Literal, Union

from ocannl_lang.source import Span

RowKind = Literal["batch", "input", "output"]
ROW_KINDS: tuple[RowKind, RowKind, RowKind] = ("batch", "output", "input")  # memory order

_ids = itertools.count(1)


# ---------------------------------------------------------------- where things come from


@dataclass(frozen=True, slots=True)
class Frame:
    """The application of an op at `span`, while building what it is applied in.

    `callee` is what the op is called in messages; `key` identifies the op with its configuration.
    """

    span: Span
    callee: str
    key: str


Form = Literal[
    "pointwise", "product", "transpose", "slots", "slice", "stack", "assignment", "argument", "result", "annotation",
    "declaration", "literal", "gradient", "other",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Origin:
    """The place in the text that made a constraint or a variable.

    `span` is the innermost place, `frames` the applications of ops around it, outermost first. `form` says what kind of
    construct it is, `symbol` how the user wrote it (`+`, `*`, `relu`, `sum{…}`).
    """

    span: Span
    frames: tuple[Frame, ...] = ()
    form: Form = "other"
    symbol: str = ""

    @property
    def outer(self) -> Span:
        """The outermost place: the call in the text being checked."""
        return self.frames[0].span if self.frames else self.span


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a constraint, for messages: the tensor as the user calls it (`h`, `w2`, `x - y`; "" if it has no short
    name), which row, and where it stands."""

    tensor: str
    row: RowKind
    span: Span | None


# ---------------------------------------------------------------- axes


@dataclass(frozen=True, slots=True)
class Unknown:
    """A size that the arguments of a call fix (`n` in `x: f32[n | 3]`). Distinct from every other unknown and every number.

    `owner` is the routine (or op) whose signature introduces it.
    """

    name: str
    owner: str


@dataclass(frozen=True, slots=True)
class Size:
    """A known size in units of `basis`: a number, or an unknown.

    A written 1 is a size like any other: it does not broadcast. `why` is the place that fixed it, `text` how the user wrote it
    if that differs (`2 * d`).
    """

    value: int | Unknown
    basis: str = "default"
    why: Origin | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class DimVar:
    """A size to be found. `purpose` names it for people: "the output size of `w`", "label `k`".

    `flexible`: stems from a `0` or from a label that stands only in a result. Only equations give it a size; as the
    broadcasting side of an inequality it asks for nothing, and unless an equation fixed it, it closes to a 1 that broadcasts.
    """

    purpose: str
    origin: Origin
    flexible: bool = False
    id: int = field(default_factory=_ids.__next__)


Dim = Union[Size, DimVar]


# ---------------------------------------------------------------- rows and shapes


@dataclass(frozen=True, slots=True, eq=False)
class RowVar:
    """Any number of axes, to be found."""

    purpose: str
    origin: Origin
    id: int = field(default_factory=_ids.__next__)


@dataclass(frozen=True, slots=True)
class Row:
    """`lead`, `var`, `trail`. Closed if `var` is None; then `lead` is ()."""

    lead: tuple[Dim, ...] = ()
    var: RowVar | None = None
    trail: tuple[Dim, ...] = ()


EMPTY = Row()


@dataclass(frozen=True, slots=True)
class Shape:
    batch: Row = EMPTY
    output: Row = EMPTY
    input: Row = EMPTY

    def row(self, kind: RowKind) -> Row:
        return getattr(self, kind)


SCALAR = Shape()


# ---------------------------------------------------------------- static numbers that depend on sizes


@dataclass(frozen=True, slots=True)
class RowProduct:
    """The product of the sizes of a row."""

    row: Row


@dataclass(frozen=True, slots=True)
class SizeOp:
    """`op` is one of `+ - * // % /  ** neg` or a function of numbers (`sqrt`, `min`, `max`, `int`, `float`, …)."""

    op: str
    args: tuple[SizeTerm, ...]


SizeTerm = Union[int, float, Size, DimVar, RowProduct, SizeOp]
"""A number that may depend on sizes that are not solved yet."""


# ---------------------------------------------------------------- constraints


@dataclass(frozen=True, slots=True)
class RowEq:
    """The rows are the same, axis by axis, basis by basis."""

    a: Row
    b: Row
    a_side: Side
    b_side: Side
    origin: Origin


@dataclass(frozen=True, slots=True)
class RowLe:
    """`sub ⊑ sup`: `sup` broadcasts to `sub`.

    `sub` may have more axes than `sup`, in the place of `sup`'s row variable (before `sup`'s axes if it is closed); an axis of
    `sup` that is a broadcasting 1 asks for nothing; otherwise the axes agree in size and basis.
    """

    sub: Row
    sup: Row
    sub_side: Side
    sup_side: Side
    origin: Origin


@dataclass(frozen=True, slots=True)
class DimEq:
    a: Dim
    b: Dim
    a_side: Side
    b_side: Side
    origin: Origin


@dataclass(frozen=True, slots=True)
class Window:
    """`axis` is read at `stride*o + dilation*k`.

    Valid: size(axis) = stride·(size(out) − 1) + dilation·(size(kernel) − 1) + 1 exactly (E0406). Padded: size(axis) = stride·size(out).
    """

    axis: Dim
    stride: int
    out: Dim
    dilation: int
    kernel: Dim
    padded: bool
    side: Side
    origin: Origin


@dataclass(frozen=True, slots=True)
class Strided:
    """`axis` is read at `stride*o + offset`, 0 ≤ offset < stride: size(axis) = stride·size(out) (E0406)."""

    axis: Dim
    stride: int
    out: Dim
    side: Side
    origin: Origin


@dataclass(frozen=True, slots=True)
class Concat:
    """size(axis) = the sum of the parts. A part may be empty; one that nothing else determines closes to 0."""

    axis: Dim
    parts: tuple[Dim, ...]
    side: Side
    origin: Origin


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The axis has position `minimum - 1` (E0408)."""

    axis: Dim
    minimum: int
    side: Side
    origin: Origin


@dataclass(frozen=True, slots=True)
class SizeIs:
    """The size of `dim` is the number `term` (a negative or fractional one is an error)."""

    dim: Dim
    term: SizeTerm
    side: Side
    origin: Origin


@dataclass(frozen=True, slots=True)
class OneNumber:
    """The tensor holds one number (E0410); checked when everything is solved."""

    shape: Shape
    tensor: str
    origin: Origin


Constraint = Union[RowEq, RowLe, DimEq, Window, Strided, Concat, AtLeast, SizeIs, OneNumber]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A tensor that is not computed: its open rows close first, to what is asked of them.

    A size or row of a `parameter` that nothing asks for is an error (E0407); of the others it closes to 1 or to no axes.
    """

    kind: Literal["parameter", "state", "input", "constant"]
    name: str
    shape: Shape
    origin: Origin


@dataclass(slots=True)
class Problem:
    """Everything that is solved together: the constraints and leaves of all routines of a program, in the order of the text."""

    constraints: list[Constraint] = field(default_factory=list["Constraint"])
    leaves: list[Leaf] = field(default_factory=list[Leaf])
