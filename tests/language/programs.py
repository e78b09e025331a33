"""Small programs run on both backends: what they give must agree with each other and with numpy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import ocannl_lang

BACKENDS = ("cpu", "reference")
_numbers = itertools.count()


class Both:
    """A module on both backends. `both.f(…)` calls routine `f` on each, holds them against each other and gives the result."""

    def __init__(self, text: str, folder: Path, backends: tuple[str, ...] = BACKENDS, **settings: Any) -> None:
        path = folder / f"program_{next(_numbers)}.ocn"
        path.write_text(dedent(text).strip() + "\n", encoding="utf-8")
        self.path = path
        self.modules = [ocannl_lang.load(path, backend=backend, **settings) for backend in backends]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            results = [getattr(m, name)(*args, **named) for m in self.modules]
            agree(results[0], results[-1], rtol=2e-5, atol=1e-6)
            return results[-1]

        return call

    def __getitem__(self, path: str) -> np.ndarray:
        """A parameter or state, the same on both."""
        compiled, reference = (m.params[path] for m in self.modules)
        agree(compiled, reference, rtol=2e-5, atol=1e-6)
        return reference

    def __setitem__(self, path: str, value: Any) -> None:
        for m in self.modules:
            m.params[path] = np.asarray(value)

    @property
    def paths(self) -> list[str]:
        compiled, reference = (list(m.params) for m in self.modules)
        assert compiled == reference
        return reference

    @property
    def warnings(self) -> list[tuple[str, int]]:
        return [(d.code, d.line) for d in self.modules[0].diagnostics]


Loader = Callable[..., Both]
"""`program(text, **settings)`, the fixture."""


@dataclass(frozen=True)
class Case:
    """A program with a routine `f`, its arguments, and what it gives: a value, several, or a function of the arguments."""

    text: str
    args: tuple[Any, ...]
    want: Any

    def check(self, folder: Path) -> None:
        got = Both(self.text, folder).f(*self.args)
        want = self.want(*self.args) if callable(self.want) else self.want
        agree(got, want)


def case(name: str, text: str, *args_and_want: Any) -> Any:
    """A parameter of a test: its name, the program, the arguments of `f`, and last what it gives."""
    *args, want = args_and_want
    return pytest.param(Case(text, tuple(args), want), id=name.replace(" ", "_"))


def agree(got: Any, want: Any, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """The same number of results, of the same shapes, with nearly the same values."""
    gots, wants = (v if isinstance(v, tuple) else (v,) for v in (got, want))
    assert len(gots) == len(wants), f"{len(gots)} results, not {len(wants)}"
    for g, w in zip(gots, wants):
        g, w = np.asarray(g), np.asarray(w)
        assert g.shape == w.shape, f"shape {g.shape}, not {w.shape}"
        np.testing.assert_allclose(g.astype(np.float64), w.astype(np.float64), rtol=rtol, atol=atol)


def random(*shape: int, seed: int = 0, dtype: str = "float32") -> np.ndarray:
    """Normal numbers, the same each time; other shapes and seeds give others."""
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(dtype)


def slopes(loss: Callable[..., Any], *args: np.ndarray, step: float = 1e-6) -> list[np.ndarray]:
    """The gradients of a loss at f64 arguments, by central differences."""
    found: list[np.ndarray] = []
    for i, a in enumerate(args):
        gradient = np.zeros_like(a)
        for where in np.ndindex(a.shape):
            ends: list[float] = []
            for sign in (1, -1):
                moved = a.copy()
                moved[where] += sign * step
                ends.append(float(loss(*args[:i], moved, *args[i + 1 :])))
            gradient[where] = (ends[0] - ends[1]) / (2 * step)
        found.append(gradient)
    return found


def errors(text: str, folder: Path) -> list[tuple[str, int]]:
    """The codes and lines of the errors that checking a program reports."""
    path = folder / f"faulty_{next(_numbers)}.ocn"
    path.write_text(dedent(text).strip() + "\n", encoding="utf-8")
    return [(d.code, d.line) for d in ocannl_lang.check(path) if d.severity == "error"]
