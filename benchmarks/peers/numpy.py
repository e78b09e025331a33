"""numpy with its BLAS, as a person without a framework writes it: backward passes by hand, buffers reused where that helps."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cases import GPT2, RATES, Case
from benchmarks.peers import Job, no_wait, number_of
from benchmarks.peers import numpy_networks as networks
from benchmarks.values import Array, Values, block_of, parameters_of


def ready() -> None:
    np.matmul(np.ones((4, 4), np.float32), np.ones((4, 4), np.float32))


def versions() -> dict[str, str]:
    config: Any = np.show_config(mode="dicts")
    blas = config["Build Dependencies"]["blas"]
    return {"numpy": f"{np.__version__} ({blas['name']} {blas['version']})"}


def job(case: Case, values: Values) -> Job:
    if case.trained:
        return _trained(case, values)
    call = _plain(case, values)
    return Job(call, no_wait, number_of)


def _trained(case: Case, values: Values) -> Job:
    parameters = {name: value.copy() for name, value in parameters_of(values).items()}
    batches = itertools.cycle(list(zip(values["x"], values["y"])))
    gradients_of = networks.NETWORKS[case.family]
    apply = _adam(parameters, RATES[case.family]) if case.family == "gpt_mini" else _sgd(parameters, RATES[case.family])

    def step() -> float:
        loss, gradients = gradients_of(parameters, *next(batches))
        apply(gradients)
        return loss

    return Job(step, no_wait, float)


def _sgd(parameters: Values, rate: float) -> Callable[[Values], None]:
    def apply(gradients: Values) -> None:
        for name, gradient in gradients.items():
            gradient *= np.float32(rate)
            parameters[name] -= gradient

    return apply


def _adam(parameters: Values, rate: float) -> Callable[[Values], None]:
    """Source: Kingma and Ba, Adam: A Method for Stochastic Optimization (2015)."""
    first = {name: np.zeros_like(value) for name, value in parameters.items()}
    second = {name: np.zeros_like(value) for name, value in parameters.items()}
    count = itertools.count(1)
    beta1, beta2, epsilon = np.float32(0.9), np.float32(0.999), np.float32(1e-8)

    def apply(gradients: Values) -> None:
        t = next(count)
        scale1, scale2 = np.float32(rate / (1 - 0.9**t)), np.float32(1 / (1 - 0.999**t))
        for name, gradient in gradients.items():
            m, v = first[name], second[name]
            m *= beta1
            m += (1 - beta1) * gradient
            v *= beta2
            gradient *= gradient
            v += (1 - beta2) * gradient
            parameters[name] -= scale1 * m / (np.sqrt(v * scale2) + epsilon)

    return apply


def _plain(case: Case, values: Values) -> Callable[[], Array]:
    if case.family == "gemm":
        a, b = values["a"], values["b"]
        product = np.empty((*a.shape[:-1], b.shape[-1]), np.float32)
        return lambda: np.matmul(a, b, out=product)
    x = values["x"]
    out, spare = np.empty_like(x), np.empty_like(x)
    match case.name:
        case "gelu":
            return lambda: _gelu(x, out)
        case "softmax":
            return lambda: _softmax(x, out)
        case "layer norm":
            return lambda: _layer_norm(x, values["gamma"], values["beta"], out, spare)
        case "gpt2_block":
            parameters = block_of(values, 0)
            return lambda: networks.block(x, parameters, GPT2)[0]
        case "gpt2_token":
            parameters, cache = block_of(values, 0), (values["keys"].copy(), values["values"].copy())
            return lambda: networks.block(x, parameters, GPT2, cache, GPT2.length - 1)[0]
        case _:
            return lambda: np.add(x, np.float32(1), out=out)


PIECE = 64
"""So many rows at a time, so that what is between the passes stays in the cache."""


def _gelu(x: Array, out: Array) -> Array:
    for start in range(0, len(x), PIECE):
        a, y = x[start : start + PIECE], out[start : start + PIECE]
        np.multiply(a, a, out=y)
        y *= np.float32(0.044715)
        y += np.float32(1)
        y *= a
        y *= np.float32((2 / np.pi) ** 0.5)
        np.tanh(y, out=y)
        y += np.float32(1)
        y *= np.float32(0.5)
        y *= a
    return out


def _softmax(x: Array, out: Array) -> Array:
    for start in range(0, len(x), PIECE):
        a, y = x[start : start + PIECE], out[start : start + PIECE]
        np.subtract(a, a.max(-1, keepdims=True), out=y)
        np.exp(y, out=y)
        y /= y.sum(-1, keepdims=True)
    return out


def _layer_norm(x: Array, gamma: Array, beta: Array, out: Array, spare: Array) -> Array:
    for start in range(0, len(x), PIECE):
        a, y, square = x[start : start + PIECE], out[start : start + PIECE], spare[:PIECE]
        np.subtract(a, a.mean(-1, keepdims=True), out=y)
        np.multiply(y, y, out=square[: len(y)])
        variance = square[: len(y)].mean(-1, keepdims=True)
        y *= np.float32(1) / np.sqrt(variance + np.float32(1e-5))
        y *= gamma
        y += beta
    return out
