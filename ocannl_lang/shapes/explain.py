"""The messages of shape inference: what clashes, where, and why each side is what it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ocannl_lang.diagnostics.model import Diagnostic, Edit, Fix, Label
from ocannl_lang.shapes.reasons import (
    best_name,
    chain,
    dim_text,
    is_standard,
    labels,
    quoted,
    row_word,
    size_label,
)
from ocannl_lang.shapes.sizes import Number, SizeValue, Sym, add, mul, owners_of, size_text
from ocannl_lang.shapes.state import (
    Ask,
    DimNode,
    Open,
    ShapeError,
    State,
    Step,
    Stretch,
    find,
    is_contraction,
    known,
    node_of,
    open_row,
    sides,
)
from ocannl_lang.shapes.terms import (
    EMPTY,
    ROW_KINDS,
    AtLeast,
    Concat,
    Constraint,
    Dim,
    DimVar,
    OneNumber,
    Origin,
    Row,
    RowEq,
    RowKind,
    RowLe,
    Shape,
    Side,
    Size,
    SizeIs,
    Strided,
    Window,
)
from ocannl_lang.source import Span

MAX_LABELS = 6
CONTRACTS = "the tensor product `*` contracts the input axes of its left side with the output axes of its right side"


def report(
    st: State, code: str, origin: Origin, message: str, label: str = "", places: list[Label] | None = None,
    notes: tuple[str, ...] = (), helps: tuple[str, ...] = (), fix: Fix | None = None,
) -> None:  # fmt: skip
    """Add an error at the outermost place of `origin`, with each further place once."""
    if origin.form in ("annotation", "result") and not origin.frames and code in ("E0401", "E0402", "E0403", "E0404"):
        code = "E0412"
    span = origin.outer
    kept: list[Label] = []
    seen = [span]
    inner = [
        Label(frame.span, f"in {quoted(before.callee)}, applied here")
        for before, frame in zip(origin.frames, origin.frames[1:])
        if not is_standard(frame.span)
    ]
    if origin.frames:
        inner.append(Label(origin.span, f"in {quoted(origin.frames[-1].callee)}, applied here"))
    for place in [*(places or []), *inner]:
        if place.span not in seen and len(kept) < MAX_LABELS:
            seen.append(place.span)
            kept.append(place)
    st.errors.append(ShapeError(code, origin, Diagnostic(code, message, span, label, tuple(kept), notes, helps, fix)))


# ---------------------------------------------------------------- sizes


def sizes(st: State, constraint: Constraint, a: Dim, b: Dim) -> None:
    """E0401, E0404: two known sizes that must agree do not."""
    side_a, side_b = sides(constraint)
    label = _label(constraint, a)
    if not label:
        label = _label(constraint, b)
        if label:  # what the label stands for was there first
            a, b, side_a, side_b = b, a, side_b, side_a
    ka, kb = known(st, a), known(st, b)
    assert ka is not None and kb is not None
    first, second = _teller(st, constraint, a, side_a), _teller(st, constraint, b, side_b)
    text_a, text_b = _pair(st, a, b)
    name_a, name_b = quoted(first.side.tensor), quoted(second.side.tensor)
    named = bool(name_a and name_b and name_a != name_b)
    if ka.value == kb.value and not ka.stretches and not kb.stretches:
        code, what = "E0404", f"units differ: `{ka.basis}` and `{kb.basis}`"
        what = f"{what} for {label}" if label else what
    elif label:
        code = "E0401"
        what = (
            f"{label} is {text_a} in {name_a}, but {text_b} in {name_b}"
            if named
            else f"{label} has two sizes: {text_a} and {text_b}"
        )
    else:
        code = "E0401"
        what = (
            f"sizes differ: {text_a} in {name_a}, {text_b} in {name_b}"
            if named
            else f"sizes differ: {text_a} and {text_b}"
        )
    axis_a, axis_b = _axis_text(st, first), _axis_text(st, second)
    notes: tuple[str, ...] = ()
    if (axis_a or axis_b) and named:
        notes = (
            f"{axis_a or first.side.row + ' size'} of {name_a} meets {axis_b or second.side.row + ' size'} of {name_b}",
        )
    symbol = constraint.origin.symbol
    short = f"{text_a} and {text_b} do not agree" + (f" in `{symbol}`" if symbol and len(symbol) < 12 else "")
    helps: tuple[str, ...] = ()
    if is_contraction(constraint):
        notes = (CONTRACTS,)
        helps = _weight_help(st, constraint, first, second, text_b)
    batch = _as_batch(st, constraint, first, second, text_a, text_b)
    if code == "E0401" and batch:
        helps = (batch,)
    if code == "E0401" and 1 in (ka.value, kb.value):
        helps = (*helps, "a written size of 1 does not stretch; leave the axis out to broadcast")
    report(
        st,
        code,
        constraint.origin,
        what,
        short,
        _both(
            _places(st, first, text_a, constraint.origin),
            _places(st, second, text_b, constraint.origin),
            second,
            text_b,
        ),
        notes,
        helps,
    )


def _weight_help(st: State, constraint: Constraint, weight: _Told, other: _Told, size: str) -> tuple[str, ...]:
    """How to change a parameter whose written input size does not fit what it is multiplied with."""
    span, name = weight.side.span, weight.side.tensor
    leaf = next((c for c in st.leaves if c.kind == "parameter" and c.origin.span == span), None)
    if constraint.origin.frames or leaf is None or other.side.row != "output" or weight.side.row != "input":
        return ()
    outputs = row_text(st, open_row(st, leaf.shape.output)) if leaf.shape.output.trail else "..."
    size = size.rsplit(" = ", 1)[0]
    return (f"give `{name}` the size {size}, or leave its input axes out: `{{{name}: [... -> {outputs}]}}`",)


def _pair(st: State, a: Dim, b: Dim) -> tuple[str, str]:
    """Two sizes as texts; unknowns of one name are told apart by whose they are."""
    text_a, text_b = dim_text(st, a), dim_text(st, b)
    if text_a == text_b:
        owners = [
            ", ".join(f"`{o}`" for o in owners_of(k.value)) for k in (known(st, a), known(st, b)) if k is not None
        ]
        if len(owners) == 2 and owners[0] != owners[1]:
            return f"{text_a} of {owners[0]}", f"{text_b} of {owners[1]}"
    return text_a, text_b


def _as_batch(st: State, constraint: Constraint, first: _Told, second: _Told, text_a: str, text_b: str) -> str:
    """What to write where a size that is a batch size elsewhere stands in the output row of an argument."""
    if constraint.origin.form != "pointwise":
        return ""
    for told, text in ((first, text_a), (second, text_b)):
        leaf = next((c for c in st.leaves if c.kind == "input" and c.origin.span == told.side.span), None)
        if leaf is None or told.side.row != "output" or leaf.shape.batch != EMPTY or len(leaf.shape.output.trail) != 1:
            continue
        size = known(st, told.dim)
        if size is not None and any(size == known(st, d) for c in st.leaves for d in c.shape.batch.trail):
            return f"if {text} is the batch size, `{leaf.name}` has it before `|`: `[{text} | …]`"
    return ""


def _label(constraint: Constraint, dim: Dim) -> str:
    """The name of a label of the notation that `constraint` belongs to, or of a `dim` that is named there."""
    name = best_name(dim)
    if not isinstance(dim, DimVar) or not name.startswith("label"):
        return name
    here, there = dim.origin.span, constraint.origin.span
    return name if here.source is there.source and there.start <= here.start and here.end <= there.end else ""


@dataclass(frozen=True, slots=True)
class _Told:
    """The side that tells of a size: its tensor, the size there, where it stands, and the chain from there on."""

    dim: Dim
    side: Side
    where: Constraint
    steps: list[Step]


def _teller(st: State, constraint: Constraint, dim: Dim, side: Side) -> _Told:
    """Go past the result of the operation itself (and its labels) to the operand that gave it the size."""
    steps = chain(st, dim)
    where = constraint
    while steps:
        step = steps[0]
        same = (
            step.constraint.origin.span == constraint.origin.span
            and step.constraint.origin.form == constraint.origin.form
            and step.constraint.origin.frames == constraint.origin.frames
        )
        if (
            not same
            or (not step.far_side.tensor and constraint.origin.form == "slots")
            or isinstance(step.constraint, (Window, Strided, Concat, SizeIs, AtLeast))
        ):
            break
        dim, side, where = step.far, step.far_side, step.constraint
        steps = steps[1:]
    return _Told(dim, side, where, steps)


def _places(st: State, told: _Told, text: str, at: Origin) -> list[Label]:
    if told.steps:
        return labels(st, told.steps, text, at)
    if isinstance(told.dim, Size) and told.dim.why is not None:
        return [size_label(st, told.dim, told.side, told.dim.why.span)]
    if told.side.span is not None:
        name = quoted(told.side.tensor)
        return [Label(told.side.span, f"{name} has {row_word(told.side.row)}size {text}" if name else f"size {text}")]
    return []


def _both(first: list[Label], second: list[Label], told: _Told, text: str) -> list[Label]:
    """The places of both sides; where one text made both sizes, the second side is shown where it stands."""
    spans = [label.span for label in first]
    if second and told.side.tensor and told.side.span and all(label.span in spans for label in second):
        second = [Label(told.side.span, f"{quoted(told.side.tensor)} has {row_word(told.side.row)}size {text}")]
    return [*first, *second]


def _axis_text(st: State, told: _Told) -> str:
    """`output axis 2`, or nothing for a row with one axis."""
    rows: list[Row] = []
    match told.where:
        case RowEq(a=a, b=b):
            rows = [a, b]
        case RowLe(sub=sub, sup=sup):
            rows = [sub, sup]
        case _:
            pass
    for row in rows:
        lead, var, trail = open_row(st, row)
        axes = lead + trail
        for i, axis in enumerate(axes):
            if _same(st, axis, told.dim) and len(axes) > 1:
                place = f"axis {i + 1}" if not var or i < len(lead) else f"axis {i - len(axes)}"
                return f"{told.side.row} {place}"
    return ""


def _same(st: State, a: Dim, b: Dim) -> bool:
    if a is b:
        return True
    return isinstance(a, DimVar) and isinstance(b, DimVar) and node_of(st, a) is node_of(st, b)


def stretched(st: State, node: DimNode, why: Stretch) -> None:
    """E0401: a size must be a broadcasting 1 and is fixed to something else."""
    ask = why.first
    constraint = ask.constraint if ask else None
    for a, b, c in reversed(st.links):
        if constraint is None and (_in(st, a, node) or _in(st, b, node)):
            constraint = c
    if constraint is None:
        return
    text = size_text(node.value) if node.value is not None else "?"
    told = _teller(st, constraint, node.var, sides(constraint)[1])
    report(
        st, "E0401", constraint.origin, f"sizes differ: 1 and {text}", f"this is 1 here, but must be {text}",
        _places(st, told, text, constraint.origin), notes=_disagreement(st, why),
    )  # fmt: skip


def _in(st: State, dim: Dim, node: DimNode) -> bool:
    return isinstance(dim, DimVar) and dim.id in st.dims and find(st, dim.id) is node


def _disagreement(st: State, why: Stretch) -> tuple[str, ...]:
    if why.first is None or why.second is None:
        return ()
    return (f"it is asked for {dim_text(st, why.first.dim)} and for {dim_text(st, why.second.dim)}",)


def conflict(st: State, name: str, where: Span, first: Ask, second: Ask) -> None:
    """E0401, E0404: a parameter is asked for two sizes."""
    ka, kb = known(st, first.dim), known(st, second.dim)
    assert ka is not None and kb is not None
    text_a, text_b = _pair(st, first.dim, second.dim)
    code = "E0404" if ka.value == kb.value else "E0401"
    places: list[Label] = []
    for ask, text in ((first, text_a), (second, text_b)):
        side = sides(ask.constraint)[0]
        places.append(Label(ask.constraint.origin.outer, f"size {text} is asked for here"))
        told = _teller(st, ask.constraint, ask.dim, side)
        places += _places(st, told, text, second.constraint.origin)
    places.append(Label(where, f"`{name}` is declared here"))
    report(
        st, code, second.constraint.origin, f"`{name}` would need two sizes: {text_a} and {text_b}",
        f"size {text_b} is asked for here", places,
    )  # fmt: skip


# ---------------------------------------------------------------- numbers of axes


def ranks(st: State, constraint: RowEq | RowLe, a: Open, b: Open) -> None:
    """E0402, E0403, E0405: the numbers of axes do not fit."""
    if any(v and st.rows[v].bad for v in (a[1], b[1])) or _bad_axes(st, a) or _bad_axes(st, b):
        return
    if is_contraction(constraint):
        _no_contraction(st, constraint, a, b)
        return
    a, b = _whole(st, constraint, a, b)
    if constraint.origin.form in ("annotation", "result"):
        a = (a[0], 0, a[2])  # room to broadcast: nothing asked for more axes but this type
    side_a, side_b = sides(constraint)
    if isinstance(constraint, RowEq) and any(_same_tensor(w, constraint) for w in st.misplaced):
        return
    other = _other_row(st, constraint)
    text_a, text_b = count_text(a, side_a), count_text(b, side_b)
    name_a, name_b = quoted(side_a.tensor), quoted(side_b.tensor)
    what_a = (
        f"{name_a} has {text_a}"
        if name_a
        else f"{text_a} {_verb(a)} written here"
        if isinstance(constraint, RowEq)
        else text_a
    )
    what_b = (
        f"{name_b} has {text_b}"
        if name_b
        else f"the slot has {text_b}"
        if constraint.origin.form == "slots"
        else text_b
    )
    places = [
        Label(side.span, f"{text}: {row_text(st, row)}" if row[0] or row[2] else text)
        for side, text, row in ((side_a, text_a, a), (side_b, text_b, b))
        if side.span is not None
    ]
    if other:
        assert isinstance(constraint, RowEq)
        st.misplaced.append(constraint)
        st.errors[:] = [e for e in st.errors if e.code not in ("E0402", "E0412") or e.origin != constraint.origin]
        report(
            st, "E0403", constraint.origin,
            f"axes stand in the wrong row: {name_a or name_b or 'the tensor'} is {other[0]}, not {other[1]}",
            f"{what_a}, {what_b}", places,
            helps=("`|` ends the batch axes, `->` the input axes",),
        )  # fmt: skip
        return
    report(
        st, "E0402", constraint.origin, f"{side_a.row if side_a.row == side_b.row else 'numbers of'} axes differ: {what_a}, {what_b}",
        f"{text_a} and {text_b}", places,
    )  # fmt: skip


def _bad_axes(st: State, row: Open) -> bool:
    return any(isinstance(d, DimVar) and node_of(st, d).bad for d in row[0] + row[2])


def _whole(st: State, constraint: RowEq | RowLe, a: Open, b: Open) -> tuple[Open, Open]:
    """The rows of the constraint in full, without what has been matched already taken off."""
    match constraint:
        case RowEq():
            return open_row(st, constraint.a), open_row(st, constraint.b)
        case RowLe():
            return open_row(st, constraint.sub), open_row(st, constraint.sup)


def _verb(row: Open) -> str:
    return "is" if len(row[0] + row[2]) == 1 else "are"


def count_text(row: Open, side: Side) -> str:
    count = len(row[0]) + len(row[2])
    more = f"{count} or more" if row[1] else "no" if count == 0 else str(count)
    return f"{more} {side.row} {'axis' if count == 1 and not row[1] else 'axes'}"


def row_text(st: State, row: Open) -> str:
    """`3, 4`, `... 3`; `_` for a size that is not known."""
    parts = [_axis_name(st, d) for d in row[0]] + (["..."] if row[1] else []) + [_axis_name(st, d) for d in row[2]]
    return ", ".join(parts) if parts else "none"


def _axis_name(st: State, dim: Dim) -> str:
    if known(st, dim) is not None:
        return dim_text(st, dim)
    name = best_name(dim)
    return name.removeprefix("label ").strip("`") if name else "_"


def _other_row(st: State, constraint: RowEq | RowLe) -> tuple[str, str] | None:
    """The two shapes as text, if the same number of axes is there but in other rows."""
    if not isinstance(constraint, RowEq):
        return None
    group: dict[RowKind, RowEq] = {
        c.a_side.row: c for c in st.constraints if isinstance(c, RowEq) and _same_tensor(c, constraint)
    }
    if any(c.b.var is not None for c in group.values()):
        return None
    a: dict[RowKind, Open] = {kind: open_row(st, c.a) for kind, c in group.items()}
    b: dict[RowKind, Open] = {kind: open_row(st, c.b) for kind, c in group.items()}
    if constraint.origin.form in ("annotation", "result"):
        a = {kind: (row[0], 0, row[2]) for kind, row in a.items()}
    if sum(len(r[0] + r[2]) for r in a.values()) != sum(len(r[0] + r[2]) for r in b.values()):
        return None
    return f"[{rows_text(st, a)}]", f"[{rows_text(st, b)}]"


def _same_tensor(a: RowEq, b: RowEq) -> bool:
    """Whether two equations are about the rows of one tensor in one place."""
    return (
        a.origin == b.origin
        and (a.a_side.tensor, a.a_side.span) == (b.a_side.tensor, b.a_side.span)
        and (a.b_side.tensor, a.b_side.span) == (b.b_side.tensor, b.b_side.span)
    )


def rows_text(st: State, rows: Mapping[RowKind, Open]) -> str:
    """`batch | input -> output`, without what is empty."""

    def text(kind: RowKind) -> str:
        row = rows.get(kind)
        return row_text(st, row) if row and (row[0] or row[1] or row[2]) else ""

    batch, inputs = text("batch"), text("input")
    return f"{f'{batch} | ' if batch else ''}{f'{inputs} -> ' if inputs else ''}{text('output')}".rstrip()


def shape_text(st: State, shape: Shape) -> str:
    rows: dict[RowKind, Open] = {kind: open_row(st, shape.row(kind)) for kind in ROW_KINDS}
    return f"[{rows_text(st, rows)}]"


def _no_contraction(st: State, constraint: Constraint, a: Open, b: Open) -> None:
    assert isinstance(constraint, RowLe)
    side_a, side_b = sides(constraint)
    name_a, name_b = quoted(side_a.tensor) or "the left side", quoted(side_b.tensor) or "the right side"
    text_a, text_b = count_text(a, side_a), count_text(b, side_b)
    helps: tuple[str, ...] = ()
    fix = None
    if _pointwise_fits(st, constraint, b):
        helps = ("`*.` multiplies position by position",)
        fix = _pointwise_fix(constraint.origin.span)
    places = [
        Label(side.span, f"{text}: {row_text(st, row)}" if row[0] or row[2] else text)
        for side, text, row in ((side_a, text_a, a), (side_b, text_b, b))
        if side.span is not None
    ]
    report(
        st, "E0405", constraint.origin, f"`*` cannot contract: {name_a} has {text_a}, {name_b} has {text_b}",
        f"{text_a} against {text_b}", places,
        (CONTRACTS,), helps, fix,
    )  # fmt: skip


def _pointwise_fits(st: State, constraint: RowLe, right: Open) -> bool:
    """Whether the output axes of the two operands agree from the right."""
    for c in st.constraints:
        if isinstance(c, RowLe) and c.origin == constraint.origin and c.sub_side.row == c.sup_side.row == "output":
            if c.sup_side.tensor == constraint.sub_side.tensor:
                left = open_row(st, c.sup)
                pairs = zip(reversed(left[0] + left[2]), reversed(right[0] + right[2]))
                return all(_may_agree(st, x, y) for x, y in pairs)
    # the row of the product itself may come later
    lead, _, trail = open_row(st, constraint.sub)
    return not lead and not trail


def _may_agree(st: State, a: Dim, b: Dim) -> bool:
    ka, kb = known(st, a), known(st, b)
    return ka is None or kb is None or ka.stretches or kb.stretches or (ka.value, ka.basis) == (kb.value, kb.basis)


def _pointwise_fix(span: Span) -> Fix | None:
    """Replace the operator, if the text leaves no doubt which one it is."""
    text = span.text
    stars = [i for i, c in enumerate(text) if c == "*"]
    if len(stars) != 1 or "#" in text or '"' in text or text[stars[0] - 1 : stars[0]] != " ":
        return None
    at = span.start + stars[0]
    if text[stars[0] + 1 : stars[0] + 2] != " ":
        return None
    return Fix("multiply position by position", (Edit(Span(span.source, at, at + 1), "*."),))


def unsupported(st: State, constraint: Constraint, definition: RowLe, has: int, asked: int) -> None:
    """E0402, E0405: a computed tensor is asked for axes that none of its operands has."""
    side = definition.sub_side
    name = quoted(side.tensor) or "this"
    if is_contraction(constraint):
        assert isinstance(constraint, RowLe)
        own: Open = ((), 0, tuple(Size(1) for _ in range(has)))
        _no_contraction(st, constraint, own, open_row(st, constraint.sup))
        return
    axes = "axis" if has == 1 else "axes"
    place = sides(constraint)[1].span
    report(
        st, "E0402", constraint.origin, f"{side.row} axes differ: {name} has {has or 'no'} {side.row} {axes}, not {asked}",
        f"{asked} {side.row} {'axis' if asked == 1 else 'axes'} asked for", [Label(place, "asked for here")] if place else [],
    )  # fmt: skip


def endless(st: State, constraint: Constraint) -> None:
    """E0402: rows that contain themselves."""
    side_a, side_b = sides(constraint)
    names = [n for n in (quoted(side_a.tensor), quoted(side_b.tensor)) if n]
    who = " and ".join(dict.fromkeys(names)) or "this"
    report(
        st, "E0402", constraint.origin, f"the {side_a.row} axes of {who} would never end",
        "this asks for more axes than there are, whatever their number",
    )  # fmt: skip


# ---------------------------------------------------------------- arithmetic


def window(st: State, w: Window | Strided, axis: SizeValue | None, kernel: SizeValue | None) -> None:
    """E0406: the axis is too short or too long for its stride and window."""
    name = quoted(w.side.tensor) or "the axis"
    size = size_text(axis) if axis is not None else "?"
    out = known(st, w.out)
    if isinstance(w, Window) and not w.padded:
        what = f"windows of {size_text(kernel) if kernel is not None else '?'}"
        what += f" at stride {w.stride}" if w.stride != 1 else ""
        what += f", dilated by {w.dilation}" if w.dilation != 1 else ""
        span = add(mul(w.dilation, add(kernel, -1)), 1) if kernel is not None else None
    else:
        what, span = f"stride {w.stride}", 0
    if out is not None:
        what = (
            f"{size_text(out.value)} {what}"
            if what.startswith("windows")
            else f"{size_text(out.value)} positions at {what}"
        )
    fits = _fitting(axis, w.stride, span, out.value if out else None)
    helps = (f"{fits} would fit",) if fits else ()
    places: list[Label] = []
    for dim in (w.axis, *((w.kernel,) if isinstance(w, Window) and not w.padded else ()), w.out):
        steps = chain(st, dim)
        if steps:
            places += labels(st, steps, dim_text(st, dim))
        elif isinstance(dim, Size) and dim.why:
            places.append(size_label(st, dim, w.side, w.origin.span))
    report(
        st, "E0406", w.origin, f"size {size} of {name} does not fit {what}", f"{size} positions do not fit {what}", places,
        helps=helps,
    )  # fmt: skip


def _fitting(axis: SizeValue | None, stride: int, span: Number | None, out: SizeValue | None) -> str:
    if not isinstance(axis, int) or span is None or isinstance(span, (Sym, float)):
        if out is not None and span is not None and not isinstance(span, float):
            return f"size {size_text(add(mul(stride, add(out, -1)), span) if span != 0 else mul(stride, out))}"
        return ""
    if isinstance(out, int):
        return f"size {stride * (out - 1) + span if span else stride * out}"
    least = span or stride
    if axis < least:
        return f"size {least}"
    below = axis - (axis - span) % stride
    return f"size {below} or {below + stride}" if below != axis else ""


def concat(st: State, c: Concat, axis: SizeValue, covered: Number) -> None:
    parts = " + ".join(dim_text(st, p) for p in c.parts if known(st, p) is not None)
    places = [label for d in (c.axis, *c.parts) for label in labels(st, chain(st, d), dim_text(st, d))]
    name = quoted(c.side.tensor) or "the axis"
    if c.origin.form == "slice":
        report(
            st, "E0408", c.origin, f"the slice is out of range: {name} has size {size_text(axis)} here",
            f"goes on to position {size_text(covered)}", labels(st, chain(st, c.axis), dim_text(st, c.axis)),
        )  # fmt: skip
        return
    report(
        st, "E0401", c.origin, f"sizes differ: {name} has {size_text(axis)}, its parts {parts} = {size_text(covered)}"
        if " " in parts else f"sizes differ: {name} has {size_text(axis)}, its part {parts}",
        f"{size_text(axis)} and {size_text(covered)} do not agree", places,
    )  # fmt: skip


def concat_bases(st: State, c: Concat, bases: list[str]) -> None:
    places = [label for d in (c.axis, *c.parts) for label in labels(st, chain(st, d), dim_text(st, d))]
    both = " and ".join(f"`{b}`" for b in bases[:2])
    report(st, "E0404", c.origin, f"units differ: {both}", "axes of one unit can be joined", places)


def out_of_range(st: State, c: AtLeast, size: int) -> None:
    """E0408"""
    name = quoted(c.side.tensor) or "the axis"
    places = labels(st, chain(st, c.axis), dim_text(st, c.axis))
    has = "no positions" if size == 0 else "position 0 only" if size == 1 else f"positions 0 to {size - 1}"
    report(
        st, "E0408", c.origin, f"position {c.minimum - 1} is out of range: {name} has size {size} here",
        f"{has}", places,
    )  # fmt: skip


def no_size(st: State, s: SizeIs, value: Number | None) -> None:
    what = "this is not a number" if value is None else f"a size cannot be {size_text(value)}"
    report(
        st,
        "E0401",
        s.origin,
        what,
        "a size is a whole number, 0 or more",
        labels(st, chain(st, s.dim), dim_text(st, s.dim)),
    )


def size_is(st: State, s: SizeIs, size: SizeValue, value: SizeValue) -> None:
    text = s.origin.span.text
    written = f"`{text}` = {size_text(value)}" if 0 < len(text) <= 24 and "\n" not in text else size_text(value)
    name = quoted(s.side.tensor)
    report(
        st, "E0401", s.origin, f"sizes differ: {size_text(size)} and {written}",
        f"{size_text(value)} here", labels(st, chain(st, s.dim), size_text(size)),
        (f"{name} is {size_text(size)}",) if name and name != written else (),
    )  # fmt: skip


def one_number(st: State, c: OneNumber) -> None:
    """E0410"""
    name = quoted(c.tensor) or "this"
    text = shape_text(st, c.shape)
    report(
        st, "E0410", c.origin, f"the loss must be one number, but {name} has the shape {text}", f"shape {text}",
        helps=("`sum(…)` or `mean(…)` makes it one number",),
    )  # fmt: skip


def undetermined(
    st: State, origin: Origin, name: str, row: str, label: str, others: list[tuple[str, RowKind, Span]], whole_row: bool,
    example: str, inside: str,
) -> None:  # fmt: skip
    """E0407: nothing fixes a size of a parameter, maybe `inside` a standard op. `others` share it: name, row, place."""
    what = "axes" if whole_row else "size"
    called = f" ({label})" if label else ""
    places = [Label(span, f"the same as the {r} {what} of `{n}`") for n, r, span in others]
    message = f"the {row} {what} of `{name}`{called} {'are' if whole_row else 'is'} not fixed by anything"
    if inside:
        message = f"the {row} {what} of `{name}` in `{inside}` {'are' if whole_row else 'is'} not fixed by anything"
        helps = (
            f"give `{inside}` its sizes in brackets",
            f"or let the {row} sizes follow from where its result is used",
        )
        report(st, "E0407", origin, message, f"`{inside}` needs a size", places, helps=helps)
        return
    report(
        st, "E0407", origin, message, f"`{name}` needs a size", places,
        helps=(f"give one, for example `{{{name}: {example}}}`",),
    )  # fmt: skip
