"""Room for nested programs: applications, expressions and loops of a program nest in the interpreter's own calls."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

# before 3.11 each of them took its part of the C stack too
CALLS = 30_000 if sys.version_info >= (3, 11) else 8_000
"""Nested calls of Python that `build.context.DEPTH_LIMIT` nested applications need, with some room."""


@contextmanager
def room_for_nesting() -> Generator[None, None, None]:
    """Allow `CALLS` nested calls while this lasts; never fewer than were allowed before."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, CALLS))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
