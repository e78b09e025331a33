"""Options and arguments that several commands take."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ocannl_lang.cli.console import FAILED, Failure, paint

if TYPE_CHECKING:
    from ocannl_lang.driver.session import Session

_DEVICE = re.compile(r"cpu|reference|(cuda|hip)(:\d+)?|metal")
_LEFT_OUT = {"build", "dist", "node_modules", "__pycache__"}


class Setting(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """`name=value`, the value in the language's notation."""

    name = "name=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from ocannl_lang.host.literals import NotLiteral, parse_literal

        if not isinstance(value, str):
            return value
        name, equals, text = value.partition("=")
        if not equals or not name.strip().isidentifier():
            self.fail(f"{value!r} is not of the form name=value.", param, ctx)
        try:
            return name.strip(), parse_literal(text)
        except NotLiteral:
            self.fail(f"{text!r} is not a literal; a string needs its quotes: {name}='\"text\"'.", param, ctx)


class Device(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """The name of a device, there or not."""

    name = "device"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not _DEVICE.fullmatch(value):
            self.fail(f"{value!r} is not a device: cpu, reference, cuda:0, hip:0, metal.", param, ctx)
        return value


def run_options() -> list[click.Option]:
    """How a program is run: the options of `ocn run` and `ocn test`."""
    return [
        click.Option(["--device"], type=Device(), default="cpu", help="cpu, or reference: the plain evaluator."),
        click.Option(["--threads"], type=click.IntRange(min=1), help="Threads at most.  [default: all cores]"),
        click.Option(["--seed"], type=int, default=0, help="The seed of all random numbers.  [default: 0]"),
        click.Option(
            ["--set", "settings"], type=Setting(), multiple=True, help="Another value for a top-level let; may repeat."
        ),
    ]


def with_run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the `run_options` to a command."""
    existing: list[click.Parameter] = list(getattr(command, "__click_params__", []))
    command.__dict__["__click_params__"] = [*existing, *reversed(run_options())]
    return command


def open_session(options: Mapping[str, Any]) -> Session:
    """The session for the `run_options` that were given."""
    from ocannl_lang.driver.session import Session, UnknownDevice

    try:
        return Session(
            seed=options.get("seed") or 0,
            device=options.get("device") or "cpu",
            threads=options.get("threads"),
            settings=dict(options.get("settings") or ()),
        )
    except UnknownDevice as error:
        raise DeviceMissing(str(error)) from None


class DeviceMissing(Failure):
    """The device that was asked for is not there (E0703)."""

    exit_code = FAILED

    def show(self, file: object = None) -> None:
        import sys

        del file
        click.echo(f"{paint('error[E0703]', 'red', sys.stderr)}: {self.message}", err=True)


def complete_files(_context: click.Context, _param: click.Parameter, incomplete: str) -> list[Any]:
    """Completion of files: the `.ocn` files and the folders that start like this."""
    from click.shell_completion import CompletionItem

    folder, _, start = incomplete.rpartition("/")
    try:
        entries = sorted(Path(folder or ".").iterdir())
    except OSError:
        return []
    prefix = f"{folder}/" if folder or incomplete.startswith("/") else ""
    found: list[Any] = []
    for entry in entries:
        if entry.name.startswith(start) and (start.startswith(".") or not entry.name.startswith(".")):
            if entry.is_dir():
                found.append(CompletionItem(f"{prefix}{entry.name}/"))
            elif entry.suffix == ".ocn":
                found.append(CompletionItem(f"{prefix}{entry.name}"))
    return found


def complete_routines(context: click.Context, _param: click.Parameter, incomplete: str) -> list[Any]:
    """Completion of the routines of the file."""
    from click.shell_completion import CompletionItem

    from ocannl_lang.cli.run import syntax_of
    from ocannl_lang.syntax import ast

    # While its last option has no value yet, click has not given the arguments their names.
    candidates = [context.params.get("file"), *context.args]
    file = next((c for c in candidates if isinstance(c, str) and Path(c).is_file()), None)
    items = syntax_of(Path(file)).items if file is not None else ()
    names = [item.name.name for item in items if isinstance(item, ast.RoutineDef)]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def source_files(given: Sequence[str]) -> list[Path]:
    """The files to work on: those given, all `.ocn` files in folders that are given, of the current folder if nothing is.

    Raises click's `UsageError` for what does not exist.
    """
    files: list[Path] = []
    for name in given or ["."]:
        path = Path(name)
        if path.is_dir():
            files.extend(_in_folder(path))
        elif path.is_file():
            files.append(path)
        else:
            raise click.BadParameter(f"there is no file {name}.", param_hint="FILES")
    return list(dict.fromkeys(files))


def _in_folder(folder: Path) -> list[Path]:
    found: list[Path] = []
    for path in sorted(folder.rglob("*.ocn")):
        parents = path.relative_to(folder).parts[:-1]
        if not any(part.startswith(".") or part in _LEFT_OUT for part in parents):
            found.append(path)
    return found
