"""Values that host functions give and that have members of their own, e.g. the vocabulary of a text with `encode` and `decode`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class HostObject:
    """A value with named members: static values, arrays, and `HostFunction`s that are called as `value.name(…)`.

    `name` says what it is in messages; `length` is what `len` gives, if it has one.
    """

    name: str
    members: Mapping[str, Any] = field(default_factory=dict[str, Any])
    length: int | None = None

    def __len__(self) -> int:
        if self.length is None:
            raise TypeError
        return self.length

    def __bool__(self) -> bool:
        return True
