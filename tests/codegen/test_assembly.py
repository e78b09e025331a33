"""The machine code of hot loops: sums stay in registers, and nothing is called."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ocannl_lang.codegen.cpu import plan_program
from ocannl_lang.codegen.llvm.compile import assembly
from ocannl_lang.codegen.llvm.kernel import function_of
from ocannl_lang.codegen.llvm.target import Target, target_of
from ocannl_lang.driver.pipeline import loops_of
from ocannl_lang.driver.program import Program as Opened
from ocannl_lang.driver.session import Session
from ocannl_lang.loops.ir import Access, Affine, Apply, Assign, Buffer, Const, Expr, Program, Var
from ocannl_lang.schedule.ir import Kernel
from ocannl_lang.schedule.transforms import Mark, Sink, Split, Transform, apply
from tests.codegen.test_contractions import einsum
from tests.codegen.test_schedule import product as matrix_product
from tests.snapshots.documents import checked

TARGETS = {
    "avx2": target_of("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx2,+fma,+sse4.1"),
    "avx512": target_of(
        "x86_64-unknown-linux-gnu", "x86-64-v4", "+avx2,+fma,+sse4.1,+avx512f,+avx512vl,+avx512bw,+avx512dq"
    ),
    "neon": target_of("aarch64-unknown-linux-gnu", "generic", "+neon"),
}
LAYOUTS = ["ik,kj->ij", "ik,jk->ij", "ki,kj->ij", "ki,jk->ij"]

_LABEL = re.compile(r"^(\.?L\w+):")
_JUMP = re.compile(r"^\s+(?:j\w+|b(?:\.\w+)?|cbn?z\s+\w+,|tbn?z\s+\w+,\s*#\w+,)\s+(\.?L\w+)$")
_CALL = re.compile(r"^\s+(callq?|bl|blr)\s")
_MULTIPLY_ADD = re.compile(r"^\s+(vfn?m(add|sub)\w+|fml[as]|fn?m(add|sub))\s")
# Places of the stack at a fixed distance: what did not find a register. Copies that a kernel makes there have an index.
_SLOT = re.compile(r"\(%rsp\)|\[sp(, #-?\d+)?\]")
_FRAME_SLOT = re.compile(r"\(%rbp\)|\[x29(, #-?\d+)?\]")
# The register of the frame is one like all others where a function has no frame.
_FRAME = re.compile(r"^\s+(movq\s+%rsp, %rbp|mov\s+x29, sp|add\s+x29, sp, #\d+)$", re.M)


def innermost(lines: list[str]) -> Iterator[list[str]]:
    """Loops without loops inside: from a label to a jump back to it."""
    labels = {m[1]: n for n, line in enumerate(lines) if (m := _LABEL.match(line))}
    loops = sorted(
        {(start, n) for n, line in enumerate(lines) if (m := _JUMP.match(line)) and (start := labels[m[1]]) < n}
    )
    for start, end in loops:
        if not any((a, b) != (start, end) and start <= a and b <= end for a, b in loops):
            yield lines[start : end + 1]


def check(program: Program, target: Target, least: int = 1) -> None:
    """Every hot loop of a program: those of its innermost loops that multiply and add, `least` in all."""
    assert sum(checked_loops(kernel, target) for kernel in plan_program(program, target).kernels) >= least


def checked_loops(kernel: Kernel, target: Target) -> int:
    """How many hot loops a kernel has, each found to be without stack traffic."""
    text = assembly(function_of(kernel, target).text, target)
    lines = [line.split("//")[0].rstrip() for line in text.splitlines()]
    assert not [line for line in lines if _CALL.match(line)], kernel.note
    frame = bool(_FRAME.search(text))
    hot = [loop for loop in innermost(lines) if any(_MULTIPLY_ADD.match(line) for line in loop)]
    for loop in hot:
        slots = [line for line in loop if _SLOT.search(line) or (frame and _FRAME_SLOT.search(line))]
        assert not slots, "\n".join([kernel.note, *loop])
    return len(hot)


def test_a_tile_with_too_many_sums_is_noticed(target: Target) -> None:
    steps: list[Transform] = [
        Split("j", 64),
        Split("i", 9),
        Mark("j.i", "vector"),
        Sink("j.i"),
        Mark("i.i", "unrolled"),
        Sink("i.i"),
    ]
    tiled = apply(matrix_product(63, 64, 128), steps)
    with pytest.raises(AssertionError, match="split j 64"):
        checked_loops(tiled, target)


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> Target:
    return TARGETS[request.param]


def product(layout: str, sizes: tuple[int, int, int], epilogue: bool = False) -> Program:
    operands, result = layout.split("->")
    first, second = operands.split(",")
    return einsum(dict(zip("ijk", sizes)), first, second, result, epilogue=epilogue)[0]


def with_adam(layout: str, sizes: tuple[int, int, int]) -> Program:
    """A product that is the gradient of a parameter, which Adam updates."""
    program = product(layout, sizes)
    (g,) = program.outputs
    (first,) = program.assigns
    own = {name: Buffer(name, g.shape, "f32", "param", name) for name in "wmv"}
    new = {name: Buffer(f"{name}2", g.shape, "f32") for name in "wmv"}
    rate = Buffer("rate", (), "f32", "input")
    loops = tuple(Var(f"n{k}", s) for k, s in enumerate(g.shape))
    at = tuple(Affine.of(v) for v in loops)

    def apply(fn: str, *args: Expr) -> Expr:
        return Apply(fn, args, "f32")

    def mean(name: str, decay: float, value: Expr) -> Expr:
        kept = apply("mul", Const(decay, "f32"), Access(own[name], at))
        return apply("add", kept, apply("mul", Const(1 - decay, "f32"), value))

    grad = Access(g, at)
    down = apply("add", apply("sqrt", Access(new["v"], at)), Const(1e-8, "f32"))
    step = apply("div", apply("mul", Access(rate, ()), Access(new["m"], at)), down)
    updates = {
        "m": mean("m", 0.9, grad),
        "v": mean("v", 0.999, apply("mul", grad, grad)),
        "w": apply("sub", Access(own["w"], at), step),
    }
    assigns = [Assign(Access(new[name], at), "set", True, loops, value) for name, value in updates.items()]
    stores = tuple((own[name], new[name]) for name in updates)
    return Program("adam", (*program.inputs, rate), (), [first, *assigns], stores)


@pytest.mark.parametrize("sizes", [(64, 64, 64), (37, 50, 29), (128, 784, 300), (1, 256, 512)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_products(layout: str, sizes: tuple[int, int, int], target: Target) -> None:
    check(product(layout, sizes), target)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_with_bias_and_relu(layout: str, target: Target) -> None:
    check(product(layout, (64, 128, 100), epilogue=True), target)


@pytest.mark.parametrize("sizes", [(64, 128, 100), (10, 64, 33)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_with_their_updates(layout: str, sizes: tuple[int, int, int], target: Target) -> None:
    check(with_adam(layout, sizes), target)


def compiled(source: str, target: Target, least: int = 1) -> None:
    opened = Opened(checked({"net.ocn": source}), Session().options, Path("net.ocn"))
    for routine in opened.routines.values():
        check(loops_of(opened, routine), target, least)


def test_a_convolution(target: Target) -> None:
    n, size, k, c, o = 4, 14, 3, 8, 32
    x, w = Buffer("x", (n, size, size, c), "f32", "input"), Buffer("w", (o, k, k, c), "f32", "input")
    out = size - k + 1
    y = Buffer("y", (n, out, out, o), "f32")
    vn, vh, vw, vo, kh, kw, vc = (Var(name, s) for name, s in zip("nhwopqc", (n, out, out, o, k, k, c), strict=True))
    read = Access(x, (Affine.of(vn), Affine(((vh, 1), (kh, 1))), Affine(((vw, 1), (kw, 1))), Affine.of(vc)))
    value = Apply("mul", (read, Access(w, tuple(map(Affine.of, (vo, kh, kw, vc))))), "f32")
    place = Access(y, tuple(map(Affine.of, (vn, vh, vw, vo))))
    check(Program("conv", (x, w), (y,), [Assign(place, "add", True, (vn, vh, vw, vo, kh, kw, vc), value)]), target)


def test_softmax(target: Target) -> None:
    compiled("use nn\n\nroutine apply(x: f32[32 | 100]) -> f32[32 | 100]:\n    return nn.softmax(x)\n", target)


def test_attention(target: Target) -> None:
    source = """
use nn

let block = nn.attention[heads = 4, d_k = 16]

routine apply(x: f32[4, 48 | 64]) -> f32[4, 48 | 64]:
    return block(x)
"""
    compiled(source, target, least=4)
