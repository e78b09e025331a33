"""The work of kernels: operations and bytes, whatever the schedule."""

from __future__ import annotations

import pytest

from ocannl_lang.codegen.cpu import plan_program
from ocannl_lang.codegen.llvm.target import host_target
from ocannl_lang.codegen.work import Work, work_of
from ocannl_lang.loops.ir import Access, Affine, Apply, Assign, Buffer, Const, Dynamic, Expr, Program, Var
from ocannl_lang.schedule.ir import Compute, Kernel, Loop


def at(b: Buffer, *loops: Var) -> Access:
    return Access(b, tuple(Affine.of(v) for v in loops))


def apply(fn: str, *args: Expr, prec: str = "f32") -> Apply:
    return Apply(fn, args, prec)


def whole(program: Program) -> Work:
    works = [work_of(k) for k in plan_program(program, host_target()).kernels]
    return Work(*(sum(getattr(w, n) for w in works) for n in ("flops", "flops64", "functions", "read", "written")))


@pytest.mark.parametrize("m, n, k", [(64, 64, 64), (5, 7, 300), (1, 130, 33)])
def test_a_product_is_two_operations_a_term(m, n, k):
    i, j, t = Var("i", m), Var("j", n), Var("k", k)
    a, b = Buffer("a", (m, k), "f32", "input"), Buffer("b", (k, n), "f32", "input")
    c = Buffer("c", (m, n), "f32")
    product = Assign(at(c, i, j), "add", True, (i, j, t), apply("mul", at(a, i, t), at(b, t, j)))
    work = whole(Program("f", (a, b), (c,), [product]))
    assert (
        2 * m * n * k <= work.flops <= 2 * m * n * k + 64 * m * n
    )  # lanes of sums side by side are added up at the end
    assert work.flops64 == work.functions == 0
    # Operands that are copied into another order are read and written once more.
    assert 4 * (m * k + k * n) <= work.read <= 8 * (m * k + k * n) + 4 * m * n
    assert work.written >= 4 * m * n


def one(value: Expr, *loops: Var, target: Buffer | None = None) -> Work:
    b = target or Buffer("y", tuple(v.size for v in loops), "f32")
    body = (Compute(at(b, *loops), "set", value),)
    for v in reversed(loops):
        body = (Loop(v, "serial", body),)
    return work_of(Kernel(body))


def test_functions_cost_several_operations_and_are_counted():
    i = Var("i", 10)
    x = Buffer("x", (10,), "f32")
    work = one(apply("exp", apply("add", at(x, i), Const(1.0, "f32"))), i)
    assert (work.flops, work.functions) == (10 * (10 + 1), 10)
    assert (work.read, work.written) == (40, 40)


def test_choices_and_conversions_and_ints_are_free():
    i = Var("i", 10)
    n = Buffer("n", (10,), "i32")
    x = Buffer("x", (10,), "f32")
    assert one(apply("convert", apply("add", at(n, i), at(n, i), prec="i32")), i).operations == 0
    chosen = apply("where", apply("gt", at(x, i), Const(0.0, "f32"), prec="u8"), at(x, i), Const(0.0, "f32"))
    assert one(chosen, i).operations == 10  # the comparison


def test_f64_is_counted_apart():
    i = Var("i", 10)
    x = Buffer("x", (10,), "f64")
    work = one(apply("mul", at(x, i), at(x, i), prec="f64"), i, target=Buffer("y", (10,), "f64"))
    assert (work.flops, work.flops64, work.read, work.written) == (0, 10, 80, 80)


def test_what_is_read_often_counts_once():
    i, j = Var("i", 10), Var("j", 20)
    row = Buffer("row", (20,), "f32")
    assert one(at(row, j), i, j).read == 80


def test_gathered_rows_count_as_many_as_are_taken():
    i, j = Var("i", 3), Var("j", 8)
    ids, table = Buffer("ids", (3,), "i32"), Buffer("table", (1000, 8), "f32")
    taken = Access(table, (Dynamic(at(ids, i)), Affine.of(j)), guarded=True)
    assert one(taken, i, j).read == 3 * 4 + 3 * 8 * 4


def test_parts_of_a_buffer_count_as_parts():
    i = Var("i", 4)
    x = Buffer("x", (100,), "f32")
    shifted = Access(x, (Affine(((i, 2),), 10),))
    assert one(apply("add", at(x, i), shifted), i).read == 32


def test_what_a_kernel_wrote_itself_is_not_read():
    i, j = Var("i", 10), Var("j", 10)
    x, t, y = (Buffer(n, (10,), "f32") for n in ("x", "t", "y"))
    first = Loop(i, "serial", (Compute(at(t, i), "set", at(x, i)),))
    second = Loop(j, "serial", (Compute(at(y, j), "set", at(t, j)),))
    work = work_of(Kernel((first, second)))
    assert (work.read, work.written) == (40, 80)


def test_private_memory_is_not_moved():
    i = Var("i", 10)
    x, t = Buffer("x", (10,), "f32"), Buffer("t", (10,), "f32")
    work = work_of(Kernel((Loop(i, "serial", (Compute(at(t, i), "set", at(x, i)),)),), {t: "local"}))
    assert (work.read, work.written) == (40, 0)


def test_loops_without_turns_are_no_work():
    i = Var("i", 0)
    x = Buffer("x", (0,), "f32")
    assert one(apply("exp", at(x, i)), i) == Work(0, 0, 0, 0, 0)
