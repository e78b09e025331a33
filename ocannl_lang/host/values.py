"""What host functions need to know of values: their kind in words, as numbers, and one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocannl_lang.host.array import HostArray
from ocannl_lang.host.context import HostError
from ocannl_lang.host.printing import type_text

Number = int | float


def kind_of(value: object) -> str:
    """What a value is, in words for a message: `a list`, `the array f32[2 | 3]`."""
    match value:
        case None:
            return "none"
        case bool():
            return "a bool"
        case int():
            return "an int"
        case float():
            return "a float"
        case str():
            return "a string"
        case list():
            return "a list"
        case tuple():
            return "a tuple"
        case dict():
            return "a dict"
        case range():
            return "a range"
        case HostArray():
            return f"the array {type_text(value)}" if value.data.ndim else f"the {type_text(value)} number"
        case _:
            return "this value"


def number_or_none(value: object) -> Number | None:
    """A static number, or the number in an array that holds just one; None for everything else."""
    match value:
        case bool():
            return int(value)
        case int() | float():
            return value
        case HostArray() if value.data.size == 1:
            return item(value.data.reshape(()))
        case _:
            return None


def item(data: NDArray[Any]) -> Number:
    """The number in an array without axes."""
    return int(data) if data.dtype.kind in "biu" else float(data)


def number(value: object, what: str) -> Number:
    """The number that `value` is or holds; `what` names it in the message if it is none."""
    found = number_or_none(value)
    if found is None:
        raise HostError(f"{what} must be a number, not {kind_of(value)}", "E0301")
    return found


def integer(value: object, what: str) -> int:
    found = number_or_none(value)
    if not isinstance(found, int):
        raise HostError(f"{what} must be an int, not {kind_of(value)}", "E0301")
    return found


def string(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise HostError(f"{what} must be a string, not {kind_of(value)}", "E0301")
    return value


def numbers(value: object, what: str) -> NDArray[np.float64]:
    """A list of numbers or an array with one long axis, as floats."""
    data = np.asarray(value.data if isinstance(value, HostArray) else [number(v, what) for v in elements(value, what)])
    long = tuple(size for size in data.shape if size != 1)
    if len(long) > 1:
        raise HostError(f"{what} must have one axis, not {kind_of(value)}", "E0301")
    return data.astype(np.float64).reshape(-1)


def array(value: object, what: str) -> HostArray:
    """An array as it is; numbers in lists, nested to any depth, as f32 (i32 if all are ints) with the first axis as batch."""
    if isinstance(value, HostArray):
        return value
    if isinstance(value, (list, tuple, range)) or number_or_none(value) is not None:
        try:
            data = np.asarray(_plain(value))
        except ValueError:
            raise HostError(f"{what} holds lists of different lengths", "E0301") from None
        if data.dtype.kind in "biu":
            return HostArray.of(data.astype(np.int32))
        if data.dtype.kind == "f":
            return HostArray.of(data.astype(np.float32))
    raise HostError(f"{what} must be an array, not {kind_of(value)}", "E0301")


def elements(value: object, what: str = "this") -> Iterable[Any]:
    """The elements of a list, tuple, range, string or iterable, the keys of a dict, the parts of an array along its first axis."""
    match value:
        case HostArray():
            return parts(value)
        case _ if isinstance(value, Iterable):
            return value
        case _:
            raise HostError(f"{what} must be a list or an array, not {kind_of(value)}", "E0301")


def parts(value: HostArray) -> Iterator[HostArray]:
    """The arrays `t[0]`, `t[1]`, …: slices of the first batch axis, of the first axis where there is no batch row."""
    if value.data.ndim == 0:
        raise HostError("a single number has no parts", "E0301")
    for position in range(value.shape[0]):
        yield part(value, position)


def part(value: HostArray, position: int) -> HostArray:
    """`t[position]`, without a copy."""
    batch, output, inputs = value.batch, value.output, value.input
    if batch:
        batch -= 1
    elif output:
        output -= 1
    else:
        inputs -= 1
    return HostArray(value.data[position, ...], batch, output, inputs, value.bases[1:])


def take(value: HostArray, positions: NDArray[Any] | slice) -> HostArray:
    """The same positions of the first axis, in this order; the rows stay as they are."""
    return HostArray(value.data[positions], value.batch, value.output, value.input, value.bases)


def length(value: object) -> int:
    """`len`: elements of a list, string, …; the size of the first axis of an array."""
    if isinstance(value, HostArray):
        if value.data.ndim == 0:
            raise HostError("a single number has no length", "E0301")
        return value.shape[0]
    try:
        return len(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        raise HostError(f"{kind_of(value)} has no length", "E0301") from None


def _plain(value: Any) -> Any:
    """Nested lists with the numbers and arrays of numpy in them."""
    if isinstance(value, HostArray):
        return value.data
    if isinstance(value, (list, tuple, range)):
        return [_plain(v) for v in value]
    return value
