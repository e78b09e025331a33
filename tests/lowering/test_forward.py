"""What lowered programs compute is what numpy and PyTorch compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ocannl_lang.graph import ir
from ocannl_lang.graph.random import uniform_array
from ocannl_lang.shapes.terms import Row, Shape, Size, SizeOp
from tests.graph.make import Dims, apply, cell, cell_value, number, reduce, run, shape, tensor, value

RNG = np.random.default_rng(0)


def draw(*shape: int) -> Any:
    return RNG.standard_normal(shape)


def one(inputs: dict[ir.Value, Any], result: ir.Value, dims: Dims | None = None) -> Any:
    return run(inputs, [result], dims)[0]


def close(a: Any, b: Any, tolerance: float = 1e-12) -> None:
    assert np.shape(a) == np.shape(b)
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


# ---------------------------------------------------------------- pointwise, products


def test_rows_broadcast_separately_and_in_the_middle() -> None:
    x = tensor("x", (2, 3), (4,), (5,))
    y = tensor("y", (3,), (1,))
    to = shape((2, 3), (4,), (5,))
    a, b = draw(5, 2, 3, 4), draw(3, 1)
    close(one({x: a, y: b}, apply("sub", x, y, to=to)), a - b)
    leading = value(ir.Input("z", "tensor"), Shape(Row(), Row((Size(2),), None, ()), Row()), "f64")
    c = draw(2)
    close(one({x: a, leading: c}, apply("mul", x, leading, to=to)), a * c[:, None, None])


def test_numbers_are_written_into_their_uses() -> None:
    x = tensor("x", (3,))
    a = draw(3)
    close(one({x: a}, apply("add", x, number(2.5), to=shape((3,)))), a + 2.5)
    half = number(SizeOp("/", (1, 4)))
    close(one({x: a}, apply("mul", half, x, to=shape((3,)))), a / 4)
    close(one({}, number(7.0)), np.float32(7))


def test_comparisons_and_where() -> None:
    x, y = tensor("x", (4,)), tensor("y", (4,), precision="i32")
    to = shape((4,))
    a, b = np.array([0.5, -1.0, 2.0, 3.0]), np.array([1, -1, 2, 0])
    less = apply("lt", x, y, to=to)
    close(one({x: a, y: b}, less), (a < b).astype(np.uint8))
    close(one({x: a, y: b}, apply("where", less, x, number(0), to=to)), np.where(a < b, a, 0))
    close(one({x: a, y: b}, apply("and", x, y, to=to)), np.array([1, 1, 1, 0], np.uint8))


def test_products_contract_and_broadcast_batches() -> None:
    w, x = tensor("w", (2, 3), (4, 5)), tensor("x", (4, 5), (6,), (7,))
    a, b = draw(2, 3, 4, 5), draw(7, 4, 5, 6)
    result = value(ir.Product(w, x), shape((2, 3), (6,), (7,)))
    close(one({w: a, x: b}, result), np.einsum("opij,nijq->nopq", a, b))
    short = tensor("s", (5,))
    c = draw(5)
    result = value(ir.Product(w, short), shape((2, 3)))
    close(one({w: a, short: c}, result), np.einsum("opij,j->op", a, c))
    added = tensor("d", (3,))
    d = draw(3)
    result = value(ir.Product(w, x, added), shape((2, 3), (6,), (7,)))
    close(one({w: a, x: b, added: d}, result), np.einsum("opij,nijq->nopq", a, b) + d[:, None])


def test_a_product_without_contraction_is_an_outer_product() -> None:
    u, v = tensor("u", (3,)), tensor("v", (), (4,))
    a, b = draw(3), draw(4)
    close(one({u: a, v: b}, value(ir.Product(u, v), shape((3,), (4,)))), np.outer(a, b))


def test_int_products_sum_in_i32() -> None:
    u, v = tensor("u", (), (300,), precision="u8"), tensor("v", (300,), precision="u8")
    result = value(ir.Product(u, v), shape())
    got = one({u: np.ones(300), v: np.full(300, 2)}, result)
    assert got.dtype == np.int32 and got == 600


def test_transpose_and_stack() -> None:
    x = tensor("x", (2,), (3,), (4,))
    a = draw(4, 2, 3)
    close(one({x: a}, value(ir.Transpose(x), shape((3,), (2,), (4,)))), a.transpose(0, 2, 1))
    y = tensor("y", (3,))
    b = draw(3)
    stacked = value(ir.Stack("output", (y, number(1.0), y)), shape((3, 3)))
    close(one({y: b}, stacked), np.stack([b, np.ones(3), b]))
    batched = value(ir.Stack("batch", (x, x)), shape((2,), (3,), (2, 4)))
    close(one({x: a}, batched), np.stack([a, a]))
    column = value(ir.Stack("input", (y, y)), shape((3,), (2,)))
    close(one({y: b}, column), np.stack([b, b], axis=1))


# ---------------------------------------------------------------- reductions


@pytest.mark.parametrize(
    ("accum", "numpy"),
    [("add", np.sum), ("mul", np.prod), ("max", np.max), ("min", np.min), ("mean", np.mean)],
)
def test_reductions(accum: str, numpy: Any) -> None:
    d = Dims(r=(2, 3), i=4, j=5)
    x = tensor("x", (4, 5), batch=(2, 3))
    a = draw(2, 3, 4, 5)
    close(
        one({x: a}, reduce(d, accum, "..r.. | i j => ..r.. | j", x, to=shape((5,), batch=(2, 3))), d), numpy(a, axis=2)
    )
    close(
        one({x: a}, reduce(d, accum, "..r.. | i j => ..r.. | 0 0", x, to=shape((1, 1), batch=(2, 3))), d),
        numpy(a, axis=(2, 3), keepdims=True),
    )
    close(one({x: a}, reduce(d, accum, "..r.. | i j => ", x, to=shape()), d), numpy(a))
    close(
        one({x: a}, reduce(d, accum, "..r.. | i j => j i | ..r..", x, to=shape((2, 3), batch=(5, 4))), d),
        a.transpose(3, 2, 0, 1),
    )


def test_logic_and_positions() -> None:
    d = Dims(i=4, j=5)
    x = tensor("x", (4, 5), precision="f32")
    a = np.round(draw(4, 5))
    close(one({x: a}, reduce(d, "or", "i j => i", x, to=shape((4,))), d), (a != 0).any(1).astype(np.uint8))
    close(one({x: a}, reduce(d, "and", "i j => i", x, to=shape((4,))), d), (a != 0).all(1).astype(np.uint8))
    got = one({x: a}, reduce(d, "argmax", "i j => i", x, to=shape((4,))), d)
    assert got.dtype == np.int32 and got.tolist() == a.argmax(1).tolist()
    assert one({x: a}, reduce(d, "argmin", "i j => j", x, to=shape((5,))), d).tolist() == a.argmin(0).tolist()


@pytest.mark.parametrize(
    ("notation", "numpy", "shapes", "to"),
    [
        ("i k ; k j => i j", "ik,kj->ij", [(3, 4), (4, 5)], (3, 5)),
        ("i j ; j k ; k i => i", "ij,jk,ki->i", [(3, 5), (5, 4), (4, 3)], (3,)),
        ("i i => i", "ii->i", [(3, 3)], (3,)),
        ("i i => ", "ii->", [(3, 3)], ()),
        ("i ; j => j i", "i,j->ji", [(3,), (5,)], (5, 3)),
        ("i j ; i j => ", "ij,ij->", [(3, 5), (3, 5)], ()),
    ],
)
def test_einsum(notation: str, numpy: str, shapes: list[tuple[int, ...]], to: tuple[int, ...]) -> None:
    d = Dims(i=3, j=5, k=4)
    arrays = [draw(*s) for s in shapes]
    tensors = [tensor(f"x{n}", s) for n, s in enumerate(shapes)]
    result = reduce(d, "add", notation, *tensors, to=shape(to))
    close(one(dict(zip(tensors, arrays, strict=True)), result, d), np.einsum(numpy, *arrays))


def test_results_with_diagonals_repeats_and_fixed_positions() -> None:
    d = Dims(i=3, j=2)
    x = tensor("x", (3,))
    a = draw(3)
    close(one({x: a}, reduce(d, "add", "i => i i", x, to=shape((3, 3))), d), np.diag(a))
    close(one({x: a}, reduce(d, "add", "i => i j", x, to=shape((3, 2))), d), np.stack([a, a], 1))
    placed = np.zeros((3, 4))
    placed[:, 2] = a
    close(one({x: a}, reduce(d, "add", "i => i 2", x, to=shape((3, 4))), d), placed)
    lowest = np.full((4,), -np.inf)
    lowest[2] = a.max()
    close(one({x: a}, reduce(d, "max", "i => 2", x, to=shape((4,))), d), lowest)
    y = tensor("y", (3, 4))
    b = draw(3, 4)
    close(one({y: b}, reduce(d, "add", "i 2 => i", y, to=shape((3,))), d), b[:, 2])


def test_positions_from_data() -> None:
    d = Dims(r=(4,))
    x = tensor("x", (4,), batch=(5,))
    i = value(ir.Input("i", "index"), shape(), "i32", name="i")
    a = draw(5, 4)
    result = reduce(d, "add", "p | ..r.. => | ..r..", x, to=shape((4,)), p=ir.Fixed(i))
    for at in (0, 4):
        close(one({x: a, i: at}, result, d), a[at])
    close(one({x: a, i: 5}, result, d), np.zeros(4))
    placed = np.zeros((6, 4))
    placed[3] = a[3]
    back = reduce(d, "add", "p | ..r.. => p | ..r..", x, to=shape((4,), batch=(6,)), p=ir.Fixed(i))
    close(one({x: a, i: 3}, back, d), placed)


def test_rows_of_size_zero() -> None:
    d = Dims(i=0, j=3)
    x = tensor("x", (0, 3))
    a = draw(0, 3)
    close(one({x: a}, reduce(d, "add", "i j => j", x, to=shape((3,))), d), np.zeros(3))
    close(one({x: a}, reduce(d, "mul", "i j => j", x, to=shape((3,))), d), np.ones(3))
    close(one({x: a}, reduce(d, "max", "i j => j", x, to=shape((3,))), d), np.full(3, -np.inf))
    close(one({x: a}, reduce(d, "mean", "i j => j", x, to=shape((3,))), d), np.zeros(3))
    close(one({x: a}, apply("exp", x, to=shape((0, 3))), d), a)


# ---------------------------------------------------------------- windows


def torch_conv(x: Any, k: Any, **options: Any) -> Any:
    torch = pytest.importorskip("torch")
    y = torch.nn.functional.conv2d(torch.tensor(x).permute(0, 3, 1, 2), torch.tensor(k).permute(0, 3, 1, 2), **options)
    return y.permute(0, 2, 3, 1).numpy()


@pytest.mark.parametrize(
    ("stride", "dilation", "padded", "kernel"),
    [
        (1, 1, False, 3),
        (2, 1, False, 3),
        (1, 2, False, 3),
        (1, 1, True, 3),
        (2, 1, True, 3),
        (1, 2, True, 3),
        (1, 1, True, 5),
    ],
)
def test_convolution(stride: int, dilation: int, padded: bool, kernel: int) -> None:
    oh, ow = (4, 5)
    span = dilation * (kernel - 1) + 1
    h, w = (stride * oh, stride * ow) if padded else (stride * (oh - 1) + span, stride * (ow - 1) + span)
    d = Dims(b=2, oh=oh, ow=ow, kh=kernel, kw=kernel, ic=3, oc=2)
    x, k = tensor("x", (h, w, 3), batch=(2,)), tensor("k", (2,), (kernel, kernel, 3))
    a, c = draw(2, h, w, 3), draw(2, kernel, kernel, 3)
    axes: dict[str, Any] = {
        "wh": d.window("oh", "kh", stride, dilation, padded),
        "ww": d.window("ow", "kw", stride, dilation, padded),
    }
    y = reduce(
        d, "add", "b | wh ww ic ; kh kw ic -> oc => b | oh ow oc", x, k, to=shape((oh, ow, 2), batch=(2,)), **axes
    )
    padding = (span - 1) // 2 if padded else 0
    close(one({x: a, k: c}, y, d), torch_conv(a, c, stride=stride, dilation=dilation, padding=padding))


def test_even_windows_are_padded_less_at_the_left() -> None:
    d = Dims(o=4, k=2)
    x, k = tensor("x", (4,)), tensor("k", (2,))
    a, c = draw(4), draw(2)
    y = reduce(d, "add", "w ; k => o", x, k, to=shape((4,)), w=d.window("o", "k", padded=True))
    padded = np.concatenate([a, [0]])
    close(one({x: a, k: c}, y, d), padded[:4] * c[0] + padded[1:] * c[1])


@pytest.mark.parametrize("accum", ["max", "min", "mean", "mul", "add"])
def test_padded_pooling_takes_the_neutral_element(accum: str) -> None:
    d = Dims(o=4, k=3, c=2)
    x = tensor("x", (4, 2))
    a = draw(4, 2) - 5.0
    fill = {"max": -np.inf, "min": np.inf, "mul": 1.0}.get(accum, 0.0)
    padded = np.concatenate([np.full((1, 2), fill), a, np.full((1, 2), fill)])
    windows = np.stack([padded[i : i + 4] for i in range(3)])
    expected = {"max": np.max, "min": np.min, "mean": np.mean, "mul": np.prod, "add": np.sum}[accum](windows, axis=0)
    y = reduce(d, accum, "w c => o c", x, to=shape((4, 2)), w=d.window("o", "k", padded=True))
    close(one({x: a}, y, d), expected)


def test_a_window_of_a_number_is_padded_too() -> None:
    d = Dims(o=4, k=3)
    ones = value(ir.Number(1.0), shape((4,)), "f64")
    y = reduce(d, "add", "w => o", ones, to=shape((4,)), w=d.window("o", "k", padded=True))
    close(one({}, y, d), np.array([2.0, 3.0, 3.0, 2.0]))


def test_strided_positions() -> None:
    d = Dims(o=3)
    x = tensor("x", (6,))
    a = draw(6)
    close(one({x: a}, reduce(d, "add", "s => o", x, to=shape((3,)), s=ir.StridedAxis(2, d["o"], 1)), d), a[1::2])
    y = tensor("y", (3,))
    b = draw(3)
    apart = np.zeros(6)
    apart[::2] = b
    close(one({y: b}, reduce(d, "add", "o => s", y, to=shape((6,)), s=ir.StridedAxis(2, d["o"], 0)), d), apart)


def test_a_window_in_the_result_adds_where_it_overlaps() -> None:
    d = Dims(o=3, k=2)
    x = tensor("x", (3, 2))
    a = draw(3, 2)
    expected = np.zeros(4)
    for o in range(3):
        for k in range(2):
            expected[o + k] += a[o, k]
    close(one({x: a}, reduce(d, "add", "o k => w", x, to=shape((4,)), w=d.window("o", "k")), d), expected)
    mean = expected / np.array([1, 2, 2, 1])
    close(one({x: a}, reduce(d, "mean", "o k => w", x, to=shape((4,)), w=d.window("o", "k")), d), mean)


# ---------------------------------------------------------------- concatenations


def test_concatenations() -> None:
    d = Dims(x=2, y=4, c=3, u=2, v=2)
    a, b = tensor("a", (2, 3)), tensor("b", (4, 3))
    p, q = draw(2, 3), draw(4, 3)
    joined = reduce(d, "add", "x c ; y c => xy c", a, b, combine="concat", to=shape((6, 3)), xy=d.concat("x", "y"))
    close(one({a: p, b: q}, joined, d), np.concatenate([p, q]))
    s, t = tensor("s", (2, 2)), tensor("t", (4, 2))
    m, n = draw(2, 2), draw(4, 2)
    blocks = reduce(
        d,
        "add",
        "x u ; y v => xy uv",
        s,
        t,
        combine="concat",
        to=shape((6, 4)),
        xy=d.concat("x", "y"),
        uv=d.concat("u", "v"),
    )
    zero = np.zeros((2, 2))
    close(one({s: m, t: n}, blocks, d), np.block([[m, zero], [np.zeros((4, 2)), n]]))


def test_parts_select_and_pad() -> None:
    d = Dims(rest=5, a=3, i=3)
    x, y = tensor("x", (8,)), tensor("y", (3,))
    p, q = draw(8), draw(3)
    close(one({x: p}, reduce(d, "add", "w => rest", x, to=shape((5,)), w=d.concat(3, "rest")), d), p[3:])
    close(one({x: p}, reduce(d, "add", "w => rest", x, to=shape((5,)), w=d.concat(2, "rest", 1)), d), p[2:7])
    close(one({x: p}, reduce(d, "add", "w => rest", x, to=shape((5,)), w=d.concat("a", "rest")), d), p[3:])
    close(one({y: q}, reduce(d, "add", "i => w", y, to=shape((6,)), w=d.concat(1, "i", 2)), d), np.pad(q, (1, 2)))
    close(
        one({y: q}, reduce(d, "max", "i => w", y, to=shape((6,)), w=d.concat(1, "i", 2)), d),
        np.pad(q, (1, 2), constant_values=-np.inf),
    )
    swapped = reduce(d, "add", "w => v", x, to=shape((8,)), w=d.concat("a", "rest"), v=d.concat("rest", "a"))
    close(one({x: p}, swapped, d), np.concatenate([p[3:], p[:3]]))
    shifted = reduce(d, "add", "w => v", x, to=shape((8,)), w=d.concat(3, "rest"), v=d.concat("rest", 3))
    close(one({x: p}, shifted, d), np.concatenate([p[3:], np.zeros(3)]))
    close(one({x: p}, reduce(d, "add", "w => ", x, to=shape(), w=d.concat(3, "rest")), d), p.sum())
    close(
        one({x: p}, reduce(d, "mean", "w => 0", x, to=shape((1,)), w=d.concat("a", "rest")), d), p.mean(keepdims=True)
    )
    twice = reduce(d, "add", "i => w", y, to=shape((6,)), w=d.concat("i", "i"))
    close(one({y: q}, twice, d), np.concatenate([q, q]))


def test_empty_parts() -> None:
    d = Dims(x=0, y=4)
    a, b = tensor("a", (0,)), tensor("b", (4,))
    joined = reduce(d, "add", "x ; y => xy", a, b, combine="concat", to=shape((4,)), xy=d.concat("x", "y"))
    q = draw(4)
    close(one({a: draw(0), b: q}, joined, d), q)


# ---------------------------------------------------------------- tropical, random, custom


def test_tropical_products() -> None:
    d = Dims(i=3, j=5, k=4)
    a, b = tensor("a", (3, 4)), tensor("b", (4, 5))
    p, q = draw(3, 4), draw(4, 5)
    sums = p[:, :, None] + q[None]
    close(one({a: p, b: q}, reduce(d, "max", "i k ; k j => i j", a, b, to=shape((3, 5))), d), sums.max(1))
    close(one({a: p, b: q}, reduce(d, "min", "i k ; k j => i j", a, b, to=shape((3, 5))), d), sums.min(1))
    close(
        one({a: p, b: q}, reduce(d, "add", "i k ; k j => i j", a, b, combine="add", to=shape((3, 5))), d), sums.sum(1)
    )


def test_random_tensors() -> None:
    drawn = value(ir.Draw("uniform", "here", None), shape((3,), (4,)), "f32")
    close(run({}, [drawn], seed=5, call_count=2)[0], uniform_array((3, 4), seed=5, place="here", count=2), 0)
    c = value(ir.Input("c", "index"), shape(), "i32")
    counted = value(ir.Draw("uniform", "here", c), shape((3,), (4,)), "f32")
    close(run({c: 2}, [counted], seed=5, call_count=9)[0], uniform_array((3, 4), seed=5, place="here", count=2), 0)


def test_arange_array_and_data() -> None:
    count = value(ir.Arange(), shape((4,)), "i32")
    close(one({}, apply("mul", count, number(0.5), to=shape((4,)))), np.arange(4) * np.float32(0.5))
    literal = value(ir.Array(np.array([[1, 2], [3, 4]])), shape((2,), (2,)))
    close(one({}, apply("add", literal, number(1.0), to=shape((2,), (2,)))), np.array([[2, 3], [4, 5]], np.float32))
    data = value(ir.Data("images"), shape((3,)), "u8", name="images")
    cells = {"images": np.array([1, 2, 3])}
    assert run({}, [apply("add", data, data, to=shape((3,)))], cells=cells)[0].tolist() == [2, 4, 6]


def test_narrow_floats_compute_in_f32() -> None:
    pytest.importorskip("ml_dtypes")
    x = tensor("x", (3000,), precision="bf16")
    d = Dims(i=3000)
    a = np.full(3000, 0.01)
    total = one({x: a}, reduce(d, "add", "i => ", x, to=shape()), d)
    assert total.dtype.name == "bfloat16" and abs(float(total) - 30) < 0.3


# ---------------------------------------------------------------- storage


def test_only_what_is_needed_is_lowered() -> None:
    from tests.graph.make import lowered

    x = tensor("x", (3,))
    used = apply("exp", x, to=shape((3,)))
    apply("log", x, to=shape((3,)))
    program = lowered([x], [used, x])
    assert len(program.assigns) == 1 and program.outputs[1] is program.inputs[0]


def test_results_keep_the_values_from_before_the_stores() -> None:
    s = cell("s", shape((2,)), kind="state")
    before = cell_value(s)
    after = value(ir.Assigned(before, "add", False, None, number(1.0)), s.shape)
    cells: dict[str, Any] = {"s": np.array([1.0, 2.0])}
    got = run({}, [before, after], finals={s: after}, cells=cells)
    assert got[0].tolist() == [1, 2] and got[1].tolist() == [2, 3] and cells["s"].tolist() == [2, 3]


def test_deep_graphs_do_not_recurse() -> None:
    x = tensor("x", (2,))
    r = x
    for _ in range(1500):
        r = apply("neg", r, to=shape((2,)))
    close(one({x: np.array([1.0, 2.0])}, r), np.array([1.0, 2.0]))
