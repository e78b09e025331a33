"""Every kind of contradiction: its code, its words, and that one mistake is told once, whatever the order."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ocannl_lang.diagnostics.model import Diagnostic
from ocannl_lang.shapes import solve
from ocannl_lang.shapes.terms import (
    Concat,
    DimEq,
    DimVar,
    Frame,
    Origin,
    Problem,
    Row,
    RowLe,
    Side,
    Size,
    SizeIs,
    SizeOp,
    Unknown,
)
from ocannl_lang.source import Source, Span
from tests.shapes.program import Program
from tests.shapes.random_programs import shuffled


def only(p: Program) -> Diagnostic:
    (error,) = solve(p.problem()).errors
    assert error.code == error.diagnostic.code
    return error.diagnostic


def texts(d: Diagnostic) -> str:
    return "\n".join([d.message, d.label, *(x.text for x in d.labels), *d.notes, *d.helps])


def sizes_differ() -> Program:
    p = Program()
    p.pointwise("+", p.input("a", "N", "3"), p.input("b", "N", "4"))
    return p


def batch_against_output() -> Program:
    p = Program()
    p.pointwise("-", p.input("x", "N", "1"), p.input("y", "", "N"))
    return p


def label_sizes_differ() -> Program:
    p = Program()
    h = p.pointwise("relu", p.input("a", "", "3 4"), name="h")
    p.slots("+*", [("", "", "i k"), ("", "", "k j")], ("", "", "i j"), h, p.input("b", "", "5 6"))
    return p


def layer_width() -> Program:
    p = Program()
    h = p.pointwise("relu", p.product(p.param("w1", "784", "256"), p.input("x", "N", "784")), name="h")
    p.product(p.param("w2", "128", "10"), h)
    return p


def bases_differ() -> Program:
    p = Program()
    p.product(p.input("w", "", "8", "27:characters"), p.input("a", "N", "27:tokens"))
    return p


def number_of_axes() -> Program:
    p = Program()
    p.slots("sum", [("...", "", "i")], ("...", "", "0"), p.input("a", "N", "3 4"))
    return p


def axes_of_a_computed_tensor() -> Program:
    p = Program()
    p.slots("sum", [("...", "", "i j")], ("...", "", "i"), p.pointwise("relu", p.input("a", "N", "3"), name="h"))
    return p


def wrong_row() -> Program:
    p = Program()
    p.slots("sum", [("", "", "i j")], ("", "", "i"), p.input("a", "N", "3"))
    return p


def no_contraction() -> Program:
    p = Program()
    p.product(p.input("a", "N", "3"), p.input("b", "N", "3"))
    return p


def no_contraction_of_a_computed_tensor() -> Program:
    p = Program()
    p.product(p.pointwise("relu", p.input("a", "N", "3"), name="h"), p.input("b", "N", "3"))
    return p


def window_does_not_fit() -> Program:
    p = Program()
    p.slots("+*", [("", "", "3*o+k"), ("", "", "k")], ("", "", "o"), p.input("x", "", "10"), p.input("k", "", "2"))
    return p


def stride_does_not_fit() -> Program:
    p = Program()
    p.slots("+*", [("", "", "2*o=+k"), ("", "", "k")], ("", "", "o"), p.input("x", "", "7"), p.input("k", "", "3"))
    return p


def forgotten_hidden_size() -> Program:
    p = Program()
    w1, w2, b1 = p.param("w1"), p.param("w2"), p.param("b1")
    h = p.pointwise("relu", p.pointwise("+", p.product(w1, p.input("x", "N", "3")), b1))
    p.pointwise("-", p.product(w2, h), p.input("y", "N", "2"))
    return p


def forgotten_label_size() -> Program:
    p = Program()
    w = p.param("w", "", "?")
    p.slots("+*", [("...", "", "i"), ("", "", "k")], ("...", "", "i k"), p.input("x", "N", "3"), w)
    return p


def position_out_of_range() -> Program:
    p = Program()
    p.slots("sum", [("...", "", "5")], ("...", "", ""), p.input("x", "N", "3"))
    return p


def loss_with_axes() -> Program:
    p = Program()
    p.loss(p.pointwise("relu", p.input("x", "N", "3"), name="l"))
    return p


def annotation() -> Program:
    p = Program()
    p.annotate(p.pointwise("relu", p.input("x", "N", "3"), name="t"), "4")
    return p


def annotation_with_more_axes() -> Program:
    p = Program()
    p.annotate(p.pointwise("relu", p.input("x", "N", "3"), name="t"), "2 3")
    return p


def parameter_for_two_sizes() -> Program:
    p = Program()
    b = p.param("b")
    p.pointwise("+", p.input("x", "N", "3"), b)
    p.pointwise("+", p.input("y", "N", "4"), b)
    return p


CASES: list[tuple[Callable[[], Program], str, list[str]]] = [
    (sizes_differ, "E0401", ["3 in `a`", "4 in `b`"]),
    (batch_against_output, "E0401", ["1 in `x`", "n in `y`", "does not stretch"]),
    (
        label_sizes_differ,
        "E0401",
        ["label `k` is 4 in `h`, but 5 in `b`", "so `h` has output size 4", "output axis 2 of `h`"],
    ),
    (layer_width, "E0401", ["128 in `w2`, 256 in `h`", "`w1` has output size 256", "so `h` has output size 256"]),
    (bases_differ, "E0404", ["`characters` and `tokens`", "27:tokens"]),
    (number_of_axes, "E0402", ["`a` has 2 output axes", "the slot has 1 output axis", "3, 4"]),
    (axes_of_a_computed_tensor, "E0402", ["`h` has 1 output axis, not 2"]),
    (wrong_row, "E0403", ["`a` is [n | 3], not [i, j]"]),
    (no_contraction, "E0405", ["`a` has no input axes", "`*.`"]),
    (no_contraction_of_a_computed_tensor, "E0405", ["`h` has no input axes", "`*.`"]),
    (window_does_not_fit, "E0406", ["size 10 of `x`", "size 8 or 11 would fit"]),
    (stride_does_not_fit, "E0406", ["size 7 of `x`", "stride 2", "size 6 or 8 would fit"]),
    (
        forgotten_hidden_size,
        "E0407",
        ["output axes of `b1`", "output axes of `w1`", "input axes of `w2`", "{b1: [16]}"],
    ),
    (forgotten_label_size, "E0407", ["output size of `w` (label `k`)", "{w: [16]}"]),
    (position_out_of_range, "E0408", ["position 5", "`x` has size 3", "positions 0 to 2"]),
    (loss_with_axes, "E0410", ["`l` has the shape [n | 3]", "mean"]),
    (annotation, "E0412", ["3 and 4", "`x` has output size 3"]),
    (annotation_with_more_axes, "E0412", ["`t` has 1 output axis, not 2"]),
    (parameter_for_two_sizes, "E0401", ["`b` would need two sizes: 3 and 4", "`b` is declared here"]),
]


@pytest.mark.parametrize(("make", "code", "words"), CASES, ids=[c[0].__name__ for c in CASES])
def test_the_error_says_what_and_why(make: Callable[[], Program], code: str, words: list[str]) -> None:
    found = only(make())
    assert found.code == code
    for word in words:
        assert word in texts(found), texts(found)
    assert len({x.span for x in found.labels} | {found.span}) == len(found.labels) + 1
    assert len(found.labels) <= 6


@pytest.mark.parametrize(("make", "code", "words"), CASES, ids=[c[0].__name__ for c in CASES])
def test_no_order_of_constraints_hides_or_doubles_an_error(
    make: Callable[[], Program], code: str, words: list[str]
) -> None:
    problem = make().problem()
    for seed in range(12):
        assert [e.code for e in solve(shuffled(problem, seed)).errors] == [code]


@pytest.mark.parametrize("make", [c[0] for c in CASES], ids=[c[0].__name__ for c in CASES])
def test_no_message_shows_an_internal_name(make: Callable[[], Program]) -> None:
    found = texts(only(make()))
    for word in ("variable", "unify", "Var(", "Size(", "purpose", "DimVar", "RowVar", "None"):
        assert word not in found


def test_independent_errors_all_come_and_followers_do_not() -> None:
    p = Program()
    t = p.pointwise("+", p.input("a", "N", "3"), p.input("b", "N", "4"), name="t")
    p.pointwise("*.", t, p.input("c", "N", "4"))
    p.pointwise("-", p.input("d", "N", "5"), p.input("e", "N", "6"))
    problem = p.problem()
    assert [e.diagnostic.message for e in solve(problem).errors] == [
        "sizes differ: 3 in `a`, 4 in `b`",
        "sizes differ: 5 in `d`, 6 in `e`",
    ]


def test_the_fix_for_a_product_replaces_the_operator() -> None:
    found = only(no_contraction())
    assert found.fix is not None
    ((edit,),) = [found.fix.edits]
    text = edit.span.source.text
    assert (text[: edit.span.start] + edit.replacement + text[edit.span.end :]).splitlines()[2] == "a *. b"


def test_no_fix_where_pointwise_would_not_fit_either() -> None:
    p = Program()
    p.product(p.input("a", "N", "4"), p.input("b", "N", "3"))
    found = only(p)
    assert (found.code, found.fix, found.helps) == ("E0405", None, ())


def test_an_error_in_an_op_is_told_where_it_is_applied() -> None:
    source = Source("a.ocn", "op f(x, y) = x + y\nroutine g(): f(a, b)\n")
    inner, call = Span(source, 13, 18), Span(source, 32, 39)
    origin = Origin(inner, (Frame(call, "f", "f"),), "pointwise", "+")
    result = Row((), None, (DimVar("an axis", origin),))

    def below(name: str, size: int) -> RowLe:
        operand = Row((), None, (Size(size, why=Origin(call)),))
        return RowLe(result, operand, Side("x + y", "output", inner), Side(name, "output", call), origin)

    (error,) = solve(Problem([below("a", 3), below("b", 4)])).errors
    found = error.diagnostic
    assert found.span == call
    assert [x.text for x in found.labels if x.span == inner] == ["in `f`, applied here"]


def test_sizes_are_shown_as_written() -> None:
    source = Source("a.ocn", "let d = 64\nlet x: [2 * d]\n")
    at = Origin(Span(source, 19, 24), (), "declaration")
    label = DimVar("label `k`", at)
    side = Side("x", "output", at.span)
    problem = Problem(
        [DimEq(label, Size(128, why=at, text="2 * d"), side, side, at), DimEq(label, Size(100, why=at), side, side, at)]
    )
    assert "2 * d = 128" in solve(problem).errors[0].diagnostic.message


def test_a_size_that_is_no_size() -> None:
    source = Source("a.ocn", "let x: [(n - 4)]\n")
    at = Origin(Span(source, 8, 15), (), "declaration")
    d = DimVar("a size", at)
    side = Side("x", "output", at.span)
    for term, words in (
        (SizeOp("-", (Size(3), 4)), "cannot be -1"),
        (SizeOp("/", (Size(3), 2)), "cannot be 1.5"),
        (SizeOp("//", (Size(3), 0)), "not a number"),
    ):
        (error,) = solve(Problem([SizeIs(d, term, side, at)])).errors
        assert words in error.diagnostic.message


def test_parts_must_add_up() -> None:
    source = Source("a.ocn", "concat{a^b}\n")
    at = Origin(Span(source, 0, 11), (), "slots")
    side = Side("x", "output", at.span)
    (error,) = solve(Problem([Concat(Size(9, why=at), (Size(3), Size(4)), side, at)])).errors
    assert (error.code, error.diagnostic.message) == ("E0401", "sizes differ: `x` has 9, its parts 3 + 4 = 7")
    parts = (Size(3, "rgb"), Size(4, "heads"))
    (error,) = solve(Problem([Concat(DimVar("an axis", at), parts, side, at)])).errors
    assert error.code == "E0404"


def test_unknowns_of_one_name_are_told_apart_by_their_routine() -> None:
    source = Source("a.ocn", "a parameter of two routines\n")
    at = Origin(Span(source, 0, 11), (), "pointwise")
    d = DimVar("an axis", at)
    side = Side("b", "output", at.span)
    both = [DimEq(d, Size(Unknown("n", owner)), side, side, at) for owner in ("train", "test")]
    (error,) = solve(Problem(list(both))).errors
    assert "n of `train`" in error.diagnostic.message
    assert "n of `test`" in error.diagnostic.message
