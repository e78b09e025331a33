"""The rules of inference, one test each."""

from __future__ import annotations

from ocannl_lang.shapes import Solution, Solver, solve, verify
from ocannl_lang.shapes.sizes import size_text
from ocannl_lang.shapes.terms import (
    Concat,
    DimEq,
    DimVar,
    Origin,
    Problem,
    Row,
    RowEq,
    RowLe,
    RowProduct,
    RowVar,
    Side,
    Size,
    SizeIs,
    SizeOp,
    Unknown,
)
from ocannl_lang.source import Source, Span
from tests.shapes.program import Program, Tensor

SOURCE = Source("rules.ocn", "a line of text\n" * 40)


def at(line: int = 1) -> Origin:
    return Origin(Span(SOURCE, 15 * (line - 1), 15 * line - 1))


def side(name: str = "t") -> Side:
    return Side(name, "output", at().span)


def solved(p: Program, *errors: str) -> Solution:
    problem = p.problem()
    solution = solve(problem)
    assert [e.code for e in solution.errors] == list(errors), [e.diagnostic.message for e in solution.errors]
    if not errors:
        assert verify(solution, problem) == []
    return solution


def shape(solution: Solution, t: Tensor) -> str:
    return str(solution.shape(t.shape))


# ---------------------------------------------------------------- the table of section 8


def test_a_pointwise_result_has_the_axes_of_its_operands() -> None:
    p = Program()
    t = p.pointwise("+", p.input("a", "N", "2 3"), p.input("b", "", "3"))
    assert shape(solved(p), t) == "[n | 2, 3]"


def test_the_three_rows_broadcast_by_themselves() -> None:
    p = Program()
    t = p.pointwise("+", p.input("a", "N", "3", "4"), p.input("b", "", "2 3"))
    assert shape(solved(p), t) == "[n | 4 -> 2, 3]"


def test_a_product_contracts_input_with_output() -> None:
    p = Program()
    t = p.product(p.input("a", "N", "4", "2 3"), p.input("b", "", "2 3", "5"))
    assert shape(solved(p), t) == "[n | 5 -> 4]"


def test_a_product_finds_the_input_axes_of_its_left_side() -> None:
    p = Program()
    w = p.param("w", None, "4")
    p.product(w, p.input("x", "N", "2 3"))
    assert shape(solved(p), w) == "[2, 3 -> 4]"


def test_transpose_exchanges_input_and_output() -> None:
    p = Program()
    t = p.transpose(p.input("a", "N", "2 3", "4"))
    assert shape(solved(p), t) == "[n | 2, 3 -> 4]"


def test_slots_are_equations() -> None:
    p = Program()
    t = p.slots(
        "+*",
        [("...", "", "i k"), ("", "k", "j")],
        ("...", "j", "i"),
        p.input("a", "N", "2 3"),
        p.input("b", "", "4", "3"),
    )
    assert shape(solved(p), t) == "[n | 4 -> 2]"


# ---------------------------------------------------------------- rows


def test_broadcasting_goes_into_the_middle_of_a_row_with_leading_axes() -> None:
    p = Program()
    lead = p.slots("sum", [("", "", "a ..r.. k")], ("", "", "a ..r.."), p.input("x", "", "2 3 9"))
    t = p.pointwise("+", lead, p.input("y", "", "2 7 3"))
    assert shape(solved(p), t) == "[2, 7, 3]"


def test_a_row_in_the_middle_takes_what_the_ends_leave() -> None:
    p = Program()
    t = p.slots("sum", [("", "", "i ..m.. j")], ("", "j", "..m.. i"), p.input("x", "", "2 3 4 5"))
    assert shape(solved(p), t) == "[5 -> 3, 4, 2]"


def test_rows_with_axes_at_different_ends_wait_and_then_overlap_least() -> None:
    r, s = RowVar("r", at()), RowVar("s", at())
    a, b = DimVar("a", at()), DimVar("b", at())
    problem = Problem(
        [
            RowEq(Row((a,), r), Row((), s, (b,)), side(), side(), at()),
            RowEq(Row((), None, (a,)), Row((), None, (Size(4),)), side(), side(), at()),
        ]
    )
    solution = solve(problem)
    assert solution.errors == []
    assert solution.row(Row((), r)).dims == ()
    assert str(solution.row(Row((), s, (b,)))) == "4"


def test_rows_with_axes_at_different_ends_when_the_length_is_known() -> None:
    r, s = RowVar("r", at()), RowVar("s", at())
    a, b = DimVar("a", at()), DimVar("b", at())
    whole = Row((), None, (Size(2), Size(3), Size(4)))
    problem = Problem(
        [
            RowEq(Row((a,), r), Row((), s, (b,)), side(), side(), at()),
            RowEq(Row((a,), r), whole, side(), side(), at()),
        ]
    )
    solution = solve(problem)
    assert [str(solution.row(Row((), v))) for v in (r, s)] == ["3, 4", "2, 3"]
    assert (solution.dim(a).size, solution.dim(b).size) == (2, 4)


def test_a_row_that_contains_itself_is_an_error() -> None:
    r = RowVar("r", at())
    solution = solve(Problem([RowEq(Row((), r), Row((Size(2),), r), side("x"), side("y"), at())]))
    assert [e.code for e in solution.errors] == ["E0402"]


def test_rows_that_contain_each_other_are_an_error() -> None:
    r, s = RowVar("r", at()), RowVar("s", at())
    for make in (RowEq, RowLe):
        problem = Problem(
            [
                make(Row((), r), Row((), s, (Size(2),)), side("x"), side("y"), at(1)),
                make(Row((), s), Row((), r, (Size(2),)), side("x"), side("y"), at(2)),
            ]
        )
        assert [e.code for e in solve(problem).errors] == ["E0402"]


def test_a_row_may_equal_itself_turned_round() -> None:
    p = Program()
    x = p.input("x", "", "3 3 3")
    p.slots("+*", [("", "", "i ..r.."), ("", "", "..r.. j")], ("", "", "i j"), x, x)
    solved(p)


# ---------------------------------------------------------------- sizes


def test_only_broadcasting_ones_stretch() -> None:
    p = Program()
    kept = p.slots("sum", [("...", "", "i")], ("...", "", "0"), p.input("x", "N", "3"))
    t = p.pointwise("-", p.input("y", "N", "5"), kept)
    solution = solved(p)
    assert shape(solution, t) == "[n | 5]"
    (axis,) = solution.row(kept.shape.output).dims
    assert (axis.size, axis.broadcast) == (1, True)


def test_a_written_one_does_not_stretch() -> None:
    p = Program()
    p.pointwise("-", p.input("y", "", "5"), p.input("x", "", "1"))
    solved(p, "E0401")


def test_equations_enlarge_a_kept_axis() -> None:
    p = Program()
    kept = p.slots("sum", [("", "", "i")], ("", "", "0"), p.input("x", "", "3"))
    p.slots("+*", [("", "", "k"), ("", "", "k")], ("", "", "k"), kept, p.input("y", "", "5"))
    assert shape(solved(p), kept) == "[5]"


def test_a_fixed_position_in_a_result_makes_room() -> None:
    p = Program()
    t = p.slots("sum", [("", "", "i")], ("", "", "2 i"), p.input("x", "", "4"))
    assert shape(solved(p), t) == "[3, 4]"


def test_a_label_only_in_a_result_is_a_broadcasting_one() -> None:
    p = Program()
    t = p.slots("sum", [("", "", "i")], ("", "", "i j"), p.input("x", "", "4"))
    u = p.pointwise("+", t, p.input("y", "", "4 7"))
    solution = solved(p)
    assert (shape(solution, t), shape(solution, u)) == ("[4, 1]", "[4, 7]")


def test_different_demands_make_a_constant_a_broadcasting_one() -> None:
    p = Program()
    c = p.leaf("constant", "c", "", "", "?")
    p.pointwise("+", p.input("x", "", "3"), c)
    p.pointwise("+", p.input("y", "", "5"), c)
    assert shape(solved(p), c) == "[1]"


def test_what_is_between_demands_takes_its_own() -> None:
    """3 ⊑ a, a ⊑ b, 5 ⊑ b gives a = 3 and b = 1."""
    a, b = DimVar("a", at()), DimVar("b", at())

    def below(x: DimVar | Size, y: DimVar | Size) -> RowLe:
        return RowLe(Row((), None, (x,)), Row((), None, (y,)), side(), side(), at())

    solution = solve(Problem([below(Size(3), a), below(a, b), below(Size(5), b)]))
    assert (solution.dim(a).size, solution.dim(b).size, solution.dim(b).broadcast) == (3, 1, True)


def test_sizes_take_the_basis_of_what_they_are_inferred_from() -> None:
    p = Program()
    b = p.param("b")
    p.pointwise("+", p.input("x", "N", "3:rgb"), b)
    assert shape(solved(p), b) == "[3:rgb]"


# ---------------------------------------------------------------- leaves


def test_a_bias_takes_what_its_result_is_asked_for() -> None:
    p = Program()
    w, b = p.param("w"), p.param("b")
    h = p.pointwise("+", p.product(w, p.input("x", "N", "3")), b)
    p.pointwise("-", h, p.input("y", "N", "2"))
    solution = solved(p)
    assert (shape(solution, w), shape(solution, b)) == ("[3 -> 2]", "[2]")


def test_hidden_sizes_come_from_any_parameter_that_has_them() -> None:
    p = Program()
    w1, w2, b1 = p.param("w1"), p.param("w2"), p.param("b1", None, "16")
    h = p.pointwise("relu", p.pointwise("+", p.product(w1, p.input("x", "N", "3")), b1))
    p.pointwise("-", p.product(w2, h), p.input("y", "N", "2"))
    solution = solved(p)
    assert (shape(solution, w1), shape(solution, w2)) == ("[3 -> 16]", "[16 -> 2]")


def test_a_parameter_of_a_returned_sum_takes_the_shape_of_the_other_operand() -> None:
    p = Program()
    b = p.param("b")
    t = p.pointwise("+", p.input("x", "N", "2 3"), b)
    solution = solved(p)
    assert (shape(solution, b), shape(solution, t)) == ("[2, 3]", "[n | 2, 3]")


def test_a_number_that_scales_does_not_fix_a_hidden_size() -> None:
    p = Program()
    w1, w2 = p.param("w1"), p.param("w2", None, "2")
    h = p.pointwise("*", p.product(w1, p.input("x", "N", "3")), p.input("two"))
    p.product(w2, h)
    solved(p, "E0407")


def test_a_state_that_nothing_fixes_closes_quietly() -> None:
    p = Program()
    s = p.leaf("state", "s", "", None, None)
    t = p.pointwise("relu", s)
    assert shape(solved(p), t) == "[]"


# ---------------------------------------------------------------- arithmetic


def window(text: str, x: str, k: str) -> str:
    p = Program()
    t = p.slots("+*", [("", "", text), ("", "", "k")], ("", "", "o"), p.input("x", "", x), p.input("k", "", k))
    return shape(solved(p), t)


def test_windows() -> None:
    assert window("o+k", "10", "3") == "[8]"
    assert window("2*o+k", "11", "3") == "[5]"
    assert window("2*o+3*k", "13", "3") == "[4]"
    assert window("2*o=+k", "10", "3") == "[5]"
    assert window("o+k", "N", "3") == "[n - 2]"
    assert window("2*o+k", "N", "3") == "[(n - 1)//2]"


def test_a_window_gives_the_size_that_is_read() -> None:
    p = Program()
    w = p.param("w", "", "?")
    t = p.slots("+*", [("", "", "2*o+k"), ("", "", "k")], ("", "", "o"), p.input("x", "", "11"), w)
    p.pointwise("+", t, p.input("y", "", "5"))
    assert shape(solved(p), w) == "[3]"


def test_strides_divide() -> None:
    p = Program()
    t = p.slots("sum", [("", "", "3*o")], ("", "", "o"), p.input("x", "", "12"))
    assert shape(solved(p), t) == "[4]"


def test_concatenation_adds() -> None:
    p = Program()
    t = p.slots("concat", [("", "", "i"), ("", "", "j")], ("", "", "i^j"), p.input("x", "", "3"), p.input("y", "", "N"))
    rest = p.slots("sum", [("", "", "3^r")], ("", "", "r"), p.input("z", "", "10"))
    solution = solved(p)
    assert (shape(solution, t), shape(solution, rest)) == ("[n + 3]", "[7]")


def test_parts_that_the_others_cover_are_empty_and_others_share() -> None:
    a, b, c = (DimVar(name, at()) for name in "abc")
    whole = Concat(Size(8), (a, b, c), side(), at())
    fixed = DimEq(a, Size(8), side(), side(), at())
    first = solve(Problem([whole, fixed]))
    assert [first.dim(d).size for d in (a, b, c)] == [8, 0, 0]
    fixed = DimEq(a, Size(2), side(), side(), at())
    assert [solve(Problem([fixed, whole])).dim(d).size for d in (a, b, c)] == [2, 3, 3]


def test_a_static_number_can_be_a_size_and_sizes_can_be_found_from_it() -> None:
    d, total = DimVar("`d`", at()), DimVar("total", at())
    r = RowVar("r", at())
    problem = Problem(
        [
            SizeIs(total, SizeOp("*", (2, d)), side(), at()),
            DimEq(total, Size(128), side(), side(), at()),
            RowEq(Row((), r), Row((), None, (Size(4), d)), side(), side(), at()),
        ]
    )
    solution = solve(problem)
    assert solution.dim(d).size == 64
    assert solution.number(RowProduct(Row((), r))) == 256
    assert solution.number(SizeOp("sqrt", (d,))) == 8.0


# ---------------------------------------------------------------- unknowns and bindings


def test_unknowns_are_numbers_once_they_are_bound() -> None:
    n, m = Unknown("n", "test"), Unknown("m", "test")
    p = Program()
    t = p.slots("+*", [("", "", "2*o+k"), ("", "", "k")], ("", "", "o"), p.input("x", "", "N"), p.input("k", "", "3"))
    problem = p.problem()
    assert shape(solve(problem, {n: 11}), t) == "[5]"
    assert [e.code for e in solve(problem, {n: 12}).errors] == ["E0406"]
    assert shape(solve(problem, {m: 12}), t) == "[(n - 1)//2]"


def test_unknowns_differ_from_each_other_and_from_numbers() -> None:
    for other in ("M", "3", "1"):
        p = Program()
        p.pointwise("+", p.input("x", "", "N"), p.input("y", "", other))
        solved(p, "E0401")


# ---------------------------------------------------------------- asking on the way


def test_a_solver_knows_what_is_forced_so_far() -> None:
    solver = Solver()
    r, d = RowVar("r", at()), DimVar("d", at())
    assert (solver.dim_value(d), solver.row_rank(Row((), r))) == (None, None)
    solver.add(RowEq(Row((), r, (d,)), Row((), None, (Size(2), Size(Unknown("n", "f")))), side(), side(), at()))
    assert solver.dim_value(d) == Unknown("n", "f")
    assert solver.row_rank(Row((), r, (d,))) == 2
    assert size_text(solver.evaluate(SizeOp("+", (d, 1))) or 0) == "n + 1"
    assert solver.evaluate(RowProduct(Row((), r))) == 2


def test_closing_is_done_on_a_copy() -> None:
    solver = Solver()
    r, d = RowVar("r", at()), DimVar("d", at())
    solver.add(RowLe(Row((), r, (d,)), Row((), None, ()), side(), side(), at()))
    assert solver.close().row(Row((), r, (d,))).sizes == (1,)
    assert solver.row_rank(Row((), r, (d,))) is None
    other = solver.copy()
    other.add(RowEq(Row((), r, (d,)), Row((), None, (Size(2), Size(3))), side(), side(), at()))
    assert (other.dim_value(d), solver.dim_value(d)) == (3, None)


def test_a_solution_tells_why() -> None:
    p = Program()
    x = p.input("x", "N", "3")
    h = p.pointwise("relu", x, name="h")
    t = p.pointwise("exp", h, name="t")
    solution = solved(p)
    (axis,) = solution.axes(t.shape.output)
    assert [label.text for label in solution.why(axis)] == [
        "`x` has output size 3", "so `h` has output size 3", "so `t` has output size 3",
    ]  # fmt: skip


def test_what_broadcasts_to_anything_fixes_no_hidden_size() -> None:
    """A norm over forgotten axes, or a softmax over a forgotten size, does not hide that they were forgotten."""
    for slot, kept in ((("...", "", "..d.."), ""), (("...", "", "c"), "0")):
        p = Program()
        w1, w2 = p.param("w1"), p.param("w2", None, "2")
        h = p.product(w1, p.input("x", "N", "3"))
        normed = p.pointwise("/", h, p.slots("sum", [slot], ("...", "", kept), h))
        p.product(w2, normed)
        solved(p, "E0407")
