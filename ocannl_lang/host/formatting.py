"""Values as text: what `print` and `{…}` in strings make of them, and the notation of Ocn for lists and the like."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ocannl_lang.host.array import HostArray
from ocannl_lang.host.printing import array_text, number_text
from ocannl_lang.host.values import kind_of, number_or_none


def format_value(value: Any, spec: str = "") -> str:
    """The text of `{value:spec}`, with Python's formats for numbers and strings.

    An array with one element formats as its number where there is a format; larger ones and lists format each of their elements. Raises
    `ValueError` where the format does not go with the value.
    """
    try:
        match value:
            case str():
                return format(value, spec)
            case HostArray() if value.data.ndim == 0 or (spec and value.data.size == 1):
                return number_text(value.data.reshape(())[()], spec)
            case HostArray():
                return array_text(value, spec)
            case list() | tuple() if spec:
                return _enclosed(value, [format_value(v, spec) for v in value])
            case bool() | None:
                return format(show(value), spec)
            case int() | float() if spec:
                return format(value, spec)
            case _:
                return format(show(value), spec)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(f"the format `{spec}` does not go with {kind_of(value)}") from None


def show(value: Any) -> str:
    """A value in the notation of the language, strings in quotes: `[1, 2.5, "a", none]`."""
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("{", "{{").replace("}", "}}")
        case int() | float():
            return repr(value)
        case list() | tuple():
            return _enclosed(value, [show(v) for v in value])
        case range():
            plain = f"{value.start}..{value.stop}"
            return plain if value.step == 1 else f"range({value.start}, {value.stop}, {value.step})"
        case dict():
            return _dict_text(value)
        case HostArray() if number_or_none(value) is not None:
            return number_text(value.data.reshape(())[()])
        case HostArray():
            return array_text(value)
        case _:
            return _named(value)


def _named(value: Any) -> str:
    """Ops, instances and other things of the program by their names."""
    for field in ("path", "name"):
        name = getattr(value, field, None)
        if isinstance(name, str) and name:
            return name
    return str(value)


def _enclosed(value: list[Any] | tuple[Any, ...], texts: list[str]) -> str:
    inner = ", ".join(texts)
    if isinstance(value, list):
        return f"[{inner}]"
    return f"({inner},)" if len(texts) == 1 else f"({inner})"


def _dict_text(value: Mapping[Any, Any]) -> str:
    if all(isinstance(key, str) and key.isidentifier() for key in value):
        return f"dict({', '.join(f'{key} = {show(v)}' for key, v in value.items())})"
    return f"dict([{', '.join(f'({show(key)}, {show(v)})' for key, v in value.items())}])"
