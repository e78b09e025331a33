"""Methods of strings, lists, tuples and dicts: those of Python that the language has, with its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ocannl_lang.host.context import HostContext, HostError, HostFunction
from ocannl_lang.host.values import kind_of

_STRING = (
    "upper", "lower", "title", "capitalize", "strip", "lstrip", "rstrip", "removeprefix", "removesuffix", "split",
    "rsplit", "splitlines", "partition", "join", "replace", "startswith", "endswith", "find", "rfind", "index", "count",
    "isdigit", "isalpha", "isalnum", "isspace", "isupper", "islower", "zfill", "ljust", "rjust", "center", "format",
)  # fmt: skip
_LIST = ("append", "extend", "insert", "pop", "remove", "index", "count", "reverse", "copy", "clear")
_TUPLE = ("index", "count")
_DICT = ("keys", "values", "items", "get", "pop", "update", "setdefault", "copy", "clear")

METHODS: dict[tuple[str, str], HostFunction] = {}
"""By the type (`str`, `list`, `tuple`, `dict`) and the name; the value comes first among the arguments."""


def method_of(value: object, name: str) -> HostFunction | None:
    """The method of that name that `value` has."""
    return METHODS.get((type(value).__name__, name))


def _adopt(kind: str, name: str, result: Callable[[Any], Any] = lambda value: value) -> None:
    """Registers Python's own method; what it refuses is a fault of the user's program."""

    def call(_host: HostContext, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> Any:
        try:
            return result(getattr(args[0], name)(*args[1:], **kwargs))
        except KeyError as error:
            raise HostError(f"there is no key {error.args[0]!r}") from None
        except (ValueError, IndexError) as error:
            raise HostError(f"{name}: {_reason(name, args, error)}") from None
        except TypeError as error:
            raise HostError(f"{name}: {error}", "E0302") from None

    METHODS[kind, name] = call


def _reason(name: str, args: tuple[Any, ...], error: Exception) -> str:
    value = args[0]
    match name:
        case "index" | "remove" if len(args) > 1:
            return f"{kind_of(value)} does not hold {args[1]!r}"
        case "pop":
            return f"{kind_of(value)} of {len(value)} has no such element"
        case _:
            return str(error)


def _join(_host: HostContext, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> str:
    parts = list(args[1]) if len(args) == 2 and not kwargs else None
    if parts is None or not all(isinstance(part, str) for part in parts):
        raise HostError("join takes a list of strings", "E0301")
    return args[0].join(parts)


def _sort(host: HostContext, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> None:
    from ocannl_lang.host.builtins import sort

    items, *others = args
    if others or set(kwargs) - {"key", "reverse"}:
        raise HostError("wrong arguments for sort(key = none, reverse = false)", "E0302")
    items[:] = sort(host, items, kwargs.get("key"), kwargs.get("reverse", False))


for _name in _STRING:
    _adopt("str", _name)
for _name in _LIST:
    _adopt("list", _name)
for _name in _TUPLE:
    _adopt("tuple", _name)
for _name in _DICT:
    _adopt("dict", _name, list if _name in ("keys", "values", "items") else lambda value: value)
METHODS["str", "join"] = _join
METHODS["list", "sort"] = _sort
