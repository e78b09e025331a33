"""The static types of expressions, and the faults that they show."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ocannl_lang.diagnostics.model import Collector, Diagnostic, Edit, Fix
from ocannl_lang.names import calls, operators
from ocannl_lang.names.bindings import Binding, Names
from ocannl_lang.names.builtins import DICT_METHODS, LIST_METHODS, STRING_METHODS
from ocannl_lang.names.nearest import nearest
from ocannl_lang.names.results import builtin_result, returned
from ocannl_lang.names.types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    TENSOR,
    UNKNOWN,
    AnyCallable,
    BuiltIn,
    Defined,
    DictOf,
    ListOf,
    ModuleType,
    Tensor,
    TupleOf,
    Type,
    Unknown,
    declared_type,
    is_callable,
    is_number,
    join,
    words,
)  # fmt: skip
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast

_IN_COMPUTATIONS = ("update", "evaluate", "zero_grads", "backprop")


@dataclass(slots=True)
class TypesOfModule:
    """What the definitions of a module share: `types` of its top-level lets, once known."""

    names: Names
    collector: Collector
    types: dict[Binding, Type] = field(default_factory=dict[Binding, Type])
    open: set[Binding] = field(default_factory=set[Binding])


BodyKind = Literal["module", "op", "cd", "routine", "fn", "main", "test", "extern", "data"]


class Typer:
    """Types the expressions of one definition of the given kind.

    `building`: the body only runs while something is built, so tensor values are not known in it.
    """

    def __init__(self, shared: TypesOfModule, kind: BodyKind) -> None:
        self.shared = shared
        self.kind: BodyKind = kind
        self.building = kind in ("op", "cd", "routine")
        self.types: dict[Binding, Type] = shared.types
        self.rebound: set[Binding] = set()

    def report(self, diagnostic: Diagnostic) -> None:
        self.shared.collector.report(diagnostic)

    def of(self, e: ast.Expr) -> Type:
        """The type of an expression; reports what is wrong inside."""
        match e:
            case ast.Name():
                return self._name(e)
            case ast.IntLit():
                return INT
            case ast.FloatLit():
                return FLOAT
            case ast.BoolLit():
                return BOOL
            case ast.NoneLit():
                return NONE
            case ast.StrLit(parts=parts):
                for part in parts:
                    if isinstance(part, ast.Interpolation):
                        self.of(part.value)
                return STR
            case ast.Unary():
                return self._unary(e)
            case ast.Binary() | ast.EinsumInfix():
                return self._operators(e)
            case ast.IsNone(operand=operand):
                self.of(operand)
                return BOOL
            case ast.IfExpr(condition=condition, then=then, otherwise=otherwise):
                self.condition(condition, "a condition")
                return join((self.of(then), self.of(otherwise)))
            case ast.Pipe(value=value, function=function):
                return self._pipe(value, function)
            case ast.Call():
                return self._call(e)
            case ast.Bracket():
                return self._bracket(e)
            case ast.Slice():
                return self._slice(e)
            case ast.WithSlots(base=base, notation=notation):
                return self._with_slots(base, notation)
            case ast.Attr():
                return self._attribute(e)
            case ast.ListExpr(items=items):
                return self._list(items)
            case ast.TupleExpr(items=items):
                return TupleOf(tuple(self.of(item) for item in items))
            case ast.Paren(inner=inner):
                return self.of(inner)
            case ast.Comprehension():
                return self._comprehension(e)
            case ast.ParamExpr(type=declared, init=init):
                if self.kind in ("fn", "main", "test", "module"):
                    helps = ("parameters belong to ops and routines",)
                    self.report(Diagnostic("E0501", "a parameter cannot stand here", e.span, helps=helps))
                if declared is not None:
                    self.written(declared)
                if init is not None:
                    self._parameter_init(e.name.name, self.of(init), init.span)
                return TENSOR
            case ast.ErrorExpr():
                return UNKNOWN

    # ------------------------------------------------------------ what a place needs

    def condition(self, e: ast.Expr, what: str) -> None:
        """A static truth value: E0301 for another static type, E0303 for a tensor while building."""
        t = self.of(e)
        if isinstance(t, Tensor):
            if self.building:
                helps = ("to choose element by element, use `where(condition, a, b)`",)
                message = f"{what} has to be known while the program is built; this is {words(t)}"
                self.report(Diagnostic("E0303", message, e.span, "known only when the program runs", helps=helps))
        elif t not in (UNKNOWN, BOOL):
            helps = (f"compare it: `{_short(e)} != 0`",) if is_number(t) else ()
            if isinstance(t, ListOf) or t == STR:
                helps = (f"ask for its length: `len({_short(e)}) > 0`",)
            message = f"{what} is `true` or `false`, and this is {words(t)}"
            self.report(Diagnostic("E0301", message, e.span, words(t), helps=helps))

    def int_needed(self, e: ast.Expr, what: str, *, index: bool = False) -> None:
        """A static int; where `index`, an index of a routine too."""
        self._int_type(self.of(e), e.span, what, index=index)

    def _int_type(self, t: Type, place: Span, what: str, *, index: bool = False) -> None:
        if isinstance(t, Tensor):
            if self.building and not index:
                message = f"{what} has to be known while the program is built; this is {words(t)}"
                self.report(Diagnostic("E0303", message, place, "known only when the program runs"))
        elif t not in (UNKNOWN, INT, BOOL):
            self.report(Diagnostic("E0301", f"{what} is an int, and this is {words(t)}", place, words(t)))

    def item_of(self, e: ast.Expr) -> Type:
        """The type of the elements that a loop over `e` meets."""
        t = self.of(e)
        match t:
            case ListOf(item=item):
                return item
            case TupleOf(items=items):
                return join(items) if items else UNKNOWN
            case Tensor():
                if self.building:
                    message = f"a loop is carried out while the program is built, and this is {words(t)}"
                    self.report(Diagnostic("E0303", message, e.span, "known only when the program runs"))
                return TENSOR
            case Unknown() | DictOf():
                return UNKNOWN
            case _ if t == STR:
                return STR
            case _:
                fix: Fix | None = None
                helps: tuple[str, ...] = ()
                if t == INT:
                    text = _short(e)
                    text = text if isinstance(e, (ast.Name, ast.IntLit, ast.Call)) else f"({text})"
                    fix = Fix(f"loop over `0..{text}`", (Edit(e.span, f"0..{text}"),))
                    helps = (f"to count, write `0..{text}`",)
                message = f"a loop needs a list, a range or the like, and this is {words(t)}"
                self.report(Diagnostic("E0301", message, e.span, words(t), helps=helps, fix=fix))
                return UNKNOWN

    def written(self, t: ast.TypeExpr) -> None:
        """Check the sizes of a written type."""
        match t:
            case ast.TensorType(batch=batch, input=input_row, output=output):
                for axis in (*(batch or ()), *(input_row or ()), *output):
                    if isinstance(axis, ast.TypeAxisSize):
                        self.int_needed(axis.value, "a size")
                    elif isinstance(axis, ast.TypeAxisName):
                        binding = self.shared.names.definition(axis)
                        if binding is not None and binding.kind not in ("dim", "import", "op", "cd", "fn", "routine"):
                            self._int_type(self._binding(binding), axis.span, "a size")
            case ast.GenericType(args=args):
                for arg in args:
                    if isinstance(arg, (ast.TensorType, ast.NamedType, ast.GenericType, ast.TupleType)):
                        self.written(arg)
            case ast.TupleType(items=items):
                for item in items:
                    self.written(item)
            case ast.NamedType():
                pass

    def _parameter_init(self, name: str, t: Type, place: Span) -> None:
        if t == STR or isinstance(t, (DictOf, ModuleType)) or is_callable(t):
            helps = ("call it: `()`",) if is_callable(t) else ()
            message = f"the initial value of `{name}` is a tensor, and this is {words(t)}"
            self.report(Diagnostic("E0301", message, place, words(t), helps=helps))

    # ------------------------------------------------------------ names

    def _name(self, e: ast.Name) -> Type:
        binding = self.shared.names.definition(e)
        return UNKNOWN if binding is None else self._binding(binding)

    def _binding(self, b: Binding) -> Type:
        if b in self.types:
            return self.types[b]
        match b.kind:
            case "builtin":
                assert b.builtin is not None
                return BOOL if b.builtin.kind == "value" else BuiltIn(b.builtin)
            case "module":
                return ModuleType(".".join(b.module))
            case "op" | "cd" | "fn" | "routine" | "extern" | "import" | "member":
                match b.definition:
                    case ast.OpDef() | ast.CdDef() | ast.FnDef() | ast.RoutineDef() | ast.ExternDef() as definition:
                        return Defined(definition)
                    case ast.DataDef():
                        return TENSOR
                    case _:
                        return UNKNOWN
            case "data" | "state" | "parameter" | "result":
                return TENSOR
            case "dim" | "row":
                return INT
            case "let" if b.owner is None and isinstance(b.node, ast.Let):
                return self._top_level(b, b.node)
            case _:
                return UNKNOWN

    def _top_level(self, b: Binding, let: ast.Let) -> Type:
        """A top-level `let`, typed when it is first asked for."""
        if b in self.shared.open or len(let.names) != 1:
            return UNKNOWN
        self.shared.open.add(b)
        typer = Typer(self.shared, "module")
        t = typer.bound(typer.of(let.value)) if let.type is None else declared_type(let.type)
        self.shared.open.discard(b)
        self.shared.types[b] = t
        return t

    def bound(self, t: Type) -> Type:
        """What a name holds that is bound to a value: an op becomes an instance where its configuration is complete."""
        return Defined(t.definition, t.given, t.slots, bound=True) if isinstance(t, Defined) else t

    # ------------------------------------------------------------ operations

    def _unary(self, e: ast.Unary) -> Type:
        t = self.of(e.operand)
        if e.op == "not":
            return TENSOR if isinstance(t, Tensor) else BOOL
        if t in (STR, NONE) or is_callable(t) or isinstance(t, (DictOf, ModuleType)):
            self.report(Diagnostic("E0301", f"`-` cannot be used on {words(t)}", e.operand.span, words(t)))
            return UNKNOWN
        return INT if t == BOOL else t if is_number(t) or isinstance(t, Tensor) else UNKNOWN

    def _operators(self, e: ast.Binary | ast.EinsumInfix) -> Type:
        """A chain of operators, which may be long: its left spine without recursion."""
        spine: list[ast.Binary | ast.EinsumInfix] = []
        left: ast.Expr = e
        while isinstance(left, (ast.Binary, ast.EinsumInfix)):
            spine.append(left)
            left = left.left
        t = self.of(left)
        for part in reversed(spine):
            right = self.of(part.right)
            if isinstance(part, ast.EinsumInfix):
                self._notation(part.notation)
                for operand, place in ((t, part.left.span), (right, part.right.span)):
                    self._tensor_needed(operand, place, f"an operand of `{part.op}`")
                t = TENSOR
            elif part.op == "..":
                self._int_type(t, part.left.span, "the start of a range")
                self._int_type(right, part.right.span, "the end of a range")
                t = ListOf(INT)
            else:
                t = self.operation(part.op, t, right, part.left.span, part.right.span)
        return t

    def operation(self, op: str, left: Type, right: Type, left_place: Span, right_place: Span) -> Type:
        t, fault = operators.binary(op, left, right)
        if fault is not None:
            place, other = (left_place, right_place) if fault.operand == 0 else (right_place, left_place)
            wrong, fine = (left, right) if fault.operand == 0 else (right, left)
            labels = () if fine == UNKNOWN else (calls.Label(other, words(fine)),)
            self.report(Diagnostic("E0301", fault.message, place, words(wrong), labels, helps=fault.helps))
        return t

    def _tensor_needed(self, t: Type, place: Span, what: str) -> None:
        if t in (STR, NONE) or is_callable(t) or isinstance(t, (DictOf, ModuleType)):
            self.report(Diagnostic("E0301", f"{what} is a tensor, and this is {words(t)}", place, words(t)))

    # ------------------------------------------------------------ application and configuration

    def _call(self, e: ast.Call) -> Type:
        function = self.of(e.function)
        given = [calls.Given(arg, self.of(arg.value)) for arg in e.args]
        return self._apply(function, e.function, given, e.span)

    def _pipe(self, value: ast.Expr, function: ast.Expr) -> Type:
        given = [calls.Given(ast.Arg(value.span, None, value), self.of(value))]
        if isinstance(function, ast.Call):
            callee = self.of(function.function)
            if isinstance(callee, Defined) and isinstance(callee.definition, ast.OpDef):
                self._piped_call(function)
                return UNKNOWN
        return self._apply(self.of(function), function, given, function.span)

    def _apply(self, function: Type, e: ast.Expr, given: list[calls.Given], place: Span) -> Type:
        collector = self.shared.collector
        match function:
            case Defined(definition=definition):
                self._complete(function, e)
                signature = calls.call_signature(definition)
                calls.check_arguments(signature, given, e.span, collector, building=self.building, complete=True)
                return returned(definition)
            case BuiltIn(builtin=builtin):
                if builtin.strict and not _spread(given):
                    signature = calls.builtin_signature(builtin)
                    calls.check_arguments(signature, given, e.span, collector, building=self.building, complete=True)
                if builtin.name in _IN_COMPUTATIONS and self.kind not in ("routine", "cd", "fn"):
                    message = f"`{builtin.name}` belongs in a routine or a cd"
                    self.report(Diagnostic("E0501", message, place))
                if builtin.kind in ("pointwise", "reducer", "tensor function"):
                    for g in given:
                        if g.arg.name is not None:
                            continue
                        if g.type == STR or isinstance(g.type, (DictOf, ModuleType)) or is_callable(g.type):
                            message = f"`{builtin.name}` needs numbers or tensors, and this is {words(g.type)}"
                            self.report(Diagnostic("E0301", message, g.arg.value.span, words(g.type)))
                return builtin_result(function, [g.type for g in given], building=self.building)
            case Unknown() | AnyCallable():
                return UNKNOWN
            case _:
                self._not_callable(function, e, place)
                return UNKNOWN

    def _piped_call(self, e: ast.Call) -> None:
        """`x |> f(3)`."""
        name = _short(e.function)
        brackets = Span(e.span.source, e.function.span.end, e.span.end)
        inner = brackets.text.strip()[1:-1]
        fix = Fix("configure it in brackets", (Edit(brackets, f"[{inner}]" if inner.strip() else ""),))
        self.report(
            Diagnostic(
                "E0301", "what follows `|>` is applied, so it is no call", e.span, f"`{name}` is applied here already",
                helps=(f"configuration goes in brackets: `|> {name}[…]`",), fix=fix,
            )
        )  # fmt: skip

    def _complete(self, function: Defined, e: ast.Expr) -> None:
        definition = function.definition
        wanted = calls.missing_configuration(definition, function.given, e.span)
        if wanted is not None:
            self.report(wanted)
        slots = definition.slots if isinstance(definition, (ast.OpDef, ast.CdDef)) else ()
        if slots and not function.slots and not function.bound:
            mismatch = calls.slots_mismatch(definition, 0, e.span)
            if mismatch is not None:
                self.report(mismatch)

    def _not_callable(self, t: Type, e: ast.Expr, place: Span) -> None:
        message = f"{_quoted(e)} is {words(t)}, which cannot be applied"
        helps: tuple[str, ...] = ()
        if isinstance(e, ast.Call) and e.span.end == place.end:
            helps = ("after `|>` stands an op, an instance or a function, not a call",)
        elif isinstance(t, Tensor) and isinstance(e, ast.Name):
            binding = self.shared.names.definition(e)
            if binding is not None and binding.kind == "param":
                helps = (f"what an op applies is configuration, in brackets: `[{e.name}: op]`",)
            else:
                helps = ("for a product, write `*` or `*.`",)
        elif isinstance(t, Tensor):
            helps = ("for a product, write `*` or `*.`",)
        self.report(Diagnostic("E0301", message, e.span, words(t), helps=helps))

    def _bracket(self, e: ast.Bracket) -> Type:
        base = self.of(e.base)
        given = [calls.Given(arg, self.of(arg.value)) for arg in e.args]
        match base:
            case Defined():
                return self._configure(base, e, given)
            case BuiltIn(builtin=builtin):
                if builtin.strict and not builtin.config:
                    message = f"`{builtin.name}` takes no configuration"
                    notes = (f"the signature is `{builtin.signature}`",)
                    self.report(Diagnostic("E0302", message, e.span, "not in brackets", notes=notes))
                return BuiltIn(builtin, base.slots, configured=True) if builtin.params else TENSOR
            case ListOf() | TupleOf() | Tensor():
                for g in given:
                    if isinstance(base, Tensor) and g.type == ListOf(INT):
                        continue  # a range cuts a slice
                    self._int_type(g.type, g.arg.span, "a position", index=isinstance(base, Tensor))
                return _element(base, e)
            case DictOf() | Unknown() | AnyCallable():
                return UNKNOWN
            case _ if base == STR:
                return STR
            case _:
                message = f"{_quoted(e.base)} is {words(base)}, which has no elements and no configuration"
                self.report(Diagnostic("E0301", message, e.base.span, words(base)))
                return UNKNOWN

    def _configure(self, base: Defined, e: ast.Bracket, given: list[calls.Given]) -> Type:
        if base.bound or base.given:
            return UNKNOWN
        signature = calls.config_signature(base.definition)
        collector = self.shared.collector
        right = calls.check_arguments(signature, given, e.span, collector, building=self.building, complete=False)
        if not right:
            return UNKNOWN
        names = {w.name for w, g in zip(signature.wanted, given, strict=False) if g.arg.name is None}
        names |= {g.arg.name.name for g in given if g.arg.name is not None}
        return Defined(base.definition, frozenset(names), base.slots)

    def _with_slots(self, base_expr: ast.Expr, notation: ast.Notation) -> Type:
        base = self.of(base_expr)
        self._notation(notation)
        match base:
            case Defined(definition=definition):
                place = notation.span
                mismatch = calls.slots_mismatch(definition, len(notation.slots), place)
                if mismatch is not None and not base.bound:
                    self.report(mismatch)
                    return UNKNOWN
                return Defined(definition, base.given, slots=True, bound=base.bound)
            case BuiltIn(builtin=builtin):
                if not builtin.slots and builtin.kind in ("pointwise", "conversion", "computation"):
                    message = f"`{builtin.name}` takes no axes notation"
                    notes = (f"the signature is `{builtin.signature}`",)
                    self.report(Diagnostic("E0302", message, notation.span, "not wanted here", notes=notes))
                    return UNKNOWN
                return BuiltIn(builtin, slots=True, configured=base.configured)
            case Tensor():
                return TENSOR
            case _:
                return UNKNOWN

    def _notation(self, notation: ast.Notation) -> None:
        for slot in (*notation.slots, *((notation.result,) if notation.result is not None else ())):
            for axis in (*(slot.batch or ()), *(slot.input or ()), *slot.output):
                match axis:
                    case ast.AxisFixed(value=value):
                        self.int_needed(value, "a position", index=True)
                    case ast.AxisAffine(out=out, kernel=kernel):
                        for factor in (out.factor, kernel.factor):
                            if factor is not None:
                                self.int_needed(factor, "a stride")
                    case ast.AxisStrided(term=term, offset=offset):
                        for number in (term.factor, offset):
                            if number is not None:
                                self.int_needed(number, "a stride")
                    case ast.AxisConcat(parts=parts):
                        for part in parts:
                            if not isinstance(part, ast.Ident):
                                self.int_needed(part, "a size")
                    case _:
                        pass

    # ------------------------------------------------------------ parts

    def _slice(self, e: ast.Slice) -> Type:
        base = self.of(e.base)
        for end in (e.low, e.high):
            if end is not None:
                self.int_needed(end, "an end of a slice")
        if is_number(base) or base == NONE or is_callable(base) or isinstance(base, (DictOf, ModuleType)):
            message = f"{_quoted(e.base)} is {words(base)}, which cannot be sliced"
            self.report(Diagnostic("E0301", message, e.base.span, words(base)))
            return UNKNOWN
        return base if base == STR or isinstance(base, (ListOf, Tensor)) else UNKNOWN

    def _attribute(self, e: ast.Attr) -> Type:
        base = self.of(e.base)
        name = e.name.name
        match base:
            case ModuleType():
                binding = self.shared.names.definition(e.name)
                return UNKNOWN if binding is None else self._binding(binding)
            case Tensor():
                return TENSOR if name == "grad" else STR if name in ("path", "precision") else UNKNOWN
            case ListOf():
                self._method(e, LIST_METHODS, "lists")
            case DictOf():
                self._method(e, DICT_METHODS, "dicts")
            case _ if base == STR:
                self._method(e, STRING_METHODS, "strings")
            case _ if is_number(base) or base == NONE:
                message = f"{_quoted(e.base)} is {words(base)}, which has no `{name}`"
                self.report(Diagnostic("E0204", message, e.name.span, "not found"))
            case _:
                pass
        return UNKNOWN

    def _method(self, e: ast.Attr, methods: tuple[str, ...], plural: str) -> None:
        """An unknown method, where a known one is near: hosts may know more methods than the table."""
        near = None if e.name.name in methods else nearest(e.name.name, methods)
        if near is None:
            return
        fix = Fix(f"replace by `{near}`", (Edit(e.name.span, near),))
        message = f"{plural} have no `{e.name.name}`"
        helps = (f"did you mean `{near}`?",)
        self.report(Diagnostic("E0204", message, e.name.span, "not found", helps=helps, fix=fix))

    def _list(self, items: tuple[ast.Expr, ...]) -> Type:
        if len(items) == 1 and isinstance(items[0], ast.Comprehension):
            return self._comprehension(items[0])
        types = [self.of(item) for item in items]
        return ListOf(join(types)) if types else ListOf(UNKNOWN)

    def _comprehension(self, e: ast.Comprehension) -> Type:
        item = self.item_of(e.iterable)
        if len(e.pattern) == 1:
            binding = self.shared.names.definition(e.pattern[0])
            if binding is not None:
                self.types[binding] = item
        elif isinstance(item, TupleOf) and len(item.items) == len(e.pattern):
            for ident, part in zip(e.pattern, item.items, strict=True):
                binding = self.shared.names.definition(ident)
                if binding is not None:
                    self.types[binding] = part
        if e.condition is not None:
            self.condition(e.condition, "a condition")
        return ListOf(self.of(e.value))


def _element(base: ListOf | TupleOf | Tensor, e: ast.Bracket) -> Type:
    match base:
        case ListOf(item=item):
            return item
        case TupleOf(items=items):
            index = e.args[0].value if len(e.args) == 1 else None
            if isinstance(index, ast.IntLit) and index.value < len(items):
                return items[index.value]
            return UNKNOWN
        case Tensor():
            return TENSOR


def _spread(given: list[calls.Given]) -> bool:
    """Whether a comprehension stands for any number of arguments."""
    return any(isinstance(g.arg.value, ast.Comprehension) for g in given)


def _short(e: ast.Expr) -> str:
    text = " ".join(e.span.text.split())
    return text if len(text) <= 40 else "…"


def _quoted(e: ast.Expr) -> str:
    text = _short(e)
    return "this" if text == "…" else f"`{text}`"
