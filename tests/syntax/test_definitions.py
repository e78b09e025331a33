"""Definitions, types, axes notation and documentation."""

from __future__ import annotations

import pytest

from ocannl_lang.syntax import ast
from tests.syntax.support import definition, expression, flat, tree


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("import models.gpt as gpt", "Import(path=[models, gpt], alias=gpt)"),
        ("import nn", "Import(path=[nn])"),
        ("from a.b import c, d as e", "FromImport(path=[a, b], items=[ImportItem(c), ImportItem(d, alias=e)])"),
        ("from data import row, basis", "FromImport(path=[data], items=[ImportItem(row), ImportItem(basis)])"),
        ("basis rgb, heads", "BasisDef([rgb, heads])"),
        ("let a, b = 1, 2", "Let(names=[a, b], value=TupleExpr([IntLit(1), IntLit(2)]))"),
        (
            'data d: f32[_] = read("x")',
            (
                "DataDef(d, type=TensorType(f32, output=[TypeAxisAny]), "
                "value=Call(function=Name(read), args=[Arg(value=StrLit(['x']))]))"
            ),
        ),
        (
            'extern py "p.m:f" as g(a: int) -> (int, float)',
            (
                "ExternDef(target='p.m:f', g, params=[ParamDecl(a, type=NamedType(int))], "
                "result=TupleType([NamedType(int), NamedType(float)]))"
            ),
        ),
        ("op f(x) = x", "OpDef(f, params=[ParamDecl(x)], body=[Return(Name(x))])"),
        ("op f(x) = x, x", "OpDef(f, params=[ParamDecl(x)], body=[Return(TupleExpr([Name(x), Name(x)]))])"),
        ("op f{axes; more}[a: int = 1](x, y = none) -> [3]: return x", None),
        ("cd p(c, a): c{i} :+= a{i}", None),
        ("routine r[training = true](i: index[n], x: f32[n | 3]) -> f32:\n    return x", None),
        ("fn f(a: list[int], g: fn, h: op) -> dict[str, list[int]]: return a", None),
        ("main(): print(1)", "MainDef(body=[ExprStmt(Call(function=Name(print), args=[Arg(value=IntLit(1))]))])"),
        ('test "a name": expect true', "TestDef(a name, body=[Expect(condition=BoolLit(true))])"),
        ("op f(\n    a,\n    b,\n) -> [3]:\n    return a", None),
    ],
)
def test_definitions(text: str, form: str | None) -> None:
    assert form is None or definition(text) == form
    definition(text)


@pytest.mark.parametrize(
    "word", ["main", "test", "data", "basis", "dim", "row", "state", "index", "collapse", "f32", "_x"]
)
def test_definitions_may_have_contextual_names(word: str) -> None:
    definition(f"op {word}({word}) = {word}")
    definition(f"let {word} = 1")
    definition(f"import {word}")


def typed(text: str) -> str:
    item = tree(f"let a: {text} = 1").items[0]
    assert isinstance(item, ast.Let)
    return flat(item.type)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("f32", "TensorType(f32, scalar)"),
        ("[]", "TensorType"),
        ("[16]", "TensorType(output=[TypeAxisSize(value=IntLit(16))])"),
        ("[| 16]", "TensorType(batch=[], output=[TypeAxisSize(value=IntLit(16))])"),
        ("f32[n | ]", "TensorType(f32, batch=[TypeAxisName(n)])"),
        (
            "bf16[784 -> 128]",
            "TensorType(bf16, input=[TypeAxisSize(value=IntLit(784))], output=[TypeAxisSize(value=IntLit(128))])",
        ),
        ("[-> 3]", "TensorType(input=[], output=[TypeAxisSize(value=IntLit(3))])"),
        (
            "f32[n | 28, 3:rgb]",
            (
                "TensorType(f32, batch=[TypeAxisName(n)], "
                "output=[TypeAxisSize(value=IntLit(28)), TypeAxisSize(value=IntLit(3), basis=rgb)])"
            ),
        ),
        ("[c:rgb, (2 * d):x, _, ...]", None),
        (
            "[..r.. | ..i.. -> ..o..]",
            "TensorType(batch=[TypeAxisRowVar(r)], input=[TypeAxisRowVar(i)], output=[TypeAxisRowVar(o)])",
        ),
        ("int", "NamedType(int)"),
        ("list[list[int]]", "GenericType(list, args=[GenericType(list, args=[NamedType(int)])])"),
        ("index[n]", "GenericType(index, args=[Name(n)])"),
        ("index[64]", "GenericType(index, args=[IntLit(64)])"),
        ("index[(n // 2)]", None),
        ("(f32[n], int)", "TupleType([TensorType(f32, output=[TypeAxisName(n)]), NamedType(int)])"),
    ],
)
def test_types(text: str, form: str | None) -> None:
    assert form is None or typed(text) == form
    typed(text)


def axes(text: str) -> str:
    item = tree(f"let a = f{{{text}}}").items[0]
    assert isinstance(item, ast.Let)
    assert isinstance(item.value, ast.WithSlots)
    return flat(item.value.notation.slots[0].output[0])


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("a", "AxisLabel(a)"),
        ("2", "AxisFixed(IntLit(2))"),
        ("(i + 1)", 'AxisFixed(Binary("+", left=Name(i), right=IntLit(1)))'),
        ("_", "AxisWild"),
        ("o + k", "AxisAffine(out=AffineTerm(label=o), kernel=AffineTerm(label=k))"),
        (
            "2*o + d*k",
            "AxisAffine(out=AffineTerm(factor=IntLit(2), label=o), kernel=AffineTerm(factor=Name(d), label=k))",
        ),
        ("(s + 1)*o =+ k", None),
        ("o =+ k", "AxisAffine(padded, out=AffineTerm(label=o), kernel=AffineTerm(label=k))"),
        ("3*o", "AxisStrided(AffineTerm(factor=IntLit(3), label=o))"),
        ("3*o + 1", "AxisStrided(term=AffineTerm(factor=IntLit(3), label=o), offset=IntLit(1))"),
        ("a^b^3^(n)", "AxisConcat([a, b, IntLit(3), Name(n)])"),
        ("3^rest", "AxisConcat([IntLit(3), rest])"),
        ("...", "AxisEllipsis"),
        ("..r..", "AxisRowVar(r)"),
        ("collapse(axes)", "AxisCollapse(axes)"),
    ],
)
def test_axes(text: str, form: str | None) -> None:
    written = axes(text)
    if form is not None:
        assert written.replace("term=", "") == form.replace("term=", "")


def test_commas_between_axes_may_be_left_out() -> None:
    assert expression("f{... s | h d; ... t | 2*h (i) => ... s | t -> h}") == expression(
        "f{..., s | h, d; ..., t | 2*h, (i) => ..., s | t -> h}"
    )
    assert expression("f{i, i => }").endswith("result=Slot))")


def test_an_infix_einsum_goes_on_after_a_newline() -> None:
    """Its right side follows the closing brace, while a reducer's braces end a statement."""
    module = tree("fn f():\n    let a = b +*{i => i}\n        c\n    let d = e{i}\n    g(d)\n")
    item = module.items[0]
    assert isinstance(item, ast.FnDef)
    assert [type(s).__name__ for s in item.body] == ["Let", "Let", "ExprStmt"]


def test_documentation() -> None:
    module = tree(
        "## The module.\n## Two lines.\n\n# no documentation\n## Of f.\n##   Indented.\n"
        "op f(\n    ## Of x.\n    x,\n    y, ## not of y\n) = x\n"
        "let plain = 1\n\n## Of g.\n\n# between\nfn g(): return 1 # after\n#### a ruler\nlet b = 1"
    )
    assert module.doc == "The module.\nTwo lines."
    f, plain, g, b = module.items
    assert isinstance(f, ast.OpDef)
    assert f.doc == "Of f.\n  Indented."
    assert [p.doc for p in f.params] == ["Of x.", None]
    assert isinstance(g, ast.FnDef)
    assert g.doc == "Of g."
    assert isinstance(plain, ast.Let)
    assert isinstance(b, ast.Let)
    assert plain.doc is None
    assert b.doc is None
    assert len(module.comments) == 11
    assert [c.text for c in module.comments if not c.doc] == [
        "# no documentation",
        "# between",
        "# after",
        "#### a ruler",
    ]


def test_documentation_at_the_top_is_of_what_follows() -> None:
    assert tree("## Of the module.\nimport a\n").doc == "Of the module."
    module = tree("## Of f.\nop f(x) = x\n")
    assert module.doc is None
    assert isinstance(module.items[0], ast.OpDef)
    assert module.items[0].doc == "Of f."
    assert tree("## Alone.").doc == "Alone."
    assert tree("\n\n## Later.\n\nop f(x) = x").doc == "Later."


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "  \n\t\n",
        "# only a comment",
        "\ufeff",
        "\ufefflet a = 1\n",
        "let a = 1",
        "let a = 1\r\nop f(x):\r\n    return x\r\n",
    ],
)
def test_whole_files(text: str) -> None:
    tree(text)
