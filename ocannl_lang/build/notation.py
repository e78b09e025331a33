"""Axes notation: slots as written become slots with resolved labels, and the equations that tie them to their tensors (section 6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ocannl_lang.build.context import Build, Ctx, Frame, fail
from ocannl_lang.build.values import DimRef, RowRef, SlotArg, Static, Symbolic
from ocannl_lang.diagnostics.model import Label as Note
from ocannl_lang.graph import ir
from ocannl_lang.graph.ir import Axis, SlotRow, SlotShape, Value
from ocannl_lang.shapes.terms import (
    ROW_KINDS,
    AtLeast,
    Concat,
    Dim,
    DimVar,
    Origin,
    Row,
    RowEq,
    RowKind,
    RowVar,
    Side,
    Size,
    SizeTerm,
    Strided,
    Window,
)
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast

Evaluate = Callable[[Ctx, ast.Expr], Static]


@dataclass(slots=True)
class Notation:
    """The labels and row variables of one notation while its slots are resolved.

    `only_result`: names that stand in the result and in no operand; their sizes are flexible.
    """

    ctx: Ctx
    origin: Origin
    evaluate: Evaluate
    labels: dict[tuple[int, str], ir.Label] = field(default_factory=dict[tuple[int, str], ir.Label])
    rows: dict[tuple[int, str], RowVar] = field(default_factory=dict[tuple[int, str], RowVar])
    in_operands: set[tuple[int, str]] = field(default_factory=set[tuple[int, str]])
    rows_in_operands: set[tuple[int, str]] = field(default_factory=set[tuple[int, str]])
    wild: int = 0

    # ------------------------------------------------------------ slots

    def slot(self, slot: ast.Slot, *, result: bool) -> SlotShape:
        """Resolve one slot; `result` tells on which side of `=>` it stands."""
        frame = self.ctx.frame
        passed = slot_parameter(slot, frame)
        collapse = passed[1] if passed else False
        if passed:
            slot, frame = passed[0].slot, passed[0].frame
            while (deeper := slot_parameter(slot, frame)) is not None:
                slot, frame, collapse = deeper[0].slot, deeper[0].frame, collapse or deeper[1]
        return SlotShape(
            self._row(slot.batch or (), "batch", frame, result=result, collapse=collapse),
            self._row(slot.output, "output", frame, result=result, collapse=collapse),
            self._row(slot.input or (), "input", frame, result=result, collapse=collapse),
        )

    def _row(
        self, axes: Sequence[ast.SlotAxis], kind: RowKind, frame: Frame, *, result: bool, collapse: bool
    ) -> SlotRow:
        before: list[Axis] = []
        after: list[Axis] = []
        variable: RowVar | None = None
        for axis in axes:
            match axis:
                case ast.AxisEllipsis() | ast.AxisRowVar():
                    if variable is not None:
                        raise fail(
                            "E0409", "two row variables in one row", axis.span, "the second one",
                            notes=("how the axes divide between them could not be told",),
                        )  # fmt: skip
                    name = kind if isinstance(axis, ast.AxisEllipsis) else axis.name
                    variable = self._row_var(name, axis, frame, result=result)
                case _:
                    resolved = self._axis(axis, frame, result=result, collapse=collapse)
                    (before if variable is None else after).append(resolved)
        if variable is None:
            return SlotRow((), None, tuple(before))
        return SlotRow(tuple(before), variable, tuple(after))

    def _row_var(self, name: str, axis: ast.AxisEllipsis | ast.AxisRowVar, frame: Frame, *, result: bool) -> RowVar:
        declared = frame.scope.get(name) if isinstance(axis, ast.AxisRowVar) else None
        if declared is not None and isinstance(declared.value, RowRef) and declared.value.declared:
            return declared.value.var
        key = (frame.id, name)
        if isinstance(axis, ast.AxisRowVar) and key in self.labels:
            raise fail("E0409", f"`{name}` is a label and a row variable", axis.span)
        if not result:
            self.rows_in_operands.add(key)
        elif key not in self.rows_in_operands:
            written = "..." if isinstance(axis, ast.AxisEllipsis) else f"..{name}.."
            hint = ("often `... |` was meant: the batch axes of the operand",) if written == "..." else ()
            raise fail(
                "E0409", f"`{written}` stands in the result and in no operand", axis.span,
                f"which axes this stands for cannot be known: no operand has `{written}` in its {name} row"
                if written == "..." else "no operand has it",
                helps=hint,
            )  # fmt: skip
        if key not in self.rows:
            self.rows[key] = RowVar(f"`{axis.span.text}`", self._at(axis.span))
        return self.rows[key]

    # ------------------------------------------------------------ axes

    def _axis(self, axis: ast.SlotAxis, frame: Frame, *, result: bool, collapse: bool) -> Axis:
        match axis:
            case ast.AxisLabel(name=name, span=span):
                if collapse:
                    return ir.Fixed(0)
                return self.label(name, span, frame, result=result)
            case ast.AxisWild(span=span):
                self.wild += 1
                if collapse:
                    return ir.Fixed(0)
                return ir.Label(f"_{self.wild}", DimVar("an axis `_`", self._at(span), flexible=result))
            case ast.AxisFixed(value=value):
                return ir.Fixed(self._position(value, frame))
            case ast.AxisAffine(out=out, kernel=kernel, padded=padded):
                if collapse:
                    return ir.Fixed(0)
                return ir.WindowAxis(
                    self._factor(out, frame), self.label(out.label.name, out.label.span, frame, result=result),
                    self._factor(kernel, frame), self.label(kernel.label.name, kernel.label.span, frame, result=result),
                    padded,
                )  # fmt: skip
            case ast.AxisStrided(term=term, offset=offset, span=span):
                if collapse:
                    return ir.Fixed(0)
                stride = self._factor(term, frame)
                start = 0 if offset is None else self._static_int(offset, frame, "an offset")
                if not 0 <= start < stride:
                    raise fail(
                        "E0409", f"the offset {start} is not below the stride {stride}", span,
                        notes=("positions `s*o + i` need 0 ≤ i < s; a window is written `s*o + k` with a label `k`",),
                    )  # fmt: skip
                return ir.StridedAxis(stride, self.label(term.label.name, term.label.span, frame, result=result), start)
            case ast.AxisConcat(parts=parts):
                if collapse:
                    return ir.Fixed(0)
                return ir.ConcatAxis(tuple(self._part(p, frame, result=result) for p in parts))
            case ast.AxisCollapse(name=name, span=span):
                raise fail(
                    "E0409", "`collapse(…)` stands for a whole slot", span,
                    f"write it alone in its slot: `{{{name.name} => collapse({name.name})}}`",
                )  # fmt: skip
            case _:
                raise AssertionError(f"not an axis: {axis}")

    def label(self, name: str, span: Span, frame: Frame, *, result: bool) -> ir.Label:
        binding = frame.scope.get(name)
        if binding is not None and isinstance(binding.value, DimRef) and binding.value.declared:
            self.in_operands.add((frame.id, name))
            return ir.Label(f"{frame.id}:{name}", binding.value.dim)
        if name in frame.slots:
            raise fail(
                "E0409", f"`{name}` stands for a whole slot", span,
                "it cannot be one axis among others",
                labels=(Note(frame.slots[name].slot.span, "the slot it stands for"),),
            )  # fmt: skip
        key = (frame.id, name)
        if key in self.rows:
            raise fail("E0409", f"`{name}` is a label and a row variable", span)
        if not result:
            self.in_operands.add(key)
        if key not in self.labels:
            flexible = result and key not in self.in_operands
            self.labels[key] = ir.Label(
                f"{frame.id}:{name}", DimVar(f"label `{name}`", self._at(span), flexible=flexible)
            )
        return self.labels[key]

    def _part(self, part: ast.Ident | ast.Expr, frame: Frame, *, result: bool) -> ir.Label:
        if isinstance(part, ast.Ident):
            return self.label(part.name, part.span, frame, result=result)
        value = self.evaluate(self.ctx.within(frame), part)
        size = static_size(value)
        if size is None:
            raise fail("E0303", "the size of a part is a static int", part.span)
        if isinstance(size, int):
            if size < 0:
                raise fail("E0409", f"a part cannot have the size {size}", part.span)
            return ir.Label("", Size(size, why=self._at(part.span)))
        from ocannl_lang.build.tensors import size_dim

        return ir.Label("", size_dim(self.ctx.build, value, "the size of a part", self._at(part.span)))

    def _position(self, expr: ast.Expr, frame: Frame) -> SizeTerm | Value:
        value = self.evaluate(self.ctx.within(frame), expr)
        if isinstance(value, Value):
            if is_position(value) or (value.scalar and value.precision in {"i32", "i64", "u8", "u32"}):
                return value
            raise fail(
                "E0303", "a fixed position is a static int or an `index`", expr.span, "this is a tensor",
                helps=("declare it as `i: index[n]` in the routine's signature",),
            )  # fmt: skip
        size = static_size(value)
        if size is None:
            raise fail("E0303", "a fixed position is a static int or an `index`", expr.span)
        if isinstance(size, int) and size < 0:
            raise fail("E0408", f"there is no position {size}", expr.span, "positions count from 0")
        return size

    def _factor(self, term: ast.AffineTerm, frame: Frame) -> int:
        if term.factor is None:
            return 1
        factor = self._static_int(term.factor, frame, "a stride or dilation")
        if factor < 1:
            raise fail("E0409", f"a stride or dilation of {factor}", term.factor.span, "must be at least 1")
        return factor

    def _static_int(self, expr: ast.Expr, frame: Frame, what: str) -> int:
        value = self.evaluate(self.ctx.within(frame), expr)
        if isinstance(value, bool) or not isinstance(value, int):
            code = "E0702" if isinstance(value, Symbolic) else "E0303"
            raise fail(code, f"{what} is a static int", expr.span, "this is not known while the program is built")
        return value

    def _at(self, span: Span) -> Origin:
        return Origin(span, self.origin.frames, "slots", self.origin.symbol)


def is_position(value: Value) -> bool:
    """An `index`; or an argument of an op that is checked by itself, of which nothing says that it is none."""
    if not isinstance(value.op, ir.Input):
        return False
    rows = (value.shape.batch, value.shape.output, value.shape.input)
    unknown = value.precision is None and all(r.var is not None and not (r.lead or r.trail) for r in rows)
    return value.op.kind == "index" or unknown


def static_size(value: Static) -> int | SizeTerm | None:
    """A static int, known or not; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, Symbolic) and value.whole:
        return value.term
    if isinstance(value, DimRef):
        dim = value.dim
        return dim.value if isinstance(dim, Size) and isinstance(dim.value, int) else dim
    return None


def slot_parameter(slot: ast.Slot, frame: Frame) -> tuple[SlotArg, bool] | None:
    """The argument that `slot` stands for, if it is just the name of a slot parameter or its `collapse`."""
    if slot.batch is not None or slot.input is not None or len(slot.output) != 1:
        return None
    match slot.output[0]:
        case ast.AxisLabel(name=name) if name in frame.slots:
            return frame.slots[name], False
        case ast.AxisCollapse(name=ident) if ident.name in frame.slots:
            return frame.slots[ident.name], True
        case _:
            return None


# ---------------------------------------------------------------- equations


def equate(
    build: Build, value: Value, slot: SlotShape, origin: Origin, *, result: bool, at: Span | None = None
) -> None:
    """`value`'s rows are those of its slot, exactly."""
    from ocannl_lang.build.tensors import side

    for kind in ROW_KINDS:
        row: SlotRow = getattr(slot, kind)
        place = Side("" if result else side(value, kind).tensor, kind, at or value.origin.span)
        lead = tuple(_axis_dim(build, a, place, origin, result=result) for a in row.lead)
        trail = tuple(_axis_dim(build, a, place, origin, result=result) for a in row.trail)
        wanted = Row(lead, row.var, trail)
        build.add(RowEq(value.shape.row(kind), wanted, side(value, kind), Side("", kind, at or origin.span), origin))


def _axis_dim(build: Build, axis: Axis, place: Side, origin: Origin, *, result: bool) -> Dim:
    match axis:
        case ir.Label(dim=dim):
            return dim
        case ir.Fixed(position=position):
            dim = DimVar("an axis with a fixed position", origin, flexible=result)
            if isinstance(position, int):
                build.add(AtLeast(dim, position + 1, place, origin))
            elif isinstance(position, Value) and isinstance(position.op, ir.Input) and position.op.limit is not None:
                limit = position.op.limit
                known = limit.value if isinstance(limit, Size) else None
                if isinstance(known, int):
                    build.add(AtLeast(dim, known, place, origin))
            return dim
        case ir.WindowAxis(stride=stride, out=out, dilation=dilation, kernel=kernel, padded=padded):
            dim = DimVar("a windowed axis", origin)
            build.add(Window(dim, stride, out.dim, dilation, kernel.dim, padded, place, origin))
            return dim
        case ir.StridedAxis(stride=stride, label=label):
            dim = DimVar("a strided axis", origin)
            build.add(Strided(dim, stride, label.dim, place, origin))
            return dim
        case ir.ConcatAxis(parts=parts):
            dim = DimVar("a concatenated axis", origin)
            build.add(Concat(dim, tuple(p.dim for p in parts), place, origin))
            return dim
        case _:
            raise AssertionError(f"not an axis: {axis}")
