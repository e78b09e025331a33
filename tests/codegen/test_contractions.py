"""Products of every layout and size are what numpy says, on every kind of machine that this one can stand for."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocannl_lang.codegen.cpu import compile_program
from ocannl_lang.codegen.llvm.target import Target, host_target, target_of
from ocannl_lang.loops.ir import Access, Affine, Apply, Assign, Buffer, Const, Expr, Program, Var


def plain_target() -> Target:
    """A machine with nothing beyond the baseline: 16-byte vectors, no fused multiply-add, no rounding instructions."""
    host = host_target()
    if not host.triple.startswith(("x86_64", "amd64")):
        pytest.skip("needs an x86-64 machine")
    return target_of(host.triple, "x86-64", "")


def einsum(
    sizes: dict[str, int], first: str, second: str, result: str, prec: str = "f32", epilogue: bool = False
) -> tuple[Program, list[Buffer]]:
    """result = Σ first·second, maybe with relu(· + bias) after it, each operand in the order of its letters."""
    v = {c: Var(c, n) for c, n in sizes.items()}

    def at(letters: str) -> tuple[Affine, ...]:
        return tuple(Affine.of(v[c]) for c in letters)

    def buffer(name: str, letters: str, role: str = "temp") -> Buffer:
        return Buffer(name, tuple(sizes[c] for c in letters), prec, role)  # type: ignore[arg-type]

    a, b, c = buffer("a", first, "input"), buffer("b", second, "input"), buffer("c", result)
    sums = [x for x in dict.fromkeys(first + second) if x not in result]
    product = Apply("mul", (Access(a, at(first)), Access(b, at(second))), prec)
    loops = tuple(v[x] for x in (*result, *sums))
    assigns = [Assign(Access(c, at(result)), "add", True, loops, product)]
    if not epilogue:
        return Program("p", (a, b), (c,), assigns), [a, b]
    bias, d = buffer("bias", result[-1], "input"), buffer("d", result)
    sum_: Expr = Apply("add", (Access(c, at(result)), Access(bias, at(result[-1]))), prec)
    assigns.append(
        Assign(Access(d, at(result)), "set", True, tuple(v[x] for x in result), Apply("relu", (sum_,), prec))
    )
    return Program("p", (a, b, bias), (d,), assigns), [a, b, bias]


def check(seed: int, target: Target | None = None, most: int = 200_000) -> None:
    r = random.Random(seed)
    letters = "ijkl" if r.random() < 0.7 else "ijk"
    choices = (1, 2, 3, 5, 7, 8, 10, 13, 16, 17, 24, 31, 33, 48, 64, 65, 100, 130, 400)
    while True:
        sizes = {c: r.choice(choices) for c in letters}
        if np.prod(list(sizes.values())) <= most:
            break
    order = list(letters)
    r.shuffle(order)
    summed = order[: r.randint(1, len(order) - 1)]
    kept = [c for c in letters if c not in summed]
    first, second = list(summed), list(summed)
    for c in kept:
        where = r.random()
        if where < 0.6:
            (first if r.random() < 0.5 else second).append(c)
        else:
            first.append(c)
            second.append(c)
    for x in (first, second, kept):
        r.shuffle(x)
    prec = "f32" if r.random() < 0.75 else "f64"
    f, s, k = "".join(first), "".join(second), "".join(kept)
    epilogue = r.random() < 0.4 and bool(k)
    program, buffers = einsum(sizes, f, s, k, prec, epilogue)
    rng = np.random.default_rng(seed)
    kind = np.float32 if prec == "f32" else np.float64
    arrays = {b: rng.integers(-3, 4, b.shape).astype(kind) for b in buffers}
    expected = np.einsum(f"{f},{s}->{k}", arrays[buffers[0]].astype(np.float64), arrays[buffers[1]].astype(np.float64))
    if epilogue:
        expected = np.maximum(expected + arrays[buffers[2]], 0)
    got = compile_program(program, threads=2, target=target).run(arrays)[0]
    # Small whole numbers: sums are exact in any order.
    np.testing.assert_array_equal(got, expected, err_msg=f"{f},{s}->{k} {sizes}")


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32))
def test_einsums_of_two_operands(seed: int) -> None:
    check(seed)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32))
def test_einsums_on_a_plain_machine(seed: int) -> None:
    check(seed, plain_target())


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_many_einsums(seed: int) -> None:
    check(seed, most=4_000_000)


@pytest.mark.parametrize("layout", ["ik,kj->ij", "ik,jk->ij", "ki,kj->ij", "ki,jk->ji"])
def test_large_products_are_packed_and_blocked(layout: str) -> None:
    operands, result = layout.split("->")
    first, second = operands.split(",")
    program, buffers = einsum({"i": 100, "j": 150, "k": 520}, first, second, result, epilogue=True)
    rng = np.random.default_rng(0)
    arrays = {b: rng.integers(-2, 3, b.shape).astype(np.float32) for b in buffers}
    expected = np.maximum(
        np.einsum(layout, *(arrays[b].astype(np.float64) for b in buffers[:2])) + arrays[buffers[2]], 0
    )
    for threads in (1, 2, 3):
        np.testing.assert_array_equal(compile_program(program, threads=threads).run(arrays)[0], expected)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions(padded: bool, stride: int) -> None:
    n, size, k, c, o = 2, 9, 3, 4, 19
    out = size if padded else (size - k) // stride + 1
    out = -(-size // stride) if padded else out
    x, w = Buffer("x", (n, size, size, c), "f32", "input"), Buffer("w", (o, k, k, c), "f32", "input")
    y = Buffer("y", (n, out, out, o), "f32")
    vn, vh, vw, vo = Var("n", n), Var("h", out), Var("w", out), Var("o", o)
    kh, kw, vc = Var("p", k), Var("q", k), Var("c", c)
    shift = -((k - 1) // 2) if padded else 0

    def window(out_: Var, k_: Var) -> Affine:
        return Affine(((out_, stride), (k_, 1)), shift)

    read = Access(x, (Affine.of(vn), window(vh, kh), window(vw, kw), Affine.of(vc)), padded, 0)
    product = Apply("mul", (read, Access(w, tuple(Affine.of(v) for v in (vo, kh, kw, vc)))), "f32")
    target = Access(y, tuple(Affine.of(v) for v in (vn, vh, vw, vo)))
    program = Program("conv", (x, w), (y,), [Assign(target, "add", True, (vn, vh, vw, vo, kh, kw, vc), product)])
    rng = np.random.default_rng(1)
    a = rng.integers(-3, 4, x.shape).astype(np.float32)
    b = rng.integers(-3, 4, w.shape).astype(np.float32)
    wide = np.pad(a, ((0, 0), (-shift, k), (-shift, k), (0, 0)))
    expected = np.zeros(y.shape, np.float32)
    for i in range(k):
        for j in range(k):
            part = wide[:, i : i + stride * out : stride, j : j + stride * out : stride]
            expected += np.einsum("nhwc,oc->nhwo", part[:, :out, :out], b[:, i, j])
    np.testing.assert_array_equal(compile_program(program, threads=2).run({x: a, w: b})[0], expected)


def test_a_sum_of_everything() -> None:
    x, y = Buffer("x", (37, 41), "f64", "input"), Buffer("y", (), "f64")
    i, j = Var("i", 37), Var("j", 41)
    square = Apply("mul", (Access(x, (Affine.of(i), Affine.of(j))), Const(2.0, "f64")), "f64")
    program = Program("sum", (x,), (y,), [Assign(Access(y, ()), "add", True, (i, j), square)])
    a = np.arange(37 * 41, dtype=np.float64).reshape(37, 41)
    assert compile_program(program).run({x: a})[0] == 2 * a.sum()
