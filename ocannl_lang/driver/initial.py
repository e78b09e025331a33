"""How parameters and states begin, as data: what makes their first contents again without the program's text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ocn_runtime.precisions import DTYPES

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Zeros:
    """All 0."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """As a parameter without an initial value: random, from the seed and the sizes of its rows."""

    batch: tuple[int, ...]
    output: tuple[int, ...]
    input: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Filled:
    """The same element everywhere; `element` are its bytes in hexadecimal digits."""

    element: str


@dataclass(frozen=True, slots=True)
class Kept:
    """What the program computes, kept under a name; one for each seed if it is `random`."""

    name: str
    random: bool


Initial = Zeros | Drawn | Filled | Kept


def first_contents(
    initial: Initial, path: str, shape: tuple[int, ...], precision: str, seed: int, kept: Callable[[Kept], bytes | None]
) -> Array | None:
    """The array of a parameter or state, None if it is not `kept` any more."""
    dtype = DTYPES[precision]
    match initial:
        case Zeros():
            return np.zeros(shape, dtype)
        case Drawn(batch, output, input):
            return drawn(path, batch, output, input, precision, seed)
        case Filled(element):
            return np.full(shape, np.frombuffer(bytes.fromhex(element), dtype)[0], dtype)
        case Kept():
            found = kept(initial)
            return None if found is None else np.frombuffer(found, dtype).reshape(shape).copy()


def drawn(
    path: str, batch: tuple[int, ...], output: tuple[int, ...], input: tuple[int, ...], precision: str, seed: int
) -> Array:
    """The first content of a parameter without an initial value."""
    from ocannl_lang.graph.random import default_parameter

    width: Literal["f32", "f64"] = "f64" if precision == "f64" else "f32"
    return default_parameter(path, batch, output, input, seed=seed, prec=width).astype(DTYPES[precision], copy=False)


def filled(array: Array) -> Filled | None:
    """For an array that holds the same element everywhere."""
    if not array.size:
        return None
    flat = np.ascontiguousarray(array).reshape(-1)
    first = flat[:1].tobytes()
    return Filled(first.hex()) if flat.tobytes() == first * flat.size else None


def initial_to_json(initial: Initial | None) -> Any:
    """As lists that JSON can hold."""
    match initial:
        case None:
            return None
        case Zeros():
            return ["zeros"]
        case Drawn(batch, output, input):
            return ["drawn", batch, output, input]
        case Filled(element):
            return ["filled", element]
        case Kept(name, random):
            return ["kept", name, random]


def initial_of_json(data: Any) -> Initial | None:
    """What `initial_to_json` was given."""
    if data is None:
        return None
    match data[0]:
        case "zeros":
            return Zeros()
        case "drawn":
            return Drawn(tuple(data[1]), tuple(data[2]), tuple(data[3]))
        case "filled":
            return Filled(data[1])
        case _:
            return Kept(data[1], data[2])
