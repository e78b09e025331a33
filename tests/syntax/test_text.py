"""Newlines, brackets and strings."""

from __future__ import annotations

import pytest

from ocannl_lang.syntax import ast
from tests.syntax.support import expression, messages, parsed, tree


@pytest.mark.parametrize(
    "text",
    [
        "let a = (1 +\n    2)",
        "let a = [1,\n\n  # a comment\n    2,\n]",
        "let a = f{i\n    j => i}(x)",
        "let a = 1 +\n    2",
        "let a = b *.\n    c",
        "let a =\n    1",
        "let a = b and\n    c",
        "let a = not\n    c",
        "let a, b = 1,\n    2",
        "let a = b\n    |> f\n    |> g[3]",
        "let a = b\n|> f",
        "let a = if b\n    then c\n    else d",
        "let a = if b then c\n    else d",
        "let a = if b then c else\n    d",
        "let a = 1 + \\\n    2",
        "op f(x) ->\n    [3] = x",
        "fn f():\n    x :=\n        1\n    y +=\n        2\n",
        "basis a,\n    b",
        "let a =\nb",
    ],
)
def test_a_newline_ends_a_statement_where_one_can_end(text: str) -> None:
    assert len(tree(text).items) == 1


def test_a_minus_at_the_beginning_of_a_line_is_a_new_statement() -> None:
    module = tree("fn f():\n    let a = b\n    -c\n")
    assert isinstance(module.items[0], ast.FnDef)
    assert len(module.items[0].body) == 2


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("op f(x) = relu(x\nop g(x) = x\n", 1, 15),
        ("op f(x) = relu(tanh(x)\nop g(x) = x\n", 1, 15),
        ("op f(x) = x[3\nop g(x) = x\n", 1, 12),
        ("op f(x) = {w * x\nop g(x) = x\n", 1, 11),
        ("op f(x:\n    return x\nop g(x) = x\n", 1, 5),
        ("routine f(x: f32[3):\n    return x\nop g(x) = x\n", 1, 17),
        ("op f(x):\n    return relu(x\n\n# comment\nop g(x) = x\n", 2, 16),
        ("op f(x):\n    h = relu(x\n    y = h + 1\n    return y\nop g(x) = x\n", 2, 13),
        ("op f(x):\n    let a = (1 + 2\n    let b = a\n    return b\nop g(x) = x\n", 2, 13),
        ("op f(x) = (x\nop g(x) = x", 1, 11),
        ("op f(x) = x +*{i, k; k, j => i, j y\nop g(x) = x", 1, 15),
    ],
)
def test_a_forgotten_bracket_spoils_one_definition(text: str, line: int, column: int) -> None:
    module, diagnostics = parsed(text)
    assert [(d.code, d.line, d.column) for d in diagnostics] == [("E0103", line, column)]
    last = module.items[-1]
    assert isinstance(last, ast.OpDef)
    assert last.name.name == "g"


def test_the_definition_of_a_forgotten_bracket_is_kept_where_it_can_be() -> None:
    module, _ = parsed("op f(x) = relu(x\nop g(x) = f(x)\n")
    assert [type(i).__name__ for i in module.items] == ["OpDef", "OpDef"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('"plain"', "['plain']"),
        ('""', None),
        (r'"a\n\t\\\"\x41\u00e9"', r"""['a\n\t\\"Aé']"""),
        ('"{{}}"', "['{}']"),
        ('"a {b} c"', "['a ', Interpolation(format='', value=Name(b)), ' c']"),
        ('"{x:.3f}"', "[Interpolation(format='.3f', value=Name(x))]"),
        ('"{x[1:2]}"', "[Interpolation(format='', value=Slice(base=Name(x), low=IntLit(1), high=IntLit(2)))]"),
        ('"{f("b")}"', None),
        ('"{d["a{b}"]:>8}"', None),
        ('"{sum{i => }(x)}"', None),
        ('"""two\nlines "quoted" {a}"""', "['two\\nlines \"quoted\" ', Interpolation(format='', value=Name(a))]"),
    ],
)
def test_strings(text: str, parts: str | None) -> None:
    written = expression(text)
    assert parts is None or written == f"StrLit({parts})"


def test_places_inside_strings_are_exact() -> None:
    text = 'let s = "a {b + c:.2f}"'
    item = tree(text).items[0]
    assert isinstance(item, ast.Let)
    assert isinstance(item.value, ast.StrLit)
    hole = item.value.parts[1]
    assert isinstance(hole, ast.Interpolation)
    assert hole.span.text == "{b + c:.2f}"
    assert hole.value.span.text == "b + c"


@pytest.mark.parametrize(
    "text",
    [
        "x *.5",
        "x * .5",
        "1__0",
        "1_",
        "3x",
        "0b11",
        "0x",
        "1e",
        "1.x",
        "1e999",
        '"\\q"',
        '"\\x4"',
        '"{"',
        '"}"',
        '"{}"',
        '"{x:q}"',
        '"abc',
        "'abc'",
        '"""abc',
        '"{a b}"',
        '"\\ud"',
    ],
)
def test_bad_literals(text: str) -> None:
    code = "E0102" if text == '"{a b}"' else "E0104"
    assert [(c, line) for c, line, _ in messages(f"let a = {text}\nlet b = 2\n")] == [(code, 1)]


def test_an_unclosed_string_is_one_mistake() -> None:
    assert messages('main():\n    print("hello)\n    let x = 3\n') == [("E0104", 2, "this string is not closed")]
    assert messages('main():\n    if x == "a:\n        print(3)\n') == [("E0104", 2, "this string is not closed")]


def test_ranges_of_ints_are_no_floats() -> None:
    assert expression("1..n") == 'Binary("..", left=IntLit(1), right=Name(n))'
    assert expression("0..10") == 'Binary("..", left=IntLit(0), right=IntLit(10))'


def test_tabs_in_indentation() -> None:
    text = "op f(x):\n\tlet a = x\n    return (a +\n\ta)\n"
    assert [(c, line) for c, line, _ in messages(text)] == [("E0101", 2), ("E0101", 4)]
    assert messages("op f(x):\n    return x\t# fine\n\t\n") == []
