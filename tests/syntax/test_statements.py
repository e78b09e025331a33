"""Statements and blocks."""

from __future__ import annotations

import pytest

from ocannl_lang.syntax import ast
from tests.syntax.support import flat, statement, tree


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("let a = 1", "Let(names=[a], value=IntLit(1))"),
        ("let a, b = f", "Let(names=[a, b], value=Name(f))"),
        ("let a: int = 1", "Let(names=[a], type=NamedType(int), value=IntLit(1))"),
        ("var a = 1, 2", "Var(names=[a], value=TupleExpr([IntLit(1), IntLit(2)]))"),
        ("dim h, d = 64", "DimDecl([[h, None], [d, IntLit(64)]])"),
        ("row r, s", "RowDecl([r, s])"),
        (
            "state m: [3] = 0.",
            "StateDecl(m, type=TensorType(output=[TypeAxisSize(value=IntLit(3))]), init=FloatLit(0.0))",
        ),
        ("state m", "StateDecl(m)"),
        ("return", "Return"),
        ("return a, b", "Return(TupleExpr([Name(a), Name(b)]))"),
        ("expect a", "Expect(condition=Name(a))"),
        ('expect a, "m"', "Expect(condition=Name(a), message=StrLit(['m']))"),
        ("break", "Break"),
        ("continue", "Continue"),
        ("f(x)", "ExprStmt(Call(function=Name(f), args=[Arg(value=Name(x))]))"),
        ("a = 1", "Rebind(targets=[Name(a)], value=IntLit(1))"),
        ("a, b = f", "Rebind(targets=[Name(a), Name(b)], value=Name(f))"),
        ("d[k] = e", "Rebind(targets=[Bracket(base=Name(d), args=[Arg(value=Name(k))])], value=Name(e))"),
        ("a, d[0], t.x = f", None),
        ("while a: break", "While(condition=Name(a), body=[Break])"),
        ("for a, b in xs: break", "For(pattern=[a, b], iterable=Name(xs), body=[Break])"),
        ("for _ in 0..3: break", None),
        ("forward: r := x", 'Section(forward, body=[Assign(":=", target=Name(r), value=Name(x))])'),
        ("backward:\n    r := x", 'Section(backward, body=[Assign(":=", target=Name(r), value=Name(x))])'),
        ("forward := x", 'Assign(":=", target=Name(forward), value=Name(x))'),
    ],
)
def test_statements(text: str, form: str | None) -> None:
    assert form is None or statement(text) == form
    statement(text)


@pytest.mark.parametrize(
    "sign",
    [
        ":=",
        "+=",
        "-=",
        "*=",
        "/=",
        "**=",
        "max=",
        "min=",
        "and=",
        "or=",
        ":+=",
        ":-=",
        ":*=",
        ":/=",
        ":**=",
        ":max=",
        ":min=",
        ":and=",
        ":or=",
    ],
)
def test_assignments(sign: str) -> None:
    assert statement(f"c {sign} e") == f'Assign("{sign}", target=Name(c), value=Name(e))'
    written = statement(f"c.grad{{i, (pos) | ...}} {sign} a{{i}} *. b")
    assert written.startswith(f'Assign("{sign}", target=WithSlots(base=Attr(grad, base=Name(c))')


def test_a_block_after_its_colon_may_start_with_max() -> None:
    """`c:max=3` is an assignment, but not where a condition is read."""
    assert statement("if c:max=3") == "If(branches=[[Name(c), [Rebind(targets=[Name(max)], value=IntLit(3))]]])"
    assert statement("c:max=3") == 'Assign(":max=", target=Name(c), value=IntLit(3))'
    assert statement("c max=3") == 'Assign("max=", target=Name(c), value=IntLit(3))'
    assert statement("max=3") == "Rebind(targets=[Name(max)], value=IntLit(3))"
    assert statement("while c:min=x") == "While(condition=Name(c), body=[Rebind(targets=[Name(min)], value=Name(x))])"


@pytest.mark.parametrize("word", ["dim", "row", "state"])
def test_words_that_start_declarations_are_names_too(word: str) -> None:
    assert statement(f"{word} = 1") == f"Rebind(targets=[Name({word})], value=IntLit(1))"
    assert statement(f"{word} in rows") == f'ExprStmt(Binary("in", left=Name({word}), right=Name(rows)))'
    assert statement(f"{word} is none") == f"ExprStmt(IsNone(operand=Name({word})))"
    assert statement(f"{word} max= 3") == f'Assign("max=", target=Name({word}), value=IntLit(3))'
    assert statement(f"{word}.grad += 1").startswith("Assign")
    assert statement(f"if a: {word} b").endswith("Decl(b)]]])") or "Decl([" in statement(f"if a: {word} b")


def test_if_with_branches() -> None:
    text = "if a: return 1\nelif b:\n    return 2\nelif c: return 3\nelse:\n    return 4"
    item = tree("fn f():\n" + "\n".join("    " + line for line in text.split("\n"))).items[0]
    assert isinstance(item, ast.FnDef)
    branch = item.body[0]
    assert isinstance(branch, ast.If)
    assert [flat(condition) for condition, _ in branch.branches] == ["Name(a)", "Name(b)", "Name(c)"]
    assert branch.otherwise is not None
    assert flat(branch.otherwise[0]) == "Return(IntLit(4))"


def test_semicolons_and_blocks_on_a_line() -> None:
    item = tree("fn f(): let a = 1; a += 2; return a;\n").items[0]
    assert isinstance(item, ast.FnDef)
    assert [type(s).__name__ for s in item.body] == ["Let", "Assign", "Return"]
    module = tree("basis a; let b = 1; import c\n")
    assert [type(i).__name__ for i in module.items] == ["BasisDef", "Let", "Import"]


def test_blocks_nest_by_indentation() -> None:
    module = tree("fn f():\n  for a in b:\n      if c:\n        break\n      d(a)\n  return a\nlet x = 1")
    item = module.items[0]
    assert isinstance(item, ast.FnDef)
    loop = item.body[0]
    assert isinstance(loop, ast.For)
    assert [type(s).__name__ for s in loop.body] == ["If", "ExprStmt"]
    assert [type(s).__name__ for s in item.body] == ["For", "Return"]
