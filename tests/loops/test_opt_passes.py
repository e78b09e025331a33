"""Every pass keeps the meaning of programs, and does what it is for."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ocannl_lang.codegen.cpu import compile_program
from ocannl_lang.codegen.reference import run_program
from ocannl_lang.loops.ir import Access, Affine, Apply, Assign, Buffer, Const, Dynamic, Expr, Position, Program, Var
from ocannl_lang.loops.optimise import PASSES, optimise
from ocannl_lang.loops.text import dump
from ocannl_lang.loops.verify import verify
from tests.codegen.generate import Generator


def at(*vs: Var) -> tuple[Affine, ...]:
    return tuple(Affine.of(v) for v in vs)


def check_passes(seed: int) -> None:
    program, storage = Generator(seed).program()
    verify(program)
    before = {b: a.copy() for b, a in storage.items()}
    expected = run_program(program, before)
    for p in PASSES:
        program = p.run(program)
        verify(program)
        after = {b: a.copy() for b, a in storage.items()}
        got = run_program(program, after)
        for e, g in zip([*expected, *before.values()], [*got, *after.values()]):
            np.testing.assert_allclose(g, e, rtol=1e-5, atol=1e-5, err_msg=p.name + "\n" + dump(program))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32))
def test_passes_keep_the_meaning(seed: int) -> None:
    check_passes(seed)


def lookup(size: int, width: int, batch: int) -> tuple[Program, Program]:
    """An embedding by a one-hot product, and its gradient."""
    w, ids = Buffer("w", (width, size), "f32", "input"), Buffer("ids", (batch,), "i32", "input")
    hot, y = Buffer("hot", (batch, size), "f32"), Buffer("y", (batch, width), "f32")
    arange = Buffer("arange", (size,), "i32")
    b, k, o = Var("b", batch), Var("k", size), Var("o", width)
    one: Expr = Apply("convert", (Apply("eq", (Access(arange, at(k)), Access(ids, at(b))), "u8"),), "f32")
    steps = [
        Assign(Access(arange, at(k)), "set", True, (k,), Position(Affine.of(k), "i32")),
        Assign(Access(hot, at(b, k)), "set", True, (b, k), one),
    ]
    product = Apply("mul", (Access(w, at(o, k)), Access(hot, at(b, k))), "f32")
    forward = Program("f", (w, ids), (y,), [*steps, Assign(Access(y, at(b, o)), "add", True, (b, o, k), product)])
    g, wg = Buffer("g", (batch, width), "f32", "input"), Buffer("wg", (width, size), "f32")
    product = Apply("mul", (Access(g, at(b, o)), Access(hot, at(b, k))), "f32")
    backward = Program("b", (g, ids), (wg,), [*steps, Assign(Access(wg, at(o, k)), "add", True, (o, k, b), product)])
    return forward, backward


def test_one_hot_products_become_gathers_and_scatters() -> None:
    for program in lookup(7, 4, 5):
        small = optimise(program)
        verify(small)
        assert len(small.assigns) == 1, dump(small)
        a = small.assigns[0]
        assert len(a.loops) == 2
        accesses = [a.target, *([] if not isinstance(a.value, Access) else [a.value])]
        assert any(isinstance(i, Dynamic) for x in accesses for i in x.index)
        first = np.random.default_rng(0).standard_normal(program.inputs[0].shape).astype(np.float32)
        storage = {program.inputs[0]: first, program.inputs[1]: np.array([3, 0, -1, 7, 3], np.int32)}
        np.testing.assert_allclose(run_program(small, storage)[0], run_program(program, storage)[0], rtol=1e-6)


def test_pointwise_chains_become_one_assignment() -> None:
    x, n = Buffer("x", (6, 5), "f32", "input"), (6, 5)
    chain, previous = [], x
    for k in range(5):
        i, j = Var("i", 6), Var("j", 5)
        t = Buffer(f"t{k}", n, "f32")
        value = Apply("tanh", (Apply("mul", (Access(previous, at(i, j)), Const(2.0, "f32")), "f32"),), "f32")
        chain.append(Assign(Access(t, at(i, j)), "set", True, (i, j), value))
        previous = t
    assert len(optimise(Program("p", (x,), (previous,), chain)).assigns) == 1


def test_expensive_values_do_not_move_into_sums_that_repeat_them() -> None:
    x, w = Buffer("x", (8, 16), "f32", "input"), Buffer("w", (9, 16), "f32", "input")
    t, y = Buffer("t", (8, 16), "f32"), Buffer("y", (8, 9), "f32")
    i, k, o = Var("i", 8), Var("k", 16), Var("o", 9)
    program = Program("p", (x, w), (y,), [
        Assign(Access(t, at(i, k)), "set", True, (i, k), Apply("tanh", (Access(x, at(i, k)),), "f32")),
        Assign(Access(y, at(i, o)), "add", True, (i, o, k), Apply("mul", (Access(t, at(i, k)), Access(w, at(o, k))), "f32")),
    ])  # fmt: skip
    assert len(optimise(program).assigns) == 2


def test_a_fill_and_a_sum_become_a_fresh_sum() -> None:
    x, y = Buffer("x", (3, 4), "f32", "input"), Buffer("y", (3,), "f32")
    i, j = Var("i", 3), Var("j", 4)
    program = Program("p", (x,), (y,), [
        Assign(Access(y, at(i)), "set", True, (i,), Const(0.0, "f32")),
        Assign(Access(y, at(i)), "add", False, (i, j), Access(x, at(i, j))),
    ])  # fmt: skip
    (a,) = optimise(program).assigns
    assert a.fresh and a.accum == "add"


def test_equal_assignments_are_shared() -> None:
    x = Buffer("x", (3, 4), "f32", "input")
    sums = [Buffer("s", (3,), "f32") for _ in range(2)]
    y = Buffer("y", (3,), "f32")
    steps = []
    for s in sums:
        i, j = Var("i", 3), Var("j", 4)
        steps.append(Assign(Access(s, at(i)), "add", True, (i, j), Access(x, at(i, j))))
    i = Var("i", 3)
    both = Apply("mul", (Access(sums[0], at(i)), Access(sums[1], at(i))), "f32")
    steps.append(Assign(Access(y, at(i)), "set", True, (i,), both))
    assert len(optimise(Program("p", (x,), (y,), steps)).assigns) == 2


def vector_matrix(rows: int, columns: int, count: int = 1) -> Program:
    x, m, y = (
        Buffer("x", (count, rows), "f32", "input"),
        Buffer("m", (rows, columns), "f32", "input"),
        Buffer("y", (count, columns), "f32"),
    )
    i, j, k = Var("i", count), Var("j", columns), Var("k", rows)
    product = Apply("mul", (Access(x, at(i, k)), Access(m, at(k, j))), "f32")
    z = Buffer("z", (count, columns), "f32")
    return Program("p", (x, m), (z,), [
        Assign(Access(y, at(i, j)), "add", True, (i, j, k), product),
        Assign(Access(z, at(i, j)), "set", True, (i, j), Apply("add", (Access(y, at(i, j)), Const(1.0, "f32")), "f32")),
    ])  # fmt: skip


def test_a_vector_times_a_large_matrix_is_taken_in_parts() -> None:
    for rows, columns in ((1024, 1100), (2048, 513), (1028, 4096)):
        program = vector_matrix(rows, columns)
        parted = optimise(program)
        verify(parted)
        assert any(a.target.buffer.name == "y.parts" for a in parted.assigns)
        rng = np.random.default_rng(0)
        storage = {b: rng.integers(-3, 4, b.shape).astype(np.float32) for b in program.inputs}
        expected = run_program(program, dict(storage))
        runs = [compile_program(program, threads=n).run(storage) for n in (1, 2, 3)]
        for (got,) in runs:
            np.testing.assert_array_equal(got, expected[0])
        storage = {b: rng.standard_normal(b.shape).astype(np.float32) for b in program.inputs}
        bits = {compile_program(program, threads=n).run(storage)[0].tobytes() for n in (1, 2, 3, 8)}
        assert len(bits) == 1


def test_other_products_are_not_taken_in_parts() -> None:
    for program in (
        vector_matrix(64, 1100),
        vector_matrix(1026, 1100),
        vector_matrix(1024, 5000),
        vector_matrix(1024, 1100, 2),
    ):
        assert not any(a.target.buffer.name.endswith(".parts") for a in optimise(program).assigns)
