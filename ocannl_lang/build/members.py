"""`value.name`: members of tensors, instances, modules, and methods of static values."""

from __future__ import annotations

from ocannl_lang.build.context import Ctx, fail
from ocannl_lang.build.expressions import as_tensor, resolved
from ocannl_lang.build.ranks import row_dims
from ocannl_lang.build.values import (
    POISON,
    CellRef,
    Instance,
    Method,
    ModuleRef,
    OpRef,
    Poison,
    ResultRef,
    RoutineRef,
    Static,
    Symbolic,
)
from ocannl_lang.graph.ir import Cell, Value
from ocannl_lang.host.array import HostArray
from ocannl_lang.host.objects import HostObject
from ocannl_lang.names.nearest import nearest
from ocannl_lang.shapes.terms import ROW_KINDS
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast

METHOD_OWNERS = (str, list, dict)


def member(ctx: Ctx, base: Static, expr: ast.Attr) -> Static:
    from ocannl_lang.build.types import describe

    name, span = expr.name.name, expr.span
    match base:
        case Poison():
            return POISON
        case ModuleRef(module=module):
            from ocannl_lang.build.modules import module_member

            found = module_member(ctx, module, name)
            if found is None:
                raise fail("E0204", f"the module `{module.name}` has no `{name}`", expr.name.span)
            return found
        case Instance():
            return instance_member(ctx, base, name, span)
        case Value() | CellRef() | ResultRef() | HostArray():
            return _tensor_member(ctx, base, name, expr)
        case _ if isinstance(base, METHOD_OWNERS):
            from ocannl_lang.host.methods import METHODS, method_of

            if method_of(base, name) is None:
                kind = type(base).__name__
                close = nearest(name, [n for k, n in METHODS if k == kind])
                helps = (f"did you mean `{close}`?",) if close else ()
                if isinstance(base, dict) and name in base:
                    helps = (f'an element of a dict is `["{name}"]`',)
                raise fail("E0204", f"{describe(base)} has no `{name}`", expr.name.span, helps=helps)
            return Method(base, name)
        case HostObject(members=members):
            if name not in members:
                raise fail("E0204", f"{base.name} has no `{name}`", expr.name.span)
            return members[name]
        case OpRef():
            raise fail(
                "E0204", f"`{expr.base.span.text}` is an op, not an instance", span,
                "parameters belong to instances",
            )  # fmt: skip
        case RoutineRef():
            raise fail("E0204", "a routine has no members", span)
        case _:
            raise fail("E0204", f"{describe(base)} has no `{name}`", expr.name.span)


def instance_member(ctx: Ctx, instance: Instance, name: str, span: Span) -> Static:
    """A parameter, state or inner instance by its name in the instance's paths."""
    found = instance.members.get(name)
    if found is None and not instance.probed:
        from ocannl_lang.build.probe import probe

        probe(ctx, instance)
        found = instance.members.get(name)
    if found is None:
        close = nearest(name, list(instance.members))
        raise fail(
            "E0204", f"there is no `{name}` in this op", span,
            f"it has {', '.join(f'`{m}`' for m in instance.members) or 'no parameters'}",
            helps=(f"did you mean `{close}`?",) if close else (),
        )  # fmt: skip
    if isinstance(found, Cell):
        return CellRef(found)
    if isinstance(found, Instance) and found.op is None and all(m.isdigit() for m in found.members):
        return [found.members[str(i)] for i in range(len(found.members))]
    return found


def _tensor_member(ctx: Ctx, base: Static, name: str, expr: ast.Attr) -> Static:
    match name:
        case "grad" if not isinstance(base, HostArray):
            from ocannl_lang.build.gradients import read_grad

            return read_grad(ctx, base, expr.span)
        case "path":
            if isinstance(base, CellRef):
                return base.cell.path
            if isinstance(base, Value) and base in ctx.build.cell_of:
                return ctx.build.cell_of[base].path
            return base.name if isinstance(base, Value) else ""
        case "shape":
            return _shape(ctx, base, expr)
        case "precision":
            if isinstance(base, HostArray):
                from ocannl_lang.host.printing import precision_name

                return precision_name(base.data.dtype)
            return _precision(ctx, as_tensor(ctx, base, expr.span))
        case _:
            raise fail(
                "E0204", f"a tensor has no `{name}`", expr.name.span,
                "a tensor has `grad`, `path`, `shape`, `precision`",
            )  # fmt: skip


def _precision(ctx: Ctx, value: Value) -> str:
    """The precision as declared, or as it follows from what the tensor is computed from."""
    if value.precision is not None:
        return value.precision
    from ocannl_lang.diagnostics.model import Collector
    from ocannl_lang.graph.ir import Graph
    from ocannl_lang.graph.precision import infer_precisions

    graph = Graph("", list(ctx.build.graph.inputs), [value], {}, False, None)
    return infer_precisions(graph, Collector()).get(value, "f32")


def _shape(ctx: Ctx, base: Static, expr: ast.Attr) -> Static:
    if isinstance(base, HostArray):
        return list(base.data.shape)
    value = as_tensor(ctx, base, expr.span)
    sizes: list[Static] = []
    for kind in ROW_KINDS:
        dims = row_dims(ctx.build, value, kind)
        if dims is None:
            raise fail("E0702", "how many axes this has is not known here yet", expr.span)
        sizes.extend(resolved(ctx, Symbolic(d, True)) for d in dims)
    return sizes
