"""Random numbers are those of Random123, in the documented mapping."""

from __future__ import annotations

import numpy as np
import pytest

from ocannl_lang.graph.random import (
    default_parameter,
    normal_array,
    random_values,
    stream_of,
    threefry4x32,
    uniform_array,
)

# Random123's known answers (`kat_vectors`, threefry4x32 20): counter, key, result.
KNOWN = [
    ("00000000 " * 4, "00000000 " * 4, "9c6ca96a e17eae66 fc10ecd4 5256a7d8"),
    ("ffffffff " * 4, "ffffffff " * 4, "2a881696 57012287 f6c7446e a16a6732"),
    (
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0 082efa98 ec4e6c89",
        "59cd1dbb b8879579 86b5d00c ac8b6d84",
    ),
]


def words(text: str) -> list[int]:
    return [int(w, 16) for w in text.split()]


@pytest.mark.parametrize(("counter", "key", "result"), KNOWN)
def test_known_answers(counter: str, key: str, result: str) -> None:
    c = [np.array([w], np.uint32) for w in words(counter)]
    k = words(key)
    out = threefry4x32((c[0], c[1], c[2], c[3]), (k[0], k[1], k[2], k[3]))
    assert [int(w[0]) for w in out] == words(result)


def test_four_neighbouring_elements_share_a_block() -> None:
    zero = np.zeros(1, np.uint32)
    out = threefry4x32(
        (zero + np.uint32(1), zero, zero + np.uint32(5), zero),
        (7, 0, stream_of("a") & 0xFFFFFFFF, stream_of("a") >> 32),
    )
    drawn = uniform_array((12,), seed=7, place="a", count=5)
    assert drawn.dtype == np.float32
    assert drawn[4:8].tolist() == [float(int(w[0]) >> 8) * 2.0**-24 for w in out]


@pytest.mark.parametrize("prec", ["f32", "f64"])
def test_a_part_of_a_tensor_is_what_the_whole_has_there(prec: str) -> None:
    assert prec == "f32" or prec == "f64"
    for dist, whole in (("uniform", uniform_array), ("normal", normal_array)):
        assert dist == "uniform" or dist == "normal"
        position = np.array([[3, 17], [40, 0]])
        part = random_values(dist, prec, seed=1, stream=stream_of("p"), count=2, position=position)
        full = whole((41,), seed=1, place="p", count=2, prec=prec)
        assert np.array_equal(part, full[position])


def test_seed_place_count_and_position_all_matter() -> None:
    base = uniform_array((64,), seed=0, place="a")
    for other in (
        uniform_array((64,), seed=1, place="a"),
        uniform_array((64,), seed=1 << 32, place="a"),
        uniform_array((64,), seed=0, place="b"),
        uniform_array((64,), seed=0, place="a", count=1),
        uniform_array((64,), seed=0, place="a", count=-1),
    ):
        assert not np.any(base == other)
    assert len(set(base.tolist())) == 64


@pytest.mark.parametrize("prec", ["f32", "f64"])
def test_moments(prec: str) -> None:
    assert prec == "f32" or prec == "f64"
    u = uniform_array((40000,), seed=3, place="u", prec=prec).astype(np.float64)
    assert u.min() >= 0 and u.max() < 1
    assert abs(u.mean() - 0.5) < 0.01 and abs(u.var() - 1 / 12) < 0.005
    n = normal_array((40000,), seed=3, place="n", prec=prec).astype(np.float64)
    assert np.isfinite(n).all()
    assert (
        abs(n.mean()) < 0.02 and abs(n.var() - 1) < 0.03 and abs((n**3).mean()) < 0.08 and abs((n**4).mean() - 3) < 0.3
    )


def test_default_parameters() -> None:
    w = default_parameter("net.w", (), (30,), (4, 25), seed=0)
    assert w.shape == (30, 4, 25) and w.dtype == np.float32
    assert np.abs(w).max() <= 0.1 and np.abs(w).max() > 0.09 and abs(w.mean()) < 0.01
    b = default_parameter("net.b", (), (1000,), (), seed=0)
    assert 0.018 < b.std() < 0.022
