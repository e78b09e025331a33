"""What holds for every program: solutions satisfy their constraints, and neither order nor numbering matters."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from ocannl_lang.shapes import Solver, solve
from ocannl_lang.shapes.terms import Unknown
from ocannl_lang.shapes.verify import verify
from tests.shapes.program import Program, Tensor
from tests.shapes.random_programs import programs, rebuild, renumbered, shuffled

Case = tuple[Program, list[Tensor]]


@given(programs(), st.sampled_from([{}, {Unknown("n", "test"): 3}]))
@settings(max_examples=60, deadline=None)
def test_a_solution_without_errors_satisfies_every_constraint(case: Case, bindings: Any) -> None:
    problem = case[0].problem()
    note("\n".join(case[0].lines))
    solution = solve(problem, bindings)
    if not solution.errors:
        assert verify(solution, problem) == []


@given(programs(), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_the_order_of_constraints_does_not_matter(case: Case, seed: int) -> None:
    program, tensors = case
    note("\n".join(program.lines))
    first = solve(program.problem())
    second = solve(shuffled(program.problem(), seed))
    assert bool(first.errors) == bool(second.errors)
    if not first.errors:
        for t in tensors:
            assert first.shape(t.shape).sizes == second.shape(t.shape).sizes, t.name


@given(programs(), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_the_numbers_of_variables_do_not_matter(case: Case, seed: int) -> None:
    program, tensors = case
    note("\n".join(program.lines))
    first = solve(program.problem())
    problem, new = renumbered(program.problem(), seed)
    second = solve(problem)
    assert [e.diagnostic for e in first.errors] == [e.diagnostic for e in second.errors]
    for t in tensors:
        assert first.shape(t.shape) == second.shape(rebuild(t.shape, new)), t.name


@given(programs())
@settings(max_examples=40, deadline=None)
def test_asking_and_closing_on_the_way_changes_nothing(case: Case) -> None:
    program, tensors = case
    note("\n".join(program.lines))
    problem = program.problem()
    plain, curious = Solver(), Solver()
    for leaf in problem.leaves:
        plain.add_leaf(leaf)
        curious.add_leaf(leaf)
    for i, constraint in enumerate(problem.constraints):
        plain.add(constraint)
        curious.add(constraint)
        if i % 5 == 0:
            for t in tensors[-2:]:
                curious.row_dims(t.shape.output)
            curious.close()
    a, b = plain.close(), curious.close()
    assert [e.diagnostic for e in a.errors] == [e.diagnostic for e in b.errors]
    for t in tensors:
        assert a.shape(t.shape) == b.shape(t.shape)


@pytest.mark.slow
@given(programs(), st.integers(0, 10**6), st.sampled_from([{}, {Unknown("n", "test"): 3}]))
@settings(max_examples=3000, deadline=None)
def test_many_programs_in_other_orders(case: Case, seed: int, bindings: Any) -> None:
    program, tensors = case
    note("\n".join(program.lines))
    problem = program.problem()
    first, second = solve(problem, bindings), solve(shuffled(problem, seed), bindings)
    assert bool(first.errors) == bool(second.errors)
    if not first.errors:
        assert verify(first, problem) == []
        for t in tensors:
            assert first.shape(t.shape).sizes == second.shape(t.shape).sizes, t.name
