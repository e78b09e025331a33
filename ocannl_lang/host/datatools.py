"""What the standard module `data` has in Python: batches, splits, windows over a text, the vocabulary of a text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocannl_lang.host.array import HostArray
from ocannl_lang.host.builtins import host_function
from ocannl_lang.host.context import HostContext, HostError
from ocannl_lang.host.formatting import show
from ocannl_lang.host.objects import HostObject
from ocannl_lang.host.random import HostRandom
from ocannl_lang.host.values import array, elements, integer, kind_of, length, number, numbers, string, take


def batches(_host: HostContext, *arrays: Any, size: Any = None, seed: Any = None, drop_last: Any = False) -> Batches:
    """`batches(x, y, size = 32, seed = epoch)`: parts of `size` along the first axis, the arrays side by side.

    One array gives arrays, several give tuples. With a seed the order is random; a last part that is smaller is kept
    unless `drop_last`.
    """
    if not arrays or size is None:
        raise HostError("batches takes arrays and a size, as in `batches(x, y, size = 32)`", "E0302")
    found = tuple(array(a, "what batches takes") for a in arrays)
    count = _common_length(found)
    if (width := integer(size, "the size of a batch")) < 1:
        raise HostError(f"the size of a batch must be at least 1, not {width}")
    order = None if seed is None else HostRandom(integer(seed, "a seed"), "batches").permutation(count)
    return Batches(found, count // width * width if drop_last else count, width, order)


@dataclass(frozen=True, slots=True, eq=False)
class Batches:
    """The parts of `arrays` in `order`, which can be gone through more than once; `count` elements are used."""

    arrays: tuple[HostArray, ...]
    count: int
    size: int
    order: NDArray[np.int64] | None

    def __len__(self) -> int:
        return -(-self.count // self.size)

    def __iter__(self) -> Iterator[HostArray | tuple[HostArray, ...]]:
        for start in range(0, self.count, self.size):
            end = min(start + self.size, self.count)
            positions = slice(start, end) if self.order is None else self.order[start:end]
            first, *others = [take(a, positions) for a in self.arrays]
            yield (first, *others) if others else first


def split(_host: HostContext, arrays: Any, fractions: Any, seed: Any = None) -> tuple[Any, ...]:
    """`split(x, [0.8, 0.2], seed = 1)`: parts of these shares along the first axis; of a tuple of arrays, tuples of parts.

    With a seed the elements are shuffled first; arrays of one length are shuffled alike by one seed. Shares that add
    up to one use every element.
    """
    together = isinstance(arrays, tuple)
    found = tuple(array(a, "what split takes") for a in (arrays if together else (arrays,)))
    if not found:
        raise HostError("split takes at least one array", "E0302")
    count = _common_length(found)
    shares = [float(number(f, "a share")) for f in elements(fractions, "what split takes as shares")]
    if not shares or min(shares) < 0 or sum(shares) > 1 + 1e-9:
        raise HostError(f"the shares of a split must be 0 or more and add up to 1 at most: {show(shares)}")
    order = np.arange(count) if seed is None else HostRandom(integer(seed, "a seed"), "split").permutation(count)
    bounds = [0, *np.rint(np.cumsum(shares) * count).astype(int).tolist()]
    parts: list[Any] = []
    for start, end in itertools.pairwise(bounds):
        chosen = tuple(take(a, order[start:end]) for a in found)
        parts.append(chosen if together else chosen[0])
    return tuple(parts)


def windows(_host: HostContext, ids: Any, length: Any, step: Any = 1) -> HostArray:
    """`windows(ids, 8)`: all stretches of this length, as `i32[windows, length | ]`; they start `step` positions apart."""
    data = ids.data if isinstance(ids, HostArray) else np.asarray(numbers(ids, "what windows takes")).astype(np.int32)
    if data.ndim != 1:
        raise HostError(f"windows takes a list or an array with one axis, not {kind_of(ids)}", "E0301")
    size, by = integer(length, "the length of a window"), integer(step, "the step between windows")
    if size < 1 or by < 1:
        raise HostError("the length of a window and the step between windows must be at least 1")
    if size > len(data):
        raise HostError(f"a window of {size} does not fit into {len(data)} positions")
    return HostArray(np.lib.stride_tricks.sliding_window_view(data, size)[::by].copy(), 2, 0, 0)


def char_vocabulary(_host: HostContext, text: Any) -> HostObject:
    """The characters of `text`, each once, in order: `chars`, `size`, `encode(text)` to `i32[n | ]`, `decode(ids)` to a string."""
    chars = "".join(sorted(set(string(text, "what char_vocabulary takes"))))
    position = {char: i for i, char in enumerate(chars)}

    def encode(_host: HostContext, text: Any) -> HostArray:
        try:
            ids = [position[char] for char in string(text, "what encode takes")]
        except KeyError as error:
            raise HostError(f"the vocabulary has no {show(error.args[0])}") from None
        return HostArray.of(np.array(ids, np.int32))

    def decode(_host: HostContext, ids: Any) -> str:
        found = [integer(i, "an id") for i in elements(ids, "what decode takes")]
        outside = [i for i in found if not 0 <= i < len(chars)]
        if outside:
            raise HostError(f"the vocabulary has {len(chars)} characters, none at {outside[0]}")
        return "".join(chars[i] for i in found)

    members = {
        "chars": chars,
        "size": len(chars),
        "encode": host_function("encode", encode),
        "decode": host_function("decode", decode),
    }
    return HostObject("a vocabulary", members, len(chars))


def _common_length(arrays: tuple[HostArray, ...]) -> int:
    counts = [length(a) for a in arrays]
    if len(set(counts)) > 1:
        kinds = ", ".join(kind_of(a) for a in arrays)
        raise HostError(f"the arrays differ in length: {kinds}", "E0401")
    return counts[0]
