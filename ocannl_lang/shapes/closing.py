"""Closing what propagation left open, in stages that do not depend on the order of anything.

Rows first (numbers of axes never depend on sizes): leaves take as many axes as are asked of them, then what is left takes as few
as it can. Then sizes: leaves become what is asked of them, or a broadcasting 1 if that differs; then what is left becomes 1.
All choices of one step are made from the same state and then put in together.
"""

from __future__ import annotations

from ocannl_lang.shapes import dims, explain, rows
from ocannl_lang.shapes.sizes import SizeValue, product
from ocannl_lang.shapes.state import (
    Ask,
    DimNode,
    DimPending,
    Key,
    RowPending,
    State,
    Stretch,
    alias,
    find,
    is_contraction,
    known,
    node_of,
    open_row,
)
from ocannl_lang.shapes.terms import (
    ROW_KINDS,
    AtLeast,
    Concat,
    DimVar,
    Leaf,
    OneNumber,
    RowEq,
    RowKind,
    RowLe,
    Strided,
    Window,
)
from ocannl_lang.shapes.undetermined import Difference, Groups, parameter_dims, undetermined_dims, undetermined_rows


def close(st: State) -> None:
    """Close everything. Afterwards every variable is solved."""
    rows.drain(st)
    close_rows(st)
    _check_support(st)
    close_dims(st)
    _report_conflicts(st)
    for constraint in st.constraints:
        if isinstance(constraint, OneNumber):
            _check_one_number(st, constraint)


# ---------------------------------------------------------------- rows


def close_rows(st: State) -> None:
    leaf_rows = _leaf_rows(st)
    told = False
    while True:
        open_rows = [i for i, n in st.rows.items() if n.solution is None]
        if not open_rows:
            return
        differences = _differences(st)
        most = _most(differences)
        leaves = _with_equals(_open_leaf_rows(st, leaf_rows), differences)
        chosen = {v: most[v] for v in open_rows if v in leaves and v in most}
        if not chosen:
            asked = _most(differences, asked=True)
            chosen = {v: asked[v] for v in open_rows if v in leaves and v in asked}
        if not chosen:
            if not told:
                told = True
                undetermined_rows(st, leaf_rows, differences, most)
            least = _least(st, differences, open_rows)
            free = [v for v in open_rows if v not in leaves]
            under = _under_leaves(differences, leaves)
            # what a parameter's input axes contract with does not wait for the parameter
            below_open = {
                d.low
                for d in differences
                if d.high and d.high != d.low and (d.same or not d.both or d.high not in leaves)
            }
            chosen = (
                {v: least[v] for v in free if v not in under}
                or {v: least[v] for v in free if v not in below_open}
                or {v: least[v] for v in free}
                or {v: least[v] for v in open_rows}
            )
        for var, rank in chosen.items():
            if st.rows[var].solution is None:
                rows.set_rank(st, var, max(rank, 0))
        rows.drain(st)


def _leaf_rows(st: State) -> list[tuple[Leaf, RowKind, int]]:
    return [
        (leaf, kind, row.var.id) for leaf in st.leaves for kind in ROW_KINDS for row in (leaf.shape.row(kind),) if row.var
    ]  # fmt: skip


def _open_leaf_rows(st: State, leaf_rows: list[tuple[Leaf, RowKind, int]]) -> list[int]:
    found = (open_row(st, leaf.shape.row(kind))[1] for leaf, kind, _ in leaf_rows)
    return list(dict.fromkeys(v for v in found if v))


def _with_equals(leaves: list[int], differences: list[Difference]) -> set[int]:
    """The row variables of leaves, and those that an equation ties to them."""
    groups = Groups()
    for d in differences:
        if d.same and d.high and d.low:
            groups.join(d.high, d.low)
    tied = {groups.of(v) for v in leaves}
    return set(leaves) | {v for d in differences for v in (d.high, d.low) if v and groups.of(v) in tied}


def _differences(st: State) -> list[Difference]:
    out: list[Difference] = []
    for pending in st.pending.values():
        if isinstance(pending, RowPending):
            a, b = pending.a, pending.b
            out.append(
                Difference(
                    a[1],
                    len(a[0]) + len(a[2]),
                    b[1],
                    len(b[0]) + len(b[2]),
                    pending.relation != "le",
                    pending.relation == "eq",
                )
            )
    return out


def _most(differences: list[Difference], *, asked: bool = False) -> dict[int, int]:
    """The greatest numbers of axes that are allowed; without those that nothing limits.

    `asked`: a row that has some axes already and may have more limits what broadcasts to it to those that it has.
    """
    most: dict[int, int] = {0: 0}
    by_high: dict[int, list[tuple[int, int]]] = {}
    for d in differences:
        by_high.setdefault(d.high, []).append((d.low, d.have - d.need))
        if d.both:
            by_high.setdefault(d.low, []).append((d.high, d.need - d.have))
    queue = [0]
    for d in differences if asked else ():
        if d.low and d.high and d.have > d.need and d.have - d.need < most.get(d.low, d.have + 1):
            most[d.low] = d.have - d.need
            queue.append(d.low)
    while queue:
        nearer: list[int] = []
        for high in queue:
            for low, extra in by_high.get(high, ()):
                limit = max(most[high] + extra, 0)
                if low and (low not in most or limit < most[low]):
                    most[low] = limit
                    nearer.append(low)
        queue = list(dict.fromkeys(nearer))
    return most


def _least(st: State, differences: list[Difference], open_rows: list[int]) -> dict[int, int]:
    """The smallest numbers of axes that satisfy everything."""
    least = dict.fromkeys(open_rows, 0)
    least[0] = 0
    by_low: dict[int, list[tuple[int, int]]] = {}
    for d in differences:
        by_low.setdefault(d.low, []).append((d.high, d.need - d.have))
        if d.both:
            by_low.setdefault(d.high, []).append((d.low, d.have - d.need))
    queue = list(by_low)
    rounds = 0
    while queue and rounds < 2 * len(least) + 2:
        rounds += 1
        raised: list[int] = []
        for low in queue:
            for high, extra in by_low.get(low, ()):
                if high and least.get(low, 0) + extra > least.get(high, 0) and least.get(high, 0) < 64:
                    least[high] = least.get(low, 0) + extra
                    raised.append(high)
        queue = list(dict.fromkeys(raised))
    return least


def _under_leaves(differences: list[Difference], leaves: set[int]) -> set[int]:
    """The row variables that an open leaf broadcasts to."""
    by_low: dict[int, list[int]] = {}
    for d in differences:
        by_low.setdefault(d.low, []).append(d.high)
        if d.both:
            by_low.setdefault(d.high, []).append(d.low)
    seen = set(leaves)
    queue = list(leaves)
    while queue:
        for high in by_low.get(queue.pop(), ()):
            if high and high not in seen:
                seen.add(high)
                queue.append(high)
    return seen


def _check_support(st: State) -> None:
    """A computed tensor has no more axes than its operands: E0402, E0405 for an equation that asked for more."""
    leaves = {row.var.id for leaf in st.leaves for kind in ROW_KINDS for row in (leaf.shape.row(kind),) if row.var}
    definitions: dict[int, list[RowLe]] = {}
    for c in st.constraints:
        if isinstance(c, RowLe) and not is_contraction(c) and c.origin.form in ("pointwise", "product", "transpose"):
            if c.sub.var is not None and not c.sub.lead and not c.sub.trail and c.sub.var.id not in leaves:
                definitions.setdefault(c.sub.var.id, []).append(c)
    for var, group in definitions.items():
        lead, _, trail = open_row(st, group[0].sub)
        has = max(len(a[0]) + len(a[2]) for a in (open_row(st, c.sup) for c in group))
        asked = len(lead) + len(trail)
        if asked <= has:
            continue
        id, cause, bad = var, None, False
        while id:
            node = st.rows[id]
            bad = bad or node.bad
            if node.cause is not None and not (isinstance(node.cause, RowLe) and not is_contraction(node.cause)):
                cause = node.cause
            id = node.solution[1] if node.solution else 0
        cause = cause or _equation_of(st, var)
        if cause is not None and not bad:
            explain.unsupported(st, cause, group[0], has, asked)
            for dim in lead + trail:
                dims.poison(st, dim)


def _equation_of(st: State, var: int) -> RowEq | None:
    """An equation about this very row."""
    for c in st.constraints:
        if isinstance(c, RowEq):
            for row in (c.a, c.b):
                if row.var is not None and not row.lead and not row.trail and alias(st, row.var.id) == alias(st, var):
                    return c
    return None


# ---------------------------------------------------------------- sizes


def close_dims(st: State) -> None:
    told = False
    while True:
        open_dims = [n for n in st.dims.values() if not n.parent and n.value is None]
        if not open_dims:
            return
        leaves = _leaf_dims(st)
        if not (_close_flexible(st, open_dims, waiting=False) or _close_asked(st, open_dims, leaves)):
            if not (_close_flexible(st, open_dims, waiting=True) or _close_parts(st)):
                if not told:
                    told = True
                    undetermined_dims(st, open_dims)
                _close_rest(st, open_dims)
        rows.drain(st)


def _leaf_dims(st: State) -> set[int]:
    return {
        node_of(st, dim).var.id
        for leaf in st.leaves
        for kind in ROW_KINDS
        for row in (open_row(st, leaf.shape.row(kind)),)
        for dim in row[0] + row[2]
        if isinstance(dim, DimVar)
    }


def _close_flexible(st: State, open_dims: list[DimNode], *, waiting: bool) -> bool:
    minimum = _minimums(st)
    chosen = [n for n in open_dims if n.flexible and (waiting or not _arithmetic(st, n))]
    for node in chosen:
        if node.value is None:
            _to_one(st, node, minimum)
    return bool(chosen)


def _to_one(st: State, node: DimNode, minimum: dict[int, int]) -> None:
    least = minimum.get(node.var.id, 0)
    if least > 1:
        dims.settle(st, node, least, "default")
    else:
        dims.stretch(st, node, Stretch())


def _arithmetic(st: State, node: DimNode) -> bool:
    return any(
        isinstance(p, DimPending) and not isinstance(p.constraint, AtLeast)
        for p in (st.pending.get(i) for i in node.waiting)
    )  # fmt: skip


def _minimums(st: State) -> dict[int, int]:
    out: dict[int, int] = {}
    for p in st.pending.values():
        if isinstance(p, DimPending) and isinstance(p.constraint, AtLeast) and isinstance(p.constraint.axis, DimVar):
            id = node_of(st, p.constraint.axis).var.id
            out[id] = max(out.get(id, 0), p.constraint.minimum)
    return out


def _close_asked(st: State, open_dims: list[DimNode], leaves: set[int]) -> bool:
    """Leaves (if any is asked; else all others) become what is asked of them, directly or through what they broadcast to."""
    asked: dict[int, dict[Key, Ask]] = {n.var.id: {} for n in open_dims}
    queue: list[DimNode] = []
    for node in open_dims:
        for key, ask in node.asks.items():
            if len(asked[node.var.id]) < 2:
                asked[node.var.id][key] = ask
        if asked[node.var.id]:
            queue.append(node)
    while queue:
        reached: dict[int, DimNode] = {}
        for node in queue:
            if node.flexible:
                continue
            for other, _, _ in node.sups:
                sup = find(st, other)
                if sup.value is not None:
                    continue
                mine = asked[sup.var.id]
                for key, ask in asked[node.var.id].items():
                    if key not in mine and len(mine) < 2:
                        mine[key] = ask
                        reached[sup.var.id] = sup
        queue = list(reached.values())
    ready = [n for n in open_dims if asked[n.var.id] and not n.flexible]
    chosen = [n for n in ready if n.var.id in leaves] or ready
    for node in chosen:
        wants = list(asked[node.var.id].items())
        if node.value is not None:
            continue
        if len(wants) == 1:
            (value, basis), _ = wants[0]
            dims.settle(st, node, value, basis)
        else:
            dims.stretch(st, node, Stretch(wants[0][1], wants[1][1]))
    return bool(chosen)


def _close_parts(st: State) -> bool:
    """Parts of concatenations: 0 where the others cover the axis, else what is left in equal shares, or all for the first."""
    chosen: dict[int, tuple[DimNode, int]] = {}
    for p in list(st.pending.values()):
        if not isinstance(p, DimPending) or not isinstance(p.constraint, Concat):
            continue
        c = p.constraint
        given = [k.value for k in (known(st, d) for d in c.parts) if k is not None]
        missing = [node_of(st, d) for d in c.parts if isinstance(d, DimVar) and known(st, d) is None]
        if not missing or any(_is_parameter_size(st, n) for n in missing):
            continue
        axis = known(st, c.axis)
        if axis is None:
            shares: list[int] = [0 if any(v != 0 for v in given) else 1] * len(missing)
        elif isinstance(axis.value, int) and all(isinstance(v, int) for v in given):
            left = axis.value - sum(v for v in given if isinstance(v, int))
            whole, rest = divmod(max(left, 0), len(missing))
            shares = [whole] * len(missing) if not rest else [left] + [0] * (len(missing) - 1)
        else:
            continue
        for node, share in zip(missing, shares):
            before = chosen.get(node.var.id)
            if before is None or share > before[1]:
                chosen[node.var.id] = (node, share)
    for node, share in chosen.values():
        if node.value is None:
            dims.settle(st, node, share, "default")
    return bool(chosen)


def _is_parameter_size(st: State, node: DimNode) -> bool:
    return any(node is n for n, _, _ in parameter_dims(st))


def _close_rest(st: State, open_dims: list[DimNode]) -> None:
    """What is still open becomes 1: windows first, so that what they are laid over follows from them."""
    minimum = _minimums(st)
    windows = [
        p.constraint for p in st.pending.values() if isinstance(p, DimPending) and isinstance(p.constraint, Window)
    ]
    kernels = [node_of(st, w.kernel) for w in windows if isinstance(w.kernel, DimVar) and not w.padded]
    strided = [
        node_of(st, p.constraint.out)
        for p in st.pending.values()
        if isinstance(p, DimPending)
        and isinstance(p.constraint, (Window, Strided))
        and isinstance(p.constraint.out, DimVar)
    ]
    axes = {
        node_of(st, p.constraint.axis).var.id
        for p in st.pending.values()
        if isinstance(p, DimPending)
        and isinstance(p.constraint, (Window, Strided, Concat))
        and isinstance(p.constraint.axis, DimVar)
    }
    free = [n for n in open_dims if n.var.id not in axes]
    chosen = [n for n in kernels if n.value is None] or [n for n in strided if n.value is None] or free or open_dims
    for node in chosen:
        if node.value is None:
            _to_one(st, node, minimum)


def _report_conflicts(st: State) -> None:
    """A parameter that is asked for different sizes: a 1 would hide a mistake."""
    told: list[Stretch] = []
    for node, leaf, _ in parameter_dims(st):
        why = node.stretch
        if why is not None and why.first is not None and why.second is not None and not node.bad and why not in told:
            told.append(why)
            explain.conflict(st, leaf.name, leaf.origin.span, why.first, why.second)
            node.bad = True


def _check_one_number(st: State, c: OneNumber) -> None:
    values: list[SizeValue] = []
    for kind in ROW_KINDS:
        lead, var, trail = open_row(st, c.shape.row(kind))
        for dim in lead + trail:
            size = known(st, dim)
            if size is None or (isinstance(dim, DimVar) and node_of(st, dim).bad):
                return
            values.append(size.value)
        if var and st.rows[var].bad:
            return
    if product(values) != 1:
        explain.one_number(st, c)
