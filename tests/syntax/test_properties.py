"""No text makes the parser raise, and every tree is well formed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocannl_lang.syntax import ast
from ocannl_lang.syntax.text import dump
from ocannl_lang.syntax.walk import descendants
from tests.syntax.support import parsed

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT.parent / "shared" / "acceptance" / "cases"
LANGUAGE = ROOT.parent / "shared" / "design" / "language.md"

PROGRAM = '''\
## A module.
from data import half_moons as moons, batches
basis rgb, heads

op softmax{axes}[temperature: float = 1.](x):
    let e = exp(x - max{axes => collapse(axes)}(x))
    return e / sum{axes => collapse(axes)}(e)

op net[hidden: list[int] = [16, 16]](x: [..b.. | 2], mask = none) -> [..b.. | 1]:
    var h = x
    dim c = 3
    for width in hidden:
        h = relu({w} * h + {b: [width] = 0.})
    if mask is not none: h = h *. mask
    elif c > 3:
        h = h +*{... | 2*o + k, i; k, i -> j => ... | o, j} {k: [3, _ -> (2 * c)]}
    else: expect c == 3, "message {c:>3} {"inner"}"
    return {w_out} * h |> softmax{... | k}

routine step[training = true](x: f32[n | 2], i: index[n], lr: f32) -> f32:
    state m: [3] = 0.
    m{(i)} :+= x{a, b} *. 2.5e-3
    m max= x; m := -x ** 2
    return 0..3, [e for e in x if e in m], x[1:], not true

main(epochs: int = 80):
    print("""two
lines""")
'''
PIECES = [
    *" \n\t()[]{}:=.,;+-*/|<>^\"'\\#_a1$é",
    "    ",
    "..",
    "...",
    "=>",
    "->",
    "if ",
    "else",
    "elif",
    "then",
    "for ",
    "in ",
    "let ",
    "op ",
    "fn ",
    "return ",
    '"""',
    "**",
    "|>",
    "main():",
    "dim ",
    "state ",
    "f32",
    "max=",
    "{w}",
    "\r\n",
    "0x",
    "1e",
    "collapse(",
    "routine ",
    "+*{",
    "##",
    "\ufeff",
    "\x00",
]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A program with some pieces put in, taken out, or doubled."""
    text = PROGRAM
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(text)))
        match draw(st.integers(0, 3)):
            case 0:
                text = text[:at] + draw(st.sampled_from(PIECES)) + text[at:]
            case 1:
                text = text[:at] + text[at + draw(st.integers(1, 12)) :]
            case 2:
                start = draw(st.integers(0, len(text)))
                text = text[:at] + text[start : start + draw(st.integers(1, 30))] + text[at:]
            case _:
                text = text[:at]
    return text


@settings(max_examples=80, deadline=None)
@given(mutated())
def test_a_damaged_program_gives_a_tree(text: str) -> None:
    module, diagnostics = parsed(text)
    dump(module)
    has_holes = any(isinstance(node, (ast.ErrorExpr, ast.ErrorStmt)) for node in descendants(module))
    assert diagnostics or not has_holes
    for diagnostic in diagnostics:
        assert diagnostic.render()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=60))
def test_any_text_gives_a_tree(text: str) -> None:
    parsed(text)


def test_the_program_itself_is_right() -> None:
    assert parsed(PROGRAM)[1] == []


@pytest.mark.skipif(not CASES.is_dir(), reason="the acceptance cases are not here")
def test_acceptance_cases_have_no_syntax_errors() -> None:
    for path in sorted(CASES.glob("*.ocn")):
        if "syntax" not in path.stem:
            assert parsed(path.read_text(encoding="utf-8"))[1] == [], path.name


@pytest.mark.skipif(not LANGUAGE.is_file(), reason="the language's definition is not here")
def test_programs_of_the_definition_have_no_syntax_errors() -> None:
    """Blocks without a definition of their own are put into a body."""
    import re

    for block in re.findall(r"```ocn\n(.*?)```", LANGUAGE.read_text(encoding="utf-8"), re.S):
        if re.match(r"(?:op|##|fn|routine|cd)\b|##", block):
            assert parsed(block)[1] == [], block
    for block in re.findall(r"^  ```ocn\n(.*?)^  ```", LANGUAGE.read_text(encoding="utf-8"), re.S | re.M):
        body = re.sub(r"^", "  ", block, flags=re.M)
        assert parsed(f"cd f(c, a, b):\n{body}")[1] == [], block


def test_the_standard_library_has_no_syntax_errors() -> None:
    for path in sorted((ROOT / "stdlib").glob("*.ocn")):
        assert parsed(path.read_text(encoding="utf-8"))[1] == [], path.name
