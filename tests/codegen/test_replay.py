"""Printed schedules are read back, and make the same loops again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocannl_lang.codegen.cpu import plan_program
from ocannl_lang.driver.pipeline import loops_of
from ocannl_lang.driver.session import Session
from ocannl_lang.loops.ir import Program
from ocannl_lang.loops.text import Names
from ocannl_lang.schedule.ir import Kernel
from ocannl_lang.schedule.replay import ReplayError, parse_steps, replay
from ocannl_lang.schedule.templates import schedule_of
from ocannl_lang.schedule.text import dump, kernel_text, steps_text
from ocannl_lang.schedule.transforms import Block, Lanes, Mark, Order, Sink, Split, Stage, Transform
from ocannl_lang.schedule.verify import verify
from tests.codegen.generate import Generator
from tests.codegen.networks import Network
from tests.codegen.test_contractions import einsum
from tests.codegen.test_schedule import avx2, product

EXAMPLES = Path(__file__).parents[2] / "examples"


def check(program: Program) -> None:
    for kernel in plan_program(program, avx2()).kernels:
        verify(kernel)
        before, steps = schedule_of(kernel)
        text = steps_text(kernel)
        assert len(text.splitlines()) == len(steps)
        again = replay(before, text)
        assert kernel_text(again) == kernel_text(kernel), text
        assert steps_text(again) == text


@pytest.mark.parametrize("name", ["half_moons", "digits"])
def test_kernels_of_examples_are_made_again_from_their_text(name: str) -> None:
    program = Session().open(EXAMPLES / f"{name}.ocn")
    for routine in program.routines.values():
        check(loops_of(program, routine))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["attention", "convnet", "names"])
def test_kernels_of_larger_examples_are_made_again_from_their_text(name: str) -> None:
    test_kernels_of_examples_are_made_again_from_their_text(name)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32))
def test_kernels_of_random_programs_are_made_again_from_their_text(seed: int) -> None:
    check(Generator(seed).program()[0])
    check(Network(seed).program()[0])


@pytest.mark.parametrize("layout", ["ik,kj->ij", "ik,jk->ij", "ki,kj->ij", "ki,jk->ji", "kj,k->j"])
@pytest.mark.parametrize("size", [24, 300])
def test_kernels_of_products_are_made_again_from_their_text(layout: str, size: int) -> None:
    operands, result = layout.split("->")
    first, second = operands.split(",")
    check(einsum({"i": size + 1, "j": size + 30, "k": size}, first, second, result, epilogue=True)[0])


def test_a_text_with_several_kernels_has_names_for_all() -> None:
    kernels = plan_program(Network(5).program(20)[0], avx2()).kernels
    sections = dump(kernels).split("\nkernel ")
    names = Names()
    for kernel, text in zip(kernels, sections, strict=True):
        _, found, rest = text.partition("\n  steps\n")
        steps, _, loops = rest.partition("\n  loops\n")
        if not found:
            kernel_text(kernel, names)
            continue
        made = kernel_text(replay(schedule_of(kernel)[0], steps, names), names)
        # Private buffers are new ones; apart from their numbers all is the same.
        assert len(made.splitlines()) == len(loops.rstrip("\n").splitlines()) + 1


def operand(kernel: Kernel, name: str):
    from ocannl_lang.loops.ir import accesses
    from ocannl_lang.schedule.trees import computes

    return next(a.buffer for c in computes(kernel.body) for a in accesses(c.value) if a.buffer.name == name)


def test_every_step_is_read_as_it_is_printed() -> None:
    kernel = product(20, 40, 50)
    steps: list[Transform] = [
        Order(("j", "i")), Split("j", 24), Block("k", 16, "j.o"), Stage(operand(kernel, "b"), "i", "j.i", 8), Split("i", 6),
        Sink("i.i", ("j.i", "k")), Mark("j.i", "vector"), Sink("j.i"), Mark("i.i", "unrolled"), Sink("i.i"), Split("k", 4), Lanes("k.i"),
    ]  # fmt: skip
    text = """
        order j i
        split j 24

        block k 16 in j.o
        stage b for i along j.i by 8
        split i 6
        sink i.i past j.i k
        vector j.i
        sink j.i
        unrolled i.i
        sink i.i
        split k 4
        lanes k.i
    """
    assert parse_steps(text, kernel) == steps


def test_packed_operands_are_read_as_they_are_printed() -> None:
    kernel = product(20, 40, 50)
    (step,) = parse_steps("split j 16 packing b[k, j] as b.packed[j.o, k, j.i]", kernel)
    assert isinstance(step, Split)
    (packed,) = step.packed
    assert packed.operand.buffer is operand(kernel, "b") and packed.copy.shape == (4, 40, 16)
    assert [v.name for v in packed.sums] == ["k"] and not packed.outer


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("split j 16\nturn j", "line 2: `turn` is no step; steps are split, order, block, stage, sink"),
        ("split j", "line 1: `split j` is not of the form `split LOOP TURNS packing OPERAND[…] as COPY[…]`"),
        ("split j none", "line 1: `none` is no number of turns, as in `split LOOP TURNS packing OPERAND[…] as COPY[…]`"),
        ("split j 0", "line 1: `0` is no number of turns, as in `split LOOP TURNS packing OPERAND[…] as COPY[…]`"),
        ("\nstage d for i along j by 8", "line 2: there is no `d` in the nest"),
        ("split j 16 packing b[j, k] as p[j.o, k, j.i]", "line 1: nothing in the nest reads `b[j, k]`"),
        ("split j 16 packing b[k, j] as p[k, j.i]", "line 1: a copy for a split of j has an axis j.o, and j.i as its last"),
        ("split j 16 packing b[k, j]", "line 1: `packing b[k, j]` is not of the form `packing OPERAND[…] as COPY[…]`"),
        ("split j 16 packing b[k, j] as p[j.o, l, j.i]", "line 1: there is no loop `l` in the nest"),
        ("order i i", "line 1: `order i i` is not of the form `order LOOP LOOP …`"),
        ("vector i packing b[k, j] as p[j.o, k, j.i]", "line 1: only a split packs operands"),
        ("split j 16\nsink k", "line 2: turns of k meet in sum"),
        ("vector x", "line 1: there is no loop x"),
    ],
)  # fmt: skip
def test_bad_text_names_its_line(text: str, message: str) -> None:
    with pytest.raises(ReplayError) as e:
        replay(product(), text)
    assert str(e.value).startswith(message)
