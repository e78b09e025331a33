"""`ocn show`: what a stage of the compiler made of a program."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ocannl_lang.cli.common import complete_files, complete_routines
from ocannl_lang.cli.console import FAILED, Failure, echo, show_diagnostics

NAMES = ("parse", "names", "build", "shapes", "loops", "optimise", "schedule", "code")


@click.command()
@click.argument("file", shell_complete=complete_files)
@click.option("--stage", required=True, type=click.Choice(NAMES), help="Which stage, in the order of the compiler.")
@click.option("--routine", metavar="NAME", shell_complete=complete_routines, help="Only this routine.")
def show(file: str, stage: str, routine: str | None) -> int:
    """Show what a stage of the compiler made of FILE.

    \b
    ocn show model.ocn --stage shapes
    ocn show model.ocn --stage loops --routine train_step
    """
    from ocannl_lang.driver.errors import ProgramErrors
    from ocannl_lang.driver.pipeline import stage_text
    from ocannl_lang.driver.session import Session

    path = Path(file)
    if not path.is_file():
        raise click.BadParameter(f"there is no file {file}.", param_hint="FILE")
    if stage == "parse":
        return _show_tree(path)
    try:
        echo(stage_text(Session().open(path), stage, routine))
    except ProgramErrors as error:
        show_diagnostics(error.diagnostics, sys.stderr)
        raise Failure("") from None
    return 0


def _show_tree(path: Path) -> int:
    """The syntax tree, also of a text with mistakes."""
    from ocannl_lang.diagnostics.model import Collector
    from ocannl_lang.source import Source
    from ocannl_lang.syntax.parser import parse
    from ocannl_lang.syntax.text import dump

    collector = Collector()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{path} cannot be read: {error}") from None
    echo(dump(parse(Source(str(path), text), collector)))
    show_diagnostics(collector.sorted(), sys.stderr)
    return FAILED if collector.has_errors else 0
