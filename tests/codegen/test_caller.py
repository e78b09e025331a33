"""The function by which Python calls, as text."""

from __future__ import annotations

import re

import pytest

from ocannl_lang.codegen.llvm.caller import caller_text
from ocannl_lang.codegen.llvm.compile import assembly
from ocannl_lang.codegen.llvm.pool import executor
from ocannl_lang.codegen.llvm.target import target_of
from ocn_runtime.calls import FUNCTIONS, LAYOUT


def test_no_abbreviation_is_left() -> None:
    code = re.sub(r";.*", "", caller_text())
    assert not re.search(r"(?<![%@\w])(get|put|python|[A-Z]\w+\.\w+|[A-Z][A-Z0-9_]{2,})\b", code)


def test_fields_are_where_they_lie() -> None:
    code = caller_text()
    assert f"%data.at = getelementptr i8, ptr %a, i64 {LAYOUT.data}\n" in code
    assert f"%dtype.at = getelementptr i8, ptr %a, i64 {LAYOUT.dtype}\n" in code


def test_the_text_is_the_same_in_every_process() -> None:
    """Addresses of Python's functions are no part of it, so its object is kept on disk."""
    assert caller_text() == caller_text()
    assert not any(name in caller_text() for name in FUNCTIONS.values())


@pytest.mark.parametrize(
    "triple",
    ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "arm64-apple-macosx14.0", "x86_64-pc-windows-msvc"],
)
def test_it_compiles_for_other_systems(triple: str) -> None:
    target = target_of(triple, "", "")
    assert "ocn_python_call" in assembly(executor(target), target)
