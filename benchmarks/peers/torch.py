"""PyTorch, eager: its own layers and fused optimisers, results written in place where it offers that."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.cases import EPSILON, GPT2, GPT_MINI, RATES, Case, Transformer
from benchmarks.peers import Job, no_wait, number_of
from benchmarks.values import Array, Values, block_of, parameters_of

Parameters = dict[str, Tensor]
Change = Callable[[Callable[..., Any]], Callable[..., Any]]
"""What is done to a function before it is used; `torch.compile` is one."""


def ready() -> None:
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    (torch.ones(4, 4) @ torch.ones(4, 4)).sum().item()


def versions() -> dict[str, str]:
    return {"torch": torch.__version__}


def job(case: Case, values: Values) -> Job:
    return job_with(case, values, lambda function: function)


def job_with(case: Case, values: Values, change: Change) -> Job:
    """The job of a case whose functions of tensors go through `change` first."""
    if case.trained:
        return _trained(case, values, change)
    call = torch.inference_mode()(_plain(case, values, change))
    return Job(call, no_wait, number_of)


def _trained(case: Case, values: Values, change: Change) -> Job:
    parameters = {name: _tensor(name, value).requires_grad_() for name, value in parameters_of(values).items()}
    batches = itertools.cycle([(_batch(x), _batch(y)) for x, y in zip(values["x"], values["y"])])
    everything, rate = list(parameters.values()), RATES[case.family]
    optimiser: Any = (
        torch.optim.Adam(everything, lr=rate, fused=True)
        if case.family == "gpt_mini"
        else torch.optim.SGD(everything, lr=rate, fused=True)
    )
    loss_of = change(LOSSES[case.family])

    def step() -> Tensor:
        loss = loss_of(parameters, *next(batches))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        return loss

    return Job(step, Tensor.item, Tensor.item)


def _tensor(name: str, value: Array) -> Tensor:
    """A parameter in the layout of `torch.nn`: matrices of dense layers are (output, input)."""
    if value.ndim == 2 and name not in ("embedding", "tokens", "positions"):
        value = value.T
    return _in_order(torch.from_numpy(value.copy(order="C")))


def _batch(array: Array) -> Tensor:
    """Images or ids; ids are i64, as its embeddings and losses take them."""
    return _in_order(torch.from_numpy(array) if array.dtype == np.float32 else torch.from_numpy(array.astype(np.int64)))


def _in_order(tensor: Tensor) -> Tensor:
    """Images and kernels with channels last, which its convolutions are faster with."""
    return tensor.to(memory_format=torch.channels_last) if tensor.ndim == 4 else tensor


def _plain(case: Case, values: Values, change: Change) -> Callable[[], Tensor]:
    if case.family == "gemm":
        a, b = torch.from_numpy(values["a"]), torch.from_numpy(values["b"])
        out = torch.empty(*a.shape[:-1], b.shape[-1])
        return lambda: torch.matmul(a, b, out=out)
    if case.family == "gpt2":
        return _gpt2(case, values, change)
    x = torch.from_numpy(values["x"])
    match case.name:
        case "gelu":
            gelu = change(lambda t: F.gelu(t, approximate="tanh"))
            return lambda: gelu(x)
        case "softmax":
            softmax = change(lambda t: F.softmax(t, -1))
            return lambda: softmax(x)
        case "layer norm":
            gamma, beta = torch.from_numpy(values["gamma"]), torch.from_numpy(values["beta"])
            norm = change(lambda t, g, b: F.layer_norm(t, (t.shape[-1],), g, b, EPSILON))
            return lambda: norm(x, gamma, beta)
        case _:
            result = torch.empty_like(x)
            return lambda: torch.add(x, 1, out=result)


def _gpt2(case: Case, values: Values, change: Change) -> Callable[[], Tensor]:
    parameters = {name: _tensor(name, value) for name, value in block_of(values, 0).items()}
    x = torch.from_numpy(values["x"])
    if case.name == "gpt2_block":
        whole = change(lambda t, p: block(t, p, GPT2))
        return lambda: whole(x, parameters)
    cache = torch.from_numpy(values["keys"].copy()), torch.from_numpy(values["values"].copy())
    token = change(lambda t, p, c: block(t, p, GPT2, c, GPT2.length - 1))
    return lambda: token(x, parameters, cache)


# ---------------------------------------------------------------- the networks


def mlp(p: Parameters, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(_three_layers(p, x), y)


def _three_layers(p: Parameters, x: Tensor) -> Tensor:
    h = F.relu(F.linear(x, p["w1"], p["b1"]))
    h = F.relu(F.linear(h, p["w2"], p["b2"]))
    return F.linear(h, p["w3"], p["b3"])


def makemore(p: Parameters, x: Tensor, y: Tensor) -> Tensor:
    e = F.embedding(x, p["embedding"]).flatten(1)
    h = torch.tanh(F.linear(e, p["w1"], p["b1"]))
    return F.cross_entropy(F.linear(h, p["w2"], p["b2"]), y)


def lenet(p: Parameters, x: Tensor, y: Tensor) -> Tensor:
    h = F.max_pool2d(F.relu(F.conv2d(x, p["k1"], p["c1"])), 2)
    h = F.max_pool2d(F.relu(F.conv2d(h, p["k2"], p["c2"])), 2)
    return F.cross_entropy(_three_layers(p, h.flatten(1)), y)


def gpt(p: Parameters, x: Tensor, y: Tensor) -> Tensor:
    h = F.embedding(x, p["tokens"]) + p["positions"]
    for layer in range(sum(name.endswith("qkv.w") for name in p)):
        h = block(h, block_of(p, layer), GPT_MINI)
    h = F.layer_norm(h, (h.shape[-1],), p["norm.gamma"], p["norm.beta"], EPSILON)
    return F.cross_entropy(F.linear(h, p["head.w"]).flatten(0, 1), y.flatten())


def block(
    x: Tensor, p: Parameters, t: Transformer, cache: tuple[Tensor, Tensor] | None = None, position: int = 0
) -> Tensor:
    """A block of GPT-2; with a `cache` x is the token at `position`."""
    n, length, width = x.shape
    h = F.layer_norm(x, (width,), p["norm1.gamma"], p["norm1.beta"], EPSILON)
    qkv = F.linear(h, p["qkv.w"], p["qkv.b"]).view(n, length, 3, t.heads, t.head)
    q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
    if cache is None:
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    else:
        keys, values = cache
        keys[:, :, position : position + 1] = k
        values[:, :, position : position + 1] = v
        mixed = F.scaled_dot_product_attention(q, keys[:, :, : position + 1], values[:, :, : position + 1])
    x = x + F.linear(mixed.transpose(1, 2).reshape(n, length, width), p["proj.w"], p["proj.b"])
    h = F.layer_norm(x, (width,), p["norm2.gamma"], p["norm2.beta"], EPSILON)
    h = F.gelu(F.linear(h, p["up.w"], p["up.b"]), approximate="tanh")
    return x + F.linear(h, p["down.w"], p["down.b"])


LOSSES: dict[str, Callable[[Parameters, Tensor, Tensor], Tensor]] = {
    "mlp": mlp,
    "makemore": makemore,
    "lenet": lenet,
    "gpt_mini": gpt,
}
