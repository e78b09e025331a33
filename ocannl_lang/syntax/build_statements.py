"""Makes the nodes of statements and definitions. Each function is named after a rule or an alias of the grammar."""

from __future__ import annotations

from typing import Any

from ocannl_lang.source import Span
from ocannl_lang.syntax import ast, strings
from ocannl_lang.syntax.context import Context
from ocannl_lang.syntax.machine import Build

# ---------------------------------------------------------------- statements


def let_stmt(c: Context, start: int, end: int, children: list[Any]) -> ast.Let:
    _, names, type_, value = children
    return ast.Let(Span(c.source, start, end), names, type_, value, c.docs.get(start))


def var_stmt(c: Context, start: int, end: int, children: list[Any]) -> ast.Var:
    _, names, type_, value = children
    return ast.Var(Span(c.source, start, end), names, type_, value)


def pattern(c: Context, start: int, end: int, children: list[Any]) -> tuple[ast.Ident, ...]:
    return tuple(c.ident(word) for word in children)


def dim_stmt(c: Context, start: int, end: int, children: list[Any]) -> ast.DimDecl:
    return ast.DimDecl(Span(c.source, start, end), tuple(children[1:]))


def dim_item(c: Context, start: int, end: int, children: list[Any]) -> tuple[ast.Ident, ast.Expr | None]:
    word, value = children
    return c.ident(word), value


def row_stmt(c: Context, start: int, end: int, children: list[Any]) -> ast.RowDecl:
    return ast.RowDecl(Span(c.source, start, end), tuple(c.ident(word) for word in children[1:]))


def state_stmt(c: Context, start: int, end: int, children: list[Any]) -> ast.StateDecl:
    _, word, type_, init = children
    return ast.StateDecl(Span(c.source, start, end), c.ident(word), type_, init)


def return_stmt(c: Context, start: int, end: int, children: list[Any]) -> ast.Return:
    return ast.Return(Span(c.source, start, end), children[1])


def expect_stmt(c: Context, start: int, end: int, children: list[Any]) -> ast.Expect:
    _, condition, message = children
    return ast.Expect(Span(c.source, start, end), condition, message)


def break_stmt(c: Context, start: int, end: int, children: list[Any]) -> ast.Break:
    return ast.Break(Span(c.source, start, end))


def continue_stmt(c: Context, start: int, end: int, children: list[Any]) -> ast.Continue:
    return ast.Continue(Span(c.source, start, end))


def rebind(c: Context, start: int, end: int, children: list[Any]) -> ast.Rebind:
    return ast.Rebind(Span(c.source, start, end), tuple(children[:-1]), children[-1])


def assign(c: Context, start: int, end: int, children: list[Any]) -> ast.Assign:
    target, operator, value = children
    return ast.Assign(Span(c.source, start, end), c.word(operator), c.span(operator[1], operator[2]), target, value)


def expr_stmt(c: Context, start: int, end: int, children: list[Any]) -> ast.ExprStmt:
    return ast.ExprStmt(Span(c.source, start, end), children[0])


def simple_line(c: Context, start: int, end: int, children: list[Any]) -> list[ast.Stmt]:
    return children


def block(c: Context, start: int, end: int, children: list[Any]) -> tuple[ast.Stmt, ...]:
    return tuple(children[0])


def indented_block(c: Context, start: int, end: int, children: list[Any]) -> tuple[ast.Stmt, ...]:
    statements: list[ast.Stmt] = []
    for child in children:
        if isinstance(child, list):
            statements.extend(child)  # pyright: ignore[reportUnknownArgumentType]
        elif not isinstance(child, tuple):
            statements.append(child)
    return tuple(statements)


def short_body(c: Context, start: int, end: int, children: list[Any]) -> tuple[ast.Stmt, ...]:
    value = children[0]
    return (ast.Return(value.span, value),)


def long_body(c: Context, start: int, end: int, children: list[Any]) -> tuple[ast.Stmt, ...]:
    return children[0]


def if_stmt(c: Context, start: int, end: int, children: list[Any]) -> ast.If:
    _, condition, body, *more = children
    branches = [(condition, body), *more[:-1]]
    return ast.If(Span(c.source, start, end), tuple(branches), more[-1])


def elif_part(c: Context, start: int, end: int, children: list[Any]) -> tuple[ast.Expr, tuple[ast.Stmt, ...]]:
    condition, body = children
    return condition, body


def for_stmt(c: Context, start: int, end: int, children: list[Any]) -> ast.For:
    _, names, _, iterable, body = children
    return ast.For(Span(c.source, start, end), names, iterable, body)


def while_stmt(c: Context, start: int, end: int, children: list[Any]) -> ast.While:
    _, condition, body = children
    return ast.While(Span(c.source, start, end), condition, body)


def section(c: Context, start: int, end: int, children: list[Any]) -> ast.Section:
    word, body = children
    return ast.Section(Span(c.source, start, end), c.word(word), body)


# ---------------------------------------------------------------- definitions


def import_stmt(c: Context, start: int, end: int, children: list[Any]) -> ast.Import:
    _, path, alias = children
    return ast.Import(Span(c.source, start, end), path, None if alias is None else c.ident(alias))


def from_import(c: Context, start: int, end: int, children: list[Any]) -> ast.FromImport:
    _, path, _, *items = children
    return ast.FromImport(Span(c.source, start, end), path, tuple(items))


def import_name(c: Context, start: int, end: int, children: list[Any]) -> ast.ImportItem:
    word, alias = children
    return ast.ImportItem(Span(c.source, start, end), c.ident(word), None if alias is None else c.ident(alias))


def basis_def(c: Context, start: int, end: int, children: list[Any]) -> ast.BasisDef:
    return ast.BasisDef(Span(c.source, start, end), tuple(c.ident(word) for word in children[1:]))


def data_def(c: Context, start: int, end: int, children: list[Any]) -> ast.DataDef:
    _, word, type_, value = children
    return ast.DataDef(Span(c.source, start, end), c.ident(word), type_, value, c.docs.get(start))


def extern_def(c: Context, start: int, end: int, children: list[Any]) -> ast.ExternDef:
    _, target, word, params, result = children
    return ast.ExternDef(
        Span(c.source, start, end), _plain_text(c, target), c.span(target[1], target[2]), c.ident(word), tuple(params or ()),
        result, c.docs.get(start),
    )  # fmt: skip


def fn_def(c: Context, start: int, end: int, children: list[Any]) -> ast.FnDef:
    _, word, params, result, body = children
    return ast.FnDef(Span(c.source, start, end), c.ident(word), tuple(params or ()), result, body, c.docs.get(start))


def op_def(c: Context, start: int, end: int, children: list[Any]) -> ast.OpDef:
    _, word, slots, config, params, result, body = children
    return ast.OpDef(
        Span(c.source, start, end), c.ident(word), slots or (), tuple(config or ()), tuple(params or ()), result, body,
        c.docs.get(start),
    )  # fmt: skip


def cd_def(c: Context, start: int, end: int, children: list[Any]) -> ast.CdDef:
    _, word, slots, config, params, body = children
    return ast.CdDef(
        Span(c.source, start, end), c.ident(word), slots or (), tuple(config or ()), tuple(params or ()), body,
        c.docs.get(start),
    )  # fmt: skip


def routine_def(c: Context, start: int, end: int, children: list[Any]) -> ast.RoutineDef:
    _, word, config, params, result, body = children
    return ast.RoutineDef(
        Span(c.source, start, end),
        c.ident(word),
        tuple(config or ()),
        tuple(params or ()),
        result,
        body,
        c.docs.get(start),
    )


def main_def(c: Context, start: int, end: int, children: list[Any]) -> ast.MainDef:
    _, params, body = children
    return ast.MainDef(Span(c.source, start, end), tuple(params or ()), body, c.docs.get(start))


def test_def(c: Context, start: int, end: int, children: list[Any]) -> ast.TestDef:
    _, text, body = children
    return ast.TestDef(Span(c.source, start, end), _plain_text(c, text), body, c.docs.get(start))


def slot_params(c: Context, start: int, end: int, children: list[Any]) -> tuple[ast.Ident, ...]:
    return tuple(c.ident(word) for word in children)


def config(c: Context, start: int, end: int, children: list[Any]) -> list[ast.ParamDecl]:
    return children[0] or []


def param_decl(c: Context, start: int, end: int, children: list[Any]) -> ast.ParamDecl:
    word, type_, default = children
    return ast.ParamDecl(Span(c.source, start, end), c.ident(word), type_, default, c.docs.get(start))


def module(c: Context, start: int, end: int, children: list[Any]) -> tuple[ast.Definition, ...]:
    items: list[ast.Definition] = []
    for child in children:
        if isinstance(child, list):
            items.extend(child)  # pyright: ignore[reportUnknownArgumentType]
        else:
            items.append(child)
    return tuple(items)


def interpolation(c: Context, start: int, end: int, children: list[Any]) -> ast.Expr:
    return children[0]


def _plain_text(c: Context, token: Any) -> str:
    """The text of a string in whose place no expression can stand: braces mean themselves."""
    pieces = strings.split(c.source, token[1], token[2], c.collector)
    return "".join(c.text[p.start - 1 : p.stop] if p.text is None else p.text for p in pieces)


def _unless_broken(build: Build) -> Build:
    """A definition or loop whose head recovery has given up becomes an `ErrorStmt`."""

    def build_or_give_up(c: Context, start: int, end: int, children: list[Any]) -> Any:
        if start in c.broken:
            return ast.ErrorStmt(Span(c.source, start, end), c.broken[start])
        return build(c, start, end, children)

    return build_or_give_up


BUILDERS: dict[str, Build] = {
    "let_stmt": let_stmt, "var_stmt": var_stmt, "pattern": pattern, "dim_stmt": dim_stmt, "dim_item": dim_item,
    "row_stmt": row_stmt, "state_stmt": state_stmt, "return_stmt": return_stmt, "expect_stmt": expect_stmt,
    "break_stmt": break_stmt, "continue_stmt": continue_stmt, "rebind": rebind, "assign": assign, "expr_stmt": expr_stmt,
    "simple_line": simple_line, "block": block, "indented_block": indented_block, "short_body": short_body,
    "long_body": long_body, "if_stmt": if_stmt,
    "elif_part": elif_part, "for_stmt": for_stmt, "while_stmt": while_stmt, "section": section, "import_stmt": import_stmt,
    "from_import": from_import, "import_name": import_name, "dotted": pattern, "basis_def": basis_def, "data_def": data_def,
    "extern_def": extern_def, "fn_def": fn_def, "op_def": op_def, "cd_def": cd_def, "routine_def": routine_def,
    "main_def": main_def, "test_def": test_def, "slot_params": slot_params, "config": config, "param_decl": param_decl,
    "module": module, "interpolation": interpolation,
}  # fmt: skip
for _name in ("fn_def", "op_def", "cd_def", "routine_def", "main_def", "test_def", "extern_def", "while_stmt"):
    BUILDERS[_name] = _unless_broken(BUILDERS[_name])
