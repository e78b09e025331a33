"""Compiled programs do what the reference evaluator does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocannl_lang.codegen.cpu import compile_program
from ocannl_lang.codegen.reference import run_program
from ocannl_lang.loops.ir import Buffer, Program
from tests.codegen.generate import Generator
from tests.codegen.networks import Network


def check(seed: int) -> None:
    check_program(*Generator(seed).program())


def check_program(program: Program, storage: dict[Buffer, np.ndarray]) -> None:
    expected_storage = {b: a.copy() for b, a in storage.items()}
    expected = run_program(program, expected_storage)
    results: list[list[np.ndarray]] = []
    for threads in (1, 2):
        own = {b: a.copy() for b, a in storage.items()}
        got = compile_program(program, threads=threads).run(own)
        for b, e, g in zip(program.outputs, expected, got):
            _close(e, g, b.name)
        for b, a in own.items():
            _close(expected_storage[b], a, b.name)
        results.append([*got, *own.values()])
    for one, two in zip(*results):
        assert one.tobytes() == two.tobytes()


def _close(expected: np.ndarray, got: np.ndarray, name: str) -> None:
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-5, err_msg=name)
    else:
        np.testing.assert_array_equal(got, expected, err_msg=name)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_random_programs_equal_the_reference(seed: int) -> None:
    check(seed)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32))
def test_random_networks_equal_the_reference(seed: int) -> None:
    check_program(*Network(seed).program())


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**32))
def test_many_random_networks_equal_the_reference(seed: int) -> None:
    check_program(*Network(seed).program(20))


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(st.integers(0, 2**32))
def test_many_random_programs_equal_the_reference(seed: int) -> None:
    check(seed)
