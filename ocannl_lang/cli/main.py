"""The command `ocn`."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Sequence

import click

from ocannl_lang import __version__
from ocannl_lang.cli.bench import bench
from ocannl_lang.cli.check import check
from ocannl_lang.cli.console import FAILED, bug_report
from ocannl_lang.cli.explain import explain
from ocannl_lang.cli.info import clean, info
from ocannl_lang.cli.run import run
from ocannl_lang.cli.show import show
from ocannl_lang.cli.test import test


def main(args: Sequence[str] | None = None) -> None:
    """Runs the command line and ends the process with its status: 0, 1 (errors found or failed), 2 (wrong use), 130 (Ctrl-C)."""
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal does not have must not end the program.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    warnings.showwarning = _one_line
    sys.exit(status_of(args))


def _one_line(message: Warning | str, *_place: object) -> None:
    """A warning of ours (a damaged cache) without the line of our code that gave it."""
    click.echo(f"warning: {message}", err=True)


def status_of(args: Sequence[str] | None = None) -> int:
    """Runs the command line and gives its exit status; whatever goes wrong is said on standard error."""
    try:
        result = ocn.main(args=None if args is None else list(args), prog_name="ocn", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.Abort:
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except BrokenPipeError:
        _silence()
        return FAILED
    except MemoryError:
        click.echo("error: there is not enough memory", err=True)
        return FAILED
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> int:
    if os.environ.get("OCN_DEBUG"):
        import traceback

        traceback.print_exception(type(error), error, error.__traceback__)
    with contextlib.suppress(OSError):
        click.echo(bug_report(error), err=True)
    return FAILED


def _silence() -> None:
    """The reader is gone: what Python flushes at its end goes nowhere."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=False,
    invoke_without_command=True,
    epilog='Completion for bash, zsh and fish: eval "$(_OCN_COMPLETE=bash_source ocn)"',
)
@click.version_option(__version__, "-V", "--version", prog_name="ocn", message="%(prog)s %(version)s")
@click.pass_context
def ocn(context: click.Context) -> None:
    """Ocn, a small language for neural networks.

    \b
    ocn run model.ocn --epochs 5     trains the model: the options after the file are those of its main
    ocn check                        all mistakes in the .ocn files of this folder, without running anything
    ocn test model.ocn               runs its tests
    ocn bench model.ocn              how long its routines take, kernel by kernel
    ocn explain E0405                what an error means and how it is repaired
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for _command in (run, check, test, bench, show, explain, info, clean):
    ocn.add_command(_command)
