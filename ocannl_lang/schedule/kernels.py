"""Kernels of a group of assignments: the shared tree, then for each region of it the transforms that its tile asks for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ocannl_lang.codegen.llvm.target import Target
from ocannl_lang.codegen.llvm.types import SIZES
from ocannl_lang.graph.primitives import neutral
from ocannl_lang.loops.facts import cost, covers, stride
from ocannl_lang.loops.ir import Access, Affine, Assign, Buffer, Const, Dynamic, Var, accesses
from ocannl_lang.loops.lower_expr import substitute_index
from ocannl_lang.schedule.collapse import collapse
from ocannl_lang.schedule.ir import Compute, Kernel, Loop, Space, Stmt
from ocannl_lang.schedule.legality import IllegalTransform, apart, independent
from ocannl_lang.schedule.local import with_local
from ocannl_lang.schedule.nests import Member, Tree, member, named, tree
from ocannl_lang.schedule.tiles import Blocking, Region, Tile, blocking, choose, lanes_of, large, outermost, region
from ocannl_lang.schedule.transforms import Block, Lanes, Mark, Order, Packed, Sink, Split, Stage, Transform, apply
from ocannl_lang.schedule.trees import computes, loop_vars, written

# Fewer cycles than this are not worth waking a thread for.
PARALLEL_CYCLES = 12_000
# How many rows of a matrix are read side by side.
_STREAMED_ROWS = 8
# How many columns of it are read in one go; their sums stay in the first cache meanwhile.
_STREAMED_COLUMNS = 4096
# Sums of so few turns are written out.
_SHORT_SUM = 9
# So many turns of a long sum are written out, where the sum is not short and runs often.
_TURNS_BESIDE = (4, 3, 2, 5)
_LEAST_TURNS = 16
_WORTH_CODE = 20_000


def group_kernels(assigns: Sequence[Assign], needed: Iterable[Buffer], target: Target) -> list[Kernel]:
    """The kernels that carry out a group of assignments, in order. `needed`: buffers that are read outside of the group."""
    kernels: list[Kernel] = []
    members: list[Member] = []
    joined = collapse(assigns)
    wanted = set(needed)
    for a in joined.assigns:
        b = a.target.buffer
        empty = any(v.size == 0 for v in a.loops)
        if a.fresh and 0 not in b.shape and (empty or not covers(a)):
            kernels.extend(_scheduled(tree([member(_fill(b, a))], [b]), joined.views, target))
        if not empty and 0 not in b.shape:
            members.append(member(a))
    if members:
        outside = [b for a in joined.assigns if joined.views.get(b := a.target.buffer, b) in wanted]
        whole = with_local(tree(members, outside), set(outside))
        kernels.extend(_scheduled(whole, joined.views, target))
    return kernels


def _fill(b: Buffer, a: Assign) -> Assign:
    loops = tuple(Var(f"i{k}", s) for k, s in enumerate(b.shape))
    place = Access(b, tuple(Affine.of(v) for v in loops))
    return Assign(place, "set", True, loops, Const(neutral(a.accum, b.prec), b.prec))


@dataclass(frozen=True, slots=True)
class _Steps:
    """The transforms of a region, and the kernels that make the copies it reads."""

    steps: Sequence[Transform]
    before: tuple[Kernel, ...] = ()


@dataclass(slots=True)
class _Plan:
    """What is done to the regions of a kernel, and an estimate of its cycles. `made`: what the kernel itself writes."""

    regions: list[_Steps] = field(default_factory=list[_Steps])
    cycles: float = 0.0
    views: dict[Buffer, Buffer] = field(default_factory=dict[Buffer, Buffer])
    made: frozenset[Buffer] = frozenset()


def _scheduled(t: Tree, views: dict[Buffer, Buffer], target: Target) -> list[Kernel]:
    if not t.body:
        return []
    plan = _Plan(views=views, made=frozenset(views.get(b, b) for b in written(t.body)))
    _plan_body(t.body, t.spaces, target, plan, 1)
    kernel = Kernel(t.body, t.spaces, views)
    before: list[Kernel] = []
    for planned in plan.regions:
        try:
            kernel = apply(kernel, planned.steps)
        except IllegalTransform:
            # Loops that meet in the target, in an order that must stay: such a region runs as it is.
            continue
        before += planned.before
    return [*before, _parallel(kernel, plan.cycles)]


def _parallel(kernel: Kernel, cycles: float) -> Kernel:
    first = kernel.body[0]
    if cycles < PARALLEL_CYCLES or not isinstance(first, Loop) or first.var.size < 2 or first.kind != "serial":
        return kernel
    if not apart(first, kernel.body[1:], kernel.spaces):
        return kernel
    try:
        return apply(kernel, [Mark(first.var.name, "parallel")])
    except IllegalTransform:
        return kernel


# ---------------------------------------------------------------- regions


def _plan_body(body: Sequence[Stmt], spaces: dict[Buffer, Space], target: Target, plan: _Plan, turns: int) -> None:
    r = region(body, spaces)
    if r is not None:
        _plan_region(r, target, plan, turns)
        return
    chain: list[Var] = []
    while len(body) == 1 and isinstance(body[0], Loop) and independent(body[0], spaces):
        chain.append(body[0].var)
        body = body[0].body
    inside = math.prod(v.size for v in chain) * turns
    own = _Plan(views=plan.views, made=plan.made)
    for s in body:
        if isinstance(s, Compute):
            own.cycles += inside * (cost(s.value) + 2)
        elif all(isinstance(x, Compute) for x in s.body):
            _plan_innermost(s, spaces, target, own, inside)
        elif independent(s, spaces):
            _plan_body((s,), spaces, target, own, inside)
        else:
            _plan_sum(s, spaces, target, own, inside)
    across = _across(chain, body, spaces, target)
    if across is not None and turns * across.cycles < 0.8 * own.cycles:
        own = _Plan([_Steps(across.steps)], turns * across.cycles)
    plan.regions += own.regions
    plan.cycles += own.cycles


@dataclass(frozen=True, slots=True)
class _Across:
    steps: list[Transform]
    cycles: float


def _across(chain: Sequence[Var], body: Sequence[Stmt], spaces: dict[Buffer, Space], target: Target) -> _Across | None:
    """Turns of a loop of the chain side by side in vectors, through all that stands inside; None where that cannot be.

    So run the sums over rows that are far apart, whose columns lie side by side.
    """
    if not any(isinstance(s, Loop) for s in body) or any(spaces.get(b) == "local" for b in written(body)):
        return None
    lanes = lanes_of(Region((), (), tuple(computes(body)), ()), target)
    best: _Across | None = None
    # What short sums compute is kept from one to the next.
    short = [Mark(v.name, "unrolled") for s in body for v in _short(s)]
    for v in chain:
        cycles = _body_cycles(body, v, spaces, lanes)
        if cycles is None or v.size < 2:
            continue
        total = cycles / 2 * -(-v.size // lanes) * math.prod(x.size for x in chain if x is not v)
        if best is not None and best.cycles <= total:
            continue
        steps: list[Transform] = []
        if chain[-1] is not v:
            steps.append(Order(tuple(x.name for x in (*(x for x in chain if x is not v), v))))
        beside = 4 if v.size >= 8 * lanes else 2 if v.size >= 4 * lanes else 1
        name = v.name
        if v.size > lanes * beside:
            steps.append(Split(name, lanes * beside))
            name += ".i"
        best = _Across([*steps, Mark(name, "vector"), Sink(name), *short], total)
    return best


def _short(s: Stmt) -> tuple[Var, ...]:
    """The loops of a nest of so few turns that they are best written out."""
    if not isinstance(s, Loop):
        return ()
    inner = loop_vars(s.body)
    few = s.var.size * math.prod(v.size for v in inner) <= _SHORT_SUM
    return (s.var, *inner) if few else ()


def _body_cycles(body: Sequence[Stmt], v: Var, spaces: dict[Buffer, Space], lanes: int) -> float | None:
    """Operations of statements for one vector of turns of `v`, None where they cannot run side by side."""
    total = 0.0
    for s in body:
        if isinstance(s, Compute):
            own = _vector_cycles([s], v, spaces, lanes)
            if own is None or (spaces.get(s.target.buffer) != "register" and stride(s.target, v) is None):
                return None
            total += own
        else:
            inner = _body_cycles(s.body, v, spaces, lanes)
            if inner is None:
                return None
            total += s.var.size * inner
    return total


def _plan_sum(s: Loop, spaces: dict[Buffer, Space], target: Target, plan: _Plan, turns: int) -> None:
    """A loop of a sum with other loops inside."""
    r = _sum_region(s, spaces)
    if r is not None:
        _plan_region(r, target, plan, turns)
    else:
        _plan_body(s.body, spaces, target, plan, turns * s.var.size)


def _sum_region(s: Loop, spaces: dict[Buffer, Space]) -> Region | None:
    """A nest of sums without a chain around it."""
    # A statement before it keeps `region` from taking its loops for a chain.
    return region((Compute(Access(Buffer("none", (), "f32"), ()), "set", Const(0.0, "f32")), s), spaces)


def _plan_innermost(s: Loop, spaces: dict[Buffer, Space], target: Target, plan: _Plan, turns: int) -> None:
    """A loop without loops inside: in vectors if that is cheaper, its sums lane by lane."""
    body = [c for c in s.body if isinstance(c, Compute)]
    r = Region((), (s.var,), tuple(body), ())
    lanes = lanes_of(r, target)
    scalar = sum(cost(c.value) + 2 + len(accesses(c.value)) for c in body)
    vector = _vector_cycles(body, s.var, spaces, lanes)
    size = s.var.size
    if vector is None or size < 2 or vector / min(lanes, size) > scalar:
        plan.cycles += turns * size * scalar / 2
        return
    plan.cycles += turns * -(-size // lanes) * vector / 2
    name = s.var.name
    sums = [c for c in body if c.accum != "set" and spaces.get(c.target.buffer) == "register"]
    beside = 1
    if sums and sum(cost(c.value) for c in body) <= 8:
        # Sums side by side hide the latency of an addition.
        beside = 4 if size >= 8 * lanes else 2 if size >= 4 * lanes else 1
    elif any(large(c.target.buffer) for c in body):
        # Whole lines leave together.
        beside = 2 if size >= 2 * lanes else 1
    width = lanes * beside
    steps: list[Transform] = []
    if size > width:
        steps.append(Split(name, width))
        name += ".i"
    steps.append(Mark(name, "vector"))
    if sums:
        steps.append(Lanes(name))
    plan.regions.append(_Steps(steps))


def _vector_cycles(body: Sequence[Compute], v: Var, spaces: dict[Buffer, Space], lanes: int) -> float | None:
    """Operations of one turn in vectors, None where the loop cannot run in them."""
    total = 0.0
    for c in body:
        register = spaces.get(c.target.buffer) == "register"
        if not register:
            step = stride(c.target, v)
            if not step or (c.target.guarded and any(isinstance(i, Dynamic) for i in c.target.index)):
                return None
            total += 1.5 if step == 1 else 1.5 * lanes
        total += cost(c.value) + 1
        for a in accesses(c.value):
            step = stride(a, v)
            total += 1.0 if step in (0, 1) else 1.5 * lanes
    return total


def _plan_region(r: Region, target: Target, plan: _Plan, turns: int) -> None:
    lanes = lanes_of(r, target)
    exchanged = _exchange(r, lanes)
    if exchanged is not None:
        plan.cycles += turns * math.prod(v.size for v in r.chain)
        plan.regions.append(_Steps(exchanged))
        return
    ready = frozenset(
        b for c in r.inner for a in accesses(c.value) if plan.views.get(b := a.buffer, b) not in plan.made
    )
    tile = choose(r, target, ready)
    plan.cycles += turns * tile.cycles
    blocks = blocking(r, tile, lanes, target.threads)
    if blocks is not None:
        plan.regions.append(_Steps(_blocked(r, tile, blocks, lanes)))
        return
    streamed = _streamed(r, tile, lanes)
    if streamed is not None:
        plan.regions.append(_Steps(streamed))
        return
    packed: tuple[Packed, ...] = ()
    before: list[Kernel] = []
    if (v := tile.vector) is not None:
        packed = tuple(_pack(a, r, v, lanes * tile.chunks, target, plan.views, before) for a in tile.packed)
    plan.regions.append(_Steps(steps_of(r, tile, lanes, packed), tuple(before)))


def _exchange(r: Region, lanes: int) -> list[Transform] | None:
    """The transforms of a copy that reads along one loop and writes along another, None for anything else."""
    if r.sums or len(r.outer) != 1:
        return None
    c = r.outer[0]
    if c.accum != "set" or not isinstance(c.value, Access) or c.value.guarded or c.target.guarded:
        return None
    if not all(isinstance(i, Affine) for i in (*c.value.index, *c.target.index)):
        return None
    reading = [v for v in r.chain if stride(c.value, v) == 1 and 2 * v.size >= lanes]
    writing = [v for v in r.chain if stride(c.target, v) == 1 and v.size > 1]
    if len(reading) != 1 or len(writing) != 1 or reading == writing:
        return None
    a, b = reading[0], writing[0]
    steps: list[Transform] = []
    order = [*(v for v in r.chain if v is not a and v is not b), a, b]
    if order != list(r.chain):
        steps.append(Order(tuple(v.name for v in order)))
    name = b.name
    if b.size > 4 * lanes:
        # Squares along what is written, so that whole cache lines are.
        steps.append(Split(name, 2 * lanes))
        name += ".i"
    steps += [Mark(name, "vector"), Split(a.name, lanes)]
    steps += [Mark(f"{a.name}.i", "unrolled"), Sink(f"{a.name}.i")]
    return steps


def steps_of(r: Region, tile: Tile, lanes: int, packed: tuple[Packed, ...]) -> list[Transform]:
    """The transforms that make a region run as its tile says. `packed`: copies of operands."""
    steps: list[Transform] = []
    v = tile.vector
    if v is None:
        return steps
    rows = [x for x, _ in tile.rows]
    others = [x for x in r.chain if x is not v and x not in rows]
    width = lanes * tile.chunks
    if v in r.chain:
        many = outermost(r, tile, width)[0] is v and len(r.chain) > 1
        order = [*([v] if many else []), *others, *rows, *([] if many else [v])]
        if r.sums and order != list(r.chain):
            steps.append(Order(tuple(x.name for x in order)))
        elif not r.sums and r.chain[len(r.chain) - 1] is not v:
            steps.append(Order(tuple(x.name for x in (*others, *rows, v))))
    else:
        order = [*others, *rows]
        if order != list(r.chain):
            steps.append(Order(tuple(x.name for x in order)))
        if r.sums[-1] is not v:
            steps.append(Order(tuple(x.name for x in (*(x for x in r.sums if x is not v), v))))
    name = v.name
    if v.size > width or packed:
        steps.append(Split(name, width, packed))
        name += ".i"
    for row, factor in tile.rows:
        if row.size > factor:
            steps.append(Split(row.name, factor))
    steps.append(Mark(name, "vector"))
    if v in r.sums:
        steps.append(Lanes(name))
    elif r.sums or r.chain[len(r.chain) - 1] is not v:
        steps.append(Sink(name))
    for row, factor in reversed(tile.rows):
        own = row.name + (".i" if row.size > factor else "")
        steps += [Mark(own, "unrolled"), Sink(own)]
    return [*steps, *_turns_beside(r, tile, None)]


def _turns_beside(r: Region, tile: Tile, stretch: int | None) -> list[Transform]:
    """The transforms that write out some turns of the sum of a tile: the loop itself then costs little."""
    if len(r.sums) != 1 or r.sums[0] is tile.vector or tile.vector is None or tile.cycles < _WORTH_CODE:
        return []
    k = r.sums[0]
    turns = stretch or k.size
    if turns < _LEAST_TURNS:
        return []
    factor = next((n for n in _TURNS_BESIDE if turns % n == 0), _TURNS_BESIDE[0])
    return [Split(k.name, factor), Mark(f"{k.name}.i", "unrolled")]


def _streamed(r: Region, tile: Tile, lanes: int) -> list[Transform] | None:
    """The transforms of a product of a vector with a large matrix that lies the other way: some rows of it at a time, along them.

    The sums wait in memory, in the first cache, so that the matrix is read in long stretches.
    """
    v = tile.vector
    if v is None or v not in r.chain or tile.rows or len(r.sums) != 1 or len(r.inner) != 1 or r.inner[0].accum != "add":
        return None
    k, width = r.sums[0], 4 * lanes
    size = SIZES.get(r.inner[0].target.buffer.prec, 4)
    far = [
        a
        for a in accesses(r.inner[0].value)
        if stride(a, v) == 1 and abs(stride(a, k) or 0) * size >= 1024 and v.size * k.size * size > 128 * 1024
    ]
    if not far or v.size < 4 * width or k.size < 4 * _STREAMED_ROWS:
        return None
    others = [x for x in r.chain if x is not v]
    steps: list[Transform] = []
    if r.chain[-1] is not v:
        steps.append(Order(tuple(x.name for x in (*others, v))))
    name, within = v.name, others[-1].name if others else ""
    if v.size > _STREAMED_COLUMNS or math.prod(x.size for x in others) < 2:
        # Threads share the columns.
        count = max(2, 2 * round(v.size / _STREAMED_COLUMNS))
        steps.append(Split(name, -(-v.size // count // width) * width))
        name, within = f"{name}.i", f"{name}.o"
    steps += [Split(name, width), Block(k.name, _STREAMED_ROWS, within)]
    name += ".i"
    return [*steps, Mark(name, "vector"), Sink(name), Split(k.name, _STREAMED_ROWS), Mark(f"{k.name}.i", "unrolled")]


def _blocked(r: Region, tile: Tile, blocks: Blocking, lanes: int) -> list[Transform]:
    """The transforms of a product whose operand is taken in blocks: for each block of it all rows, for each row of tiles the block."""
    v, width = tile.vector, lanes * tile.chunks
    assert v is not None
    rows = [x for x, _ in tile.rows]
    order = [*(x for x in r.chain if x is not v and x not in rows), v, *rows]
    steps: list[Transform] = []
    if order != list(r.chain):
        steps.append(Order(tuple(x.name for x in order)))
    name = v.name
    if v.size > blocks.columns:
        steps.append(Split(name, blocks.columns))
        name += ".i"
    steps += [Order((*(x.name for x in rows), name)), Split(name, width)]
    if blocks.stretch is not None:
        steps.append(Block(r.sums[0].name, blocks.stretch, f"{v.name}.o"))
    panels = f"{name}.o"
    name += ".i"
    steps.append(Stage(blocks.operand.buffer, rows[0].name, name, lanes))
    own = {row: row.name for row, _ in tile.rows}
    if blocks.rows is not None:
        row = rows[0]
        if row.size > blocks.row_block:
            steps.append(Split(row.name, blocks.row_block))
            own[row] += ".i"
        steps.append(Sink(own[row], (panels,)))
    inner = dict(own)
    for row, factor in tile.rows:
        if row.size > factor:
            steps.append(Split(own[row], factor))
            inner[row] += ".i"
    if blocks.rows is not None:
        steps.append(Stage(blocks.rows.buffer, panels, inner[rows[0]], lanes))
    steps += [Mark(name, "vector"), Sink(name)]
    for row, _ in reversed(tile.rows):
        steps += [Mark(inner[row], "unrolled"), Sink(inner[row])]
    return [*steps, *_turns_beside(r, tile, blocks.stretch)]


# ---------------------------------------------------------------- packing


def _pack(
    a: Access, r: Region, v: Var, width: int, target: Target, views: dict[Buffer, Buffer], before: list[Kernel]
) -> Packed:
    """Copies an operand into the order of tiles of `width` along `v`; the kernels that do it go to `before`."""
    used = [x for i in a.index if isinstance(i, Affine) for x, _ in i.terms if x is not v]
    outer = tuple(x for x in r.chain if x in used)
    sums = tuple(x for x in r.sums if x in used)
    if v in r.sums:
        # That loop runs inside of the other sums.
        outer, sums = (*outer, *sums), ()
    whole, rest = divmod(v.size, width)
    shape = (*(x.size for x in outer), whole + (rest > 0), *(x.size for x in sums), width)
    copy = Buffer(f"{a.buffer.name}.packed", shape, a.buffer.prec)
    for count, size, first in ((whole, width, 0), (1, rest, whole)):
        if not count * size:
            continue
        new = {x: Var(x.name, x.size) for x in (*outer, *sums)}
        o, i = Var(f"{v.name}.o", count), Var(f"{v.name}.i", size)
        tile = Affine.of(o) if count > 1 else Affine((), first)
        at = {x: Affine.of(y) for x, y in new.items()}
        at[v] = Affine(
            tuple(sorted((*((t, c * width) for t, c in tile.terms), (i, 1)), key=lambda t: t[0].id)),
            tile.offset * width,
        )
        source = Access(a.buffer, tuple(substitute_index(x, at) for x in a.index))
        place = (*(Affine.of(new[x]) for x in outer), tile, *(Affine.of(new[x]) for x in sums), Affine.of(i))
        stmts: tuple[Stmt, ...] = (Compute(Access(copy, place), "set", source),)
        for x in reversed((*(new[x] for x in outer), *((o,) if count > 1 else ()), *(new[x] for x in sums), i)):
            stmts = (Loop(x, "serial", stmts),)
        before.extend(_scheduled(Tree(named(stmts), {}), views, target))
    return Packed(a, copy, outer, sums)
