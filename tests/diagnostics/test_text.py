"""Diagnostics as a terminal shows them."""

from __future__ import annotations

from textwrap import dedent

from ocannl_lang.diagnostics.model import Diagnostic, Label
from ocannl_lang.diagnostics.text import display_width, render_text
from ocannl_lang.source import Source, Span

NET = Source(
    "net.ocn",
    "op net(x):\n    let h = relu({w1: [784 -> 256]} * x)\n    return {w2: [128 -> 10]} * h\n",
)


def place(text: str, source: Source = NET, nth: int = 0) -> Span:
    start = -1
    for _ in range(nth + 1):
        start = source.text.index(text, start + 1)
    return Span(source, start, start + len(text))


def shown(text: str) -> str:
    return dedent(text).strip("\n")


def test_the_look() -> None:
    diagnostic = Diagnostic(
        "E0401",
        "sizes differ: 128 and 256",
        Span(NET, place("} * h").start + 4, place("} * h").end),
        "w2 takes 128 input features",
        (Label(place("256"), "h has 256 output features, from here"), Label(place("128"), "")),
        ("the tensor product `*` contracts the input axes of its left side with the output axes of its right side",),
        ("give w2 the size 256, or leave its input axes out: `{w2: [... -> 10]}`",),
    )
    assert render_text(diagnostic) == shown(
        """
        error[E0401]: sizes differ: 128 and 256
          ┌─ net.ocn:3:32
          │
        2 │     let h = relu({w1: [784 -> 256]} * x)
          │                               --- h has 256 output features, from here
        3 │     return {w2: [128 -> 10]} * h
          │                  ---           ^ w2 takes 128 input features
          │
          = the tensor product `*` contracts the input axes of its left side with the output axes of its right side
          = help: give w2 the size 256, or leave its input axes out: `{w2: [... -> 10]}`
        """
    )


def test_several_labels_on_a_line() -> None:
    diagnostic = Diagnostic(
        "W0902", "look here", place("* h"), "last", (Label(place("128"), "size"), Label(place("w2"), "name"))
    )
    assert render_text(diagnostic) == shown(
        """
        warning[W0902]: look here
          ┌─ net.ocn:3:30
          │
        3 │     return {w2: [128 -> 10]} * h
          │             --   ---         ^^^ last
          │             │    │
          │             │    size
          │             name
        """
    )


def test_two_labels_of_one_place() -> None:
    diagnostic = Diagnostic("E0401", "twice", place("128"), "first", (Label(place("128"), "second"),))
    assert render_text(diagnostic) == shown(
        """
        error[E0401]: twice
          ┌─ net.ocn:3:18
          │
        3 │     return {w2: [128 -> 10]} * h
          │                  ^^^
          │                  │
          │                  first
          │                  second
        """
    )


def test_lines_apart_and_other_files() -> None:
    source = Source("long.ocn", "".join(f"let a{i} = {i}\n" for i in range(1, 13)))
    other = Source("lib/nn.ocn", "op f(x) = x\n")
    labels = (
        Label(place("a1 ", source), "far"),
        Label(place("a10", source), "near"),
        Label(place("f(x)", other), "there"),
    )
    diagnostic = Diagnostic("E0202", "defined twice", place("a12", source), "here", labels, helps=("rename it",))
    assert render_text(diagnostic) == shown(
        """
        error[E0202]: defined twice
           ┌─ long.ocn:12:5
           │
         1 │ let a1 = 1
           │     -- far
           ·
        10 │ let a10 = 10
           │     --- near
        11 │ let a11 = 11
        12 │ let a12 = 12
           │     ^^^ here
           │
           ┌─ lib/nn.ocn:1:4
           │
         1 │ op f(x) = x
           │    ---- there
           │
           = help: rename it
        """
    )


def test_a_place_of_several_lines() -> None:
    diagnostic = Diagnostic("E0102", "all of it", Span(NET, 0, len(NET.text)), "the op")
    assert render_text(diagnostic) == shown(
        """
        error[E0102]: all of it
          ┌─ net.ocn:1:1
          │
        1 │ op net(x):
          │ ^^^^^^^^^^
        2 │     let h = relu({w1: [784 -> 256]} * x)
        3 │     return {w2: [128 -> 10]} * h
          │     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ the op
        """
    )


def test_wide_combining_and_control_characters() -> None:
    source = Source("w.ocn", 'let s = "日本e\u0301\x07" + y\n\tlet z = y\n')
    assert render_text(Diagnostic("E0201", "no `y`", place("y", source))) == shown(
        """
        error[E0201]: no `y`
          ┌─ w.ocn:1:19
          │
        1 │ let s = "日本e\u0301\ufffd" + y
          │                    ^
        """
    )
    assert "2 │     let z = y\n  │         ^ tab" in render_text(Diagnostic("E0201", "m", place("z", source), "tab"))
    assert display_width("日本") == 4
    assert display_width("e\u0301") == 1
    assert display_width("a\tb") == 5


def test_empty_places_are_seen() -> None:
    source = Source("e.ocn", "let a =\n")
    assert render_text(Diagnostic("E0102", "m", Span(source, 7, 7))).endswith("1 │ let a =\n  │        ^")
    empty = Source("e.ocn", "")
    assert render_text(Diagnostic("E0801", "m", Span(empty, 0, 0))) == "error[E0801]: m\n  ┌─ e.ocn"


def test_messages_of_several_lines() -> None:
    diagnostic = Diagnostic("E0401", "m", place("128"), "one\ntwo", notes=("a\nb",))
    assert render_text(diagnostic) == shown(
        """
        error[E0401]: m
          ┌─ net.ocn:3:18
          │
        3 │     return {w2: [128 -> 10]} * h
          │                  ^^^
          │                  │
          │                  one
          │                  two
          │
          = a
            b
        """
    )


def test_colour_changes_no_letter() -> None:
    import re

    diagnostic = Diagnostic("E0401", "m", place("128"), "here", (Label(place("w2"), "name"),), ("note",), ("help",))
    colored = render_text(diagnostic, color=True)
    assert "\x1b[1;31merror[E0401]\x1b[0m" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == render_text(diagnostic)
    assert "\x1b[1;33m" in render_text(Diagnostic("W0901", "m", place("128")), color=True)
