"""Chains of assignments to one buffer become fewer: a fill before a sum, a sum of pointwise parts, a set after a set."""

from __future__ import annotations

from ocannl_lang.graph.primitives import neutral
from ocannl_lang.loops.facts import nodes, pointwise, reads, writers
from ocannl_lang.loops.ir import Affine, Apply, Assign, Buffer, Const, Expr, Program, Var
from ocannl_lang.loops.lower_expr import substitute

_MOST_NODES = 120
_OPERATIONS = {"add": "add", "mul": "mul", "max": "max", "min": "min"}


def merge_chains(program: Program) -> Program:
    """Neighbouring assignments to one buffer, with nothing in between that reads it, made one where they can be."""
    assigns: list[Assign] = []
    last: dict[Buffer, int] = {}
    written = writers(program)
    for a in program.assigns:
        b = a.target.buffer
        at = last.get(b)
        if at is not None:
            merged = _merged(assigns[at], a)
            # The first one moves down to the second: what it reads must be the same there.
            if merged is not None and all(len(written.get(r.buffer, ())) <= 1 for r in reads(assigns[at])):
                assigns.pop(at)
                last = {k: n - 1 if n > at else n for k, n in last.items() if n != at}
                a = merged
        for r in reads(a):
            last.pop(r.buffer, None)
        last[b] = len(assigns)
        assigns.append(a)
    return Program(program.name, program.inputs, program.outputs, assigns, program.stores)


def _merged(first: Assign, second: Assign) -> Assign | None:
    """One assignment that does what two do in a row, or None."""
    if second.fresh or any(r.buffer is first.target.buffer for r in reads(second)):
        return None
    if not pointwise(first) or not (first.fresh or first.accum == "set"):
        return None
    prec = first.target.buffer.prec
    if second.accum != "set" and _is_number(first.value, neutral(second.accum, prec)):
        return Assign(second.target, second.accum, True, second.loops, second.value, second.origin)
    if not pointwise(second):
        return None
    if second.accum == "set":
        return second
    fn = _OPERATIONS.get(second.accum)
    if fn is None or first.accum not in ("set", *_OPERATIONS):
        return None
    by = _aligned(first, second)
    if by is None or nodes(first.value) + nodes(second.value) > _MOST_NODES:
        return None
    value = Apply(fn, (substitute(first.value, by), second.value), prec)
    return Assign(second.target, "set", True, second.loops, value, second.origin)


def _is_number(expr: Expr, value: float | int) -> bool:
    return isinstance(expr, Const) and expr.value == value


def _aligned(first: Assign, second: Assign) -> dict[Var, Affine] | None:
    """The loops of the first as those of the second that reach the same position."""
    by: dict[Var, Affine] = {v: Affine() for v in first.loops if v.size == 1}
    for a, b in zip(first.target.index, second.target.index, strict=True):
        if not isinstance(a, Affine) or not isinstance(b, Affine) or len(a.terms) > 1:
            return None
        if a.terms:
            by[a.terms[0][0]] = b
    return by if all(v in by for v in first.loops) else None
