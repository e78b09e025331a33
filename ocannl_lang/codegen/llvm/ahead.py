"""Fetching ahead: while a long sum is taken, what it is added to comes from memory."""

from __future__ import annotations

import itertools
import math

from ocannl_lang.codegen.llvm.access import linear, prefetch, strides
from ocannl_lang.codegen.llvm.context import Context
from ocannl_lang.codegen.llvm.types import SIZES, llvm_type
from ocannl_lang.loops.ir import Access, Affine, accesses
from ocannl_lang.schedule.ir import Loop, Stmt
from ocannl_lang.schedule.trees import computes

_LINE_BYTES = 64
# What is smaller is in the second cache anyway.
_LARGE_BYTES = 64 * 1024
_LONG_SUM = 96
_MOST_ROWS = 16


def fetch_targets(ctx: Context, loop: Loop) -> None:
    """Writes, at the beginning of a turn of `loop`, fetches of what the long sum in it is added to in the end."""
    sums = [n for n, s in enumerate(loop.body) if isinstance(s, Loop) and s.kind == "serial"]
    if len(sums) != 1 or _turns(loop.body[sums[0]]) < _LONG_SUM:
        return
    later = computes(loop.body[sums[0] + 1 :])
    found = [c.target for c in later if c.accum != "set"] + [a for c in later for a in accesses(c.value)]
    for a in dict.fromkeys(found):
        if a.buffer not in ctx.spaces and a.buffer.size * SIZES[a.buffer.prec] >= _LARGE_BYTES:
            _fetch(ctx, a)


def _turns(s: Stmt) -> int:
    return s.var.size * max((_turns(x) for x in s.body), default=1) if isinstance(s, Loop) else 1


def _fetch(ctx: Context, target: Access) -> None:
    """Fetches of the lines that the written-out loops of a tile reach."""
    affine = [i for i in target.index if isinstance(i, Affine)]
    if len(affine) != len(target.index) or target.guarded:
        return
    place = linear(list(zip(affine, strides(target.buffer.shape), strict=True)))
    unit = next((v for v, c in place.terms if c == 1 and v not in ctx.env), None)
    rows = [(v, c) for v, c in place.terms if v not in ctx.env and v is not unit]
    if unit is None or math.prod(v.size for v, _ in rows) > _MOST_ROWS:
        return
    w, t = ctx.w, llvm_type(target.buffer.prec)
    known = ctx.place(Affine(tuple((v, c) for v, c in place.terms if v in ctx.env), place.offset))
    first = ctx.address(target.buffer, known)
    per_line = _LINE_BYTES // SIZES[target.buffer.prec]
    for turns in itertools.product(*(range(v.size) for v, _ in rows)):
        offset = sum(n * c for n, (_, c) in zip(turns, rows, strict=True))
        # The last element, too: the tile need not begin at a line.
        for at in (*range(0, unit.size, per_line), unit.size - 1):
            prefetch(ctx, w.pure(f"getelementptr {t}, ptr {first}, i64 {offset + at}", [first]))
