"""`ocn run`: builds a program and runs its `main`, whose parameters are options of the command."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ocannl_lang.cli.common import complete_files, open_session, run_options, with_run_options
from ocannl_lang.cli.console import Failure, show_diagnostics

if TYPE_CHECKING:
    from ocannl_lang.syntax import ast


class _RunCommand(click.Command):
    """After the file, completion offers the options of its `main`."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        file = ctx.params.get("file")
        if not isinstance(file, str) or not Path(file).is_file():
            return super().shell_complete(ctx, incomplete)
        command = _command(syntax_of(Path(file)), lambda _: None, {})
        return command.shell_complete(click.Context(command, info_name=file), incomplete)


@click.command(cls=_RunCommand, context_settings={"allow_interspersed_args": False})
@click.argument("file", shell_complete=complete_files)
@click.argument("main_options", nargs=-1, type=click.UNPROCESSED)
@with_run_options
@click.pass_context
def run(context: click.Context, file: str, main_options: tuple[str, ...], **options: Any) -> None:
    """Build and run the main of FILE.

    What follows the file are the options of its main, and any of the options below.

    \b
    ocn run examples/digits.ocn --help          the options of this main
    ocn run examples/digits.ocn --epochs 5
    ocn run --seed 7 --set 'sizes=[32, 32]' model.ocn
    """
    path = Path(file)
    if not path.is_file():
        raise click.BadParameter(f"there is no file {file}.", param_hint="FILE")
    syntax = syntax_of(path)

    def start(values: dict[str, Any]) -> None:
        _check_settings(syntax, options["settings"])
        _run(path, values, options)

    command = _command(syntax, start, options)
    with command.make_context(f"{context.command_path} {file}", list(main_options)) as inner:
        command.invoke(inner)


def _command(syntax: ast.Module, start: Any, options: dict[str, Any]) -> click.Command:
    """The command for the `main` of a module; options of `ocn run` that stand after the file join those before it."""
    from ocannl_lang.host.options import main_command
    from ocannl_lang.syntax import ast

    main = next((item for item in syntax.items if isinstance(item, ast.MainDef)), None)

    def merge(given: dict[str, Any]) -> None:
        if "settings" in given:
            given["settings"] = (*options["settings"], *given["settings"])
        options.update(given)

    return main_command(main, start, about=syntax.doc, shared=run_options(), run_shared=merge)


def _run(path: Path, values: dict[str, Any], options: dict[str, Any]) -> None:
    from ocannl_lang.driver.errors import ProgramErrors
    from ocannl_lang.driver.running import run_main
    from ocannl_lang.host.context import HostContext

    session = open_session(options)
    host = HostContext(sys.stdout, sys.stderr, seed=options["seed"], base=path.parent, interactive=sys.stderr.isatty())
    try:
        program = session.open(path)
        show_diagnostics(program.checked.diagnostics, sys.stderr)
        run_main(program, values, host)
    except ProgramErrors as error:
        host.close()
        show_diagnostics(error.diagnostics, sys.stderr)
        raise Failure("") from None
    finally:
        host.bars.close()
    host.close()


def syntax_of(path: Path) -> ast.Module:
    """The tree of the file, for its options; its mistakes are reported when it is built."""
    from ocannl_lang.diagnostics.model import Collector
    from ocannl_lang.source import Source
    from ocannl_lang.syntax.parser import parse

    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        text = ""
    return parse(Source(str(path), text), Collector())


def _check_settings(syntax: ast.Module, settings: tuple[tuple[str, Any], ...]) -> None:
    """Every name that is set must be a top-level `let` or the config of a routine."""
    from ocannl_lang.syntax import ast

    known: list[str] = []
    for item in syntax.items:
        if isinstance(item, ast.Let):
            known.extend(name.name for name in item.names)
        elif isinstance(item, ast.RoutineDef):
            known.extend(p.name.name for p in item.config)
    for name, _ in settings:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise click.BadParameter(f"the file has no top-level let named {name}.{hint}", param_hint="--set")
