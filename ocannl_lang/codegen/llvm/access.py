"""Reading and writing buffers: constant strides, guards, positions from data, lanes.

Conditions come in two kinds. What holds for all lanes alike clamps a position to 0 where it fails, and the value is selected
afterwards; a store is put under a branch. What differs between lanes becomes the mask of a masked load, gather, store or scatter.
"""

from __future__ import annotations

from dataclasses import dataclass

from ocannl_lang.codegen.llvm.context import Context, Place
from ocannl_lang.codegen.llvm.ops import const
from ocannl_lang.codegen.llvm.primitives import accumulate
from ocannl_lang.codegen.llvm.target import PAST_ALIGN, PAST_BYTES
from ocannl_lang.codegen.llvm.types import SIZES, Value, llvm_type, suffix
from ocannl_lang.graph.primitives import neutral
from ocannl_lang.loops.ir import Access, Accum, Affine, Apply, Buffer, Dynamic, Expr, Var

_I32 = 2**31
_AHEAD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class _Where:
    """Where an access goes: its affine part, positions of single lanes (a vector to add, or None), and its conditions."""

    place: Place
    scattered: Value | None
    uniform: Value | None
    lanewise: Value | None


def strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Distances between neighbours along each axis, in elements."""
    result = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        result[i] = result[i + 1] * shape[i + 1]
    return tuple(result)


def linear(index: list[tuple[Affine, int]]) -> Affine:
    """Σ stride·position."""
    found: dict[Var, int] = {}
    offset = 0
    for affine, stride in index:
        offset += affine.offset * stride
        for var, c in affine.terms:
            found[var] = found.get(var, 0) + c * stride
    return Affine(tuple((v, c) for v, c in found.items() if c), offset)


# ---------------------------------------------------------------- reading


def load(ctx: Context, access: Access) -> Value:
    """The value of an operand, a vector where it differs between lanes."""
    buffer = access.buffer
    if ctx.spaces.get(buffer) == "register":
        return _register(ctx, access)
    if 0 in buffer.shape:
        return const(access.fill, buffer.prec)
    where = _where(ctx, access)
    value = _load_at(ctx, buffer, where, access.fill)
    if where.uniform is not None:
        value = ctx.o.select(where.uniform, value, const(access.fill, buffer.prec))
    return value


def _load_at(ctx: Context, buffer: Buffer, where: _Where, fill: float | int) -> Value:
    o, place, lanes = ctx.o, where.place, ctx.lanes
    p = ctx.address(buffer, place)
    if where.scattered is not None or (where.lanewise is not None and place.step not in (0, 1)):
        return _gather(ctx, buffer, p, where, fill)
    if place.step == 1:
        mask = where.lanewise
        if ctx.partial:
            mask = o.both(mask, o.mask(ctx.count, lanes))
        if mask is None:
            return _vector_load(ctx, buffer, p)
        return _masked_load(ctx, buffer, p, mask, fill)
    if place.step == 0:
        value = _scalar_load(ctx, buffer, p)
        return value if where.lanewise is None else o.select(where.lanewise, value, const(fill, buffer.prec))
    if place.step == -1 and not ctx.partial:
        first = ctx.w.pure(f"getelementptr inbounds {llvm_type(buffer.prec)}, ptr {p}, i64 {1 - lanes}", [p])
        return _reversed(ctx, _vector_load(ctx, buffer, first))
    parts: list[Value] = []
    for i in range(ctx.count):
        q = (
            p
            if i == 0
            else ctx.w.pure(f"getelementptr inbounds {llvm_type(buffer.prec)}, ptr {p}, i64 {i * place.step}", [p])
        )
        parts.append(_scalar_load(ctx, buffer, q))
    return o.gathered(parts, lanes)


def _scalar_load(ctx: Context, buffer: Buffer, p: str) -> Value:
    depth, tag = ctx.tag(buffer)
    t = llvm_type(buffer.prec)
    return Value(ctx.w.pure(f"load {t}, ptr {p}, align {SIZES[buffer.prec]}", [p], depth, tag), buffer.prec)


def _vector_load(ctx: Context, buffer: Buffer, p: str) -> Value:
    depth, tag = ctx.tag(buffer)
    t = llvm_type(buffer.prec, ctx.lanes)
    if ctx.past and buffer not in ctx.spaces and buffer.size * SIZES[buffer.prec] >= PAST_BYTES:
        # Where results go past the caches, the machine does not always see by itself what is read next.
        q = ctx.w.pure(f"getelementptr i8, ptr {p}, i64 {_AHEAD_BYTES}", [p])
        prefetch(ctx, q)
    return Value(ctx.w.pure(f"load {t}, ptr {p}, align {SIZES[buffer.prec]}", [p], depth, tag), buffer.prec, ctx.lanes)


def prefetch(ctx: Context, p: str) -> None:
    """Asks for the line at an address, which need not be a valid one."""
    ctx.w.declare("void", "llvm.prefetch.p0", ["ptr", "i32 immarg", "i32 immarg", "i32 immarg"])
    ctx.w.line(f"call void @llvm.prefetch.p0(ptr {p}, i32 0, i32 3, i32 1)")


def _masked_load(ctx: Context, buffer: Buffer, p: str, mask: Value, fill: float | int) -> Value:
    lanes, prec = ctx.lanes, buffer.prec
    t, m = llvm_type(prec, lanes), llvm_type("bool", lanes)
    name = f"llvm.masked.load.{suffix(prec, lanes)}.p0"
    ctx.w.declare(t, name, ["ptr", m, t])
    otherwise = ctx.o.text(const(fill, prec), lanes)
    depth, tag = ctx.tag(buffer)
    call = f"call {t} @{name}(ptr align {SIZES[prec]} {p}, {m} {mask.text}, {t} {otherwise})"
    return Value(ctx.w.pure(call, [p, mask.text], depth, tag), prec, lanes)


def _gather(ctx: Context, buffer: Buffer, p: str, where: _Where, fill: float | int) -> Value:
    o, lanes, prec = ctx.o, ctx.lanes, buffer.prec
    mask = where.lanewise
    if ctx.partial or mask is None:
        mask = o.both(mask, o.mask(ctx.count, lanes))
    assert mask is not None
    pointers = _pointers(ctx, buffer, p, where)
    t, m = llvm_type(prec, lanes), llvm_type("bool", lanes)
    name = f"llvm.masked.gather.{suffix(prec, lanes)}.v{lanes}p0"
    ctx.w.declare(t, name, [f"<{lanes} x ptr>", m, t])
    depth, tag = ctx.tag(buffer)
    otherwise = o.text(const(fill, prec), lanes)
    call = f"call {t} @{name}(<{lanes} x ptr> align {SIZES[prec]} {pointers}, {m} {mask.text}, {t} {otherwise})"
    return Value(ctx.w.pure(call, [pointers, mask.text], depth, tag), prec, lanes)


def _pointers(ctx: Context, buffer: Buffer, p: str, where: _Where) -> str:
    o, lanes = ctx.o, ctx.lanes
    prec = "i32" if buffer.size < _I32 else "i64"
    index = where.scattered
    if where.place.step:
        steps = o.iota(lanes, prec, 0, where.place.step)
        index = steps if index is None else o.add(index, steps)
    assert index is not None
    t = llvm_type(buffer.prec)
    it = llvm_type(index.prec, lanes)
    return ctx.w.pure(f"getelementptr {t}, ptr {p}, {it} {index.text}", [p, index.text])


def _reversed(ctx: Context, v: Value) -> Value:
    t = llvm_type(v.prec, v.lanes)
    order = ", ".join(f"i32 {v.lanes - 1 - i}" for i in range(v.lanes))
    return Value(
        ctx.w.pure(f"shufflevector {t} {v.text}, {t} poison, <{v.lanes} x i32> <{order}>", [v.text]), v.prec, v.lanes
    )


def _register(ctx: Context, access: Access) -> Value:
    return ctx.registers[_register_key(ctx, access)]


def _register_key(ctx: Context, access: Access) -> tuple[Buffer, int]:
    parts = [(i, s) for i, s in zip(access.index, strides(access.buffer.shape), strict=True) if isinstance(i, Affine)]
    place = ctx.place(linear(parts))
    assert place.base is None, "a register must have a constant position"
    return access.buffer, place.offset


# ---------------------------------------------------------------- positions and conditions


def _where(ctx: Context, access: Access) -> _Where:
    o = ctx.o
    buffer = access.buffer
    affine: list[tuple[Affine, int]] = []
    extra: list[Value] = []
    scattered: Value | None = None
    uniform: Value | None = None
    lanewise: Value | None = None
    small = buffer.size < _I32
    guarded = access.guarded or any(isinstance(i, Dynamic) for i in access.index)
    for index, size, stride in zip(access.index, buffer.shape, strides(buffer.shape), strict=True):
        match index:
            case Affine():
                condition = _in_range(ctx, index, size) if guarded else None
                if condition is None or condition.lanes > 1:
                    affine.append((index, stride))
                    lanewise = o.both(lanewise, condition)
                    continue
                uniform = o.both(uniform, condition)
                place = ctx.place(index)
                at = o.select(condition, ctx.number(Place(place.offset, place.base, 0)), const(0, "i64"))
                extra.append(o.mul(at, const(stride, "i64")))
            case Dynamic(value=expr):
                v = ctx.evaluate(ctx, expr)
                wide = v if v.prec == "i64" else o.convert(v, "i64" if v.lanes == 1 or not small else "i32")
                condition = _below(ctx, wide, size)
                if v.lanes == 1:
                    uniform = o.both(uniform, condition)
                    extra.append(
                        o.mul(o.select(condition, o.convert(wide, "i64"), const(0, "i64")), const(stride, "i64"))
                    )
                else:
                    lanewise = o.both(lanewise, condition)
                    part = o.mul(o.convert(wide, "i32" if small else "i64"), const(stride, "i32" if small else "i64"))
                    scattered = part if scattered is None else o.add(scattered, part)
    place = ctx.place(linear(affine))
    for part in extra:
        place = Place(place.offset, part if place.base is None else o.add(place.base, part), place.step)
    return _Where(place, scattered, uniform, lanewise)


def _in_range(ctx: Context, index: Affine, size: int) -> Value | None:
    """Whether an affine position is within its axis, None where it always is."""
    low, high = index.bounds()
    if low >= 0 and high < size:
        return None
    o = ctx.o
    place = ctx.place(index)
    if place.step == 0:
        return _below(ctx, ctx.number(place), size)
    prec = "i32" if low > -_I32 and high < _I32 and size < _I32 else "i64"
    start = o.convert(ctx.number(Place(place.offset, place.base, 0)), prec)
    position = o.add(o.iota(ctx.lanes, prec, 0, place.step), start)
    return _below(ctx, position, size)


def _below(ctx: Context, v: Value, size: int) -> Value:
    """0 ≤ v < size."""
    o = ctx.o
    limit = 2 ** (8 * SIZES[v.prec] - 1)
    if size >= limit:
        return o.compare("ge", v, const(0, v.prec))
    lanes = v.lanes
    x, y = o.text(v, lanes), o.text(const(size, v.prec), lanes)
    return Value(ctx.w.pure(f"icmp ult {llvm_type(v.prec, lanes)} {x}, {y}", [x, y]), "bool", lanes)


# ---------------------------------------------------------------- writing


def compute(ctx: Context, target: Access, accum: Accum, expr: Expr) -> None:
    """target (accum)= expr at the current turn."""
    if ctx.spaces.get(target.buffer) == "register":
        _compute_register(ctx, target, accum, expr)
        return
    if 0 in target.buffer.shape:
        return
    if accum == "set" and target.buffer in ctx.past and _whole_vector(ctx, target):
        _store_past(ctx, target, ctx.evaluate(ctx, expr))
        return
    where = _where(ctx, target)
    if where.uniform is None:
        _compute_memory(ctx, target, where, accum, expr)
        return
    label = ctx.w.begin_if()
    _compute_memory(ctx, target, where, accum, expr)
    ctx.w.end_if(label, where.uniform.text)


def _combined(ctx: Context, accum: Accum, old: Value, expr: Expr) -> Value:
    """`old` (accum)= expr, with a fused multiply-add where it is a sum of products."""
    if accum == "add" and isinstance(expr, Apply) and expr.fn == "mul" and expr.prec in ("f32", "f64"):
        a, b = (ctx.evaluate(ctx, x) for x in expr.args)
        if max(a.lanes, b.lanes) <= old.lanes:
            return ctx.o.fma(a, b, old)
    return accumulate(ctx.o, accum, old, ctx.evaluate(ctx, expr))


def _compute_register(ctx: Context, target: Access, accum: Accum, expr: Expr) -> None:
    key = _register_key(ctx, target)
    parts = [(i, s) for i, s in zip(target.index, strides(target.buffer.shape), strict=True) if isinstance(i, Affine)]
    across = ctx.place(linear(parts)).step
    # A chunk that is partial and stands before other lanes of the register must leave those as they are.
    kept = bool(across) and ctx.partial and accum != "set" and _lanes_after(ctx, target)
    if ctx.count and not across and accum != "set":
        value = accumulate(ctx.o, accum, ctx.registers[key], reduced(ctx, accum, ctx.evaluate(ctx, expr)))
    elif accum == "set":
        value = ctx.evaluate(ctx, expr)
    else:
        value = _combined(ctx, accum, ctx.registers[key], expr)
    if kept:
        value = ctx.o.select(ctx.o.mask(ctx.count, ctx.lanes), value, ctx.registers[key])
    if across:
        value = ctx.o.splat(value, ctx.lanes)
    elif value.text[0] != "%":
        value = Value(value.text, value.prec)
    ctx.registers[key] = value


def store_vector(ctx: Context, target: Access, value: Value) -> None:
    """target = value, an access without conditions."""
    _store(ctx, target.buffer, _where(ctx, target), value)


def _lanes_after(ctx: Context, target: Access) -> bool:
    last = target.index[-1]
    assert isinstance(last, Affine)
    return ctx.place(last).offset + ctx.count < target.buffer.shape[-1]


def _compute_memory(ctx: Context, target: Access, where: _Where, accum: Accum, expr: Expr) -> None:
    o, buffer = ctx.o, target.buffer
    step = where.place.step
    if ctx.count and step == 0 and where.scattered is None and where.lanewise is None:
        value = ctx.evaluate(ctx, expr)
        value = o.lane(value, ctx.count - 1) if accum == "set" else reduced(ctx, accum, value)
        p = ctx.address(buffer, where.place)
        if accum != "set":
            value = accumulate(o, accum, _scalar_load(ctx, buffer, p), value)
        _store_scalar(ctx, buffer, p, value)
    elif accum == "set":
        _store(ctx, buffer, where, ctx.evaluate(ctx, expr))
    else:
        old = _load_at(ctx, buffer, where, 0)
        _store(ctx, buffer, where, _combined(ctx, accum, old, expr))


def _store(ctx: Context, buffer: Buffer, where: _Where, value: Value) -> None:
    o, place = ctx.o, where.place
    lanes = ctx.lanes if ctx.count else 1
    p = ctx.address(buffer, place)
    if lanes == 1:
        _store_scalar(ctx, buffer, p, value)
        return
    value = o.splat(value, lanes)
    t, m = llvm_type(buffer.prec, lanes), llvm_type("bool", lanes)
    mask = where.lanewise
    if ctx.partial:
        mask = o.both(mask, o.mask(ctx.count, lanes))
    align = SIZES[buffer.prec]
    if where.scattered is None and place.step == 1:
        if mask is None:
            ctx.w.line(f"store {t} {value.text}, ptr {p}, align {align}")
        elif where.lanewise is None and ctx.o.target.vector_bytes < 64:
            _store_pieces(ctx, buffer, p, value)
        else:
            name = f"llvm.masked.store.{suffix(buffer.prec, lanes)}.p0"
            ctx.w.declare("void", name, [t, "ptr", m])
            ctx.w.line(f"call void @{name}({t} {value.text}, ptr align {align} {p}, {m} {mask.text})")
    elif where.scattered is None and where.lanewise is None:
        scalar = llvm_type(buffer.prec)
        for i in range(ctx.count):
            q = p if i == 0 else ctx.w.pure(f"getelementptr inbounds {scalar}, ptr {p}, i64 {i * place.step}", [p])
            ctx.w.line(f"store {scalar} {o.lane(value, i).text}, ptr {q}, align {align}")
    else:
        mask = mask or o.mask(lanes, lanes)
        pointers = _pointers(ctx, buffer, p, where)
        name = f"llvm.masked.scatter.{suffix(buffer.prec, lanes)}.v{lanes}p0"
        ctx.w.declare("void", name, [t, f"<{lanes} x ptr>", m])
        ctx.w.line(f"call void @{name}({t} {value.text}, <{lanes} x ptr> align {align} {pointers}, {m} {mask.text})")
    ctx.stored(buffer)


def _whole_vector(ctx: Context, target: Access) -> bool:
    """Whether a store fills a vector that begins at a multiple of its size from the beginning of the buffer, and is not too short."""
    if ctx.count != ctx.lanes or target.guarded or ctx.lanes * SIZES[target.buffer.prec] % PAST_ALIGN:
        return False
    parts = [(i, s) for i, s in zip(target.index, strides(target.buffer.shape), strict=True) if isinstance(i, Affine)]
    if len(parts) != len(target.index):
        return False
    place = linear(parts)
    inside = all(c % ctx.lanes == 0 for v, c in place.terms if isinstance(ctx.env[v], str))
    at = ctx.place(place)
    return inside and at.step == 1 and at.offset % ctx.lanes == 0


def _store_past(ctx: Context, target: Access, value: Value) -> None:
    p = ctx.address(target.buffer, _where(ctx, target).place)
    size = SIZES[target.buffer.prec]
    lanes = PAST_ALIGN // size
    v = ctx.o.splat(value, ctx.lanes)
    whole, t = llvm_type(target.buffer.prec, ctx.lanes), llvm_type(target.buffer.prec, lanes)
    for start in range(0, ctx.lanes, lanes):
        items = ", ".join(f"i32 {start + i}" for i in range(lanes))
        part = f"shufflevector {whole} {v.text}, {whole} poison, <{lanes} x i32> <{items}>"
        q = p if start == 0 else ctx.w.pure(f"getelementptr inbounds i8, ptr {p}, i64 {start * size}", [p])
        # Stores wait until the vector loop is written, so that the parts of a line leave together.
        at = ctx.w.pure(part, [v.text])
        ctx.waiting.append(f"store {t} {at}, ptr {q}, align {PAST_ALIGN}, !nontemporal !0")
    ctx.stored(target.buffer)


def write_waiting(ctx: Context) -> None:
    """Writes the stores that wait."""
    for line in ctx.waiting:
        ctx.w.line(line)
    ctx.waiting.clear()


def _store_pieces(ctx: Context, buffer: Buffer, p: str, value: Value) -> None:
    """The first lanes of a vector in pieces of powers of two: masked stores are slow on most machines."""
    t, scalar = llvm_type(buffer.prec, value.lanes), llvm_type(buffer.prec)
    done = 0
    while done < ctx.count:
        width = 1 << ((ctx.count - done).bit_length() - 1)
        q = p if done == 0 else ctx.w.pure(f"getelementptr inbounds {scalar}, ptr {p}, i64 {done}", [p])
        if width == 1:
            piece, pt = ctx.o.lane(value, done).text, scalar
        else:
            items = ", ".join(f"i32 {done + i}" for i in range(width))
            pt = llvm_type(buffer.prec, width)
            piece = ctx.w.pure(f"shufflevector {t} {value.text}, {t} poison, <{width} x i32> <{items}>", [value.text])
        ctx.w.line(f"store {pt} {piece}, ptr {q}, align {SIZES[buffer.prec]}")
        done += width


def _store_scalar(ctx: Context, buffer: Buffer, p: str, value: Value) -> None:
    ctx.w.line(f"store {llvm_type(buffer.prec)} {value.text}, ptr {p}, align {SIZES[buffer.prec]}")
    ctx.stored(buffer)


def reduced(ctx: Context, accum: Accum, value: Value) -> Value:
    """The lanes of a value combined, always in the same order: halves onto halves."""
    o = ctx.o
    v = o.splat(value, ctx.lanes)
    if ctx.partial:
        v = o.select(o.mask(ctx.count, ctx.lanes), v, const(neutral(accum, v.prec), v.prec))
    while v.lanes > 1:
        half = v.lanes // 2
        low, high = _half(ctx, v, 0), _half(ctx, v, half)
        v = accumulate(o, accum, low, high)
    return v


def _half(ctx: Context, v: Value, start: int) -> Value:
    half = v.lanes // 2
    if half == 1:
        return ctx.o.lane(v, start)
    t = llvm_type(v.prec, v.lanes)
    items = ", ".join(f"i32 {start + i}" for i in range(half))
    return Value(
        ctx.w.pure(f"shufflevector {t} {v.text}, {t} poison, <{half} x i32> <{items}>", [v.text]), v.prec, half
    )
