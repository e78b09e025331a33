"""Programs from texts, for comparing the standard library with PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ocannl_lang


def program(folder: Path, text: str, **options: Any) -> Any:
    """The loaded module of an Ocn text."""
    file = folder / "program.ocn"
    file.write_text(text, encoding="utf-8")
    return ocannl_lang.load(file, **options)


def numbers(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    """Normal f32 numbers, the same for the same seed."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def close(got: Any, want: Any, tolerance: float = 1e-5) -> None:
    """`got` has the shape of `want` and differs from it by no more than rounding; `want` may be a torch tensor."""
    want = want.detach().numpy() if hasattr(want, "detach") else np.asarray(want)
    got = np.asarray(got)
    assert got.shape == want.shape, f"shape {got.shape}, not {want.shape}"
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=tolerance, atol=tolerance)
