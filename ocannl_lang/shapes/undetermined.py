"""E0407: sizes and rows of parameters that nothing fixes, each told once.

Variables that are tied by inequalities stand for one size that somebody forgot to write. Such a group is fixed by something if
anything known belongs to it; the places of the parameters in it are told together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ocannl_lang.shapes import explain
from ocannl_lang.shapes.reasons import best_name, is_standard
from ocannl_lang.shapes.sizes import size_text
from ocannl_lang.shapes.state import DimNode, RowPending, State, find, known, node_of, open_row, sides
from ocannl_lang.shapes.terms import ROW_KINDS, Dim, DimVar, Leaf, Origin, RowKind, RowLe
from ocannl_lang.source import Span


@dataclass(frozen=True, slots=True)
class Difference:
    """rank(low) + need ≤ rank(high) + have, for row variables (0: none). `both`: equal ranks; `same`: equal rows."""

    high: int
    have: int
    low: int
    need: int
    both: bool
    same: bool


def undetermined_rows(
    st: State, leaf_rows: list[tuple[Leaf, RowKind, int]], differences: list[Difference], most: dict[int, int]
) -> None:
    """E0407 for rows of parameters that nothing known is connected with."""
    groups = Groups()
    for d in differences:
        if d.high and d.low:
            groups.join(d.high, d.low)
    anchored = {groups.of(v) for v in most if v}
    outputs: set[int] = set()
    for pending in st.pending.values():
        if isinstance(pending, RowPending):
            for side in sides(pending.constraint):
                for var in (pending.a[1], pending.b[1]):
                    if var and side.row == "output":
                        outputs.add(groups.of(var))
    for c in st.constraints:
        if isinstance(c, RowLe):
            sub, sup = open_row(st, c.sub)[1], open_row(st, c.sup)
            if sub and not sup[1] and (sup[0] or sup[2]):  # a row without axes fits anything and fixes nothing
                anchored.add(groups.of(sub))
    members: dict[int, list[tuple[Leaf, RowKind]]] = {}
    for leaf, kind, _ in leaf_rows:
        var = open_row(st, leaf.shape.row(kind))[1]
        if var and not st.rows[var].bad:
            group = groups.of(var)
            if kind == "output":
                outputs.add(group)
            if leaf.kind == "parameter":
                members.setdefault(group, []).append((leaf, kind))
    for group, found in members.items():
        if group not in anchored and group in outputs:
            _report(st, found, whole_row=True)
    for node in st.rows.values():
        if node.solution is None and groups.of(node.var.id) in members and groups.of(node.var.id) not in anchored:
            node.bad = groups.of(node.var.id) in outputs


def undetermined_dims(st: State, open_dims: list[DimNode]) -> None:
    groups = Groups()
    for node in open_dims:
        for other, _, _ in (*node.sups, *node.subs):
            sup = find(st, other)
            if sup.value is None:
                groups.join(node.var.id, sup.var.id)
    labels: dict[int, str] = {}
    for id, node in st.dims.items():
        name = best_name(node.var)
        if name and find(st, id).value is None:
            labels.setdefault(groups.of(find(st, id).var.id), name)
    members: dict[int, list[tuple[Leaf, RowKind]]] = {}
    for node, leaf, kind in parameter_dims(st):
        if node.value is None and not node.bad:
            members.setdefault(groups.of(node.var.id), []).append((leaf, kind))
    beside = {groups.of(node.var.id) for node in open_dims if node.bad}
    for group, found in members.items():
        if group not in beside:  # where sizes contradict, what they would have fixed is not forgotten
            _report(st, found, labels.get(group, ""), whole_row=False)
    for node in open_dims:
        if groups.of(node.var.id) in members:
            node.bad = True


def parameter_dims(st: State) -> list[tuple[DimNode, Leaf, RowKind]]:
    return [
        (node_of(st, dim), leaf, kind)
        for leaf in st.leaves
        if leaf.kind == "parameter"
        for kind in ROW_KINDS
        for row in (open_row(st, leaf.shape.row(kind)),)
        for dim in row[0] + row[2]
        if isinstance(dim, DimVar)
    ]


class Groups:
    """Union-find of ids."""

    def __init__(self) -> None:
        self.parent: dict[int, int] = {}

    def of(self, id: int) -> int:
        parent = self.parent
        root = id
        while parent.get(root, root) != root:
            root = parent[root]
        while parent.get(id, id) != root:
            parent[id], id = root, parent.get(id, id)
        return root

    def join(self, a: int, b: int) -> None:
        a, b = self.of(a), self.of(b)
        if a != b:
            self.parent[max(a, b)] = min(a, b)


# ---------------------------------------------------------------- words


def _report(st: State, found: list[tuple[Leaf, RowKind]], label: str = "", *, whole_row: bool) -> None:
    """One error for all places of one size, at the parameter where it is shortest to write: one without input axes.

    Parameters of library ops (texts that are no files) cannot be written to and come last.
    """
    leaf, kind = min(
        found, key=lambda f: (f[0].origin.span.source.path.startswith("<"), _has_inputs(st, f[0]), f[1] != "output")
    )
    origin, inside = _place(leaf.origin)
    if any(e.code == "E0407" and e.origin.span == origin.span and e.origin.symbol == kind for e in st.errors):
        return  # the same text, built once more
    others: list[tuple[str, RowKind, Span]] = [
        (other.name, row, other.origin.span) for other, row in found if other.name != leaf.name
    ]
    explain.undetermined(
        st, replace(origin, symbol=kind), leaf.name, kind, label, others, whole_row, _example(st, leaf, kind), inside
    )


def _place(origin: Origin) -> tuple[Origin, str]:
    """Where a parameter is told of: where it is declared, or, for one of a standard op, where that op is applied, and its name."""
    if not is_standard(origin.span):
        return replace(origin, frames=()), ""
    for frame in reversed(origin.frames):
        if not is_standard(frame.span):
            return replace(origin, span=frame.span, frames=()), frame.callee
    return replace(origin, frames=()), ""


def _has_inputs(st: State, leaf: Leaf) -> bool:
    lead, var, trail = open_row(st, leaf.shape.input)
    return bool(lead or trail) or (bool(var) and var in _contracted(st))


def _contracted(st: State) -> set[int]:
    return {p.a[1] for p in st.pending.values() if isinstance(p, RowPending) and p.relation == "contract"}


def _example(st: State, leaf: Leaf, kind: RowKind) -> str:
    """The type of the parameter with a size in the place of what is missing."""

    def text(row: RowKind) -> str:
        lead, var, trail = open_row(st, leaf.shape.row(row))
        axes = [_axis(st, d, row == kind) for d in lead + trail]
        if not axes and row == kind:
            return "16"
        return ", ".join(axes) if axes else "_" if var and row == "input" and var in _contracted(st) else ""

    batch, inputs, output = text("batch"), text("input"), text("output")
    output = output or ("_" if inputs else "")
    return f"[{f'{batch} | ' if batch else ''}{f'{inputs} -> ' if inputs else ''}{output}]"


def _axis(st: State, dim: Dim, missing: bool) -> str:
    at = known(st, dim)
    if at is not None:
        return size_text(at.value) + ("" if at.basis == "default" else f":{at.basis}")
    return "16" if missing else "_"
