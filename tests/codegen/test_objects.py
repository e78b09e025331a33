"""Machine code: no calls of libraries on any machine, objects compiled once and kept on disk."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ocannl_lang.codegen import cpu
from ocannl_lang.codegen.llvm import compile as objects
from ocannl_lang.codegen.llvm.kernel import function_of
from ocannl_lang.codegen.llvm.target import Target, host_target, target_of
from ocannl_lang.codegen.llvm.types import Unsupported
from ocannl_lang.graph.primitives import PRIMITIVES
from ocannl_lang.loops.ir import Access, Affine, Apply, Assign, Buffer, Const, Dynamic, Expr, Program, Random, Var
from ocannl_lang.loops.optimise import optimise
from ocannl_lang.schedule.groups import schedule
from ocannl_lang.schedule.memory import prepare

MACHINES = {
    "plain": ("x86_64-unknown-linux-gnu", "x86-64", ""),
    "avx2": ("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx2,+fma,+sse4.1"),
    "avx512": ("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx2,+fma,+sse4.1"),
    "neon": ("aarch64-unknown-linux-gnu", "", ""),
}


def pointwise(value: Expr, inputs: list[Buffer], v: Var, prec: str) -> Program:
    out = Buffer("y", (v.size,), prec)
    return Program("p", tuple(inputs), (out,), [Assign(Access(out, (Affine.of(v),)), "set", True, (v,), value)])


def texts(program: Program, target: Target) -> list[str]:
    kernels = list(schedule(optimise(prepare(program)), target))
    return [objects.assembly(function_of(k, target).text, target) for k in kernels]


@pytest.mark.slow
@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_no_primitive_calls_a_library(machine: str) -> None:
    target = target_of(*MACHINES[machine])
    for prec in ("f32", "f64", "i32"):
        for p in PRIMITIVES.values():
            if prec == "i32" and p.rule == "float" and p.name != "div":
                continue
            v = Var("i", 37)
            inputs = [Buffer(f"x{k}", (37,), prec, "input") for k in range(p.arity)]
            result = "u8" if p.rule in ("compare", "logic") else prec
            value = Apply(p.name, tuple(Access(b, (Affine.of(v),)) for b in inputs), result)
            if p.name == "convert":
                value = Apply("convert", value.args, "i64")
                result = "i64"
            for text in texts(pointwise(value, inputs, v, result), target):
                assert not library_calls(text), (p.name, prec, library_calls(text))


@pytest.mark.slow
@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_gathers_and_random_numbers_call_no_library(machine: str) -> None:
    target = target_of(*MACHINES[machine])
    v, w = Var("i", 37), Var("j", 5)
    ids, x = Buffer("ids", (37,), "i32", "input"), Buffer("x", (9, 5), "f32", "input")
    gather: Expr = Access(x, (Dynamic(Access(ids, (Affine.of(v),))), Affine((), 2)), True, 0)
    shifted: Expr = Access(ids, (Affine(((v, 1),), -3),), True, 1)
    draws: list[Expr] = [Random(d, 5, None, Affine.of(v), p) for d in ("uniform", "normal") for p in ("f32", "f64")]  # type: ignore[arg-type]
    for value, prec in ((gather, "f32"), (shifted, "i32"), *((d, d.prec) for d in draws)):  # type: ignore[union-attr]
        for text in texts(pointwise(value, [ids, x], v, prec), target):
            assert not library_calls(text), library_calls(text)
    total = Buffer("t", (9, 5), "f32")
    at = (Dynamic(Access(ids, (Affine.of(v),))), Affine.of(w))
    scatter = Assign(Access(total, at, True), "add", True, (v, w), Const(1.0, "f32"))
    for text in texts(Program("s", (ids,), (total,), [scatter]), target):
        assert not library_calls(text), library_calls(text)


def test_functions_call_no_library_here() -> None:
    v = Var("i", 37)
    x = Buffer("x", (37,), "f32", "input")
    value: Expr = Access(x, (Affine.of(v),))
    for fn in ("exp", "log", "tanh", "sin", "erf", "floor", "softplus"):
        value = Apply(fn, (value,), "f32")
    value = Apply("mod", (Apply("pow", (value, Access(x, (Affine.of(v),))), "f32"), Const(0.7, "f32")), "f32")
    for text in texts(pointwise(value, [x], v, "f32"), host_target()):
        assert not library_calls(text), library_calls(text)


def library_calls(text: str) -> list[str]:
    return re.findall(r"^\s+(?:callq?|bl|jmp)\s+(?!\.)([A-Za-z_]\S*)", text, re.MULTILINE)


def test_objects_are_kept_on_disk(tmp_path: Path) -> None:
    text = "define i32 @f() {\n  ret i32 7\n}\n"
    target = host_target()
    code = objects.object_code(text, target, tmp_path)
    (path,) = tmp_path.rglob("*.o")
    assert objects.object_code(text, target, tmp_path) == code
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(bytes(damaged))
    with pytest.warns(UserWarning, match="damaged"):
        assert objects.object_code(text, target, tmp_path) == code
    assert objects.object_code(text, target, tmp_path) == code
    assert not list(tmp_path.rglob(".object*"))


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    assert objects.object_code("define i32 @f() {\n  ret i32 7\n}\n", host_target(), occupied)


def test_equal_kernels_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    real = cpu.object_code

    def counting(text: str, target: Target, cache: Path | None) -> bytes:
        compiled.append(text)
        return real(text, target, cache)

    monkeypatch.setattr(cpu, "object_code", counting)
    x = Buffer("x", (23, 23), "f32", "input")
    assigns: list[Assign] = []
    previous = x
    for _ in range(4):
        i, j, k = (Var(name, 23) for name in "ijk")
        y = Buffer("y", (23, 23), "f32")
        here, a, b = ((Affine.of(p), Affine.of(q)) for p, q in ((i, j), (i, k), (k, j)))
        product = Apply("mul", (Access(previous, a), Access(x, b)), "f32")
        assigns.append(Assign(Access(y, here), "add", True, (i, j, k), product))
        previous = y
    result = cpu.compile_program(Program("p", (x,), (previous,), assigns))
    assert len(result.steps) >= 4 and len(compiled) < len(result.steps)
    a = np.random.default_rng(0).standard_normal(x.shape).astype(np.float32)
    np.testing.assert_allclose(result.run({x: a})[0], a @ a @ a @ a @ a, rtol=1e-3, atol=1e-2)


def test_other_precisions_are_refused_clearly() -> None:
    x, y, v = Buffer("x", (3,), "f8e4m3", "input"), Buffer("y", (3,), "f8e4m3"), Var("i", 3)
    at = (Affine.of(v),)
    with pytest.raises(Unsupported, match="f8e4m3"):
        cpu.compile_program(Program("p", (x,), (y,), [Assign(Access(y, at), "set", True, (v,), Access(x, at))]))
