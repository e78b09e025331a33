"""A kernel as the text of one LLVM function.

    void @name(ptr table, ptr slots, i64 begin, i64 end)

`table` holds the addresses of the routine's buffers (entry 0: the words of the call), `slots` the kernel's own buffers as entries of
it, in the order of `Function.buffers`; the parallel loop runs from `begin` to `end`. Equal kernels have equal texts whatever their
buffers are called, so each is compiled once.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ocannl_lang.codegen.llvm.access import compute
from ocannl_lang.codegen.llvm.context import Context, Lanes
from ocannl_lang.codegen.llvm.expression import evaluate
from ocannl_lang.codegen.llvm.ops import Ops
from ocannl_lang.codegen.llvm.target import Target
from ocannl_lang.codegen.llvm.transpose import transposes, write_transposed
from ocannl_lang.codegen.llvm.types import SIZES, llvm_type
from ocannl_lang.codegen.llvm.writer import Writer
from ocannl_lang.loops.ir import Buffer, accesses
from ocannl_lang.schedule.ir import Compute, Kernel, Loop, Stmt


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel's code. `body` uses `{name}` nowhere: the function is called `@kernel`. `turns`: of its parallel loop, 0 without one."""

    text: str
    buffers: tuple[Buffer, ...]
    turns: int


def function_of(kernel: Kernel, target: Target) -> Function:
    """The function of a kernel, of its original if it has one."""
    if kernel.original is None:
        return write_kernel(kernel, target)
    f = write_kernel(kernel.original, target)
    return Function(f.text, tuple(kernel.renaming[b] for b in f.buffers), f.turns)


@functools.lru_cache(maxsize=4096)
def write_kernel(kernel: Kernel, target: Target) -> Function:
    """The function of a kernel."""
    w = Writer()
    lanes = target.vector_bytes // max(4, _widest(kernel))
    ctx = Context(Ops(w, target), lanes, kernel.spaces, frozenset(_written(kernel.body)), evaluate)
    first = kernel.body[0]
    turns = first.var.size if isinstance(first, Loop) and first.kind == "parallel" else 0
    _statement(ctx, first)
    if len(kernel.body) > 1:
        label = w.begin_if() if turns else ""
        for stmt in kernel.body[1:]:
            _statement(ctx, stmt)
        if turns:
            # The rest belongs to the thread with the last share.
            last = w.pure(f"icmp eq i64 %end, {turns}", [])
            w.end_if(label, last)
    allocations = [f"%local{n} = alloca [{b.size} x {llvm_type(b.prec)}], align 64" for b, n in ctx.locals.items()]
    lines = [
        *w.declarations,
        "define void @kernel(ptr %table, ptr %slots, i64 %begin, i64 %end) #0 {",
        "entry:",
        *allocations,
        w.text(),
        "ret void",
        "}",
        f'attributes #0 = {{ nounwind "prefer-vector-width"="{target.vector_bytes * 8}" }}',
        "",
    ]
    passed = tuple(kernel.base(b) for b in ctx.arguments)
    return Function("\n".join(lines), passed, turns)


def _widest(kernel: Kernel) -> int:
    """The size of the widest number that is computed with. Ints of 64 bits mostly stand for positions and do not count."""
    widths = [4]
    for stmt in _computes(kernel.body):
        buffers = [stmt.target.buffer, *(a.buffer for a in accesses(stmt.value))]
        widths.extend(SIZES.get(b.prec, 4) for b in buffers if b.prec != "i64")
    return max(widths)


def _computes(body: tuple[Stmt, ...]) -> list[Compute]:
    found: list[Compute] = []
    for stmt in body:
        if isinstance(stmt, Compute):
            found.append(stmt)
        else:
            found.extend(_computes(stmt.body))
    return found


def _written(body: tuple[Stmt, ...]) -> list[Buffer]:
    return [c.target.buffer for c in _computes(body)]


def _statement(ctx: Context, stmt: Stmt) -> None:
    if isinstance(stmt, Compute):
        compute(ctx, stmt.target, stmt.accum, stmt.value)
        return
    var = stmt.var
    if var.size == 0:
        return
    if transposes(ctx, stmt):
        write_transposed(ctx, stmt)
        return
    match stmt.kind:
        case "unrolled":
            for i in range(var.size):
                ctx.env[var] = i
                _body(ctx, stmt)
        case "vector":
            for start in range(0, var.size, ctx.lanes):
                ctx.count = min(ctx.lanes, var.size - start)
                ctx.env[var] = Lanes(start, ctx.count)
                _body(ctx, stmt)
            ctx.count = 0
        case "serial" if var.size == 1:
            ctx.env[var] = 0
            _body(ctx, stmt)
        case "serial":
            _serial(ctx, stmt, "0", str(var.size))
        case "parallel":
            _serial(ctx, stmt, "%begin", "%end")


def _body(ctx: Context, loop: Loop) -> None:
    for stmt in loop.body:
        _statement(ctx, stmt)


def _serial(ctx: Context, loop: Loop, low: str, high: str) -> None:
    written = set(_written(loop.body))
    keys = [k for k in ctx.registers if k[0] in written]
    values = [ctx.registers[k] for k in keys]
    opened = ctx.w.begin_loop(low, high, [(llvm_type(v.prec, v.lanes), ctx.o.text(v, v.lanes)) for v in values])
    for key, value, name in zip(keys, values, opened.carried, strict=True):
        ctx.registers[key] = type(value)(name, value.prec, value.lanes)
    ctx.env[loop.var] = opened.counter
    _body(ctx, loop)
    ctx.w.end_loop(opened, [ctx.registers[k].text for k in keys])
