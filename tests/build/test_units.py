"""Bases written on sizes that are still to be found (section 3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.build.support import checked, clean

OP = "basis rgb, heads\nop f(x: [... | c:rgb]) = x * 2.\n"


def test_a_size_with_the_basis_fits(tmp_path: Path) -> None:
    clean(OP + "routine r(a: f32[n | 3:rgb], b: f32[n | m:rgb]): return f(a), f(b)\n", tmp_path)


@pytest.mark.parametrize("size", ["3:heads", "3", "m"])
def test_a_size_with_another_basis_or_none_does_not(size: str, tmp_path: Path) -> None:
    found = checked(OP + f"routine r(a: f32[n | {size}]):\n    return f(a)\n", tmp_path)
    assert [(d.code, d.line) for d in found.diagnostics] == [("E0404", 4)]
    assert "rgb" in found.diagnostics[0].render()
