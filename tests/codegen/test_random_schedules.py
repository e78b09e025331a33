"""Whatever transforms are applied, in whatever order: what is not refused computes what the reference evaluator does."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocannl_lang.codegen.cpu import assemble
from ocannl_lang.codegen.llvm.target import Target, host_target
from ocannl_lang.codegen.reference import run_program
from ocannl_lang.loops.ir import Access, Affine, Apply, Assign, Buffer, Expr, Program, Var, accesses
from ocannl_lang.loops.optimise import optimise
from ocannl_lang.schedule.groups import schedule
from ocannl_lang.schedule.ir import Kernel, Loop, Stmt
from ocannl_lang.schedule.kernels import group_kernels
from ocannl_lang.schedule.legality import IllegalTransform
from ocannl_lang.schedule.memory import copy, plan, prepare
from ocannl_lang.schedule.replay import replay
from ocannl_lang.schedule.templates import schedule_of
from ocannl_lang.schedule.text import kernel_text, steps_text
from ocannl_lang.schedule.transforms import Block, Lanes, Mark, Order, Sink, Split, Stage, Transform, apply
from ocannl_lang.schedule.trees import computes, loop_vars
from ocannl_lang.schedule.verify import code_size, verify
from tests.codegen.generate import Generator
from tests.codegen.networks import Network
from tests.codegen.test_contractions import einsum

_FACTORS = (2, 3, 4, 5, 8, 12, 16, 24, 32)
_MOST_CODE = 1500


# ---------------------------------------------------------------- random steps


class Scheduler:
    """Schedules kernels at random; `note` tells how."""

    def __init__(self, seed: int, target: Target) -> None:
        self.r = random.Random(seed)
        self.lanes = target.vector_bytes // 4
        self.notes: list[str] = []

    def schedule(self, planned: Kernel) -> Kernel:
        """The nest of a kernel with random steps, among them maybe those that the compiler has chosen, with other sizes."""
        r = self.r
        before, chosen = schedule_of(planned)
        wish = [self._changed(s) for s in chosen] if r.random() < 0.5 else []
        if not wish and r.random() < 0.5:
            wish = self._tile(before)
        found = kernel = before
        for _ in range(r.randint(0, 4)):
            wish.insert(r.randint(0, len(wish)), None)
        for step in wish or [None] * r.randint(1, 10):
            kernel = self._after(kernel, step or self._random(kernel))
            if self._sound(kernel):
                found = kernel
        self.notes.append(f"{kernel_text(before)}{steps_text(found)}")
        return found

    def _after(self, kernel: Kernel, step: Transform) -> Kernel:
        try:
            following = apply(kernel, [step])
        except IllegalTransform:
            return kernel
        return following if code_size(following, self.lanes) <= _MOST_CODE else kernel

    def _sound(self, kernel: Kernel) -> bool:
        try:
            verify(kernel)
        except IllegalTransform:
            return False
        return True

    def _changed(self, step: Transform) -> Transform | None:
        if isinstance(step, Split) and not step.packed and self.r.random() < 0.4:
            return Split(step.loop, self.r.choice(_FACTORS))
        if isinstance(step, Block) and self.r.random() < 0.4:
            return Block(step.loop, self.r.choice(_FACTORS), step.within)
        return step

    def _tile(self, kernel: Kernel) -> list[Transform | None]:
        """A vector loop, a loop written out, maybe stretches of a sum and copies, at random."""
        r = self.r
        names = [v.name for v in loop_vars(kernel.body)]
        if len(names) < 2:
            return []
        i, j = r.sample(names, 2)
        steps: list[Transform | None] = []
        if r.random() < 0.5:
            steps.append(self._order(kernel))
        f, g = r.choice(_FACTORS), r.choice(_FACTORS)
        steps += [Split(j, g), Split(i, f)]
        if r.random() < 0.5:
            steps.append(self._block(kernel, f"{i}.o", f"{j}.o"))
        if r.random() < 0.5:
            steps.append(self._stage(kernel, r.choice((i, f"{i}.o", f"{j}.o", f"{i}.i")), f"{j}.i"))
        if r.random() < 0.3:
            steps.append(Sink(f"{i}.i", (f"{j}.o",)))
        steps += [Mark(f"{j}.i", "vector"), r.choice((Sink(f"{j}.i"), Lanes(f"{j}.i")))]
        steps += [Mark(f"{i}.i", "unrolled"), r.choice((Sink(f"{i}.i"), Lanes(f"{i}.i")))]
        return [*steps, Mark(f"{i}.o", "parallel"), Mark(f"{j}.o", "parallel")]

    def _random(self, kernel: Kernel) -> Transform:
        r = self.r
        loops = loop_vars(kernel.body)
        if not loops:
            return Sink("none")
        v = r.choice(loops)
        kind = r.randrange(12)
        if kind < 3:
            return Split(v.name, r.choice(_FACTORS))
        if kind < 5:
            return self._order(kernel)
        if kind < 6:
            return Sink(
                v.name, r.choice(((), tuple(x.name for x in r.sample(loops, min(len(loops), r.randint(1, 3))))))
            )
        if kind < 8:
            return Mark(v.name, r.choice(("parallel", "serial", "unrolled", "vector", "vector")))
        if kind < 9:
            return Lanes(v.name)
        if kind < 10:
            return self._block(kernel)
        if kind < 11:
            first = kernel.body[0]
            return Mark(first.var.name if isinstance(first, Loop) else v.name, "parallel")
        return self._stage(kernel, v.name, r.choice(loops).name)

    def _stage(self, kernel: Kernel, loop: str, vector: str) -> Transform:
        read = list(dict.fromkeys(a.buffer for c in computes(kernel.body) for a in accesses(c.value)))
        return Stage(self.r.choice(read), loop, vector, self.lanes) if read else Sink(loop)

    def _block(self, kernel: Kernel, *within: str) -> Transform:
        """Stretches of a loop without loops inside, within one of those around it."""
        paths = [p for p in _paths(kernel.body, ()) if len(p) > 1 and p[-1].size > 2]
        if not paths:
            return Sink("none")
        *around, v = self.r.choice(paths)
        size = self.r.choice([f for f in (2, *_FACTORS) if f < v.size])
        return Block(v.name, size, self.r.choice(within or [x.name for x in around]))

    def _order(self, kernel: Kernel) -> Transform:
        chains = [c for c in _chains(kernel.body) if len(c) > 1]
        if not chains:
            return Sink("none")
        chain = self.r.choice(chains)
        names = chain[: self.r.randint(2, len(chain))]
        self.r.shuffle(names)
        return Order(tuple(names))


def _chains(body: Sequence[Stmt]) -> list[list[str]]:
    """The names of loops that stand directly inside one another, from each loop on."""
    found: list[list[str]] = []
    for s in body:
        if isinstance(s, Loop):
            chain = [s.var.name]
            inner = s.body
            while len(inner) == 1 and isinstance(inner[0], Loop):
                chain.append(inner[0].var.name)
                inner = inner[0].body
            found += [chain, *_chains(s.body)]
    return found


def _paths(body: Sequence[Stmt], around: tuple[Var, ...]) -> list[tuple[Var, ...]]:
    """The loops without loops inside, each after those around it."""
    found: list[tuple[Var, ...]] = []
    for s in body:
        if isinstance(s, Loop):
            inner = _paths(s.body, (*around, s.var))
            found += inner or [(*around, s.var)]
    return found


# ---------------------------------------------------------------- what is computed


def check(program: Program, storage: dict[Buffer, np.ndarray], seed: int) -> None:
    target = host_target()
    scheduler = Scheduler(seed, target)
    prepared = optimise(prepare(program))
    kernels = [scheduler.schedule(k) for k in schedule(prepared, target)]
    copies = [(p, b, group_kernels([copy(p, b)], [p], target)) for p, b in prepared.stores]
    for k in kernels:
        again = replay(schedule_of(k)[0], steps_text(k))
        assert kernel_text(again) == kernel_text(k)
    note = "\n".join(scheduler.notes)
    expected_storage = {b: a.copy() for b, a in storage.items()}
    expected = run_program(program, expected_storage)
    try:
        planned = plan(prepared, kernels, copies)
        runs = [assemble(program, planned, target, threads) for threads in (1, 3)]
    except Exception as e:
        raise AssertionError(note) from e
    for compiled in runs:
        own = {b: a.copy() for b, a in storage.items()}
        got = compiled.run(own)
        for b, e, g in zip(program.outputs, expected, got, strict=True):
            np.testing.assert_allclose(g, e, rtol=2e-5, atol=1e-5, err_msg=f"{b.name}\n{note}")
        for b, a in own.items():
            np.testing.assert_allclose(a, expected_storage[b], rtol=2e-5, atol=1e-5, err_msg=f"{b.name}\n{note}")


def contraction(seed: int) -> tuple[Program, dict[Buffer, np.ndarray]]:
    """A product of two operands in some layout, maybe batched, a product with a vector, or a sum of columns; or a convolution."""
    r = random.Random(seed)
    if r.random() < 0.2:
        return with_content(convolution(r), r)
    sizes = {c: r.choice((1, 2, 3, 5, 7, 8, 12, 16, 17, 20, 24, 31, 33, 40)) for c in "bijk"}
    layouts = ("ik,kj->ij", "ik,jk->ij", "ki,kj->ij", "ki,jk->ji", "bik,bkj->bij", "bik,kj->bij", "bik,bjk->bji", "kj,k->j", "jk,k->j",
               "ki,k->i", "kj,kj->j", "bij,bij->", "bik,kj->ij")  # fmt: skip
    operands, result = r.choice(layouts).split("->")
    first, second = operands.split(",")
    used = {c: sizes[c] for c in "bijk" if c in first + second}
    epilogue = bool(result) and r.random() < 0.5
    program, _ = einsum(used, first, second, result, r.choice(("f32", "f32", "f64")), epilogue)
    return with_content(program, r)


def convolution(r: random.Random) -> Program:
    n, size, k, c, o = 2, r.choice((5, 8, 9)), r.choice((2, 3)), r.choice((1, 3, 4)), r.choice((4, 9, 19))
    stride, padded = r.choice((1, 2)), r.random() < 0.5
    out = -(-size // stride) if padded else (size - k) // stride + 1
    x, w = Buffer("x", (n, size, size, c), "f32", "input"), Buffer("w", (o, k, k, c), "f32", "input")
    y, z = Buffer("y", (n, out, out, o), "f32"), Buffer("z", (n, out, out, o), "f32")
    vn, vh, vw, vo = Var("n", n), Var("h", out), Var("w", out), Var("o", o)
    kh, kw, vc = Var("p", k), Var("q", k), Var("c", c)
    shift = -((k - 1) // 2) if padded else 0
    window = [Affine(((a, stride), (b, 1)), shift) for a, b in ((vh, kh), (vw, kw))]
    read = Access(x, (Affine.of(vn), *window, Affine.of(vc)), padded, 0)
    product = Apply("mul", (read, Access(w, tuple(map(Affine.of, (vo, kh, kw, vc))))), "f32")
    here = tuple(map(Affine.of, (vn, vh, vw, vo)))
    sums = Assign(Access(y, here), "add", True, (vn, vh, vw, vo, kh, kw, vc), product)
    relu: Expr = Apply("relu", (Access(y, here),), "f32")
    return Program("conv", (x, w), (z,), [sums, Assign(Access(z, here), "set", True, (vn, vh, vw, vo), relu)])


def with_content(program: Program, r: random.Random) -> tuple[Program, dict[Buffer, np.ndarray]]:
    rng = np.random.default_rng(r.randrange(2**32))
    # Small whole numbers: sums are exact in any order.
    return program, {b: rng.integers(-3, 4, b.shape).astype("f4" if b.prec == "f32" else "f8") for b in program.inputs}


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_random_schedules_of_contractions(seed: int) -> None:
    check(*contraction(seed), seed)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32))
def test_random_schedules_of_programs(seed: int) -> None:
    check(*Generator(seed).program(), seed)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32))
def test_random_schedules_of_networks(seed: int) -> None:
    check(*Network(seed).program(8), seed)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_many_random_schedules(seed: int) -> None:
    check(*contraction(seed), seed)
    check(*Generator(seed).program(), seed)
    check(*Network(seed).program(), seed)
