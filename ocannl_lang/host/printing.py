"""Tensors as text: their type, then their values as a table whose axes say which row of the shape they belong to.

    f32[2 | 3]
    batch \\ output       0       1       2
                 0  0.1000  0.2000  0.3000
                 1  0.4000  0.5000  0.6000

The last axis runs to the right, the one before it down; each position of the others has a table of its own. Long axes
show their first and last positions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from ocannl_lang.host.array import HostArray
from ocn_runtime.precisions import dtype_name, is_float

THRESHOLD = 1000  # elements from which on long axes are cut
EDGE = 3  # positions shown at either end of an axis that is cut
WIDTH = 120  # columns of text

Formatter = Callable[[NDArray[Any]], list[str]]
Positions = list[Union[int, None]]  # of one axis; None stands for what is left out


def array_text(array: HostArray, spec: str = "") -> str:
    """The array's type and values; `spec` is a number format of Python for its elements, e.g. `.2f`."""
    if array.data.ndim == 0:
        return number_text(array.data[()], spec)
    title = type_text(array)
    if array.data.size == 0:
        return f"{title} without elements"
    formatter: Formatter = (lambda values: [number_text(v, spec) for v in values]) if spec else _aligned
    shown = [_positions(size, array.data.size) for size in array.shape]
    shown[-1] = _fit(array, shown, formatter)
    cells = _cells(array.data, shown, formatter)
    if array.data.ndim == 1:
        return f"{title}: " + "  ".join(str(cells[p]).strip() if p is not None else "..." for p in shown[0])
    return "\n".join([title, *_tables(array, shown, cells, ())])


def type_text(array: HostArray) -> str:
    """The type in the language's notation: `f32[n | 784 -> 128]`; an empty batch or input row is left out."""
    sizes = [
        str(size) if basis == "default" else f"{size}:{basis}"
        for size, basis in itertools.zip_longest(array.shape, array.bases, fillvalue="default")
    ]
    batch = sizes[: array.batch]
    output = sizes[array.batch : array.batch + array.output]
    inputs = sizes[array.batch + array.output :]
    precision = precision_name(array.data.dtype)
    if not sizes:
        return precision
    text = ", ".join(output)
    if inputs:
        text = f"{', '.join(inputs)} -> {text}".rstrip()
    if batch:
        text = f"{', '.join(batch)} | {text}"
    return f"{precision}[{text}]"


def precision_name(dtype: np.dtype[Any]) -> str:
    """The precision of an array's elements; logical values are u8."""
    return "u8" if dtype.kind == "b" else dtype_name(dtype)


def axis_names(array: HostArray) -> list[str]:
    """A name for each axis: its basis, else its row, with the place in the row (`2nd output`) where that has several."""
    names: list[str] = []
    for row, count in (("batch", array.batch), ("output", array.output), ("input", array.input)):
        names.extend(row if count == 1 else f"{_ordinal(i + 1)} {row}" for i in range(count))
    bases = itertools.chain(array.bases, itertools.repeat("default"))
    return [name if basis == "default" else basis for name, basis in zip(names, bases, strict=False)]


def number_text(value: Any, spec: str = "") -> str:
    """One number, as short as its precision allows: the f32 0.1 is `0.1`."""
    item = np.asarray(value)[()]
    if spec:
        return format(item.item() if item.dtype.kind in "biuf" else float(item), spec)
    if item.dtype.kind in "biu":
        return str(int(item))
    return str(item.item()) if item.dtype == np.float64 else str(item)


def _positions(size: int, total: int) -> Positions:
    """The positions to show of an axis of this size."""
    if total <= THRESHOLD or size <= 2 * EDGE + 1:
        return list(range(size))
    return [*range(EDGE), None, *range(size - EDGE, size)]


def _fit(array: HostArray, shown: list[Positions], formatter: Formatter) -> Positions:
    """The positions of the last axis that fit into a line of text."""
    cell = max(len(text) for text in _cells(array.data, shown, formatter).values()) + 2
    names = axis_names(array)
    corner = "" if array.data.ndim == 1 else f"{names[-2]} \\ {names[-1]}"
    room = max((WIDTH - len(corner)) // cell, 2 * EDGE + 1)
    if len(shown[-1]) <= room:
        return shown[-1]
    left, right = room // 2, (room - 1) // 2
    size = array.shape[-1]
    return [*range(left), None, *range(size - right, size)]


def _cells(data: NDArray[Any], shown: list[Positions], formatter: Formatter) -> dict[Any, str]:
    """The text of each element to show, by its position, all in one form."""
    known = [[p for p in positions if p is not None] for positions in shown]
    texts = formatter(data[np.ix_(*known)].reshape(-1))
    positions = itertools.product(*known) if data.ndim > 1 else known[0]
    return dict(zip(positions, texts, strict=True))


def _tables(array: HostArray, shown: list[Positions], cells: dict[Any, str], outer: tuple[int, ...]) -> Iterator[str]:
    """The tables of all that lies at the positions `outer` of the first axes."""
    names = axis_names(array)
    axis = len(outer)
    if axis < array.data.ndim - 2:
        for position in shown[axis]:
            if position is None:
                yield "..."
            else:
                yield from _tables(array, shown, cells, (*outer, position))
        return
    if outer:
        yield ", ".join(f"{name} {position}" for name, position in zip(names, outer, strict=False))
    rows, columns = shown[-2:]
    lines = [[f"{names[-2]} \\ {names[-1]}", *("..." if p is None else str(p) for p in columns)]]
    for row in rows:
        if row is None:
            lines.append(["..." for _ in lines[0]])
        else:
            lines.append([str(row), *("..." if p is None else cells[(*outer, row, p)] for p in columns)])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        yield "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _aligned(values: NDArray[Any]) -> list[str]:
    """Numbers with points below each other and four digits after them at most; scientific where all are tiny or one is huge."""
    if is_float(values.dtype) and values.dtype.kind != "f":
        values = values.astype(np.float32)
    finite = np.abs(values[np.isfinite(values)].astype(np.float64))
    tiny = 0 < finite.max(initial=0) < 1e-3
    text = np.array2string(
        values, separator=",", precision=4, suppress_small=not tiny, threshold=values.size + 1, max_line_width=1 << 30
    )
    return text[1:-1].split(",")


def _ordinal(number: int) -> str:
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number, 'th') }"
