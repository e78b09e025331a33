"""Section 7: `update` and its parts, `t.grad`, `params`; section 4: own derivatives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.language.programs import Loader, agree, errors, random, slopes

X = random(3, dtype="f8")


def test_gradients_of_inputs_parameters_and_what_is_computed(program: Loader) -> None:
    both = program("""
    op net(x) = {w: [3 -> 2] = [(1., 2., 3.), (4., 5., 6.)]} * x + {b: [2] = 0.}
    let n = net
    routine f(x: f64[k | 3]):
        let h = n(x)
        let y = tanh(h)
        let loss = sum(y ** 2)
        update(loss)
        return loss, x.grad, n.w.grad, n.b.grad, h.grad, y.grad, loss.grad
    routine of(x: f64[k | 3], w: f64[3 -> 2], b: f64[2]): return sum(tanh(w * x + b) ** 2)
    """)
    x = random(2, 3, dtype="f8") / 4
    w, b = np.array([[1.0, 2, 3], [4, 5, 6]]), np.zeros(2)
    loss, gx, gw, gb, gh, gy, gl = both.f(x)
    h = x @ w.T
    agree(loss, (np.tanh(h) ** 2).sum())
    agree((gx, gw, gb), tuple(slopes(both.modules[1].of, x, w, b)))
    agree((gy, gh, gl), (2 * np.tanh(h), 2 * np.tanh(h) * (1 - np.tanh(h) ** 2), 1))


def test_several_losses_in_one_routine(program: Loader) -> None:
    both = program("""
    routine f(x: f64[3]):
        let w = {w: [3] = 2.}
        let a, b = sum(w *. x), sum(w ** 3)
        update(a)
        let first = w.grad
        update(b)
        let second = w.grad
        update(a + b)
        return first, second, w.grad
    routine apart(x: f64[3]):
        let v, w = {v: [3] = 1.}, {u: [3] = 1.}
        let a, b = sum(v *. x), sum(2 * w *. x)
        update(a)
        update(b)
        return v.grad, w.grad
    routine adversaries(x: f64[3], lr: f64):
        let g, d = {g: [3] = 1.}, {d: [3] = 1.}
        let fake = g *. x
        let loss_d = sum(d *. stop_gradient(fake)) ** 2
        update(loss_d)
        for p in params(loss_d): p -= lr * p.grad
        let loss_g = sum(d *. fake) ** 2
        update(loss_g)
        g -= lr * g.grad
        return loss_d, loss_g
    """)
    agree(both.f(X), (X, np.full(3, 12), X + 12))
    agree(both.apart(X), (X, 2 * X))
    g, d, lr = np.ones(3), np.ones(3), 0.1
    loss_d = (d * g * X).sum() ** 2
    d = d - lr * 2 * (d * g * X).sum() * g * X
    loss_g = (d * g * X).sum() ** 2
    g = g - lr * 2 * (d * g * X).sum() * d * X
    agree(both.adversaries(X, lr), (loss_d, loss_g))
    agree((both["adversaries.d"], both["adversaries.g"]), (d, g))


def test_update_by_hand(program: Loader) -> None:
    both = program("""
    routine by_hand(x: f64[3]):
        let w = {w: [3] = 2.}
        let loss = sum(w ** 2 *. x)
        evaluate(loss)
        zero_grads(loss)
        loss.grad := 1.
        backprop(loss)
        return w.grad
    routine seeded(x: f64[3]):
        let w = {v: [3] = 2.}
        let y = w ** 2
        zero_grads(y)
        y.grad := x
        backprop(y)
        return w.grad
    routine accumulates(x: f64[3]):
        let w = {u: [3] = 2.}
        let a, b = sum(w *. x), sum(w ** 2)
        zero_grads(a)
        a.grad := 1.
        backprop(a)
        b.grad := 10.
        backprop(b)
        return w.grad
    routine doubled(x: f64[3]):
        let w = {t: [3] = 2.}
        let loss = sum(w *. x)
        update(loss)
        w.grad += x
        w.grad max= 0.
        return w.grad
    """)
    agree(both.by_hand(X), 4 * X)
    agree(both.seeded(X), 4 * X)
    agree(both.accumulates(X), X + 40)
    agree(both.doubled(X), np.maximum(2 * X, 0))


@pytest.mark.slow
def test_gradients_through_every_kind_of_use(program: Loader) -> None:
    uses = [
        "x[i] ** 2",
        "sum{(i) -> j => j}(m) *. x[0:2]",
        "concat{a; b => a^b}(x, 2 * x) ** 2",
        "tensor([x, x ** 2, [1., 2., 3.]]) *. x",
        "batched(x, sin(x))",
        "m * x",
        "transpose(m) * (m * x)",
        "fma(m, x, x[0:2])",
        "interleave(x, x ** 2) *. 2",
        "even(interleave(x, x ** 2)) *. odd(interleave(x, x ** 2))",
        "where(x > m[0], x ** 3, m[1])",
        "x *. f64(f32(x))",
        "stop_gradient(x) *. x + x",
        "max(x) * min(x) + mean(x) * prod(x) + logsumexp(x)",
        "sum{j => 2*j + 1}(x) ** 2",
        "sum{k => k, k}(x) *. sum{k => 0, k}(x)",
        "einsum{a, a => a}(sum{k => k, l}(x) *. [[1., 2., 3.], [4., 5., 6.], [7., 8., 9.]]) ** 2",
        "x ** 2 / (1 + x ** 2) - x // 0.3 + x % 0.3",
    ]
    for use in uses:
        both = program(f"""
        routine f(x: f64[3], m: f64[3 -> 2], i: index[3]):
            let loss = sum({use})
            update(loss)
            return loss, x.grad
        """)
        m = random(2, 3, dtype="f8")
        gradient = both.f(X, m, 1)[1]
        if "stop_gradient" in use:
            agree(gradient, X + 1)
            continue
        if "f32" in use:
            agree(gradient, 2 * X, 1e-4)
            continue
        (want,) = slopes(lambda x, f=both.modules[1].f, m=m: f(x, m, 1)[0], X)
        agree(gradient, want, 1e-5, 1e-6)


def test_params(program: Loader) -> None:
    both = program("""
    op dense[out: int](x) = {w: [... -> out]} * x + {b: [out] = 0.}
    let a, b = dense[2], dense[2]
    routine f(x: f32[3]):
        let loss = sum(b(a(x)))
        for i, p in enumerate(params(loss)): p :+= i + 1
        return len(params(loss)) + 0.
    routine g(x: f32[3]):
        let loss = sum(a(x))
        return len(params(loss)) + 10. * len([p for p in params(loss) if p.path.endswith("w")])
    """)
    assert both.f(random(3)) == 4
    assert both.g(random(3)) == 12
    agree(tuple(both[p].flat[0] for p in ["a.b", "a.w", "b.b", "b.w"]), (1, 2, 3, 4))


def test_own_derivatives(program: Loader) -> None:
    both = program("""
    op swish(x):
        forward:
            result := x *. sigmoid(x)
        backward:
            let s = sigmoid(x)
            x.grad += result.grad *. (s + x *. s *. (1 - s))
    op straight(x):
        forward: result := round(x)
        backward: x.grad += result.grad
    op product(x, y):
        forward:
            result := x *. y
        backward:
            x.grad += 10 * result.grad *. y
            y.grad += 100 * result.grad *. x
    op matmul(a, b):
        forward:
            result{i, j} :+= a{i, k} *. b{k, j}
        backward:
            a.grad{i, k} += result.grad{i, j} *. b{k, j}
            b.grad{k, j} += result.grad{i, j} *. a{i, k}
    op scaled[k: float](x):
        forward: result := x / k
        backward: x.grad += k * result.grad
    op uses_result(x):
        forward: result := exp(x)
        backward: x.grad += result.grad *. result
    routine a(x: f64[3]):
        let loss = sum(swish(2 * x) ** 2)
        update(loss)
        return loss, x.grad
    routine b(x: f64[3]):
        let loss = sum(straight(x) *. x)
        update(loss)
        return loss, x.grad
    routine c(x: f64[3]):
        let y = 2 * x
        let loss = sum(product(x, y))
        update(loss)
        return x.grad
    routine d(p: f64[2, 3], q: f64[3, 4]):
        let loss = sum(matmul(p, q) ** 2)
        update(loss)
        return p.grad, q.grad
    routine e(x: f64[3]):
        let loss = sum(scaled[2.](scaled[5.](x)))
        update(loss)
        return loss, x.grad
    routine g(x: f64[3]):
        let loss = sum(uses_result(x) *. x)
        update(loss)
        return x.grad
    routine same(x: f64[3]):
        let loss = sum(product(x, x))
        update(loss)
        return x.grad
    """)

    def swish(x: np.ndarray) -> float:
        return ((2 * x / (1 + np.exp(-2 * x))) ** 2).sum()

    loss, gradient = both.a(X)
    agree(loss, swish(X))
    agree(gradient, slopes(swish, X)[0])
    agree(both.b(X), ((np.round(X) * X).sum(), X + np.round(X)))
    agree(both.c(X), 10 * 2 * X + 2 * 100 * X)
    p, q = random(2, 3, dtype="f8"), random(3, 4, dtype="f8")
    agree(both.d(p, q), (2 * p @ q @ q.T, p.T @ (2 * p @ q)))
    agree(both.e(X), (X.sum() / 10, np.full(3, 10)))
    agree(both.g(X), np.exp(X) * (1 + X))
    agree(both.same(X), 110 * X)


def test_training_lowers_the_loss_as_in_numpy(program: Loader) -> None:
    both = program("""
    from optim import sgd, adam
    op net(x) = {v: [... -> 1]} * tanh({w: [... -> 4]} * x)
    let n = net
    routine step(x: f64[k | 3], y: f64[k | 1], lr: f32):
        let loss = mean((n(x) - y) ** 2)
        update(loss)
        for p in params(loss): sgd[momentum = 0.9](p, lr)
        return loss
    """)
    x, y = random(5, 3, dtype="f8"), random(5, 1, dtype="f8")
    v, w = random(1, 4, dtype="f8"), random(4, 3, dtype="f8")
    both["n.v"], both["n.w"] = v, w
    mv, mw = 0 * v, 0 * w
    for _ in range(3):
        h = np.tanh(x @ w.T)
        e = h @ v.T - y
        agree(both.step(x, y, 0.1), (e**2).mean(), 1e-5)
        gv, gw = 2 * e.T @ h / 5, ((2 * e @ v / 5) * (1 - h**2)).T @ x
        mv, mw = 0.9 * mv + gv, 0.9 * mw + gw
        v, w = v - 0.1 * mv, w - 0.1 * mw
    agree((both["n.v"], both["n.w"]), (v, w), 1e-5)


@pytest.mark.parametrize(
    "text, code",
    [
        ("routine f(x: f32[3]):\n    update(sum(x > 0))\n    return x", "E0502"),
        ("routine f(x: f32[3]):\n    let y = argmax{i => }(x)\n    return y.grad", "E0502"),
        ("routine f(x: f32[3], y: f32[3]):\n    update(sum(x))\n    return y.grad", "E0503"),
        ("routine f(x: f32[2 | 3]):\n    update(x[0])\n    return x.grad", "E0410"),
        ("op f(x):\n    update(sum(x))\n    return x\nroutine g(x: f32[3]): return f(x)", "E0501"),
    ],
)
def test_faults(text: str, code: str, tmp_path: Path) -> None:
    assert code in [c for c, _ in errors(text, tmp_path)]
