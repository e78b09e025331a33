"""Progress bars on a terminal's standard error, with the rate and the time left; nothing at all elsewhere.

Bars may nest. They share one display, which must end before anything else is written there, also after an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress


@dataclass(slots=True)
class ProgressBars:
    """The bars of one run. `active` says whether they show."""

    stream: TextIO
    active: bool
    _display: Progress | None = field(default=None, init=False, repr=False)
    _open: int = field(default=0, init=False, repr=False)

    def track(self, values: Iterable[Any]) -> Iterator[Any]:
        """Passes the values on. The bar ends with the values, and with the loop where that ends sooner."""
        if not self.active:
            yield from values
            return
        display = self._display or self._start()
        task = display.add_task("", total=length_of(values))
        self._open += 1
        try:
            for value in values:
                yield value
                display.advance(task)
        finally:
            self._open -= 1
            if self._open <= 0:
                self.close()
            else:
                display.remove_task(task)

    def write_above(self, text: str, stream: TextIO) -> bool:
        """Writes `text` above the bars if they share a terminal with `stream`; says whether it has."""
        if self._display is None or not stream.isatty():
            return False
        self._display.console.print(text, end="", markup=False, highlight=False, emoji=False, soft_wrap=True)
        return True

    @property
    def showing(self) -> bool:
        return self._display is not None

    def close(self) -> None:
        """Ends the display; what was shown last stays."""
        display, self._display, self._open = self._display, None, 0
        if display is not None:
            display.stop()

    def _start(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        self._display = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            _rate_column(),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=Console(file=self.stream),
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._display.start()
        return self._display


@dataclass(frozen=True, slots=True)
class Tracked:
    """What `progress(values)` gives: the values, with a bar whenever they are gone through."""

    values: Any
    bars: ProgressBars

    def __iter__(self) -> Iterator[Any]:
        return self.bars.track(self.values)

    def __len__(self) -> int:
        return len(self.values)


def length_of(values: object) -> int | None:
    """The number of values where it is known without going through them."""
    try:
        return len(values)  # pyright: ignore[reportArgumentType]
    except TypeError:
        return None


def _rate_column() -> Any:
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class Rate(ProgressColumn):
        """Steps in a second, or seconds for a step where that is more than one."""

        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            if not speed:
                return Text("")
            return Text(f"{speed:.1f}/s" if speed >= 1 else f"{1 / speed:.1f} s each", style="progress.data.speed")

    return Rate()
