"""`ocn test`: runs the `test` blocks of files."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ocannl_lang.cli.common import complete_files, open_session, source_files, with_run_options
from ocannl_lang.cli.console import FAILED, echo, paint, show_diagnostics, use_color

if TYPE_CHECKING:
    from ocannl_lang.driver.running import TestCase


@click.command()
@click.argument("files", nargs=-1, shell_complete=complete_files)
@click.option("-k", "words", multiple=True, metavar="TEXT", help="Only tests whose name contains TEXT; may repeat.")
@with_run_options
def test(files: tuple[str, ...], words: tuple[str, ...], **options: Any) -> int:
    """Run the tests in FILES, each from a fresh start.

    Folders stand for all .ocn files in them; without FILES the current folder is tested.

    \b
    ocn test
    ocn test model.ocn -k gradient
    """
    from ocannl_lang.driver.errors import ProgramErrors
    from ocannl_lang.driver.running import tests_of

    session = open_session(options)
    passed, failed, broken = 0, 0, 0
    for path in source_files(files):
        try:
            cases = tests_of(session.open(path))
        except ProgramErrors as error:
            broken += 1
            echo(f"{path}: {paint('has errors', 'red', sys.stdout)}")
            show_diagnostics(error.diagnostics, sys.stdout)
            continue
        wanted = [number for number, case in enumerate(cases) if _is_wanted(case.name, words)]
        if wanted:
            echo(f"{path}")
        for number in wanted:
            # A program of its own for each test: what one learns the next must not see.
            case = tests_of(session.open(path))[number]
            if _run(case, path, options):
                passed += 1
            else:
                failed += 1
    if not passed and not failed and not broken:
        echo("there are no tests" + (" of these names" if words else ""))
        return FAILED if words else 0
    counts = [(passed, "passed", "green"), (failed, "failed", "red"), (broken, "with errors", "red")]
    echo(", ".join(paint(f"{n} {word}", color, sys.stdout) for n, word, color in counts if n))
    return FAILED if failed or broken else 0


def _is_wanted(name: str, words: tuple[str, ...]) -> bool:
    return not words or any(word.lower() in name.lower() for word in words)


def _run(case: TestCase, path: Path, options: dict[str, Any]) -> bool:
    """Runs one test; what it prints is shown if it fails."""
    from ocannl_lang.driver.errors import ProgramErrors
    from ocannl_lang.host.context import HostContext

    printed = io.StringIO()
    host = HostContext(printed, sys.stderr, seed=options["seed"], base=path.parent)
    try:
        case.run(host)
    except ProgramErrors as error:
        echo(f"  {paint('failed', 'red', sys.stdout)}  {case.name}")
        if printed.getvalue():
            echo(printed.getvalue().rstrip("\n"))
        for diagnostic in error.diagnostics:
            echo(diagnostic.render(color=use_color(sys.stdout)))
        return False
    echo(f"  {paint('ok', 'green', sys.stdout)}  {case.name}")
    return True
