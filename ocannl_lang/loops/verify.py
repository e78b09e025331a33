"""The rules of loop programs, checked. Tests call it after every pass."""

from __future__ import annotations

from collections.abc import Sequence

from ocannl_lang.graph.primitives import PRIMITIVES
from ocannl_lang.loops.facts import covers
from ocannl_lang.loops.ir import Access, Apply, Buffer, Dynamic, Expr, Index, Position, Program, Random, Var
from ocannl_lang.loops.lower_expr import precision

_OUTSIDE = ("input", "param", "state", "data", "const")


def verify(program: Program) -> None:
    """Raises AssertionError where a program breaks a rule of `loops.ir`."""
    written: set[Buffer] = set()
    for a in program.assigns:
        b = a.target.buffer
        assert b.role == "temp", f"{b.name} is written and is {b.role}"
        assert len(set(a.loops)) == len(a.loops), "a loop stands twice"
        assert precision(a.value) == b.prec, f"{b.name} is {b.prec}, its value {precision(a.value)}"
        assert a.fresh or b in written or covers(a), f"the first assignment to {b.name} does not write all of it"
        _expr(a.value, a.loops, written)
        _access(a.target, a.loops, written, target=True)
        written.add(b)
    for b in program.outputs:
        assert b.role != "temp" or b in written, f"result {b.name} is never written"
    for persistent, final in program.stores:
        assert persistent.role in ("param", "state"), f"{persistent.name} is stored to and is {persistent.role}"
        assert final.role != "temp" or final in written, f"{final.name} is stored and never written"
        assert persistent.shape == final.shape and persistent.prec == final.prec


def _expr(expr: Expr, loops: Sequence[Var], written: set[Buffer]) -> None:
    match expr:
        case Access():
            _access(expr, loops, written, target=False)
        case Position(index=index):
            _index(index, loops, written)
        case Apply(fn=fn, args=args, prec=prec):
            primitive = PRIMITIVES[fn]
            assert primitive.arity == len(args), f"{fn} takes {primitive.arity} operands"
            if primitive.rule in ("join", "float") and fn != "convert":
                assert all(precision(x) == prec for x in args), f"operands of {fn} are not {prec}"
            if primitive.rule == "compare":
                assert prec == "u8" and precision(args[0]) == precision(args[1]), f"operands of {fn} differ"
            for x in args:
                _expr(x, loops, written)
        case Random(counter=counter, position=position):
            _index(position, loops, written)
            if counter is not None:
                _expr(counter, loops, written)
        case _:
            pass


def _access(a: Access, loops: Sequence[Var], written: set[Buffer], *, target: bool) -> None:
    b = a.buffer
    assert target or b.role in _OUTSIDE or b in written, f"{b.name} is read before it is written"
    assert len(a.index) == len(b.shape), f"{b.name} has {len(b.shape)} axes"
    empty = any(v.size == 0 for v in loops)
    for index, size in zip(a.index, b.shape, strict=True):
        _index(index, loops, written)
        if isinstance(index, Dynamic):
            assert a.guarded, f"a position of {b.name} comes from data without a guard"
        elif not a.guarded and not empty:
            low, high = index.bounds()
            assert low >= 0 and high < size, f"a position of {b.name} is out of range"


def _index(index: Index, loops: Sequence[Var], written: set[Buffer]) -> None:
    if isinstance(index, Dynamic):
        _expr(index.value, loops, written)
        return
    assert all(v in loops and c for v, c in index.terms), "a position depends on a loop that is not there"
