"""Host arrays: the tensors of `main`, tests and Python callers, as numpy data with rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class HostArray:
    """`data` in memory order: `batch` axes first, then `output`, then `input` axes; `bases` per axis, "default" where none."""

    data: NDArray[Any]
    batch: int
    output: int
    input: int
    bases: tuple[str, ...] = ()

    @staticmethod
    def of(data: NDArray[Any]) -> HostArray:
        """An array without a type: its first axis is batch, the rest output."""
        batch = min(data.ndim, 1)
        return HostArray(np.asarray(data), batch, data.ndim - batch, 0)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape
