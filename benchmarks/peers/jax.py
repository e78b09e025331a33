"""JAX: one jit for each case, a whole step of training with its state donated."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.cases import EPSILON, GPT2, GPT_MINI, RATES, Case, Transformer
from benchmarks.peers import Job, number_of
from benchmarks.values import Values, block_of, parameters_of

Array = jax.Array
Parameters = dict[str, Any]
Loss = Callable[[Parameters, Array, Array], Array]


def ready() -> None:
    jax.jit(lambda x: x + 1)(jnp.zeros(8)).block_until_ready()


def versions() -> dict[str, str]:
    return {"jax": jax.__version__}


def job(case: Case, values: Values) -> Job:
    if case.trained:
        return _trained(case, values)
    return Job(_plain(case, values), jax.block_until_ready, number_of)


def _trained(case: Case, values: Values) -> Job:
    parameters, images = parameters_of(values), values["x"]
    if case.family == "lenet":  # channels last, as flax has them
        images = images.transpose(0, 1, 3, 4, 2)
        kernels = {name: parameters[name].transpose(2, 3, 1, 0) for name in ("k1", "k2")}
        parameters = {**parameters, **kernels}
    batches = itertools.cycle([(jnp.array(x), jnp.array(y)) for x, y in zip(images, values["y"])])
    started: Parameters = {name: jnp.array(value) for name, value in parameters.items()}
    rate = RATES[case.family]
    if case.family == "gpt_mini":
        state: Any = (started, jax.tree.map(jnp.zeros_like, started), jax.tree.map(jnp.zeros_like, started), 0)
        update = _adam(LOSSES[case.family], rate)
    else:
        state = started
        update = _sgd(LOSSES[case.family], rate)
    compiled = jax.jit(update, donate_argnums=0)

    def step() -> Array:
        nonlocal state
        state, loss = compiled(state, *next(batches))
        return loss

    return Job(step, float, float)


def _sgd(loss_of: Loss, rate: float) -> Callable[..., Any]:
    def update(p: Parameters, x: Array, y: Array) -> tuple[Parameters, Array]:
        loss, g = jax.value_and_grad(loss_of)(p, x, y)
        return jax.tree.map(lambda value, gradient: value - rate * gradient, p, g), loss

    return update


def _adam(loss_of: Loss, rate: float) -> Callable[..., Any]:
    """Source: Kingma and Ba, Adam: A Method for Stochastic Optimization (2015)."""

    def update(state: Any, x: Array, y: Array) -> tuple[Any, Array]:
        p, m, v, t = state
        loss, g = jax.value_and_grad(loss_of)(p, x, y)
        t = t + 1
        m = jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, m, g)
        v = jax.tree.map(lambda old, new: 0.999 * old + 0.001 * new * new, v, g)
        scale1, scale2 = rate / (1 - 0.9**t), 1 / (1 - 0.999**t)
        p = jax.tree.map(lambda value, a, b: value - scale1 * a / (jnp.sqrt(b * scale2) + 1e-8), p, m, v)
        return (p, m, v, t), loss

    return update


def _plain(case: Case, values: Values) -> Callable[[], Array]:
    arrays = {name: jnp.array(value) for name, value in values.items()}
    if case.family == "gemm":
        product = jax.jit(jnp.matmul)
        return lambda: product(arrays["a"], arrays["b"])
    x = arrays["x"]
    match case.name:
        case "gpt2_block":
            whole = jax.jit(lambda t, p: _block(t, p, GPT2))
            return lambda: whole(x, block_of(arrays, 0))
        case "gpt2_token":
            return _token(x, block_of(arrays, 0), (arrays["keys"], arrays["values"]))
        case "gelu":
            gelu = jax.jit(lambda t: jax.nn.gelu(t, approximate=True))
            return lambda: gelu(x)
        case "softmax":
            softmax = jax.jit(lambda t: jax.nn.softmax(t, -1))
            return lambda: softmax(x)
        case "layer norm":
            norm = jax.jit(_layer_norm)
            return lambda: norm(x, arrays["gamma"], arrays["beta"])
        case _:
            plus_one = jax.jit(lambda t: t + 1)
            return lambda: plus_one(x)


def _token(x: Array, p: Parameters, cache: tuple[Array, Array]) -> Callable[[], Array]:
    step = jax.jit(lambda t, q, c, position: _token_block(t, q, GPT2, c, position), donate_argnums=2)
    position = jnp.int32(GPT2.length - 1)

    def token() -> Array:
        nonlocal cache
        y, cache = step(x, p, cache, position)
        return y

    return token


# ---------------------------------------------------------------- the networks


def mlp(p: Parameters, x: Array, y: Array) -> Array:
    return _cross_entropy(_three_layers(p, x), y)


def _three_layers(p: Parameters, x: Array) -> Array:
    h = jax.nn.relu(x @ p["w1"] + p["b1"])
    h = jax.nn.relu(h @ p["w2"] + p["b2"])
    return h @ p["w3"] + p["b3"]


def makemore(p: Parameters, x: Array, y: Array) -> Array:
    e = p["embedding"][x].reshape(x.shape[0], -1)
    return _cross_entropy(jnp.tanh(e @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"], y)


def lenet(p: Parameters, x: Array, y: Array) -> Array:
    h = _pooled(jax.nn.relu(_convolved(x, p["k1"]) + p["c1"]))
    h = _pooled(jax.nn.relu(_convolved(h, p["k2"]) + p["c2"]))
    return _cross_entropy(_three_layers(p, h.transpose(0, 3, 1, 2).reshape(x.shape[0], -1)), y)


def _convolved(x: Array, kernel: Array) -> Array:
    return lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _pooled(x: Array) -> Array:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def gpt(p: Parameters, x: Array, y: Array) -> Array:
    h = p["tokens"][x] + p["positions"]
    for layer in range(sum(name.endswith("qkv.w") for name in p)):
        h = _block(h, block_of(p, layer), GPT_MINI)
    logits = _layer_norm(h, p["norm.gamma"], p["norm.beta"]) @ p["head.w"]
    return _cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))


def _cross_entropy(logits: Array, labels: Array) -> Array:
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1).mean()


def _layer_norm(x: Array, gamma: Array, beta: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + EPSILON) * gamma + beta


def _block(x: Array, p: Parameters, t: Transformer) -> Array:
    q, k, v = _queries_keys_values(x, p, t)
    seen = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
    return _rest_of_block(x, _attended(q, k, v, seen), p)


def _token_block(
    x: Array, p: Parameters, t: Transformer, cache: tuple[Array, Array], position: Array
) -> tuple[Array, tuple[Array, Array]]:
    q, k, v = _queries_keys_values(x, p, t)
    keys = lax.dynamic_update_slice(cache[0], k, (0, 0, position, 0))
    values = lax.dynamic_update_slice(cache[1], v, (0, 0, position, 0))
    seen = jnp.arange(t.length) <= position
    return _rest_of_block(x, _attended(q, keys, values, seen), p), (keys, values)


def _queries_keys_values(x: Array, p: Parameters, t: Transformer) -> Array:
    """(3, sequences, heads, positions, elements)"""
    h = _layer_norm(x, p["norm1.gamma"], p["norm1.beta"]) @ p["qkv.w"] + p["qkv.b"]
    return h.reshape(*x.shape[:2], 3, t.heads, t.head).transpose(2, 0, 3, 1, 4)


def _attended(q: Array, k: Array, v: Array, seen: Array) -> Array:
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5
    att = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), -1)
    mixed = jnp.einsum("bhqk,bhkd->bqhd", att, v)
    return mixed.reshape(*mixed.shape[:2], -1)


def _rest_of_block(x: Array, mixed: Array, p: Parameters) -> Array:
    x = x + mixed @ p["proj.w"] + p["proj.b"]
    h = _layer_norm(x, p["norm2.gamma"], p["norm2.beta"]) @ p["up.w"] + p["up.b"]
    return x + jax.nn.gelu(h, approximate=True) @ p["down.w"] + p["down.b"]


LOSSES: dict[str, Loss] = {"mlp": mlp, "makemore": makemore, "lenet": lenet, "gpt_mini": gpt}
