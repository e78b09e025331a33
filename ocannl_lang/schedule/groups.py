"""Which assignments share a kernel, and in which order kernels run.

Two kinds of sharing pay. What follows a product (bias, activation, an update of the parameter whose gradient it is) is applied to a
tile of the product before it is stored. And what works on the rows of the same tensors shares their loops, so that a row is read
while it is in the cache.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ocannl_lang.codegen.llvm.target import Target
from ocannl_lang.loops.facts import cost, covers, kept, nodes, reads, streamed_rows, target_vars, turns
from ocannl_lang.loops.ir import Access, Assign, Buffer, Dynamic, Program, Var, accesses
from ocannl_lang.schedule.ir import Kernel
from ocannl_lang.schedule.kernels import PARALLEL_CYCLES, group_kernels
from ocannl_lang.schedule.nests import Member, depth, member, outermost
from ocannl_lang.schedule.templates import from_template

_MOST_MEMBERS = 24
_MOST_NODES = 600
# Loops over fewer columns are for vectors, not for threads.
_COLUMNS = 32
# Operations in one statement after a product.
_MOST_EPILOGUE = 100


def schedule(program: Program, target: Target) -> Iterator[Kernel]:
    """The kernels of a program whose results and stored contents are temporaries of their own, in the order in which they run."""
    groups = grouped(program)
    outside = kept(program)
    readers: dict[Buffer, set[int]] = {}
    for n, g in enumerate(groups):
        for a in g:
            for r in reads(a):
                readers.setdefault(r.buffer, set()).add(n)
    for n, g in enumerate(groups):
        needed = [a.target.buffer for a in g if a.target.buffer in outside or readers.get(a.target.buffer, set()) - {n}]
        yield from from_template(
            g, needed, f"{target.key} {target.threads}", functools.partial(group_kernels, g, needed, target)
        )


def grouped(program: Program) -> list[list[Assign]]:
    """The assignments by kernel, in the order in which the kernels run."""
    graph = _Graph.of(program)
    for i in graph.live():
        if graph.is_product[i]:
            _add_epilogue(graph, i)
    for i in range(len(program.assigns)):
        _join_rows(graph, i)
    order = graph.order(program)
    return [[program.assigns[i] for i in sorted(graph.members[g])] for g in order]


# ---------------------------------------------------------------- the graph of groups


@dataclass(slots=True)
class _Graph:
    """Groups of assignments by the number of their first one, and what must run before what."""

    assigns: list[Assign]
    members: dict[int, set[int]]
    group: list[int]
    before: dict[int, set[int]]
    after: dict[int, set[int]]
    is_product: list[bool]
    alone: list[bool]
    cycles: dict[int, float] = field(default_factory=dict[int, float])

    @staticmethod
    def of(program: Program) -> _Graph:
        n = len(program.assigns)
        before: dict[int, set[int]] = {i: set() for i in range(n)}
        after: dict[int, set[int]] = {i: set() for i in range(n)}
        written: dict[Buffer, list[int]] = {}
        read: dict[Buffer, list[int]] = {}
        for i, a in enumerate(program.assigns):
            b = a.target.buffer
            needs = {w for r in reads(a) for w in written.get(r.buffer, ())}
            needs.update(written.get(b, ()), read.get(b, ()))
            needs.discard(i)
            for j in needs:
                before[i].add(j)
                after[j].add(i)
            for r in reads(a):
                read.setdefault(r.buffer, []).append(i)
            written.setdefault(b, []).append(i)
        graph = _Graph(
            program.assigns, {i: {i} for i in range(n)}, list(range(n)), before, after,
            [_is_product(a) for a in program.assigns], [_stands_alone(a) for a in program.assigns],
        )  # fmt: skip
        graph.cycles = {i: float(turns(a.loops) * (cost(a.value) + 2)) for i, a in enumerate(program.assigns)}
        return graph

    def live(self) -> list[int]:
        return sorted(self.members)

    def in_order(self, g: int) -> list[Assign]:
        return [self.assigns[i] for i in sorted(self.members[g])]

    def can_merge(self, g: int, h: int) -> bool:
        """Whether nothing has to run between two groups."""
        return not self._detour(g, h) and not self._detour(h, g)

    def _detour(self, g: int, h: int) -> bool:
        stack = [x for x in self.after[g] if x != h]
        seen = set(stack)
        while stack:
            x = stack.pop()
            if x == h:
                return True
            for y in self.after[x]:
                if y not in seen:
                    seen.add(y)
                    stack.append(y)
        return False

    def merge(self, g: int, h: int) -> int:
        """One group of two; gives its number."""
        g, h = min(g, h), max(g, h)
        self.members[g] |= self.members.pop(h)
        self.cycles[g] += self.cycles.pop(h)
        for i in self.members[g]:
            self.group[i] = g
        for x in self.before.pop(h):
            self.after[x].discard(h)
            if x != g:
                self.after[x].add(g)
                self.before[g].add(x)
        for x in self.after.pop(h):
            self.before[x].discard(h)
            if x != g:
                self.before[x].add(g)
                self.after[g].add(x)
        return g

    def order(self, program: Program) -> list[int]:
        """Groups in an order that respects what they need; what overwrites a persistent buffer comes, if it can, after its readers."""
        before = {g: set(b) for g, b in self.before.items()}
        after = {g: set(a) for g, a in self.after.items()}
        readers: dict[Buffer, set[int]] = {}
        writer: dict[Buffer, int] = {}
        for i, a in enumerate(self.assigns):
            for r in reads(a):
                readers.setdefault(r.buffer, set()).add(self.group[i])
            writer.setdefault(a.target.buffer, self.group[i])
        soft: set[tuple[int, int]] = set()
        for persistent, final in program.stores:
            w = writer.get(final)
            if w is None:
                continue
            for g in readers.get(persistent, set()) - {w}:
                if g not in before[w]:
                    before[w].add(g)
                    after[g].add(w)
                    soft.add((g, w))
        return _sorted(before, after, soft, {g: max(m) for g, m in self.members.items()})


def _sorted(
    before: dict[int, set[int]], after: dict[int, set[int]], soft: set[tuple[int, int]], priority: dict[int, int]
) -> list[int]:
    waiting = {g: len(b) for g, b in before.items()}
    ready = [(priority[g], g) for g, n in waiting.items() if n == 0]
    heapq.heapify(ready)
    result: list[int] = []
    done: set[int] = set()
    while len(result) < len(before):
        if not ready:
            # A wish that cannot be met: take the first group that only wishes hold back.
            g = min(
                (g for g in before if g not in done and not _held(g, before, soft, done)), key=lambda g: priority[g]
            )
            ready.append((priority[g], g))
        _, g = heapq.heappop(ready)
        if g in done:
            continue
        done.add(g)
        result.append(g)
        for x in after[g]:
            waiting[x] -= 1
            if waiting[x] == 0 and x not in done:
                heapq.heappush(ready, (priority[x], x))
    return result


def _held(g: int, before: dict[int, set[int]], soft: set[tuple[int, int]], done: set[int]) -> bool:
    return any(x not in done and (x, g) not in soft for x in before[g])


# ---------------------------------------------------------------- what joins


def _stands_alone(a: Assign) -> bool:
    """Assignments that are not simply loops over a whole target keep a kernel for themselves; so do copies of persistent
    buffers, which are left out where the copy takes the place of the original."""
    if isinstance(a.value, Access) and a.value.index == a.target.index and a.value.buffer.role in ("param", "state"):
        return True
    if streamed_rows(a) is not None:
        # What is done to its few results would keep the loops from the order in which the matrix lies.
        return True
    return not covers(a) or any(v.size == 0 for v in a.loops) or any(isinstance(i, Dynamic) for i in a.target.index)


def _is_product(a: Assign) -> bool:
    """Whether the sums of an assignment use what they read several times over."""
    own = target_vars(a)
    if a.accum == "set" or all(v in own for v in a.loops):
        return False
    touched = a.target.buffer.size + sum(b.size for b in {x.buffer for x in accesses(a.value)})
    return turns(a.loops) >= 4 * touched


def _add_epilogue(graph: _Graph, i: int) -> None:
    """Takes the pointwise readers of a product into its group."""
    product = graph.assigns[i]
    if graph.alone[i]:
        return
    changed = True
    while changed:
        changed = False
        g = graph.group[i]
        made = {graph.assigns[m].target.buffer for m in graph.members[g]}
        for h in sorted(graph.after[g]):
            if len(graph.members[h]) == 1 and _follows(product, graph.assigns[h], made, graph.alone[h]):
                if len(graph.members[g]) < _MOST_MEMBERS and graph.can_merge(g, h) and _all_share(graph, g, h):
                    graph.merge(g, h)
                    changed = True
                    break


def _follows(product: Assign, a: Assign, made: set[Buffer], alone: bool) -> bool:
    """Whether `a` works, position by position, on what the group of a product makes."""
    if alone or not all(v in target_vars(a) for v in a.loops) or nodes(a.value) > _MOST_EPILOGUE:
        return False
    if len(a.loops) != len(target_vars(product)):
        return False
    return any(r.buffer in made for r in reads(a))


def _all_share(graph: _Graph, g: int, h: int) -> bool:
    """Whether the loops of a product's target are shared by all of two groups."""
    both = sorted(graph.members[g] | graph.members[h])
    members = [member(graph.assigns[m]) for m in both]
    loops = min(m.spatial for m in members)
    return all(m.spatial == loops for m in members) and depth(members[:-1], members[-1]) >= loops


def _join_rows(graph: _Graph, i: int) -> None:
    """Joins the group of assignment `i` to those of what it reads, if they share loops."""
    if graph.alone[i] or graph.is_product[i]:
        return
    sources = sorted(graph.before[graph.group[i]], reverse=True)
    for g in sources:
        h = graph.group[i]
        if g in graph.members and g != h and _rows_fit(graph, g, h) and graph.can_merge(g, h):
            graph.merge(g, h)


def _rows_fit(graph: _Graph, g: int, h: int) -> bool:
    both = sorted(graph.members[g] | graph.members[h])
    if len(both) > _MOST_MEMBERS or any(graph.is_product[m] or graph.alone[m] for m in both):
        return False
    assigns = [graph.assigns[m] for m in both]
    if sum(nodes(a.value) for a in assigns) > _MOST_NODES:
        return False
    members = [member(a) for a in assigns]
    if not all(m.loops for m in members):
        return all(not m.loops for m in members)
    # The outermost loop must be shared by all, and stay free to run on several threads if there is much to do.
    shared = outermost(members)
    if shared is None:
        return False
    if graph.cycles[g] + graph.cycles[h] < PARALLEL_CYCLES:
        return True
    return all(m.spatial for m in members) and not _few_columns(*shared)


def _few_columns(shared: Var, members: Sequence[Member]) -> bool:
    """Whether a shared loop goes over a few columns: vectors take it up, and no loop over rows is left for threads."""
    return shared.size < _COLUMNS and any(m.spatial > 1 and m.loops[m.spatial - 1] is shared for m in members)
