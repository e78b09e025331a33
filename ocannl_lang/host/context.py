"""What host code runs in: its streams, its random numbers, the folder of its files, and what it may ask of the program.

A `HostFunction` is a built-in function in Python: it takes this context, the arguments and the named arguments, and
gives a static value or a `HostArray`. It raises `HostError` for faults of the user's program, which the evaluator
reports at the call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TextIO

from ocannl_lang.host.errors import HostError
from ocannl_lang.host.progress import ProgressBars
from ocannl_lang.host.random import HostRandom

__all__ = ["HostContext", "HostError", "HostFunction"]


class HostFunction(Protocol):
    """A built-in function; the arguments are static values and `HostArray`s."""

    def __call__(self, host: HostContext, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> Any: ...


def _no_parameters(_value: object, _path: Path) -> None:
    raise HostError("there are no parameters to save or load here")


def _no_calls(_function: object, _args: tuple[Any, ...]) -> Any:
    raise HostError("nothing can be called here")


@dataclass(slots=True)
class HostContext:
    """One run of host code.

    `base` is the folder that relative file names start from; reading looks in the current folder next. `interactive`:
    a person watches, so progress bars may show. The evaluator fills in `save` and `load` (the parameters and states of
    a value, to or from a file) and `call` (a function, op, instance or routine of the program, with arguments).
    """

    stdout: TextIO = field(default_factory=lambda: sys.stdout)
    stderr: TextIO = field(default_factory=lambda: sys.stderr)
    seed: int = 0
    base: Path = field(default_factory=Path)
    interactive: bool = False
    save: Callable[[Any, Path], None] = _no_parameters
    load: Callable[[Any, Path], None] = _no_parameters
    call: Callable[[Any, tuple[Any, ...]], Any] = _no_calls
    random: HostRandom = field(init=False)
    bars: ProgressBars = field(init=False)

    def __post_init__(self) -> None:
        self.random = HostRandom(self.seed, "host")
        self.bars = ProgressBars(self.stderr, self.interactive)

    def write(self, text: str) -> None:
        """Writes to standard output, above the progress bars where both are on one terminal."""
        if not self.bars.write_above(text, self.stdout):
            self.stdout.write(text)

    def input_path(self, name: str) -> Path:
        """The file to read under this name: beside the program, else in the current folder."""
        path = self.base / name
        return path if path.exists() or not Path(name).exists() else Path(name)

    def output_path(self, name: str) -> Path:
        """The file to write under this name."""
        return self.base / name

    def close(self) -> None:
        """Ends what is still shown, after an error or at the end of the run."""
        self.bars.close()
        self.stdout.flush()
