"""Messages of syntax errors: what was found and what was expected, in words."""

from __future__ import annotations

import re

import pytest

from ocannl_lang.syntax.tables import load_tables
from tests.syntax.support import messages, parsed

BODY = [
    ("let a = 3 4", "expected an operator or the end of the line, found `4`"),
    ("let a =", "expected an expression, found the end of the line"),
    ("let a = f(x + )", "expected an expression, found `)`"),
    ("let a = f(x y)", "expected `,` or `)`, found `y`"),
    ("let a = [x y]", "expected `,` or `]`, found `y`"),
    ("let a = if b: c else d", "expected `then`, found `:`"),
    ("let 3 = a", "expected a name, found `3`"),
    ("let op = a", "expected a name, found the keyword `op`"),
    ("let a: = 1", "expected a type, found `=`"),
    ("while a return a", "expected `:`, found `return`"),
    ("for a of b: c", "expected `in` or `,`, found `of`"),
    ("let a = b +*{i, k; k, j} c", "this notation has no result"),
    ("let a: f32[2 * d] = b", "unexpected `*`"),
    ("let a = b{.. r .. => i}", "unexpected `..`"),
    ("let a = {3}", "expected a name, found `3`"),
    ('let a = {"b": 1}', 'expected a name, found "b"'),
    ("let a = lambda b: c", "there is no `lambda`"),
    ("let a = b if c else d", "unexpected `if`"),
    ("let a = b < c < d", "comparisons do not chain"),
    ("let a == b", "expected `=`, found `==`"),
    ("let a := b", "expected `=`, found `:=`"),
    ("if a = b: return a", "expected `==`, found `=`"),
    ("let a = b is None", "`none` is written small"),
    ("let a = b is c", "`is` compares with `none` only"),
    ("let a = None", "`None` is written small: `none`"),
    ("let a = b && c", "unexpected `&&`"),
    ("let a = b @ c", "unexpected `@`"),
    ("let a = b ^ c", "unexpected `^`"),
    ("a //= b", "there is no `//=`"),
    ("a++", "unexpected `+`"),
    ("let mut a = b", "there is no `mut`"),
    ("assert a", "there is no `assert`"),
    ("raise a", "there is no `raise`"),
    ("for (a, b) in c: break", "expected a name, found `(`"),
    ("else: return a", "`else` has no `if` before it"),
    ('let a = f"b"', "a string has no prefix"),
    ('print "b"', "`print` is a function"),
    ('show "b"', "unexpected string after `show`"),
    ("if a => b: return a", "unexpected `=>`"),
    ("let a = 0...3", "unexpected `...`"),
    ("elseif a: return b", "there is no `elseif`"),
    ("// a comment", "a comment starts with `#`"),
    ('let a = "b" "c"', "two strings stand side by side"),
    ("fn g(): return 1", "`fn` stands at the top of a module"),
    ("import a", "`import` stands at the top of a module"),
    ("let a = b)", "unexpected `)`"),
    ("let a = f(b]", "expected `)`, found `]`"),
    ("let a = f(b for b in c, d)", "a comprehension stands in brackets of its own here"),
]


@pytest.mark.parametrize(("text", "message"), BODY)
def test_in_a_body(text: str, message: str) -> None:
    found = messages(f"fn f():\n    {text}\n    return 1\n")
    assert found == [("E0102", 2, message)]


TOP = [
    ("x = 1", "`x` is bound without `let`"),
    ("var x = 1", "a `var` stands in a body"),
    ("def f(x): return x", "`def` starts no definition"),
    ('print("a")', "expected a definition, found `print`"),
    ("class A: b", "`class` starts no definition"),
    ("op f x = x", "expected `(`, `[` or `{`, found `x`"),
    ("op f(x)", "expected `:`, `=` or `->`, found the end of the line"),
    ("import", "expected a name, found the end of the line"),
    ("data a = b", "expected `:`, found `=`"),
    ("test a: b", "a test is named by a string"),
    ("main: f()", "`main` lacks its parentheses"),
    ("from a import (b, c)", "expected a name, found `(`"),
    ("from a import *", "expected a name, found `*`"),
    ("// a comment", "a comment starts with `#`"),
]


@pytest.mark.parametrize(("text", "message"), TOP)
def test_at_the_top(text: str, message: str) -> None:
    assert messages(text + "\nlet after = 1\n") == [("E0102", 1, message)]


def test_no_message_shows_a_terminal() -> None:
    names = [n for n in load_tables().names if re.fullmatch(r"_?[A-Z$_]+", n)]
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, names)) + r")\b")
    for text, _ in BODY + TOP:
        for diagnostic in parsed(f"fn f():\n    {text}\n")[1] + parsed(text)[1]:
            assert not pattern.search(diagnostic.message + " ".join(diagnostic.helps)), diagnostic.message
