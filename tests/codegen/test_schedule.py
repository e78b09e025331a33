"""Schedules: what transforms do, which ones are refused, and where buffers live."""

from __future__ import annotations

import numpy as np
import pytest

from ocannl_lang.codegen.cpu import compile_program, plan_program
from ocannl_lang.codegen.llvm.target import Target, target_of
from ocannl_lang.codegen.reference import run_program
from ocannl_lang.loops.ir import Access, Affine, Apply, Assign, Buffer, Const, Dynamic, Expr, Program, Var
from ocannl_lang.schedule.ir import Kernel
from ocannl_lang.schedule.legality import IllegalTransform
from ocannl_lang.schedule.memory import Arena
from ocannl_lang.schedule.nests import member, tree
from ocannl_lang.schedule.text import kernel_text
from ocannl_lang.schedule.transforms import Lanes, Mark, Order, Packed, Sink, Split, Transform, apply
from ocannl_lang.schedule.trees import computes
from ocannl_lang.schedule.verify import verify
from tests.codegen.networks import Network

AVX2 = ("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx2,+fma,+sse4.1")


def avx2() -> Target:
    return target_of(*AVX2)


def at(*vs: Var) -> tuple[Affine, ...]:
    return tuple(Affine.of(v) for v in vs)


def product(m: int = 13, k: int = 7, n: int = 20) -> Kernel:
    a, b, c = Buffer("a", (m, k), "f32", "input"), Buffer("b", (k, n), "f32", "input"), Buffer("c", (m, n), "f32")
    i, j, l = Var("i", m), Var("j", n), Var("k", k)
    value = Apply("mul", (Access(a, at(i, l)), Access(b, at(l, j))), "f32")
    t = tree([member(Assign(Access(c, at(i, j)), "add", True, (i, j, l), value))], [c])
    return Kernel(t.body, t.spaces)


def text(*steps: Transform) -> str:
    return kernel_text(apply(product(), steps))


def test_a_product_before_any_transform() -> None:
    assert text() == (
        "kernel\n"
        "  register sum: f32[]\n"
        "  serial i in 13:\n"
        "    serial j in 20:\n"
        "      sum[] = 0.0\n"
        "      serial k in 7:\n"
        "        sum[] += (a[i, k] * b[k, j])\n"
        "      c[i, j] = sum[]\n"
    )


def test_a_tile_is_a_list_of_transforms() -> None:
    steps = [Split("j", 16), Split("i", 6), Mark("j.i", "vector"), Sink("j.i"), Mark("i.i", "unrolled"), Sink("i.i")]
    tiled = apply(product(), [*steps, Mark("i.o", "parallel")])
    assert tiled.note == "split j 16; split i 6; vector j.i; sink j.i; unrolled i.i; sink i.i; parallel i.o"
    lines = [line.strip() for line in kernel_text(tiled).splitlines()]
    at = lines.index("serial k in 7:")
    assert "parallel i.o in 2:" in lines[:at]
    assert lines[at + 1].startswith("unrolled i.i in 6") and lines[at + 2].startswith("vector j.i in 16")
    # Whole and partial tiles in both directions.
    assert len({c.target.buffer for c in computes(tiled.body)} & set(tiled.spaces)) == 4


def test_a_sum_in_lanes() -> None:
    steps = [Split("k", 4), Mark("k.i", "vector"), Lanes("k.i")]
    assert text(*steps).splitlines()[5:] == [
        "      sum[] = 0.0",
        "      vector k.i in 4:",
        "        sum'1[k.i] = 0.0",
        "      serial k.o in 1:",
        "        vector k.i in 4:",
        "          sum'1[k.i] += (a[i, 4*k.o + k.i] * b[4*k.o + k.i, j])",
        "      vector k.i in 3:",
        "        sum'1[k.i] += (a[i, k.i + 4] * b[k.i + 4, j])",
        "      vector k.i in 4:",
        "        sum[] += sum'1[k.i]",
        "      c[i, j] = sum[]",
    ]


def test_a_loop_moves_past_the_loops_that_are_named() -> None:
    lines = [line.strip() for line in text(Split("j", 16), Sink("i", ("j.o",))).splitlines()]
    assert lines[2:7] == ["serial j.o in 1:", "serial i in 13:", "serial j.i in 16:", "sum[] = 0.0", "serial k in 7:"]
    # What is left over beside it keeps the loop outside.
    assert lines[9:11] == ["serial i in 13:", "serial j.i in 4:"]
    with pytest.raises(IllegalTransform, match="parted between what sets a register and what reads it"):
        apply(product(), [Sink("j", ("k",))])


def test_what_a_kernel_makes_itself_is_not_packed_before_it() -> None:
    # A product in it reads, with bad distances, what each turn of a loop around makes anew.
    program, storage = Network(4747).program(8)
    expected = run_program(program, {b: a.copy() for b, a in storage.items()})
    for got, e in zip(compile_program(program).run(storage), expected, strict=True):
        np.testing.assert_allclose(got, e, rtol=1e-5)
    kernel = product()
    (c,) = {c.target for c in computes(kernel.body) if c.target.buffer.name == "c"}
    with pytest.raises(IllegalTransform, match="c is made by the kernel itself"):
        apply(kernel, [Split("j", 4, (Packed(c, Buffer("p", (5, 13, 4), "f32"), (), ()),))])


def test_what_differs_between_turns_of_a_loop_around_is_not_packed_before_it() -> None:
    program, storage = Network(750).program(20)
    expected = run_program(program, {b: a.copy() for b, a in storage.items()})
    for got, e in zip(compile_program(program).run(storage), expected, strict=True):
        np.testing.assert_allclose(got, e, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("steps", [[Mark("k", "parallel")], [Sink("k")], [Order(("i", "k"))], [Order(("j", "x"))]])
def test_transforms_that_would_change_the_meaning_are_refused(steps: list[Transform]) -> None:
    with pytest.raises(IllegalTransform):
        apply(product(), steps)


def test_loops_that_meet_in_the_target_are_not_parallel() -> None:
    x, y = Buffer("x", (8, 8), "f32", "input"), Buffer("y", (15,), "f32")
    i, j = Var("i", 8), Var("j", 8)
    diagonal = Affine(tuple(sorted(((i, 1), (j, 1)), key=lambda t: t[0].id)))
    t = tree([member(Assign(Access(y, (diagonal,)), "add", True, (i, j), Access(x, at(i, j))))], [y])
    with pytest.raises(IllegalTransform):
        apply(Kernel(t.body, t.spaces), [Mark("i", "parallel")])


def test_places_from_data_are_not_added_to_side_by_side() -> None:
    ids, x, y = Buffer("ids", (40,), "i32", "input"), Buffer("x", (40,), "f32", "input"), Buffer("y", (8,), "f32")
    i = Var("i", 40)
    place = (Dynamic(Access(ids, at(i))),)
    t = tree([member(Assign(Access(y, place, True), "add", False, (i,), Access(x, at(i))))], [y])
    for kind in ("vector", "parallel"):
        with pytest.raises(IllegalTransform, match="turns of i meet in y"):
            apply(Kernel(t.body, t.spaces), [Mark("i", kind)])


def sgd(update_first: bool = False) -> Program:
    """y = w·x; w := w - lr·x."""
    w, x, y = Buffer("w", (50,), "f32", "param"), Buffer("x", (50,), "f32", "input"), Buffer("y", (50,), "f32")
    lr, new = Buffer("lr", (), "f32", "input"), Buffer("w2", (50,), "f32")
    i, j = Var("i", 50), Var("j", 50)
    step = Apply("sub", (Access(w, at(j)), Apply("mul", (Access(lr, ()), Access(x, at(j))), "f32")), "f32")
    use = Assign(Access(y, at(i)), "set", True, (i,), Apply("mul", (Access(w, at(i)), Access(x, at(i))), "f32"))
    update = Assign(Access(new, at(j)), "set", True, (j,), step)
    return Program("sgd", (x, lr), (y,), [update, use] if update_first else [use, update], ((w, new),))


@pytest.mark.parametrize("update_first", [False, True])
def test_parameters_are_updated_in_place(update_first: bool) -> None:
    program = sgd(update_first)
    plan = plan_program(program, avx2())
    ((w, new),) = program.stores
    assert plan.homes[new] == plan.homes[w] and plan.arena == 0
    a, p = np.arange(50, dtype=np.float32), np.ones(50, np.float32)
    storage = {program.inputs[0]: a, program.inputs[1]: np.array(0.5, np.float32), w: p}
    (y,) = compile_program(program).run(storage)
    np.testing.assert_array_equal(y, a)
    np.testing.assert_array_equal(p, 1 - 0.5 * a)


def test_a_slot_is_written_without_copying_the_rest() -> None:
    cache, x = Buffer("cache", (20, 9), "f32", "state"), Buffer("x", (9,), "f32", "input")
    pos, new = Buffer("pos", (), "i32", "input"), Buffer("cache2", (20, 9), "f32")
    i, j, k = Var("i", 20), Var("j", 9), Var("k", 9)
    slot = (Dynamic(Access(pos, ())), Affine.of(k))
    program = Program("step", (x, pos), (), [
        Assign(Access(new, at(i, j)), "set", True, (i, j), Access(cache, at(i, j))),
        Assign(Access(new, slot, True), "set", False, (k,), Access(x, at(k))),
    ], ((cache, new),))  # fmt: skip
    compiled = compile_program(program)
    assert len(compiled.steps) == 1 and compiled.plan.arena == 0
    content = np.zeros((20, 9), np.float32)
    routine = compiled.bind({cache: content})
    row = np.arange(9, dtype=np.float32)
    for n in (3, 19, 20, -1):
        routine([row, np.array(n, np.int32)], [])
    expected = np.zeros((20, 9), np.float32)
    expected[[3, 19]] = row
    np.testing.assert_array_equal(content, expected)


def test_parameters_that_change_places_are_copied() -> None:
    p, q = Buffer("p", (5,), "f32", "param"), Buffer("q", (5,), "f32", "param")
    program = Program("swap", (), (), [], ((p, q), (q, p)))
    a, b = np.arange(5, dtype=np.float32), np.ones(5, np.float32)
    compile_program(program).run({p: a, q: b})
    np.testing.assert_array_equal(a, np.ones(5))
    np.testing.assert_array_equal(b, np.arange(5))


def test_the_arena_is_used_again() -> None:
    x = Buffer("x", (30, 30), "f32", "input")
    assigns: list[Assign] = []
    previous = x
    for _ in range(6):
        i, j, k = (Var(n, 30) for n in "ijk")
        y = Buffer("y", (30, 30), "f32")
        value: Expr = Apply("mul", (Access(previous, at(i, k)), Access(previous, at(k, j))), "f32")
        assigns.append(Assign(Access(y, at(i, j)), "add", True, (i, j, k), value))
        previous = y
    plan = plan_program(Program("chain", (x,), (previous,), assigns), avx2())
    offsets = [h.offset for h in plan.homes.values() if isinstance(h, Arena)]
    assert plan.arena <= 3 * 30 * 30 * 4 + 3 * 64 and len(offsets) > len(set(offsets))


def test_what_nothing_reads_is_not_stored() -> None:
    a, b = Buffer("a", (32, 40), "f32", "input"), Buffer("b", (40, 24), "f32", "input")
    c, d = Buffer("c", (32, 24), "f32"), Buffer("d", (32, 24), "f32")
    i, j, k = Var("i", 32), Var("j", 24), Var("k", 40)
    value = Apply("mul", (Access(a, at(i, k)), Access(b, at(k, j))), "f32")
    half: Expr = Apply("relu", (Apply("sub", (Access(c, at(i, j)), Const(0.5, "f32")), "f32"),), "f32")
    program = Program("p", (a, b), (d,), [
        Assign(Access(c, at(i, j)), "add", True, (i, j, k), value),
        Assign(Access(d, at(i, j)), "set", True, (i, j), half),
    ])  # fmt: skip
    plan = plan_program(program, avx2())
    assert len(plan.kernels) == 1 and plan.arena == 0


def test_sums_do_not_wait_in_a_state_that_is_still_read() -> None:
    m, n, l = 48, 200, 1500
    a, b = Buffer("a", (m, l), "f32", "input"), Buffer("b", (l, n), "f32", "input")
    s, new = Buffer("s", (m, n), "f32", "state"), Buffer("s2", (m, n), "f32")
    c, d = Buffer("c", (m, n), "f32"), Buffer("d", (m, n), "f32")
    i, j, k = Var("i", m), Var("j", n), Var("k", l)
    value = Apply("mul", (Access(a, at(i, k)), Access(b, at(k, j))), "f32")
    change = Apply("sub", (Access(c, at(i, j)), Access(s, at(i, j))), "f32")
    program = Program("p", (a, b), (d,), [
        Assign(Access(c, at(i, j)), "add", True, (i, j, k), value),
        Assign(Access(d, at(i, j)), "set", True, (i, j), change),
        Assign(Access(new, at(i, j)), "set", True, (i, j), Access(c, at(i, j))),
    ], ((s, new),))  # fmt: skip
    compiled = compile_program(program)
    assert any("block k" in kernel.note for kernel in compiled.plan.kernels)
    rng = np.random.default_rng(0)
    x, y, old = (rng.integers(-2, 3, b.shape).astype(np.float32) for b in (a, b, s))
    state = old.copy()
    (got,) = compiled.run({a: x, b: y, s: state})
    np.testing.assert_array_equal(got, x @ y - old)
    np.testing.assert_array_equal(state, x @ y)


@pytest.mark.parametrize(
    "steps",
    [
        [Split("j", 8), Split("i", 4), Mark("j.i", "vector"), Mark("i.i", "vector")],
        [Mark("j", "parallel")],
        [Split("j", 8), Mark("j.i", "vector")],
        [Split("j", 8), Sink("j.i")],
        [Split("k", 4), Lanes("k.i")],
    ],
)
def test_kernels_that_cannot_be_carried_out_are_told(steps: list[Transform]) -> None:
    with pytest.raises(IllegalTransform):
        verify(apply(product(), steps))
