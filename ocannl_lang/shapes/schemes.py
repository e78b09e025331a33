"""Shape schemes: the most general shapes of an op as one line of text.

`layer_norm : (... | ..d..) -> (... | ..d..)`. What the body forces is kept, what it leaves open gets a name. Where operands may
broadcast to a result, the scheme shows the plain case: nothing broadcasts.
"""

from __future__ import annotations

from collections.abc import Sequence

from ocannl_lang.shapes import dims, rows
from ocannl_lang.shapes.sizes import size_text
from ocannl_lang.shapes.solver import Solver
from ocannl_lang.shapes.state import (
    DimNode,
    Open,
    RowPending,
    State,
    Stretch,
    find,
    known,
    node_of,
    open_row,
    resolve,
)
from ocannl_lang.shapes.terms import Dim, RowKind, RowLe, Shape, Size

_KINDS: tuple[RowKind, RowKind, RowKind] = ("batch", "input", "output")
_LETTERS = "nmkdefghijlopqrstuvw"


def scheme_text(
    name: str, config: Sequence[str], inputs: Sequence[Shape], outputs: Sequence[Shape], solver: Solver
) -> str:
    """The scheme of an op from what `solver` knows of its body; `config` names its static parameters."""
    st = _without_broadcasting(solver.state, [*inputs, *outputs], list(inputs))
    names = _Names(st, [*inputs, *outputs])
    head = f"{name}[{', '.join(config)}]" if config else name
    left = ", ".join(_shape(st, s, names) for s in inputs)
    right = ", ".join(_shape(st, s, names) for s in outputs)
    return f"{head} : {left} -> {right}" if inputs else f"{head} : () -> {right}"


# ---------------------------------------------------------------- the plain case


def _without_broadcasting(state: State, shapes: list[Shape], inputs: list[Shape]) -> State:
    """A copy in which inequalities are equations, as far as that contradicts nothing."""
    st = state.copy()
    for shape in shapes:
        for kind in _KINDS:
            for dim in _axes(open_row(st, shape.row(kind))):
                known(st, dim)
    for node in list(st.dims.values()):
        if not node.parent and node.value is None and node.flexible:
            dims.stretch(st, node, Stretch())
    rows.drain(st)
    for _ in range(50):
        before = len(st.pending)
        st = _equate_rows(st)
        if len(st.pending) == before:
            break
    for _ in range(50):
        changed = _equate_dims(st)
        rows.drain(st)
        if not changed:
            break
    _drop_extras(st, shapes, inputs)
    return st


def _equate_rows(st: State) -> State:
    """Make equations of what waits: everything at once, or one by one where that contradicts."""
    attempt = st.copy()
    for id in list(attempt.pending):
        _equate_row(attempt, id)
    if len(attempt.errors) == len(st.errors):
        return attempt
    for id in list(st.pending):
        attempt = st.copy()
        _equate_row(attempt, id)
        if len(attempt.errors) == len(st.errors):
            st = attempt
    return st


def _equate_row(st: State, id: int) -> None:
    pending = st.pending.get(id)
    if isinstance(pending, RowPending) and pending.relation != "eq":
        del st.pending[id]
        rows.relate(st, "eq", pending.a, pending.b, pending.constraint)
        rows.drain(st)


def _equate_dims(st: State) -> bool:
    for node in list(st.dims.values()):
        if node.parent or node.value is not None:
            continue
        if len(node.asks) == 1:
            ((value, basis),) = node.asks
            dims.settle(st, node, value, basis)
            return True
        for other, _, constraint in node.sups:
            sup = find(st, other)
            if sup is not node and sup.value is None:
                dims.equal(st, node.var, sup.var, constraint)
                return True
    return False


def _drop_extras(st: State, shapes: list[Shape], inputs: list[Shape]) -> None:
    """Row variables that no input has are only room to broadcast, if they stand beside known axes or above a known row: no axes."""
    given = {open_row(st, s.row(kind))[1] for s in inputs for kind in _KINDS}
    for constraint in st.constraints:
        if isinstance(constraint, RowLe) and not open_row(st, constraint.sup)[1]:
            _close(st, open_row(st, constraint.sub)[1], given)
    rows.drain(st)
    for shape in shapes:
        for kind in _KINDS:
            lead, var, trail = open_row(st, shape.row(kind))
            if lead or trail or kind == "input":
                _close(st, var, given)
    rows.drain(st)


def _close(st: State, var: int, given: set[int]) -> None:
    if var and var not in given and st.rows[var].solution is None:
        rows.set_rank(st, var, 0)


# ---------------------------------------------------------------- names


class _Names:
    """Names for what stays open: the user's own, else letters in the order of appearance."""

    def __init__(self, st: State, shapes: list[Shape]) -> None:
        self.st = st
        self.rows: dict[int, str] = {}
        self.dims: dict[int, str] = {}
        self.taken: set[str] = set()
        self.through = self._common(shapes)
        for shape in shapes:
            for kind in _KINDS:
                self._take_own(open_row(st, shape.row(kind)))

    def _common(self, shapes: list[Shape]) -> dict[RowKind, int]:
        """For each row the variable that it is, alone, in every shape that has such axes."""
        found: dict[RowKind, int] = {}
        for kind in _KINDS:
            all_rows = [open_row(self.st, s.row(kind)) for s in shapes]
            whole = {r[1] if not _axes(r) else 0 for r in all_rows if r[1] or _axes(r)}
            if len(whole) == 1:
                found[kind] = whole.pop()
        return found

    def _take_own(self, row: Open) -> None:
        for dim in _axes(row):
            node = self._node(dim)
            own = _own_name(self._purposes(node)) if node else ""
            if node and own and node.var.id not in self.dims and own not in self.taken:
                self.dims[node.var.id] = own
                self.taken.add(own)
        if row[1] and row[1] not in self.rows:
            own = _own_row(self._row_purposes(row[1]))
            if own and own not in self.taken:
                self.rows[row[1]] = own
                self.taken.add(own)

    def _node(self, dim: Dim) -> DimNode | None:
        if isinstance(dim, Size) or known(self.st, dim) is not None:
            return None
        return node_of(self.st, dim)

    def _purposes(self, node: DimNode) -> list[str]:
        return [n.var.purpose for i, n in self.st.dims.items() if find(self.st, i) is node]

    def _row_purposes(self, var: int) -> list[str]:
        return [n.var.purpose for i, n in self.st.rows.items() if i == var or open_row_of(self.st, i) == ((), var, ())]

    def dim(self, dim: Dim) -> str:
        at = known(self.st, dim)
        if at is not None:
            return size_text(at.value) + ("" if at.basis == "default" else f":{at.basis}")
        node = self._node(dim)
        assert node is not None
        if node.var.id not in self.dims:
            self.dims[node.var.id] = self._fresh(_LETTERS)
        return self.dims[node.var.id]

    def row(self, var: int, kind: RowKind) -> str:
        if var not in self.rows:
            if self.through.get(kind) == var:
                return "..."
            self.rows[var] = self._fresh(kind[0])
        return f"..{self.rows[var]}.."

    def _fresh(self, letters: str) -> str:
        for number in range(1, 1000):
            for letter in letters:
                name = letter if number == 1 else f"{letter}{number}"
                if name not in self.taken:
                    self.taken.add(name)
                    return name
        raise AssertionError("out of names")


def open_row_of(st: State, var: int) -> Open:
    """All that is known of a row variable."""
    return resolve(st, ((), var, ()))


def _own_name(purposes: list[str]) -> str:
    """The name in "label `k`" or "`n`"."""
    for purpose in purposes:
        text = purpose.removeprefix("label ")
        if text.startswith("`") and text.endswith("`") and text.strip("`").isidentifier():
            return text.strip("`")
    return ""


def _own_row(purposes: list[str]) -> str:
    """The name in "`..r..`"."""
    for purpose in purposes:
        text = purpose.strip("`")
        if purpose.startswith("`..") and text.endswith("..") and text.strip(".").isidentifier():
            return text.strip(".")
    return ""


def _axes(row: Open) -> tuple[Dim, ...]:
    return row[0] + row[2]


# ---------------------------------------------------------------- text


def _shape(st: State, shape: Shape, names: _Names) -> str:
    batch, inputs, output = (_row(st, shape, kind, names) for kind in _KINDS)
    if names.through.get("input"):
        inputs = ""  # passed through untouched
    text = f"{f'{batch} | ' if batch else ''}{f'{inputs} -> ' if inputs else ''}{output}"
    return f"({text.rstrip()})"


def _row(st: State, shape: Shape, kind: RowKind, names: _Names) -> str:
    lead, var, trail = open_row(st, shape.row(kind))
    left = ", ".join(names.dim(d) for d in lead)
    right = ", ".join(names.dim(d) for d in trail)
    if not var:
        return ", ".join(t for t in (left, right) if t)
    return " ".join(t for t in (left, names.row(var, kind), right) if t)
