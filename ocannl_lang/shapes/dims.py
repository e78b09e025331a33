"""Relations between single sizes: equations, inequalities, and arithmetic.

`a ⊑ b`: b is a broadcasting 1, or both are the same size. So a known `b` fixes `a`, and a known `a` *asks* something of `b`: at
closing `b` becomes what is asked of it, or a broadcasting 1 if it is asked for different sizes.
"""

from __future__ import annotations

from collections.abc import Callable

from ocannl_lang.shapes import explain
from ocannl_lang.shapes.sizes import Number, SizeValue, Sym, add, apply, divide, floordiv, has_calls, mul, product, sub
from ocannl_lang.shapes.state import (
    Arithmetic,
    Ask,
    DimNode,
    DimPending,
    Edge,
    Known,
    State,
    Stretch,
    find,
    is_bad,
    known,
    node_of,
    open_row,
    size_value,
    wait,
)
from ocannl_lang.shapes.terms import (
    AtLeast,
    Concat,
    Constraint,
    Dim,
    DimVar,
    RowProduct,
    Size,
    SizeIs,
    SizeOp,
    SizeTerm,
    Strided,
    Window,
)


def equal(st: State, a: Dim, b: Dim, constraint: Constraint) -> None:
    """The sizes are the same."""
    st.steps += 1
    st.links.append((a, b, constraint))
    if isinstance(a, Size):
        if isinstance(b, Size):
            if size_value(st, a) != size_value(st, b) or a.basis != b.basis:
                explain.sizes(st, constraint, a, b)
        else:
            _fix(st, b, Known(size_value(st, a), a.basis), False, constraint, a, flipped=True)
    elif isinstance(b, Size):
        _fix(st, a, Known(size_value(st, b), b.basis), False, constraint, b)
    else:
        _merge(st, a, b, constraint)


def below(st: State, a: Dim, b: Dim, constraint: Constraint, exact: bool) -> None:
    """`a ⊑ b`. `exact`: the axes are contracted, and a broadcasting 1 does not stretch."""
    st.steps += 1
    st.links.append((a, b, constraint))
    if isinstance(b, Size):
        if isinstance(a, Size):
            if size_value(st, a) != size_value(st, b) or a.basis != b.basis:
                explain.sizes(st, constraint, a, b)
        else:
            _fix(st, a, Known(size_value(st, b), b.basis), False, constraint, b)
        return
    sup = node_of(st, b)
    if isinstance(a, Size):
        if sup.value is None:
            sup.asks.setdefault((size_value(st, a), a.basis), Ask(a, constraint))
        elif sup.stretch is None or (exact and size_value(st, a) != 1):
            _compare(st, a, b, constraint)
        return
    node = node_of(st, a)
    if node is sup:
        return
    if sup.value is not None:
        _known_above(st, node, sup, (sup.var.id, exact, constraint), a, b)
    elif node.value is None:
        node.sups.append((sup.var.id, exact, constraint))
        sup.subs.append((node.var.id, exact, constraint))
    else:
        _known_below(st, node, sup, constraint)


def _known_above(st: State, node: DimNode, sup: DimNode, edge: Edge, a: Dim, b: Dim) -> None:
    assert sup.value is not None
    _, exact, constraint = edge
    if sup.stretch is None:
        _fix(st, node.var, Known(sup.value, sup.basis), sup.bad, constraint, b, shown=a)
    elif exact and node.value is None:
        stretch(st, node, sup.stretch)
    elif exact and node.value != 1:
        _compare(st, a, b, constraint)


def _known_below(st: State, node: DimNode, sup: DimNode, constraint: Constraint) -> None:
    assert node.value is not None
    if node.stretch is not None:
        stretch(st, sup, node.stretch)
        return
    if node.bad:
        sup.bad = sup.bad or not sup.asks
        return
    sup.asks.setdefault((node.value, node.basis), Ask(node.var, constraint))


def _fix(
    st: State, var: DimVar, to: Known, bad: bool, constraint: Constraint, source: Dim, flipped: bool = False, shown: Dim | None = None
) -> None:  # fmt: skip
    """`var` has the size `to`, which comes from `source`."""
    node = node_of(st, var)
    if node.value is None:
        settle(st, node, to.value, to.basis, bad)
        return
    if node.value == to.value and (node.basis == to.basis or node.stretch is not None):
        return
    if node.bad or bad:
        return
    mine = shown or var
    explain.sizes(st, constraint, *((source, mine) if flipped else (mine, source)))
    node.bad = True


def _compare(st: State, a: Dim, b: Dim, constraint: Constraint) -> None:
    ka, kb = known(st, a), known(st, b)
    assert ka is not None and kb is not None
    if ka.value == kb.value and (ka.basis == kb.basis or ka.stretches or kb.stretches):
        return
    if is_bad(st, a) or is_bad(st, b):
        return
    explain.sizes(st, constraint, a, b)
    poison(st, a)
    poison(st, b)


def poison(st: State, dim: Dim) -> None:
    """An error about this size has been reported; what follows from it is not."""
    if isinstance(dim, DimVar):
        node_of(st, dim).bad = True


def settle(st: State, node: DimNode, value: SizeValue, basis: str, bad: bool = False) -> None:
    """The class of `node` has this size."""
    node.value = value
    node.basis = basis
    node.bad = node.bad or bad
    st.work.append(-node.var.id)


def stretch(st: State, node: DimNode, why: Stretch) -> None:
    """The class of `node` is a broadcasting 1."""
    if node.value is None:
        node.stretch = why
        settle(st, node, 1, "default")
    elif node.value != 1 and not node.bad:
        explain.stretched(st, node, why)
        node.bad = True


def _merge(st: State, a: DimVar, b: DimVar, constraint: Constraint) -> None:
    na, nb = node_of(st, a), node_of(st, b)
    if na is nb:
        return
    if na.value is not None and nb.value is not None:
        _compare(st, a, b, constraint)
    elif na.value is not None or nb.value is not None:
        solved, other = (na, nb) if na.value is not None else (nb, na)
        assert solved.value is not None
        if solved.stretch is None:
            settle(st, other, solved.value, solved.basis, solved.bad)
        else:
            stretch(st, other, solved.stretch)
        return  # equal for good; nothing is gained by one class
    else:
        if na.weight < nb.weight:
            na, nb = nb, na
        nb.parent = na.var.id
        na.weight += nb.weight
        na.flexible = na.flexible or nb.flexible
        na.bad = na.bad or nb.bad
        for key, ask in nb.asks.items():
            na.asks.setdefault(key, ask)
        na.sups += nb.sups
        na.subs += nb.subs
        na.waiting += nb.waiting
        nb.asks, nb.sups, nb.subs, nb.waiting = {}, [], [], []


def spread(st: State, id: int) -> None:
    """Tell the neighbours of a size that has become known."""
    node = find(st, id)
    assert node.value is not None
    asks, sups, subs, waiting = node.asks, node.sups, node.subs, node.waiting
    node.asks, node.sups, node.subs, node.waiting = {}, [], [], []
    if node.stretch is None:
        for (value, basis), ask in asks.items():
            if (value != node.value or basis != node.basis) and not node.bad:
                explain.sizes(st, ask.constraint, ask.dim, node.var)
                node.bad = True
    for other, exact, constraint in sups:
        st.steps += 1
        sup = find(st, other)
        if sup is node:
            continue
        if sup.value is None:
            _known_below(st, node, sup, constraint)
        elif sup.stretch is None or (exact and node.value != 1):
            _compare(st, node.var, sup.var, constraint)
    for other, exact, constraint in subs:
        st.steps += 1
        sub_node = find(st, other)
        if sub_node is not node:
            _known_above(st, sub_node, node, (id, exact, constraint), sub_node.var, node.var)
    for pending in waiting:
        if pending in st.pending:
            st.work.append(pending)


# ---------------------------------------------------------------- arithmetic


def arithmetic(st: State, constraint: Arithmetic) -> None:
    """A constraint between sizes, as far as they are known; it waits for what is not."""
    st.steps += 1
    missing = [d for d in dims_of(st, constraint) if isinstance(d, DimVar) and known(st, d) is None]
    if _work_out(st, constraint, missing) or not missing:
        if not (missing and isinstance(constraint, SizeIs) and _rows_open(st, constraint.term)):
            return
    wait(st, DimPending(constraint), missing, _open_rows(st, constraint))


def dims_of(st: State, constraint: Arithmetic) -> list[Dim]:
    match constraint:
        case Window():
            return [constraint.axis, constraint.out, constraint.kernel] if not constraint.padded else [
                constraint.axis, constraint.out,
            ]  # fmt: skip
        case Strided():
            return [constraint.axis, constraint.out]
        case Concat():
            return [constraint.axis, *constraint.parts]
        case AtLeast():
            return [constraint.axis]
        case SizeIs():
            return [constraint.dim, *term_dims(st, constraint.term)]


def term_dims(st: State, term: SizeTerm) -> list[Dim]:
    match term:
        case Size() | DimVar():
            return [term]
        case RowProduct(row=row):
            lead, _, trail = open_row(st, row)
            return [*lead, *trail]
        case SizeOp(args=args):
            return [d for arg in args for d in term_dims(st, arg)]
        case _:
            return []


def _open_rows(st: State, constraint: Arithmetic) -> tuple[int, ...]:
    return _term_rows(st, constraint.term) if isinstance(constraint, SizeIs) else ()


def _term_rows(st: State, term: SizeTerm) -> tuple[int, ...]:
    match term:
        case RowProduct(row=row):
            var = open_row(st, row)[1]
            return (var,) if var else ()
        case SizeOp(args=args):
            return tuple(r for arg in args for r in _term_rows(st, arg))
        case _:
            return ()


def _rows_open(st: State, term: SizeTerm) -> bool:
    return bool(_term_rows(st, term))


def evaluate(st: State, term: SizeTerm) -> Number | None:
    """The number, or None while a size in it is not known. Raises `ArithmeticError` or `ValueError` where it has none."""
    match term:
        case int() | float():
            return term
        case Size() | DimVar():
            size = known(st, term)
            return None if size is None else size.value
        case RowProduct(row=row):
            lead, var, trail = open_row(st, row)
            sizes = [known(st, d) for d in lead + trail]
            values = [s.value for s in sizes if s is not None]
            return product(values) if not var and len(values) == len(sizes) else None
        case SizeOp(op=op, args=args):
            numbers = [evaluate(st, a) for a in args]
            present = [n for n in numbers if n is not None]
            return apply(op, present) if len(present) == len(numbers) else None


def _work_out(st: State, constraint: Arithmetic, missing: list[DimVar]) -> bool:
    """Solve for the one size that is missing, or check; whether the constraint is done with."""
    if any(is_bad(st, d) for d in dims_of(st, constraint)):
        for d in missing:
            poison(st, d)
        return not missing
    match constraint:
        case Window():
            return _window(st, constraint, missing)
        case Strided():
            return _strided(st, constraint, missing)
        case Concat():
            return _concat(st, constraint, missing)
        case AtLeast():
            size = known(st, constraint.axis)
            if size is not None and isinstance(size.value, int) and size.value < constraint.minimum:
                explain.out_of_range(st, constraint, size.value)
                poison(st, constraint.axis)
            return size is not None
        case SizeIs():
            return _size_is(st, constraint)


def _value(st: State, dim: Dim) -> SizeValue | None:
    size = known(st, dim)
    return None if size is None else size.value


def _basis(st: State, dim: Dim) -> str:
    size = known(st, dim)
    return "default" if size is None else size.basis


def derive(st: State, dim: Dim, value: Number, basis: str, constraint: Arithmetic, sources: tuple[Dim, ...]) -> None:
    """The open `dim` has the size that arithmetic gives it."""
    assert isinstance(dim, DimVar) and isinstance(value, (int, Sym))
    st.links.extend((dim, source, constraint) for source in sources)
    node = node_of(st, dim)
    if node.value is None:
        settle(st, node, value, basis)


def _window(st: State, w: Window, missing: list[DimVar]) -> bool:
    axis, out, kernel = _value(st, w.axis), _value(st, w.out), _value(st, w.kernel)
    if w.padded:
        return _multiple(st, w, w.axis, w.stride, w.out)
    if len(missing) > 1 or len({m.id for m in missing}) < len(missing):
        return False
    if axis is not None and out is not None and kernel is not None:
        want = window_size(w, out, kernel)
        if axis != want and not has_calls(sub(axis, want)):
            explain.window(st, w, axis, kernel)
            poison(st, w.axis)
    elif out is not None and kernel is not None:
        derive(st, w.axis, window_size(w, out, kernel), _basis(st, w.out), w, (w.out, w.kernel))
    elif axis is not None and kernel is not None:
        room = sub(axis, add(mul(w.dilation, sub(kernel, 1)), 1))
        _quotient(st, w, room, w.stride, 1, w.out, _basis(st, w.axis), (w.axis, w.kernel))
    elif axis is not None and out is not None:
        room = sub(axis, add(mul(w.stride, sub(out, 1)), 1))
        _quotient(st, w, room, w.dilation, 1, w.kernel, "default", (w.axis, w.out))
    return True


def window_size(w: Window, out: SizeValue, kernel: SizeValue) -> Number:
    """The size of an axis that is read at stride·o + dilation·k without padding."""
    return add(add(mul(w.stride, sub(out, 1)), mul(w.dilation, sub(kernel, 1))), 1)


def _quotient(
    st: State, w: Window | Strided, room: Number, step: int, extra: int, target: Dim, basis: str, sources: tuple[Dim, ...]
) -> None:  # fmt: skip
    fits = not isinstance(room, int) or (room >= 0 and room % step == 0)
    if fits:
        derive(st, target, add(floordiv(room, step), extra), basis, w, sources)
        return
    explain.window(st, w, _value(st, w.axis), _value(st, w.kernel) if isinstance(w, Window) else None)
    poison(st, w.axis)
    poison(st, target)


def _multiple(st: State, w: Window | Strided, axis: Dim, step: int, out: Dim) -> bool:
    """size(axis) = step · size(out)."""
    va, vo = _value(st, axis), _value(st, out)
    if vo is not None:
        want = mul(step, vo)
        if va is None:
            derive(st, axis, want, _basis(st, out), w, (out,))
        elif va != want and not has_calls(sub(va, want)):
            explain.window(st, w, va, None)
            poison(st, axis)
        return True
    if va is None:
        return False
    _quotient(st, w, va, step, 0, out, _basis(st, axis), (axis,))
    return True


def _strided(st: State, s: Strided, missing: list[DimVar]) -> bool:
    return _multiple(st, s, s.axis, s.stride, s.out)


def _concat(st: State, c: Concat, missing: list[DimVar]) -> bool:
    if len(missing) > 1:
        return False
    bases = [b for b in dict.fromkeys(_basis(st, p) for p in c.parts) if b != "default"]
    if len(bases) > 1:
        explain.concat_bases(st, c, bases)
        for d in (c.axis, *c.parts):
            poison(st, d)
        return True
    basis = bases[0] if bases else "default"
    parts = [_value(st, p) for p in c.parts]
    given = [p for p in parts if p is not None]
    covered = _sum(given)
    axis = _value(st, c.axis)
    if axis is None:
        derive(st, c.axis, covered, basis, c, c.parts)
        return len(given) == len(parts)
    open_parts = [p for p, v in zip(c.parts, parts) if v is None]
    left = sub(axis, covered)
    if not open_parts:
        if left != 0:
            explain.concat(st, c, axis, covered)
            poison(st, c.axis)
        elif bases and _basis(st, c.axis) not in (basis, "default"):
            explain.concat_bases(st, c, [basis, _basis(st, c.axis)])
            poison(st, c.axis)
        return True
    if isinstance(left, int) and left < 0:
        explain.concat(st, c, axis, covered)
        poison(st, c.axis)
        poison(st, open_parts[0])
        return True
    derive(st, open_parts[0], left, _basis(st, c.axis), c, (c.axis,))
    return True


def _sum(values: list[SizeValue]) -> Number:
    total: Number = 0
    for value in values:
        total = add(total, value)
    return total


def _size_is(st: State, s: SizeIs) -> bool:
    try:
        value = evaluate(st, s.term)
    except (ArithmeticError, ValueError):
        explain.no_size(st, s, None)
        poison(st, s.dim)
        return True
    if value is not None:
        whole = as_size(value)
        if whole is None:
            explain.no_size(st, s, value)
            poison(st, s.dim)
            return True
        size = known(st, s.dim)
        sources = tuple(term_dims(st, s.term))
        if size is None:
            derive(st, s.dim, whole, "default", s, sources)
        elif size.value != whole and not has_calls(sub(size.value, whole)):
            explain.size_is(st, s, size.value, whole)
            poison(st, s.dim)
        return True
    size = known(st, s.dim)
    return size is not None and _invert(st, s, s.term, size.value)


def as_size(value: Number) -> SizeValue | None:
    """`value` as a size, or None if it is negative or not whole."""
    if isinstance(value, float):
        value = int(value) if value.is_integer() else -1
    return value if isinstance(value, Sym) or value >= 0 else None


def _invert(st: State, s: SizeIs, term: SizeTerm, target: Number) -> bool:
    """Find the one open size in `term` from the value of the whole; whether that was possible."""
    match term:
        case DimVar():
            whole = as_size(target)
            if whole is None:
                explain.no_size(st, s, target)
                poison(st, term)
            else:
                derive(st, term, whole, "default", s, (s.dim,))
            return True
        case RowProduct(row=row):
            lead, var, trail = open_row(st, row)
            missing = [d for d in lead + trail if known(st, d) is None]
            if var or len(missing) != 1:
                return False
            rest = product([k.value for k in (known(st, d) for d in lead + trail) if k is not None])
            return _invert_product(st, s, missing[0], rest, target)
        case SizeOp(op="*", args=(a, b)):
            left, right = evaluate(st, a), evaluate(st, b)
            if left is None and right is None:
                return False
            return _invert_product(st, s, *((a, right) if left is None else (b, left)), target)  # type: ignore[misc]
        case SizeOp(op=op, args=args):
            solve = _INVERSES.get((op, tuple(evaluate(st, a) is None for a in args)))
            if solve is None:
                return False
            numbers = [evaluate(st, a) for a in args]
            inner = next(a for a, n in zip(args, numbers) if n is None)
            others = [n for n in numbers if n is not None]
            return _invert(st, s, inner, solve(target, *others))
        case _:
            return False


_INVERSES: dict[tuple[str, tuple[bool, ...]], Callable[..., Number]] = {
    ("+", (True, False)): lambda t, b: sub(t, b),
    ("+", (False, True)): lambda t, a: sub(t, a),
    ("-", (True, False)): lambda t, b: add(t, b),
    ("-", (False, True)): lambda t, a: sub(a, t),
    ("neg", (True,)): lambda t: mul(-1, t),
    ("/", (True, False)): lambda t, b: mul(t, b),
}


def _invert_product(st: State, s: SizeIs, inner: SizeTerm, factor: Number, target: Number) -> bool:
    if factor == 0:
        return False
    quotient = divide(target, factor)
    if isinstance(target, Sym) or isinstance(factor, Sym):
        return not has_calls(quotient) and _invert(st, s, inner, quotient)
    if isinstance(target, int) and isinstance(factor, int) and target % factor == 0:
        quotient = target // factor
    return _invert(st, s, inner, quotient)
