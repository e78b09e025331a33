"""The cases: what every peer computes, and how much work one call of it is.

`values.py` gives the initial parameters and the batches of a case, `peers/` its computation, `programs/` the Ocn programs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Unit = Literal["flop", "byte", "call"]


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table.

    `work` counts one call: floating-point operations of the products and convolutions (two for a multiply-add; the backward pass
    without the gradient of the input), or bytes that have to be read and written. `sizes` are those of the family.
    """

    name: str
    family: str
    unit: Unit
    work: float
    sizes: tuple[int, ...] = ()
    summary: str = ""

    @property
    def trained(self) -> bool:
        """Whether a call is a step of training, so that the loss after `STEPS` steps is compared."""
        return self.family in TRAINED


@dataclass(frozen=True, slots=True)
class Transformer:
    """The sizes of a GPT: `length` positions in each of `batch` sequences, `vocabulary` characters."""

    depth: int
    width: int
    heads: int
    hidden: int
    length: int
    batch: int
    vocabulary: int = 0

    @property
    def head(self) -> int:
        """The width of one head."""
        return self.width // self.heads

    def block_flop(self, positions: int) -> float:
        """Of one block for one sequence of which `positions` are computed, each of which looks at all `length` positions."""
        dense = 4 * self.width**2 + 2 * self.width * self.hidden
        return 2.0 * positions * (dense + 2 * self.length * self.width)


GPT_MINI = Transformer(depth=4, width=128, heads=4, hidden=512, length=64, batch=8, vocabulary=65)
GPT2 = Transformer(depth=1, width=768, heads=12, hidden=3072, length=128, batch=1)

TRAINED = ("mlp", "makemore", "lenet", "gpt_mini")
RATES = {"mlp": 0.05, "makemore": 0.1, "lenet": 0.01, "gpt_mini": 0.001}
"""The learning rates: SGD, but Adam with its usual constants for `gpt_mini`."""

EPSILON = 1e-5
"""Of layer norm."""

STEPS = 20
"""After so many steps of training the losses are compared."""

BATCHES = 4
"""Different batches of a training case; step i takes batch i modulo this."""

SQUARES = (64, 128, 256, 512, 1024, 2048)
LAYERS = (1, 2, 4, 8, 16)
"""The depths of which compile times are measured."""


def gpt_mini(depth: int) -> Case:
    """A step of a GPT as in `GPT_MINI`, but `depth` layers deep."""
    g = GPT_MINI
    flop = 3 * g.batch * (depth * g.block_flop(g.length) + 2.0 * g.length * g.width * g.vocabulary)
    name = "gpt_mini" if depth == g.depth else f"gpt_mini of {depth} layers"
    return Case(name, "gpt_mini", "flop", flop, (depth,), f"GPT, {depth} layers, width 128, length 64, batch 8, Adam")


def _product(count: int, m: int, k: int, n: int, name: str = "") -> Case:
    name = name or f"gemm {m}x{k}x{n}"
    summary = f"{f'{count} products ' if count > 1 else ''}{m}x{k} · {k}x{n}"
    return Case(name, "gemm", "flop", 2.0 * count * m * k * n, (count, m, k, n), summary)


def _rows(name: str) -> Case:
    return Case(name, "pointwise", "byte", 2.0 * 4 * 4096 * 1024, (4096, 1024), f"{name} of 4096 rows of 1024")


def _trained(name: str, forward: tuple[int, ...], batch: int, summary: str) -> Case:
    """`forward`: multiply-adds of each layer for one example; the first has no gradient of its input."""
    return Case(name, name, "flop", 2.0 * batch * (3 * sum(forward) - forward[0]), (), summary)


CASES: tuple[Case, ...] = (
    *(_product(1, n, n, n, f"gemm {n}") for n in SQUARES),
    _product(1, 64, 784, 128),
    _product(1, 32, 512, 2048),
    _product(1, 1, 768, 3072),
    _product(16, 128, 64, 128, "gemm 16 of 128x64x128"),
    *(_rows(name) for name in ("gelu", "softmax", "layer norm")),
    _trained("mlp", (784 * 128, 128 * 64, 64 * 10), 64, "784-128-64-10, relu, batch 64, SGD"),
    Case("makemore", "makemore", "flop", 2.0 * 32 * 3 * (30 * 200 + 200 * 27), (), "context 3, hidden 200 tanh, batch 32, SGD"),
    _trained(
        "lenet",
        (24 * 24 * 6 * 25, 8 * 8 * 16 * 150, 256 * 120, 120 * 84, 84 * 10),
        32,
        "two convolutions 5x5, 120-84-10, batch 32, SGD",
    ),
    gpt_mini(GPT_MINI.depth),
    Case("gpt2_block", "gpt2", "flop", GPT2.block_flop(GPT2.length), (), "a block of GPT-2 small, 128 positions, forward"),
    Case("gpt2_token", "gpt2", "flop", GPT2.block_flop(1), (), "the same for one token, 127 before it cached"),
    Case("call", "call", "call", 1.0, (), "8 numbers plus 1: what a call costs"),
)  # fmt: skip


def case_named(name: str) -> Case:
    """The case of that name, those of other depths included. `KeyError` if there is none."""
    found = {c.name: c for c in (*CASES, *(gpt_mini(n) for n in LAYERS))}
    return found[name]
