"""Why a size is what it is: the chain of places in the text from a variable to what fixed it."""

from __future__ import annotations

from collections import deque

from ocannl_lang.diagnostics.model import Label
from ocannl_lang.shapes.sizes import size_text
from ocannl_lang.shapes.state import State, Step, known, sides
from ocannl_lang.shapes.terms import (
    AtLeast,
    Concat,
    Constraint,
    Dim,
    DimVar,
    Origin,
    RowKind,
    RowLe,
    Side,
    Size,
    SizeIs,
    Strided,
    Unknown,
    Window,
)
from ocannl_lang.source import Span

MAX_SEARCH = 5000


def chain(st: State, dim: Dim) -> list[Step]:
    """The shortest way from a known size to what fixed it. The last `far` is a `Size`, or a source of the arithmetic."""
    if isinstance(dim, Size) or known(st, dim) is None:
        return []
    neighbours = _neighbours(st)
    goal = known(st, dim)
    assert goal is not None
    came: dict[int, Step | None] = {dim.id: None}
    queue: deque[DimVar] = deque([dim])
    derived: Step | None = None
    while queue and len(came) < MAX_SEARCH:
        here = queue.popleft()
        for step in neighbours.get(here.id, ()):
            far = step.far
            if isinstance(step.constraint, (Window, Strided, Concat, SizeIs, AtLeast)):
                derived = derived or step
                continue
            at = known(st, far)
            if at is None or at.value != goal.value or at.stretches != goal.stretches:
                continue
            if isinstance(far, Size):
                return _path(came, step)
            if far.id not in came:
                came[far.id] = step
                queue.append(far)
    return _path(came, derived) if derived else []


def _path(came: dict[int, Step | None], last: Step) -> list[Step]:
    path = [last]
    while True:
        near = path[0].near
        before = came[near.id] if isinstance(near, DimVar) else None
        if before is None:
            return path
        path.insert(0, before)


def _neighbours(st: State) -> dict[int, list[Step]]:
    """The links of each variable; what came since the last time is added."""
    index = st.steps_of
    for a, b, constraint in st.links[st.indexed :]:
        side_a, side_b = sides(constraint)
        if isinstance(a, DimVar):
            index.setdefault(a.id, []).append(Step(constraint, a, b, side_a, side_b))
        if isinstance(b, DimVar) and not isinstance(constraint, (Window, Strided, Concat, SizeIs, AtLeast)):
            index.setdefault(b.id, []).append(Step(constraint, b, a, side_b, side_a))
    st.indexed = len(st.links)
    return index


def labels(st: State, steps: list[Step], size: str, at: Origin | None = None) -> list[Label]:
    """The chain as labelled places, what fixed the size first. `at` is what is being explained."""
    if not steps:
        return []
    last = steps[-1]
    out = _before(st, last)
    out.append(_source(st, last, size, at))
    for step in reversed(steps):
        name = quoted(step.near_side.tensor)
        # what stands beside the source needs no words of its own, unless it has a name
        if name and (step is not last or (step.near_side.tensor.isidentifier() and isinstance(step.constraint, RowLe))):
            out.append(Label(step.constraint.origin.span, f"so {name} has {row_word(step.near_side.row)}size {size}"))
    return out


def _before(st: State, step: Step) -> list[Label]:
    """Where the size comes from that arithmetic started with."""
    if not isinstance(step.constraint, (Window, Strided, Concat, SizeIs)):
        return []
    if isinstance(step.far, Size):
        return [size_label(st, step.far, step.far_side, step.constraint.origin.span)] if step.far.why else []
    steps = chain(st, step.far)
    if not steps or isinstance(steps[-1].constraint, (Window, Strided, Concat, SizeIs, AtLeast)):
        return []
    return [_source(st, steps[-1], dim_text(st, step.far))]


def _source(st: State, step: Step, size: str, at: Origin | None = None) -> Label:
    origin = step.constraint.origin
    if isinstance(step.constraint, (Window, Strided, Concat, SizeIs, AtLeast)):
        # the same op applied twice gives two sizes: show the applications
        elsewhere = at is not None and origin.frames[:1] != at.frames[:1]
        name = quoted(step.near_side.tensor) or "the axis"
        return Label(origin.outer if elsewhere else origin.span, f"{name} has {arithmetic_text(st, step.constraint)}")
    assert isinstance(step.far, (Size, DimVar))
    if isinstance(step.far, DimVar):
        return Label(origin.span, f"size {size} from here")
    return size_label(st, step.far, step.far_side, origin.span)


def size_label(st: State, size: Size, side: Side, otherwise: Span) -> Label:
    """Where a written size stands."""
    place = size.why.span if size.why else side.span or otherwise
    name = quoted(side.tensor)
    text = dim_text(st, size)
    return Label(place, f"{name} has {row_word(side.row)}size {text}" if name else f"size {text} from here")


def arithmetic_text(st: State, constraint: Constraint) -> str:
    """How arithmetic comes to a size, in a few words."""

    def text(dim: Dim) -> str:
        at = known(st, dim)
        return "?" if at is None else size_text(at.value)

    match constraint:
        case Window(padded=False):
            return f"{text(constraint.axis)} positions for {text(constraint.out)} windows of {text(constraint.kernel)}"
        case Window() | Strided():
            return f"{text(constraint.axis)} positions, of which {text(constraint.out)} at stride {constraint.stride}"
        case Concat():
            return f"size {' + '.join(text(p) for p in constraint.parts)} = {text(constraint.axis)}"
        case SizeIs():
            return f"size {text(constraint.dim)}"
        case _:
            return "this size"


def dim_text(st: State, dim: Dim) -> str:
    """A size as the user wrote it, with its value: `2 * d = 128`, `n`, `3:rgb`."""
    at = known(st, dim)
    if at is None:
        return "?"
    value = size_text(at.value)
    if isinstance(dim, DimVar):
        steps = chain(st, dim)
        dim = steps[-1].far if steps else dim
    if isinstance(dim, Size):
        written = dim.text
        ours = dim.why is None or not is_standard(dim.why.span)
        if ours and written and written != value and size_text(at.value) == size_text(known(st, dim).value):  # type: ignore[union-attr]
            value = f"{written} = {value}"
        elif isinstance(dim.value, Unknown) and isinstance(at.value, int):
            value = f"{dim.value.name} = {value}"
    return value if at.basis == "default" else f"{value}:{at.basis}"


def is_standard(span: Span) -> bool:
    """Whether a place lies in the standard library, which the user does not look at."""
    return span.source.path.startswith("<")


def quoted(name: str) -> str:
    return "" if not name else name if "`" in name or (" " in name and not _is_code(name)) else f"`{name}`"


def _is_code(name: str) -> bool:
    return any(c in name for c in "+-*/(){}[].=<>|@")


def row_word(row: RowKind) -> str:
    return f"{row} "


def best_name(dim: Dim) -> str:
    """What a variable is called by the user: "label `k`", or nothing."""
    if isinstance(dim, DimVar) and (dim.purpose.startswith("label ") or dim.purpose.startswith("`")):
        return dim.purpose
    return ""
