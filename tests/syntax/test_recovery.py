"""After a mistake the rest of the text is read."""

from __future__ import annotations

import pytest

from ocannl_lang.syntax import ast
from tests.syntax.support import messages, parsed, repaired


def kinds(statements: tuple[object, ...]) -> list[str]:
    return [type(s).__name__ for s in statements]


def test_three_mistakes_are_three_diagnostics() -> None:
    text = "op f(x):\n    let a = 3 4\n    let b = x\n    let c = relu(x + )\n    return b\nop g(y z) = y\nop h(x) = f(x)\n"
    module, diagnostics = parsed(text)
    assert [(d.code, d.line) for d in diagnostics] == [("E0102", 2), ("E0102", 4), ("E0102", 6)]
    assert kinds(module.items) == ["OpDef", "ErrorStmt", "OpDef"]
    f = module.items[0]
    assert isinstance(f, ast.OpDef)
    assert kinds(f.body) == ["Let", "Let", "Let", "Return"]


def test_a_missing_value_leaves_the_binding() -> None:
    module, _ = parsed("fn f():\n    let a =\n    return a\n")
    f = module.items[0]
    assert isinstance(f, ast.FnDef)
    binding = f.body[0]
    assert isinstance(binding, ast.Let)
    assert isinstance(binding.value, ast.ErrorExpr)
    assert kinds(f.body) == ["Let", "Return"]


def test_a_broken_argument_leaves_the_call() -> None:
    module, _ = parsed("let a = f(x y, g(z), )\n")
    item = module.items[0]
    assert isinstance(item, ast.Let)
    assert isinstance(item.value, ast.Call)
    assert [type(a.value).__name__ for a in item.value.args] == ["ErrorExpr", "Call"]


def test_a_broken_head_still_has_its_block_read() -> None:
    text = (
        "fn f():\n    for x on xs:\n        let a = 3 4\n        g(a)\n    while:\n        let b = = 1\n    return 1\n"
    )
    module, diagnostics = parsed(text)
    assert [d.line for d in diagnostics] == [2, 3, 5, 6]
    f = module.items[0]
    assert isinstance(f, ast.FnDef)
    assert kinds(f.body) == ["ErrorStmt", "While", "Return"]


def test_a_broken_definition_says_what_it_would_have_bound() -> None:
    cases = {
        "op f(x y): return x\n": ("f",),
        "op f(x y):\n    let a = 3 4\n    return x\n": ("f",),
        "def g(x):\n    return x\n": ("g",),
        "let a, b c = 1\n": ("a", "b", "c"),
        "import 3\n": (),
        "from m import a, b +\n": ("m", "a", "b"),
        "data d = 3\n": ("d",),
        "basis a b\n": ("a", "b"),
    }
    for text, names in cases.items():
        module, diagnostics = parsed(text + "let after = 1\n")
        assert diagnostics
        broken, after = module.items
        assert isinstance(broken, ast.ErrorStmt), text
        assert broken.names == names, text
        assert isinstance(after, ast.Let)


def test_blocks_are_found_again() -> None:
    assert messages("op f(x):\nop g(x) = x\n") == [("E0102", 1, "expected an indented block after `:`")]
    assert messages("op f(x):\n    let a = 1\n        let b = 2\n    return a\n") == [
        ("E0102", 3, "this line is indented more than the one before it")
    ]
    assert messages("fn f():\n        let a = 1\n    let b = 2\n    return a\n") == [
        ("E0102", 3, "this line is indented like none of the blocks around it")
    ]
    assert messages("    let a = 1\nlet b = 2\n") == [("E0102", 1, "this line is indented more than the one before it")]
    module, _ = parsed("op f(x)\n    return x\nop g(x) = x\n")
    assert kinds(module.items) == ["OpDef", "OpDef"]


def test_an_operator_at_the_end_of_a_body_takes_nothing_from_the_next_definition() -> None:
    module, diagnostics = parsed("op f(x):\n    return x +\n\nlet a = 1\n")
    assert [d.line for d in diagnostics] == [2]
    assert kinds(module.items) == ["OpDef", "Let"]


def test_statements_at_the_top_of_a_module() -> None:
    text = 'x = 1\nprint("a")\nfor i in x:\n    print(i i)\nlet y = 1\n'
    module, diagnostics = parsed(text)
    assert [d.line for d in diagnostics] == [1, 2, 3, 4]
    assert kinds(module.items) == ["Let", "ErrorStmt", "ErrorStmt", "Let"]


def test_expressions_in_strings_recover_by_themselves() -> None:
    module, diagnostics = parsed('let a = "x {1 2} {b}"\nlet c = 1\n')
    assert [(d.line, d.column) for d in diagnostics] == [(1, 15)]
    assert kinds(module.items) == ["Let", "Let"]


@pytest.mark.parametrize(
    "text",
    [
        "op f(x):\n    return relu(x\n    let y = 3\nop g(x) = x\n",
        "op f(x) = relu x)\n",
        "op f(x) = f(a]\n",
        "op f(x) = [{(]\n",
        "op f(x\n",
        "(\n",
        "fn f(): let a = (\n",
    ],
)
def test_brackets_are_no_cascade(text: str) -> None:
    lines = [line for _, line, _ in messages(text)]
    assert lines
    assert len(lines) == len(set(lines)) or "[{(]" in text


def test_fixes_repair() -> None:
    """What a fix changes is the mistake, and nothing but it."""
    texts = [
        "x = 1\n",
        "main: f()\n",
        "// a comment\n",
        "let a = b => c\n",
        "let a = 0...3\n",
        "var x = 1\n",
        "def f(x): return x\n",
        "fn f():\n    if a\n        return a\n",
        "fn f():\n    let a == 1\n",
        "fn f():\n    let a := 1\n",
        "fn f():\n    if a = 1: return a\n",
        "fn f():\n    if a: return a\n    else if b: return b\n",
        'let a = f"b"\n',
        "let a = b is None\n",
        "let a = True\n",
        "let a = b && c\n",
        "let a = b || c\n",
        "let a = !b\n",
        "let a = 'b'\n",
        "let a = b ^ c\n",
        "let a = x *.5\n",
        "let a = .5\n",
        "let a = 0b11\n",
        "let a = b)\n",
        "let a = f(b]\n",
        "op f(x) = relu(x\n",
        "op f(x):\n\treturn x\n",
        'let a = "b\n',
        'let a = "\\q"\n',
        'let a = "}"\n',
        "let a = b ≤ c\n",
        "fn f():\n    assert a\n",
    ]
    for text in texts:
        (diagnostic,) = parsed(text)[1]
        assert parsed(repaired(text, diagnostic))[1] == [], text
