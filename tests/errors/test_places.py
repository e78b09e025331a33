"""Where an error is told: once, where the user can repair it, with the places inside ops beside it."""

from __future__ import annotations

import pytest

from ocannl_lang.diagnostics.model import Diagnostic
from tests.snapshots.documents import diagnostics


def only(text: str, **modules: str) -> Diagnostic:
    """The only diagnostic of a program."""
    (found,) = diagnostics({"net.ocn": text, **{f"{n}.ocn": t for n, t in modules.items()}})
    return found


def label_lines(d: Diagnostic) -> list[int]:
    return [label.span.line for label in d.labels if label.span.source is d.span.source]


def test_the_story_of_a_layer_that_does_not_fit() -> None:
    found = only("op net(x):\n    let h = relu({w1: [784 -> 256]} * x)\n    return {w2: [128 -> 10]} * h\n")
    assert (found.code, found.line, found.column) == ("E0401", 3, 12)
    assert found.message == "sizes differ: 128 in `w2`, 256 in `h`"
    assert label_lines(found) == [3, 2]
    assert "contracts" in found.notes[0]
    assert "`{w2: [... -> 10]}`" in found.helps[0]


CONTRADICTORY = "op bad(x):\n    return {w: [3 -> 4]} * x + {b: [5]}\n"


def test_an_op_that_contradicts_itself_is_told_where_it_is_defined() -> None:
    calls = "routine f(x: f32[n | 3]):\n    return bad(x)\nroutine g(x: f32[n | 3]):\n    return bad(bad(x))\n"
    for text in (CONTRADICTORY, CONTRADICTORY + calls):
        assert only(text).line == 2


def test_so_it_is_in_another_module_of_the_user() -> None:
    found = only("from layers import bad\nroutine f(x: f32[n | 3]):\n    return bad(x)\n", layers=CONTRADICTORY)
    assert (found.span.source.path, found.line) == ("layers.ocn", 2)


def test_a_wrong_call_is_told_at_the_call() -> None:
    op = "op f(x):\n    return {w: [3 -> 4]} * x\n"
    found = only(op + "routine r(x: f32[n | 5]):\n    return f(x)\n")
    assert found.line == 4
    assert {2, 3} == set(label_lines(found))


def test_two_levels_deep_it_is_still_at_the_call() -> None:
    ops = "op f(x) = {w: [3 -> 4]} * x\nop g(x) = f(x) + 1\nop h(x) = g(x) * 2\n"
    found = only(ops + "routine r(x: f32[n | 5]):\n    return h(x)\n")
    assert (found.line, set(label_lines(found))) == (5, {1, 2, 3, 4})


def test_one_configuration_of_an_op_is_wrong() -> None:
    op = "op f[width: int](x) = {w: [3 -> width]} * x + {b: [5]}\nlet good = f[5]\n"
    found = only(op + "let bad = f[6]\nroutine r(x: f32[n | 3]):\n    return good(x) + bad(x)\n")
    assert found.line == 5
    assert "width = 6" in found.message


@pytest.mark.parametrize("call", ["mse(dense[5](x), y)", "cross_entropy(dense[4](x), i32(y))"])
def test_a_fault_inside_the_standard_library_is_told_in_the_program(call: str) -> None:
    name = call.split("(")[0]
    text = (
        f"from nn import dense\nfrom loss import {name}\nroutine r(x: f32[n | 3], y: f32[n | 4]):\n    return {call}\n"
    )
    found = only(text)
    assert (found.span.source.path, found.line) == ("net.ocn", 4)


def test_a_size_of_a_standard_op_is_missing_where_it_is_applied() -> None:
    found = only("from nn import dense\nlet net = dense\nroutine r(x: f32[n | 4]):\n    return net(x)\n")
    assert (found.code, found.span.source.path, found.line) == ("E0407", "net.ocn", 4)


def test_an_expectation_of_an_op_is_told_once() -> None:
    op = 'op f[n: int](x):\n    expect n % 2 == 0, "{n} is odd"\n    return x\nlet net = f[3]\n'
    assert only(op).line == 2
    applied = only(op + "routine r(x: f32[n | 3]):\n    return net(x) + net(x)\n")
    assert (applied.code, applied.line, applied.message) == ("E0304", 6, "3 is odd")


def test_an_unknown_name_hides_no_size_that_would_follow_from_it() -> None:
    text = "from nn import dense\nop f(x) = dense(x) + {b: [hidden]}\nroutine r(x: f32[n | 3]):\n    return f(x)\n"
    assert only(text).code == "E0201"


def test_independent_errors_all_come_out() -> None:
    text = "op f(x) = {w: [3 -> 4]} * x + {b: [5]}\nop g(x) = rellu(x)\nop h(x) = x + {a: [2]} + {b: [3]}\nlet k = 1 // 0\n"
    assert [d.code for d in diagnostics({"net.ocn": text})] == ["E0401", "E0201", "E0401", "E0304"]


@pytest.mark.parametrize("depth", [150, 190])
def test_deep_recursion_ends(depth: int) -> None:
    text = f"op f[n: int](x):\n    return if n == 0 then x else f[n - 1](x + 1)\nlet net = f[{depth}]\n"
    assert not diagnostics({"net.ocn": text + "routine r(x: f32[n | 3]):\n    return net(x)\n"})


def test_recursion_that_does_not_end_is_an_error() -> None:
    text = "fn f(n: int) -> int = if n == 0 then 0 else f(n - 1)\nlet k = f(-1)\n"
    assert only(text).code == "E0306"
