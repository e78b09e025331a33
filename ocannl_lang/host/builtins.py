"""The functions that host code may call by name: `HOST_FUNCTIONS`.

Each is written as a plain Python function whose signature is the one users see; `host_function` makes a `HostFunction`
of it. The same functions serve static values while a program is built, where nothing that reads, prints or draws is
reached.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocannl_lang.host import values as host_values
from ocannl_lang.host.array import HostArray
from ocannl_lang.host.context import HostContext, HostError, HostFunction
from ocannl_lang.host.formatting import format_value, show
from ocannl_lang.host.methods import METHODS
from ocannl_lang.host.progress import Tracked
from ocannl_lang.host.static_math import STATIC_MATH
from ocn_runtime import readers
from ocn_runtime.checkpoints import CheckpointError

__all__ = [
    "HOST_FUNCTIONS",
    "METHODS",
    "HostContext",
    "HostError",
    "HostFunction",
    "format_value",
    "host_function",
    "show",
]

HOST_FUNCTIONS: dict[str, HostFunction] = {}
"""By the name in the language."""


def host_function(name: str, function: Callable[..., Any]) -> HostFunction:
    """A `HostFunction` of a Python function whose first parameter is the context; wrong arguments are E0302."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(host: HostContext, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> Any:
        try:
            signature.bind(host, *args, **kwargs)
        except TypeError as error:
            raise HostError(f"wrong arguments for {name}({_shown(signature)}): {error}", "E0302") from None
        return function(host, *args, **kwargs)

    return call


def _shown(signature: inspect.Signature) -> str:
    texts: list[str] = []
    for parameter in list(signature.parameters.values())[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            texts.append(f"{parameter.name}…")
        elif parameter.default is not parameter.empty:
            texts.append(f"{parameter.name} = {show(parameter.default)}")
        else:
            texts.append(parameter.name)
    return ", ".join(texts)


def _builtin(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        HOST_FUNCTIONS[name] = host_function(name, function)
        return function

    return register


# ---------------------------------------------------------------- printing and progress


@_builtin("print")
def _print(host: HostContext, *values: Any, sep: str = " ", end: str = "\n") -> None:
    texts = [format_value(value) for value in values]
    # Tables stand on lines of their own.
    host.write(("\n" if any("\n" in text for text in texts) and sep == " " else sep).join(texts) + end)


@_builtin("progress")
def _progress(host: HostContext, values: Any) -> Tracked:
    if isinstance(values, HostArray):
        values = list(_elements(values))
    _elements(values)
    return Tracked(values, host.bars)


# ---------------------------------------------------------------- sequences


@dataclass(frozen=True, slots=True)
class Pairing:
    """What `enumerate` and `zip` give of values that are made as they are gone through, such as batches."""

    make: Callable[[], Iterator[Any]]
    length: int | None

    def __iter__(self) -> Iterator[Any]:
        return self.make()

    def __len__(self) -> int:
        if self.length is None:
            raise TypeError
        return self.length


def _elements(value: Any, what: str = "this") -> Any:
    return host_values.elements(value, what)


def _is_static(value: Any) -> bool:
    return isinstance(value, (list, tuple, range, str, dict, HostArray))


@_builtin("len")
def _len(_host: HostContext, value: Any) -> int:
    return host_values.length(value)


@_builtin("range")
def _range(_host: HostContext, start: Any, stop: Any = None, step: Any = 1) -> range:
    first, by = host_values.integer(start, "the start of a range"), host_values.integer(step, "the step of a range")
    if by == 0:
        raise HostError("the step of a range must not be 0")
    return range(first) if stop is None else range(first, host_values.integer(stop, "the end of a range"), by)


@_builtin("enumerate")
def _enumerate(_host: HostContext, values: Any, start: Any = 0) -> Any:
    if _is_static(values):
        return list(enumerate(_elements(values), start))
    elements = _elements(values)
    return Pairing(lambda: enumerate(iter(elements), start), _length_or_none(values))


@_builtin("zip")
def _zip(_host: HostContext, *lists: Any) -> Any:
    if all(_is_static(value) for value in lists):
        return list(zip(*(_elements(value) for value in lists), strict=False))
    lengths = [_length_or_none(value) for value in lists]
    known = [length for length in lengths if length is not None]
    return Pairing(
        lambda: zip(*(_elements(value) for value in lists), strict=False),
        min(known) if len(known) == len(lengths) else None,
    )


def _length_or_none(value: Any) -> int | None:
    try:
        return len(value)
    except TypeError:
        return None


@_builtin("sorted")
def _sorted(host: HostContext, values: Any, key: Any = None, reverse: Any = False) -> list[Any]:
    return sort(host, list(_elements(values)), key, reverse)


def sort(host: HostContext, items: list[Any], key: Any, reverse: Any) -> list[Any]:
    """The items in ascending order of themselves, or of what the function `key` makes of them."""
    keys = [_comparable(item if key is None else host.call(key, (item,))) for item in items]
    try:
        order = sorted(range(len(items)), key=keys.__getitem__, reverse=bool(reverse))
    except TypeError:
        kinds = sorted({host_values.kind_of(item) for item in items})
        raise HostError(f"{' and '.join(kinds)} have no order", "E0301") from None
    return [items[position] for position in order]


def _comparable(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_comparable(v) for v in value)
    found = host_values.number_or_none(value)
    return value if found is None else found


@_builtin("reversed")
def _reversed(_host: HostContext, values: Any) -> list[Any]:
    return list(_elements(values))[::-1]


@_builtin("list")
def _list(_host: HostContext, values: Any = ()) -> list[Any]:
    return list(_elements(values))


@_builtin("tuple")
def _tuple(_host: HostContext, values: Any = ()) -> tuple[Any, ...]:
    return tuple(_elements(values))


@_builtin("dict")
def _dict(_host: HostContext, *pairs_or_dict: Any, **entries: Any) -> dict[Any, Any]:
    if len(pairs_or_dict) > 1:
        raise HostError("dict takes one list of pairs, and entries by name", "E0302")
    pairs = pairs_or_dict[0] if pairs_or_dict else {}
    try:
        return dict(pairs if isinstance(pairs, dict) else [tuple(pair) for pair in _elements(pairs)], **entries)
    except (TypeError, ValueError):
        raise HostError(
            "dict takes pairs of a key and a value; a key is a string, a number or a tuple", "E0301"
        ) from None


# ---------------------------------------------------------------- numbers


def _reduced(name: str, of_numbers: Callable[[list[host_values.Number]], Any], of_array: Callable[[Any], Any]) -> None:
    """Registers a reducer of lists of numbers and, to a single number, of arrays; `max(a, b)` and the like of several numbers."""

    def reduce(_host: HostContext, x: Any, *others: Any) -> Any:
        if isinstance(x, HostArray) and not others:
            if x.data.size == 0 and name in ("max", "min"):
                raise HostError(f"an array without elements has no {name}")
            return HostArray(np.asarray(of_array(x.data)), 0, 0, 0)
        items = [x, *others] if others else list(_elements(x, f"what {name} takes"))
        if any(isinstance(item, HostArray) and item.data.size != 1 for item in items):
            raise HostError(f"{name} of several arrays: stack them with `tensor([…])`", "E0301")
        found = [host_values.number(item, f"what {name} takes") for item in items]
        if not found and name in ("max", "min", "mean"):
            raise HostError(f"an empty list has no {name}")
        return of_numbers(found)

    HOST_FUNCTIONS[name] = host_function(name, reduce)


def _accumulated(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Sums and products: of floats in double precision and rounded once, of ints as i32, of i64 as i64."""

    def reduce(data: Any) -> Any:
        if data.dtype.kind in "biu":
            return function(data, dtype=np.int64).astype(np.int64 if data.dtype == np.int64 else np.int32)
        return function(data, dtype=np.float64).astype(data.dtype)

    return reduce


def _mean(data: Any) -> Any:
    mean = np.mean(data, dtype=np.float64)
    return mean.astype(np.float32 if data.dtype.kind in "biu" else data.dtype)


_reduced("sum", sum, _accumulated(np.sum))
_reduced("prod", math.prod, _accumulated(np.prod))
_reduced("mean", lambda items: math.fsum(items) / len(items), _mean)
_reduced("max", max, np.max)
_reduced("min", min, np.min)
_reduced("any", any, lambda data: np.any(data).astype(np.uint8))
_reduced("all", all, lambda data: np.all(data).astype(np.uint8))


def _math(name: str, function: Callable[..., host_values.Number]) -> None:
    def apply(_host: HostContext, *numbers: Any) -> host_values.Number:
        found = [host_values.number(n, f"what {name} takes") for n in numbers]
        try:
            return function(*found)
        except (ValueError, ZeroDivisionError):
            raise HostError(f"{name}({', '.join(map(repr, found))}) has no value") from None
        except OverflowError:
            raise HostError(f"{name}({', '.join(map(repr, found))}) is too large") from None
        except TypeError:
            raise HostError(f"{name} does not take {len(found)} numbers", "E0302") from None

    HOST_FUNCTIONS[name] = host_function(name, apply)


for _name, _function in STATIC_MATH.items():
    _math(_name, _function)


@_builtin("int")
def _int(_host: HostContext, value: Any) -> int:
    if isinstance(value, str):
        try:
            return int(value.strip(), 0 if value.strip().lower().startswith(("0x", "-0x")) else 10)
        except ValueError:
            raise HostError(f"{show(value)} is no whole number") from None
    found = host_values.number(value, "what int takes")
    if not math.isfinite(found):
        raise HostError(f"{show(found)} is no whole number")
    return int(found)


@_builtin("float")
def _float(_host: HostContext, value: Any) -> float:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            raise HostError(f"{show(value)} is no number") from None
    return float(host_values.number(value, "what float takes"))


@_builtin("str")
def _str(_host: HostContext, value: Any) -> str:
    return format_value(value)


@_builtin("bool")
def _bool(_host: HostContext, value: Any) -> bool:
    return host_values.number(value, "what bool takes") != 0


@_builtin("close")
def _close(_host: HostContext, a: Any, b: Any, tolerance: Any = 1e-6) -> bool:
    return close(a, b, float(host_values.number(tolerance, "the tolerance")))


def close(a: Any, b: Any, tolerance: float) -> bool:
    """Whether `a` and `b` differ nowhere by more than `tolerance`: numbers, arrays, and lists or tuples of them.

    Equal infinities are close, NaN is close to nothing. A single number is compared with each element of an array.
    """
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        if len(a) != len(b):
            raise HostError(f"there is nothing to compare: {len(a)} values and {len(b)}", "E0301")
        return all(close(x, y, tolerance) for x, y in zip(a, b, strict=True))
    left, right = host_values.array(a, "the first value"), host_values.array(b, "the second value")
    if left.shape != right.shape and left.data.ndim and right.data.ndim:
        raise HostError(f"the sizes differ: {host_values.kind_of(left)} and {host_values.kind_of(right)}", "E0401")
    x, y = left.data.astype(np.float64), right.data.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return bool(np.all((x == y) | (np.abs(x - y) <= tolerance)))


# ---------------------------------------------------------------- random numbers


@_builtin("random")
def _random(host: HostContext) -> float:
    return host.random.uniform()


@_builtin("choice")
def _choice(host: HostContext, weights: Any) -> int:
    found = host_values.numbers(weights, "the weights")
    if found.size == 0 or not np.all(np.isfinite(found)) or found.min() < 0 or found.max() <= 0:
        raise HostError("the weights of a choice must be numbers that are not negative, and not all 0")
    return host.random.choice(found)


@_builtin("shuffle")
def _shuffle(host: HostContext, values: Any) -> Any:
    order = host.random.permutation(host_values.length(values))
    if isinstance(values, HostArray):
        return host_values.take(values, order)
    items = list(_elements(values))
    return [items[position] for position in order]


# ---------------------------------------------------------------- files


@_builtin("read_array")
def _read_array(host: HostContext, file: Any) -> HostArray:
    name, member = readers.split_member(host_values.string(file, "the name of a file"))
    try:
        return HostArray.of(readers.read_array(f"{host.input_path(name)}{member}"))
    except readers.DataError as error:
        raise HostError(error.message, "E0801") from error


@_builtin("read_text")
def _read_text(host: HostContext, file: Any) -> str:
    try:
        return readers.read_text(host.input_path(host_values.string(file, "the name of a file")))
    except readers.DataError as error:
        raise HostError(error.message, "E0801") from error


@_builtin("save")
def _save(host: HostContext, value: Any, file: Any) -> None:
    path = host.output_path(host_values.string(file, "the name of a file"))
    try:
        host.save(value, path)
    except CheckpointError as error:
        raise HostError(error.message, "E0803") from error
    except OSError as error:
        raise HostError(f"{path} cannot be written: {error.strerror or error}", "E0801") from error


@_builtin("load")
def _load(host: HostContext, value: Any, file: Any) -> None:
    path = host.input_path(host_values.string(file, "the name of a file"))
    try:
        host.load(value, path)
    except CheckpointError as error:
        raise HostError(error.message, "E0803") from error
    except FileNotFoundError as error:
        raise HostError(f"there is no file {path}", "E0801") from error
    except OSError as error:
        raise HostError(f"{path} cannot be read: {error.strerror or error}", "E0801") from error
