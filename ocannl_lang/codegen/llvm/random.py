"""Random numbers as `graph.random` defines them: threefry-4x32 with 20 rounds on vectors of 32-bit words."""

from __future__ import annotations

from ocannl_lang.codegen.llvm import math
from ocannl_lang.codegen.llvm.context import Context, Lanes, Place
from ocannl_lang.codegen.llvm.ops import Ops, const
from ocannl_lang.codegen.llvm.types import NARROW, Unsupported, Value, llvm_type
from ocannl_lang.graph.random import words_per_element
from ocannl_lang.loops.ir import Affine, Random

_ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))
_PARITY = 0x1BD11BDA


def draw(ctx: Context, random: Random) -> Value:
    """One element of a random stream in each lane."""
    o = ctx.o
    prec = random.prec
    if prec in NARROW:
        wide = Random(random.dist, random.stream, random.counter, random.position, "f32")
        return o.convert(draw(ctx, wide), prec)
    if prec not in ("f32", "f64"):
        raise Unsupported(f"random numbers of precision {prec}")
    width = words_per_element(random.dist, prec)
    count = _count(ctx, random)
    shared = _shared_blocks(ctx, random.position, width) if count.lanes == 1 else None
    if shared is not None:
        block, part = shared
        words = threefry(o, [*_words(o, block), *_words(o, count)], _key(ctx, random.stream))
        picked = [_spread(ctx, words[k::width], part) for k in range(width)]
    else:
        first = _wide_position(ctx, random.position, width)
        block = o.lshr(first, 2)
        lane = o.convert(o.band(first, const(3, "i64")), "u32")
        words = threefry(o, [*_words(o, block), *_words(o, count)], _key(ctx, random.stream))
        picked = [_pick(o, words, lane, k, width) for k in range(width)]
    if random.dist == "uniform":
        return _unit(o, picked, prec)
    u1 = o.sub(const(1.0, prec), _unit(o, picked[: width // 2], prec))
    u2 = _unit(o, picked[width // 2 :], prec)
    radius = o.intrinsic("sqrt", o.mul(math.log(o, u1), const(-2.0, prec)))
    return o.mul(radius, math.cos_of_turns(o, u2))


def threefry(o: Ops, counter: list[Value], key: list[Value]) -> list[Value]:
    """The four output words of each counter, 20 rounds."""
    parity: Value = const(_PARITY, "u32")
    for k in key:
        parity = o.bxor(parity, k)
    keys = [*key, parity]
    x = [o.add(c, k) for c, k in zip(counter, key, strict=True)]
    for r in range(20):
        left, right = _ROTATIONS[r % 8]
        a, b = (1, 3) if r % 2 == 0 else (3, 1)
        x[0] = o.add(x[0], x[a])
        x[a] = o.bxor(_rotate(o, x[a], left), x[0])
        x[2] = o.add(x[2], x[b])
        x[b] = o.bxor(_rotate(o, x[b], right), x[2])
        if r % 4 == 3:
            group = r // 4 + 1
            x = [o.add(x[i], keys[(group + i) % 5]) for i in range(4)]
            x[3] = o.add(x[3], const(group, "u32"))
    return x


def _rotate(o: Ops, x: Value, by: int) -> Value:
    return o.bor(o.shl(x, by), o.lshr(x, 32 - by))


def _wide_position(ctx: Context, position: Affine, width: int) -> Value:
    """position · width as i64."""
    o = ctx.o
    place = ctx.place(position)
    start = o.mul(ctx.number(Place(place.offset, place.base, 0)), const(width, "i64"))
    return start if not place.step else o.add(o.iota(ctx.lanes, "i64", 0, place.step * width), start)


def _shared_blocks(ctx: Context, position: Affine, width: int) -> tuple[Value, int] | None:
    """The blocks of neighbouring elements, one in each lane, and which part of these blocks the chunk is.

    A vector of blocks holds the elements of `4 / width` chunks; what they share is written once. None where the elements of a chunk do
    not begin with a block or are not neighbours.
    """
    each = 4 // width
    if not ctx.count or ctx.place(position).step != 1:
        return None
    outer = [(v, c) for v, c in position.terms if not isinstance(ctx.env[v], Lanes)]
    if position.offset % each or any(c % each for _, c in outer):
        return None
    start = next(b.start for v, _ in position.terms if isinstance(b := ctx.env[v], Lanes))
    part = start // ctx.lanes % each
    place = ctx.place(Affine(tuple(outer), position.offset + start - part * ctx.lanes))
    o = ctx.o
    first = o.lshr(ctx.number(place), each.bit_length() - 1)
    return o.add(o.iota(ctx.lanes, "i64"), first), part


def _spread(ctx: Context, sources: list[Value], part: int) -> Value:
    """Elements from the words of their blocks: of as many chunks as there are sources, number `part`."""
    lanes, each = ctx.lanes, len(sources)
    if each == 1:
        return sources[0]
    t = llvm_type("u32", lanes)
    while len(sources) > 1:
        # Lane j of a result comes from lane (part·lanes + j) / each of the source that j mod each names; pairs are joined first.
        half = len(sources) // 2
        final = len(sources) == each
        joined: list[Value] = []
        for a, b in zip(sources[:half], sources[half:], strict=True):
            order: list[str] = []
            for j in range(lanes):
                lane = (part * lanes + j) // each if final else j
                order.append(f"i32 {lane + (lanes if j % each % len(sources) >= half else 0)}")
            text = ctx.w.pure(
                f"shufflevector {t} {a.text}, {t} {b.text}, <{lanes} x i32> <{', '.join(order)}>", [a.text, b.text]
            )
            joined.append(Value(text, "u32", lanes))
        sources = joined
    return sources[0]


def _words(o: Ops, wide: Value) -> list[Value]:
    return [o.convert(wide, "u32"), o.convert(o.lshr(wide, 32), "u32")]


def _count(ctx: Context, random: Random) -> Value:
    if random.counter is not None:
        return ctx.o.convert(ctx.evaluate(ctx, random.counter), "i64")
    return ctx.call_word(1)


def _key(ctx: Context, stream: int) -> list[Value]:
    seed = ctx.call_word(0)
    return [*_words(ctx.o, seed), const(stream & 0xFFFFFFFF, "u32"), const(stream >> 32 & 0xFFFFFFFF, "u32")]


def _pick(o: Ops, words: list[Value], lane: Value, k: int, width: int) -> Value:
    """Word `lane + k`, where `lane` is a multiple of the width."""
    result = words[k]
    for at in range(width, 4, width):
        result = o.select(o.compare("eq", lane, const(at, "u32")), words[at + k], result)
    return result


def _unit(o: Ops, words: list[Value], prec: str) -> Value:
    """A number in [0, 1)."""
    if prec == "f32":
        whole = Value(o.lshr(words[0], 8).text, "i32", words[0].lanes)
        return o.mul(o.convert(whole, "f32"), const(2.0**-24, "f32"))
    high, low = o.convert(words[1], "i64"), o.convert(words[0], "i64")
    bits = o.bor(o.shl(high, 21), o.lshr(low, 11))
    return o.mul(o.convert(bits, "f64"), const(2.0**-53, "f64"))
