"""The options of `main` and values written on the command line."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from ocannl_lang.diagnostics.model import Collector
from ocannl_lang.host.literals import NotLiteral, parse_literal
from ocannl_lang.host.options import main_command
from ocannl_lang.source import Source
from ocannl_lang.syntax import ast
from ocannl_lang.syntax.parser import parse

PROGRAM = """
## Trains the net.
main(
    ## how often
    ## every image is seen
    epochs: int = 2 * 40,
    learning_rate: float = 0.1,
    sizes: list[int] = [16, 16],
    fast: bool = false,
    name: str = none,
    scale = 1.,
    where = (1, 2),
    data: str,
):
    print(epochs)
"""


def command(text, **kwargs):
    collector = Collector()
    module = parse(Source("main.ocn", text), collector)
    assert not collector.diagnostics
    main = next(item for item in module.items if isinstance(item, ast.MainDef))
    given = {}
    return main_command(main, given.update, **kwargs), given


def run(*args, text=PROGRAM, **kwargs):
    main, given = command(text, **kwargs)
    result = CliRunner().invoke(main, list(args))
    return result, given


def test_only_what_was_given_is_passed_on():
    assert run("--data", "x")[1] == {"data": "x"}


@pytest.mark.parametrize(
    "args, expected",
    [
        (["--epochs", "1_000"], {"epochs": 1000}),
        (["--epochs=0x10"], {"epochs": 16}),
        (["--epochs", "-3"], {"epochs": -3}),
        (["--learning-rate", "1e-3"], {"learning_rate": 0.001}),
        (["--learning-rate", "1"], {"learning_rate": 1.0}),
        (["--sizes", "8,4"], {"sizes": [8, 4]}),
        (["--sizes", "8", "--sizes", "4"], {"sizes": [8, 4]}),
        (["--sizes", "[8, 4]"], {"sizes": [8, 4]}),
        (["--sizes", ""], {"sizes": []}),
        (["--fast"], {"fast": True}),
        (["--no-fast"], {"fast": False}),
        (["--name", "3"], {"name": "3"}),
        (["--scale", "2"], {"scale": 2.0}),
        (["--where", "(3, [4])"], {"where": (3, [4])}),
    ],
)
def test_values(args, expected):
    result, given = run("--data", "x", *args)
    assert result.exit_code == 0, result.output
    assert given == {"data": "x", **expected}


@pytest.mark.parametrize(
    "args, message",
    [
        ([], "Missing option '--data'"),
        (["--data", "x", "--epochs", "many"], "'many' is not a whole number"),
        (["--data", "x", "--epochs", "1.5"], "is not a whole number"),
        (["--data", "x", "--learning-rate", "fast"], "'fast' is not a number"),
        (["--data", "x", "--sizes", "8,x"], "'x' is not a whole number"),
        (["--data", "x", "--sizes", "[8"], "is not a list"),
        (["--data", "x", "--where", "f(x)"], "is not a literal"),
        (["--data", "x", "--epoch", "3"], "--epochs"),
        (["--data", "x", "y"], "unexpected extra argument"),
    ],
)
def test_wrong_use(args, message):
    result, _ = run(*args)
    assert result.exit_code == 2
    assert message in result.output


def test_help_comes_from_the_comments():
    text = run("--help")[0].output
    assert "Trains the net." in text
    assert "--epochs INT" in text and "how often every image is seen  [default: 2 * 40]" in " ".join(
        text.split()
    ).replace("seen [", "seen  [")
    assert "[required]" in text and "--fast / --no-fast" in text


def test_shared_options_give_way_to_those_of_main():
    shared = [click.Option(["--seed"], type=int), click.Option(["--threads"], type=int)]
    seen = {}
    result, given = run(
        "--seed",
        "7.5",
        "--threads",
        "2",
        text="main(seed: float = 0.):\n    print(1)\n",
        shared=shared,
        run_shared=seen.update,
    )
    assert result.exit_code == 0, result.output
    assert given == {"seed": 7.5} and seen == {"threads": 2}


def test_a_parameter_may_be_called_help():
    result, given = run("--help", "me", text='main(help: str = ""):\n    print(help)\n')
    assert result.exit_code == 0 and given == {"help": "me"}


@pytest.mark.parametrize(
    "text, value",
    [
        ("16", 16),
        ("-2.5", -2.5),
        ('"a b"', "a b"),
        ("[16, [1., true]]", [16, [1.0, True]]),
        ("(1,)", (1,)),
        ("none", None),
        ("0..3", range(3)),
        ("1 / 4", 0.25),
        ("dict(a = 1)", {"a": 1}),
        ('dict([("a", 1)], b = 2)', {"a": 1, "b": 2}),
    ],
)
def test_literals(text, value):
    assert parse_literal(text) == value


@pytest.mark.parametrize(
    "text", ["", "abc", "[1,", "f(1)", "1 2", "-true", '"{1}"', "1 / 0", "10 ** 10", "dict(1)", "let x = 1"]
)
def test_no_literals(text):
    with pytest.raises(NotLiteral):
        parse_literal(text)
