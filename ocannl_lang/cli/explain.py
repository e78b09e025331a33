"""`ocn explain`: the page of a code."""

from __future__ import annotations

import difflib
import sys
from typing import Any

import click

from ocannl_lang.cli.console import echo, use_color


def _complete_codes(_context: click.Context, _param: click.Parameter, incomplete: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    from ocannl_lang.diagnostics.codes import CODES

    return [CompletionItem(c, help=i.title) for c, i in CODES.items() if c.startswith(incomplete.upper())]


@click.command(short_help="Explain an error or warning, with an example and its repair.")
@click.argument("code", required=False, shell_complete=_complete_codes)
def explain(code: str | None) -> None:
    """Explain an error or warning by its CODE, with an example and its repair; without CODE, list all.

    \b
    ocn explain E0405
    """
    from ocannl_lang.diagnostics.codes import CODES
    from ocannl_lang.diagnostics.codes import explain as page

    if code is None:
        for area in dict.fromkeys(info.area for info in CODES.values()):
            echo(f"{area}:")
            for info in CODES.values():
                if info.area == area:
                    echo(f"  {info.code}  {info.title}")
        return
    wanted = code.strip().upper()
    if wanted not in CODES:
        near = difflib.get_close_matches(wanted, CODES, n=1, cutoff=0.7)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise click.BadParameter(f"there is no code {code}.{hint} `ocn explain` lists all.", param_hint="CODE")
    text = page(wanted)
    if use_color(sys.stdout):
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text))
    else:
        echo(text.rstrip("\n"))
