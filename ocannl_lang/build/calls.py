"""Applying and configuring: ops, cds, functions of the program, and built-ins (which `functions` carries out)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ocannl_lang.build import tensors
from ocannl_lang.build.context import CALL_LIMIT, DEPTH_LIMIT, Binding, Build, BuildError, Ctx, Frame, at_the_user, fail
from ocannl_lang.build.expressions import (
    as_host,
    as_tensor,
    comprehension,
    evaluate,
    evaluate_callee,
    is_tensor,
)
from ocannl_lang.build.instances import instance_at, place
from ocannl_lang.build.operators import lifted
from ocannl_lang.build.types import check_static, describe, tensor_type
from ocannl_lang.build.values import (
    POISON,
    Builtin,
    CdRef,
    CellRef,
    ExternRef,
    FnRef,
    Instance,
    Intrinsic,
    Method,
    OpaqueOp,
    OpRef,
    Poison,
    Returned,
    RoutineRef,
    SlotArg,
    Static,
)
from ocannl_lang.diagnostics.model import Label
from ocannl_lang.graph.dtypes import loses_more_than_rounding
from ocannl_lang.graph.ir import Value
from ocannl_lang.shapes.terms import Frame as OriginFrame
from ocannl_lang.shapes.terms import Origin
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast


@dataclass(frozen=True, slots=True)
class Given:
    """One evaluated argument."""

    name: str | None
    value: Static
    span: Span


def call(ctx: Ctx, expr: ast.Call) -> Static:
    """`function(args)`."""
    function = evaluate_callee(ctx, expr.function)
    if isinstance(function, OpRef):
        function = _instance_or_fail(ctx, function, expr.function)
    return apply(ctx, function, arguments(ctx, expr.args), expr)


def pipe(ctx: Ctx, expr: ast.Pipe) -> Static:
    """`value |> function`."""
    value = evaluate(ctx, expr.value)
    function = evaluate_callee(ctx, expr.function)
    if isinstance(function, OpRef):
        function = _instance_or_fail(ctx, function, expr.function)
    if is_tensor(function):
        raise fail("E0301", "what follows `|>` is an op or a function, not a call", expr.function.span)
    return apply(ctx, function, [Given(None, value, expr.value.span)], expr)


def _instance_or_fail(ctx: Ctx, op: OpRef, node: ast.Expr) -> Instance:
    missing = op.missing()
    if len(op.slots) != len(op.definition.slots):
        names = "; ".join(s.name for s in op.definition.slots)
        raise fail(
            "E0302", f"`{op.name}` needs its axes", node.span, f"write `{op.name}{{…}}`",
            labels=(Label(op.definition.name.span, f"declared as `{op.name}{{{names}}}`"),),
        )  # fmt: skip
    if missing:
        names = ", ".join(f"`{n}`" for n in missing)
        raise fail(
            "E0302", f"`{op.name}` lacks {names}", node.span, f"write `{op.name}[{missing[0]} = …]`",
            labels=(Label(op.definition.name.span, "declared here"),),
        )  # fmt: skip
    return instance_at(ctx, op, node)


def arguments(ctx: Ctx, args: Sequence[ast.Arg]) -> list[Given]:
    if len(args) == 1 and args[0].name is None and isinstance(args[0].value, ast.Comprehension):
        return [Given(None, comprehension(ctx, args[0].value), args[0].span)]
    return [Given(a.name.name if a.name else None, evaluate(ctx, a.value), a.value.span) for a in args]


def apply(ctx: Ctx, function: Static, args: list[Given], expr: ast.Expr) -> Static:
    """Apply whatever can be applied."""
    match function:
        case Poison():
            return POISON
        case Instance():
            values = [g.value for g in args]

            def run(c: Ctx, vs: list[Static]) -> Static:
                lifted_args = [replace(g, value=v) for g, v in zip(args, vs)]
                return apply_op(c, function, lifted_args, expr.span)

            return lifted(ctx, values, run, expr.span, function)
        case OpaqueOp():
            return _apply_opaque(ctx, args, expr.span)
        case CdRef():
            return apply_cd(ctx, function, args, expr)
        case FnRef():
            return apply_fn(ctx, function, args, expr)
        case Builtin():
            from ocannl_lang.build.functions import apply_builtin

            return apply_builtin(ctx, function, args, expr)
        case RoutineRef() | ExternRef() | Intrinsic() | Method():
            return _apply_host(ctx, function, args, expr)
        case _ if callable(function) and ctx.services is not None:
            return _apply_host(ctx, function, args, expr)
        case _:
            raise fail("E0301", "this cannot be applied", expr.span, f"this is {describe(function)}")


# ---------------------------------------------------------------- configuration and slots


def configure(ctx: Ctx, base: OpRef | CdRef | RoutineRef | Builtin | OpaqueOp, expr: ast.Bracket) -> Static:
    """`f[128]`, `f[out = 128]`."""
    given = arguments(ctx, expr.args)
    if isinstance(base, OpaqueOp):
        return base
    if isinstance(base, Builtin):
        from ocannl_lang.build.functions import configure_builtin

        return configure_builtin(ctx, base, given, expr)
    config = base.definition.config
    settled = dict(base.config)
    names = [p.name.name for p in config]
    position = 0
    for g in given:
        if g.name is None:
            while position < len(names) and names[position] in settled:
                position += 1
            if position == len(names):
                raise _too_many(base.definition, len(names), g.span)
            name = names[position]
        else:
            name = g.name
            if name not in names:
                raise _unknown_argument(base.definition, name, names, g.span)
            if name in settled:
                raise fail("E0302", f"`{name}` is given twice", g.span)
        if isinstance(g.value, Poison):
            return POISON
        parameter = config[names.index(name)]
        settled[name] = check_static(as_host(ctx, g.value), parameter.type, f"`{name}`", g.span)
    ordered = tuple((n, settled[n]) for n in names if n in settled)
    return replace(base, config=ordered)


def give_slots(ctx: Ctx, base: Static, expr: ast.WithSlots) -> Static:
    """`f{axes}`: a reducer with its notation, or an op with its slots."""
    if isinstance(base, Poison):
        return POISON
    if isinstance(base, Builtin):
        return replace(base, notation=expr.notation, frame=ctx.frame)
    if isinstance(base, (OpRef, CdRef)):
        wanted = base.definition.slots
        if expr.notation.result is not None or len(expr.notation.slots) != len(wanted):
            names = "; ".join(s.name for s in wanted)
            raise fail(
                "E0409", f"`{base.definition.name.name}` takes {len(wanted)} slots", expr.notation.span,
                labels=(Label(base.definition.name.span, f"declared as `{base.definition.name.name}{{{names}}}`"),),
            )  # fmt: skip
        return replace(base, slots=tuple(SlotArg(s, ctx.frame) for s in expr.notation.slots))
    if is_tensor(base):
        raise fail(
            "E0409", "a tensor in index notation stands in assignments only", expr.span,
            helps=("reduce or permute it: `sum{… => …}(t)`",),
        )  # fmt: skip
    raise fail("E0301", f"{describe(base)} takes no axes", expr.span)


def _too_many(definition: Any, count: int, span: Span) -> Exception:
    name = definition.name.name
    return fail(
        "E0302", f"`{name}` takes {count} configuration values", span, "this is one too many",
        labels=(Label(definition.name.span, "declared here"),),
    )  # fmt: skip


def _unknown_argument(definition: Any, name: str, names: Sequence[str], span: Span) -> Exception:
    from ocannl_lang.names.nearest import nearest

    close = nearest(name, list(names))
    return fail(
        "E0302", f"`{definition.name.name}` has no `{name}`", span,
        f"it has {', '.join(f'`{n}`' for n in names) or 'none'}",
        labels=(Label(definition.name.span, "declared here"),),
        helps=(f"did you mean `{close}`?",) if close else (),
    )  # fmt: skip


# ---------------------------------------------------------------- binding


def bind_arguments(
    name: str, params: Sequence[ast.ParamDecl], args: Sequence[Given], span: Span, declared: Span
) -> dict[str, Given | None]:
    """Each parameter with its argument, None where the default serves. E0302 where they do not fit."""
    names = [p.name.name for p in params]
    bound: dict[str, Given | None] = {}
    here = (Label(declared, "declared here"),)
    positional = [a for a in args if a.name is None]
    if len(positional) > len(names):
        takes = f"{len(names)} argument" + ("" if len(names) == 1 else "s")
        raise fail("E0302", f"`{name}` takes {takes}, not {len(positional)}", span, labels=here)
    for n, a in zip(names, positional):
        bound[n] = a
    for a in args:
        if a.name is None:
            continue
        if a.name not in names:
            from ocannl_lang.names.nearest import nearest

            close = nearest(a.name, names)
            raise fail(
                "E0302", f"`{name}` has no parameter `{a.name}`", a.span, labels=here,
                helps=(f"did you mean `{close}`?",) if close else (),
            )  # fmt: skip
        if a.name in bound:
            raise fail("E0302", f"`{a.name}` is given twice", a.span, labels=here)
        bound[a.name] = a
    for p in params:
        if p.name.name not in bound:
            if p.default is None:
                raise fail("E0302", f"`{name}` lacks `{p.name.name}`", span, labels=here)
            bound[p.name.name] = None
    return bound


def config_scope(
    ctx: Ctx, definition: ast.OpDef | ast.CdDef, config: tuple[tuple[str, Static], ...], into: Ctx
) -> None:
    """Config values of an op or cd in its scope, defaults evaluated where it is defined."""
    del ctx
    given = dict(config)
    for p in definition.config:
        name = p.name.name
        if name not in given:
            assert p.default is not None
            given[name] = check_static(evaluate(into, p.default), p.type, f"`{name}`", p.default.span)
        into.frame.scope[name] = Binding(given[name])


# ---------------------------------------------------------------- ops


def apply_op(ctx: Ctx, instance: Instance, args: list[Given], span: Span) -> Static:
    """Execute the op's body on the arguments, with the instance's own parameters."""
    op = instance.op
    assert op is not None
    definition = op.definition
    if op.name in op.module.faulty_calls:
        return POISON
    frame = Frame("op", op.module, instance, depth=ctx.frame.depth + 1)
    _check_depth(frame, op.name, span)
    inner = Ctx(ctx.build, frame, None)
    bound = bind_arguments(op.name, definition.params, args, span, definition.name.span)
    if any(g is not None and isinstance(g.value, Poison) for g in bound.values()):
        return POISON
    for s, given in zip(definition.slots, op.slots):
        frame.slots[s.name] = given
    ctx.build.frames.append(OriginFrame(span, op.name, op.key))
    try:
        config_scope(ctx, definition, op.config, inner)
        for p in definition.params:
            frame.scope[p.name.name] = Binding(op_argument(inner, p, bound[p.name.name], span))
        introduce_result_names(inner, definition)
        result = run_op_body(inner, definition, span)
        return check_op_result(inner, definition, result)
    except BuildError as error:
        raise BuildError(at_the_user(ctx.build, error.diagnostic)) from error
    finally:
        ctx.build.frames.pop()


def op_argument(ctx: Ctx, p: ast.ParamDecl, given: Given | None, span: Span) -> Static:
    """A tensor argument as the parameter declares it."""
    name = p.name.name
    if given is None:
        assert p.default is not None
        value, at = evaluate(ctx, p.default), p.default.span
    else:
        value, at = given.value, given.span
    if value is None:
        if p.default is None:
            raise fail("E0301", f"`{name}` is a tensor", span, "this is `none`")
        return None
    if isinstance(p.type, (ast.NamedType, ast.GenericType)):
        return check_static(value, p.type, f"`{name}`", at)
    if not is_tensor(value) and isinstance(value, (Instance, OpRef, OpaqueOp, Builtin, FnRef)):
        return value
    tensor = as_tensor(
        ctx, value, at, leaf=p.type is None or not (isinstance(p.type, ast.TensorType) and p.type.scalar)
    )
    if isinstance(p.type, ast.TensorType):
        tensor = ask_type(ctx, tensor, p.type, name, "argument")
    return tensor


def ask_type(ctx: Ctx, value: Value, type: ast.TensorType, name: str, form: Any) -> Value:
    """`value` held to a written type; converted where the type states another precision."""
    build = ctx.build
    origin = build.origin(type.span, form, type.span.text)
    typed = tensor_type(ctx, type, name, origin, evaluate, new_names="variable", missing="free", free=value.shape)
    tensors.ask_shape(build, value, typed.shape, typed.written, origin, name, type.span)
    if typed.precision is not None and value.precision != typed.precision:
        # a value that has a name is used elsewhere, too, where its precision stays what it is
        bound = bool(value.name) and typed.precision not in tensors.INTEGERS
        if value.precision is None and not value.scalar and not build.cell_of.get(value) and not bound:
            value.precision = typed.precision
            return value
        return converted(build, value, typed.precision, build.origin(type.span, "pointwise", typed.precision))
    return value


def converted(build: Build, value: Value, precision: str, origin: Origin) -> Value:
    """`value` in the precision of a written type; E0601 where that loses more than rounding."""
    if value.precision is not None and loses_more_than_rounding(value.precision, precision):
        raise fail(
            "E0601", f"`{tensors.label_of(value) or 'this'}` is {value.precision}, and {precision} is asked for", origin.span,
            f"this asks for {precision}", notes=("a conversion that loses more than rounding is written",),
            helps=(f"write `{precision}(…)` around it",),
        )  # fmt: skip
    return tensors.map_values(build, "convert", [value], origin, precision=precision, name=value.name)


def introduce_result_names(ctx: Ctx, definition: ast.OpDef) -> None:
    """Sizes and rows that only the type of the result names are names in the body too."""
    types = definition.result.items if isinstance(definition.result, ast.TupleType) else (definition.result,)
    for type in types:
        if isinstance(type, ast.TensorType):
            origin = ctx.build.origin(type.span, "result", type.span.text)
            tensor_type(ctx, type, "the result", origin, evaluate, new_names="variable", missing="free")


def run_op_body(ctx: Ctx, definition: ast.OpDef, span: Span) -> Static:
    from ocannl_lang.build.custom import has_sections, run_custom
    from ocannl_lang.build.statements import execute

    if has_sections(definition):
        return run_custom(ctx, definition, span)
    outcome = execute(ctx, definition.body)
    if isinstance(outcome, Returned):
        return outcome.value
    raise fail(
        "E0301", f"`{definition.name.name}` returns nothing", definition.name.span, "an op needs a `return`",
    )  # fmt: skip


def check_op_result(ctx: Ctx, definition: ast.OpDef, result: Static) -> Static:
    """An op returns a tensor or a tuple of them; its declared type holds."""
    if isinstance(result, tuple):
        types = definition.result.items if isinstance(definition.result, ast.TupleType) else [None] * len(result)
        return tuple(_result(ctx, r, t, definition) for r, t in zip(result, types))
    return _result(ctx, result, definition.result, definition)


def _result(ctx: Ctx, value: Static, type: Any, definition: ast.OpDef) -> Static:
    if isinstance(value, Poison):
        return value
    tensor = as_tensor(ctx, value, definition.name.span, leaf=True)
    if isinstance(type, ast.TensorType):
        return ask_type(ctx, tensor, type, f"the result of {definition.name.name}", "result")
    return tensor


def _apply_opaque(ctx: Ctx, args: list[Given], span: Span) -> Static:
    """An op of which nothing is known: any shape in, any shape out."""
    build = ctx.build
    origin = build.origin(span, "other", span.text)
    operands = [as_tensor(ctx, g.value, g.span, leaf=True) for g in args]
    from ocannl_lang.graph.ir import Seed

    del operands
    return tensors.new_value(build, Seed(), tensors.fresh_shape("its result", origin), origin, differentiable=True)


def _check_depth(frame: Frame, name: str, span: Span) -> None:
    limit = CALL_LIMIT if frame.kind == "fn" else DEPTH_LIMIT
    if frame.depth > limit:
        what = "calls" if frame.kind == "fn" else "applications"
        raise fail(
            "E0306", f"`{name}` goes too deep", span, f"more than {limit:,} {what} inside each other",
            helps=("let a condition end the recursion earlier, or use a loop",),
        )  # fmt: skip


# ---------------------------------------------------------------- cds and functions


def apply_cd(ctx: Ctx, cd: CdRef, args: list[Given], expr: ast.Expr) -> Static:
    """Carry out a cd's assignments; tensor arguments that are cells can be assigned in it."""
    definition = cd.definition
    name = definition.name.name
    if ctx.services is not None:
        raise fail("E0301", f"`{name}` is a cd: it runs inside a routine", expr.span)
    missing = [p.name.name for p in definition.config if p.default is None and p.name.name not in dict(cd.config)]
    if missing:
        raise fail(
            "E0302", f"`{name}` lacks `{missing[0]}`", expr.span, labels=(Label(definition.name.span, "declared here"),)
        )
    bound = bind_arguments(name, definition.params, args, expr.span, definition.name.span)
    if any(g is not None and isinstance(g.value, Poison) for g in bound.values()):
        return POISON
    cells = [_cell(ctx, g.value) for g in bound.values() if g is not None]
    named = [c for c in cells if c is not None]
    outer = ctx.frame
    key = (*_tuple(place(outer, expr)), *(c.path for c in named))
    prefix = outer.owner.places.get(("cd", *key))
    if prefix is None:
        known = named and named[0].path in outer.state_key
        base = ".".join([p for p in (outer.state_prefix, name, named[0].path if named and not known else None) if p])
        prefix = _free_prefix(outer.owner, base)
        outer.owner.places[("cd", *key)] = prefix
    frame = Frame("cd", cd.module, outer.owner, turns=(), depth=outer.depth + 1, state_prefix=prefix, state_key=key)
    _check_depth(frame, name, expr.span)
    for s, given in zip(definition.slots, cd.slots):
        frame.slots[s.name] = given
    inner = Ctx(ctx.build, frame, None)
    ctx.build.frames.append(OriginFrame(expr.span, name, f"{cd.module.name}:{name}"))
    try:
        config_scope(ctx, definition, cd.config, inner)
        for p in definition.params:
            frame.scope[p.name.name] = Binding(_cd_argument(inner, p, bound[p.name.name], expr.span))
        from ocannl_lang.build.statements import execute

        execute(inner, definition.body)
    finally:
        ctx.build.frames.pop()
    return None


def _tuple(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _free_prefix(owner: Instance, base: str) -> str:
    count = owner.used.get(f"cd:{base}", 0)
    owner.used[f"cd:{base}"] = count + 1
    return base if count == 0 else f"{base}_{count}"


def _cell(ctx: Ctx, value: Static) -> Any:
    """The cell that an argument is the newest version of."""
    if isinstance(value, CellRef):
        return value.cell
    if isinstance(value, Value):
        cell = ctx.build.cell_of.get(value)
        return cell if cell is not None and ctx.build.versions.get(cell) is value else None
    return None


def _cd_argument(ctx: Ctx, p: ast.ParamDecl, given: Given | None, span: Span) -> Static:
    if given is not None:
        if isinstance(given.value, list) and not isinstance(p.type, ast.TensorType):
            return given.value
        cell = _cell(ctx, given.value)
        if cell is not None:
            if isinstance(p.type, ast.TensorType):
                ask_type(
                    ctx, tensors.cell_value(ctx.build, cell, ctx.build.origin(span)), p.type, p.name.name, "argument"
                )
            return CellRef(cell)
        if isinstance(given.value, (Instance, OpRef, Builtin, FnRef, str, dict, tuple)):
            return given.value
    return op_argument(ctx, p, given, span)


def apply_fn(ctx: Ctx, fn: FnRef, args: list[Given], expr: ast.Expr) -> Static:
    """Call a static function. What it makes belongs to the caller's instance, at a place that includes this call."""
    from ocannl_lang.build.statements import execute

    definition = fn.definition
    name = definition.name.name
    bound = bind_arguments(name, definition.params, args, expr.span, definition.name.span)
    if any(g is not None and isinstance(g.value, Poison) for g in bound.values()):
        return POISON
    outer = ctx.frame
    frame = Frame(
        "fn", fn.module, outer.owner, turns=(*outer.turns, expr), fresh=outer.fresh, depth=outer.depth + 1,
        state_prefix=outer.state_prefix, state_key=outer.state_key,
    )  # fmt: skip
    _check_depth(frame, name, expr.span)
    inner = ctx.within(frame)
    for p in definition.params:
        given = bound[p.name.name]
        if given is None:
            assert p.default is not None
            value, at = evaluate(inner, p.default), p.default.span
        else:
            value, at = given.value, given.span
        if isinstance(p.type, (ast.NamedType, ast.GenericType, ast.TupleType)):
            value = check_static(as_host(ctx, value), p.type, f"`{p.name.name}`", at)
        frame.scope[p.name.name] = Binding(value)
    outcome = execute(inner, definition.body, keep_fresh=True)
    value = outcome.value if isinstance(outcome, Returned) else None
    if isinstance(definition.result, (ast.NamedType, ast.GenericType, ast.TupleType)) and not isinstance(value, Poison):
        at = outcome.span if isinstance(outcome, Returned) else definition.name.span
        return check_static(value, definition.result, f"the result of `{name}`", at)
    return value


def _apply_host(ctx: Ctx, function: Any, args: list[Given], expr: ast.Expr) -> Static:
    """What only host code may call: routines, foreign functions, methods."""
    if isinstance(function, Method) and ctx.services is None:
        return _static_method(function, args, expr.span)
    if ctx.services is None:
        what = describe(function)
        raise fail(
            "E0303", f"{what} cannot be called here", expr.span, "this body runs while the program is built",
            helps=("call it from `main` or a test",),
        )  # fmt: skip
    return ctx.services.apply(ctx, function, args, expr.span)


def _static_method(method: Method, args: list[Given], span: Span) -> Static:
    """A method of a string, list or dict while building."""
    from ocannl_lang.host.context import HostContext, HostError
    from ocannl_lang.host.methods import method_of

    function = method_of(method.value, method.name)
    if function is None:
        raise fail("E0204", f"{describe(method.value)} has no `{method.name}`", span)
    plain = tuple(g.value for g in args if g.name is None)
    named = {g.name: g.value for g in args if g.name is not None}
    try:
        return function(HostContext(), (method.value, *plain), named)
    except HostError as error:
        raise fail(error.code, error.message, span, notes=error.notes, helps=error.helps) from error
