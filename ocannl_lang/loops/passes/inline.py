"""Buffers that need not exist: what a pointwise assignment computes is computed where it is read.

A value moves into its readers if that repeats no work (each element is read once), or if it is so cheap that repeating it costs
less than storing it. It never moves into a sum whose loops would repeat something expensive, and expressions do not grow without
bound.
"""

from __future__ import annotations

from dataclasses import dataclass

from ocannl_lang.loops.facts import cost, kept, nodes, plain, pointwise, reads, target_vars, turns, writers
from ocannl_lang.loops.ir import (
    Access,
    Affine,
    Apply,
    Assign,
    Buffer,
    Const,
    Dynamic,
    Expr,
    Index,
    Position,
    Program,
    Var,
    accesses,
)
from ocannl_lang.loops.lower_expr import map_accesses, substitute, substitute_index, variables

# An expression that costs at most this is repeated rather than stored.
_CHEAP = 3
_MOST_NODES = 120
_MOST_ACCESSES = 16


@dataclass(frozen=True, slots=True)
class _Definition:
    """What a buffer holds at each position: `value` with `axes` as loop variables (None on axes of one position).

    `windows`: axes whose position several loops make up, as their digits; a reader's loop along such an axis becomes those loops.
    """

    axes: tuple[Var | None, ...]
    value: Expr
    windows: tuple[tuple[int, Affine], ...] = ()


def inline(program: Program) -> Program:
    """The program with what need not exist computed in place."""
    written = writers(program)
    outside = kept(program)
    readers: dict[Buffer, list[tuple[Assign, Access]]] = {}
    in_positions: set[Buffer] = set()
    for a in program.assigns:
        for r in reads(a):
            readers.setdefault(r.buffer, []).append((a, r))
        in_positions.update(_buffers_in_positions(a))
    definitions: dict[Buffer, _Definition] = {}
    # Readers whose loops become those of windows.
    split: set[Assign] = set()
    assigns: list[Assign] = []
    for i, a in enumerate(program.assigns):
        a = _rewritten(a, definitions)
        b = a.target.buffer
        assigns.append(a)
        if b.role != "temp" or b in outside or len(written[b]) != 1 or not pointwise(a) or a.accum in ("or", "and"):
            continue
        if not (a.fresh or a.accum == "set"):
            continue
        if any(written.get(x.buffer, [-1])[-1] >= i for x in accesses(a.value)):
            continue
        definition = _definition(a)
        if not _worth(definition, b, readers.get(b, []), b in in_positions):
            continue
        if definition.windows:
            ((reader, access), *others) = readers[b]
            if others or reader in split or not _follows_windows(definition, reader, access):
                continue
            split.add(reader)
        definitions[b] = definition
        assigns.pop()
    return Program(program.name, program.inputs, program.outputs, assigns, program.stores)


def _definition(a: Assign) -> _Definition:
    axes: list[Var | None] = []
    single = {v: Affine() for v in a.loops if v.size == 1}
    for index in a.target.index:
        assert isinstance(index, Affine)
        axes.append(index.terms[0][0] if len(index.terms) == 1 else None)
    windows = tuple((n, i) for n, i in enumerate(a.target.index) if isinstance(i, Affine) and len(i.terms) > 1)
    if isinstance(a.value, Const):
        windows = ()
    used = {*axes, *(v for _, i in windows for v, _ in i.terms)}
    unused = {v: at for v, at in single.items() if v not in used}
    value = map_accesses(a.value, lambda x: x, unused) if unused else a.value
    return _Definition(tuple(axes), value, windows)


def _buffers_in_positions(a: Assign) -> list[Buffer]:
    """What decides positions from data: it is read with the loops around it and must stay an int access or expression."""
    found: list[Buffer] = []
    for x in (*accesses(a.value), a.target):
        for index in x.index:
            if isinstance(index, Dynamic):
                found.extend(y.buffer for y in accesses(index.value))
    return found


# ---------------------------------------------------------------- whether


def _worth(d: _Definition, b: Buffer, readers: list[tuple[Assign, Access]], in_position: bool) -> bool:
    if not readers:
        return False
    if not all(_substitutable(d, r) for _, r in readers):
        return False
    if isinstance(d.value, (Const, Position)):
        return True
    if isinstance(d.value, Access):
        return _copy_moves(d, readers)
    found = accesses(d.value)
    if nodes(d.value) > _MOST_NODES or len({id(x) for x in found}) > _MOST_ACCESSES:
        return False
    price = cost(d.value)
    if _selects(d.value):
        return True
    repeated = sum(turns(a.loops) for a, _ in readers) / max(1, b.size)
    if len(readers) == 1 and repeated <= 1 and not _heavy(readers[0][0]):
        return True
    if any(_is_contraction(a, r) for a, r in readers):
        return False
    if in_position:
        return price <= _CHEAP
    # A small value that many turns read is cheap to store and to load.
    if repeated > len(readers) * 1.01:
        return price <= 1 and len(found) <= 1
    return price <= _CHEAP and len(found) <= 2


def _follows_windows(d: _Definition, a: Assign, r: Access) -> bool:
    """Whether a reader goes through all positions as well, so that its loops can be those of the windows."""
    if r.guarded or a.accum != "set" or not pointwise(a) or not plain(a.target) or not plain(r):
        return False
    made = {v for _, i in d.windows for v, _ in i.terms}
    along = {
        v
        for n, i in d.windows
        for v in a.loops
        if r.index[n] == Affine.of(v) and v.size == turns(w for w, _ in i.terms)
    }
    return len(along) == len(d.windows) and made.isdisjoint(a.loops)


def _heavy(a: Assign) -> bool:
    return nodes(a.value) > _MOST_NODES or len(accesses(a.value)) > _MOST_ACCESSES


def _copy_moves(d: _Definition, readers: list[tuple[Assign, Access]]) -> bool:
    """A copy is read through, unless it gathers: a gather into a sum that repeats it is better done once."""
    value = d.value
    assert isinstance(value, Access)
    if all(isinstance(i, Affine) for i in value.index):
        return True
    return len(readers) == 1 and not _is_contraction(*readers[0])


def _is_contraction(a: Assign, r: Access) -> bool:
    """Whether the loops of a sum read an element of `r` more than once."""
    own = target_vars(a)
    if all(v in own for v in a.loops):
        return False
    used: set[Var] = set()
    for i in r.index:
        used.update((v for v, _ in i.terms) if isinstance(i, Affine) else variables(i.value))
    return any(v not in used and v.size > 1 for v in a.loops)


def _selects(expr: Expr) -> bool:
    """A comparison of a position with data, as in a one-hot vector: its readers become gathers."""
    match expr:
        case Apply(fn="convert", args=(inner,)):
            return _selects(inner)
        case Apply(fn="eq", args=(a, b)):
            return any(_is_position(x) for x in (a, b))
        case _:
            return False


def _is_position(expr: Expr) -> bool:
    match expr:
        case Position():
            return True
        case Apply(fn="convert", args=(inner,)):
            return _is_position(inner)
        case _:
            return False


def _substitutable(d: _Definition, r: Access) -> bool:
    """Whether the definition can be read at the positions of `r`."""
    dynamic = {v for v, i in zip(d.axes, r.index, strict=True) if v is not None and isinstance(i, Dynamic)}
    if any(isinstance(i, Dynamic) for i in r.index) or r.guarded:
        # Only a copy hands its guard on.
        if not isinstance(d.value, Access) or d.value.guarded:
            return isinstance(d.value, Const) and d.value.value == r.fill
        return _plain_copy(d, r)
    return not dynamic


def _plain_copy(d: _Definition, r: Access) -> bool:
    """Whether the axes of a guarded read are, one for one and in full, axes of what is copied."""
    source = d.value
    assert isinstance(source, Access)
    seen: set[Var] = set()
    for index, size in zip(source.index, source.buffer.shape, strict=True):
        if not isinstance(index, Affine):
            return False
        if not index.terms:
            continue
        var, c = index.terms[0]
        if len(index.terms) != 1 or c != 1 or index.offset or var.size != size or var in seen:
            return False
        seen.add(var)
    # An axis of the copy that the source lacks must not be where the guard fails.
    for var, i in zip(d.axes, r.index, strict=True):
        if var is None or var not in seen:
            if not isinstance(i, Affine):
                return False
            low, high = i.bounds()
            if low < 0 or high >= (1 if var is None else var.size):
                return False
    return True


# ---------------------------------------------------------------- putting in


def _rewritten(a: Assign, definitions: dict[Buffer, _Definition]) -> Assign:
    if not definitions or not any(r.buffer in definitions for r in reads(a)):
        return a
    for r in reads(a):
        if (d := definitions.get(r.buffer)) is not None and d.windows:
            a = _along_windows(a, r, d)
    value = _substituted(a.value, definitions)
    index = tuple(i if isinstance(i, Affine) else Dynamic(_substituted(i.value, definitions)) for i in a.target.index)
    target = Access(a.target.buffer, index, a.target.guarded)
    return Assign(target, a.accum, a.fresh, a.loops, value, a.origin)


def _along_windows(a: Assign, r: Access, d: _Definition) -> Assign:
    """The same assignment with the loops of the windows of what it reads at `r`."""
    by: dict[Var, Affine] = {}
    for n, i in d.windows:
        at = r.index[n]
        assert isinstance(at, Affine)
        by[at.terms[0][0]] = i
    loops = tuple(w for v in a.loops for w in ((u for u, _ in by[v].terms) if v in by else (v,)))
    target = Access(a.target.buffer, tuple(substitute_index(i, by) for i in a.target.index), a.target.guarded)
    return Assign(target, a.accum, a.fresh, loops, substitute(a.value, by), a.origin)


def _substituted(expr: Expr, definitions: dict[Buffer, _Definition]) -> Expr:
    def change(access: Access) -> Expr:
        d = definitions.get(access.buffer)
        return access if d is None else _read(d, access)

    return map_accesses(expr, change, {})


def _read(d: _Definition, access: Access) -> Expr:
    """The definition at the positions of an access."""
    at: dict[Var, Index] = {v: i for v, i in zip(d.axes, access.index, strict=True) if v is not None}
    if isinstance(d.value, Const):
        return d.value
    if isinstance(d.value, Access) and (access.guarded or any(isinstance(i, Dynamic) for i in access.index)):
        source = d.value
        index = tuple(_moved(i, at) for i in source.index)
        return Access(source.buffer, index, True, access.fill)
    affine = {v: i for v, i in at.items() if isinstance(i, Affine)}
    return map_accesses(d.value, lambda x: x, affine)


def _moved(index: Index, at: dict[Var, Index]) -> Index:
    assert isinstance(index, Affine)
    return at[index.terms[0][0]] if index.terms else index
