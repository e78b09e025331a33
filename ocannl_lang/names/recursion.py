"""E0306: recursion that can never end, where that is sure from the text alone.

A call is sure if every execution of the body reaches it: it stands in no branch, loop, comprehension or right side of
`and` and `or`, and before any statement that may return early. A cycle of sure calls never ends.
"""

from __future__ import annotations

from ocannl_lang.diagnostics.model import Collector, Diagnostic, Label
from ocannl_lang.names.bindings import Names
from ocannl_lang.names.types import kind_word
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast

_Def = ast.OpDef | ast.CdDef | ast.FnDef | ast.RoutineDef


def report_recursion(module: ast.Module, names: Names, collector: Collector) -> None:
    """Report each cycle of sure calls once, at the call that closes it."""
    calls: dict[ast.OpDef | ast.CdDef | ast.FnDef | ast.RoutineDef, dict[object, Span]] = {}
    for item in module.items:
        if isinstance(item, (ast.OpDef, ast.CdDef, ast.FnDef, ast.RoutineDef)):
            found: dict[object, Span] = {}
            try:
                _statements(item.body, names, found)
            except RecursionError:
                continue
            calls[item] = found
    reported: set[object] = set()
    for start in calls:
        path = _cycle(start, calls)
        if path is None or any(item in reported for item in path):
            continue
        reported.update(path)
        collector.report(_diagnostic(path, calls))


def _cycle(start: _Def, calls: dict[_Def, dict[object, Span]]) -> list[_Def] | None:
    """The shortest way of sure calls from `start` back to it."""
    ways: list[list[_Def]] = [[start]]
    seen: set[object] = set()
    while ways:
        way = ways.pop(0)
        for callee in calls[way[-1]]:
            if callee is start:
                return way
            if callee not in seen and callee in calls:
                seen.add(callee)
                ways.append([*way, next(d for d in calls if d is callee)])
    return None


def _diagnostic(path: list[_Def], calls: dict[_Def, dict[object, Span]]) -> Diagnostic:
    first = path[0]
    name = first.name.name
    labels = tuple(
        Label(calls[path[i]][path[i + 1]], f"`{path[i].name.name}` always calls `{path[i + 1].name.name}`")
        for i in range(len(path) - 1)
    )
    message = f"the {kind_word(first)} `{name}` calls itself without end"
    note = "nothing decides before this call whether to go on"
    label = f"calls `{name}` again, always"
    return Diagnostic("E0306", message, calls[path[-1]][first], label, labels, (note,), ("put the call under an `if`",))


def _statements(statements: tuple[ast.Stmt, ...], names: Names, found: dict[object, Span]) -> bool:
    """Collect the sure calls of statements; whether execution surely goes on after them."""
    for s in statements:
        match s:
            case ast.Return(value=value):
                if value is not None:
                    _expression(value, names, found)
                return False
            case ast.Let(value=value) | ast.Var(value=value) | ast.Rebind(value=value) | ast.ExprStmt(value=value):
                _expression(value, names, found)
            case ast.Assign(value=value):
                _expression(value, names, found)
            case ast.Expect(condition=condition):
                _expression(condition, names, found)
                return False
            case ast.If(branches=branches):
                _expression(branches[0][0], names, found)
                if _may_leave(s):
                    return False
            case ast.For(iterable=iterable):
                _expression(iterable, names, found)
                if _may_leave(s):
                    return False
            case ast.While(condition=condition):
                _expression(condition, names, found)
                return False
            case ast.Section(kind=kind, body=body):
                if kind == "forward":
                    _statements(body, names, found)
            case ast.Break() | ast.Continue() | ast.ErrorStmt():
                return False
            case ast.DimDecl() | ast.RowDecl() | ast.StateDecl():
                pass
    return True


def _may_leave(s: ast.Stmt) -> bool:
    match s:
        case ast.Return() | ast.Expect() | ast.ErrorStmt() | ast.While():
            return True
        case ast.If(branches=branches, otherwise=otherwise):
            bodies = (*(body for _, body in branches), otherwise or ())
            return any(_may_leave(inner) for body in bodies for inner in body)
        case ast.For(body=body) | ast.Section(body=body):
            return any(_may_leave(inner) for inner in body)
        case _:
            return False


def _expression(e: ast.Expr, names: Names, found: dict[object, Span]) -> None:
    match e:
        case ast.Call(function=function, args=args):
            for arg in args:
                _expression(arg.value, names, found)
            _called(function, e.span, names, found)
        case ast.Pipe(value=value, function=function):
            _expression(value, names, found)
            _called(function, function.span, names, found)
        case ast.Binary(op="and" | "or", left=left):
            _expression(left, names, found)
        case ast.Binary(left=left, right=right) | ast.EinsumInfix(left=left, right=right):
            _expression(left, names, found)
            _expression(right, names, found)
        case ast.Unary(operand=operand) | ast.IsNone(operand=operand):
            _expression(operand, names, found)
        case ast.Paren(inner=inner):
            _expression(inner, names, found)
        case ast.IfExpr(condition=condition):
            _expression(condition, names, found)
        case ast.ListExpr(items=items) | ast.TupleExpr(items=items):
            for item in items:
                _expression(item, names, found)
        case ast.Attr(base=base) | ast.Slice(base=base):
            _expression(base, names, found)
        case ast.Bracket(base=base, args=args):
            _expression(base, names, found)
            for arg in args:
                _expression(arg.value, names, found)
        case ast.Comprehension(iterable=iterable):
            _expression(iterable, names, found)
        case _:
            pass


def _called(function: ast.Expr, place: Span, names: Names, found: dict[object, Span]) -> None:
    """Note the definition that is applied, through its configuration and its axes notation."""
    e = function
    while True:
        match e:
            case ast.Bracket(base=base, args=args):
                for arg in args:
                    _expression(arg.value, names, found)
                e = base
            case ast.WithSlots(base=base):
                e = base
            case ast.Paren(inner=inner):
                e = inner
            case ast.Name():
                break
            case _:
                _expression(e, names, found)
                return
    binding = names.definition(e)
    if binding is not None and binding.kind in ("op", "cd", "fn", "routine") and binding.node is not None:
        found.setdefault(binding.node, place)
