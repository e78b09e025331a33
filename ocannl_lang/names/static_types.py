"""Static types: what the text of a module alone shows to be wrong, called or not.

`check_types` walks every definition, infers the type of every expression as far as the text tells it and reports what
cannot be. Where a type is not sure it is `UNKNOWN` and nothing is said. Statements are here, expressions in
`expression_types`.
"""

from __future__ import annotations

from ocannl_lang.diagnostics.model import Collector, Diagnostic, Edit, Fix, Label
from ocannl_lang.names.bindings import Binding, Names
from ocannl_lang.names.calls import check_type
from ocannl_lang.names.expression_types import Typer, TypesOfModule
from ocannl_lang.names.recursion import report_recursion
from ocannl_lang.names.types import (
    NONE,
    STR,
    TENSOR,
    UNKNOWN,
    DictOf,
    ListOf,
    ModuleType,
    TupleOf,
    Type,
    declared_type,
    is_callable,
    is_number,
    join,
    words,
)  # fmt: skip
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast


def check_types(module: ast.Module, names: Names, collector: Collector) -> None:
    """Report E0301, E0302, E0303, E0306, E0501 for what is no `var`, and misplaced statements of a module whose names are resolved.

    Never raises, whatever the text.
    """
    types = TypesOfModule(names, collector)
    for item in module.items:
        if isinstance(item, ast.Let):
            _guarded(item, types)
    for item in module.items:
        if not isinstance(item, ast.Let):
            _guarded(item, types)
    report_recursion(module, names, collector)


def _guarded(item: ast.Definition, types: TypesOfModule) -> None:
    try:
        _definition(item, types)
    except RecursionError:
        return  # what is nested too deeply is reported when names are resolved


def _definition(item: ast.Definition, types: TypesOfModule) -> None:
    match item:
        case ast.Let():
            _Checker(Typer(types, "module"), item).bind_let(item)
        case ast.OpDef() | ast.CdDef() | ast.RoutineDef():
            kind = "op" if isinstance(item, ast.OpDef) else "cd" if isinstance(item, ast.CdDef) else "routine"
            checker = _Checker(Typer(types, kind), item)
            for param in item.config:
                checker.parameter(param, config=True)
            for param in item.params:
                checker.parameter(param, config=False)
            checker.body(item.body)
        case ast.FnDef() | ast.MainDef():
            checker = _Checker(Typer(types, "fn" if isinstance(item, ast.FnDef) else "main"), item)
            for param in item.params:
                checker.parameter(param, config=True)
            checker.body(item.body)
        case ast.TestDef():
            _Checker(Typer(types, "test"), item).body(item.body)
        case ast.ExternDef():
            checker = _Checker(Typer(types, "extern"), item)
            for param in item.params:
                checker.parameter(param, config=True)
        case ast.DataDef():
            checker = _Checker(Typer(types, "data"), item)
            checker.typer.written(item.type)
            checker.typer.of(item.value)
        case ast.Import() | ast.FromImport() | ast.BasisDef() | ast.ErrorStmt():
            pass


class _Checker:
    """Checks the statements of one definition."""

    def __init__(self, typer: Typer, item: ast.Definition) -> None:
        self.typer = typer
        self.item = item
        self.loops = 0
        self.section = False

    @property
    def names(self) -> Names:
        return self.typer.shared.names

    def report(self, diagnostic: Diagnostic) -> None:
        self.typer.report(diagnostic)

    # ------------------------------------------------------------ parameters

    def parameter(self, param: ast.ParamDecl, *, config: bool) -> None:
        if param.type is not None:
            self.typer.written(param.type)
        if param.default is not None:
            value = self.typer.of(param.default)
            self._fits(value, param.type, param.default.span, f"`{param.name.name}`", None)
        binding = self.names.definition(param.name)
        if binding is None:
            return
        if param.type is not None:
            self.typer.types[binding] = declared_type(param.type)
        elif not config and isinstance(self.item, ast.OpDef):
            self.typer.types[binding] = TENSOR

    # ------------------------------------------------------------ statements

    def body(self, statements: tuple[ast.Stmt, ...]) -> None:
        self.typer.rebound = rebound_names(statements, self.names)
        self.statements(statements)

    def statements(self, statements: tuple[ast.Stmt, ...]) -> None:
        for s in statements:
            self.statement(s)

    def statement(self, s: ast.Stmt) -> None:
        match s:
            case ast.Let() | ast.Var():
                self.bind_let(s)
            case ast.DimDecl(items=items):
                for ident, value in items:
                    if value is not None:
                        self.typer.int_needed(value, f"the size of `{ident.name}`")
            case ast.StateDecl(type=declared, init=init):
                if self.typer.kind not in ("op", "cd", "routine"):
                    self.report(Diagnostic("E0501", "a state belongs to an op, a cd or a routine", s.span))
                if declared is not None:
                    self.typer.written(declared)
                if init is not None:
                    self._fits(self.typer.of(init), declared, init.span, f"`{s.name.name}`", None)
            case ast.Return():
                self._return(s)
            case ast.Expect(condition=condition, message=message):
                self.typer.condition(condition, "what `expect` checks")
                if message is not None:
                    self.typer.of(message)
            case ast.Break() | ast.Continue():
                if self.loops == 0:
                    word = "break" if isinstance(s, ast.Break) else "continue"
                    message = f"`{word}` stands outside of any loop"
                    self.report(Diagnostic("E0102", message, s.span, "not in a `for` or `while`"))
            case ast.Rebind():
                self._rebind(s)
            case ast.Assign():
                self._assign(s)
            case ast.ExprStmt(value=value):
                self.typer.of(value)
            case ast.If(branches=branches, otherwise=otherwise):
                for condition, body in branches:
                    self.typer.condition(condition, "a condition")
                    self.statements(body)
                self.statements(otherwise or ())
            case ast.For():
                self._for(s)
            case ast.While(condition=condition, body=body):
                self.typer.condition(condition, "a condition")
                self.loops += 1
                self.statements(body)
                self.loops -= 1
            case ast.Section():
                self._section(s)
            case ast.RowDecl() | ast.ErrorStmt():
                pass

    def bind_let(self, s: ast.Let | ast.Var) -> None:
        if s.type is not None:
            self.typer.written(s.type)
        value = self.typer.of(s.value)
        if s.type is not None:
            what = f"`{s.names[0].name}`" if len(s.names) == 1 else "this"
            if self._fits(value, s.type, s.value.span, what, s.type.span):
                value = declared_type(s.type)
        if len(s.names) == 1:
            self._bound(s.names[0], self.typer.bound(value))
        else:
            for ident, item in zip(s.names, self._parts(value, len(s.names), s.value.span), strict=True):
                self._bound(ident, self.typer.bound(item))

    def _bound(self, ident: ast.Ident, value: Type) -> None:
        binding = self.names.definition(ident)
        if binding is None:
            return
        if binding in self.typer.rebound:
            value = UNKNOWN
        old = self.typer.types.get(binding)
        self.typer.types[binding] = value if old is None else join((old, value))

    def _parts(self, value: Type, count: int, place: Span) -> tuple[Type, ...]:
        """The types of the `count` parts that a pattern takes a value apart into."""
        match value:
            case TupleOf(items=items) if len(items) == count:
                return items
            case TupleOf(items=items):
                message = f"{count} names cannot take a tuple of {len(items)} apart"
                self.report(Diagnostic("E0301", message, place, f"{len(items)} values"))
            case ListOf(item=item):
                return (item,) * count
            case _ if (
                is_number(value) or value == NONE or is_callable(value) or isinstance(value, (DictOf, ModuleType))
            ):
                message = f"{count} names need {count} values, and this is {words(value)}"
                self.report(Diagnostic("E0301", message, place, words(value)))
            case _:
                pass
        return (UNKNOWN,) * count

    def _return(self, s: ast.Return) -> None:
        value = NONE if s.value is None else self.typer.of(s.value)
        place = s.span if s.value is None else s.value.span
        if self.section:
            message = "`return` cannot stand in `forward` or `backward`"
            self.report(Diagnostic("E0102", message, s.span, "not here", helps=("set `result := …`",)))
            return
        match self.item:
            case ast.FnDef():
                if self.item.result is not None and s.value is not None:
                    what = f"the result of `{self.item.name.name}`"
                    self._fits(value, self.item.result, place, what, self.item.result.span)
            case ast.OpDef() | ast.RoutineDef():
                if value == STR or isinstance(value, DictOf):
                    kind = "op" if isinstance(self.item, ast.OpDef) else "routine"
                    message = f"the {kind} `{self.item.name.name}` returns tensors, and this is {words(value)}"
                    self.report(Diagnostic("E0301", message, place, words(value)))
            case _:
                pass

    def _rebind(self, s: ast.Rebind) -> None:
        value = self.typer.of(s.value)
        if len(s.targets) > 1:
            self._parts(value, len(s.targets), s.value.span)
        for target in s.targets:
            if not isinstance(target, ast.Name):
                self.typer.of(target)
                continue
            binding = self.names.definition(target)
            if binding is not None and binding.kind != "var" and len(s.targets) == 1:
                self._not_a_var(target, binding)

    def _not_a_var(self, target: ast.Name, binding: Binding) -> None:
        name = target.name
        labels = () if binding.span is None else (Label(binding.span, "bound here"),)
        message = f"`{name}` is bound for good"
        match binding.node:
            case ast.Let(names=(_,)) if binding.kind == "let" and binding.span is not None:
                let = binding.node.span
                word = Edit(Span(let.source, let.start, let.start + len("let")), "var")
                fix = Fix(f"declare `{name}` by `var`", (word,)) if let.text.startswith("let") else None
                helps = (f"declare it by `var {name} = …`",)
            case _ if binding.kind in ("state", "parameter", "result") or isinstance(self.item, ast.CdDef):
                fix = None
                helps = (f"to assign to the tensor, write `{name} := …`",)
            case _:
                fix = None
                helps = (f"take another name: `var y = {name}`",)
        label = "only a `var` can be bound anew"
        self.report(Diagnostic("E0501", message, target.span, label, labels, helps=helps, fix=fix))

    def _assign(self, s: ast.Assign) -> None:
        value = self.typer.of(s.value)
        target = self.typer.of(s.target)
        binding = self.names.definition(s.target) if isinstance(s.target, ast.Name) else None
        op = s.op.removesuffix("=")
        if op in ("+", "-", "*", "/", "**") and (binding is None or binding.kind != "var" or target != UNKNOWN):
            self.typer.operation(op, target, value, s.target.span, s.value.span)
        if s.op.startswith(":") and (value == STR or is_callable(value)):
            message = f"a tensor cannot be set to {words(value)}"
            self.report(Diagnostic("E0301", message, s.value.span, words(value)))
        if self.typer.building or binding is None or binding.kind not in ("let", "loop", "config"):
            return  # what is no target in a computation is said where it is built
        if isinstance(s.target, ast.Name) and (is_number(target) or target == STR):
            self._not_a_var(s.target, binding)

    def _for(self, s: ast.For) -> None:
        item = self.typer.item_of(s.iterable)
        if len(s.pattern) == 1:
            self._bound(s.pattern[0], item)
        else:
            for ident, part in zip(s.pattern, self._parts(item, len(s.pattern), s.iterable.span), strict=True):
                self._bound(ident, part)
        self.loops += 1
        self.statements(s.body)
        self.loops -= 1

    def _section(self, s: ast.Section) -> None:
        if not isinstance(self.item, ast.OpDef):
            message = f"`{s.kind}:` belongs to an op that says its own derivative"
            head = Span(s.span.source, s.span.start, s.span.start + len(s.kind))
            self.report(Diagnostic("E0102", message, head, "not in an op"))
        outer = self.section, self.loops
        self.section, self.loops = True, 0
        self.statements(s.body)
        self.section, self.loops = outer

    def _fits(
        self, value: Type, declared: ast.TypeExpr | None, place: Span, what: str, declared_at: Span | None
    ) -> bool:
        return check_type(
            value, declared, place, what, declared_at, self.typer.shared.collector, building=self.typer.building
        )


def rebound_names(statements: tuple[ast.Stmt, ...], names: Names) -> set[Binding]:
    """The bindings that statements bind anew, at any depth."""
    found: set[Binding] = set()
    for s in statements:
        match s:
            case ast.Rebind(targets=targets):
                found |= _bindings(targets, names)
            case ast.Assign(target=target):
                found |= _bindings((target,), names)
            case ast.If(branches=branches, otherwise=otherwise):
                for _, body in branches:
                    found |= rebound_names(body, names)
                found |= rebound_names(otherwise or (), names)
            case ast.For(body=body) | ast.While(body=body) | ast.Section(body=body):
                found |= rebound_names(body, names)
            case _:
                pass
    return found


def _bindings(targets: tuple[ast.Expr, ...], names: Names) -> set[Binding]:
    found = (names.definition(t) for t in targets if isinstance(t, ast.Name))
    return {b for b in found if b is not None and b.kind == "var"}
