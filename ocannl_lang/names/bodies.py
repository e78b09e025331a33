"""Resolution inside definitions: signatures, statements, expressions and types."""

from __future__ import annotations

from dataclasses import dataclass

from ocannl_lang.names import reports
from ocannl_lang.names.bindings import Binding, BindingKind
from ocannl_lang.names.builtins import TYPE_NAMES
from ocannl_lang.names.nearest import nearest
from ocannl_lang.names.notation import Labels, NotationScope, finish_labels, resolve_notation, row_name_span
from ocannl_lang.names.scopes import BodyScope, ModuleScope, words
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast


def resolve_definition(item: ast.Definition, shared: ModuleScope) -> None:
    """Resolve everything inside a top-level item; its own name is bound already."""
    walker = _Walker(BodyScope(shared, item, item.span))
    match item:
        case ast.OpDef():
            walker.parameters(item.slots, item.config, item.params, item.result)
            walker.statements(item.body)
        case ast.CdDef():
            walker.parameters(item.slots, item.config, item.params, None)
            walker.statements(item.body)
        case ast.RoutineDef():
            walker.parameters((), item.config, item.params, item.result)
            walker.statements(item.body)
        case ast.FnDef():
            walker.parameters((), (), item.params, item.result)
            walker.statements(item.body)
        case ast.ExternDef():
            walker.parameters((), (), item.params, item.result)
        case ast.MainDef():
            walker.parameters((), (), item.params, None)
            walker.statements(item.body)
        case ast.TestDef():
            walker.statements(item.body)
        case ast.DataDef():
            walker.type(item.type)
            walker.expression(item.value)
        case ast.Let():
            walker.scope.owner = None
            if item.type is not None:
                walker.type(item.type)
            walker.expression(item.value)
        case ast.Import() | ast.FromImport() | ast.BasisDef() | ast.ErrorStmt():
            pass
    walker.scope.finish()


@dataclass(slots=True)
class _Walker:
    """Goes through one definition in the order of the text.

    `labels` are those of the assignment in index notation that is being resolved.
    """

    scope: BodyScope
    labels: Labels | None = None

    @property
    def shared(self) -> ModuleScope:
        return self.scope.shared

    # ------------------------------------------------------------ signatures

    def parameters(
        self,
        slots: tuple[ast.Ident, ...],
        config: tuple[ast.ParamDecl, ...],
        params: tuple[ast.ParamDecl, ...],
        result: ast.TypeExpr | None,
    ) -> None:
        first: dict[str, Span] = {}
        for slot in slots:
            self._parameter(slot, "slot", slot, first)
        for param in config:
            self._declared(param, "config", first)
        for param in params:
            self._declared(param, "param", first)
        if result is not None:
            self.type(result, introduce=True)

    def _declared(self, param: ast.ParamDecl, kind: BindingKind, first: dict[str, Span]) -> None:
        if param.type is not None:
            self.type(param.type, introduce=True)
        if param.default is not None:
            self.expression(param.default)
        self._parameter(param.name, kind, param, first)

    def _parameter(self, ident: ast.Ident, kind: BindingKind, node: object, first: dict[str, Span]) -> None:
        if ident.name in first:
            self.shared.collector.report(reports.defined_twice(ident.name, ident.span, first[ident.name]))
        first.setdefault(ident.name, ident.span)
        self.scope.bind(ident, kind, node)

    # ------------------------------------------------------------ statements

    def statements(self, body: tuple[ast.Stmt, ...]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, s: ast.Stmt) -> None:
        match s:
            case ast.Let() | ast.Var():
                self._binding_statement(s)
            case ast.DimDecl(items=items):
                for ident, value in items:
                    if value is not None:
                        self.expression(value)
                    self.scope.bind(ident, "dim", s)
            case ast.RowDecl(names=idents):
                for ident in idents:
                    self.scope.bind(ident, "row", s)
            case ast.StateDecl(name=ident, type=declared, init=init):
                if declared is not None:
                    self.type(declared)
                if init is not None:
                    self.expression(init)
                self.scope.bind(ident, "state", s)
            case ast.Return(value=value):
                if value is not None:
                    self.expression(value)
            case ast.Expect(condition=condition, message=message):
                self.expression(condition)
                if message is not None:
                    self.expression(message)
            case ast.Rebind(targets=targets, value=value):
                self.expression(value)
                for target in targets:
                    self._target(target, s, alone=len(targets) == 1)
            case ast.Assign():
                self._assign(s)
            case ast.ExprStmt(value=value):
                self.expression(value)
            case ast.If(branches=branches, otherwise=otherwise):
                self._if(branches, otherwise)
            case ast.For(pattern=pattern, iterable=iterable, body=body):
                self.expression(iterable)
                with self.scope.loop(s.span):
                    for ident in pattern:
                        self.scope.bind(ident, "loop", s)
                    self.statements(body)
            case ast.While(condition=condition, body=body):
                with self.scope.loop(s.span):
                    self.expression(condition)
                    self.statements(body)
            case ast.Section(body=body):
                self._section(s, body)
            case ast.ErrorStmt(span=span):
                self._unparsed(span)
            case ast.Break() | ast.Continue():
                pass

    def _binding_statement(self, s: ast.Let | ast.Var) -> None:
        if s.type is not None:
            self.type(s.type)
        values = _values(s.value) if len(s.names) > 1 else (s.value,)
        self.expression(s.value)
        kind: BindingKind = "let" if isinstance(s, ast.Let) else "var"
        for i, ident in enumerate(s.names):
            value = _without_parens(values[i]) if len(values) == len(s.names) else None
            if isinstance(value, ast.ParamExpr) and value.name.name == ident.name:
                self._rename_parameter(ident, kind, s)
            else:
                self.scope.bind(ident, kind, s)

    def _rename_parameter(self, ident: ast.Ident, kind: BindingKind, s: ast.Let | ast.Var) -> None:
        """`let w = {w}`: the same variable."""
        binding = Binding(ident.name, kind, ident.span, s, self.scope.extent, self.scope.owner)
        self.scope.names.introduce(binding, ident)
        parameter = self.scope.parameters[ident.name]
        self.scope.names.join((parameter, binding))
        self.scope.env[ident.name] = parameter if kind == "let" else binding

    def _target(self, target: ast.Expr, s: ast.Rebind, *, alone: bool) -> None:
        """A target of `=`. `a, b = f(x)` may introduce names."""
        if isinstance(target, ast.Name):
            if not alone and target.name not in self.scope.env:
                self.scope.bind_name(target, s)
                return
            self.scope.names.writes.add(target)
            self.scope.use(target, target.name, target.span, "target")
        else:
            self.expression(target)

    def _assign(self, s: ast.Assign) -> None:
        labels = self.labels = Labels(s.span)
        self.expression(s.value)
        if isinstance(s.target, ast.Name):
            if not s.op.startswith(":"):
                self.scope.names.writes.add(s.target)
            self.scope.use(s.target, s.target.name, s.target.span, "value")
        else:
            self.expression(s.target)
        self.labels = None
        finish_labels(labels, self._notation_scope())

    def _if(
        self, branches: tuple[tuple[ast.Expr, tuple[ast.Stmt, ...]], ...], otherwise: tuple[ast.Stmt, ...] | None
    ) -> None:
        ends: list[dict[str, Binding]] = []
        before = dict(self.scope.env)
        for condition, body in branches:
            self.expression(condition)
            before = dict(self.scope.env)
            with self.scope.block():
                self.statements(body)
            ends.append(self.scope.env)
            before.update(self.scope.parameters_since(before))
            self.scope.env = dict(before)
        if otherwise is not None:
            with self.scope.block():
                self.statements(otherwise)
            ends.append(self.scope.env)
        self.scope.merge(before, ends)

    def _section(self, s: ast.Section, body: tuple[ast.Stmt, ...]) -> None:
        outer = self.scope.env.get("result")
        result = Binding("result", "result", None, s, s.span, self.scope.owner)
        self.scope.env["result"] = result
        self.scope.names.bindings.append(result)
        with self.scope.block():
            self.statements(body)
        if self.scope.env.get("result") is result:
            self.scope.env.pop("result")
            if outer is not None:
                self.scope.env["result"] = outer

    def _unparsed(self, span: Span) -> None:
        """What did not parse may use and bind anything it mentions."""
        found = words(span.text)
        self.scope.hidden |= found
        self.shared.mentioned |= found

    # ------------------------------------------------------------ expressions

    def expression(self, e: ast.Expr, *, called: bool = False) -> None:
        match e:
            case ast.Name(span=span, name=name):
                self.scope.use(e, name, span, "call" if called else "value")
            case ast.IntLit() | ast.FloatLit() | ast.BoolLit() | ast.NoneLit():
                pass
            case ast.StrLit(parts=parts):
                for part in parts:
                    if isinstance(part, ast.Interpolation):
                        self.expression(part.value)
            case ast.Unary(operand=operand) | ast.IsNone(operand=operand):
                self.expression(operand)
            case ast.Binary() | ast.EinsumInfix():
                self._operators(e)
            case ast.IfExpr(condition=condition, then=then, otherwise=otherwise):
                self.expression(condition)
                self.expression(then)
                self.expression(otherwise)
            case ast.Pipe(value=value, function=function):
                self.expression(value)
                self.expression(function, called=True)
            case ast.Call(function=function, args=args):
                self.expression(function, called=True)
                self._args(args, function, "params")
            case ast.Bracket(base=base, args=args):
                self.expression(base, called=called)
                self._args(args, base, "config")
            case ast.Slice(base=base, low=low, high=high):
                for part in (base, low, high):
                    if part is not None:
                        self.expression(part)
            case ast.WithSlots(base=base, notation=notation):
                self.expression(base, called=called)
                self._notation(notation, self.labels if not called else None)
            case ast.Attr():
                self._attribute(e)
            case ast.ListExpr(items=items) | ast.TupleExpr(items=items):
                for item in items:
                    self.expression(item)
            case ast.Paren(inner=inner):
                self.expression(inner, called=called)
            case ast.Comprehension():
                self._comprehension(e)
            case ast.ParamExpr(type=declared, init=init):
                if declared is not None:
                    self.type(declared)
                if init is not None:
                    self.expression(init)
                self.scope.bind_parameter(e)
            case ast.ErrorExpr(span=span):
                self._unparsed(span)

    def _operators(self, e: ast.Binary | ast.EinsumInfix) -> None:
        """A chain of operators, which may be long: its left spine without recursion."""
        spine: list[ast.Binary | ast.EinsumInfix] = []
        left: ast.Expr = e
        while isinstance(left, (ast.Binary, ast.EinsumInfix)):
            spine.append(left)
            left = left.left
        self.expression(left)
        for part in reversed(spine):
            if isinstance(part, ast.EinsumInfix):
                self._notation(part.notation, None)
            self.expression(part.right)

    def _args(self, args: tuple[ast.Arg, ...], function: ast.Expr, where: str) -> None:
        callee = self._callee(function) if any(a.name for a in args) else None
        for arg in args:
            if arg.name is not None and callee is not None:
                self.shared.named_args.append((arg.name, callee, where))
            self.expression(arg.value)

    def _callee(self, e: ast.Expr) -> Binding | None:
        match e:
            case ast.Name():
                return self.scope.names.uses.get(e)
            case ast.Attr(name=name):
                return self.scope.names.uses.get(name)
            case ast.Paren(inner=inner):
                return self._callee(inner)
            case ast.Bracket(base=base) | ast.WithSlots(base=base):
                return self._callee(base)
            case _:
                return None

    def _comprehension(self, e: ast.Comprehension) -> None:
        self.expression(e.iterable)
        with self.scope.inner():
            for ident in e.pattern:
                self.scope.bind(ident, "loop", e, e.span)
            if e.condition is not None:
                self.expression(e.condition)
            self.expression(e.value)

    def _notation(self, notation: ast.Notation, shared: Labels | None) -> None:
        labels = shared if shared is not None else Labels(notation.span)
        outer, self.labels = self.labels, None
        resolve_notation(notation, labels, self._notation_scope())
        self.labels = outer
        if shared is None:
            finish_labels(labels, self._notation_scope())

    def _notation_scope(self) -> NotationScope:
        def unknown_slot(ident: ast.Ident) -> None:
            self.scope.unknown(ident, ident.name, ident.span, "slot")

        return NotationScope(
            self.scope.names,
            self.shared.collector,
            self.scope.owner,
            self.scope.env,
            lambda binding: isinstance(binding.node, (ast.DimDecl, ast.RowDecl)),
            self.expression,
            unknown_slot,
        )

    # ------------------------------------------------------------ members of modules

    def _attribute(self, e: ast.Attr) -> None:
        if isinstance(e.base, ast.Name):
            self.scope.use(e.base, e.base.name, e.base.span, "member")
        else:
            self.expression(e.base)
        base = self.scope.names.uses.get(e.base)
        if base is None or base.kind != "module":
            return
        member = member_binding(self.shared, base.module, e.name)
        if member is not None:
            self.scope.names.use(e.name, e.name.span, member)

    # ------------------------------------------------------------ types

    def type(self, t: ast.TypeExpr, *, introduce: bool = False) -> None:
        match t:
            case ast.TensorType(batch=batch, input=input_row, output=output):
                for axis in (*(batch or ()), *(input_row or ()), *output):
                    self._type_axis(axis, introduce)
            case ast.NamedType():
                self._type_name(t.name, t.span)
            case ast.GenericType(name=name, args=args):
                self._type_name(name, Span(t.span.source, t.span.start, t.span.start + len(name)))
                for arg in args:
                    self._type_argument(arg, sizes=name == "index", introduce=introduce)
            case ast.TupleType(items=items):
                for item in items:
                    self.type(item, introduce=introduce)

    def _type_argument(self, arg: ast.TypeExpr | ast.Expr, *, sizes: bool, introduce: bool) -> None:
        match arg:
            case ast.NamedType() | ast.Name() if sizes:
                self.scope.use_size(arg, introduce)
            case ast.TensorType() | ast.NamedType() | ast.GenericType() | ast.TupleType():
                self.type(arg, introduce=introduce)
            case _:
                self.expression(arg)

    def _type_name(self, name: str, span: Span) -> None:
        if name in TYPE_NAMES or name in self.scope.hidden:
            return
        self.shared.collector.report(
            reports.unknown(name, span, "type", TYPE_NAMES, self.shared.module, self.shared.imports)
        )

    def _type_axis(self, axis: ast.TypeAxis, introduce: bool) -> None:
        match axis:
            case ast.TypeAxisName(basis=basis):
                self.scope.use_size(axis, introduce)
                self._basis(basis)
            case ast.TypeAxisSize(value=value, basis=basis):
                self.expression(value)
                self._basis(basis)
            case ast.TypeAxisRowVar(name=name):
                self._type_row(axis, name, introduce)
            case ast.TypeAxisAny() | ast.TypeAxisEllipsis():
                pass

    def _type_row(self, axis: ast.TypeAxisRowVar, name: str, introduce: bool) -> None:
        found = self.scope.env.get(name)
        if found is not None and found.kind == "row":
            self.scope.names.use(axis, row_name_span(axis), found)
        elif introduce and found is None:
            self.scope.bind_row(axis, row_name_span(axis))

    def _basis(self, basis: ast.Ident | None) -> None:
        if basis is None or basis.name == "default":
            return
        found = self.scope.names.bases.get(basis.name)
        if found is not None:
            self.scope.names.use(basis, basis.span, found)
            return
        if basis.name in self.shared.maybe or any(
            m is None or m.broken or basis.name in m.exports for m in self.shared.modules.values()
        ):
            return
        near = nearest(basis.name, self.scope.names.bases)
        known = [near] if near is not None else []
        self.shared.collector.report(
            reports.unknown(basis.name, basis.span, "basis", known, self.shared.module, self.shared.imports)
        )


def member_binding(shared: ModuleScope, path: tuple[str, ...], name: ast.Ident) -> Binding | None:
    """The member `name` of an imported module; E0204 or E0205 where it cannot be had."""
    found = shared.modules.get(path)
    if found is None:
        return None
    export = found.exports.get(name.name)
    shown = ".".join(path)
    if export is None:
        if not found.broken:
            shared.collector.report(reports.member_missing(shown, name, found))
        return None
    if export.private:
        shared.collector.report(reports.private_member(shown, name, export.span))
    key = (path, name.name)
    if key not in shared.members:
        shared.members[key] = Binding(name.name, "member", None, export=export, module=path)
    return shared.members[key]


def _values(e: ast.Expr) -> tuple[ast.Expr, ...]:
    e = _without_parens(e)
    return e.items if isinstance(e, ast.TupleExpr) else (e,)


def _without_parens(e: ast.Expr) -> ast.Expr:
    while isinstance(e, ast.Paren):
        e = e.inner
    return e
