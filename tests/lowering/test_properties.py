"""Random notations against the definition, written as plain loops, and random graphs against finite differences."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ocannl_lang.graph import ir
from tests.graph.make import Dims, apply, number, reduce, run, shape, tensor, value
from tests.lowering.gradients import check

SIZES = {"a": 2, "b": 3, "c": 1, "d": 2}
NEUTRAL = {"add": 0.0, "mul": 1.0, "max": -np.inf, "min": np.inf}
UFUNCS: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@dataclass(frozen=True)
class Axis:
    """An axis of a random slot: its text, its size and the position for given values of the labels."""

    name: str
    size: int
    at: Callable[[dict[str, int]], int]
    resolved: Any


def axes(d: Dims) -> st.SearchStrategy[Axis]:
    names = st.sampled_from(sorted(SIZES))

    def label(n: str) -> Axis:
        return Axis(n, SIZES[n], lambda v: v[n], d[n])

    def fixed(position: int) -> Axis:
        return Axis(f"f{position}", 3, lambda v: position, ir.Fixed(position))

    def strided(n: str, s: int, o: int) -> Axis:
        return Axis(f"s{s}{n}{o}", s * SIZES[n], lambda v: s * v[n] + o, ir.StridedAxis(s, d[n], o))

    def window(o: str, k: str, s: int, dilation: int, padded: bool) -> Axis:
        span = dilation * (SIZES[k] - 1) + 1
        left = (span - 1) // 2 if padded else 0
        size = s * SIZES[o] if padded else s * (SIZES[o] - 1) + span
        resolved = d.window(o, k, s, dilation, padded)
        return Axis(f"w{o}{k}{s}{dilation}{padded}", size, lambda v: s * v[o] + dilation * v[k] - left, resolved)

    return st.one_of(
        names.map(label),
        names.map(label),
        st.builds(fixed, st.integers(0, 2)),
        st.builds(strided, names, st.just(2), st.integers(0, 1)),
        st.builds(window, names, names, st.integers(1, 2), st.integers(1, 2), st.booleans()),
    )


def labels_of(axis: Axis) -> list[str]:
    match axis.resolved:
        case ir.Label(key=key):
            return [key]
        case ir.StridedAxis(label=label):
            return [label.key]
        case ir.WindowAxis(out=out, kernel=kernel):
            return [out.key, kernel.key]
        case _:
            return []


def by_definition(slots: list[list[Axis]], result: list[Axis], arrays: list[Any], accum: str, combine: str) -> Any:
    """All turns one after the other."""
    names = sorted({n for slot in (*slots, result) for axis in slot for n in labels_of(axis)})
    total = np.full([a.size for a in result], NEUTRAL[accum])
    for values in itertools.product(*(range(SIZES[n]) for n in names)):
        v = dict(zip(names, values, strict=True))
        elements: list[float] = []
        for slot, array in zip(slots, arrays, strict=True):
            at = tuple(a.at(v) for a in slot)
            inside = all(0 <= p < a.size for p, a in zip(at, slot, strict=True))
            elements.append(array[at] if inside else NEUTRAL[accum])
        to = tuple(a.at(v) for a in result)
        if all(0 <= p < a.size for p, a in zip(to, result, strict=True)):
            element = functools.reduce(UFUNCS[combine], elements)
            total[to] = UFUNCS[accum](total[to], element)
    return total


D = Dims(**SIZES)


@st.composite
def notations(draw: Any) -> tuple[list[list[Axis]], list[Axis], str, str, list[Any]]:
    slots = draw(st.lists(st.lists(axes(D), max_size=3), min_size=1, max_size=2))
    result = draw(st.lists(axes(D), max_size=2))
    accum, combine = draw(
        st.sampled_from([("add", "mul"), ("max", "add"), ("min", "add"), ("mul", "mul"), ("add", "add")])
    )
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    arrays = [rng.standard_normal([a.size for a in slot]) for slot in slots]
    return slots, result, accum, combine, arrays


def built(slots: list[list[Axis]], result: list[Axis], accum: str, combine: str) -> tuple[list[ir.Value], ir.Value]:
    xs = [tensor(f"x{i}", tuple(a.size for a in slot)) for i, slot in enumerate(slots)]
    text = " ; ".join(" ".join(a.name for a in slot) for slot in slots) + " => " + " ".join(a.name for a in result)
    resolved: dict[str, Any] = {a.name: a.resolved for slot in (*slots, result) for a in slot}
    to = shape(tuple(a.size for a in result))
    return xs, reduce(D, accum, text, *xs, combine=combine, to=to, **resolved)


@settings(max_examples=50, deadline=None)
@given(notations())
def test_notations_mean_their_definition(case: Any) -> None:
    slots, result, accum, combine, arrays = case
    xs, y = built(slots, result, accum, combine)
    got = run(dict(zip(xs, arrays, strict=True)), [y], D)[0]
    np.testing.assert_allclose(got, by_definition(slots, result, arrays, accum, combine), rtol=1e-10, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(notations())
def test_gradients_of_notations(case: Any) -> None:
    slots, result, accum, combine, arrays = case
    xs, y = built(slots, result, accum, combine)
    check(dict(zip(xs, arrays, strict=True)), y, D)


# ---------------------------------------------------------------- graphs

GRAPH_DIMS = Dims(i=2, j=3)
UNARY = ["tanh", "sigmoid", "sin", "softplus", "gelu", "silu", "neg", "relu", "abs", "stop_gradient"]
BINARY = ["add", "sub", "mul", "max", "min"]


@st.composite
def graphs(draw: Any) -> tuple[dict[ir.Value, Any], ir.Value]:
    """A graph over matrices [2 -> 3] and vectors [2], [3], with shared values."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    shapes = {"m": shape((2,), (3,)), "u": shape((2,)), "v": shape((3,))}
    leaves = {"m": tensor("m", (2,), (3,)), "u": tensor("u", (2,)), "v": tensor("v", (3,))}
    inputs = {
        leaves["m"]: rng.standard_normal((2, 3)),
        leaves["u"]: rng.standard_normal(2),
        leaves["v"]: rng.standard_normal(3),
    }
    pool: dict[str, list[ir.Value]] = {k: [x] for k, x in leaves.items()}
    d = GRAPH_DIMS

    def pick(kind: str) -> ir.Value:
        return draw(st.sampled_from(pool[kind]))

    for _ in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(["m", "u", "v"]))
        match draw(st.sampled_from(["unary", "binary", "number", "product", "reduce", "spread", "stack"])):
            case "unary":
                fn = draw(st.sampled_from(UNARY))
                new = apply(fn, pick(kind), to=shapes[kind], differentiable=fn != "stop_gradient")
                if fn == "stop_gradient":
                    new = apply("tanh", pick(kind), to=shapes[kind])
            case "binary":
                new = apply(draw(st.sampled_from(BINARY)), pick(kind), pick(kind), to=shapes[kind])
            case "number":
                new = apply("mul", pick(kind), number(0.7), to=shapes[kind])
            case "product":
                kind = "u"
                new = value(ir.Product(pick("m"), pick("v")), shapes["u"])
            case "reduce":
                kind = "u"
                accum = draw(st.sampled_from(["add", "mean", "max"]))
                new = reduce(d, accum, "j -> i => i", pick("m"), to=shapes["u"])
            case "spread":
                kind = "m"
                new = apply("mul", pick("m"), pick("u"), to=shapes["m"])
            case _:
                kind = "u"
                total = reduce(d, "add", "j => ", pick("v"), to=shape())
                new = value(ir.Stack("output", (total, total)), shapes["u"])
        pool[kind].append(new)
    root = apply("add", pool["u"][-1], reduce(d, "add", "j -> i => i", pool["m"][-1], to=shapes["u"]), to=shapes["u"])
    root = apply("add", root, reduce(d, "add", "j => ", pool["v"][-1], to=shape()), to=shapes["u"])
    return inputs, root


@settings(max_examples=25, deadline=None)
@given(graphs())
def test_gradients_of_graphs(case: Any) -> None:
    inputs, root = case
    check(inputs, root, GRAPH_DIMS, tolerance=1e-5)
