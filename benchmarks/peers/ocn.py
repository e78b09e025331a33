"""Ocn: the programs of `programs/`, called as from any Python program."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np

import ocannl_lang
from benchmarks.cases import GPT2, GPT_MINI, RATES, Case, Transformer
from benchmarks.peers import Job, no_wait, number_of
from benchmarks.values import Array, Values, block_of

PROGRAMS = Path(__file__).resolve().parent.parent / "programs"


def ready() -> None:
    ocannl_lang.load(PROGRAMS / "call.ocn").next(np.zeros(8, np.float32))


def versions() -> dict[str, str]:
    return {"ocn": ocannl_lang.__version__}


def job(case: Case, values: Values) -> Job:
    begin = time.perf_counter()
    settings: dict[str, Any] = (
        {"depth": case.sizes[0]} if case.family == "gpt_mini" and case.sizes[0] != GPT_MINI.depth else {}
    )
    module = ocannl_lang.load(PROGRAMS / f"{case.family}.ocn", **settings)
    compiled = time.perf_counter() - begin
    if case.trained:
        return _trained(case, module, values, compiled)
    routine, arguments, out = _plain(case, module, values)
    return Job(lambda: routine(*arguments, out=out), no_wait, number_of, compiled)


def _trained(case: Case, module: Any, values: Values, compiled: float) -> Job:
    for path, value in _parameters(case, values).items():
        module.params[path] = np.ascontiguousarray(value)
    images = values["x"].transpose(0, 1, 3, 4, 2) if case.family == "lenet" else values["x"]
    batches = itertools.cycle(list(zip(np.ascontiguousarray(images), values["y"])))
    step, rate = module.step, RATES[case.family]
    return Job(lambda: step(*next(batches), rate), no_wait, float, compiled)


def _plain(case: Case, module: Any, values: Values) -> tuple[Any, tuple[Any, ...], Array]:
    """The routine of a case without training, its arguments, and where its result is written."""
    if case.family == "gemm":
        a, b = values["a"], values["b"]
        out = np.empty((*a.shape[:-1], b.shape[-1]), np.float32)
        return (module.products if a.ndim == 3 else module.product), (a, b), out
    x = values["x"]
    match case.name:
        case "gpt2_block":
            for path, value in _block(block_of(values, 0), GPT2).items():
                module.params[f"whole.{path}"] = value
            return module.sequence, (x,), np.empty_like(x)
        case "gpt2_token":
            for path, value in _block(block_of(values, 0), GPT2).items():
                module.params[f"cached.{path}"] = value
            for name in ("keys", "values"):
                module.params[f"cached.attend.{name}"] = np.ascontiguousarray(values[name].transpose(0, 2, 1, 3))
            return module.token, (np.ascontiguousarray(x[:, 0]), GPT2.length - 1), np.empty_like(x[:, 0])
        case "call":
            return module.next, (x,), np.empty_like(x)
        case _:
            names = {"gelu": "gelu_tanh", "softmax": "softmax", "layer norm": "normalised"}
            if case.name == "layer norm":
                module.params.update({"norm.gamma": values["gamma"], "norm.beta": values["beta"]})
            return getattr(module, names[case.name]), (x,), np.empty_like(x)


def _parameters(case: Case, values: Values) -> dict[str, Array]:
    """The parameters of a training case by their paths, in the layout (output, input)."""
    v = values
    match case.family:
        case "mlp":
            return _perceptron("net", v)
        case "makemore":
            return {
                "net.embedding.w": v["embedding"].T,
                "net.mlp.w": v["w1"].T.reshape(200, 3, 10),
                "net.mlp.b": v["b1"],
                "net.mlp.w_out": v["w2"].T,
                "net.mlp.b_out": v["b2"],
            }
        case "lenet":
            first = v["w1"].reshape(16, 4, 4, 120).transpose(3, 1, 2, 0)
            return {
                "net.conv2d.w": v["k1"].transpose(0, 2, 3, 1),
                "net.conv2d.b": v["c1"],
                "net.conv2d_1.w": v["k2"].transpose(0, 2, 3, 1),
                "net.conv2d_1.b": v["c2"],
                **_perceptron("net.mlp", v),
                "net.mlp.w": first,
            }
        case _:
            blocks = {
                f"net.blocks.{layer}.{path}": value
                for layer in range(case.sizes[0])
                for path, value in _block(block_of(v, layer), GPT_MINI).items()
            }
            return {
                "net.tokens.w": v["tokens"].T,
                "net.positions": v["positions"],
                **blocks,
                "net.norm.gamma": v["norm.gamma"],
                "net.norm.beta": v["norm.beta"],
                "net.w_out": v["head.w"].T,
            }


def _perceptron(start: str, v: Values) -> dict[str, Array]:
    """Three layers of `nn.mlp`."""
    return {
        f"{start}.w": v["w1"].T,
        f"{start}.b": v["b1"],
        f"{start}.w_1": v["w2"].T,
        f"{start}.b_1": v["b2"],
        f"{start}.w_out": v["w3"].T,
        f"{start}.b_out": v["b3"],
    }


def _block(p: Values, g: Transformer) -> dict[str, Array]:
    """The parameters of a block of `gpt.ocn`; heads are an axis of their own."""
    found: dict[str, Array] = {
        "attend.w_o": p["proj.w"].T.reshape(g.width, g.heads, g.head),
        "attend.b_o": p["proj.b"],
        "feed.w": p["up.w"].T,
        "feed.b": p["up.b"],
        "feed.w_out": p["down.w"].T,
        "feed.b_out": p["down.b"],
    }
    for letter, w, b in zip("qkv", np.split(p["qkv.w"], 3, axis=1), np.split(p["qkv.b"], 3)):
        found[f"attend.w_{letter}"] = w.T.reshape(g.heads, g.head, g.width)
        found[f"attend.b_{letter}"] = b.reshape(g.heads, g.head)
    for name in ("norm1.gamma", "norm1.beta", "norm2.gamma", "norm2.beta"):
        found[name] = p[name]
    return {path: np.ascontiguousarray(value) for path, value in found.items()}
