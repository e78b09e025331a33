"""Precision inference (section 9 of the language), for all routines of a program together.

What a value is known to be is a *kind*: a precision, or one of three open kinds, for values that take their precision
from their uses: `?float` (a float literal, a parameter, a random tensor: never an int), `?int` (an int literal:
anything), `?` (an input without type). Computed tensors take the wider of their operands (forward); leaves that are
still open take the wider of what their uses compute in (backward); the two alternate until nothing changes. Numbers
never have a precision of their own: they are written into each use in the precision of that use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Union

from ocannl_lang.diagnostics.model import Collector, Diagnostic
from ocannl_lang.graph.dtypes import compute_precision, is_float, join, loses_more_than_rounding
from ocannl_lang.graph.ir import (
    Arange,
    Array,
    Assigned,
    Axis,
    Cell,
    CellValue,
    ConcatAxis,
    Custom,
    Data,
    Draw,
    Fixed,
    GradOf,
    Graph,
    Input,
    Label,
    Map,
    Number,
    Product,
    Reduce,
    Seed,
    SlotApply,
    SlotLeaf,
    SlotRow,
    SlotShape,
    SlotTree,
    Stack,
    StridedAxis,
    Transpose,
    Value,
    WindowAxis,
    operands,
)
from ocannl_lang.graph.order import topological
from ocannl_lang.graph.primitives import PRIMITIVES
from ocannl_lang.shapes.terms import RowProduct, SizeOp, SizeTerm

Key = Union[Value, Cell]
Kind = str
DEFAULT = "f32"
_LEAVES = (Input, Data, Array, Arange, Draw, Seed)

_FLOAT_TERMS = frozenset({"/", "sqrt", "rsqrt", "recip", "exp", "log", "exp2", "log2", "sin", "cos", "tanh", "float"})


def infer_precisions(graphs: Sequence[Graph] | Graph, collector: Collector) -> dict[Key, str]:
    """The precision of every value that the graphs reach, and of their cells. Reports E0601.

    Cells that several graphs share get one precision, so pass all routines of a program together.
    """
    inference = _Inference([graphs] if isinstance(graphs, Graph) else list(graphs))
    inference.run()
    inference.check(collector)
    return inference.result()


def working_precision(value: Value, precisions: dict[Key, str]) -> str:
    """What the operation of `value` is computed in: operands are converted to it, sums accumulate in it.

    For comparisons the precision that the operands are compared in.
    """
    result = precisions[value]
    kind = operation_kind(value, lambda v: literal_kind(v) or precisions[v])
    if kind.startswith("?"):
        return compute_precision(DEFAULT if _is_comparison(value) else result)
    if _is_comparison(value):
        return compute_precision(kind)
    return compute_precision(join(kind, result) or result)


def tree_precision(tree: SlotTree, precisions: dict[Key, str], default: str) -> str:
    """What one node of an assignment's tree is computed in, `default` if only numbers stand in it."""
    kind = tree_kind(tree, lambda v: literal_kind(v) or precisions[v])
    if isinstance(tree, SlotApply) and PRIMITIVES[tree.fn].rule in ("compare", "logic"):
        kind = fold([tree_kind(a, lambda v: literal_kind(v) or precisions[v]) for a in tree.args])
    return compute_precision(default if kind.startswith("?") else kind)


# ---------------------------------------------------------------- kinds


def literal_kind(value: Value) -> Kind | None:
    """The kind of a number, None for everything else."""
    if isinstance(value.op, Number) and value.precision is None:
        return "?float" if is_float_term(value.op.value) else "?int"
    return None


def is_float_term(term: SizeTerm) -> bool:
    """Whether a static number is a float: it has a float in it, or a division or a function that makes one."""
    match term:
        case float():
            return True
        case SizeOp(op="int" | "//" | "floor" | "ceil" | "round"):
            return False
        case SizeOp(op=op, args=args):
            return op in _FLOAT_TERMS or any(is_float_term(a) for a in args)
        case RowProduct():
            return False
        case _:
            return False


def meet(a: Kind, b: Kind) -> Kind:
    """The kind of an operation on both. Raises `NoCommonPrecision`."""
    if a == b:
        return a
    if a.startswith("?") and b.startswith("?"):
        return "?float" if "?float" in (a, b) else "?int" if "?int" in (a, b) else "?"
    if a.startswith("?") or b.startswith("?"):
        open_kind, known = (a, b) if a.startswith("?") else (b, a)
        return DEFAULT if open_kind == "?float" and not is_float(known) else known
    joined = join(a, b)
    if joined is None:
        raise NoCommonPrecision(a, b)
    return joined


class NoCommonPrecision(Exception):
    """Two precisions that nothing meets; reported as E0601."""

    def __init__(self, a: str, b: str) -> None:
        super().__init__(f"{a} and {b}")
        self.a = a
        self.b = b


def fold(kinds: Sequence[Kind]) -> Kind:
    result = kinds[0] if kinds else "?"
    for kind in kinds[1:]:
        result = meet(result, kind)
    return result


def operation_kind(value: Value, kind_of: Callable[[Value], Kind]) -> Kind:
    """The kind that the operation gives by itself, from its operands; for comparisons and logic that of the
    operands.
    """
    match value.op:
        case Map(fn=fn, args=args):
            kind = _map_kind(fn, [kind_of(a) for a in args])
            return "i32" if kind == "u8" and fn in _ARITHMETIC and _counts(args) else kind
        case Product(left=left, right=right, addend=addend):
            product = _sum_kind(meet(kind_of(left), kind_of(right)))
            return product if addend is None else meet(product, kind_of(addend))
        case Reduce(accum=accum, args=args):
            if moves_only(value.op):
                return fold([kind_of(a) for a in args])
            return _reduce_kind(accum, [kind_of(a) for a in args])
        case Stack(args=args):
            return fold([kind_of(a) for a in args])
        case Transpose(operand=operand):
            return kind_of(operand)
        case Custom(inner=inner):
            return kind_of(inner)
        case GradOf(of=of):
            return kind_of(of)
        case Assigned(prev=prev, tree=tree):
            if prev is not None:
                return kind_of(prev)
            return kind_of(tree) if isinstance(tree, Value) else tree_kind(tree, kind_of)
        case _:
            return "?"


_ARITHMETIC = frozenset({"add", "sub", "mul", "neg", "floordiv", "mod", "pow"})


def _counts(args: Sequence[Value]) -> bool:
    """Whether arithmetic is on truth values and numbers only: it counts in i32, so that `2 * (x > 0) - 1` is -1 or 1."""
    return all(_is_truth(a) or isinstance(a.op, Number) for a in args)


def _is_truth(value: Value) -> bool:
    match value.op:
        case Map(fn=fn):
            return PRIMITIVES[fn].rule in ("compare", "logic")
        case Reduce(accum=accum):
            return accum in ("or", "and")
        case _:
            return False


def tree_kind(tree: SlotTree, kind_of: Callable[[Value], Kind]) -> Kind:
    """The kind of an assignment's right side; u8 for comparisons and logic."""
    if isinstance(tree, SlotLeaf):
        return kind_of(tree.value)
    if PRIMITIVES[tree.fn].rule in ("compare", "logic"):
        return "u8"
    return _map_kind(tree.fn, [tree_kind(a, kind_of) for a in tree.args])


def _map_kind(fn: str, kinds: list[Kind]) -> Kind:
    match PRIMITIVES[fn].rule:
        case "float":
            kind = fold(kinds)
            if kind.startswith("?"):
                return "?float"
            return kind if is_float(kind) else DEFAULT
        case "select":
            return fold(kinds[1:])
        case "declared":
            return kinds[0]
        case _:
            return fold(kinds)


def _reduce_kind(accum: str, kinds: list[Kind]) -> Kind:
    kind = fold(kinds)
    match accum:
        case "add" | "mul":
            return _sum_kind(kind)
        case "mean":
            return "?float" if kind.startswith("?") else kind if is_float(kind) else DEFAULT
        case _:
            return kind


def _sum_kind(kind: Kind) -> Kind:
    """Sums of ints are i32, of i64 (and u32) i64."""
    if kind.startswith("?") or is_float(kind):
        return kind
    return "i64" if kind in ("i64", "u32") else "i32"


def moves_only(op: Reduce) -> bool:
    """Whether nothing is summed: a slice, a permutation, a repetition or a concatenation keeps the precision of its operand."""
    if op.accum != "add":
        return False
    if op.combine == "concat":
        return True
    if len(op.args) != 1:
        return False
    kept = {key for row in _rows(op.result) for key in _row_keys(row)}
    for row in _rows(op.slots[0]):
        if row.var is not None and row.var.id not in kept:
            return False
        for axis in (*row.lead, *row.trail):
            keys = _axis_keys(axis)
            missing = [k for k in keys if k not in kept]
            if missing and not (isinstance(axis, ConcatAxis) and len(missing) < len(keys)):
                return False
    return True


def _rows(slot: SlotShape) -> tuple[SlotRow, ...]:
    return (slot.batch, slot.output, slot.input)


def _row_keys(row: SlotRow) -> set[object]:
    keys: set[object] = {k for axis in (*row.lead, *row.trail) for k in _axis_keys(axis)}
    return keys if row.var is None else {*keys, row.var.id}


def _axis_keys(axis: Axis) -> list[object]:
    """The labels of an axis; an anonymous part of a concatenation counts as one that is nowhere else."""
    match axis:
        case Label(key=key):
            return [key]
        case WindowAxis(out=out, kernel=kernel):
            return [out.key, kernel.key]
        case StridedAxis(label=label):
            return [label.key]
        case ConcatAxis(parts=parts):
            return [p.key or object() for p in parts]
        case _:
            return []


def _is_comparison(value: Value) -> bool:
    """Whether the precision of the result has nothing to do with that of the operands."""
    match value.op:
        case Map(fn=fn):
            return PRIMITIVES[fn].rule in ("compare", "logic", "declared")
        case Reduce(accum=accum):
            return accum in ("or", "and", "argmax", "argmin")
        case _:
            return False


# ---------------------------------------------------------------- inference


class _Inference:
    def __init__(self, graphs: list[Graph]) -> None:
        self.graphs = graphs
        self.custom_of = _seeds(graphs)
        roots = [v for g in graphs for v in (*g.inputs, *g.results, *g.finals.values())]
        extra = [v for c in self.custom_of.values() for v in _custom_values(c)]
        self.order = topological([*roots, *extra], self._needs)
        self.cell_of = {v: cell for g in graphs for cell, v in g.finals.items()}
        self.kinds: dict[Value, Kind] = {}
        self.fixed: dict[Key, str] = {}
        self.open: dict[Value, str] = {}
        self.clashes: dict[Value, NoCommonPrecision] = {}

    def run(self) -> None:
        while True:
            self._forward()
            if not self._backward():
                return

    def result(self) -> dict[Key, str]:
        found: dict[Key, str] = dict(self.fixed)
        for value in self.order:
            found[value] = self._settled(value)
            if isinstance(value.op, CellValue):
                found[value.op.cell] = found[value]
        for graph in self.graphs:
            for cell, final in graph.finals.items():
                found.setdefault(cell, cell.precision or found[final])
        return found

    def _needs(self, value: Value) -> Iterable[Value]:
        if value in self.custom_of:
            return (self.custom_of[value],)
        return operands(value)

    # -------------------------------------------------------- forward

    def _forward(self) -> None:
        for value in self.order:
            try:
                self.kinds[value] = self._kind(value)
            except NoCommonPrecision as clash:
                self.clashes.setdefault(value, clash)
                self.kinds[value] = clash.a

    def _kind(self, value: Value) -> Kind:
        key = self._key(value)
        if value.precision is not None:
            return value.precision
        return self.fixed[key] if key in self.fixed else self._own_kind(value)

    def _own_kind(self, value: Value) -> Kind:
        match value.op:
            case CellValue(cell=cell):
                return cell.precision or "?float"
            case Input(kind=kind):
                return "i32" if kind == "index" else "?"
            case Data():
                return "?"
            case Draw():
                return "?float"
            case Array(value=array):
                return "?float" if array.dtype.kind == "f" else "?int"
            case Arange():
                return "?int"
            case Number():
                return literal_kind(value) or "?int"
            case Seed():
                custom = self.custom_of.get(value)
                return "?float" if custom is None else self.kinds[custom]
            case Reduce(accum="argmax" | "argmin"):
                return "i32"
            case Assigned(prev=None) if value in self.cell_of:
                return self.cell_of[value].precision or self.fixed.get(self.cell_of[value], "?float")
            case _:
                if _is_comparison(value) and not (isinstance(value.op, Map) and value.op.fn == "convert"):
                    return "u8"
                return operation_kind(value, self.kinds.__getitem__)

    def _key(self, value: Value) -> Key:
        return value.op.cell if isinstance(value.op, CellValue) else value

    # -------------------------------------------------------- backward

    def _backward(self) -> bool:
        """Fix open leaves by their uses; whether anything changed."""
        demands: dict[Key, str] = {}
        changed = False
        for value in reversed(self.order):
            key = self._key(value)
            settled = self._settle(self.kinds[value], demands.get(key))
            for operand, asked in self._asks(value, settled):
                _widen(demands, self._key(operand), asked)
            if isinstance(value.op, _LEAVES) and self._is_open(value):
                changed |= self._fix(value, self._settle(self._own_kind(value), demands.get(key)))
            self.open[value] = settled
        for value in self.order:
            # A cell is fixed when all its uses, in all graphs, are known.
            if isinstance(value.op, CellValue) and self._is_open(value):
                changed |= self._fix(value.op.cell, self._settle(self._own_kind(value), demands.get(value.op.cell)))
        return changed

    def _is_open(self, value: Value) -> bool:
        return value.precision is None and (self._key(value) in self.fixed or self.kinds[value].startswith("?"))

    def _settle(self, kind: Kind, demand: str | None) -> str:
        if not kind.startswith("?"):
            return kind
        if demand is None or (kind == "?float" and not is_float(demand)):
            return DEFAULT
        return demand

    def _settled(self, value: Value) -> str:
        kind = self.kinds[value]
        return self.open.get(value, DEFAULT) if kind.startswith("?") else kind

    def _fix(self, key: Key, prec: str) -> bool:
        before = self.fixed.get(key)
        self.fixed[key] = prec if before is None else join(before, prec) or before
        return self.fixed[key] != before

    def _asks(self, value: Value, settled: str) -> Iterable[tuple[Value, str]]:
        """What a value computes in, for each operand that could still follow."""
        match value.op:
            case Map(fn=fn, args=args):
                match PRIMITIVES[fn].rule:
                    case "compare":
                        kind = self._try_fold([self.kinds[a] for a in args])
                        return [(a, DEFAULT if kind.startswith("?") else kind) for a in args]
                    case "logic" | "declared":
                        return ()
                    case "select":
                        return [(a, settled) for a in args[1:]]
                    case _:
                        return [(a, settled) for a in args]
            case Reduce(accum="or" | "and" | "argmax" | "argmin", slots=slots, result=result):
                return _position_asks((*slots, result))
            case Reduce(args=args, slots=slots, result=result):
                return [*((a, settled) for a in args), *_position_asks((*slots, result))]
            case Product() | Stack() | Transpose() | Custom():
                return [(v, settled) for v in operands(value)]
            case Assigned(prev=prev, tree=tree, slot=slot):
                asks = [(v, settled) for v in operands(value)]
                if prev is not None:
                    asks.append((prev, self._assigned_kind(tree)))
                positions = set(dict.fromkeys(v for v, _ in _position_asks(() if slot is None else (slot,))))
                return [(v, "i32" if v in positions else p) for v, p in asks]
            case Draw(counter=counter) if counter is not None:
                return ((counter, "i32"),)
            case _:
                return ()

    def _assigned_kind(self, tree: SlotTree | Value) -> str:
        """What a cell that is still open takes from a value assigned to it; ints do not narrow it."""
        kind = self.kinds[tree] if isinstance(tree, Value) else tree_kind(tree, self.kinds.__getitem__)
        return kind if is_float(kind) else DEFAULT

    def _try_fold(self, kinds: list[Kind]) -> Kind:
        try:
            return fold(kinds)
        except NoCommonPrecision as clash:
            return clash.a

    # -------------------------------------------------------- errors

    def check(self, collector: Collector) -> None:
        """Report what has no common precision, and conversions that are not written."""
        for value in self.order:
            clash = self.clashes.get(value)
            if clash is not None:
                collector.report(_clash(value, clash))
                continue
            written = self._settled(value)
            match value.op:
                case (
                    Map(fn="convert") | CellValue() | Input() | Data() | Number() | Array() | Arange() | Draw() | Seed()
                ):
                    continue
                case Assigned(tree=tree):
                    natural = self._settled_kind(
                        self.kinds[tree] if isinstance(tree, Value) else tree_kind(tree, self.kinds.__getitem__)
                    )
                case _ if _is_comparison(value):
                    continue
                case _:
                    natural = self._settled_kind(operation_kind(value, self.kinds.__getitem__))
            if natural is not None and loses_more_than_rounding(natural, written):
                collector.report(_lossy(value, natural, written))

    def _settled_kind(self, kind: Kind) -> str | None:
        if kind == "?float":
            return DEFAULT
        return None if kind.startswith("?") else kind


def _widen(demands: dict[Key, str], key: Key, asked: str) -> None:
    before = demands.get(key)
    demands[key] = asked if before is None else join(before, asked) or before


def _position_asks(slots: Iterable[SlotShape]) -> list[tuple[Value, str]]:
    return [
        (axis.position, "i32")
        for slot in slots
        for row in (slot.batch, slot.output, slot.input)
        for axis in (*row.lead, *row.trail)
        if isinstance(axis, Fixed) and isinstance(axis.position, Value)
    ]


def _seeds(graphs: list[Graph]) -> dict[Value, Value]:
    """The custom value that each seed stands for, wherever one is reachable, also from contributions of others."""
    found: dict[Value, Value] = {}
    seen: set[Value] = set()
    stack = [v for g in graphs for v in (*g.results, *g.finals.values())]
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        stack.extend(operands(value))
        if isinstance(value.op, Custom):
            found[value.op.seed] = value
            stack.extend(_custom_values(value))
    return found


def _custom_values(value: Value) -> list[Value]:
    assert isinstance(value.op, Custom)
    return [v for pair in value.op.contributions for v in pair]


def _clash(value: Value, clash: NoCommonPrecision) -> Diagnostic:
    return Diagnostic(
        "E0601",
        f"no common precision: {clash.a} and {clash.b}",
        value.origin.outer,
        f"meets {clash.a} and {clash.b}",
        helps=(f"convert one of them, for example with `{clash.b}(…)`",),
    )


def _lossy(value: Value, natural: str, written: str) -> Diagnostic:
    what = f"`{value.name}` is" if value.name else "the result is"
    return Diagnostic(
        "E0601",
        f"{what} {written}, but what is computed is {natural}",
        value.origin.outer,
        f"this is {natural}",
        notes=("a conversion that loses more than rounding is written",),
        helps=(f"write `{written}(…)` around it",),
    )
