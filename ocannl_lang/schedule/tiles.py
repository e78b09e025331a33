"""How a nest runs fastest: which loop goes into vectors, which are written out beside each other, what is packed.

A tile is what one turn of the outer loops computes in registers: some vectors along one loop, times some turns of one or two other
loops. Within a sum every operand that is loaded serves the whole tile. The choice is made by a small model of the machine: two
multiply-adds and two loads in a cycle, a fixed number of registers, a latency that several sums side by side must hide.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from ocannl_lang.codegen.llvm.target import PAST_BYTES, Target
from ocannl_lang.codegen.llvm.types import SIZES
from ocannl_lang.graph.random import words_per_element
from ocannl_lang.loops.facts import cost, stride
from ocannl_lang.loops.ir import Access, Affine, Apply, Buffer, Dynamic, Expr, Random, Var, accesses
from ocannl_lang.schedule.ir import Compute, Loop, Space, Stmt
from ocannl_lang.schedule.legality import independent

_LATENCY = 4.0
_LINE = 64
_TILE_OVERHEAD = 12.0
_ROW_FACTORS = (1, 2, 3, 4, 5, 6, 8, 12)
_CHUNKS = (1, 2, 3, 4, 6, 8)
# Packing pays where each element is read at least so often.
_LEAST_REUSE = 8
_POINTWISE_WORK = 24
# So many cycles are shared by threads.
_WORTH_THREADS = 60_000
# The first cache, and how many lines of one place in it it keeps.
_FIRST_CACHE = 32 * 1024
_WAYS = 8
# The second cache; blocks of an operand stay in it.
_SECOND_CACHE = 512 * 1024
# Stretches of long sums, and how many columns are taken at a time: their block stays in the third cache.
_LONG_SUM = 512
_COLUMNS = 512
# Smaller rows of the other operand leave room for the block in the second cache; larger ones are copied in blocks themselves.
_LARGE_ROWS = 2 * 1024 * 1024
# With fewer columns copying the rows does not pay.
_MANY_COLUMNS = 160
# Copying a block pays where so many rows use it.
_LEAST_ROWS = 16
# Even copying what would stay in the second cache pays where so many rows use it.
_MANY_ROWS = 64


@dataclass(frozen=True, slots=True)
class Region:
    """A nest of loops that can be tiled.

    `chain`: loops directly inside one another, over independent turns. `sums`: loops of the sums inside them, the outermost first.
    `inner`: what runs in every turn of the sums, `outer`: what runs once in every turn of the chain.
    """

    chain: tuple[Var, ...]
    sums: tuple[Var, ...]
    inner: tuple[Compute, ...]
    outer: tuple[Compute, ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """A choice. `vector`: the loop in vectors, `chunks` of them at a time; `rows`: loops written out, with how many turns.

    `packed`: operands that are copied first, into the order in which tiles along the vector read them.
    `cycles`: the model's estimate of the whole.
    """

    vector: Var | None
    chunks: int
    rows: tuple[tuple[Var, int], ...]
    packed: tuple[Access, ...]
    cycles: float


@dataclass(frozen=True, slots=True)
class Blocking:
    """`columns` of the vector loop and `stretch` turns of the sum at a time (None: all); that block of `operand` is copied first.

    `rows`: an operand that lies badly for the rows, of which `row_block` rows at a time are copied as well.
    """

    operand: Access
    columns: int
    stretch: int | None
    rows: Access | None
    row_block: int


def region(body: Sequence[Stmt], spaces: Mapping[Buffer, Space]) -> Region | None:
    """The region that some statements are, None if they hold more than a chain of loops and one nest of sums."""
    chain: list[Var] = []
    while len(body) == 1 and isinstance(body[0], Loop) and independent(body[0], spaces):
        chain.append(body[0].var)
        body = body[0].body
    sums: list[Var] = []
    inner: list[Compute] = []
    outer: list[Compute] = []
    for s in body:
        if isinstance(s, Compute):
            outer.append(s)
            continue
        if inner:
            return None
        nest: tuple[Stmt, ...] = (s,)
        while len(nest) == 1 and isinstance(nest[0], Loop):
            sums.append(nest[0].var)
            nest = nest[0].body
        for x in nest:
            if isinstance(x, Loop) or x.accum == "set" or spaces.get(x.target.buffer) != "register":
                return None
            inner.append(x)
    return Region(tuple(chain), tuple(sums), tuple(inner), tuple(outer))


def choose(r: Region, target: Target, ready: Set[Buffer]) -> Tile:
    """The cheapest tile. `ready`: operands that are there before the kernel runs, so that they can be packed before it."""
    lanes = lanes_of(r, target)
    best: Tile | None = None
    least = math.inf
    for tile in _candidates(r, target, ready):
        time = tile.cycles
        if r.sums and _WORTH_THREADS < time < least:
            # Unequal shares of two threads count (equal ones are half of the whole), without ruling out what is better for one.
            time *= 0.4 + 1.2 * _longest_share(r, tile, lanes)
        if best is None or time < least * 0.999:
            best, least = tile, time
    assert best is not None
    return best


def _longest_share(r: Region, tile: Tile, lanes: int) -> float:
    """The longer one of two threads' shares of a region, as a part of the whole."""
    v = tile.vector
    if v is None or v not in r.chain:
        return 0.5
    width = lanes * tile.chunks
    # Of two, whatever the number: sums must not be taken in another order for it.
    blocks = blocking(r, tile, lanes, 2)
    if blocks is not None:
        return share(v.size, blocks.columns, 2)
    first, factor = outermost(r, tile, width)
    return share(first.size, factor, 2)


def outermost(r: Region, tile: Tile, width: int) -> tuple[Var, int]:
    """The loop of the chain that goes outside of all others, with how many turns of it one tile takes."""
    v = tile.vector
    if v in r.chain and v.size >= 4 * width:
        return v, width
    rows = dict(tile.rows)
    others = [x for x in r.chain if x is not v and x not in rows]
    if others:
        return others[0], 1
    if tile.rows:
        return tile.rows[0]
    return (v, width) if v in r.chain else (r.chain[0], 1)


def share(size: int, factor: int, threads: int) -> float:
    """What the thread with most to do has of `size` turns in stretches of `factor`; the last thread has the rest, too."""
    count, rest = divmod(size, factor)
    if count < 2:
        return 1.0
    return max(-(-count // threads) * factor, max(1, count // threads) * factor + rest) / size


def lanes_of(r: Region, target: Target) -> int:
    """Numbers in a vector: by the widest precision that is not an index."""
    widest = 4
    for c in (*r.inner, *r.outer):
        for a in (c.target, *accesses(c.value)):
            if a.buffer.prec != "i64":
                widest = max(widest, SIZES.get(a.buffer.prec, 4))
    return target.vector_bytes // widest


# ---------------------------------------------------------------- candidates


def _candidates(r: Region, target: Target, ready: Set[Buffer]) -> Iterator[Tile]:
    lanes = lanes_of(r, target)
    yield Tile(None, 1, (), (), _Model(r, target, lanes, None, ()).cycles(1, ()))
    for v in r.chain:
        if v.size > 1 and _spatial_vector(r, v):
            for packed in _packings(r, v, lanes, ready):
                yield from _tiles(_Model(r, target, lanes, v, packed), packed)
    for v in r.sums:
        if v.size > 1 and _sum_vector(r, v):
            for packed in _packings(r, v, lanes, ready):
                yield from _tiles(_Model(r, target, lanes, v, packed), packed)


def _tiles(model: _Model, packed: tuple[Access, ...]) -> Iterator[Tile]:
    v = model.vector
    assert v is not None
    most = -(-v.size // model.lanes)
    if not model.r.sums:
        # Side by side only what is short: long expressions fill the machine alone.
        work = sum(cost(c.value) for c in model.r.outer)
        # Random numbers come in blocks of four words, which neighbouring vectors share.
        draws = max((_blocks(c.value) for c in model.r.outer), default=1)
        least = 8 if any(large(c.target.buffer) for c in model.r.outer) else 1
        most = min(most, max(draws, least, _POINTWISE_WORK // max(1, work)))
    for rows in _rows(model):
        for chunks in _CHUNKS:
            if chunks > most and chunks > 1:
                break
            if model.fits(chunks, rows):
                yield Tile(v, chunks, rows, packed, model.cycles(chunks, rows))


def large(b: Buffer) -> bool:
    """Whether a buffer is so large that it is written past the caches, best in whole lines."""
    return b.size * SIZES.get(b.prec, 4) >= PAST_BYTES


def _blocks(expr: Expr) -> int:
    """How many vectors share a vector of random blocks; 1 without random numbers."""
    match expr:
        case Random(dist=dist, prec=prec):
            return 4 // words_per_element(dist, prec)
        case Apply(args=args):
            return max((_blocks(a) for a in args), default=1)
        case _:
            return 1


def _rows(model: _Model) -> Iterator[tuple[tuple[Var, int], ...]]:
    """No loops written out, one or two, of those for which some operand of the sum is the same in every turn."""
    yield ()
    if not model.r.sums:
        return
    shared = [v for v in model.r.chain if v is not model.vector and v.size > 1 and model.reuses(v)]
    # The longest ones; of equals the innermost, whose turns lie closest together.
    longest = sorted(shared, key=lambda v: (-v.size, -model.r.chain.index(v)))[:3]
    # The innermost one of all may go with a window that other loops share.
    shared = longest if not shared or not model.along_sum or shared[-1] in longest else [*longest, shared[-1]]
    for v in shared:
        for f in _ROW_FACTORS:
            if 1 < f <= v.size:
                yield ((v, f),)
    for n, v in enumerate(shared):
        for w in shared[n + 1 :]:
            for f in _ROW_FACTORS[:6]:
                for g in _ROW_FACTORS[:6]:
                    if 1 < f <= v.size and 1 < g <= w.size:
                        yield ((v, f), (w, g))


def _spatial_vector(r: Region, v: Var) -> bool:
    """Whether neighbouring turns of a chain loop write apart in every statement: what stores must move with it."""
    for c in (*r.inner, *r.outer):
        if not c.target.index:
            continue
        step = stride(c.target, v)
        if not step:
            return False
    return True


def _sum_vector(r: Region, v: Var) -> bool:
    """A sum over vectors: every statement of the sum reads along it, without positions from data changing the target."""
    return all(c.accum in ("add", "mul", "max", "min", "or", "and") for c in r.inner)


def _packings(r: Region, v: Var, lanes: int, ready: Set[Buffer]) -> list[tuple[Access, ...]]:
    """Nothing packed, or everything that is read often and badly along `v`."""
    found: list[Access] = []
    own = {*r.chain, *r.sums}
    for c in r.inner if r.sums else ():
        for a in accesses(c.value):
            if (
                a not in found
                and a.buffer in ready
                and packable(a, v)
                # What differs from turn to turn of a loop around is not one copy.
                and all(x in own for i in a.index if isinstance(i, Affine) for x, _ in i.terms)
                and _read_often(a, r)
                and (stride(a, v) != 1 or (v in r.chain and _far_rows(a, r)))
            ):
                found.append(a)
    return [()] if not found else [(), tuple(found)]


def _read_often(a: Access, r: Region) -> bool:
    return math.prod(x.size for x in (*r.chain, *r.sums)) >= _LEAST_REUSE * _own_turns(a)


def packable(a: Access, v: Var) -> bool:
    """Whether an operand can be copied into the order of a tile along `v`."""
    if a.guarded or any(isinstance(i, Dynamic) for i in a.index):
        return False
    seen: set[Var] = set()
    here = False
    for i in a.index:
        assert isinstance(i, Affine)
        for x, _ in i.terms:
            if x in seen:
                return False
            seen.add(x)
            here = here or x is v
    # Overlapping windows would be copied once for every window.
    return here and math.prod(x.size for x in seen) <= 2 * a.buffer.size


def _own_turns(a: Access) -> int:
    return math.prod(x.size for i in a.index if isinstance(i, Affine) for x, _ in i.terms)


def blocking(r: Region, tile: Tile, lanes: int, threads: int) -> Blocking | None:
    """Blocks for a tile whose operand is too large for the second cache, or lies badly; None where tiles alone do.

    Columns are shared by `threads`; stretches of the sum do not depend on how many there are.
    """
    v = tile.vector
    if (
        v is None
        or v not in r.chain
        or not tile.rows
        or len(r.sums) != 1
        or len(r.inner) != 1
        or r.inner[0].accum != "add"
    ):
        return None
    width = lanes * tile.chunks
    k = r.sums[0]
    size = SIZES.get(r.inner[0].target.buffer.prec, 4)
    found = [a for a in dict.fromkeys(accesses(r.inner[0].value)) if stride(a, v) and stride(a, k)]
    if len(found) != 1 or v.size < width or math.prod(x.size for x, _ in tile.rows) < _LEAST_ROWS:
        return None
    (operand,) = found
    rows = {x for x, _ in tile.rows}
    own = {x for i in operand.index if isinstance(i, Affine) for x, _ in i.terms}
    if own & rows or not packable(operand, v) or operand.buffer is r.inner[0].target.buffer:
        return None
    if v.size * k.size * size <= _SECOND_CACHE // 4:
        # One tile's columns at a time, into the first cache.
        many = math.prod(x.size for x, _ in tile.rows) >= _MANY_ROWS
        return Blocking(operand, width, None, None, 0) if many and _crowded(operand, k, size) else None
    stretch = _stretch(k.size, _LONG_SUM)
    far_back = math.prod(x.size for x, _ in tile.rows) * k.size * size >= _LARGE_ROWS
    most = _COLUMNS if far_back else _SECOND_CACHE // 2 // (size * (stretch or k.size))
    columns = _columns(v.size, width, most, threads)
    across = _across_rows(r, tile, operand, size, copied=far_back and columns >= _MANY_COLUMNS)
    return Blocking(operand, columns, stretch, across, _row_block(tile, stretch or k.size, size))


def _across_rows(r: Region, tile: Tile, operand: Access, size: int, *, copied: bool) -> Access | None:
    """The operand of the rows, where successive turns of the sum are far apart in it and rows side by side, or it is to be `copied`."""
    others = [a for a in dict.fromkeys(accesses(r.inner[0].value)) if a != operand]
    if len(others) != 1 or len(tile.rows) != 1 or not packable(others[0], tile.rows[0][0]):
        return None
    (a,), row = others, tile.rows[0][0]
    if copied and row.size >= _MANY_ROWS and not stride(a, tile.vector or row):
        return a
    far = (stride(a, r.sums[0]) or 0) * size >= 256 and r.sums[0].size >= 64
    return a if far and stride(a, row) == 1 and not stride(a, tile.vector or row) else None


def _row_block(tile: Tile, turns: int, size: int) -> int:
    """How many rows to copy at a time: whole tiles, and less than half of the second cache."""
    factor = math.prod(f for _, f in tile.rows)
    most = max(factor, min(192, 2 * _SECOND_CACHE // 5 // (turns * size)))
    return most // factor * factor


def _columns(size: int, width: int, most: int, threads: int) -> int:
    """How many columns make a block: few enough to stay in the cache, and such that threads get equal shares."""
    best, least = size, math.inf
    for c in range(width, max(width, most) + 1, width):
        cost = threads * share(size, c, threads) + abs(c - most) * 0.0005
        if cost < least:
            best, least = c, cost
    return best


def _stretch(size: int, most: int) -> int | None:
    """How many turns of a sum to take at a time; None for all."""
    if size <= most * 1.25:
        return None
    least = -(-size // most)
    return next((size // n for n in range(least, 2 * least) if size % n == 0), -(-size // least))


def _far_rows(a: Access, r: Region) -> bool:
    """Whether successive turns of a long sum read from places that fall into few sets of the cache."""
    if not r.sums or r.sums[-1].size < 96:
        return False
    step = abs(stride(a, r.sums[-1]) or 0) * SIZES.get(a.buffer.prec, 4)
    return step >= 1024 and step % 512 == 0


def _crowded(a: Access, k: Var, size: int) -> bool:
    """Whether what a sum over `k` reads of a tile's columns does not stay in the first cache, as its lines meet in few places."""
    step = abs(stride(a, k) or 0) * size
    return step >= _LINE and 2 * k.size > _FIRST_CACHE // math.gcd(step, _FIRST_CACHE // _WAYS)


# ---------------------------------------------------------------- the model


@dataclass(frozen=True, slots=True)
class _Read:
    """What one access costs: `cost` loads, for every vector or once for all (`wide`), again for every turn of the loops in `rows`.

    `lined`: loops whose turns are whole lines apart. Such loads meet in one bank of the cache, which serves one in a cycle.
    """

    cost: float
    wide: bool
    rows: frozenset[Var]
    lined: frozenset[Var] = frozenset()


@dataclass(frozen=True, slots=True)
class _Work:
    """One statement: arithmetic for each vector, and what it reads and writes."""

    operations: float
    reads: tuple[_Read, ...]


class _Model:
    """The cost of tiles of one region along one vector loop, in cycles."""

    def __init__(self, r: Region, target: Target, lanes: int, vector: Var | None, packed: tuple[Access, ...]) -> None:
        self.r = r
        self.target = target
        self.lanes = lanes
        self.vector = vector
        self.packed = packed
        self.along_sum = vector in r.sums
        seen: list[Access] = []
        self._inner = [self._work(c, seen, summed=True) for c in r.inner]
        self._outer = [self._work(c, [], summed=False) for c in r.outer]
        self._sum_turns = math.prod(x.size for x in r.sums if x is not vector)
        self._sum_cost = sum(cost(c.value) for c in r.inner)
        self._pack_cycles = sum(_own_turns(a) * self._pack_cost(a) for a in packed)

    def reuses(self, v: Var) -> bool:
        """Whether turns of `v` share an operand of the sum that costs a load."""
        return any(v not in read.rows for w in self._inner for read in w.reads)

    def _takes_all(self, chunks: int, rows: tuple[tuple[Var, int], ...]) -> bool:
        return self._used(chunks, rows) == self.target.registers

    def fits(self, chunks: int, rows: tuple[tuple[Var, int], ...]) -> bool:
        """Whether a tile's sums and operands stay in registers."""
        return self._used(chunks, rows) <= self.target.registers

    def _used(self, chunks: int, rows: tuple[tuple[Var, int], ...]) -> int:
        """How many registers a tile needs."""
        tile = math.prod(f for _, f in rows) * chunks
        if not self.r.sums or tile == 1:
            return 1
        beside = (chunks + 1) if not self.along_sum else 2 + max((f for _, f in rows), default=1)
        work = self._sum_cost
        spare = 0 if work <= 1 else 2 if work <= 4 else self.target.registers // 2
        return len(self._inner) * tile + beside + spare

    def cycles(self, chunks: int, rows: tuple[tuple[Var, int], ...]) -> float:
        """The whole region."""
        own = {v for v, _ in rows}
        total = 0.0
        parts, row_parts = self._parts(chunks), _row_parts(rows)
        for count, size in parts:
            for row_count, sizes in row_parts:
                total += count * row_count * self._tile(size, {v: s for (v, _), s in zip(rows, sizes)})
        rest = math.prod(x.size for x in self.r.chain if x is not self.vector and x not in own)
        if self._takes_all(chunks, rows):
            # No register is left to load ahead into.
            total *= 1.03
        # Every kind of tile is code of its own, to be compiled and fetched.
        total *= 1.0 + 0.02 * (len(parts) * len(row_parts) - 1)
        return total * rest + self._pack_cycles

    def _parts(self, chunks: int) -> list[tuple[int, int]]:
        """Tiles along the vector loop as (count, vectors)."""
        v = self.vector
        if v is None or self.along_sum:
            return [(1, chunks)]
        whole, rest = divmod(v.size, chunks * self.lanes)
        parts = [(whole, chunks)] if whole else []
        if rest:
            parts.append((1, -(-rest // self.lanes)))
        return parts

    def _tile(self, chunks: int, factors: dict[Var, int]) -> float:
        rows = math.prod(factors.values())
        once = sum(self._step([w], chunks, factors, rows) for w in self._outer)
        if not self._inner:
            return once + 0.2 * _TILE_OVERHEAD + rows * chunks
        steps = float(self._sum_turns)
        if self.along_sum:
            assert self.vector is not None
            steps *= -(-self.vector.size // (self.lanes * chunks))
            # Putting the lanes together.
            once = once / chunks + rows * (8.0 + chunks) * len(self._inner)
        inner = self._step(self._inner, chunks, factors, rows)
        # Few sums side by side leave gaps, and every load is a chance to wait.
        tile = rows * chunks
        inner = max(inner, _LATENCY) * (1.0 if tile >= 12 else 1.08 if tile >= 8 else 1.2)
        inner += 0.1 * sum(self._loads(read, chunks, factors) for w in self._inner for read in w.reads)
        return steps * inner + once + _TILE_OVERHEAD + tile

    def _step(self, body: Sequence[_Work], chunks: int, factors: dict[Var, int], rows: int) -> float:
        """One turn of a tile."""
        operations = rows * chunks * sum(w.operations for w in body)
        loads = sum(self._loads(read, chunks, factors) for w in body for read in w.reads)
        meeting = max((self._meeting(read, factors) for w in body for read in w.reads), default=0)
        return max(operations / 2, loads / 2, (operations + loads) / 4, meeting)

    def _meeting(self, read: _Read, factors: dict[Var, int]) -> int:
        """How many loads of a step meet in one bank."""
        own = [v for v in read.rows if factors.get(v, 1) > 1]
        if read.wide or not own or any(v not in read.lined for v in own):
            return 0
        return math.prod(factors[v] for v in own)

    def _loads(self, read: _Read, chunks: int, factors: dict[Var, int]) -> float:
        times = read.cost * chunks if read.wide else read.cost
        for v in read.rows:
            times *= factors.get(v, 1)
        return times

    def _work(self, c: Compute, seen: list[Access], *, summed: bool) -> _Work:
        fused = isinstance(c.value, Apply) and c.value.fn == "mul" and c.accum == "add"
        reads: list[_Read] = []
        for a in accesses(c.value):
            if a.buffer.shape and a not in seen:
                seen.append(a)
                reads.append(self._read(a, 1.0))
        if c.target.index and not summed:
            # Lanes whose lines meet in one place of the first cache drive each other out.
            step = stride(c.target, self.vector) if self.vector is not None else 0
            meet = step and step * SIZES.get(c.target.buffer.prec, 4) % (_FIRST_CACHE // _WAYS) == 0
            reads.append(self._read(c.target, 12.0 if meet else 1.5))
        return _Work(max(1, cost(c.value) + (0 if fused or not summed else 1)), tuple(reads))

    def _read(self, a: Access, times: float) -> _Read:
        rows = frozenset(v for v in self.r.chain if stride(a, v) != 0)
        if a.guarded:
            times *= 1.5
        v = self.vector
        step = 0 if v is None else stride(a, v)
        if step == 0:
            size = SIZES.get(a.buffer.prec, 4)
            lined = frozenset(v for v in rows if (stride(a, v) or 1) * size % _LINE == 0)
            return _Read(times * (4.0 if rows and self._scattered(a) else 1.0), False, rows, lined)
        if a in self.packed:
            return _Read(times, True, rows)
        if step == 1:
            far = self.r.sums and not self.along_sum and _far_rows(a, self.r)
            return _Read(times * (8.0 if far else 1.4 if _shifted(a) else 1.0), True, rows)
        return _Read(times * (1.5 if step == -1 else 1.5 * self.lanes), True, rows)

    def _pack_cost(self, a: Access) -> float:
        """Cycles to copy one element of a packed operand."""
        if self.vector is not None and stride(a, self.vector) == 1:
            return 0.25
        # Squares are turned in registers.
        turned = any(stride(a, x) == 1 and 2 * x.size >= self.lanes for x in (*self.r.chain, *self.r.sums))
        return 0.6 if turned else 1.2

    def _scattered(self, a: Access) -> bool:
        """Whether every turn of the sum reads another line of an operand that is larger than the second cache."""
        if not self.r.sums:
            return False
        prec = SIZES.get(a.buffer.prec, 4)
        return (
            abs(stride(a, self.r.sums[-1]) or 0) * prec >= 64
            and min(_own_turns(a), a.buffer.size) * prec > _SECOND_CACHE
        )


def _shifted(a: Access) -> bool:
    """Whether vectors along the last axis begin anywhere, as those of a window do: half of them lie in two lines of the cache."""
    last = a.index[-1]
    return isinstance(last, Affine) and len(last.terms) > 1


def _row_parts(rows: tuple[tuple[Var, int], ...]) -> list[tuple[int, tuple[int, ...]]]:
    """Tiles along the rows as (count, turns of each row)."""
    parts: list[tuple[int, tuple[int, ...]]] = [(1, ())]
    for v, f in rows:
        whole, rest = divmod(v.size, f)
        own = ([(whole, f)] if whole else []) + ([(1, rest)] if rest else [])
        parts = [(n * m, (*s, t)) for n, s in parts for m, t in own]
    return parts
