"""Relations between rows: what they say about single axes, and about the axes that a row variable stands for.

An equation matches axes from both ends. In `a ⊑ b`, the lead of `b` meets the first axes of `a` and its trail the last ones; `a`
may have more in between. What cannot be decided yet waits on the row variables.
"""

from __future__ import annotations

from ocannl_lang.shapes import dims, explain
from ocannl_lang.shapes.state import (
    MAX_AXES,
    DimPending,
    Open,
    Relation,
    RowPending,
    State,
    alias,
    find,
    fresh_dims,
    is_contraction,
    node_of,
    resolve,
    row_node,
    wait,
)
from ocannl_lang.shapes.terms import Constraint, Dim, DimVar, Row, RowEq, RowLe, RowVar


def drain(st: State) -> None:
    """Do all work that is due."""
    while st.work:
        item = st.work.popleft()
        if item < 0:
            if find(st, -item).value is not None:
                dims.spread(st, -item)
            continue
        pending = st.pending.pop(item, None)
        match pending:
            case RowPending():
                relate(st, pending.relation, pending.a, pending.b, pending.constraint)
            case DimPending():
                dims.arithmetic(st, pending.constraint)
            case None:
                pass


def add(st: State, constraint: RowEq | RowLe) -> None:
    match constraint:
        case RowEq():
            relate(st, "eq", _enter(st, constraint.a), _enter(st, constraint.b), constraint)
        case RowLe():
            relation: Relation = "contract" if is_contraction(constraint) else "le"
            relate(st, relation, _enter(st, constraint.sub), _enter(st, constraint.sup), constraint)


def _enter(st: State, row: Row) -> Open:
    return (row.lead, row_node(st, row.var).var.id if row.var else 0, row.trail)


def relate(st: State, relation: Relation, a: Open, b: Open, constraint: RowEq | RowLe) -> None:
    st.steps += 1
    if relation == "eq":
        _equal(st, a, b, constraint)
    else:
        _below(st, relation, resolve(st, a), resolve(st, b), constraint)


# ---------------------------------------------------------------- equations


def _equal(st: State, a: Open, b: Open, constraint: RowEq | RowLe) -> None:
    bare_a = alias(st, a[1]) if a[1] and not a[0] and not a[2] else 0
    bare_b = alias(st, b[1]) if b[1] and not b[0] and not b[2] else 0
    if bare_a and bare_b:
        _same_variable(st, bare_a, bare_b, constraint)
        return
    a, b = resolve(st, a), resolve(st, b)
    if not bare_a or st.rows[bare_a].solution is not None or not _assign(st, bare_a, b, constraint):
        if not bare_b or st.rows[bare_b].solution is not None or not _assign(st, bare_b, a, constraint):
            unify(st, a, b, constraint)
    for bare, other in ((bare_a, b), (bare_b, a)):
        if bare:
            _least_lead(st, bare, resolve(st, other))


def _assign(st: State, var: int, row: Open, constraint: Constraint) -> bool:
    if row[1] == var:
        return False  # contains itself
    return solve(st, var, row, constraint)


def _same_variable(st: State, a: int, b: int, constraint: RowEq | RowLe) -> None:
    if a == b:
        return
    na, nb = st.rows[a], st.rows[b]
    if na.solution is None and nb.solution is None:
        if len(na.waiting) > len(nb.waiting):
            a, b = b, a
        solve(st, a, ((), b, ()), constraint)
        return
    if na.solution is None or nb.solution is None:
        free, other = (a, b) if na.solution is None else (b, a)
        expanded = resolve(st, ((), other, ()))
        if expanded[1] == free:
            unify(st, ((), free, ()), expanded, constraint)
        else:
            solve(st, free, ((), other, ()), constraint)
        return
    ra, rb = resolve(st, ((), a, ())), resolve(st, ((), b, ()))
    unify(st, ra, rb, constraint)
    _least_lead(st, a, resolve(st, rb))
    nb.solution = ((), a, ())


def _least_lead(st: State, bare: int, other: Open) -> None:
    """Where axes are inserted when equal rows disagree on it: the place further to the left, whatever came first."""
    lead, var, trail = resolve(st, ((), bare, ()))
    if var or other[1] or len(other[0]) >= len(lead):
        return
    place = len(other[0])
    axes = lead + trail
    st.rows[alias(st, bare)].solution = (axes[:place], 0, axes[place:])


def unify(st: State, a: Open, b: Open, constraint: RowEq | RowLe) -> None:
    """Two resolved rows are equal."""
    (la, va, ta), (lb, vb, tb) = a, b
    if not va and not vb:
        axes_a, axes_b = la + ta, lb + tb
        if len(axes_a) != len(axes_b):
            wrong_rank(st, constraint, a, b)
            return
        for x, y in zip(axes_a, axes_b):
            dims.equal(st, x, y, constraint)
        return
    if not va or not vb:
        flipped = not va
        (lead, var, trail), closed = (b, a) if flipped else (a, b)
        axes = closed[0] + closed[2]
        end = len(axes) - len(trail)
        if len(lead) > end:
            wrong_rank(st, constraint, a, b)
            return
        for x, y in [*zip(lead, axes), *zip(trail, axes[end:])]:
            dims.equal(st, *((y, x) if flipped else (x, y)), constraint)
        middle = axes[len(lead) : end]
        place = min(max(len(closed[0]) - len(lead), 0), len(middle))
        solve(st, var, (middle[:place], 0, middle[place:]), constraint)
        return
    front, back = min(len(la), len(lb)), min(len(ta), len(tb))
    for x, y in zip(la, lb):
        dims.equal(st, x, y, constraint)
    for x, y in zip(ta[len(ta) - back :], tb[len(tb) - back :]):
        dims.equal(st, x, y, constraint)
    la, lb = la[front:], lb[front:]
    ta, tb = ta[: len(ta) - back], tb[: len(tb) - back]
    if va == vb:
        if len(la) + len(ta) != len(lb) + len(tb):
            endless(st, va, constraint)
        elif la or ta or lb or tb:
            wait(st, RowPending("eq", (la, va, ta), (lb, vb, tb), constraint), rows=(va,))
    elif not lb and not tb:
        solve(st, vb, (la, va, ta), constraint)
    elif not la and not ta:
        solve(st, va, (lb, vb, tb), constraint)
    else:
        # one has further axes in front, the other behind: they may or may not overlap
        wait(st, RowPending("eq", (la, va, ta), (lb, vb, tb), constraint), rows=(va, vb))


def solve(st: State, var: int, row: Open, constraint: Constraint | None) -> bool:
    """The row variable is this row. Whoever waits for it is called."""
    node = st.rows[var]
    if row[1]:
        onward = st.rows[row[1]]
        depth = node.depth + len(row[0]) + len(row[2])
        if depth > MAX_AXES:
            endless(st, var, constraint)
            return True
        onward.depth = max(onward.depth, depth)
        onward.bad = onward.bad or node.bad
    node.solution = row
    node.cause = constraint
    st.work.extend(node.waiting)
    node.waiting = []
    return True


def endless(st: State, var: int, constraint: Constraint | None) -> None:
    """A row that contains itself: reported once, then taken to have no further axes."""
    node = st.rows[var]
    if not node.bad and constraint is not None:
        explain.endless(st, constraint)
    node.bad = True
    if node.solution is None:
        node.solution = ((), 0, ())
        st.work.extend(node.waiting)
        node.waiting = []


def wrong_rank(st: State, constraint: RowEq | RowLe, a: Open, b: Open) -> None:
    explain.ranks(st, constraint, a, b)
    for dim in (*a[0], *a[2], *b[0], *b[2]):
        if isinstance(dim, DimVar) and node_of(st, dim).value is None:
            node_of(st, dim).bad = True
    for var in (a[1], b[1]):
        if var:
            st.rows[var].bad = True


# ---------------------------------------------------------------- inequalities


def _below(st: State, relation: Relation, a: Open, b: Open, constraint: RowEq | RowLe) -> None:
    if relation == "contract" and bool(a[1]) != bool(b[1]):
        if not _close_by_rank(st, a, b, constraint):
            return
        a, b = resolve(st, a), resolve(st, b)
    (la, va, ta), (lb, vb, tb) = a, b
    have, need = len(la) + len(ta), len(lb) + len(tb)
    if va == vb and have < need:
        if va:
            endless(st, va, constraint)
        else:
            wrong_rank(st, constraint, a, b)
        return
    if not va and have < need:
        wrong_rank(st, constraint, a, b)
        return
    if not va and not vb and relation == "contract" and have != need:
        wrong_rank(st, constraint, a, b)
        return
    if va:
        # axes that `a` must still get: those of b's lead and trail that its own axes cannot be
        front, back = len(lb) - len(la), len(tb) - len(ta)
        more_front = max(front, 0) - max(-back, 0)
        more_back = max(back, 0) - max(-front, 0)
        if more_front > 0 or more_back > 0:
            var = st.rows[va].var
            inner = RowVar(var.purpose, var.origin)
            row_node(st, inner)
            st.rows[inner.id].bad = st.rows[va].bad
            lead, trail = fresh_dims(var, max(more_front, 0)), fresh_dims(var, max(more_back, 0))
            solve(st, va, (lead, inner.id, trail), constraint)
            la, va, ta = resolve(st, (la, va, ta))
    exact = relation == "contract"
    if not va:
        axes = la + ta
        end = len(axes) - len(tb)
        for x, y in [*zip(axes, lb), *zip(axes[end:], tb)]:
            dims.below(st, x, y, constraint, exact)
        if vb:
            place = min(max(len(la) - len(lb), 0), end - len(lb))
            middle = axes[len(lb) : end]
            _ask(st, vb, (middle[:place], 0, middle[place:]), constraint)
        return
    front, back = min(len(la), len(lb)), min(len(ta), len(tb))
    for x, y in [*zip(la, lb), *zip(ta[len(ta) - back :], tb[len(tb) - back :])]:
        dims.below(st, x, y, constraint, exact)
    la, lb = la[front:], lb[front:]
    ta, tb = ta[: len(ta) - back], tb[: len(tb) - back]
    if relation == "le" and not vb and not lb and not tb:
        return
    if va == vb and not (la or ta or lb or tb):
        return
    wait(st, RowPending(relation, (la, va, ta), (lb, vb, tb), constraint), rows=(va, vb) if va != vb else (va,))


def _ask(st: State, var: int, middle: Open, constraint: RowEq | RowLe) -> None:
    if not middle[0] and not middle[2]:
        solve(st, var, ((), 0, ()), None)
    else:
        wait(st, RowPending("le", middle, ((), var, ()), constraint), rows=(var,))


def _close_by_rank(st: State, a: Open, b: Open, constraint: RowEq | RowLe) -> bool:
    """One side of a contraction is closed: the other has as many axes."""
    closed, other = (b, a) if a[1] else (a, b)
    missing = len(closed[0]) + len(closed[2]) - len(other[0]) - len(other[2])
    if missing < 0:
        wrong_rank(st, constraint, a, b)
        return False
    solve(st, other[1], ((), 0, fresh_dims(st.rows[other[1]].var, missing)), constraint)
    return True


def set_rank(st: State, var: int, rank: int) -> None:
    """Close a row variable to `rank` further axes, as closing decides."""
    solve(st, var, ((), 0, fresh_dims(st.rows[var].var, rank)), None)


def axes_of(row: Open) -> tuple[Dim, ...]:
    return row[0] + row[2]
