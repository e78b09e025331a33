"""`ocn check`: all diagnostics of files, without running anything."""

from __future__ import annotations

import sys

import click

from ocannl_lang.cli.common import complete_files, source_files
from ocannl_lang.cli.console import FAILED, echo, use_color


@click.command()
@click.argument("files", nargs=-1, shell_complete=complete_files)
@click.option(
    "--format",
    "style",
    type=click.Choice(["human", "concise", "json", "sarif"]),
    default="human",
    help="How diagnostics are written.  [default: human]",
)
@click.option("--schemes", is_flag=True, help="Print the most general shape of every op.")
@click.option("--shapes", is_flag=True, help="Print the shapes of every routine.")
def check(files: tuple[str, ...], style: str, schemes: bool, shapes: bool) -> int:
    """Report all mistakes in FILES; runs nothing.

    Folders stand for all .ocn files in them; without FILES the current folder is checked.

    \b
    ocn check
    ocn check model.ocn --schemes --shapes
    ocn check src --format sarif > findings.sarif
    """
    from ocannl_lang.diagnostics.model import Collector
    from ocannl_lang.diagnostics.render import render_all
    from ocannl_lang.driver.session import Session

    paths = source_files(files)
    session, collector = Session(), Collector()
    texts: list[str] = []
    for path in paths:
        checked = session.checked(path)
        diagnostics = checked if isinstance(checked, list) else checked.diagnostics
        for diagnostic in diagnostics:
            collector.report(diagnostic)
        if not isinstance(checked, list) and not checked.has_errors:
            from ocannl_lang.driver.pipeline import scheme_lines, shape_lines

            lines = [*(scheme_lines(checked) if schemes else ()), *(shape_lines(checked) if shapes else ())]
            if lines:
                texts.append("\n".join([f"{path}:", *lines] if len(paths) > 1 else lines))
    text = render_all(collector.sorted(), style, color=style == "human" and use_color(sys.stdout))
    for part in [*texts, text]:
        if part:
            echo(part)
    if style == "human" and not text and not texts:
        echo(f"{len(paths)} file{'' if len(paths) == 1 else 's'} checked: nothing to report")
    return FAILED if collector.has_errors else 0
