"""A kernel as the text of one LLVM function.

    void @name(ptr table, ptr slots, i64 begin, i64 end, ptr scratch)

`table` holds the addresses of the routine's buffers (entry 0: the words of the call), `slots` the kernel's own buffers as entries of
it, in the order of `Function.buffers`; the parallel loop runs from `begin` to `end`; `scratch` is memory of the thread. Equal kernels
have equal texts whatever their buffers are called, so each is compiled once.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ocannl_lang.codegen.llvm.access import compute, write_waiting
from ocannl_lang.codegen.llvm.ahead import fetch_targets
from ocannl_lang.codegen.llvm.context import Context, Lanes
from ocannl_lang.codegen.llvm.expression import evaluate
from ocannl_lang.codegen.llvm.ops import Ops
from ocannl_lang.codegen.llvm.target import PAST_ALIGN, PAST_BYTES, Target
from ocannl_lang.codegen.llvm.transpose import transposes, write_transposed
from ocannl_lang.codegen.llvm.types import SIZES, llvm_type
from ocannl_lang.codegen.llvm.writer import Writer
from ocannl_lang.loops.ir import Buffer, accesses
from ocannl_lang.schedule.ir import Compute, Kernel, Loop, Stmt

# Larger buffers of a thread do not lie on its stack.
_ON_STACK = 16 * 1024


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel's code: a function called `@kernel`. `turns`: of its parallel loop, 0 without one. `scratch`: bytes for each thread."""

    text: str
    buffers: tuple[Buffer, ...]
    turns: int
    scratch: int


def function_of(kernel: Kernel, target: Target) -> Function:
    """The function of a kernel, of its original if it has one."""
    if kernel.original is None:
        return write_kernel(kernel, target)
    f = write_kernel(kernel.original, target)
    return Function(f.text, tuple(kernel.renaming[b] for b in f.buffers), f.turns, f.scratch)


@functools.lru_cache(maxsize=4096)
def write_kernel(kernel: Kernel, target: Target) -> Function:
    """The function of a kernel."""
    past = _past(kernel, target)
    plain = _body_of(kernel, target, frozenset())
    first = kernel.body[0]
    turns = first.var.size if isinstance(first, Loop) and first.kind == "parallel" else 0
    attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{target.vector_bytes * 8}" }}'
    if not past:
        lines = [*plain.declarations, "define void @kernel" + plain.text, attributes, ""]
        return Function("\n".join(lines), plain.buffers, turns, plain.scratch)
    other = _body_of(kernel, target, past)
    lines = [
        *dict.fromkeys((*plain.declarations, *other.declarations, *_FENCES.get(target.arch, ("",))[:1])),
        "define internal void @cached" + plain.text,
        "define internal void @past" + other.text,
        *_chosen(kernel, plain.buffers, past, target),
        "!0 = !{i32 1}",
        attributes,
        "",
    ]
    return Function("\n".join(lines), plain.buffers, turns, plain.scratch)


# What makes stores past the caches visible before those that come after.
_FENCES = {"x86_64": ("declare void @llvm.x86.sse.sfence()", "call void @llvm.x86.sse.sfence()")}


def _past(kernel: Kernel, target: Target) -> frozenset[Buffer]:
    """Large buffers that a kernel only writes."""
    if target.arch not in _FENCES:
        return frozenset()
    read = {kernel.base(a.buffer) for c in _computes(kernel.body) for a in accesses(c.value)}
    read.update(kernel.base(c.target.buffer) for c in _computes(kernel.body) if c.accum != "set")
    found: set[Buffer] = set()
    for c in _computes(kernel.body):
        b = c.target.buffer
        if b not in kernel.spaces and kernel.base(b) not in read:
            if b.size * SIZES.get(b.prec, 4) >= PAST_BYTES:
                found.add(b)
    return frozenset(found)


def _chosen(kernel: Kernel, buffers: tuple[Buffer, ...], past: frozenset[Buffer], target: Target) -> list[str]:
    """The function that tells by the addresses which code runs."""
    lines = ["define void @kernel(ptr %table, ptr %slots, i64 %begin, i64 %end, ptr %scratch) #0 {", "entry:"]
    together = "0"
    bases = {kernel.base(b) for b in past}
    for k, b in enumerate(buffers):
        if b in bases:
            lines += [
                f"%a{k} = getelementptr inbounds i32, ptr %slots, i64 {k}",
                f"%s{k} = load i32, ptr %a{k}, align 4",
                f"%e{k} = getelementptr inbounds ptr, ptr %table, i32 %s{k}",
                f"%p{k} = load ptr, ptr %e{k}, align 8",
                f"%i{k} = ptrtoint ptr %p{k} to i64",
                f"%o{k} = or i64 {together}, %i{k}",
            ]
            together = f"%o{k}"
    arguments = "ptr %table, ptr %slots, i64 %begin, i64 %end, ptr %scratch"
    return [
        *lines,
        f"%low = and i64 {together}, {PAST_ALIGN - 1}",
        "%aligned = icmp eq i64 %low, 0",
        "br i1 %aligned, label %beyond, label %within",
        "beyond:",
        f"call void @past({arguments})",
        _FENCES[target.arch][1],
        "ret void",
        "within:",
        f"call void @cached({arguments})",
        "ret void",
        "}",
    ]


@dataclass(frozen=True, slots=True)
class _Body:
    declarations: tuple[str, ...]
    text: str
    buffers: tuple[Buffer, ...]
    scratch: int


def _body_of(kernel: Kernel, target: Target, past: frozenset[Buffer]) -> _Body:
    """Parameters and body of a kernel's function. `past`: what is written past the caches."""
    w = Writer()
    lanes = target.vector_bytes // max(4, _widest(kernel))
    ctx = Context(Ops(w, target), lanes, kernel.spaces, frozenset(_written(kernel.body)), evaluate, past)
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
    places, scratch = _local_memory(ctx)
    lines = [
        "(ptr %table, ptr %slots, i64 %begin, i64 %end, ptr %scratch) #0 {",
        "entry:",
        *places,
        w.text(),
        "ret void",
        "}",
    ]
    return _Body(tuple(w.declarations), "\n".join(lines), tuple(kernel.base(b) for b in ctx.arguments), scratch)


def _local_memory(ctx: Context) -> tuple[list[str], int]:
    """Where the thread's own buffers are: small ones on its stack, others in its scratch memory, of which this is how much they take."""
    lines: list[str] = []
    used = 0
    for b, n in ctx.locals.items():
        size = b.size * SIZES.get(b.prec, 4)
        if size <= _ON_STACK:
            lines.append(f"%local{n} = alloca [{b.size} x {llvm_type(b.prec)}], align 64")
        else:
            lines.append(f"%local{n} = getelementptr inbounds i8, ptr %scratch, i64 {used}")
            used += -(-size // 64) * 64
    return lines, used


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
            write_waiting(ctx)
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
    fetch_targets(ctx, loop)
    _body(ctx, loop)
    ctx.w.end_loop(opened, [ctx.registers[k].text for k in keys])
