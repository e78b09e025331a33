"""Resolution: from a syntax tree to the meaning of every name in it.

`resolve` binds the top-level names first, since definitions may be used before their place, then goes through every
definition, called or not. What names mean inside a definition is in `bodies`, in axes notation in `notation`.
"""

from __future__ import annotations

from ocannl_lang.diagnostics.model import Collector, Diagnostic
from ocannl_lang.names import reports
from ocannl_lang.names.bindings import Binding, BindingKind, Names
from ocannl_lang.names.bodies import member_binding, resolve_definition
from ocannl_lang.names.interface import ExportKind, ModuleInterfaces, introduced
from ocannl_lang.names.scopes import ModuleScope, defined_in, words
from ocannl_lang.names.unused import report_unused
from ocannl_lang.syntax import ast

_KINDS: dict[ExportKind, BindingKind] = {
    "op": "op", "cd": "cd", "fn": "fn", "routine": "routine", "extern": "extern", "data": "data", "basis": "basis",
    "let": "let",
}  # fmt: skip


def resolve(module: ast.Module, imports: ModuleInterfaces, collector: Collector) -> Names:
    """Resolve every name of a module, reporting E0201, E0202, E0204, E0205, W0901, W0903 and W0905.

    `imports` gives the interfaces of other modules. Never raises, whatever the text; what did not parse is passed over.
    """
    names = Names(module)
    shared = ModuleScope(module, imports, collector, names)
    for item in module.items:
        if isinstance(item, ast.ErrorStmt):
            shared.maybe |= defined_in(item.span.text)
            shared.mentioned |= words(item.span.text)
    main: ast.MainDef | None = None
    for item in module.items:
        match item:
            case ast.Import():
                _import(item, shared)
            case ast.FromImport():
                _from_import(item, shared)
            case ast.MainDef():
                if main is not None:
                    collector.report(reports.defined_twice("main", _head(item), _head(main)))
                main = main or item
            case _:
                for ident, kind in introduced(item):
                    _bind(ident, Binding(ident.name, _KINDS[kind], ident.span, item), shared)
    for item in module.items:
        _guarded(item, shared)
    _resolve_named_arguments(shared)
    report_unused(shared)
    return names


def _guarded(item: ast.Definition, shared: ModuleScope) -> None:
    try:
        resolve_definition(item, shared)
    except RecursionError:
        shared.collector.report(
            Diagnostic("E0102", "this is nested too deeply", _head(item), helps=("take it apart with `let`",))
        )


def _head(item: ast.Definition) -> reports.Span:
    """The first line of a definition."""
    text = item.span.text.split("\n", 1)[0].rstrip()
    return reports.Span(item.span.source, item.span.start, item.span.start + len(text))


def _bind(ident: ast.Ident, binding: Binding, shared: ModuleScope) -> None:
    table = shared.names.bases if binding.kind == "basis" else shared.names.top
    first = table.get(ident.name)
    if first is not None:
        shared.collector.report(reports.defined_twice(ident.name, ident.span, first))
        shared.doubtful |= {first, binding}
    table.setdefault(ident.name, binding)
    shared.names.introduce(binding, ident)


def _import(item: ast.Import, shared: ModuleScope) -> None:
    """`import a.b` is used as `b`."""
    path = tuple(part.name for part in item.path)
    _load(path, item.path, shared)
    ident = item.alias or item.path[-1]
    binding = Binding(ident.name, "module", ident.span, item, module=path)
    if shared.modules[path] is None:
        shared.doubtful.add(binding)
    _bind(ident, binding, shared)


def _load(path: tuple[str, ...], idents: tuple[ast.Ident, ...], shared: ModuleScope) -> None:
    if shared.modules.get(path) is not None:
        return
    found = shared.imports.member(path)
    shared.modules[path] = found
    if found is None:
        shared.collector.report(reports.module_missing(idents, shared.imports))


def _from_import(item: ast.FromImport, shared: ModuleScope) -> None:
    path = tuple(part.name for part in item.path)
    _load(path, item.path, shared)
    for part in item.items:
        ident = part.alias or part.name
        member = member_binding(shared, path, part.name)
        export = member.export if member is not None else None
        kind: BindingKind = "basis" if export is not None and export.kind == "basis" else "import"
        binding = Binding(ident.name, kind, ident.span, item, export=export, module=path)
        if export is None:
            shared.doubtful.add(binding)
        _bind(ident, binding, shared)
        if part.alias is not None and member is not None:
            shared.names.use(part.name, part.name.span, member)


def _resolve_named_arguments(shared: ModuleScope) -> None:
    """`f(a = 1)`: the name `a` is that of the parameter, where the function is known."""
    declared = {b.node: b for b in shared.names.bindings if isinstance(b.node, ast.ParamDecl)}
    for ident, callee, where in shared.named_args:
        definition = callee.definition
        match definition:
            case ast.OpDef() | ast.CdDef() | ast.RoutineDef():
                params = definition.config if where == "config" else definition.params
            case ast.FnDef() | ast.ExternDef() if where == "params":
                params = definition.params
            case _:
                continue
        for param in params:
            if param.name.name == ident.name and param in declared:
                shared.names.use(ident, ident.span, declared[param])
