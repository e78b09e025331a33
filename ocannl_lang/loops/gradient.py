"""Gradients (placeholder)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ocannl_lang.graph.ir import Value, operands
from ocannl_lang.loops.ir import Buffer

if TYPE_CHECKING:
    from ocannl_lang.loops.lower import Lowering


class Gradients:
    def __init__(self, lowering: Lowering, roots: Sequence[Value]) -> None:
        self._lowering = lowering

    def dependencies(self, value: Value) -> Iterable[Value]:
        return operands(value)

    def gradient(self, value: Value) -> Buffer:
        raise NotImplementedError
