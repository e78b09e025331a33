"""Random numbers of host code, from the generator of the language: a seed repeats a run everywhere."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ocannl_lang.graph.random import random_values, stream_of

AHEAD = 256


@dataclass(slots=True)
class HostRandom:
    """A stream of random numbers: a pure function of `seed`, of the `place` that draws, and of how many it drew."""

    seed: int
    place: str
    drawn: int = 0
    _ahead: list[float] = field(default_factory=list[float], init=False, repr=False)

    def uniforms(self, count: int) -> NDArray[np.float64]:
        """The next `count` floats in [0, 1), of 53 random bits each."""
        position = np.arange(self.drawn, self.drawn + count, dtype=np.uint64)
        self.drawn += count
        self._ahead.clear()
        return random_values("uniform", "f64", seed=self.seed, stream=stream_of(self.place), count=0, position=position)

    def uniform(self) -> float:
        """The next float in [0, 1). They are made in advance, since one costs as much as many."""
        if not self._ahead:
            drawn = self.drawn
            self._ahead = self.uniforms(AHEAD).tolist()[::-1]
            self.drawn = drawn
        self.drawn += 1
        return self._ahead.pop()

    def permutation(self, count: int) -> NDArray[np.int64]:
        """The numbers below `count` in a random order: sorted by random keys, so every order is equally likely."""
        return np.argsort(self.uniforms(count), kind="stable")

    def choice(self, weights: NDArray[np.float64]) -> int:
        """A position, with probabilities in proportion to `weights`, of which none is negative and not all are 0."""
        cumulative = np.cumsum(weights)
        position = int(np.searchsorted(cumulative, self.uniform() * cumulative[-1], side="right"))
        # Rounding may reach past the last weight that is not 0.
        return min(position, int(np.flatnonzero(weights)[-1]))
