"""What all commands share: streams, colours, diagnostics on a terminal, and the text for a bug of ours."""

from __future__ import annotations

import os
import platform
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import click

from ocannl_lang import __version__
from ocannl_lang.diagnostics.model import Diagnostic

REPORT_TO = "the project's issue tracker"
FAILED = 1
"""Exit status where errors were found or a run failed; wrong use is 2."""


class Failure(click.ClickException):
    """Ends a command with status 1. `message` may be empty where everything has been said."""

    exit_code = FAILED

    def show(self, file: object = None) -> None:
        del file
        if self.message:
            click.echo(f"{paint('error', 'red', sys.stderr)}: {self.message}", err=True)


def use_color(stream: TextIO) -> bool:
    """Whether to write colours: on terminals, unless `NO_COLOR` is set; everywhere with `FORCE_COLOR`."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, color: str, stream: TextIO, *, bold: bool = True) -> str:
    return click.style(text, fg=color, bold=bold) if use_color(stream) else text


def echo(text: str) -> None:
    """A line of what was asked for, on standard output; colours in it stay where `use_color` put them."""
    click.echo(text, color=True)


def show_diagnostics(diagnostics: Sequence[Diagnostic], stream: TextIO) -> None:
    """Diagnostics for people, with excerpts."""
    from ocannl_lang.diagnostics.render import render_all

    text = render_all(list(diagnostics), "human", color=use_color(stream))
    if text:
        click.echo(text, file=stream, color=True)


def bug_report(error: BaseException) -> str:
    """What is said when the compiler itself fails: no traceback, but what is needed to find the fault."""
    lines = [
        f"{paint('bug', 'red', sys.stderr)}: ocn has failed, and not because of your program: this is a fault of ocn itself",
        f"  {type(error).__name__}: {_short(error)}",
        *(f"  in {place}" for place in _places(error)),
        f"  ocn {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}",
        f"Please report it to {REPORT_TO}, with these lines and the program. OCN_DEBUG=1 shows where it happened in full.",
    ]
    return "\n".join(lines)


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else f"{text[:200]}…"


def _places(error: BaseException) -> list[str]:
    """The last few places of our own code, innermost last."""
    package = Path(__file__).resolve().parent.parent.parent
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(package)]
    return [f"{Path(f.filename).relative_to(package).as_posix()}:{f.lineno} ({f.name})" for f in frames[-3:]]
