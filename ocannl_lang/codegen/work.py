"""How much work a kernel is: its floating-point operations and the bytes that it must move, counted from its loops.

Operations: every turn of every statement counts, an addition, product, comparison or maximum as 1, an accumulation as 1 (so a
multiply-add is 2), a division, root or transcendental function and a random number as what `loops.facts.cost` says. Choices,
conversions and operations on ints are not counted.

Bytes: every position of a buffer in global memory counts once for reading and once for writing, however often it is touched; what a
kernel has written itself before it reads it is not read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ocannl_lang.codegen.llvm.types import SIZES
from ocannl_lang.graph.dtypes import is_float
from ocannl_lang.loops.facts import cost
from ocannl_lang.loops.ir import Access, Affine, Apply, Buffer, Const, Dynamic, Expr, Position, Random, Var, accesses
from ocannl_lang.loops.lower_expr import variables
from ocannl_lang.schedule.ir import Compute, Kernel, Loop, Stmt

_FREE = {"convert", "where", "stop_gradient"}
_SEVERAL = {"fma": 2, "clamp": 2, "sat01": 2}

_Box = tuple[tuple[int, int, int], ...]
"""The positions of an access: for each axis the least, the greatest and how many there are at most."""


@dataclass(frozen=True, slots=True)
class Work:
    """Operations in f32 (and narrower) and in f64, how many of the evaluated operations are functions, bytes read and written."""

    flops: int
    flops64: int
    functions: int
    read: int
    written: int

    @property
    def operations(self) -> int:
        return self.flops + self.flops64

    @property
    def bytes(self) -> int:
        return self.read + self.written


def work_of(kernel: Kernel) -> Work:
    """The work of one run of a kernel."""
    count = _Count(kernel)
    count.body(kernel.body, 1)
    read, written = count.bytes()
    return Work(count.flops["f32"], count.flops["f64"], count.functions, read, written)


@dataclass(slots=True)
class _Count:
    kernel: Kernel
    flops: dict[str, int] = field(default_factory=lambda: {"f32": 0, "f64": 0})
    functions: int = 0
    reads: dict[Buffer, dict[_Box, int]] = field(default_factory=dict[Buffer, dict[_Box, int]])
    writes: dict[Buffer, dict[_Box, int]] = field(default_factory=dict[Buffer, dict[_Box, int]])
    own: set[Buffer] = field(default_factory=set[Buffer])

    def body(self, body: Sequence[Stmt], turns: int) -> None:
        for s in body:
            if isinstance(s, Loop):
                self.body(s.body, turns * s.var.size)
            elif turns:
                self.compute(s, turns)

    def compute(self, c: Compute, turns: int) -> None:
        self._expression(c.value, turns)
        found = accesses(c.value)
        for index in c.target.index:
            if isinstance(index, Dynamic):
                self._expression(index.value, turns)
                found.extend(accesses(index.value))
        if c.accum != "set":
            self._add(c.target.buffer.prec, turns)
            found.append(c.target)
        for a in found:
            self._touch(a, self.reads)
        base = self.kernel.base(c.target.buffer)
        if c.accum == "set" and base not in self.reads:
            self.own.add(base)
        self._touch(c.target, self.writes)

    def _expression(self, value: Expr, turns: int) -> None:
        # What the tree holds twice as one object is evaluated once.
        seen: set[int] = set()
        stack = [value]
        while stack:
            e = stack.pop()
            if id(e) in seen:
                continue
            seen.add(id(e))
            match e:
                case Apply(fn=fn, args=args, prec=prec):
                    stack.extend(args)
                    precs = [prec, *(_precision(a) for a in args)]
                    if fn not in _FREE and any(is_float(p) for p in precs):
                        each = _SEVERAL.get(fn) or cost(Apply(fn, (), prec))
                        self._add("f64" if "f64" in precs else "f32", turns * each)
                        if fn not in _SEVERAL and each > 1:
                            self.functions += turns
                case Random(counter=counter, prec=prec):
                    self._add(prec, turns * cost(Random(e.dist, e.stream, None, e.position, prec)))
                    self.functions += turns
                    if counter is not None:
                        stack.append(counter)
                case Access(index=index):
                    stack.extend(i.value for i in index if isinstance(i, Dynamic))
                case Const() | Position():
                    pass

    def _add(self, prec: str, count: int) -> None:
        if is_float(prec):
            self.flops["f64" if prec == "f64" else "f32"] += count

    def _touch(self, a: Access, into: dict[Buffer, dict[_Box, int]]) -> None:
        if a.buffer not in self.kernel.spaces:
            box, count = _positions(a)
            boxes = into.setdefault(self.kernel.base(a.buffer), {})
            boxes[box] = max(count, boxes.get(box, 0))

    def bytes(self) -> tuple[int, int]:
        """Bytes read and bytes written."""
        read = 0
        for b, boxes in self.reads.items():
            count = min(b.size, sum(boxes.values()))
            if b in self.own:
                count = max(0, count - self._written(b))
            read += count * SIZES[b.prec]
        return read, sum(self._written(b) * SIZES[b.prec] for b in self.writes)

    def _written(self, b: Buffer) -> int:
        return min(b.size, sum(self.writes[b].values())) if b in self.writes else 0


def _positions(a: Access) -> tuple[_Box, int]:
    """Where an access reaches, and how many positions that are at most."""
    box: list[tuple[int, int, int]] = []
    used: dict[Var, None] = {}
    for index, size in zip(a.index, a.buffer.shape, strict=True):
        match index:
            case Affine(terms=terms):
                low, high = index.bounds()
                low, high = max(low, 0), min(high, size - 1)
                turns = math.prod(v.size for v, _ in terms)
                used.update((v, None) for v, _ in terms)
                box.append((low, high, max(0, min(high - low + 1, turns))))
            case Dynamic(value=value):
                found = variables(value)
                used.update(dict.fromkeys(found))
                box.append((0, size - 1, min(size, math.prod(v.size for v in found))))
    return tuple(box), min(math.prod(n for _, _, n in box), math.prod(v.size for v in used))


def _precision(e: Expr) -> str:
    return e.buffer.prec if isinstance(e, Access) else e.prec
