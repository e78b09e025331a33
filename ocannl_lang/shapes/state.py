"""What the solver knows: a node for each variable, the constraints that wait, and the work to be done.

Nodes refer to each other by id only, so that a state is copied by copying its nodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Union

from ocannl_lang.diagnostics.model import Diagnostic
from ocannl_lang.shapes.sizes import Number, SizeValue, of_unknown, replace
from ocannl_lang.shapes.terms import (
    AtLeast,
    Concat,
    Constraint,
    Dim,
    DimEq,
    DimVar,
    Leaf,
    OneNumber,
    Origin,
    Row,
    RowEq,
    RowLe,
    RowVar,
    Side,
    Size,
    SizeIs,
    Strided,
    Unknown,
    Window,
)

MAX_AXES = 200
"""A row that grows beyond this many axes can only be one that contains itself."""

Open = tuple[tuple[Dim, ...], int, tuple[Dim, ...]]
"""A row as the solver handles it: lead, id of the open row variable or 0, trail. Unlike in `Row`, a closed one may have a lead:
the place between lead and trail is where broadcasting inserts axes."""

Arithmetic = Union[Window, Strided, Concat, AtLeast, SizeIs]
Relation = Literal["eq", "le", "contract"]


@dataclass(frozen=True, slots=True)
class ShapeError:
    """A contradiction: its code, the origin of the constraint that met it, and the message."""

    code: str
    origin: Origin
    diagnostic: Diagnostic


@dataclass(frozen=True, slots=True)
class Ask:
    """A known size that broadcasts from a variable: who asks, and by which constraint."""

    dim: Dim
    constraint: Constraint


@dataclass(frozen=True, slots=True)
class Stretch:
    """Why a size is a broadcasting 1. `first` and `second` disagree, if that is the reason."""

    first: Ask | None = None
    second: Ask | None = None


Edge = tuple[int, bool, Constraint]
"""The other variable of an inequality, whether it is a contraction (which does not stretch), and the constraint."""

Key = tuple[SizeValue, str]


@dataclass(slots=True)
class DimNode:
    """A size variable, or (where `parent` is 0) a class of equal ones."""

    var: DimVar
    parent: int = 0
    weight: int = 1
    value: SizeValue | None = None
    basis: str = "default"
    stretch: Stretch | None = None  # a broadcasting 1; then value is 1
    flexible: bool = False
    bad: bool = False  # touched by an error that has been reported
    asks: dict[Key, Ask] = field(default_factory=dict[Key, Ask])
    sups: list[Edge] = field(default_factory=list[Edge])
    subs: list[Edge] = field(default_factory=list[Edge])
    waiting: list[int] = field(default_factory=list[int])

    def copy(self) -> DimNode:
        return DimNode(
            self.var, self.parent, self.weight, self.value, self.basis, self.stretch, self.flexible, self.bad,
            self.asks.copy(), self.sups.copy(), self.subs.copy(), self.waiting.copy(),
        )  # fmt: skip


@dataclass(slots=True)
class RowNode:
    """A row variable; `solution` once something is known of it, `cause` the equation that said so."""

    var: RowVar
    solution: Open | None = None
    cause: Constraint | None = None
    depth: int = 0
    bad: bool = False
    waiting: list[int] = field(default_factory=list[int])

    def copy(self) -> RowNode:
        return RowNode(self.var, self.solution, self.cause, self.depth, self.bad, self.waiting.copy())


@dataclass(frozen=True, slots=True)
class RowPending:
    """A relation of rows that waits for more to be known."""

    relation: Relation
    a: Open
    b: Open
    constraint: RowEq | RowLe


@dataclass(frozen=True, slots=True)
class DimPending:
    """Arithmetic of sizes that waits for more to be known."""

    constraint: Arithmetic


Link = tuple[Dim, Dim, Constraint]


@dataclass(frozen=True, slots=True)
class Step:
    """`near` has its size because of `constraint`, which ties it to `far`."""

    constraint: Constraint
    near: Dim
    far: Dim
    near_side: Side
    far_side: Side


@dataclass(slots=True)
class State:
    """Everything the solver knows. `steps` counts elementary propagations."""

    bindings: Mapping[Unknown, int]
    dims: dict[int, DimNode] = field(default_factory=dict[int, DimNode])
    rows: dict[int, RowNode] = field(default_factory=dict[int, RowNode])
    pending: dict[int, RowPending | DimPending] = field(default_factory=dict[int, "RowPending | DimPending"])
    links: list[Link] = field(default_factory=list[Link])
    constraints: list[Constraint] = field(default_factory=list[Constraint])
    leaves: list[Leaf] = field(default_factory=list[Leaf])
    errors: list[ShapeError] = field(default_factory=list[ShapeError])
    work: deque[int] = field(default_factory=deque[int])  # pending ids > 0, dim ids < 0
    next_pending: int = 1
    steps: int = 0
    misplaced: list[RowEq] = field(default_factory=list[RowEq])  # reported as E0403
    steps_of: dict[int, list[Step]] = field(
        default_factory=dict[int, list[Step]]
    )  # the links by variable, as far as `indexed`
    indexed: int = 0

    def copy(self) -> State:
        return State(
            self.bindings,
            {i: n.copy() for i, n in self.dims.items()},
            {i: n.copy() for i, n in self.rows.items()},
            self.pending.copy(), self.links.copy(), self.constraints.copy(), self.leaves.copy(), self.errors.copy(),
            self.work.copy(), self.next_pending, self.steps, self.misplaced.copy(),
        )  # fmt: skip


# ---------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True)
class Known:
    """A size that is known. `stretches`: it is a broadcasting 1."""

    value: SizeValue
    basis: str
    stretches: bool = False


def node_of(st: State, var: DimVar) -> DimNode:
    """The class of a variable."""
    node = st.dims.get(var.id)
    if node is None:
        node = st.dims[var.id] = DimNode(var, flexible=var.flexible)
        return node
    return find(st, var.id)


def find(st: State, id: int) -> DimNode:
    node = st.dims[id]
    while node.parent:
        above = st.dims[node.parent]
        if above.parent:
            node.parent = above.parent
        node = above
    return node


def size_value(st: State, size: Size) -> SizeValue:
    if isinstance(size.value, Unknown):
        bound = st.bindings.get(size.value)
        return of_unknown(size.value) if bound is None else bound
    return size.value


def known(st: State, dim: Dim) -> Known | None:
    if isinstance(dim, Size):
        return Known(size_value(st, dim), dim.basis)
    node = node_of(st, dim)
    return None if node.value is None else Known(node.value, node.basis, node.stretch is not None)


def is_bad(st: State, dim: Dim) -> bool:
    return isinstance(dim, DimVar) and node_of(st, dim).bad


def open_row(st: State, row: Row) -> Open:
    """`row` with everything put in that is known of its variable."""
    if row.var is None:
        return (row.lead, 0, row.trail)
    return resolve(st, (row.lead, row_node(st, row.var).var.id, row.trail))


def row_node(st: State, var: RowVar) -> RowNode:
    node = st.rows.get(var.id)
    if node is None:
        node = st.rows[var.id] = RowNode(var)
    return node


def resolve(st: State, row: Open) -> Open:
    lead, var, trail = row
    while var:
        solution = st.rows[var].solution
        if solution is None:
            break
        var = solution[1]
        lead = lead + solution[0]
        trail = solution[2] + trail
    return (lead, var, trail)


def alias(st: State, var: int) -> int:
    """The last of the row variables that are the very same as `var`."""
    while True:
        solution = st.rows[var].solution
        if solution is None or not solution[1] or solution[0] or solution[2]:
            return var
        onward = st.rows[solution[1]].solution
        if onward is not None and onward[1] and not onward[0] and not onward[2]:
            st.rows[var].solution = onward
        var = solution[1]


def value_of(st: State, value: Number) -> Number:
    return replace(value, st.bindings) if st.bindings else value


# ---------------------------------------------------------------- sides of a constraint


def sides(constraint: Constraint) -> tuple[Side, Side]:
    match constraint:
        case RowEq() | DimEq():
            return constraint.a_side, constraint.b_side
        case RowLe():
            return constraint.sub_side, constraint.sup_side
        case OneNumber(origin=origin):
            side = Side(constraint.tensor, "output", origin.span)
            return side, side
        case _:
            return constraint.side, constraint.side


def is_contraction(constraint: Constraint) -> bool:
    """The input axes of the left of a product against the output axes of the right."""
    return (
        isinstance(constraint, RowLe)
        and constraint.origin.form == "product"
        and constraint.sub_side.row == "input"
        and constraint.sup_side.row == "output"
    )


# ---------------------------------------------------------------- waiting


def wait(
    st: State, pending: RowPending | DimPending, dims: list[DimVar] | None = None, rows: tuple[int, ...] = ()
) -> None:
    """Come back to `pending` when more is known of one of these variables."""
    id = st.next_pending
    st.next_pending += 1
    st.pending[id] = pending
    for var in dims or ():
        node_of(st, var).waiting.append(id)
    for row in rows:
        if row:
            st.rows[row].waiting.append(id)


def fresh_dims(var: RowVar, count: int) -> tuple[Dim, ...]:
    return tuple(DimVar(f"an axis of {var.purpose}", var.origin) for _ in range(count))
