"""Random numbers: a pure function of the seed, the place, the call count and the position. The definition for every
backend.

The generator is threefry-4x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011),
as in Random123.

* The key is four words: seed (low, high), stream (low, high). The seed is the context's, 64 bits. The stream names the
  place that draws: the first 8 bytes, little-endian, of blake2b (digest size 8) of its path in UTF-8 (`stream_of`).
* The counter is four words: block (low, high), count (low, high). The count is the call count of the routine, or the
  explicit counter, as a 64-bit two's complement number.
* Word j of a stream is word j mod 4 of the block j div 4. Element number n (row-major, memory order) of a random
  tensor takes the words n·w … n·w + w - 1, with w = 1 for uniform f32, 2 for uniform f64 and normal f32, 4 for normal
  f64. They lie in one block.
* uniform f32 = (a >> 8) · 2^-24. uniform f64 = ((b << 21) | (a >> 11)) · 2^-53 from two words a, b (b the high one).
* normal = sqrt(-2 ln u1) · cos(2π u2) (Box-Muller), u2 uniform as above from the second half of the words, and u1 = 1
  - uniform from the first half, which lies in (0, 1].

Narrower floats are rounded from f32.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Distribution = Literal["uniform", "normal"]
Words = NDArray[np.uint32]

_ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))
_PARITY = 0x1BD11BDA
_MASK = 0xFFFFFFFF


def random_values(
    dist: Distribution,
    prec: Literal["f32", "f64"],
    *,
    seed: int,
    stream: int,
    count: NDArray[Any] | int,
    position: NDArray[Any],
) -> NDArray[Any]:
    """Elements number `position` (any shape; `count` broadcasts with it) of a stream, in f32 or f64."""
    n, c = np.broadcast_arrays(np.asarray(position, np.uint64), np.asarray(count).astype(np.int64))
    width = words_per_element(dist, prec)
    first: NDArray[np.uint64] = (n * np.uint64(width)).astype(np.uint64)
    block: NDArray[np.uint64] = (first >> np.uint64(2)).astype(np.uint64)
    lane: NDArray[np.intp] = (first & np.uint64(3)).astype(np.intp)
    calls = c.astype(np.uint64)
    words = threefry4x32((_low(block), _high(block), _low(calls), _high(calls)), key_of(seed, stream))
    picked = [np.choose(lane + k, list(words)) for k in range(width)]
    return _values(dist, prec, picked)


def _values(dist: Distribution, prec: Literal["f32", "f64"], picked: list[Words]) -> NDArray[Any]:
    """Elements from their words: `picked[k]` are the words number k of all of them."""
    if dist == "uniform":
        return _unit(picked, prec).astype(prec_type(prec))
    half = len(picked) // 2
    u1, u2 = 1.0 - _unit(picked[:half], prec), _unit(picked[half:], prec)
    return (np.sqrt(-2.0 * np.log(u1)) * np.cos(2.0 * math.pi * u2)).astype(prec_type(prec))


def uniform_array(
    shape: tuple[int, ...], *, seed: int, place: str, count: int = 0, prec: Literal["f32", "f64"] = "f32"
) -> NDArray[Any]:
    """A whole tensor, uniform in [0, 1), as `uniform()` at the path `place` draws it."""
    return _array("uniform", shape, seed, place, count, prec)


def normal_array(
    shape: tuple[int, ...], *, seed: int, place: str, count: int = 0, prec: Literal["f32", "f64"] = "f32"
) -> NDArray[Any]:
    """A whole tensor with mean 0 and deviation 1, as `normal()` at the path `place` draws it."""
    return _array("normal", shape, seed, place, count, prec)


def default_parameter(
    path: str,
    batch: tuple[int, ...],
    output: tuple[int, ...],
    input: tuple[int, ...],
    *,
    seed: int,
    prec: Literal["f32", "f64"] = "f32",
) -> NDArray[Any]:
    """The first content of a parameter without an initial value, in memory order.

    With input axes uniform in ±1/√fan_in (fan_in: the product of the input axes), else normal with deviation 0.02.
    """
    shape = (*batch, *output, *input)
    if input:
        bound = 1.0 / math.sqrt(max(math.prod(input), 1))
        drawn = uniform_array(shape, seed=seed, place=path, prec=prec)
        return ((2.0 * drawn.astype(np.float64) - 1.0) * bound).astype(prec_type(prec))
    return (0.02 * normal_array(shape, seed=seed, place=path, prec=prec).astype(np.float64)).astype(prec_type(prec))


def stream_of(place: str) -> int:
    """The 64 bits that name a place that draws."""
    return int.from_bytes(hashlib.blake2b(place.encode("utf-8"), digest_size=8).digest(), "little")


def key_of(seed: int, stream: int) -> tuple[int, int, int, int]:
    return seed & _MASK, (seed >> 32) & _MASK, stream & _MASK, (stream >> 32) & _MASK


def words_per_element(dist: Distribution, prec: str) -> int:
    return (2 if prec == "f64" else 1) * (2 if dist == "normal" else 1)


def threefry4x32(
    counter: tuple[Words, Words, Words, Words], key: tuple[int, int, int, int]
) -> tuple[Words, Words, Words, Words]:
    """The four output words for each counter, 20 rounds; all arithmetic modulo 2^32."""
    parity = _PARITY ^ key[0] ^ key[1] ^ key[2] ^ key[3]
    keys = [np.uint32(k) for k in (*key, parity)]
    with np.errstate(over="ignore"):
        x = [c + k for c, k in zip(counter, keys, strict=False)]
        for r in range(20):
            left, right = _ROTATIONS[r % 8]
            # Odd rounds mix the words crosswise: 0 with 3 and 2 with 1.
            a, b = (1, 3) if r % 2 == 0 else (3, 1)
            x[0] = x[0] + x[a]
            x[a] = _rotate(x[a], left) ^ x[0]
            x[2] = x[2] + x[b]
            x[b] = _rotate(x[b], right) ^ x[2]
            if r % 4 == 3:
                group = r // 4 + 1
                for i in range(4):
                    x[i] = x[i] + keys[(group + i) % 5]
                x[3] = x[3] + np.uint32(group)
    return x[0], x[1], x[2], x[3]


def prec_type(prec: Literal["f32", "f64"]) -> type[np.float32] | type[np.float64]:
    return np.float64 if prec == "f64" else np.float32


def _array(
    dist: Distribution, shape: tuple[int, ...], seed: int, place: str, count: int, prec: Literal["f32", "f64"]
) -> NDArray[Any]:
    size, width = math.prod(shape), words_per_element(dist, prec)
    # Each block once, whose words go to the elements in turn.
    blocks = np.arange(-(-size * width // 4), dtype=np.uint64)
    calls = np.full(1, count, np.int64).astype(np.uint64)
    words = threefry4x32((_low(blocks), _high(blocks), _low(calls), _high(calls)), key_of(seed, stream_of(place)))
    picked = list(np.stack(words, axis=-1).reshape(-1, width)[:size].T)
    return _values(dist, prec, picked).reshape(shape)


def _unit(words: list[Words], prec: str) -> NDArray[np.float64]:
    if prec == "f64":
        bits = (words[1].astype(np.uint64) << np.uint64(21)) | (words[0].astype(np.uint64) >> np.uint64(11))
        return bits.astype(np.float64) * 2.0**-53
    return (words[0] >> np.uint32(8)).astype(np.float64) * 2.0**-24


def _low(x: NDArray[np.uint64]) -> Words:
    return (x & np.uint64(_MASK)).astype(np.uint32)


def _high(x: NDArray[np.uint64]) -> Words:
    return (x >> np.uint64(32)).astype(np.uint32)


def _rotate(x: Words, by: int) -> Words:
    return (x << np.uint32(by)) | (x >> np.uint32(32 - by))
