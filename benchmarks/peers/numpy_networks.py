"""The networks of the numpy peer: each gives the loss and the gradients of all parameters for one batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from benchmarks.cases import EPSILON, GPT_MINI, Transformer
from benchmarks.values import Array, Values, block_of

Network = Callable[[Values, Array, Array], tuple[float, Values]]

# ---------------------------------------------------------------- perceptrons


def mlp(p: Values, x: Array, y: Array) -> tuple[float, Values]:
    gradients: Values = {}
    loss, _ = _three_layers(p, x, y, gradients, wanted=False)
    return loss, gradients


def _three_layers(p: Values, x: Array, y: Array, g: Values, wanted: bool) -> tuple[float, Array | None]:
    """Three dense layers with relu between them; gradients go into `g`, that of `x` is returned if it is wanted."""
    h1 = np.maximum(x @ p["w1"] + p["b1"], 0)
    h2 = np.maximum(h1 @ p["w2"] + p["b2"], 0)
    loss, d = _cross_entropy(h2 @ p["w3"] + p["b3"], y)
    g["w3"], g["b3"] = h2.T @ d, d.sum(0)
    d = (d @ p["w3"].T) * (h2 > 0)
    g["w2"], g["b2"] = h1.T @ d, d.sum(0)
    d = (d @ p["w2"].T) * (h1 > 0)
    g["w1"], g["b1"] = x.T @ d, d.sum(0)
    return loss, d @ p["w1"].T if wanted else None


def makemore(p: Values, x: Array, y: Array) -> tuple[float, Values]:
    e = p["embedding"][x].reshape(len(x), -1)
    h = np.tanh(e @ p["w1"] + p["b1"])
    loss, d = _cross_entropy(h @ p["w2"] + p["b2"], y)
    g: Values = {"w2": h.T @ d, "b2": d.sum(0)}
    d = (d @ p["w2"].T) * (1 - h * h)
    g["w1"], g["b1"] = e.T @ d, d.sum(0)
    g["embedding"] = _scattered(p["embedding"], x, d @ p["w1"].T)
    return loss, g


def _cross_entropy(logits: Array, labels: Array) -> tuple[float, Array]:
    """The mean loss, and its gradient with respect to the logits (rows, classes)."""
    rows = np.arange(len(labels))
    shifted = logits - logits.max(1, keepdims=True)
    e = np.exp(shifted)
    total = e.sum(1, keepdims=True)
    loss = float((np.log(total[:, 0]) - shifted[rows, labels]).mean())
    e /= total
    e[rows, labels] -= 1
    e /= np.float32(len(labels))
    return loss, e


def _scattered(table: Array, ids: Array, d: Array) -> Array:
    """The gradient of a table whose rows `ids` were read."""
    found = np.zeros_like(table)
    np.add.at(found, ids.ravel(), d.reshape(-1, table.shape[1]))
    return found


# ---------------------------------------------------------------- convolutions


def lenet(p: Values, x: Array, y: Array) -> tuple[float, Values]:
    g: Values = {}
    a1, columns1 = _convolved(x, p["k1"], p["c1"])
    h1, first1 = _pooled(np.maximum(a1, 0))
    a2, columns2 = _convolved(h1, p["k2"], p["c2"])
    h2, first2 = _pooled(np.maximum(a2, 0))
    loss, flat = _three_layers(p, h2.reshape(len(x), -1), y, g, wanted=True)
    assert flat is not None
    d = _unpooled(flat.reshape(h2.shape), first2) * (a2 > 0)
    g["k2"], g["c2"], columns = _convolution_gradients(d, columns2, p["k2"])
    d = _unpooled(_image(columns, p["k2"], h1.shape, d.shape), first1) * (a1 > 0)
    rows = np.ascontiguousarray(d.transpose(0, 2, 3, 1)).reshape(-1, len(p["k1"]))
    g["k1"], g["c1"] = (rows.T @ columns1).reshape(p["k1"].shape), rows.sum(0)
    return loss, g


def _convolved(x: Array, kernel: Array, bias: Array) -> tuple[Array, Array]:
    """A convolution as a product with the windows of the image, which are returned too."""
    f, c, k, _ = kernel.shape
    windows: Array = sliding_window_view(x, (k, k), (2, 3))
    n, _, h, w = windows.shape[:4]
    columns = np.ascontiguousarray(windows.transpose(0, 2, 3, 1, 4, 5)).reshape(n * h * w, c * k * k)
    y = columns @ kernel.reshape(f, -1).T + bias
    return y.reshape(n, h, w, f).transpose(0, 3, 1, 2), columns


def _convolution_gradients(d: Array, columns: Array, kernel: Array) -> tuple[Array, Array, Array]:
    """The gradients of the kernel, of the bias and of the windows."""
    rows = np.ascontiguousarray(d.transpose(0, 2, 3, 1)).reshape(-1, len(kernel))
    flat = kernel.reshape(len(kernel), -1)
    return (rows.T @ columns).reshape(kernel.shape), rows.sum(0), rows @ flat


def _image(columns: Array, kernel: Array, shape: tuple[int, ...], result: tuple[int, ...]) -> Array:
    """The gradient of an image from that of its windows; `result` is the shape of the convolution's result."""
    _, c, k, _ = kernel.shape
    n, _, h, w = result
    windows = columns.reshape(n, h, w, c, k, k).transpose(0, 3, 4, 5, 1, 2)
    found = np.zeros(shape, np.float32)
    for i in range(k):
        for j in range(k):
            found[:, :, i : i + h, j : j + w] += windows[:, :, i, j]
    return found


def _pooled(x: Array) -> tuple[Array, Array]:
    """The maxima of windows of 2×2, and where in their window they are: those that tie share the gradient equally."""
    n, c, h, w = x.shape
    windows = x.reshape(n, c, h // 2, 2, w // 2, 2)
    top = windows.max((3, 5))
    share = (windows == top[:, :, :, None, :, None]).astype(np.float32)
    share /= share.sum((3, 5), keepdims=True)
    return top, share


def _unpooled(d: Array, share: Array) -> Array:
    n, c, h, _, w, _ = share.shape
    return (share * d[:, :, :, None, :, None]).reshape(n, c, h * 2, w * 2)


# ---------------------------------------------------------------- transformers


def gpt(p: Values, x: Array, y: Array) -> tuple[float, Values]:
    t = GPT_MINI
    depth = sum(name.endswith("qkv.w") for name in p)
    blocks = [block_of(p, layer) for layer in range(depth)]
    h = p["tokens"][x] + p["positions"]
    kept: list[dict[str, Any]] = []
    for parameters in blocks:
        h, seen = block(h, parameters, t)
        kept.append(seen)
    normed, unit, scale = _layer_norm(h, p["norm.gamma"], p["norm.beta"])
    rows = normed.reshape(-1, t.width)
    loss, d = _cross_entropy(rows @ p["head.w"], y.ravel())
    g: Values = {"head.w": rows.T @ d}
    d = _layer_norm_gradient((d @ p["head.w"].T).reshape(h.shape), unit, scale, p["norm.gamma"], g, "norm")
    for layer in reversed(range(depth)):
        found: Values = {}
        d = _block_gradient(d, blocks[layer], kept[layer], t, found)
        g.update({f"{layer}.{name}": value for name, value in found.items()})
    g["positions"] = d.sum(0)
    g["tokens"] = _scattered(p["tokens"], x, d)
    return loss, g


def block(
    x: Array, p: Values, t: Transformer, cache: tuple[Array, Array] | None = None, position: int = 0
) -> tuple[Array, dict[str, Any]]:
    """A block of GPT-2 for x (sequences, positions, width), and what its gradient needs.

    With a `cache` of keys and values x is the token at `position`, and looks at all up to it.
    """
    n, length, width = x.shape
    normed, unit1, scale1 = _layer_norm(x, p["norm1.gamma"], p["norm1.beta"])
    rows1 = normed.reshape(-1, width)
    qkv = (rows1 @ p["qkv.w"] + p["qkv.b"]).reshape(n, length, 3, t.heads, t.head).transpose(2, 0, 3, 1, 4)
    q, k, v = np.ascontiguousarray(qkv)
    if cache is not None:
        keys, values = cache
        keys[:, :, position], values[:, :, position] = k[:, :, 0], v[:, :, 0]
        k, v = keys[:, :, : position + 1], values[:, :, : position + 1]
    att = q @ k.transpose(0, 1, 3, 2)
    att *= np.float32(t.head**-0.5)
    if cache is None:
        att += _mask(length)
    att -= att.max(-1, keepdims=True)
    np.exp(att, out=att)
    att /= att.sum(-1, keepdims=True)
    mixed = np.ascontiguousarray((att @ v).transpose(0, 2, 1, 3)).reshape(-1, width)
    x = x + (mixed @ p["proj.w"] + p["proj.b"]).reshape(x.shape)
    normed, unit2, scale2 = _layer_norm(x, p["norm2.gamma"], p["norm2.beta"])
    rows2 = normed.reshape(-1, width)
    up = rows2 @ p["up.w"] + p["up.b"]
    active, bend = _gelu(up)
    y = x + (active @ p["down.w"] + p["down.b"]).reshape(x.shape)
    kept: dict[str, Any] = {
        "q": q, "k": k, "v": v, "att": att, "mixed": mixed, "rows1": rows1, "unit1": unit1, "scale1": scale1,
        "rows2": rows2, "unit2": unit2, "scale2": scale2, "up": up, "active": active, "bend": bend,
    }  # fmt: skip
    return y, kept


def _block_gradient(d: Array, p: Values, kept: dict[str, Any], t: Transformer, g: Values) -> Array:
    n, length, width = d.shape
    rows = d.reshape(-1, width)
    g["down.w"], g["down.b"] = kept["active"].T @ rows, rows.sum(0)
    e = _gelu_gradient(rows @ p["down.w"].T, kept["up"], kept["bend"])
    g["up.w"], g["up.b"] = kept["rows2"].T @ e, e.sum(0)
    inner = (e @ p["up.w"].T).reshape(d.shape)
    d = d + _layer_norm_gradient(inner, kept["unit2"], kept["scale2"], p["norm2.gamma"], g, "norm2")
    rows = d.reshape(-1, width)
    g["proj.w"], g["proj.b"] = kept["mixed"].T @ rows, rows.sum(0)
    mixed = (rows @ p["proj.w"].T).reshape(n, length, t.heads, t.head).transpose(0, 2, 1, 3)
    att = kept["att"]
    values = att.transpose(0, 1, 3, 2) @ mixed
    scores = mixed @ kept["v"].transpose(0, 1, 3, 2)
    scores = att * (scores - (scores * att).sum(-1, keepdims=True)) * np.float32(t.head**-0.5)
    parts = np.stack([scores @ kept["k"], scores.transpose(0, 1, 3, 2) @ kept["q"], values])
    qkv = parts.transpose(1, 3, 0, 2, 4).reshape(-1, 3 * width)
    g["qkv.w"], g["qkv.b"] = kept["rows1"].T @ qkv, qkv.sum(0)
    inner = (qkv @ p["qkv.w"].T).reshape(d.shape)
    return d + _layer_norm_gradient(inner, kept["unit1"], kept["scale1"], p["norm1.gamma"], g, "norm1")


def _mask(length: int) -> Array:
    """0 where a position may look, −∞ where not."""
    found = _MASKS.get(length)
    if found is None:
        found = _MASKS[length] = np.triu(np.full((length, length), -np.inf, np.float32), 1)
    return found


_MASKS: dict[int, Array] = {}


def _layer_norm(x: Array, gamma: Array, beta: Array) -> tuple[Array, Array, Array]:
    """The result, the rows before gamma and beta, and what they were multiplied by."""
    unit = x - x.mean(-1, keepdims=True)
    scale = np.float32(1) / np.sqrt((unit * unit).mean(-1, keepdims=True) + np.float32(EPSILON))
    unit *= scale
    return unit * gamma + beta, unit, scale


def _layer_norm_gradient(d: Array, unit: Array, scale: Array, gamma: Array, g: Values, name: str) -> Array:
    width = d.shape[-1]
    g[f"{name}.gamma"], g[f"{name}.beta"] = (d * unit).reshape(-1, width).sum(0), d.reshape(-1, width).sum(0)
    d = d * gamma
    return scale * (d - d.mean(-1, keepdims=True) - unit * (d * unit).mean(-1, keepdims=True))


_ROOT, _CUBE = np.float32((2 / np.pi) ** 0.5), np.float32(0.044715)


def _gelu(x: Array) -> tuple[Array, Array]:
    """gelu in its form with tanh, and that tanh."""
    bend = np.tanh(_ROOT * x * (1 + _CUBE * x * x))
    return np.float32(0.5) * x * (1 + bend), bend


def _gelu_gradient(d: Array, x: Array, bend: Array) -> Array:
    return d * np.float32(0.5) * (1 + bend + x * (1 - bend * bend) * _ROOT * (1 + 3 * _CUBE * x * x))


NETWORKS: dict[str, Network] = {"mlp": mlp, "makemore": makemore, "lenet": lenet, "gpt_mini": gpt}
