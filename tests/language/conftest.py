"""What the tests of the language share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.language.programs import Both


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., Both]:
    """Loads a program on both backends: `program(text, **settings)`."""
    return partial(Both, folder=tmp_path)
