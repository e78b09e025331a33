"""What the tests of the language share."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.language.programs import Both, Loader


@pytest.fixture
def program(tmp_path: Path) -> Loader:
    """Loads a program on both backends: `program(text, **settings)`."""
    return partial(Both, folder=tmp_path)
