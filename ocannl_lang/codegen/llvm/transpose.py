"""Copies that exchange two loops: blocks of rows become blocks of columns in registers.

    for a in lanes (unrolled): for b (vector): target[… b …] = source[… a …]

where neighbouring turns of `a`, of which there may be fewer than lanes, read neighbouring elements and neighbouring turns of `b` write
them. The source is read along `a`, a vector at a time, and a square of vectors is turned over.
"""

from __future__ import annotations

from ocannl_lang.codegen.llvm.access import load, store_vector
from ocannl_lang.codegen.llvm.context import Context, Lanes
from ocannl_lang.codegen.llvm.types import Value, llvm_type
from ocannl_lang.loops.facts import stride
from ocannl_lang.loops.ir import Access, Affine
from ocannl_lang.schedule.ir import Compute, Loop


def transposes(ctx: Context, loop: Loop) -> bool:
    """Whether a loop is such a copy."""
    a = loop.var
    if loop.kind != "unrolled" or not ctx.lanes <= 2 * a.size <= 2 * ctx.lanes or len(loop.body) != 1:
        return False
    inner = loop.body[0]
    if not isinstance(inner, Loop) or inner.kind != "vector" or len(inner.body) != 1:
        return False
    c = inner.body[0]
    if not isinstance(c, Compute) or c.accum != "set" or not isinstance(c.value, Access):
        return False
    source, target = c.value, c.target
    if source.guarded or target.guarded or "register" in map(ctx.spaces.get, (source.buffer, target.buffer)):
        return False
    if not all(isinstance(i, Affine) for i in (*source.index, *target.index)) or source.buffer is target.buffer:
        return False
    return stride(source, a) == 1 and stride(source, inner.var) != 1 and stride(target, inner.var) == 1


def write_transposed(ctx: Context, loop: Loop) -> None:
    """The copy, a square at a time."""
    inner = loop.body[0]
    assert isinstance(inner, Loop)
    c = inner.body[0]
    assert isinstance(c, Compute) and isinstance(c.value, Access)
    lanes = ctx.lanes
    for start in range(0, inner.var.size, lanes):
        count = min(lanes, inner.var.size - start)
        rows: list[Value] = []
        ctx.count = loop.var.size
        ctx.env[loop.var] = Lanes(0, loop.var.size)
        for b in range(count):
            ctx.env[inner.var] = start + b
            rows.append(load(ctx, c.value))
        columns = _turned(ctx, rows, lanes)
        ctx.count = count
        ctx.env[inner.var] = Lanes(start, count)
        for a, column in enumerate(columns[: loop.var.size]):
            ctx.env[loop.var] = a
            store_vector(ctx, c.target, column)
    ctx.count = 0


def _turned(ctx: Context, rows: list[Value], lanes: int) -> list[Value]:
    """The columns of a square of which the first rows are given: halves exchanged at every scale."""
    prec = rows[0].prec
    t = llvm_type(prec, lanes)
    square = [*rows, *(Value("poison", prec, lanes) for _ in range(lanes - len(rows)))]
    step = lanes // 2
    while step:
        for i in range(lanes):
            if i & step:
                continue
            a, b = square[i].text, square[i + step].text
            if a == b == "poison":
                continue
            low = ", ".join(f"i32 {l if not l & step else lanes + l - step}" for l in range(lanes))
            high = ", ".join(f"i32 {l + step if not l & step else lanes + l}" for l in range(lanes))
            for k, order in ((i, low), (i + step, high)):
                text = ctx.w.pure(f"shufflevector {t} {a}, {t} {b}, <{lanes} x i32> <{order}>", [a, b])
                square[k] = Value(text, prec, lanes)
        step //= 2
    return square
