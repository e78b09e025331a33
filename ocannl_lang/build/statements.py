"""Executing statements: static control flow runs, tensors are added to the graph.

A fault ends its statement: it is reported, the names that the statement binds become poison, and building goes on, so that
independent faults of one body all come out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ocannl_lang.build import tensors
from ocannl_lang.build.assign import assign
from ocannl_lang.build.calls import ask_type
from ocannl_lang.build.context import Binding, BuildError, Ctx, at_the_user, fail, step
from ocannl_lang.build.expressions import (
    Poisoned,
    PoisonedCondition,
    as_host,
    as_tensor,
    bind_pattern,
    condition,
    evaluate,
    is_tensor,
    iterate,
    unpack,
)
from ocannl_lang.build.instances import declare_state, settle_names
from ocannl_lang.build.types import check_static
from ocannl_lang.build.values import (
    POISON,
    CellRef,
    DimRef,
    Poison,
    Returned,
    RowRef,
    Static,
    Symbolic,
)
from ocannl_lang.graph.ir import Value
from ocannl_lang.host.array import HostArray
from ocannl_lang.shapes.terms import DimVar, RowVar, Size
from ocannl_lang.syntax import ast


class Break(Exception):
    """`break`."""


class Continue(Exception):
    """`continue`."""


def execute(ctx: Ctx, body: Sequence[ast.Stmt], *, keep_fresh: bool = False) -> Returned | None:
    """Execute a block; the value of its `return`, if it came to one."""
    for stmt in body:
        step(ctx, stmt.span)
        try:
            outcome = _EXECUTORS[type(stmt)](ctx, stmt)
        except BuildError as error:
            if ctx.services is not None:
                raise
            ctx.world.collector.report(at_the_user(ctx.build, error.diagnostic))
            poison(ctx, stmt)
            if isinstance(stmt, ast.Return):
                return Returned(POISON, stmt.span)
            outcome = None
        except (Poisoned, PoisonedCondition):
            poison(ctx, stmt)
            if isinstance(stmt, ast.Return):
                return Returned(POISON, stmt.span)
            outcome = None
        finally:
            if ctx.frame.fresh and not keep_fresh and not isinstance(stmt, (ast.Let,)):
                settle_names(ctx.frame, [], None)
        if outcome is not None:
            return outcome
    return None


def poison(ctx: Ctx, stmt: ast.Stmt) -> None:
    """The names that a faulty statement would have bound become poison; so do those bound in the blocks it skips."""
    scope = ctx.frame.scope
    match stmt:
        case ast.Let(names=names) | ast.Var(names=names) | ast.RowDecl(names=names):
            for n in names:
                scope[n.name] = Binding(POISON, isinstance(stmt, ast.Var))
        case ast.Rebind(targets=targets):
            for t in targets:
                if isinstance(t, ast.Name):
                    scope[t.name] = Binding(POISON, True)
        case ast.Assign(target=ast.Name(name=name)) if name in scope and scope[name].rebindable:
            scope[name] = Binding(POISON, True)
        case ast.StateDecl(name=name):
            scope[name.name] = Binding(POISON)
        case ast.DimDecl(items=items):
            for n, _ in items:
                scope[n.name] = Binding(POISON)
        case ast.For(body=body) | ast.While(body=body):
            for s in body:
                poison(ctx, s)
        case ast.If(branches=branches, otherwise=otherwise):
            for _, block in branches:
                for s in block:
                    poison(ctx, s)
            for s in otherwise or ():
                poison(ctx, s)
        case _:
            pass


# ---------------------------------------------------------------- bindings


def _let(ctx: Ctx, stmt: ast.Let) -> None:
    value = evaluate(ctx, stmt.value)
    value = typed(ctx, value, stmt.type, stmt.names[0].name, stmt.value)
    names = [n.name for n in stmt.names]
    settle_names(ctx.frame, names, value)
    _bind(ctx, stmt.names, _frozen(ctx, value, stmt), stmt.value, rebindable=False)


def _frozen(ctx: Ctx, value: Static, stmt: ast.Let | ast.Var) -> Static:
    """What `let` binds is the value there and then; `let w = {w}` binds the parameter itself."""
    if isinstance(value, CellRef):
        inner = stmt.value
        while isinstance(inner, ast.Paren):
            inner = inner.inner
        if isinstance(inner, ast.ParamExpr) or ctx.services is not None:
            return as_host(ctx, value)
        return tensors.cell_value(ctx.build, value.cell, ctx.build.origin(stmt.value.span))
    if isinstance(value, tuple) and any(isinstance(v, CellRef) for v in value) and ctx.services is None:
        exprs = stmt.value.items if isinstance(stmt.value, ast.TupleExpr) else (stmt.value,) * len(value)
        return tuple(
            v if not isinstance(v, CellRef) or isinstance(e, ast.ParamExpr)
            else tensors.cell_value(ctx.build, v.cell, ctx.build.origin(e.span))
            for v, e in zip(value, exprs)
        )  # fmt: skip
    return value


def _bind(ctx: Ctx, names: Sequence[ast.Ident], value: Static, expr: ast.Expr, *, rebindable: bool) -> None:
    parts = [value] if len(names) == 1 else unpack(ctx, value, len(names), expr.span)
    for n, part in zip(names, parts):
        if isinstance(part, Value) and not part.name and part not in ctx.build.cell_of:
            part.name = n.name
        ctx.frame.scope[n.name] = Binding(part, rebindable)


def _var(ctx: Ctx, stmt: ast.Var) -> None:
    value = evaluate(ctx, stmt.value)
    value = typed(ctx, value, stmt.type, stmt.names[0].name, stmt.value)
    _bind(ctx, stmt.names, _frozen(ctx, value, stmt), stmt.value, rebindable=True)


def typed(ctx: Ctx, value: Static, type: ast.TypeExpr | None, name: str, expr: ast.Expr) -> Static:
    """A value held to the type of its `let`."""
    if type is None or isinstance(value, Poison):
        return value
    if not isinstance(type, ast.TensorType):
        return check_static(as_host(ctx, value), type, f"`{name}`", expr.span)
    if ctx.services is not None:
        return ctx.services.typed(ctx, value, type, name, expr.span)
    if isinstance(value, (int, float, Symbolic, DimRef, RowRef)) and not isinstance(value, bool):
        tensor = as_tensor(ctx, value, expr.span, leaf=not type.scalar)
    else:
        tensor = as_tensor(ctx, value, expr.span, leaf=True)
    if not tensor.name and tensor not in ctx.build.cell_of:
        tensor.name = name
    return ask_type(ctx, tensor, type, name, "annotation")


def _dims(ctx: Ctx, stmt: ast.DimDecl) -> None:
    from ocannl_lang.build.notation import static_size

    build = ctx.build
    for ident, expr in stmt.items:
        origin = build.origin(ident.span, "declaration", ident.name)
        if expr is None:
            dim: Size | DimVar = DimVar(f"`{ident.name}`", origin)
        else:
            value = evaluate(ctx, expr)
            if isinstance(value, Poison):
                ctx.frame.scope[ident.name] = Binding(POISON)
                continue
            size = static_size(value)
            if size is None:
                from ocannl_lang.build.types import describe

                raise fail("E0301", f"`{ident.name}` is a size", expr.span, f"this is {describe(value)}")
            if isinstance(size, int):
                if size < 0:
                    raise fail("E0301", f"a size of {size}", expr.span)
                at = build.origin(stmt.span, "declaration", ident.name)
                dim = Size(size, why=at, text="" if expr.span.text == str(size) else ident.name)
            else:
                dim = tensors.size_dim(build, Symbolic(size, True), f"`{ident.name}`", origin)
        ctx.frame.scope[ident.name] = Binding(DimRef(ident.name, dim, declared=True))


def _rows(ctx: Ctx, stmt: ast.RowDecl) -> None:
    for ident in stmt.names:
        origin = ctx.build.origin(ident.span, "declaration", ident.name)
        ctx.frame.scope[ident.name] = Binding(RowRef(ident.name, RowVar(f"`..{ident.name}..`", origin), declared=True))


def _state(ctx: Ctx, stmt: ast.StateDecl) -> None:
    if ctx.services is not None or ctx.frame.kind not in ("op", "cd", "routine"):
        raise fail("E0501", "a state belongs to an op, a cd or a routine", stmt.span)
    declare_state(ctx, stmt)


def _rebind(ctx: Ctx, stmt: ast.Rebind) -> None:
    value = evaluate(ctx, stmt.value)
    parts = [value] if len(stmt.targets) == 1 else unpack(ctx, value, len(stmt.targets), stmt.value.span)
    for target, part in zip(stmt.targets, parts):
        if isinstance(target, ast.Bracket):
            _set_element(ctx, target, part)
            continue
        if not isinstance(target, ast.Name):
            raise fail("E0501", "this cannot be bound anew", target.span)
        _rebind_name(ctx, target, _deref(ctx, part, stmt.value), stmt)


def _deref(ctx: Ctx, value: Static, expr: ast.Expr) -> Static:
    if isinstance(value, CellRef):
        if ctx.services is not None:
            return as_host(ctx, value)
        return tensors.cell_value(ctx.build, value.cell, ctx.build.origin(expr.span))
    return value


def _rebind_name(ctx: Ctx, target: ast.Name, value: Static, stmt: ast.Stmt) -> None:
    binding = ctx.frame.scope.get(target.name)
    if binding is None:
        if isinstance(stmt, ast.Rebind) and len(stmt.targets) > 1:
            # `a, b = f(x)` takes a tuple apart into new names
            ctx.frame.scope[target.name] = Binding(value)
            return
        raise fail(
            "E0201", f"unknown name `{target.name}`", target.span, "`=` binds a `var` anew",
            helps=(f"declare it: `let {target.name} = …` or `var {target.name} = …`",),
        )  # fmt: skip
    if not binding.rebindable and not isinstance(binding.value, Poison):
        if isinstance(stmt, ast.Rebind) and len(stmt.targets) > 1:
            ctx.frame.scope[target.name] = Binding(value)
            return
        raise fail(
            "E0501", f"`{target.name}` is bound for good", target.span, "only a `var` can be bound anew",
            helps=(f"declare it with `var {target.name} = …`",),
        )  # fmt: skip
    if isinstance(value, Value) and not value.name and value not in ctx.build.cell_of:
        value.name = target.name
    binding.value = value


def _set_element(ctx: Ctx, target: ast.Bracket, value: Static) -> None:
    base = evaluate(ctx, target.base)
    if len(target.args) != 1:
        raise fail("E0301", "an index is one value", target.span)
    index = evaluate(ctx, target.args[0].value)
    value = as_host(ctx, value)
    if isinstance(base, dict):
        base[index] = value
        return
    if isinstance(base, list) and isinstance(index, int):
        if not -len(base) <= index < len(base):
            raise fail("E0304", f"no element {index}", target.span, f"there are {len(base)}")
        base[index] = value
        return
    if isinstance(base, HostArray) and ctx.services is not None:
        ctx.services.set_element(ctx, base, index, value, target.span)
        return
    from ocannl_lang.build.types import describe

    raise fail("E0301", f"elements of {describe(base)} cannot be set", target.span)


def _assign(ctx: Ctx, stmt: ast.Assign) -> None:
    """`x += e` binds a `var` anew; everything else writes a tensor."""
    target = stmt.target
    if isinstance(target, (ast.Name, ast.Bracket)) and not stmt.op.startswith(":"):
        binding = ctx.frame.scope.get(target.name) if isinstance(target, ast.Name) else None
        if (binding is not None and binding.rebindable) or (
            isinstance(target, ast.Bracket) and ctx.services is not None
        ):
            _augment(ctx, stmt, target, binding)
            return
        if isinstance(target, ast.Name) and (
            ctx.services is not None or ctx.frame.kind in ("fn", "main", "test", "module")
        ):
            _rebind_name(ctx, target, POISON, stmt)
            return
    if ctx.services is not None:
        raise fail(
            "E0501", "tensors are assigned in routines and cds", stmt.span, helps=("use `var` and `=` in host code",)
        )
    assign(ctx, stmt)


_AUGMENTED = {"+=": "+", "-=": "-", "*=": "*", "/=": "/", "**=": "**", "and=": "and", "or=": "or"}


def _augment(ctx: Ctx, stmt: ast.Assign, target: ast.Name | ast.Bracket, binding: Binding | None) -> None:
    from ocannl_lang.build.operators import apply_binary

    old = as_host(ctx, evaluate(ctx, target)) if binding is None else as_host(ctx, binding.value)
    value = as_host(ctx, evaluate(ctx, stmt.value))
    if stmt.op in ("max=", "min="):
        from ocannl_lang.build.calls import Given
        from ocannl_lang.build.functions import apply_builtin
        from ocannl_lang.build.values import Builtin

        given = [Given(None, old, target.span), Given(None, value, stmt.value.span)]
        new = apply_builtin(ctx, Builtin(stmt.op[:-1]), given, stmt.value)
    elif stmt.op in ("and=", "or=") and isinstance(old, bool) and isinstance(value, bool):
        new = (old and value) if stmt.op == "and=" else (old or value)
    else:
        op = "*." if stmt.op == "*=" and is_tensor(old) and is_tensor(value) else _AUGMENTED[stmt.op]
        new = apply_binary(ctx, op, old, value, stmt.span, stmt.op_span, (target.span, stmt.value.span))
    if binding is not None:
        if isinstance(new, Value) and not new.name and isinstance(target, ast.Name):
            new.name = target.name
        binding.value = new
    elif isinstance(target, ast.Bracket):
        _set_element(ctx, target, new)


# ---------------------------------------------------------------- control


def _return(ctx: Ctx, stmt: ast.Return) -> Returned:
    value = None if stmt.value is None else evaluate(ctx, stmt.value)
    if ctx.frame.kind != "fn":
        value = _deref_all(ctx, value, stmt)
    return Returned(value, stmt.span)


def _deref_all(ctx: Ctx, value: Static, stmt: ast.Return) -> Static:
    if isinstance(value, tuple):
        return tuple(_deref_all(ctx, v, stmt) for v in value)
    if isinstance(value, CellRef) and ctx.services is None:
        return tensors.cell_value(ctx.build, value.cell, ctx.build.origin(stmt.span))
    return value


def _expect(ctx: Ctx, stmt: ast.Expect) -> None:
    if ctx.services is not None:
        ctx.services.expect(ctx, stmt)
        return
    if condition(ctx, stmt.condition):
        return
    text = "this expectation fails"
    if stmt.message is not None:
        message = evaluate(ctx, stmt.message)
        text = message if isinstance(message, str) else text
    frames = ctx.build.frames
    outer = frames[0].span if frames else stmt.span
    from ocannl_lang.diagnostics.model import Label

    labels = (Label(stmt.condition.span, "this does not hold"),) if frames else ()
    raise fail("E0304", text, outer, "" if frames else "this does not hold", labels=labels)


def _break(ctx: Ctx, stmt: ast.Break) -> None:
    del ctx, stmt
    raise Break


def _continue(ctx: Ctx, stmt: ast.Continue) -> None:
    del ctx, stmt
    raise Continue


def _expression(ctx: Ctx, stmt: ast.ExprStmt) -> None:
    evaluate(ctx, stmt.value)


def _if(ctx: Ctx, stmt: ast.If) -> Returned | None:
    for test, block in stmt.branches:
        if condition(ctx, test):
            return execute(ctx, block)
    return execute(ctx, stmt.otherwise) if stmt.otherwise is not None else None


def _for(ctx: Ctx, stmt: ast.For) -> Returned | None:
    frame = ctx.frame
    turns = frame.turns
    values = evaluate(ctx, stmt.iterable)
    if isinstance(values, Poison):
        raise Poisoned
    iterator: Any = iterate(ctx, values, stmt.iterable.span)
    try:
        for turn, item in enumerate(iterator):
            frame.turns = (*turns, turn)
            step(ctx, stmt.span)
            bind_pattern(ctx, stmt.pattern, item, stmt.iterable.span)
            try:
                outcome = execute(ctx, stmt.body)
            except Continue:
                continue
            except Break:
                break
            if outcome is not None:
                return outcome
    finally:
        frame.turns = turns
        close = getattr(iterator, "close", None)
        if close is not None:
            close()
    return None


def _while(ctx: Ctx, stmt: ast.While) -> Returned | None:
    frame = ctx.frame
    turns = frame.turns
    turn = 0
    try:
        while condition(ctx, stmt.condition):
            frame.turns = (*turns, turn)
            turn += 1
            step(ctx, stmt.span)
            try:
                outcome = execute(ctx, stmt.body)
            except Continue:
                continue
            except Break:
                break
            if outcome is not None:
                return outcome
    finally:
        frame.turns = turns
    return None


def _nothing(ctx: Ctx, stmt: ast.Stmt) -> None:
    del ctx, stmt
    raise Poisoned


_EXECUTORS: dict[type, Callable[[Ctx, Any], Returned | None]] = {
    ast.Let: _let, ast.Var: _var, ast.DimDecl: _dims, ast.RowDecl: _rows, ast.StateDecl: _state, ast.Rebind: _rebind,
    ast.Assign: _assign, ast.Return: _return, ast.Expect: _expect, ast.Break: _break, ast.Continue: _continue,
    ast.ExprStmt: _expression, ast.If: _if, ast.For: _for, ast.While: _while, ast.Section: _nothing, ast.ErrorStmt: _nothing,
}  # fmt: skip
