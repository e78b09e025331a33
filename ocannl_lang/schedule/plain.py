"""The plain schedule of one assignment: loops over the target, sums inside in registers, one loop in vectors."""

from __future__ import annotations

from dataclasses import dataclass

from ocannl_lang.graph.primitives import neutral
from ocannl_lang.loops.ir import Access, Affine, Apply, Assign, Buffer, Const, Dynamic, Expr, Position, Random, Var, accesses
from ocannl_lang.schedule.ir import Compute, Kernel, Kind, Loop, Stmt
from ocannl_lang.schedule.transforms import at_access, at_expr, nest, split

_PARALLEL_WORK = 32768


def plain_kernels(assign: Assign, lanes: int) -> list[Kernel]:
    """The kernels of an assignment for vectors of `lanes` numbers of 32 bits: a fill where one is needed, then the loops."""
    target = assign.target
    empty = any(v.size == 0 for v in assign.loops)
    kernels: list[Kernel] = []
    whole = covers(assign)
    if assign.fresh and (empty or not whole):
        kernels.append(Kernel(fill(target.buffer, neutral(assign.accum, target.buffer.prec), lanes), note="fill"))
    if empty or 0 in target.buffer.shape:
        return kernels
    kernels.append(_compute(assign, whole and assign.fresh, lanes))
    return kernels


def covers(assign: Assign) -> bool:
    """Whether the loops reach every position of the target, each from its own turns: every axis is one variable of its size."""
    seen: set[Var] = set()
    if assign.target.guarded:
        return False
    for index, size in zip(assign.target.index, assign.target.buffer.shape, strict=True):
        if not isinstance(index, Affine) or index.offset:
            return False
        if not index.terms and size == 1:
            continue
        if len(index.terms) != 1:
            return False
        var, c = index.terms[0]
        if c != 1 or var.size != size or var in seen:
            return False
        seen.add(var)
    return True


def fill(buffer: Buffer, value: float | int, lanes: int) -> tuple[Stmt, ...]:
    """Sets every element."""
    if 0 in buffer.shape:
        return ()
    loops = [Var(f"i{k}", s) for k, s in enumerate(buffer.shape)]
    body: tuple[Stmt, ...] = (
        Compute(Access(buffer, tuple(Affine.of(v) for v in loops)), "set", Const(value, buffer.prec)),
    )
    if not loops:
        return body
    inner = split(Loop(loops[-1], "serial", body), lanes, "serial", "vector")
    return nest([(v, "serial") for v in loops[:-1]], inner)


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a schedule is chosen from: loops of the target, in its order, loops that reduce, and those in data-dependent positions."""

    spatial: list[Var]
    reduction: list[Var]
    pinned: set[Var]


def _shape(assign: Assign) -> _Shape:
    order: list[Var] = []
    pinned: set[Var] = set()
    for index in assign.target.index:
        match index:
            case Affine(terms=terms):
                order.extend(v for v, _ in terms if v not in order)
            case Dynamic(value=value):
                for v in variables(value):
                    pinned.add(v)
                    if v not in order:
                        order.append(v)
    spatial = [v for v in order if v in assign.loops]
    return _Shape(spatial, [v for v in assign.loops if v not in spatial], pinned)


def variables(expr: Expr) -> list[Var]:
    """The loop variables that an expression depends on."""
    found: dict[Var, None] = {}
    stack: list[Expr] = [expr]
    while stack:
        e = stack.pop()
        match e:
            case Access(index=index):
                for i in index:
                    if isinstance(i, Affine):
                        found.update(dict.fromkeys(v for v, _ in i.terms))
                    else:
                        stack.append(i.value)
            case Position(index=index):
                found.update(dict.fromkeys(v for v, _ in index.terms))
            case Random(position=position, counter=counter):
                found.update(dict.fromkeys(v for v, _ in position.terms))
                if counter is not None:
                    stack.append(counter)
            case Const():
                pass
            case _:
                stack.extend(e.args)
    return list(found)


def stride(access: Access, var: Var) -> int | None:
    """How far apart neighbouring turns of `var` read, in elements; None where data decides."""
    total, step = 0, 1
    for index, size in zip(reversed(access.index), reversed(access.buffer.shape), strict=True):
        match index:
            case Affine(terms=terms):
                total += step * sum(c for v, c in terms if v is var)
            case Dynamic(value=value):
                if var in variables(value):
                    return None
        step *= size
    return total


def _vector_cost(assign: Assign, shape: _Shape, var: Var, lanes: int) -> float | None:
    """The cost of a turn when `var` runs in vectors, None where it cannot."""
    used = min(lanes, var.size)
    if var in shape.pinned:
        return None
    cost = 0.0
    if var in shape.spatial:
        step = stride(assign.target, var)
        if not step:
            return None
        cost += 1.0 if step == 1 else 1.5 * used
    elif assign.accum == "set":
        return None
    for a in accesses(assign.value):
        step = stride(a, var)
        if step is None:
            cost += 2.0 * used
        elif step == 0:
            cost += 0.3
        else:
            cost += 1.0 if step == 1 else 1.2 if step == -1 else 1.2 * used
    return (cost + 1.0) / used


def _compute(assign: Assign, starts: bool, lanes: int) -> Kernel:
    shape = _shape(assign)
    best: Var | None = None
    best_cost = 1.0 + 1.0 + len(accesses(assign.value))
    for var in (*reversed(shape.spatial), *reversed(shape.reduction)):
        if var.size > 1:
            cost = _vector_cost(assign, shape, var, lanes)
            if cost is not None and cost < best_cost * 0.999:
                best, best_cost = var, cost
    spaces: dict[Buffer, str] = {}
    body = _inner(assign, shape, starts, best, lanes, spaces)
    outer: list[tuple[Var, Kind]] = [(v, "serial") for v in shape.spatial if v is not best]
    body = nest(outer, body)
    work = 1
    for v in assign.loops:
        work *= v.size
    if work >= _PARALLEL_WORK and outer and distinct(assign.target, outer[0][0]) and outer[0][0].size > 1:
        first = body[0]
        assert isinstance(first, Loop)
        body = (Loop(first.var, "parallel", first.body),)
    return Kernel(body, spaces)  # type: ignore[arg-type]


def distinct(target: Access, var: Var) -> bool:
    """Whether different turns of `var` always write different positions, whatever the other variables do."""
    for index in target.index:
        if isinstance(index, Affine):
            c = next((abs(c) for v, c in index.terms if v is var), 0)
            if c > sum(abs(k) * (v.size - 1) for v, k in index.terms if v is not var):
                return True
    return False


def _inner(
    assign: Assign, shape: _Shape, starts: bool, best: Var | None, lanes: int, spaces: dict[Buffer, str]
) -> tuple[Stmt, ...]:
    target, accum = assign.target, assign.accum
    prec = target.buffer.prec
    if not shape.reduction or accum == "set":
        # No sums: each turn has a position of its own (or `set` meets loops that do not matter).
        how = "set" if starts else accum
        value = _first(assign) if starts else assign.value
        body: tuple[Stmt, ...] = (Compute(target, how, value),)
        body = nest([(v, "serial") for v in shape.reduction], body)
        return _vectorised(best, body, lanes)
    start = Const(neutral(accum, prec), prec)
    finish = "set" if starts else accum
    if best is None or best in shape.spatial:
        width = 1 if best is None else lanes
        acc = Buffer("acc", (width,), prec)
        spaces[acc] = "register"
        lane = Affine() if best is None else Affine.of(best)
        if best is None:
            place = Access(acc, (lane,))
            body = (
                Compute(place, "set", start),
                *nest([(v, "serial") for v in shape.reduction], (Compute(place, accum, assign.value),)),
                Compute(target, finish, place),
            )
            return body
        return _chunks(best, lanes, assign, shape, acc, start, finish)
    acc = Buffer("acc", (lanes,), prec)
    spaces[acc] = "register"
    lane = Var("l", lanes)
    others = [v for v in shape.reduction if v is not best]
    clear = Loop(lane, "vector", (Compute(Access(acc, (Affine.of(lane),)), "set", start),))
    sums: list[Stmt] = []
    whole, rest = divmod(best.size, lanes)
    if whole:
        o, i = Var(best.name + "o", whole), Var(best.name + "i", lanes)
        value = at_expr(assign.value, {best: Affine(((o, lanes), (i, 1)))})
        sums.append(Loop(o, "serial", (Loop(i, "vector", (Compute(Access(acc, (Affine.of(i),)), accum, value),)),)))
    total = Var("l", lanes)
    body = (clear, *nest([(v, "serial") for v in others], tuple(sums))) if sums else ()
    end: list[Stmt] = []
    one = Buffer("sum", (1,), prec)
    spaces[one] = "register"
    single = Access(one, (Affine(),))
    end.append(Compute(single, "set", start))
    if sums:
        end.append(Loop(total, "vector", (Compute(single, accum, Access(acc, (Affine.of(total),))),)))
    if rest:
        t = Var(best.name + "t", rest)
        value = at_expr(assign.value, {best: Affine(((t, 1),), whole * lanes)})
        end.extend(nest([(v, "serial") for v in others], (Loop(t, "vector", (Compute(single, accum, value),)),)))
    return (*body, *end, Compute(target, finish, single))


def _first(assign: Assign) -> Expr:
    """The value of an accumulation that a single turn makes: of logic it is 0 or 1."""
    if assign.accum not in ("and", "or"):
        return assign.value
    prec = assign.target.buffer.prec
    test = Apply("ne", (assign.value, Const(0, prec)), "u8")
    return test if prec == "u8" else Apply("convert", (test,), prec)


def _chunks(
    best: Var, lanes: int, assign: Assign, shape: _Shape, acc: Buffer, start: Const, finish: str
) -> tuple[Stmt, ...]:
    """A target loop in vectors: chunk by chunk, the sums inside."""
    result: list[Stmt] = []
    whole, rest = divmod(best.size, lanes)
    for count, width, base in ((whole, lanes, 0), (1 if rest else 0, rest, whole * lanes)):
        if not count:
            continue
        o, i = Var(best.name + "o", count), Var(best.name + "i", width)
        at = {best: Affine(tuple(t for t in ((o, width), (i, 1)) if t[0].size > 1), base)}
        place = Access(acc, (Affine.of(i) if width > 1 else Affine(),))
        value, target = at_expr(assign.value, at), at_access(assign.target, at)
        kind: Kind = "vector" if width > 1 else "serial"
        body: tuple[Stmt, ...] = (
            Compute(place, "set", start),
            *nest([(v, "serial") for v in shape.reduction], (Compute(place, assign.accum, value),)),
            Compute(target, finish, place),  # type: ignore[arg-type]
        )
        result.extend(nest([(o, "serial"), (i, kind)], body))
    return tuple(result)


def _vectorised(best: Var | None, body: tuple[Stmt, ...], lanes: int) -> tuple[Stmt, ...]:
    return body if best is None else split(Loop(best, "serial", body), lanes, "serial", "vector")
