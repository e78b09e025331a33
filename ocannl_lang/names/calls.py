"""Arguments against signatures: E0302 where they do not match, E0301 and E0303 where one has the wrong type."""

from __future__ import annotations

from dataclasses import dataclass

from ocannl_lang.diagnostics.model import Collector, Diagnostic, Edit, Fix, Label
from ocannl_lang.names.builtins import Builtin
from ocannl_lang.names.nearest import nearest
from ocannl_lang.names.types import TENSOR, CallableDef, Tensor, Type, declared_type, fits, kind_word, words
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast


@dataclass(frozen=True, slots=True)
class Given:
    """One argument with its type."""

    arg: ast.Arg
    type: Type


@dataclass(frozen=True, slots=True)
class Wanted:
    """One parameter of a signature. `tensor`: it takes tensors without saying so."""

    name: str
    required: bool
    type: ast.TypeExpr | None
    place: Span | None
    variadic: bool = False
    tensor: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """What may be given in one pair of brackets. `other` are the parameters of the other pair."""

    name: str
    text: str
    what: str
    wanted: tuple[Wanted, ...]
    other: frozenset[str]
    place: Span | None


def config_signature(definition: CallableDef) -> Signature:
    config = definition.config if isinstance(definition, (ast.OpDef, ast.CdDef, ast.RoutineDef)) else ()
    return _signature(definition, "configuration", config, definition.params)


def call_signature(definition: CallableDef) -> Signature:
    config = definition.config if isinstance(definition, (ast.OpDef, ast.CdDef, ast.RoutineDef)) else ()
    return _signature(definition, "argument", definition.params, config)


def _signature(
    definition: CallableDef, what: str, params: tuple[ast.ParamDecl, ...], other: tuple[ast.ParamDecl, ...]
) -> Signature:
    tensor = what == "argument" and isinstance(definition, ast.OpDef)
    wanted = tuple(Wanted(p.name.name, p.default is None, p.type, p.name.span, tensor=tensor) for p in params)
    text = signature_text(definition)
    names = frozenset(p.name.name for p in other)
    return Signature(definition.name.name, text, what, wanted, names, definition.name.span)


def builtin_signature(builtin: Builtin) -> Signature:
    wanted = tuple(Wanted(p.name, p.required, None, None, p.variadic) for p in builtin.params)
    names = frozenset(p.name for p in builtin.config)
    return Signature(builtin.name, builtin.signature, "argument", wanted, names, None)


def signature_text(definition: CallableDef) -> str:
    """The head of a definition as written: `dense[out: int](x)`."""
    text = definition.name.name
    if isinstance(definition, (ast.OpDef, ast.CdDef)) and definition.slots:
        text += "{" + "; ".join(s.name for s in definition.slots) + "}"
    if isinstance(definition, (ast.OpDef, ast.CdDef, ast.RoutineDef)) and definition.config:
        text += "[" + ", ".join(_param_text(p) for p in definition.config) + "]"
    text += "(" + ", ".join(_param_text(p) for p in definition.params) + ")"
    result = None if isinstance(definition, ast.CdDef) else definition.result
    return text if result is None else f"{text} -> {_one_line(result.span)}"


def _param_text(param: ast.ParamDecl) -> str:
    text = param.name.name
    if param.type is not None:
        text += f": {_one_line(param.type.span)}"
    if param.default is not None:
        text += f" = {_one_line(param.default.span)}"
    return text


def _one_line(span: Span) -> str:
    return " ".join(span.text.split())


def check_arguments(
    signature: Signature, given: list[Given], place: Span, collector: Collector, *, building: bool, complete: bool
) -> bool:
    """Report what does not match; whether all did. `complete`: what is required has to be there."""
    taken: dict[str, Given] = {}
    right = True
    positional = [g for g in given if g.arg.name is None]
    variadic = any(w.variadic for w in signature.wanted)
    if len(positional) > len(signature.wanted) and not variadic:
        collector.report(_too_many(signature, positional))
        return False
    for wanted, g in zip(signature.wanted, positional, strict=False):
        taken[wanted.name] = g
    known = {w.name: w for w in signature.wanted if not w.variadic}
    for g in given:
        if g.arg.name is None:
            continue
        name = g.arg.name.name
        if name in taken:
            collector.report(_twice(signature, g, taken[name]))
            right = False
        elif name in known:
            taken[name] = g
        elif not variadic:
            collector.report(_no_such(signature, g.arg.name))
            right = False
    missing = [w for w in signature.wanted if w.required and w.name not in taken]
    if complete and missing and right:
        collector.report(_missing(signature, missing, place))
        right = False
    for name, g in taken.items():
        if name in known:
            right &= _check_argument(known[name], g, collector, building=building)
    return right


def _check_argument(wanted: Wanted, g: Given, collector: Collector, *, building: bool) -> bool:
    place, what = g.arg.value.span, f"`{wanted.name}`"
    if wanted.type is not None or not wanted.tensor:
        return check_type(g.type, wanted.type, place, what, wanted.place, collector, building=building)
    if fits(g.type, TENSOR):
        return True
    labels = () if wanted.place is None else (Label(wanted.place, "declared here"),)
    message = f"{what} is a tensor, but this is {words(g.type)}"
    collector.report(Diagnostic("E0301", message, place, words(g.type), labels))
    return False


def check_type(
    value: Type,
    declared: ast.TypeExpr | None,
    place: Span,
    what: str,
    declared_at: Span | None,
    collector: Collector,
    *,
    building: bool,
) -> bool:
    """E0301 (E0303 for a tensor) where a value does not fit a written type; whether it fits. `what` receives it."""
    if declared is None:
        return True
    wanted = declared_type(declared)
    if fits(value, wanted):
        return True
    spelled = _one_line(declared.span)
    labels = () if declared_at is None else (Label(declared_at, f"declared as `{spelled}`"),)
    if isinstance(value, Tensor):
        if not building:
            return True
        message = f"{what} is `{spelled}`, which has to be known while the program is built; this is {words(value)}"
        collector.report(Diagnostic("E0303", message, place, "known only when the program runs", labels))
        return False
    message = f"{what} is `{spelled}`, but this is {words(value)}"
    collector.report(Diagnostic("E0301", message, place, words(value), labels))
    return False


def _notes(signature: Signature) -> tuple[tuple[Label, ...], tuple[str, ...]]:
    labels = () if signature.place is None else (Label(signature.place, "defined here"),)
    return labels, (f"the signature is `{signature.text}`",)


def _too_many(signature: Signature, positional: list[Given]) -> Diagnostic:
    most, count = len(signature.wanted), len(positional)
    labels, notes = _notes(signature)
    plural = "" if most == 1 else "s"
    noun = "configuration argument" if signature.what == "configuration" else "argument"
    none = "no configuration" if signature.what == "configuration" else "no arguments"
    limit = none if most == 0 else f"{most} {noun}{plural}, not {count}"
    place = positional[most].arg.span
    helps: tuple[str, ...] = ()
    if signature.other and signature.what == "argument":
        helps = (f"configuration goes in brackets: `{signature.name}[…]`",)
    return Diagnostic("E0302", f"`{signature.name}` takes {limit}", place, "too many", labels, notes, helps)


def _twice(signature: Signature, again: Given, first: Given) -> Diagnostic:
    assert again.arg.name is not None
    name = again.arg.name
    _, notes = _notes(signature)
    labels = (Label(first.arg.span, "first given here"),)
    return Diagnostic("E0302", f"`{name.name}` is given twice", name.span, "given again here", labels, notes)


def _no_such(signature: Signature, name: ast.Ident) -> Diagnostic:
    labels, notes = _notes(signature)
    message = f"`{signature.name}` has no {signature.what} `{name.name}`"
    if name.name in signature.other:
        where = "in parentheses" if signature.what == "configuration" else "in brackets"
        return Diagnostic("E0302", message, name.span, "not here", labels, notes, (f"`{name.name}` is given {where}",))
    near = nearest(name.name, [w.name for w in signature.wanted])
    helps = () if near is None else (f"did you mean `{near}`?",)
    fix = None if near is None else Fix(f"replace by `{near}`", (Edit(name.span, near),))
    return Diagnostic("E0302", message, name.span, "unknown", labels, notes, helps, fix)


def _missing(signature: Signature, missing: list[Wanted], place: Span) -> Diagnostic:
    labels, notes = _notes(signature)
    names = " and ".join(f"`{w.name}`" for w in missing)
    if signature.what == "configuration":
        helps = (f"write `{signature.name}[{', '.join(f'{w.name} = …' for w in missing)}]`",)
        return Diagnostic(
            "E0302", f"`{signature.name}` needs the configuration {names}", place, "not given", labels, notes, helps
        )
    plural = "" if len(missing) == 1 else "s"
    return Diagnostic(
        "E0302", f"`{signature.name}` needs the argument{plural} {names}", place, "not given", labels, notes
    )


def missing_configuration(definition: CallableDef, given: frozenset[str], place: Span) -> Diagnostic | None:
    """E0302 where an op is applied whose configuration is not complete."""
    signature = config_signature(definition)
    missing = [w for w in signature.wanted if w.required and w.name not in given]
    return _missing(signature, missing, place) if missing else None


def slots_mismatch(definition: CallableDef, count: int, place: Span) -> Diagnostic | None:
    """E0302 where axes notation is given to what takes none, or a wrong number of slots."""
    slots = definition.slots if isinstance(definition, (ast.OpDef, ast.CdDef)) else ()
    if len(slots) == count:
        return None
    signature = call_signature(definition)
    labels, notes = _notes(signature)
    name = signature.name
    if not slots:
        message = f"the {kind_word(definition)} `{name}` takes no axes notation"
        return Diagnostic("E0302", message, place, "not wanted here", labels, notes)
    wanted = f"{len(slots)} slot" + ("" if len(slots) == 1 else "s")
    message = f"`{name}` takes {wanted}, not {count}"
    label = "missing" if count == 0 else f"{count} given here"
    return Diagnostic("E0302", message, place, label, labels, notes)
