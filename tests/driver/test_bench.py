"""Measuring the routines of a program: what is run on, what is reported, and that nothing changes."""

from __future__ import annotations

import numpy as np
import pytest

from ocannl_lang.codegen.ceilings import Bandwidth, Ceilings
from ocannl_lang.codegen.work import Work
from ocannl_lang.driver.arguments import SCALAR, Unsized, argument_shapes, fill, shape_names
from ocannl_lang.driver.bench import RoutineReport, Unmeasured, bench, judged
from ocannl_lang.driver.session import Session

PROGRAM = """
from optim import adam

op net_of(x) = {w: [... -> 8]} * relu({v: [... -> 16]} * x)
let net = net_of

routine train(x: f32[n | 4], labels: i32[n | ], lr: f32) -> f32:
    state calls: f32[] = 0.
    calls += 1
    let loss = mean((net(x) - one_hot[8](labels)) ** 2)
    update(loss)
    for p in params(loss): adam(p, lr)
    return loss

routine fixed(x: f32[5 | 4]) -> f32[5 | 8]:
    return net(x)

routine any(x: f32[... | 3]) -> f32[... | 3]:
    return exp(x)
"""


@pytest.fixture
def opened(tmp_path):
    def open_(text=PROGRAM, **options):
        path = tmp_path / "model.ocn"
        path.write_text(text)
        return Session(**options).open(path)

    return open_


def shapes_of(program, name, given=None):
    return argument_shapes(program.routines[name], given or {})


def test_sizes_come_from_the_signature_or_by_name(opened):
    program = opened()
    assert shapes_of(program, "fixed") == [(5, 4)]
    assert shapes_of(program, "train", {"n": (7,)}) == [(7, 4), (7,), ()]
    assert shapes_of(program, "train", {"x": (7, 4)}) == [(7, 4), (7,), ()]
    assert shapes_of(program, "any", {"x": (2, 6, 3)}) == [(2, 6, 3)]
    assert shape_names(program.routines["train"]) == ["x", "labels", "lr", "n"]


def test_open_sizes_are_said(opened):
    program = opened()
    assert shapes_of(program, "train") == Unsized("`x: f32[n | 4]`", "--shape n=64")
    found = shapes_of(program, "any")
    assert isinstance(found, Unsized) and found.helps.startswith("--shape x=")


@pytest.mark.parametrize(
    "text, limits",
    [
        ("routine f(i: i32[n | ]) -> f32[n | 8]:\n    return one_hot[8](i)", {"i": 8}),
        ("routine f(i: i32[n | ]) -> f32[n | 3]:\n    return {w: [9 -> 3]} * one_hot[9](i)", {"i": 9}),
        (
            "routine f(i: i32[n | ]) -> f32[n | 3]:\n    let j = i // 2\n    return {w: [9 -> 3]} * one_hot[9](j)",
            {"i": 9},
        ),
        ("routine f(i: index[5], x: f32[5 | 2]) -> f32[2]:\n    return x[i]", {"i": 5}),
        ("routine f(i: i32[n | ]) -> i32[n | ]:\n    return i + 1", {"i": 1}),
    ],
)
def test_ints_stay_below_what_they_index(opened, text, limits):
    program = opened(text)
    routine = program.routines["f"]
    shapes = argument_shapes(routine, {"n": (500,)})
    assert not isinstance(shapes, Unsized)
    arrays = [np.zeros(s, d) for s, d in zip(shapes, routine.input_dtypes())]
    lowered = routine.executable(arrays).program
    for seed in range(5):
        fill(routine, lowered, arrays, seed)
        for buffer, array in zip(lowered.inputs, arrays):
            if array.dtype.kind in "iu":
                limit = limits[buffer.name]
                assert array.min() >= 0 and array.max() < limit
                if array.size == 500:
                    assert array.max() == limit - 1  # all positions occur


def test_floats_are_normal_and_scalars_small(opened):
    program = opened()
    routine = program.routines["train"]
    arrays = [np.zeros(s, d) for s, d in zip([(500, 4), (500,), ()], routine.input_dtypes())]
    fill(routine, routine.executable(arrays).program, arrays)
    assert abs(arrays[0].mean()) < 0.1 and 0.9 < arrays[0].std() < 1.1
    assert arrays[2] == np.float32(SCALAR)


def test_a_report_has_every_kernel(opened):
    program = opened(threads=1)
    report = bench(program, ["train", "fixed"], shapes={"n": (64,)}, seconds=0.02)
    train, fixed = report.routines
    assert isinstance(train, RoutineReport) and isinstance(fixed, RoutineReport)
    assert train.arguments == (("x", (64, 4)), ("labels", (64,)), ("lr", ()))
    assert len(train.kernels) == len(program.routines["train"].executable(
        [np.zeros((64, 4), np.float32), np.zeros(64, np.int32), np.zeros((), np.float32)]
    ).compiled.plan.kernels)  # fmt: skip
    assert 0 < train.kernel_seconds < 1 and 0 < train.call_seconds < 1 and 0 < train.seconds < 1
    assert train.arena > 0 and train.passes >= 3
    written = {name for k in train.kernels for name in k.writes}
    assert {"net.w", "net.v", "train.calls"} <= written
    assert sum(k.work.operations for k in fixed.kernels) >= 2 * 5 * (16 * 4 + 8 * 16)
    assert all(k.threads == 1 and k.share >= 0 for k in train.kernels)
    assert any(k.place is not None and k.place.source.path.endswith("model.ocn") for k in train.kernels)
    assert set(report.ceilings) == {1}


def test_nothing_changes(opened):
    program = opened(threads=1)
    program.materialise()
    before = {name: program.store[name].copy() for name in program.store}
    bench(program, ["train"], shapes={"n": (16,)}, seconds=0.01)
    assert before and all(np.array_equal(program.store[name], value) for name, value in before.items())
    assert program.params["train.calls"] == 0 and program.routines["train"].calls == 0


def test_equal_kernels_share_their_code(opened):
    program = opened(
        "op block(x) = relu({w: [32 -> 32]} * x)\nop tower(x):\n    var h = x\n    for _ in 0..3: h = block(h)\n"
        "    return h\nroutine f(x: f32[64 | 32]) -> f32[64 | 32]:\n    return tower(x)\n",
        threads=1,
    )
    (report,) = bench(program, ["f"], seconds=0.01).routines
    assert isinstance(report, RoutineReport)
    products = [k.code for k in report.kernels if k.work.flops >= 2 * 64 * 32 * 32]
    assert len(products) == 3 and len(set(products)) < 3


def test_a_routine_that_computes_nothing(opened):
    text = "routine f(x: f32[n | 3]) -> f32[n | 3]:\n    return exp(x)"
    (report,) = bench(opened(text, threads=1), ["f"], shapes={"n": (0,)}, seconds=0.01).routines
    assert isinstance(report, RoutineReport)
    assert report.kernels == () and report.kernel_seconds == 0 and report.seconds > 0


def test_a_routine_without_size_does_not_stop_the_others(opened):
    report = bench(opened(threads=1), ["any", "fixed"], seconds=0.01)
    first, second = report.routines
    assert isinstance(first, Unmeasured) and isinstance(first.reason, Unsized)
    assert isinstance(second, RoutineReport)


def test_given_shapes_that_do_not_fit_are_reported(opened):
    (found,) = bench(opened(), ["train"], shapes={"x": (7, 5)}, seconds=0.01).routines
    assert isinstance(found, Unmeasured) and isinstance(found.reason, tuple)
    assert found.reason[0].code == "E0701" and "axis of size 4" in found.reason[0].message


def test_what_bounds_a_kernel():
    ceilings = Ceilings(1, 1e9, 5e8, (Bandwidth(1000, 1e9, 1e9, 1e9),))
    assert judged(Work(1000, 0, 0, 10, 10), 2e-6, ceilings) == (pytest.approx(0.5), "arithmetic")
    assert judged(Work(10, 0, 0, 500, 500), 2e-6, ceilings) == (pytest.approx(0.5), "memory")
    assert judged(Work(10, 0, 0, 10, 10), 2e-6, ceilings) == (pytest.approx(0.01), "latency/overhead")
