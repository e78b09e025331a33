"""The fault that a host function reports."""

from __future__ import annotations


class HostError(Exception):
    """A fault of the user's program in a host function; becomes a diagnostic with this code at the place of the call."""

    def __init__(
        self, message: str, code: str = "E0304", *, notes: tuple[str, ...] = (), helps: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.notes = notes
        self.helps = helps
