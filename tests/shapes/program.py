"""Small programs as constraints, the way the compiler states them, each operation on a line of its own text."""

from __future__ import annotations

from dataclasses import dataclass, field

from ocannl_lang.shapes.terms import (
    EMPTY,
    ROW_KINDS,
    AtLeast,
    Concat,
    Dim,
    DimVar,
    Form,
    Leaf,
    OneNumber,
    Origin,
    Problem,
    Row,
    RowEq,
    RowLe,
    RowVar,
    Shape,
    Side,
    Size,
    Strided,
    Unknown,
    Window,
)
from ocannl_lang.source import Source, Span


@dataclass(eq=False)
class Tensor:
    name: str
    shape: Shape
    span: Span


@dataclass
class Program:
    """Each operation is written on a new line of `text`; call `problem()` when done."""

    lines: list[str] = field(default_factory=list)
    items: list = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    source: Source = field(default_factory=lambda: Source("test.ocn", "x" * 100 + "\n"))

    def _origin(self, text: str, form: Form, symbol: str = "") -> Origin:
        self.lines.append(text)
        full = "\n".join(self.lines)
        start = len(full) - len(text)
        object.__setattr__(self.source, "text", full + "\n")
        self.source.__post_init__()
        return Origin(Span(self.source, start, len(full)), (), form, symbol)

    # ------------------------------------------------------------ leaves

    def row(self, text: str | None, origin: Origin, labels: dict, flexible: bool = False, what: str = "") -> Row:
        """`3 n k ...`: sizes, unknowns (one capital letter), labels, row variables; None is an open row."""
        if text is None:
            return Row((), RowVar(f"axes of {what}", origin), ())
        lead: list[Dim] = []
        trail: list[Dim] = []
        var = None
        for word in text.split():
            if word.startswith(".."):
                var = labels.setdefault(word, RowVar(f"`{word}`", origin))
                continue
            word, _, basis = word.partition(":")
            if word.isdigit():
                dim: Dim = Size(int(word), basis or "default", origin)
            elif word.isupper():
                dim = Size(Unknown(word.lower(), "test"), basis or "default", origin)
            elif word == "?":
                dim = DimVar(f"an axis of {what}", origin, flexible)
            else:
                dim = labels.setdefault(word, DimVar(f"label `{word}`", origin, flexible))
            (lead if var is None else trail).append(dim)
        return Row(tuple(lead), var, tuple(trail)) if var else Row((), None, tuple(lead))

    def leaf(self, kind, name: str, batch: str | None = "", input: str | None = "", output: str | None = "") -> Tensor:
        origin = self._origin(f"{name}: [{batch} | {input} -> {output}]", "declaration")
        labels: dict = {}
        b, i, o = (self.row(r, origin, labels, what=f"`{name}`") for r in (batch, input, output))
        shape = Shape(batch=b, output=o, input=i)
        self.leaves.append(Leaf(kind, name, shape, origin))
        return Tensor(name, shape, origin.span)

    def input(self, name: str, batch: str = "", output: str = "", input: str = "") -> Tensor:
        return self.leaf("input", name, batch, input, output)

    def param(self, name: str, input: str | None = None, output: str | None = None, batch: str | None = "") -> Tensor:
        return self.leaf("parameter", name, batch, input, output)

    def const(self, name: str) -> Tensor:
        return self.leaf("constant", name, None, None, None)

    # ------------------------------------------------------------ operations

    def side(self, t: Tensor, kind) -> Side:
        return Side(t.name, kind, t.span)

    def _fresh(self, name: str, origin: Origin) -> Tensor:
        rows = {k: Row((), RowVar(f"the {k} axes of `{name}`", origin), ()) for k in ROW_KINDS}
        return Tensor(name, Shape(rows["batch"], rows["output"], rows["input"]), origin.span)

    def le(self, c: Tensor, ck, a: Tensor, ak, origin: Origin) -> None:
        self.items.append(RowLe(c.shape.row(ck), a.shape.row(ak), self.side(c, ck), self.side(a, ak), origin))

    def pointwise(self, symbol: str, *args: Tensor, name: str = "") -> Tensor:
        names = [a.name for a in args]
        names = [n if len(n) < 24 else "…" for n in names]
        text = f" {symbol} ".join(names) if len(names) > 1 else f"{symbol}({names[0]})"
        text = f"{name} = {text}" if name else text
        origin = self._origin(text, "pointwise", symbol)
        out = self._fresh(name or text, origin)
        for kind in ROW_KINDS:
            for a in args:
                self.le(out, kind, a, kind, origin)
        return out

    def product(self, a: Tensor, b: Tensor, name: str = "") -> Tensor:
        origin = self._origin(f"{a.name} * {b.name}", "product", "*")
        out = self._fresh(name or f"{a.name} * {b.name}", origin)
        self.le(a, "input", b, "output", origin)
        self.le(out, "batch", a, "batch", origin)
        self.le(out, "batch", b, "batch", origin)
        self.le(out, "output", a, "output", origin)
        self.le(out, "input", b, "input", origin)
        return out

    def transpose(self, a: Tensor, name: str = "") -> Tensor:
        origin = self._origin(f"transpose({a.name})", "transpose", "transpose")
        out = self._fresh(name or f"transpose({a.name})", origin)
        self.le(out, "batch", a, "batch", origin)
        self.le(out, "input", a, "output", origin)
        self.le(out, "output", a, "input", origin)
        return out

    def slots(
        self, symbol: str, slots: list[tuple[str, str, str]], result: tuple[str, str, str], *args: Tensor, name=""
    ) -> Tensor:
        """Slots as (batch, input, output); `0` is a kept axis, `^` joins, `2*o+k` and `2*o=+k` are windows, `2*o` strided."""
        text = f"{symbol}{{{'; '.join(' | '.join(s) for s in slots)} => {' | '.join(result)}}}"
        origin = self._origin(text, "slots", symbol)
        labels: dict = {}
        for slot, arg in zip(slots, args):
            self._slot(slot, arg, origin, labels, result=False)
        out = self._fresh(name or text, origin)
        self._slot(result, out, origin, labels, result=True)
        return out

    def _slot(self, slot: tuple[str, str, str], t: Tensor, origin: Origin, labels: dict, *, result: bool) -> None:
        for kind, text in zip(("batch", "input", "output"), slot):
            side = self.side(t, kind)
            axes: list[Dim] = []
            lead: list[Dim] = []
            var = None
            for word in text.split():
                if word.startswith(".."):
                    key = word if word != "..." else f"...{kind}"
                    var = labels.setdefault(key, RowVar(f"`{word}`", origin))
                    lead, axes = axes, []
                else:
                    axes.append(self._axis(word, origin, labels, side, result))
            row = Row(tuple(lead), var, tuple(axes)) if var else Row((), None, tuple(axes))
            self.items.append(RowEq(t.shape.row(kind), row, side, Side("", kind, origin.span), origin))

    def _label(self, word: str, origin: Origin, labels: dict, result: bool) -> Dim:
        if word.isdigit():
            return Size(int(word), why=origin)
        return labels.setdefault(word, DimVar(f"label `{word}`", origin, flexible=result))

    def _axis(self, word: str, origin: Origin, labels: dict, side: Side, result: bool) -> Dim:
        if "^" in word:
            dim = DimVar("a joined axis", origin)
            parts = tuple(self._label(w, origin, labels, result) for w in word.split("^"))
            self.items.append(Concat(dim, parts, side, origin))
            return dim
        if "*" in word or "+" in word:
            padded = "=+" in word
            out, _, kernel = word.replace("=+", "+").partition("+")
            stride, _, o = out.rpartition("*")
            dim = DimVar("a windowed axis", origin)
            if not kernel:
                self.items.append(Strided(dim, int(stride), self._label(o, origin, labels, result), side, origin))
                return dim
            dilation, _, k = kernel.rpartition("*")
            self.items.append(
                Window(
                    dim,
                    int(stride or 1),
                    self._label(o, origin, labels, result),
                    int(dilation or 1),
                    self._label(k, origin, labels, result),
                    padded,
                    side,
                    origin,
                )
            )
            return dim
        if word.isdigit():
            dim = DimVar("a fixed axis", origin, flexible=result)
            self.items.append(AtLeast(dim, int(word) + 1, side, origin))
            return dim
        return self._label(word, origin, labels, result)

    def annotate(self, t: Tensor, output: str, form: Form = "annotation") -> None:
        origin = self._origin(f"let {t.name}: [{output}]", form)
        row = self.row(output, origin, {})
        self.items.append(RowEq(t.shape.output, row, self.side(t, "output"), Side("", "output", origin.span), origin))

    def loss(self, t: Tensor) -> None:
        origin = self._origin(f"update({t.name})", "gradient")
        self.items.append(OneNumber(t.shape, t.name, origin))

    def problem(self) -> Problem:
        return Problem(list(self.items), list(self.leaves))


__all__ = ["EMPTY", "Program", "Tensor"]
