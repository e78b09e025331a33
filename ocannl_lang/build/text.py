"""A graph as text: one line for each value, with its operation, operands and shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ocannl_lang.graph import ir
from ocannl_lang.graph.ir import Graph, SlotShape, Value
from ocannl_lang.graph.order import topological
from ocannl_lang.shapes import Solution


def dump_graph(graph: Graph, solution: Solution | None = None, precisions: Mapping[Any, str] | None = None) -> str:
    """Every value that results and final versions need, operands first; shapes and precisions if they are known."""
    roots = [*graph.results, *graph.finals.values()]
    order = list(topological(roots, ir.operands))
    names = {v: f"%{i}" for i, v in enumerate(order)}
    lines: list[str] = []
    for v in order:
        what = f"{names[v]} = {_operation(v, names.__getitem__)}"
        type_text = ""
        if solution is not None:
            precision = (precisions or {}).get(v) or v.precision or ""
            type_text = f" : {precision}{solution.shape(v.shape)}"
        name = f"  # {v.name}" if v.name else ""
        lines.append(f"{what}{type_text}{name}")
    for cell, final in graph.finals.items():
        lines.append(f"store {cell.path} = {names[final]}")
    lines.append("return " + ", ".join(names[v] for v in graph.results))
    return "\n".join(lines)


def _operation(value: Value, name: Callable[[Value], str]) -> str:
    def of(values: tuple[Value, ...]) -> str:
        return ", ".join(name(v) for v in values)

    match value.op:
        case ir.CellValue(cell=cell):
            return f"{cell.kind} {cell.path}"
        case ir.Input(name=n, kind=kind):
            return f"input {n} ({kind})"
        case ir.Data(key=key):
            return f"data {key}"
        case ir.Number(value=number):
            return f"number {number if isinstance(number, (int, float)) else 'of sizes'}"
        case ir.Array(value=array):
            return f"array {list(array.shape)}"
        case ir.Arange():
            return "arange"
        case ir.Draw(dist=dist, place=place):
            return f"draw {dist} at {place}"
        case ir.Map(fn=fn, args=args):
            return f"{fn}({of(args)})"
        case ir.Product(left=left, right=right, addend=None):
            return f"product({of((left, right))})"
        case ir.Product(left=left, right=right, addend=addend):
            assert addend is not None
            return f"product({of((left, right, addend))})"
        case ir.Transpose(operand=operand):
            return f"transpose({name(operand)})"
        case ir.Reduce(accum=accum, combine=combine, args=args, slots=slots, result=result):
            notation = "; ".join(slot_text(s) for s in slots)
            return f"{accum}/{combine}{{{notation} => {slot_text(result)}}}({of(args)})"
        case ir.Stack(row=row, args=args):
            return f"stack {row}({of(args)})"
        case ir.Assigned(accum=accum, fresh=fresh, slot=slot):
            at = "" if slot is None else f"{{{slot_text(slot)}}}"
            return f"assign {accum}{' afresh' if fresh else ''}{at}({of(ir.operands(value))})"
        case ir.Custom(inner=inner):
            return f"custom({name(inner)})"
        case ir.Seed():
            return "seed"
        case ir.GradOf(of=target, backprop=backprop):
            return f"gradient of {name(target)} from {name(backprop.root)}"


def slot_text(slot: SlotShape) -> str:
    """A slot as it would be written."""
    batch, output, inputs = (_row_text(r) for r in (slot.batch, slot.output, slot.input))
    text = f"{inputs} -> {output}" if inputs else output
    return f"{batch} | {text}" if batch else text


def _row_text(row: ir.SlotRow) -> str:
    axes = [_axis_text(a) for a in row.lead]
    if row.var is not None:
        axes.append("...")
    return ", ".join([*axes, *(_axis_text(a) for a in row.trail)])


def _axis_text(axis: ir.Axis) -> str:
    def label(x: ir.Label) -> str:
        return x.key.split(":")[-1] or "_"

    match axis:
        case ir.Label():
            return label(axis)
        case ir.Fixed(position=position):
            return str(position) if isinstance(position, int) else "(…)"
        case ir.WindowAxis(stride=s, out=out, dilation=d, kernel=kernel, padded=padded):
            return f"{s}*{label(out)} {'=+' if padded else '+'} {d}*{label(kernel)}"
        case ir.StridedAxis(stride=s, label=of, offset=offset):
            return f"{s}*{label(of)} + {offset}"
        case ir.ConcatAxis(parts=parts):
            return "^".join(label(p) for p in parts)
