"""Built-in functions: pointwise functions, reducers, draws, computations on gradients; static functions go to their Python forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ocannl_lang.build import gradients, tensors
from ocannl_lang.build.calls import Given
from ocannl_lang.build.context import Ctx, Frame, fail
from ocannl_lang.build.expressions import as_host, as_tensor, evaluate, is_tensor
from ocannl_lang.build.instances import draw_place
from ocannl_lang.build.notation import static_size
from ocannl_lang.build.operators import lifted, static_term
from ocannl_lang.build.ranks import row_dims
from ocannl_lang.build.reduce import EINSUM_OPERATORS, REDUCERS, reduce_all, reduce_notation, reduce_slots
from ocannl_lang.build.values import POISON, Builtin, CellRef, DimRef, Poison, RowRef, Static, Symbolic
from ocannl_lang.graph import ir
from ocannl_lang.graph.ir import SlotRow, SlotShape, Value
from ocannl_lang.names.builtins import BUILTINS
from ocannl_lang.shapes.terms import DimVar, Origin, RowVar, SizeOp
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast

UNARY = frozenset(
    [
        "relu",
        "sigmoid",
        "tanh",
        "exp",
        "log",
        "exp2",
        "log2",
        "sin",
        "cos",
        "sqrt",
        "rsqrt",
        "recip",
        "abs",
        "sign",
        "floor",
        "ceil",
        "round",
        "erf",
        "gelu",
        "silu",
        "softplus",
        "sat01",
        "stop_gradient",
    ]
)
PRECISIONS = frozenset({"f64", "f32", "bf16", "f16", "f8e5m2", "f8e4m3", "i64", "i32", "u32", "u16", "u8", "u32x4"})
ALWAYS_TENSOR = frozenset(
    {"tensor", "batched", "one_hot", "arange", "uniform", "normal", "bernoulli", "transpose", "fma", "interleave", "even",
     "odd", "where", "stop_gradient"}
) | PRECISIONS  # fmt: skip
COMPUTATIONS = frozenset({"update", "evaluate", "zero_grads", "backprop", "params"})
CONFIGURABLE = frozenset({"one_hot", "arange", "gelu"})
SYMBOLIC_FUNCTIONS = frozenset(
    {"sqrt", "min", "max", "int", "float", "abs", "exp", "log", "floor", "ceil", "round", "log2", "exp2"}
)


def is_builtin(name: str) -> bool:
    return name in BUILTINS


def configure_builtin(ctx: Ctx, base: Builtin, given: list[Given], expr: ast.Bracket) -> Static:
    """`one_hot[10]`, `gelu[approximate = true]`; `arange[10]` is a tensor."""
    if base.name not in CONFIGURABLE:
        raise fail("E0302", f"`{base.name}` takes nothing in brackets", expr.span)
    config = BUILTINS[base.name].config if BUILTINS[base.name].config else ()
    names = [p.name for p in config] or (["approximate"] if base.name == "gelu" else ["size"])
    settled: dict[str, Static] = {}
    for i, g in enumerate(given):
        name = g.name or (names[i] if i < len(names) else "")
        if name not in names:
            raise fail(
                "E0302", f"`{base.name}` has no `{name or i}`", g.span, f"it has {', '.join(f'`{n}`' for n in names)}"
            )
        settled[name] = g.value
    configured = replace(base, config=tuple(settled.items()))
    if base.name == "arange":
        return lifted(ctx, [], lambda c, _: _arange(c, configured, expr.span), expr.span)
    return configured


def apply_builtin(ctx: Ctx, function: Builtin, args: list[Given], expr: ast.Expr) -> Static:
    """A built-in on evaluated arguments."""
    values = [as_host(ctx, g.value) for g in args]
    if any(isinstance(v, Poison) for v in values):
        return POISON
    name = function.name
    if name in COMPUTATIONS:
        return _computation(ctx, name, args, expr.span)
    if function.notation is not None:
        if name not in REDUCERS:
            raise fail("E0409", f"`{name}` takes no axes notation", function.notation.span)
        assert function.frame is not None
        if any(g.name is not None for g in args):
            raise fail("E0302", f"`{name}` takes its tensors by position", expr.span)
        spans = [g.span for g in args]
        return notation_call(ctx, name, function.notation, function.frame, values, spans, expr.span)
    tensor_arguments = any(is_tensor(v) for v in values) or (
        name not in ("len", "zip", "enumerate", "sorted", "reversed", "list", "str", "print", "dict", "progress", "save",
                     "load", "close", "shuffle", "params")
        and any(_holds_tensor(v) for v in values)
    )  # fmt: skip
    if name in ALWAYS_TENSOR or (tensor_arguments and _works_on_tensors(ctx, name)):
        if ctx.services is not None and ctx.services.prefers_host(name, values):
            return ctx.services.call_builtin(ctx, name, args, expr.span)

        def run(c: Ctx, vs: list[Static]) -> Static:
            return tensor_function(c, function, [replace(g, value=v) for g, v in zip(args, vs)], expr)

        return lifted(ctx, values, run, expr.span)
    if ctx.services is not None:
        return ctx.services.call_builtin(ctx, name, args, expr.span)
    return _static_function(ctx, name, args, expr.span)


def _works_on_tensors(ctx: Ctx, name: str) -> bool:
    kind = BUILTINS[name].kind
    if kind in ("pointwise", "tensor function", "reducer", "random"):
        return True
    return ctx.services is None and kind == "conversion" and name in PRECISIONS


def _holds_tensor(value: Static) -> bool:
    return isinstance(value, (list, tuple)) and any(is_tensor(v) or _holds_tensor(v) for v in value)


def notation_call(
    ctx: Ctx,
    name: str,
    notation: ast.Notation,
    frame: Frame,
    values: Sequence[Static],
    spans: Sequence[Span],
    span: Span,
) -> Static:
    """A reducer or einsum operator with its notation, whose names mean what they mean in `frame`."""
    symbol = name if name in EINSUM_OPERATORS else f"{name}{{…}}"

    def run(c: Ctx, vs: list[Static]) -> Static:
        tensor_args = [as_tensor(c, v, s, leaf=True) for v, s in zip(vs, spans)]
        at = Ctx(c.build, frame, None)
        origin = c.build.origin(span, "slots", symbol)
        return reduce_notation(at, name, notation, tensor_args, origin, evaluate, spans)

    if any(isinstance(v, Poison) for v in values):
        return POISON
    return lifted(ctx, [as_host(ctx, v) for v in values], run, span)


# ---------------------------------------------------------------- on tensors


def tensor_function(ctx: Ctx, function: Builtin, args: list[Given], expr: ast.Expr) -> Static:
    """The function where at least one argument is a tensor, or that always makes one."""
    name, span, build = function.name, expr.span, ctx.build
    given = {g.name: g for g in args if g.name is not None}
    plain = [g for g in args if g.name is None]
    origin = build.origin(span, "pointwise", name)

    def operand(i: int) -> Value:
        if i >= len(plain):
            raise _wrong_count(name, span)
        return as_tensor(ctx, plain[i].value, plain[i].span)

    if name in PRECISIONS:
        _count(plain, 1, name, span)
        return tensors.map_values(build, "convert", [operand(0)], origin, precision=name)
    if name == "gelu" and dict(function.config).get("approximate"):
        _count(plain, 1, name, span)
        return tensors.map_values(build, "gelu_tanh", [operand(0)], origin)
    if name in UNARY:
        _count(plain, 1, name, span)
        return tensors.map_values(build, name, [operand(0)], origin)
    match name:
        case "where" | "clamp":
            _count(plain, 3, name, span)
            return tensors.map_values(build, name, [operand(0), operand(1), operand(2)], origin)
        case "pow":
            _count(plain, 2, name, span)
            return tensors.map_values(build, "pow", [operand(0), operand(1)], origin)
        case "fma":
            _count(plain, 3, name, span)
            return tensors.product(build, operand(0), operand(1), build.origin(span, "product", "fma"), operand(2))
        case "transpose":
            _count(plain, 1, name, span)
            return tensors.transpose(build, operand(0), build.origin(span, "transpose", name))
        case "tensor":
            _count(plain, 1, name, span)
            return as_tensor(ctx, plain[0].value, plain[0].span, leaf=True)
        case "batched":
            from ocannl_lang.build.literals import stack_values

            return stack_values(ctx, "batch", [g.value for g in plain], span)
        case "max" | "min" | "any" | "all" if len(plain) > 1:
            fn = {"any": "or", "all": "and"}.get(name, name)
            result = operand(0)
            for i in range(1, len(plain)):
                result = tensors.map_values(build, fn, [result, operand(i)], origin)
            return result
        case "concat" | "einsum" | "permute":
            raise fail("E0409", f"`{name}` needs axes notation", span, f"write `{name}{{… => …}}(…)`")
        case "one_hot":
            _count(plain, 1, name, span)
            return _one_hot(ctx, function, operand(0), span)
        case "arange":
            raise fail("E0302", "`arange` takes its size in brackets", span, "write `arange[10]`")
        case "even" | "odd":
            _count(plain, 1, name, span)
            return _every_second(ctx, operand(0), 0 if name == "even" else 1, build.origin(span, "slots", name), span)
        case "interleave":
            _count(plain, 2, name, span)
            return _interleave(ctx, operand(0), operand(1), build.origin(span, "slots", name), span)
        case "uniform" | "normal" | "bernoulli":
            return _draw(ctx, name, plain, given, expr)
        case "sum" | "mean" if len(plain) == 1 and isinstance(plain[0].value, (list, tuple)):
            return _reduce_list(ctx, name, list(plain[0].value), plain[0].span, span)
        case _ if name in REDUCERS:
            _count(plain, 1, name, span)
            return reduce_all(ctx, name, operand(0), build.origin(span, "slots", name))
        case _:
            raise fail("E0303", f"`{name}` does not work on tensors here", span)


def _reduce_list(ctx: Ctx, name: str, items: list[Static], at: Span, span: Span) -> Value:
    """The sum or mean of a list that holds tensors, element by element."""
    build = ctx.build
    origin = build.origin(span, "pointwise", name)
    total = as_tensor(ctx, items[0], at)
    for item in items[1:]:
        total = tensors.map_values(build, "add", [total, as_tensor(ctx, item, at)], origin)
    if name == "mean":
        total = tensors.map_values(build, "div", [total, tensors.number(build, len(items), origin)], origin)
    return total


def _size_config(ctx: Ctx, function: Builtin, span: Span) -> Any:
    config = dict(function.config)
    if "size" not in config:
        raise fail("E0302", f"`{function.name}` lacks its size", span, f"write `{function.name}[10]`")
    value = config["size"]
    if static_size(value) is None:
        raise fail("E0301", "a size is a static int", span)
    if isinstance(value, DimRef):
        value = Symbolic(value.dim, True)
    return tensors.size_dim(ctx.build, value, "a size", ctx.build.origin(span, "declaration", function.name))


def _arange(ctx: Ctx, function: Builtin, span: Span) -> Value:
    return tensors.arange(ctx.build, _size_config(ctx, function, span), ctx.build.origin(span, "literal", "arange"))


def _one_hot(ctx: Ctx, function: Builtin, ids: Value, span: Span) -> Value:
    """1 at position `ids` of a new last output axis, 0 elsewhere."""
    build = ctx.build
    origin = build.origin(span, "slots", "one_hot")
    positions = _arange(ctx, function, span)
    dim = positions.shape.output.trail[0]
    rows = {r: RowVar(f"the {r} axes of the ids", origin) for r in ("batch", "output", "input")}
    operand = SlotShape(*(SlotRow((), rows[r], ()) for r in ("batch", "output", "input")))
    label = ir.Label("class", dim)
    result = SlotShape(operand.batch, SlotRow((), rows["output"], (label,)), operand.input)
    spread = reduce_slots(build, "add", "mul", [ids], [operand], result, origin, [span], span)
    return tensors.map_values(build, "eq", [spread, positions], origin)


def _every_second(ctx: Ctx, x: Value, offset: int, origin: Origin, span: Span) -> Value:
    """Positions 2k + offset of the last output axis."""
    rows = {r: RowVar(f"{r} axes", origin) for r in ("batch", "output", "input")}
    k = ir.Label("k", DimVar("half of the last axis", origin))
    around = {r: SlotRow((), rows[r], ()) for r in ("batch", "input")}
    operand = SlotShape(around["batch"], SlotRow((), rows["output"], (ir.StridedAxis(2, k, offset),)), around["input"])
    result = SlotShape(around["batch"], SlotRow((), rows["output"], (k,)), around["input"])
    return reduce_slots(ctx.build, "add", "mul", [x], [operand], result, origin, [span], span)


def _interleave(ctx: Ctx, a: Value, b: Value, origin: Origin, span: Span) -> Value:
    """a at the even, b at the odd positions of the last output axis."""
    build = ctx.build
    spread: list[Value] = []
    for x, offset in ((a, 0), (b, 1)):
        rows = {r: RowVar(f"{r} axes", origin) for r in ("batch", "output", "input")}
        k = ir.Label("k", DimVar("half of the last axis", origin))
        around = {r: SlotRow((), rows[r], ()) for r in ("batch", "input")}
        operand = SlotShape(around["batch"], SlotRow((), rows["output"], (k,)), around["input"])
        result = SlotShape(
            around["batch"], SlotRow((), rows["output"], (ir.StridedAxis(2, k, offset),)), around["input"]
        )
        spread.append(reduce_slots(build, "add", "mul", [x], [operand], result, origin, [span], span))
    return tensors.map_values(build, "add", spread, origin)


def _draw(ctx: Ctx, name: str, plain: list[Given], given: dict[str, Given], expr: ast.Expr) -> Value:
    """`uniform(low, high)`, `normal()`, `bernoulli(p)`, each with `counter`."""
    build, span = ctx.build, expr.span
    counter = given.get("counter")
    count = None if counter is None or counter.value is None else as_tensor(ctx, counter.value, counter.span)
    origin = build.origin(span, "other", name)
    place = draw_place(ctx, expr, name)
    if name == "normal":
        _count(plain, 0, name, span)
        return tensors.draw(build, "normal", place, count, origin)
    base = tensors.draw(build, "uniform", place, count, origin)
    if name == "bernoulli":
        probability = plain[0] if plain else given.get("p")
        if probability is None:
            raise _wrong_count(name, span)
        return tensors.map_values(build, "lt", [base, as_tensor(ctx, probability.value, probability.span)], origin)
    low = plain[0] if plain else given.get("low")
    high = plain[1] if len(plain) > 1 else given.get("high")
    if low is None and high is None:
        return base
    start = 0.0 if low is None else low.value
    stop = 1.0 if high is None else high.value
    a, b = as_tensor(ctx, start, span), as_tensor(ctx, stop, span)
    width = tensors.map_values(build, "sub", [b, a], origin)
    return tensors.map_values(build, "add", [a, tensors.map_values(build, "mul", [base, width], origin)], origin)


def _count(args: Sequence[Given], count: int, name: str, span: Span) -> None:
    if len(args) != count:
        raise _wrong_count(name, span)


def _wrong_count(name: str, span: Span) -> Exception:
    return fail("E0302", f"wrong arguments for `{name}`", span, f"it is `{BUILTINS[name].signature}`")


# ---------------------------------------------------------------- computations and static functions


def _computation(ctx: Ctx, name: str, args: list[Given], span: Span) -> Static:
    if len(args) != 1 or args[0].name is not None:
        raise _wrong_count(name, span)
    if ctx.services is not None or ctx.frame.kind not in ("routine", "cd", "fn"):
        raise fail("E0501", f"`{name}` belongs in a routine or a cd", span)
    value = args[0].value
    if name == "params" and isinstance(value, (list, tuple)):
        found: dict[str, CellRef] = {}
        for v in value:
            for ref in gradients.parameters(ctx, v, args[0].span):
                found[ref.cell.path] = ref
        return [found[p] for p in sorted(found, key=gradients.path_key)]
    match name:
        case "update":
            gradients.update(ctx, value, args[0].span)
        case "zero_grads":
            gradients.zero_grads(ctx, value, args[0].span)
        case "backprop":
            gradients.backprop(ctx, value, args[0].span)
        case "params":
            return gradients.parameters(ctx, value, args[0].span)
        case _:
            as_tensor(ctx, value, args[0].span)
    return None


def _static_function(ctx: Ctx, name: str, args: list[Given], span: Span) -> Static:
    """A function of static values while building."""
    from ocannl_lang.host.builtins import HOST_FUNCTIONS
    from ocannl_lang.host.context import HostContext, HostError

    kind = BUILTINS[name].kind
    if any(isinstance(g.value, (Symbolic, DimRef, RowRef)) for g in args):
        return _symbolic_function(ctx, name, args, span)
    if name == "len" and args and is_tensor(args[0].value):
        return _tensor_length(ctx, args[0], span)
    if kind == "host function" and name not in ("close",):
        raise fail(
            "E0303", f"`{name}` is for host code", span, "this body runs while the program is built",
            helps=("call it from `main`, a test or a function they call",),
        )  # fmt: skip
    if kind in ("conversion",) and args and is_tensor(args[0].value):
        raise fail("E0303", "the value of a tensor is not known while the program is built", span)
    function = HOST_FUNCTIONS.get(name)
    if function is None:
        raise fail("E0301", f"`{name}` does not apply here", span)
    try:
        kwargs = {g.name: g.value for g in args if g.name is not None}
        return function(HostContext(), tuple(g.value for g in args if g.name is None), kwargs)
    except HostError as error:
        raise fail(error.code, error.message, span, notes=error.notes, helps=error.helps) from error


def _tensor_length(ctx: Ctx, given: Given, span: Span) -> Static:
    from ocannl_lang.build.expressions import resolved

    value = as_tensor(ctx, given.value, given.span)
    for kind in ("batch", "output", "input"):
        dims = row_dims(ctx.build, value, kind)
        if dims is None:
            raise fail("E0702", "how many axes this has is not known here yet", span)
        if dims:
            return resolved(ctx, Symbolic(dims[0], True))
    raise fail("E0301", "a number has no length", span)


def _symbolic_function(ctx: Ctx, name: str, args: list[Given], span: Span) -> Static:
    from ocannl_lang.build.expressions import resolved

    if name not in SYMBOLIC_FUNCTIONS:
        raise fail("E0702", f"`{name}` needs a size that is not fixed yet", span, "only a call fixes it")
    terms = [static_term(g.value) for g in args]
    whole = name in ("int", "min", "max", "abs", "floor", "ceil", "round") and all(w for _, w in terms)
    return resolved(ctx, Symbolic(SizeOp(name, tuple(t for t, _ in terms)), whole or name == "int"))
