"""The diagnostics of resolution: their wording, their hints and their fixes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from ocannl_lang.diagnostics.model import Diagnostic, Edit, Fix, Label
from ocannl_lang.names.bindings import Binding
from ocannl_lang.names.builtins import STANDARD_MODULES
from ocannl_lang.names.interface import Interface, ModuleInterfaces
from ocannl_lang.names.nearest import nearest
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast

Wanted = Literal["value", "call", "member", "size", "type", "basis", "slot", "target"]
"""What an unknown name stands for: which candidates fit, and how the message calls it."""

_CALLED: Mapping[Wanted, str] = {"size": "size", "type": "type", "basis": "basis", "slot": "slot parameter"}

# What people bring along from Python and its libraries.
_ELSEWHERE: Mapping[str, str] = {
    "True": "true", "False": "false", "None": "none", "maximum": "max", "minimum": "min", "power": "pow",
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "detach": "stop_gradient", "integer": "int", "string": "str",
    "double": "f64", "half": "f16", "boolean": "bool", "number": "float", "swish": "silu", "exponential": "exp",
}  # fmt: skip


def unknown(
    name: str,
    span: Span,
    wanted: Wanted,
    candidates: Iterable[str],
    module: ast.Module,
    imports: ModuleInterfaces,
) -> Diagnostic:
    """E0201, with the nearest known name or the import that brings it."""
    title = f"unknown {_CALLED.get(wanted, 'name')} `{name}`"
    known = list(candidates)
    for item in module.items if wanted == "member" else ():
        if isinstance(item, ast.Import) and item.alias is None and name == item.path[0].name:
            used = item.path[-1].name
            help_text = f"`{item.span.text}` is used as `{used}`"
            labels = (Label(item.span, f"gives `{used}`"),)
            return Diagnostic("E0201", title, span, "not defined here", labels, helps=(help_text,))
    if wanted in ("value", "call", "member", "target"):
        if wanted == "member" and name in STANDARD_MODULES and imports.member((name,)) is not None:
            fix = Fix(f"import `{name}`", (_insert_line(module, f"import {name}"),))
            return Diagnostic("E0201", title, span, "not defined here", helps=(f"add `import {name}`",), fix=fix)
        home = _standard_home(name, imports)
        if home is not None:
            text = f"from {home} import {name}"
            fix = Fix(f"add `{text}`", (import_edit(module, home, name),))
            help_text = f"`{name}` is in the standard library: add `{text}`"
            return Diagnostic("E0201", title, span, "not defined here", helps=(help_text,), fix=fix)
    other = _ELSEWHERE.get(name)
    near = other if other in known or other in ("true", "false", "none") else nearest(name, known)
    if near is not None:
        fix = Fix(f"replace by `{near}`", (Edit(span, near),))
        return Diagnostic("E0201", title, span, "not defined here", helps=(f"did you mean `{near}`?",), fix=fix)
    if wanted in ("value", "call"):
        found = _nearest_standard(name, imports)
        if found is not None:
            home, near = found
            fix = Fix(f"replace by `{near}` and import it", (import_edit(module, home, near), Edit(span, near)))
            help_text = f"did you mean `{near}`? Add `from {home} import {near}`"
            return Diagnostic("E0201", title, span, "not defined here", helps=(help_text,), fix=fix)
    return Diagnostic("E0201", title, span, "not defined here", helps=_advice(name, wanted))


def _advice(name: str, wanted: Wanted) -> tuple[str, ...]:
    match wanted:
        case "target":
            return (f"to bind a new name, write `let {name} = …`, or `var {name} = …` if it will change",)
        case "size":
            return (f"`dim {name}` declares a size that is inferred; an int of that name would do as well",)
        case "basis":
            return (f"`basis {name}` at the top of the module declares it",)
        case "value" | "call" | "member" | "type" | "slot":
            return ()


def not_yet(name: str, span: Span, binding: Binding) -> Diagnostic:
    """E0201 for a name that its body binds elsewhere."""
    assert binding.span is not None
    later = binding.span.start > span.start
    where = "it is bound only here, below" if later else "it is bound here, which does not lead to this place"
    if isinstance(binding.node, ast.Comprehension):
        where = "it is known only inside this comprehension"
    return Diagnostic("E0201", f"`{name}` is not bound here", span, "used here", (Label(binding.span, where),))


def defined_twice(
    name: str, span: Span, first: Binding | Span, *, helps: tuple[str, ...] = (), fix: Fix | None = None
) -> Diagnostic:
    """E0202, with both places."""
    place = first.span if isinstance(first, Binding) else first
    labels = () if place is None else (Label(place, "first defined here"),)
    return Diagnostic("E0202", f"`{name}` is defined twice", span, "defined again here", labels, helps=helps, fix=fix)


def parameter_twice(node: ast.ParamExpr, first: Binding) -> Diagnostic:
    """E0202 for a second `{w}` in one body."""
    name = node.name.name
    plain = node.type is None and node.init is None
    fix = Fix(f"use the parameter that is there: `{name}`", (Edit(node.span, name),)) if plain else None
    if first.kind == "parameter":
        helps = (f"write `{name}` to use the same parameter again, or give this one another name",)
    else:
        helps = ("give the parameter another name",)
    return defined_twice(name, node.name.span, first, helps=helps, fix=fix if first.kind == "parameter" else None)


def module_missing(path: tuple[ast.Ident, ...], imports: ModuleInterfaces) -> Diagnostic:
    """E0204 for a module that is not found."""
    name = ".".join(p.name for p in path)
    span = path[0].span.to(path[-1].span)
    near = nearest(name, [m for m in STANDARD_MODULES if imports.member((m,)) is not None])
    where = "looked for beside this file, in the project's root and in the standard library"
    helps = (f"did you mean `{near}`?",) if near else ()
    fix = Fix(f"replace by `{near}`", (Edit(span, near),)) if near else None
    return Diagnostic("E0204", f"there is no module `{name}`", span, "not found", (), (where,), helps, fix)


def member_missing(module: str, name: ast.Ident, found: Interface) -> Diagnostic:
    """E0204 for a name that a module does not have."""
    near = nearest(name.name, found.public())
    helps = (f"did you mean `{near}`?",) if near else ()
    fix = Fix(f"replace by `{near}`", (Edit(name.span, near),)) if near else None
    message = f"module `{module}` has no `{name.name}`"
    return Diagnostic("E0204", message, name.span, f"not in `{module}`", (), (), helps, fix)


def private_member(module: str, name: ast.Ident, place: Span | None) -> Diagnostic:
    """E0205."""
    labels = () if place is None else (Label(place, "defined here"),)
    note = "a leading `_` keeps a name inside its module"
    return Diagnostic(
        "E0205", f"`{name.name}` is private to module `{module}`", name.span, "cannot be used here", labels, (note,)
    )


def label_shadows(name: str, span: Span, static: Binding) -> Diagnostic:
    """W0903."""
    labels = () if static.span is None else (Label(static.span, f"this `{name}` is not meant"),)
    return Diagnostic(
        "W0903",
        f"the axis label `{name}` has nothing to do with the int `{name}`",
        span,
        "an axis label",
        labels,
        ("in axes notation a name is a label, whose size is inferred",),
        (f"declare `dim` with that size, write `({name})` for the position, or choose another label",),
    )


def label_misspelt(name: str, span: Span, other: str, place: Span) -> Diagnostic:
    """W0905."""
    return Diagnostic(
        "W0905",
        f"the axis label `{name}` occurs once and looks like `{other}`",
        span,
        "occurs only here",
        (Label(place, f"`{other}` is here"),),
        helps=(f"if `{other}` is meant, write it",),
        fix=Fix(f"replace by `{other}`", (Edit(span, other),)),
    )


def _standard_home(name: str, imports: ModuleInterfaces) -> str | None:
    for module in STANDARD_MODULES:
        found = imports.member((module,))
        if found is not None and name in found.exports and name in found.public():
            return module
    return None


def _nearest_standard(name: str, imports: ModuleInterfaces) -> tuple[str, str] | None:
    homes: dict[str, str] = {}
    for module in STANDARD_MODULES:
        found = imports.member((module,))
        for public in found.public() if found is not None else ():
            homes.setdefault(public, module)
    near = nearest(name, homes)
    return None if near is None else (homes[near], near)


def import_edit(module: ast.Module, home: str, name: str) -> Edit:
    """The edit that makes `name` of the module `home` known."""
    for item in module.items:
        if isinstance(item, ast.FromImport) and item.items and ".".join(p.name for p in item.path) == home:
            end = item.items[-1].span.end
            return Edit(Span(module.source, end, end), f", {name}")
    return _insert_line(module, f"from {home} import {name}")


def _insert_line(module: ast.Module, line: str) -> Edit:
    """The edit that puts a line after the last import, or before the first definition and its documentation."""
    source = module.source
    imports = [item for item in module.items if isinstance(item, (ast.Import, ast.FromImport))]
    if imports:
        end = imports[-1].span.end
        return Edit(Span(source, end, end), f"\n{line}")
    if not module.items:
        return Edit(Span(source, 0, 0), f"{line}\n")
    number = module.items[0].span.line
    above = number
    while above > 1 and source.line(above - 1).startswith("#"):
        above -= 1
    if above == 1 and module.doc is not None:
        above = number
    start = sum(len(text) for text in source.text.splitlines(keepends=True)[: above - 1])
    return Edit(Span(source, start, start), f"{line}\n\n")
