"""What the standard module `plot` has in Python: pictures as PNG files, by matplotlib, or as text.

Every function takes `file`, by name or as a last string: the picture then goes to that file, else it is printed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocannl_lang.host import text_plots
from ocannl_lang.host.array import HostArray
from ocannl_lang.host.context import HostContext, HostError
from ocannl_lang.host.text_plots import Canvas, Floats
from ocannl_lang.host.values import array, elements, integer, kind_of, numbers, string

Draw = Callable[[Any], None]  # onto matplotlib's axes


def line(
    host: HostContext, *series: Any, x: Any = None, labels: Any = None, title: Any = None, file: Any = None
) -> None:
    """`plot.line(losses, "loss.png")`: one or more series of numbers over their positions, or over `x`."""
    values, file = _with_file(series, file)
    if not values:
        raise HostError("line takes at least one series of numbers", "E0302")
    ys = [numbers(v, "a series") for v in values]
    positions = None if x is None else numbers(x, "x")
    for y in ys:
        if positions is not None and len(positions) != len(y):
            raise HostError(f"x has {len(positions)} values, a series {len(y)}", "E0401")
    xs = [np.arange(len(y), dtype=np.float64) if positions is None else positions for y in ys]
    names = _names(labels, len(ys))

    def draw(axes: Any) -> None:
        for one_x, y, name in zip(xs, ys, names, strict=True):
            axes.plot(one_x, y, label=name)
        if any(names):
            axes.legend()

    def text() -> list[str]:
        canvas = Canvas(text_plots.range_of(np.concatenate(xs)), text_plots.range_of(np.concatenate(ys)))
        for one_x, y in zip(xs, ys, strict=True):
            canvas.line(one_x, y)
        return canvas.lines(_braille(host))

    _show(host, draw, text, title, file)


def scatter(host: HostContext, *points: Any, labels: Any = None, title: Any = None, file: Any = None) -> None:
    """`plot.scatter(points, labels)`: points as `[n | 2]`, or their x and y one after the other; a kind for each, if given."""
    values, file = _with_file(points, file)
    places, kinds = _points(values, labels)
    kinds = np.zeros(len(places), np.int64) if kinds is None else kinds

    def draw(axes: Any) -> None:
        axes.scatter(places[:, 0], places[:, 1], c=kinds, cmap="coolwarm", s=12)

    def text() -> list[str]:
        ranges = (text_plots.range_of(places[:, 0]), text_plots.range_of(places[:, 1]))
        if not kinds.any():
            canvas = Canvas(*ranges)
            canvas.points(places[:, 0], places[:, 1])
            return canvas.lines(_braille(host))
        nothing = np.zeros((text_plots.HEIGHT, text_plots.WIDTH), np.int64)
        return text_plots.regions(nothing, places, kinds, ranges)

    _show(host, draw, text, title, file)


def image(host: HostContext, pixels: Any, title: Any = None, file: Any = None) -> None:
    """`plot.image(x)`: an image `[h, w]` or `[h, w, c]` with 1, 3 or 4 channels, or a batch of them side by side (64 at most)."""
    if isinstance(title, str) and file is None and _is_file(title):
        title, file = None, title
    tile = _tiles(array(pixels, "what image takes"))

    def draw(axes: Any) -> None:
        axes.imshow(tile if tile.shape[2] > 1 else tile[:, :, 0], cmap="gray_r")
        axes.set_axis_off()

    _show(host, draw, lambda: text_plots.shades(tile[:, :, :3].mean(axis=2)), title, file)


def histogram(host: HostContext, values: Any, bins: Any = 20, title: Any = None, file: Any = None) -> None:
    """`plot.histogram(x, bins = 20)`: how often the values of an array or list fall into equal parts of their range."""
    if isinstance(bins, str) and file is None:
        bins, file = 20, bins
    data = array(values, "what histogram takes").data.astype(np.float64).reshape(-1)
    data = data[np.isfinite(data)]
    if data.size == 0 or integer(bins, "the number of bins") < 1:
        raise HostError("histogram takes at least one finite value and at least one bin")
    counts, edges = np.histogram(data, bins)

    def draw(axes: Any) -> None:
        axes.stairs(counts, edges, fill=True)

    _show(host, draw, lambda: text_plots.bars(edges, counts), title, file)


def boundary(
    host: HostContext, classifier: Any, *points: Any, labels: Any = None, title: Any = None, file: Any = None
) -> None:
    """`plot.boundary(predict, points, labels)`: what a classifier of points in a plane says around the points it is given.

    The classifier takes `f32[n | 2]` and gives one score, of which the sign decides, or a score for each class.
    """
    values, file = _with_file(points, file)
    places, kinds = _points(values, labels)
    ranges = (text_plots.range_of(places[:, 0], 0.1), text_plots.range_of(places[:, 1], 0.1))
    height, width = (200, 200) if file is not None else (text_plots.HEIGHT, text_plots.WIDTH)
    xs, ys = (np.linspace(*bounds, size) for bounds, size in zip(ranges, (width, height), strict=True))
    grid = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2).astype(np.float32)
    decided = _classes(host.call(classifier, (HostArray(grid, 1, 1, 0),)), len(grid)).reshape(height, width)
    known = np.zeros(len(places), np.int64) if kinds is None else kinds

    def draw(axes: Any) -> None:
        axes.imshow(decided, origin="lower", extent=(*ranges[0], *ranges[1]), cmap="coolwarm", alpha=0.4, aspect="auto")
        axes.scatter(places[:, 0], places[:, 1], c=known, cmap="coolwarm", s=12, edgecolors="white", linewidths=0.3)

    _show(host, draw, lambda: text_plots.regions(decided, places, known, ranges), title, file)


def _show(host: HostContext, draw: Draw, text: Callable[[], list[str]], title: Any, file: Any) -> None:
    heading = None if title is None else string(title, "the title")
    if file is not None and _write(host, draw, heading, string(file, "the name of a file")):
        return
    host.write("\n".join([*([heading] if heading else []), *text()]) + "\n")


def _write(host: HostContext, draw: Draw, title: str | None, file: str) -> bool:
    """Draws to a file; false where matplotlib is missing, which is said once on standard error."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        host.stderr.write(f"{file} is not written: pictures in files need matplotlib (pip install matplotlib)\n")
        return False
    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    axes = figure.add_subplot()
    draw(axes)
    if title:
        axes.set_title(title)
    path = host.output_path(file)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise HostError(f"{path} cannot be written: {error.strerror or error}", "E0801") from error
    except ValueError:
        raise HostError(f"{path.name} has no ending that says the kind of picture, such as .png") from None
    return True


def _with_file(values: tuple[Any, ...], file: Any) -> tuple[tuple[Any, ...], Any]:
    """Takes a last string for the name of the file."""
    if file is None and values and isinstance(values[-1], str):
        return values[:-1], values[-1]
    return values, file


def _is_file(text: str) -> bool:
    return text.lower().endswith((".png", ".svg", ".pdf", ".jpg", ".jpeg"))


def _names(labels: Any, count: int) -> list[str | None]:
    names = [] if labels is None else [string(name, "a label") for name in elements(labels, "the labels")]
    if names and len(names) != count:
        raise HostError(f"{len(names)} labels for {count} series", "E0401")
    return [*names] if names else [None] * count


def _points(values: tuple[Any, ...], labels: Any) -> tuple[Floats, NDArray[np.int64] | None]:
    """Places as `[n, 2]`, and the kind of each: points and labels, or x, y and labels."""
    if not values:
        raise HostError("there are no points to show", "E0302")
    first = array(values[0], "the points")
    if first.data.ndim == 2 and first.shape[1] == 2:
        places, rest = first.data.astype(np.float64), values[1:]
    elif len(values) > 1:
        x, y = numbers(values[0], "x"), numbers(values[1], "y")
        if len(x) != len(y):
            raise HostError(f"x has {len(x)} values, y {len(y)}", "E0401")
        places, rest = np.stack([x, y], axis=1), values[2:]
    else:
        raise HostError(f"points are [n | 2], not {kind_of(first)}", "E0401")
    if len(rest) > 1 or (rest and labels is not None):
        raise HostError("after the points there is one array of labels", "E0302")
    labels = rest[0] if rest else labels
    if labels is None:
        return places, None
    found = numbers(labels, "the labels")
    if len(found) != len(places):
        raise HostError(f"{len(found)} labels for {len(places)} points", "E0401")
    return places, np.unique(found, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _classes(scores: Any, count: int) -> NDArray[np.int64]:
    data = array(scores, "what the classifier gives").data
    if data.shape[:1] != (count,):
        raise HostError(f"the classifier gives {kind_of(scores)} for {count} points", "E0401")
    data = data.reshape(count, -1).astype(np.float64)
    return (data[:, 0] > 0).astype(np.int64) if data.shape[1] == 1 else np.argmax(data, axis=1)


def _tiles(pixels: HostArray) -> Floats:
    """One image `[h, w, c]`; of a batch the first 64, beside and below each other."""
    data = pixels.data.astype(np.float64)
    if data.ndim == 2:
        data = data[:, :, None]
    elif data.ndim == 3 and data.shape[2] not in ((3, 4) if pixels.batch else (1, 3, 4)):
        data = data[:, :, :, None]
    if data.ndim not in (3, 4) or data.shape[-1] not in (1, 3, 4) or data.size == 0:
        raise HostError(f"an image is [h, w] or [h, w, c] with 1, 3 or 4 channels, not {kind_of(pixels)}", "E0401")
    if data.ndim == 3:
        return data
    count = min(len(data), 64)
    across = int(np.ceil(np.sqrt(count)))
    down = -(-count // across)
    height, width, channels = data.shape[1:]
    grid = np.zeros((down * across, height, width, channels))
    grid[:count] = data[:count]
    return (
        grid.reshape(down, across, height, width, channels)
        .swapaxes(1, 2)
        .reshape(down * height, across * width, channels)
    )


def _braille(host: HostContext) -> bool:
    """Whether the output can show braille; streams without an encoding take any text."""
    try:
        "\u28ff".encode(host.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
