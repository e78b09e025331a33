"""Plots as text: points on a canvas of braille cells, bars, shades. Each function gives the lines of a picture."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WIDTH, HEIGHT = 64, 16  # characters of a canvas
MARKS = "ox+*#@%&"  # for the points of each kind
REGIONS = " .:-=~"  # for the regions of each kind
_SHADES = " .:-=+*#%@"
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # braille dots by row and column


@dataclass(slots=True)
class Canvas:
    """A grid of 2 by 4 dots in each character, over the ranges of x and y that it shows."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    dots: NDArray[np.uint8] = field(default_factory=lambda: np.zeros((4 * HEIGHT, 2 * WIDTH), np.uint8))

    def points(self, xs: Floats, ys: Floats) -> None:
        inside = np.isfinite(xs) & np.isfinite(ys)
        columns = _scale(xs[inside], self.x_range, self.dots.shape[1])
        rows = self.dots.shape[0] - 1 - _scale(ys[inside], self.y_range, self.dots.shape[0])
        self.dots[rows, columns] = 1

    def line(self, xs: Floats, ys: Floats) -> None:
        """The points joined: as many between two as there are dots."""
        for i in range(len(xs) - 1):
            if np.isfinite([xs[i], xs[i + 1], ys[i], ys[i + 1]]).all():
                self.points(*(np.linspace(v[i], v[i + 1], 2 * WIDTH) for v in (xs, ys)))
        self.points(xs, ys)

    def lines(self, braille: bool) -> list[str]:
        """The picture with its ranges at the axes."""
        rows: list[str] = []
        for row in range(HEIGHT):
            cells: list[str] = []
            for column in range(WIDTH):
                block = self.dots[4 * row : 4 * row + 4, 2 * column : 2 * column + 2]
                code = sum(_DOTS[i][j] for i in range(4) for j in range(2) if block[i, j])
                cells.append(chr(0x2800 + code) if braille and code else "*" if code else " ")
            rows.append("".join(cells))
        return framed(rows, self.x_range, self.y_range)


def framed(rows: Sequence[str], x_range: tuple[float, float], y_range: tuple[float, float]) -> list[str]:
    """Rows of characters with the ranges of both axes written at their ends."""
    top, bottom = f"{y_range[1]:.4g}", f"{y_range[0]:.4g}"
    margin = max(len(top), len(bottom))
    labels = [top, *[""] * (len(rows) - 2), bottom]
    lines = [f"{label:>{margin}} |{row}".rstrip() for label, row in zip(labels, rows, strict=True)]
    left, right = f"{x_range[0]:.4g}", f"{x_range[1]:.4g}"
    width = max(map(len, rows))
    lines.append(" " * (margin + 1) + "+" + "-" * width)
    lines.append(" " * (margin + 2) + left + right.rjust(width - len(left)))
    return lines


def bars(edges: Floats, counts: NDArray[np.int64]) -> list[str]:
    """A histogram: a line for each bin, with its bounds and its count."""
    bounds = [f"{low:.4g} to {high:.4g}" for low, high in itertools.pairwise(edges)]
    margin = max(map(len, bounds))
    most = max(int(counts.max()), 1)
    return [
        f"{bound:>{margin}} |{'#' * round(count / most * WIDTH)} {count}"
        for bound, count in zip(bounds, counts.tolist(), strict=True)
    ]


def shades(image: Floats) -> list[str]:
    """A picture in shades of grey, two characters for a pixel: `image` holds rows of values, of which the largest is densest."""
    low, high = float(np.nanmin(image)), float(np.nanmax(image))
    level = np.nan_to_num((image - low) / ((high - low) or 1.0))
    index = np.minimum((level * len(_SHADES)).astype(int), len(_SHADES) - 1)
    return ["".join(_SHADES[i] * 2 for i in row).rstrip() for row in index]


def regions(
    kinds: NDArray[np.int64], points: Floats, labels: NDArray[np.int64], ranges: tuple[tuple[float, float], ...]
) -> list[str]:
    """The kind of each place of a grid (rows from low y to high y) with the points that are known on top."""
    height, width = kinds.shape
    cells = [[REGIONS[kind % len(REGIONS)] for kind in row] for row in kinds.tolist()]
    columns, rows = _scale(points[:, 0], ranges[0], width), _scale(points[:, 1], ranges[1], height)
    for row, column, label in zip(rows.tolist(), columns.tolist(), labels.tolist(), strict=True):
        cells[row][column] = MARKS[label % len(MARKS)]
    return framed(["".join(row) for row in reversed(cells)], ranges[0], ranges[1])


def range_of(values: Floats, margin: float = 0.0) -> tuple[float, float]:
    """The least and greatest finite value, never equal; with a margin as a share of the distance."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    extra = margin * (high - low)
    return low - extra, high + extra


def _scale(values: Floats, bounds: tuple[float, float], size: int) -> NDArray[np.int64]:
    """Values within the bounds as positions below `size`."""
    share = (values - bounds[0]) / (bounds[1] - bounds[0])
    return np.clip(np.rint(share * (size - 1)), 0, size - 1).astype(np.int64)
