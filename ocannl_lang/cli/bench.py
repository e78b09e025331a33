"""`ocn bench`: how long the routines of a program take, kernel by kernel, and what holds each back."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ocannl_lang.cli.common import Setting, complete_files, complete_routines, open_session
from ocannl_lang.cli.console import FAILED, Failure, echo, show_diagnostics

if TYPE_CHECKING:
    from ocannl_lang.driver.program import Program

_SHAPE = re.compile(r"\s*(?P<name>\w+)\s*=\s*(?P<sizes>\d+(\s*[x×,]\s*\d+)*)\s*")


class _Shape(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """`name=2x3`: the axes of an argument in memory order; `n=64`: a size of the signature."""

    name = "name=2x3"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        found = _SHAPE.fullmatch(value)
        if found is None:
            self.fail(f"{value!r} is not of the form name=2x3.", param, ctx)
        return found["name"], tuple(int(n) for n in re.split(r"\s*[x×,]\s*", found["sizes"]))


@click.command(short_help="Measure routines, kernel by kernel.")
@click.argument("file", shell_complete=complete_files)
@click.option(
    "--routine",
    "names",
    metavar="NAME",
    multiple=True,
    shell_complete=complete_routines,
    help="Only this routine; may repeat.",
)
@click.option(
    "--shape",
    "shapes",
    type=_Shape(),
    metavar="NAME=2x3",
    multiple=True,
    help="The axes of an argument (x=64x2) or a size of a signature (n=64); may repeat.",
)
@click.option("--set", "settings", type=Setting(), multiple=True, help="Another value for a top-level let; may repeat.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads at most.  [default: all cores]")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.001, max=86400),
    default=1.0,
    help="How long each routine is measured.  [default: 1]",
)
@click.option(
    "--sort",
    type=click.Choice(["time", "order"]),
    default="time",
    help="Longest kernels first, equal ones in one line; or all in the order in which they run.  [default: time]",
)
@click.option("--schedules", is_flag=True, help="Show how each kernel was scheduled.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def bench(
    file: str, names: tuple[str, ...], shapes: tuple[tuple[str, tuple[int, ...]], ...], settings: tuple[Any, ...],
    threads: int | None, seconds: float, sort: str, schedules: bool, as_json: bool,
) -> int:  # fmt: skip
    """Measure the routines of FILE on made-up arguments, kernel by kernel.

    Sizes that a signature leaves open are given by --shape. Nothing is saved and no main is run.

    \b
    ocn bench model.ocn --shape n=64
    ocn bench model.ocn --routine train_step --shape x=64x784 --threads 1 --sort order
    """
    from ocannl_lang.cli.bench_text import report_json, report_text
    from ocannl_lang.driver.bench import Unmeasured, bench
    from ocannl_lang.driver.errors import ProgramErrors

    path = Path(file)
    if not path.is_file():
        raise click.BadParameter(f"there is no file {file}.", param_hint="FILE")
    session = open_session({"threads": threads, "settings": settings})
    try:
        program = session.open(path)
    except ProgramErrors as error:
        show_diagnostics(error.diagnostics, sys.stderr)
        raise Failure("") from None
    show_diagnostics(program.checked.diagnostics, sys.stderr)
    _check_names(program, names)
    _check_shapes(program, [name for name, _ in shapes])
    with _progress() as begin:
        report = bench(program, names or list(program.routines), shapes=dict(shapes), seconds=seconds, begin=begin)
    echo(report_json(report) if as_json else report_text(report, sort=sort, schedules=schedules))
    failed = [r.reason for r in report.routines if isinstance(r, Unmeasured) and isinstance(r.reason, tuple)]
    shown: dict[Any, None] = dict.fromkeys(d for reason in failed for d in reason)
    show_diagnostics(list(shown), sys.stderr)
    missing = [r for r in report.routines if isinstance(r, Unmeasured)]
    return FAILED if failed or (missing and (names or len(missing) == len(report.routines))) else 0


def _check_names(program: Program, names: Sequence[str]) -> None:
    for name in names:
        if name not in program.routines:
            known = ", ".join(program.routines) or "none"
            raise click.BadParameter(f"there is no routine {name}; there are: {known}.", param_hint="--routine")
    if not program.routines:
        raise Failure("this program has no routines to measure")


def _check_shapes(program: Program, names: Sequence[str]) -> None:
    from ocannl_lang.driver.arguments import shape_names

    known = dict.fromkeys(n for r in program.routines.values() for n in shape_names(r))
    for name in names:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise click.BadParameter(
                f"no routine has an argument or a size {name}; there are: {listed}.", param_hint="--shape"
            )


@contextmanager
def _progress() -> Generator[Callable[[str], None], None, None]:
    """Says on a terminal's standard error what is going on; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("compiling") as status:
        yield lambda text: status.update(text)
