"""The parameters of `main` as command-line options: typed, with help from their `##` comments.

`learning_rate: float = 0.1` becomes `--learning-rate`; a `bool` becomes a pair of flags, a `list[int]` takes `16,16`
or repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ocannl_lang.host.literals import NotLiteral, literal_value, parse_literal
from ocannl_lang.syntax import ast

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # generic since click 8.3 only

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def main_command(
    main: ast.MainDef | None,
    run: Callable[[dict[str, Any]], Any],
    *,
    name: str = "main",
    about: str | None = None,
    shared: Sequence[click.Option] = (),
    run_shared: Callable[[dict[str, Any]], None] = lambda _: None,
) -> click.Command:
    """The command that runs `main`: `run` gets the values of the options that were given, by the names of the parameters.

    Defaults are left to the program. The `shared` options (of the command line itself) are taken too, except those
    whose name a parameter has; what was given of them goes to `run_shared` first. `about` is the help where `main` has
    no comment of its own. Wrong use is click's `UsageError` (exit status 2).
    """
    params = main.params if main is not None else ()
    own = [_option(p) for p in params]
    taken = {flag for option in own for flag in (*option.opts, *option.secondary_opts)}
    others = [option for option in shared if not taken & {*option.opts, *option.secondary_opts}]
    names = {str(option.name): p.name.name for option, p in zip(own, params, strict=True)}

    @click.pass_context
    def callback(context: click.Context, /, **values: Any) -> Any:
        given = {n: v for n, v in values.items() if context.get_parameter_source(n) is ParameterSource.COMMANDLINE}
        run_shared({n: v for n, v in given.items() if n not in names})
        return run({names[n]: v for n, v in given.items() if n in names})

    return click.Command(
        name,
        params=[*own, *others],
        callback=callback,
        help=(main.doc if main is not None else None) or about,
        context_settings={**_CONTEXT, "help_option_names": [f for f in ("-h", "--help") if f not in taken]},
    )


def _option(param: ast.ParamDecl) -> click.Option:
    name = param.name.name
    flag = "--" + name.replace("_", "-")
    kind = _kind(param)
    flags = f"{flag}/--no-{flag[2:]}" if kind == "bool" else flag
    # A prefix keeps the names apart from those of shared options.
    declaration = [f"main_{name}", flags]
    settings: dict[str, Any] = {"help": _help(param), "required": param.default is None}
    if kind == "bool":
        return click.Option(declaration, is_flag=True, **settings)
    if kind.startswith("list"):
        item = kind[5:-1]
        return _ListOption(declaration, type=_List(item), multiple=True, **settings)
    return click.Option(declaration, type=_Value(kind), **settings)


class _ListOption(click.Option):
    """An option that may repeat; what its uses give is one list."""

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        parts = super().type_cast_value(ctx, value)
        return [item for part in parts or () for item in part]


class _Value(ParamType):
    """A value of a static type in the language's notation; `any` takes every literal."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.name = {"str": "text"}.get(kind, "value" if kind == "any" else kind)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return read_value(value, self.kind)
        except ValueError:
            wanted = {"int": "a whole number", "float": "a number", "bool": "true or false"}.get(self.kind, "a literal")
            self.fail(f"{value!r} is not {wanted}.", param, ctx)


class _List(ParamType):
    """`16,16`, or a list in the language's notation."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.name = f"{ {'str': 'text'}.get(kind, kind) },..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        if value.startswith("["):
            try:
                found = parse_literal(value)
            except NotLiteral:
                self.fail(f"{value!r} is not a list.", param, ctx)
            return found
        one = _Value(self.kind)
        return [one.convert(item.strip(), param, ctx) for item in value.split(",")] if value else []


def read_value(text: str, kind: str) -> Any:
    """A text as a value of a static type (`int`, `float`, `bool`, `str`, `any`). Raises `ValueError`."""
    match kind:
        case "int":
            return int(text, 16 if text.lower().startswith(("0x", "-0x")) else 10)
        case "float":
            return float(text)
        case "str":
            return text
        case "bool":
            return {"true": True, "false": False}[text] if text in ("true", "false") else _refuse()
        case _:
            try:
                return parse_literal(text)
            except NotLiteral:
                return _refuse()


def _refuse() -> Any:
    raise ValueError


def _kind(param: ast.ParamDecl) -> str:
    """`int`, `float`, `bool`, `str`, `list[…]` of these, or `any`: from the type, else from the default."""
    match param.type:
        case ast.NamedType(name=("int" | "float" | "bool" | "str") as name):
            return name
        case ast.GenericType(name="list", args=(ast.NamedType(name=("int" | "float" | "bool" | "str") as item),)):
            return f"list[{item}]"
        case ast.NamedType(name="list"):
            return "list[any]"
        case None:
            return _kind_of_default(param.default)
        case _:
            return "any"


def _kind_of_default(default: ast.Expr | None) -> str:
    try:
        value = literal_value(default) if default is not None else None
    except NotLiteral:
        return "any"
    if isinstance(value, list):
        kinds = {type(item).__name__ for item in value} or {"any"}
        return f"list[{kinds.pop()}]" if len(kinds) == 1 else "list[any]"
    return type(value).__name__ if isinstance(value, (bool, int, float, str)) else "any"


def _help(param: ast.ParamDecl) -> str:
    text = " ".join((param.doc or "").split())
    if param.default is None or isinstance(param.default, ast.NoneLit):
        return text
    default = " ".join(param.default.span.text.split())
    return f"{text}  [default: {default}]".strip()
