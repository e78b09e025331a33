"""Facts about assignments that passes and schedules ask for."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ocannl_lang.loops.ir import Access, Affine, Apply, Assign, Buffer, Dynamic, Expr, Program, Random, Var, accesses
from ocannl_lang.loops.lower_expr import variables

# What an operation costs beside an addition, roughly; the others cost 1.
_COSTS = {
    "div": 4, "sqrt": 5, "rsqrt": 8, "recip": 4, "mod": 10, "floordiv": 10, "pow": 60, "exp": 10, "exp2": 10, "log": 12, "log2": 12,
    "tanh": 16, "sigmoid": 14, "silu": 15, "softplus": 24, "sin": 25, "cos": 25, "erf": 20, "gelu": 22, "gelu_tanh": 20,
}  # fmt: skip
_RANDOM_COST = 100


def turns(loops: Iterable[Var]) -> int:
    """How often the body of loops runs."""
    return math.prod(v.size for v in loops)


def covers(assign: Assign) -> bool:
    """Whether the loops reach every position of the target, each by turns of its own.

    Every axis is one variable of its size, or several as digits of the position: 2·i + k with k below 2.
    """
    if assign.target.guarded:
        return False
    seen: set[Var] = set()
    for index, size in zip(assign.target.index, assign.target.buffer.shape, strict=True):
        if not isinstance(index, Affine) or index.offset:
            return False
        if not index.terms:
            if size != 1:
                return False
            continue
        own = [v for v, _ in index.terms]
        if math.prod(v.size for v in own) != size or not seen.isdisjoint(own) or not _digits(index, size):
            return False
        seen.update(own)
    return True


def _digits(index: Affine, size: int) -> bool:
    """Whether positions up to `size` are reached, each by one combination of as many turns of the variables."""
    if len(index.terms) == 1:
        return index.terms[0][1] == 1
    return all(c > 0 for _, c in index.terms) and index.bounds() == (0, size - 1) and separate(index)


def separate(index: Affine) -> bool:
    """Whether different turns of its variables are different positions: each steps over all that the smaller steps reach."""
    reached = 0
    for var, c in sorted(index.terms, key=lambda t: abs(t[1])):
        if abs(c) <= reached and var.size > 1:
            return False
        reached += abs(c) * (var.size - 1)
    return True


def plain(access: Access) -> bool:
    """Whether every axis follows at most one variable."""
    return all(isinstance(i, Affine) and len(i.terms) <= 1 for i in access.index)


def target_vars(assign: Assign) -> list[Var]:
    """The loops that decide the position of the target, in the order of its axes."""
    found: dict[Var, None] = {}
    for index in assign.target.index:
        match index:
            case Affine(terms=terms):
                found.update((v, None) for v, _ in terms)
            case Dynamic(value=value):
                found.update(variables(value))
    return [v for v in found if v in assign.loops]


def pointwise(assign: Assign) -> bool:
    """Whether every turn makes one position of a wholly written target."""
    return covers(assign) and all(v in target_vars(assign) or v.size == 1 for v in assign.loops)


def cost(expr: Expr) -> int:
    """What one evaluation costs, in additions."""
    total = 0
    stack: list[Expr] = [expr]
    while stack:
        e = stack.pop()
        match e:
            case Apply(fn=fn, args=args):
                total += _COSTS.get(fn, 1)
                stack.extend(args)
            case Random(counter=counter):
                total += _RANDOM_COST
                if counter is not None:
                    stack.append(counter)
            case Access(index=index):
                for i in index:
                    if isinstance(i, Dynamic):
                        total += 4
                        stack.append(i.value)
            case _:
                pass
    return total


def nodes(expr: Expr) -> int:
    """How many operations and accesses an expression has; what stands in it several times as one object counts once."""
    seen: set[int] = set()
    stack: list[Expr] = [expr]
    while stack:
        e = stack.pop()
        if id(e) in seen:
            continue
        seen.add(id(e))
        match e:
            case Apply(args=args):
                stack.extend(args)
            case Random(counter=counter) if counter is not None:
                stack.append(counter)
            case Access(index=index):
                stack.extend(i.value for i in index if isinstance(i, Dynamic))
            case _:
                pass
    return len(seen)


def reads(assign: Assign) -> list[Access]:
    """What an assignment reads, positions of its target included, without the target itself."""
    found = accesses(assign.value)
    for index in assign.target.index:
        if isinstance(index, Dynamic):
            found.extend(accesses(index.value))
    return found


def writers(program: Program) -> dict[Buffer, list[int]]:
    """The numbers of the assignments that write each buffer."""
    found: dict[Buffer, list[int]] = {}
    for i, a in enumerate(program.assigns):
        found.setdefault(a.target.buffer, []).append(i)
    return found


def kept(program: Program) -> set[Buffer]:
    """Buffers whose content is asked for from outside."""
    return {*program.outputs, *(b for _, b in program.stores)}


def strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Distances between neighbours along each axis, in elements."""
    result = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        result[i] = result[i + 1] * shape[i + 1]
    return tuple(result)


def stride(access: Access, var: Var) -> int | None:
    """How far apart neighbouring turns of `var` are, in elements; None where data decides."""
    total = 0
    for index, step in zip(access.index, strides(access.buffer.shape), strict=True):
        match index:
            case Affine(terms=terms):
                total += step * sum(c for v, c in terms if v is var)
            case Dynamic(value=value):
                if var in variables(value):
                    return None
    return total


# A matrix of fewer elements comes from caches, in which pieces of rows are as good as rows.
_LARGE_MATRIX = 1024 * 1024
_LONG_ROW = 512


def streamed_rows(a: Assign) -> tuple[Var, Var] | None:
    """The loops over the rows and the columns of a large matrix in a product of a vector with it, which reads it once; else None."""
    own = target_vars(a)
    sums = [v for v in a.loops if v not in own and v.size != 1]
    if a.accum != "add" or len(sums) != 1 or turns(a.loops) < _LARGE_MATRIX:
        return None
    (k,) = sums
    read = accesses(a.value)
    columns = [
        v for v in own if v.size >= _LONG_ROW and any(stride(x, v) == 1 and (stride(x, k) or 0) >= v.size for x in read)
    ]
    others = math.prod(v.size for v in own if v not in columns)
    # Each number of the matrix belongs to one turn.
    once = any(math.prod(v.size for v in a.loops if stride(x, v)) == turns(a.loops) <= x.buffer.size for x in read)
    if len(columns) != 1 or any(x.guarded for x in read) or not once or columns[0].size < 16 * others:
        return None
    return k, columns[0]
