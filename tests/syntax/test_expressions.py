"""Expressions: literals, operators and their strength, calls, brackets."""

from __future__ import annotations

import pytest

from tests.syntax.support import expression


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", "IntLit(1)"),
        ("1_000", "IntLit(1000)"),
        ("0xff", "IntLit(255)"),
        ("1.", "FloatLit(1.0)"),
        ("1.5", "FloatLit(1.5)"),
        ("1e-3", "FloatLit(0.001)"),
        ("2.5e+2", "FloatLit(250.0)"),
        ("true", "BoolLit(true)"),
        ("false", "BoolLit(false)"),
        ("none", "NoneLit"),
        ("()", "TupleExpr"),
        ("(1,)", "TupleExpr([IntLit(1)])"),
        ("(1, 2)", "TupleExpr([IntLit(1), IntLit(2)])"),
        ("1, 2", "TupleExpr([IntLit(1), IntLit(2)])"),
        ("(1)", "Paren(IntLit(1))"),
        ("[]", "ListExpr"),
        ("[1, 2,]", "ListExpr([IntLit(1), IntLit(2)])"),
    ],
)
def test_literals(text: str, value: str) -> None:
    assert expression(text) == value


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a + b * c", "a + (b * c)"),
        ("a - b - c", "(a - b) - c"),
        ("a * b *. c / d", "((a * b) *. c) / d"),
        ("a // b % c", "(a // b) % c"),
        ("-a ** b", "-(a ** b)"),
        ("a ** b ** c", "a ** (b ** c)"),
        ("a ** -b", "a ** (-b)"),
        ("-a * b", "(-a) * b"),
        ("not a and b or c", "((not a) and b) or c"),
        ("a or b and c", "a or (b and c)"),
        ("a == b + 1", "a == (b + 1)"),
        ("not a == b", "not (a == b)"),
        ("a in b and c not in d", "(a in b) and (c not in d)"),
        ("a..b + 1", "a..(b + 1)"),
        ("1..n", "(1)..(n)"),
        ("a |> f |> g", "(a |> f) |> g"),
        ("a or b |> f", "(a or b) |> f"),
        ("if a then b else if c then d else e", "if a then b else (if c then d else e)"),
        ("if a then b + 1 else c + 1", "if a then (b + 1) else (c + 1)"),
        ("f(x).y[0](z)", "((((f(x))).y)[0])(z)"),
        ("a is none or b is not none", "(a is none) or (b is not none)"),
        ("a +*{i => i} b + c", "(a +*{i => i} b) + c"),
        ("a * b +*{i => i} c / d", "((a * b) +*{i => i} c) / d"),
        ("-a +*{i => i} -b", "(-a) +*{i => i} (-b)"),
    ],
)
def test_strength_of_operators(text: str, grouped: str) -> None:
    def plain(form: str) -> str:
        """Parentheses left out: only the grouping counts."""
        while "Paren(" in form:
            start = form.index("Paren(")
            depth, end = 0, start + 5
            while True:
                depth += (form[end] == "(") - (form[end] == ")")
                if depth == 0:
                    break
                end += 1
            form = form[:start] + form[start + 6 : end] + form[end + 1 :]
        return form

    assert plain(expression(text)) == plain(expression(grouped))


def test_comparison_and_none() -> None:
    assert expression("a is not none") == "IsNone(negated, operand=Name(a))"
    assert expression("a is none") == "IsNone(operand=Name(a))"
    assert expression("a not in b") == 'Binary("not in", left=Name(a), right=Name(b))'


def test_calls_configurations_and_slices() -> None:
    assert expression("f(a, b = 1)") == "Call(function=Name(f), args=[Arg(value=Name(a)), Arg(b, value=IntLit(1))])"
    assert expression("f[a](x)").startswith("Call(function=Bracket(base=Name(f)")
    assert expression("t[1:]") == "Slice(base=Name(t), low=IntLit(1))"
    assert expression("t[:b]") == "Slice(base=Name(t), high=Name(b))"
    assert expression("t[:]") == "Slice(base=Name(t))"
    assert (
        expression("net.layers[0].w")
        == "Attr(w, base=Bracket(base=Attr(layers, base=Name(net)), args=[Arg(value=IntLit(0))]))"
    )


def test_comprehensions() -> None:
    inner = "Comprehension(value=Name(e), pattern=[a, b], iterable=Name(xs), condition=Name(c))"
    assert expression("[e for a, b in xs if c]") == f"ListExpr([{inner}])"
    assert expression("sum(e for a, b in xs if c)") == f"Call(function=Name(sum), args=[Arg(value={inner})])"


def test_parameters_stand_anywhere() -> None:
    assert expression("{w}") == "ParamExpr(w)"
    assert expression("{w = 0.}") == "ParamExpr(w, init=FloatLit(0.0))"
    written = expression("relu({w: f32[3 -> 4] = kaiming()} * x)")
    assert "ParamExpr(w, type=TensorType(f32, input=[TypeAxisSize(value=IntLit(3))]" in written


@pytest.mark.parametrize(
    "word",
    [
        "main",
        "test",
        "data",
        "basis",
        "dim",
        "row",
        "state",
        "forward",
        "backward",
        "collapse",
        "py",
        "index",
        "f32",
        "u32x4",
    ],
)
def test_contextual_keywords_are_names_elsewhere(word: str) -> None:
    assert expression(word) == f"Name({word})"
    assert expression(f"{word}(1)") == f"Call(function=Name({word}), args=[Arg(value=IntLit(1))])"
    assert expression(f"{word}[1]") == f"Bracket(base=Name({word}), args=[Arg(value=IntLit(1))])"
    assert expression(f"f({word} = 1)") == f"Call(function=Name(f), args=[Arg({word}, value=IntLit(1))])"
    assert expression(f"x{{{word} a => a {word}}}").count(f"AxisLabel({word})") == 2
    assert expression(f"{{{word}: [3]}}").startswith(f"ParamExpr({word}")


def test_max_and_min_are_names_of_arguments() -> None:
    assert expression("f(max=1, min=2)") == expression("f(max = 1, min = 2)")
    assert expression("max==min") == 'Binary("==", left=Name(max), right=Name(min))'


def test_names_are_unicode_and_composed() -> None:
    assert expression("größe") == "Name(größe)"
    assert expression("gro\u0308ße") == "Name(größe)"
