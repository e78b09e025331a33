"""Layers give the numbers of PyTorch's, with the same parameters; gradients by autograd on one that has everything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.stdlib.support import close, numbers, program

torch = pytest.importorskip("torch")
F = torch.nn.functional


def t(x: np.ndarray):
    return torch.tensor(np.asarray(x))


def images(x: np.ndarray):
    """(n, h, w, c) as PyTorch has it."""
    return t(x).permute(0, 3, 1, 2)


def back(y):
    return y.permute(0, 2, 3, 1)


# ---------------------------------------------------------------- dense


def test_dense_infers_its_width_or_is_given_one(tmp_path: Path):
    module = program(
        tmp_path,
        "from nn import dense\nlet a = dense[4]\nlet b = dense\n"
        "routine f(x: f32[n | 3]): return a(x)\nroutine g(x: f32[n | 3]) -> f32[n | 2]: return b(x)\n",
    )
    x = numbers(5, 3)
    close(module.f(x), F.linear(t(x), t(module.params["a.w"]), t(module.params["a.b"])))
    assert module.g(x).shape == (5, 2)
    assert module.params["b.w"].shape == (2, 3)


def test_dense_contracts_all_output_axes(tmp_path: Path):
    module = program(tmp_path, "from nn import dense\nlet a = dense[4]\nroutine f(x: f32[n | 2, 3]): return a(x)\n")
    x = numbers(5, 2, 3)
    assert module.f(x).shape == (5, 4)
    assert module.params["a.w"].shape == (4, 2, 3)


def test_dense_with_a_list_of_sizes(tmp_path: Path):
    module = program(tmp_path, "from nn import dense\nlet a = dense[[4, 5]]\nroutine f(x: f32[n | 3]): return a(x)\n")
    assert module.f(numbers(2, 3)).shape == (2, 4, 5)


@pytest.mark.parametrize("hidden", ["[8, 6]", "8"])
def test_mlp(tmp_path: Path, hidden: str):
    module = program(
        tmp_path,
        f"from nn import mlp\nlet net = mlp[{hidden}, tanh, out = 2]\nroutine f(x: f32[n | 3]): return net(x)\n",
    )
    x = numbers(5, 3)
    got = module.f(x)
    p = module.params
    h = torch.tanh(F.linear(t(x), t(p["net.w"]), t(p["net.b"])))
    if hidden != "8":
        h = torch.tanh(F.linear(h, t(p["net.w_1"]), t(p["net.b_1"])))
    close(got, F.linear(h, t(p["net.w_out"]), t(p["net.b_out"])))


# ---------------------------------------------------------------- softmax, norms


def test_softmax_and_log_softmax(tmp_path: Path):
    module = program(
        tmp_path,
        "from nn import softmax, log_softmax\n"
        "routine f(x: f32[n | 4]): return softmax{... | k}(x)\n"
        "routine g(x: f32[n | 4]): return log_softmax{... | k}[temperature = 0.5](x)\n"
        "routine h(x: f32[n | 3, 4]): return softmax{... | i, j}(x)\n"
        "routine b(x: f32[n | 4]): return softmax{i | ...}(x)\n",
    )
    x, z = 50 * numbers(5, 4), numbers(5, 3, 4)
    close(module.f(x), F.softmax(t(x), 1))
    close(module.g(x), F.log_softmax(t(x) / 0.5, 1), 1e-4)
    close(module.h(z), F.softmax(t(z).reshape(5, 12), 1).reshape(5, 3, 4))
    close(module.b(x), F.softmax(t(x), 0))


def test_layer_norm_and_rms_norm(tmp_path: Path):
    module = program(
        tmp_path,
        "from nn import layer_norm, rms_norm\nlet a = layer_norm\nlet b = rms_norm\n"
        "routine f(x: f32[n, 2 | 6], y: f32[n, 2 | 6]):\n"
        "    let loss = sum((a(x) + b(x)) *. y)\n    update(loss)\n    return a(x), b(x), x.grad, a.gamma.grad, b.gamma.grad\n"
        "routine two(x: f32[n | 3, 4]): return layer_norm(x)\n",
    )
    x, y = numbers(5, 2, 6), numbers(5, 2, 6, seed=1)
    gamma, beta, other = (1 + numbers(6, seed=s) for s in (2, 3, 4))
    module.params["a.gamma"], module.params["a.beta"], module.params["b.gamma"] = gamma, beta, other
    got = module.f(x, y)
    leaf, tg, to = (torch.tensor(v, requires_grad=True) for v in (x, gamma, other))
    want_a, want_b = F.layer_norm(leaf, (6,), tg, t(beta)), F.rms_norm(leaf, (6,), to)
    ((want_a + want_b) * t(y)).sum().backward()
    for g, w in zip(got, (want_a, want_b, leaf.grad, tg.grad, to.grad)):
        close(g, w, 1e-4)
    z = numbers(2, 3, 4)
    close(module.two(z), F.layer_norm(t(z), (3, 4)), 1e-4)


@pytest.mark.parametrize("dimensions", [1, 2])
def test_batch_norm_in_training_and_after(tmp_path: Path, dimensions: int):
    shape, axes = ((6, 3), "n | 3") if dimensions == 1 else ((4, 5, 5, 3), "n | 5, 5, 3")
    module = program(
        tmp_path,
        f"from nn import batch_norm{dimensions}d\nlet a = batch_norm{dimensions}d\n"
        f"routine train[training = true](x: f32[{axes}]): return a(x)\nroutine f(x: f32[{axes}]): return a(x)\n",
    )
    theirs = (torch.nn.BatchNorm1d if dimensions == 1 else torch.nn.BatchNorm2d)(3)
    to, fro = (t, lambda y: y) if dimensions == 1 else (images, back)
    for seed in range(3):
        x = 2 * numbers(*shape, seed=seed) + 1
        close(module.train(x), fro(theirs(to(x))), 1e-4)
    theirs.eval()
    x = numbers(*shape, seed=9)
    close(module.f(x), fro(theirs(to(x))), 1e-4)


def test_dropout_keeps_the_mean_and_only_acts_in_training(tmp_path: Path):
    module = program(
        tmp_path,
        "from nn import dropout\nlet drop = dropout[0.25]\n"
        "routine train[training = true](x: f32[n | 100]): return drop(x)\nroutine f(x: f32[n | 100]): return drop(x)\n",
    )
    x = np.ones((100, 100), np.float32)
    close(module.f(x), x)
    got = module.train(x)
    kept = got != 0
    close(got[kept], np.full(kept.sum(), 1 / 0.75))
    assert abs(kept.mean() - 0.75) < 0.02
    assert (module.train(x) != got).any()


# ---------------------------------------------------------------- embedding


def test_embedding(tmp_path: Path):
    module = program(
        tmp_path,
        "from nn import embedding\nlet table = embedding[size = 7, width = 4]\n"
        "routine f(ids: i32[n, m | ]):\n    let loss = sum(table(ids) ** 2)\n    update(loss)\n"
        "    return table(ids), table.w.grad\n",
    )
    w = numbers(4, 7)
    module.params["table.w"] = w
    ids = np.array([[0, 6, 3], [3, 3, 1]], np.int32)
    got = module.f(ids)
    leaf = torch.tensor(w.T.copy(), requires_grad=True)
    want = F.embedding(torch.tensor(ids.astype(np.int64)), leaf)
    (want**2).sum().backward()
    close(got[0], want)
    close(got[1], leaf.grad.T)


# ---------------------------------------------------------------- convolution


def kernel(w: np.ndarray):
    """[kh, kw, in -> out], stored out first, as PyTorch has it."""
    return t(w).permute(0, 3, 1, 2)


@pytest.mark.parametrize(("config", "size", "stride", "padding"), [
    ("[4]", 8, 1, 1), ("[4, 5]", 8, 1, 2), ("[4, 3, 2]", 8, 2, 1), ("[4, 3, 2, false]", 9, 2, 0), ("[4, 1]", 5, 1, 0),
])  # fmt: skip
def test_conv2d(tmp_path: Path, config: str, size: int, stride: int, padding: int):
    text = f"from nn import conv2d\nlet c = conv2d{config}\nroutine f(x: f32[n | {size}, {size}, 3]): return c(x)\n"
    module = program(tmp_path, text)
    x = numbers(2, size, size, 3)
    got = module.f(x)
    module.params["c.b"] = numbers(4, seed=5)
    got = module.f(x)
    want = F.conv2d(images(x), kernel(module.params["c.w"]), t(module.params["c.b"]), stride, padding)
    close(got, back(want))


@pytest.mark.parametrize(("padded", "length"), [("true", 8), ("false", 9)])
def test_conv1d(tmp_path: Path, padded: str, length: int):
    text = f"from nn import conv1d\nlet c = conv1d[4, 3, padded = {padded}]\n"
    module = program(tmp_path, text + f"routine f(x: f32[n, {length} | 3]): return c(x)\n")
    x = numbers(2, length, 3)
    got = module.f(x)
    w = t(module.params["c.w"]).permute(0, 2, 1)
    want = F.conv1d(t(x).permute(0, 2, 1), w, t(module.params["c.b"]), padding=1 if padded == "true" else 0)
    close(got, want.permute(0, 2, 1))


def test_depthwise_and_separable_conv2d(tmp_path: Path):
    module = program(
        tmp_path,
        "from nn import depthwise_conv2d, separable_conv2d\nlet d = depthwise_conv2d[stride = 2]\nlet s = separable_conv2d[5]\n"
        "routine f(x: f32[n | 8, 8, 3]): return d(x)\nroutine g(x: f32[n | 8, 8, 3]): return s(x)\n",
    )
    x = numbers(2, 8, 8, 3)
    got = module.f(x)
    w = t(module.params["d.w"])[..., None].permute(0, 3, 1, 2)
    close(got, back(F.conv2d(images(x), w, None, 2, 1, groups=3)))
    assert module.g(x).shape == (2, 8, 8, 5)


@pytest.mark.slow
@pytest.mark.parametrize(("padded", "kernel_size"), [("true", 3), ("false", 3), ("false", 2)])
def test_transposed_conv2d(tmp_path: Path, padded: str, kernel_size: int):
    text = f"from nn import transposed_conv2d\nlet c = transposed_conv2d[4, {kernel_size}, 2, {padded}]\n"
    module = program(tmp_path, text + "routine f(x: f32[n | 5, 5, 3]): return c(x)\n")
    x = numbers(2, 5, 5, 3)
    got = module.f(x)
    w = t(module.params["c.w"]).permute(3, 2, 0, 1)  # stored (kh, kw, out, in)
    pad = {"padding": 1, "output_padding": 1} if padded == "true" else {}
    close(got, back(F.conv_transpose2d(images(x), w, None, 2, **pad)))


def test_pooling(tmp_path: Path):
    module = program(
        tmp_path,
        "from nn import max_pool2d, avg_pool2d, global_avg_pool2d\n"
        "routine a(x: f32[n | 8, 8, 3]): return max_pool2d(x)\n"
        "routine b(x: f32[n | 9, 9, 3]): return max_pool2d[3, 2](x)\n"
        "routine c(x: f32[n | 9, 9, 3]): return avg_pool2d[3](x)\n"
        "routine d(x: f32[n | 9, 9, 3]): return global_avg_pool2d(x)\n",
    )
    x, y = numbers(2, 8, 8, 3), numbers(2, 9, 9, 3)
    close(module.a(x), back(F.max_pool2d(images(x), 2)))
    close(module.b(y), back(F.max_pool2d(images(y), 3, 2)))
    close(module.c(y), back(F.avg_pool2d(images(y), 3)))
    close(module.d(y), y.mean((1, 2)))


@pytest.mark.slow
@pytest.mark.parametrize(("block", "shape"), [
    ("conv_block[4]", (2, 8, 8, 4)), ("resnet_block[3]", (2, 8, 8, 3)), ("resnet_block[6, 2]", (2, 4, 4, 6)),
    ("resnet_block[6, project = true]", (2, 8, 8, 6)), ("vgg_block[4]", (2, 4, 4, 4)),
    ("lenet[padded = true]", (2, 10)), ("mobile_net[5, [(8, 1), (16, 2)], 4]", (2, 5)),
])  # fmt: skip
def test_image_blocks_have_the_right_shape(tmp_path: Path, block: str, shape: tuple[int, ...]):
    name = block.split("[")[0]
    text = f"from nn import {name}\nlet c = {block}\nroutine f[training = true](x: f32[n | 8, 8, 3]): return c(x)\n"
    assert program(tmp_path, text).f(numbers(2, 8, 8, 3)).shape == shape


# ---------------------------------------------------------------- attention


@pytest.mark.parametrize("causal", [False, True])
def test_attention(tmp_path: Path, causal: bool):
    mask = ", causal_mask[5]()" if causal else ""
    module = program(
        tmp_path,
        "from nn import attention, causal_mask\nlet a = attention[2, 3]\n"
        f"routine f(x: f32[n, 5 | 6]) -> f32[n, 5 | 6]: return a(x{mask})\n",
    )
    x = numbers(2, 5, 6)
    got = module.f(x)
    q, k, v = (torch.einsum("bsi,hdi->bhsd", t(x), t(module.params[f"a.w_{n}"])) for n in "qkv")
    heads = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    close(got, torch.einsum("bhsd,ohd->bso", heads, t(module.params["a.w_o"])))


def test_cross_attention(tmp_path: Path):
    module = program(
        tmp_path,
        "from nn import cross_attention\nlet a = cross_attention[2, 3, 4]\n"
        "routine f(x: f32[n, 5 | 6], m: f32[n, 7 | 2]) -> f32[n, 5 | 6]: return a(x, m)\n",
    )
    x, m = numbers(2, 5, 6), numbers(2, 7, 2, seed=1)
    got = module.f(x, m)
    q = torch.einsum("bsi,hdi->bhsd", t(x), t(module.params["a.w_q"]))
    k, v = (torch.einsum("bsi,hdi->bhsd", t(m), t(module.params[f"a.w_{n}"])) for n in "kv")
    heads = F.scaled_dot_product_attention(q, k, v)
    close(got, torch.einsum("bhsd,ohd->bso", heads, t(module.params["a.w_o"])))


def test_rope_turns_pairs(tmp_path: Path):
    module = program(
        tmp_path,
        "from nn import rope\nroutine f(x: f32[n, 5 | 2, 6]): return rope(x)\nroutine g(x: f32[7 | 4]): return rope(x)\n",
    )
    x = numbers(3, 5, 2, 6)
    angle = np.arange(5)[:, None] * 10000.0 ** (-2 * np.arange(3) / 6)
    turned = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)[None, :, None, :]
    close(module.f(x), np.stack([turned.real, turned.imag], -1).reshape(x.shape), 1e-4)
    assert module.g(numbers(7, 4)).shape == (7, 4)


def test_sinusoidal_positions(tmp_path: Path):
    module = program(
        tmp_path, "from nn import sinusoidal_positions\nroutine f(): return sinusoidal_positions[5, 6]()\n"
    )
    angle = np.arange(5)[:, None] * 10000.0 ** (-2 * np.arange(3) / 6)
    close(module.f(), np.stack([np.sin(angle), np.cos(angle)], -1).reshape(5, 6))


def test_causal_mask(tmp_path: Path):
    module = program(tmp_path, "from nn import causal_mask\nroutine f(): return causal_mask[4]()\n")
    close(module.f(), np.tril(np.ones((4, 4))))


@pytest.mark.slow
@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_block(tmp_path: Path, norm_first: bool):
    config = f"heads = 2, d_k = 3, hidden = 8, norm_first = {str(norm_first).lower()}"
    module = program(
        tmp_path,
        f"from nn import encoder_block\nlet e = encoder_block[{config}]\nroutine f(x: f32[n, 5 | 6]): return e(x)\n",
    )
    x = numbers(2, 5, 6)
    got = module.f(x)
    theirs = torch.nn.TransformerEncoderLayer(6, 2, 8, 0.0, batch_first=True, norm_first=norm_first)
    p = module.params
    qkv = np.concatenate([p[f"e.attend.w_{n}"].reshape(6, 6) for n in "qkv"])
    with torch.no_grad():
        theirs.self_attn.in_proj_weight.copy_(t(qkv))
        theirs.self_attn.in_proj_bias.zero_()
        theirs.self_attn.out_proj.weight.copy_(t(p["e.attend.w_o"].reshape(6, 6)))
        theirs.self_attn.out_proj.bias.zero_()
        theirs.linear1.weight.copy_(t(p["e.feed.w"]))
        theirs.linear1.bias.copy_(t(p["e.feed.b"]))
        theirs.linear2.weight.copy_(t(p["e.feed.w_out"]))
        theirs.linear2.bias.copy_(t(p["e.feed.b_out"]))
    close(got, theirs(t(x)), 1e-4)


@pytest.mark.slow
def test_language_model_sees_only_the_past(tmp_path: Path):
    module = program(
        tmp_path,
        "from nn import decoder_only\n"
        "let net = decoder_only[vocabulary = 11, length = 6, width = 8, depth = 2, heads = 2]\n"
        "routine f(ids: i32[n, 6 | ]): return net(ids)\n",
    )
    ids = np.array([[1, 2, 3, 4, 5, 6]], np.int32)
    changed = np.array([[1, 2, 3, 10, 9, 8]], np.int32)
    a, b = module.f(ids), module.f(changed)
    assert a.shape == (1, 6, 11)
    close(a[:, :3], b[:, :3])
    assert np.abs(a[:, 3:] - b[:, 3:]).max() > 1e-3


@pytest.mark.slow
def test_transformer_shapes(tmp_path: Path):
    module = program(
        tmp_path,
        "from nn import transformer\n"
        "let net = transformer[source_size = 7, target_size = 9, width = 8, depth = 1, heads = 2]\n"
        "routine f(source: i32[n, 4 | ], target: i32[n, 6 | ]): return net(source, target)\n",
    )
    assert module.f(np.zeros((2, 4), np.int32), np.ones((2, 6), np.int32)).shape == (2, 6, 9)


@pytest.mark.slow
def test_cached_attention_equals_attention_over_the_whole_sequence(tmp_path: Path):
    module = program(
        tmp_path,
        "from nn import attention, cached_attention, causal_mask\n"
        "let whole = attention[2, 3]\nlet cached = cached_attention[heads = 2, d_k = 3, length = 4, batch = 2]\n"
        "routine f(x: f32[2, 4 | 6]) -> f32[2, 4 | 6]: return whole(x, causal_mask[4]())\n"
        "routine step(x: f32[2 | 6], i: index[4]) -> f32[2 | 6]: return cached(x, i)\n",
    )
    x = numbers(2, 4, 6)
    want = module.f(x)
    module.step(x[:, 0], 0)
    for name in ("w_q", "w_k", "w_v", "w_o"):
        module.params[f"cached.{name}"] = module.params[f"whole.{name}"]
    for i in range(4):
        close(module.step(x[:, i], i), want[:, i])


# ---------------------------------------------------------------- recurrence


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rnn", "gru", "lstm"])
def test_recurrence(tmp_path: Path, name: str):
    text = f"from nn import {name}\nlet r = {name}[hidden = 4, length = 5]\nroutine f(x: f32[n, 5 | 3]): return r(x)\n"
    module = program(tmp_path, text)
    x = numbers(2, 5, 3)
    module.f(x)
    p = module.params
    p["r.b"] = numbers(*p["r.b"].shape, seed=3)
    theirs = {"rnn": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}[name](3, 4, batch_first=True)
    with torch.no_grad():
        theirs.weight_ih_l0.copy_(t(p["r.w_x"].reshape(-1, 3)))
        theirs.weight_hh_l0.copy_(t(p["r.w_h"].reshape(-1, 4)))
        theirs.bias_ih_l0.copy_(t(p["r.b"].reshape(-1)))
        theirs.bias_hh_l0.zero_()
        if name == "gru":
            p["r.b_n"] = numbers(4, seed=4)
            theirs.bias_hh_l0[8:].copy_(t(p["r.b_n"]))
    close(module.f(x), theirs(t(x))[0])
