"""Random loop programs of every kind of access, with contents that are small whole numbers, so that results are exact."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from ocannl_lang.graph.dtypes import dtype
from ocannl_lang.loops.ir import (
    Access,
    Accum,
    Affine,
    Apply,
    Assign,
    Buffer,
    Const,
    Dynamic,
    Expr,
    Index,
    Position,
    Program,
    Var,
)
from ocannl_lang.loops.lower_expr import precision

SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 19, 33)
_FLOAT_FNS = (("add", 2), ("sub", 2), ("mul", 2), ("min", 2), ("max", 2), ("neg", 1), ("relu", 1), ("abs", 1), ("sign", 1),
              ("where", 3), ("fma", 3), ("lt", 2), ("eq", 2), ("floor", 1), ("clamp", 3), ("sat01", 1))  # fmt: skip
_INT_FNS = (("add", 2), ("sub", 2), ("mul", 2), ("min", 2), ("max", 2), ("floordiv", 2), ("mod", 2), ("where", 3), ("ge", 2),
            ("neg", 1), ("relu", 1), ("abs", 1), ("sign", 1), ("div", 2))  # fmt: skip


def _as_is(e: Expr) -> Expr:
    return e


def _signs(e: Expr) -> Expr:
    """Products of many numbers stay small only for these."""
    return Apply("sign", (e,), precision(e))


class Generator:
    """Builds one program from a seed."""

    def __init__(self, seed: int, precs: tuple[str, ...] = ("f32", "f64", "i32", "i64", "u8")) -> None:
        self.r = random.Random(seed)
        self.precs = precs
        self.inputs: list[Buffer] = []
        self.persistent: list[Buffer] = []
        self.buffers: list[Buffer] = []
        self.assigns: list[Assign] = []

    def program(self) -> tuple[Program, dict[Buffer, Any]]:
        r = self.r
        main = r.choice(self.precs)
        for k in range(r.randint(1, 3)):
            self.inputs.append(self._buffer(f"x{k}", main if r.random() < 0.7 else r.choice(self.precs), "input"))
        for k in range(r.randint(0, 2)):
            self.persistent.append(self._buffer(f"p{k}", main, "param"))
        self.ids = Buffer("ids", (r.choice(SIZES),), "i32", "input")
        self.inputs.append(self.ids)
        self.buffers = [*self.inputs, *self.persistent]
        written: list[Buffer] = []
        for k in range(r.randint(1, 5)):
            written.append(self._assignment(f"t{k}", main))
        stores: list[tuple[Buffer, Buffer]] = []
        for p in self.persistent:
            stores.append((p, self._update(p)))
        outputs = [r.choice(self.buffers) for _ in range(r.randint(1, 3))]
        outputs.append(written[-1])
        program = Program("random", tuple(self.inputs), tuple(outputs), self.assigns, tuple(stores))
        return program, {b: self._content(b) for b in (*self.inputs, *self.persistent)}

    def _buffer(self, name: str, prec: str, role: Any = "temp") -> Buffer:
        rank = self.r.choice((0, 1, 1, 2, 2, 2, 3))
        sizes = SIZES if self.r.random() < 0.9 else (0, *SIZES[:6])
        return Buffer(name, tuple(self.r.choice(sizes) for _ in range(rank)), prec, role)

    def _content(self, b: Buffer) -> Any:
        rng = np.random.default_rng(self.r.randrange(2**32))
        low, high = (0, 4) if b.prec in ("u8", "u32") else (-3, 4)
        return rng.integers(low, high, b.shape).astype(dtype(b.prec))

    def _assignment(self, name: str, main: str) -> Buffer:
        r = self.r
        loops = [Var("ijklmn"[k], r.choice(SIZES)) for k in range(r.randint(0, 4))]
        while np.prod([v.size for v in loops]) > 20000:
            loops.pop()
        if loops and r.random() < 0.03:
            loops[-1] = Var("e", 0)
        prec = main if r.random() < 0.75 else r.choice(self.precs)
        accums: tuple[Accum, ...] = ("set", "add", "add", "max", "min", "mul", "or", "and")
        accum = r.choice(accums)
        injective = accum == "set"
        shape: list[int] = []
        index: list[Index] = []
        guarded = False
        free = list(loops)
        r.shuffle(free)
        kept = len(free) if injective else r.randint(0, len(free))
        for v in free[:kept]:
            style = r.random()
            if style < 0.6:
                shape.append(v.size)
                index.append(Affine.of(v))
            elif style < 0.7:
                shape.append(v.size + 2)
                index.append(Affine(((v, -1),), v.size))
            elif style < 0.8:
                shape.append(2 * v.size + 1)
                index.append(Affine(((v, 2),), 1))
            elif style < 0.9:
                shape.append(max(1, v.size - 1))
                index.append(Affine(((v, 1),), -1))
                guarded = True
            elif not injective and len(free) > 1:
                w = r.choice([x for x in free if x is not v])
                terms = sorted(((v, 1), (w, 2)), key=lambda t: t[0].id)
                shape.append(max(1, v.size + 2 * w.size - 2))
                index.append(Affine(tuple(terms)))
            else:
                shape.append(v.size)
                index.append(Affine.of(v))
        if not injective and r.random() < 0.15 and loops and self.ids.shape[0]:
            shape.append(4)
            index.append(Dynamic(self._id(r.choice(loops))))
            guarded = True
        if r.random() < 0.15:
            shape.append(r.choice((1, 3)))
            index.append(Affine((), shape[-1] - 1))
        if np.prod(shape) > 50000:
            shape, index, guarded, accum = [], [], False, "add"
        target = Buffer(name, tuple(shape), prec)
        limit = _signs if accum == "mul" else _as_is
        if any(v.size == 0 for v in loops):
            guarded = True
        self.assigns.append(
            Assign(Access(target, tuple(index), guarded), accum, True, tuple(loops), limit(self._expr(prec, loops, 3)))
        )
        if r.random() < 0.2 and accum != "set":
            self.assigns.append(
                Assign(
                    Access(target, tuple(index), guarded), accum, False, tuple(loops), limit(self._expr(prec, loops, 2))
                )
            )
        self.buffers.append(target)
        return target

    def _update(self, p: Buffer) -> Buffer:
        """A new content of a persistent buffer: pointwise, or a copy with a part overwritten."""
        r = self.r
        new = Buffer(p.name + "new", p.shape, p.prec)
        loops = tuple(Var("ijk"[k], s) for k, s in enumerate(p.shape))
        here = tuple(Affine.of(v) for v in loops)
        if r.random() < 0.6 or not p.shape or 0 in p.shape:
            value: Expr = Apply("add", (Access(p, here), self._expr(p.prec, list(loops), 1)), p.prec)
            self.assigns.append(Assign(Access(new, here), "set", True, loops, value))
        else:
            self.assigns.append(Assign(Access(new, here), "set", True, loops, Access(p, here)))
            inner = tuple(Var("uvw"[k], s) for k, s in enumerate(p.shape[1:]))
            at = (
                Dynamic(Access(self.ids, (Affine(),))) if self.ids.shape[0] else Affine(),
                *(Affine.of(v) for v in inner),
            )
            self.assigns.append(Assign(Access(new, at, True), "set", False, inner, self._expr(p.prec, list(inner), 1)))
        self.buffers.append(new)
        return new

    def _id(self, v: Var) -> Expr:
        n = self.ids.shape[0]
        return Access(self.ids, (Affine.of(v),), v.size > n, 1)

    def _expr(self, prec: str, loops: list[Var], depth: int) -> Expr:
        r = self.r
        if depth == 0 or r.random() < 0.25:
            return self._leaf(prec, loops)
        fns = _FLOAT_FNS if prec in ("f32", "f64") else _INT_FNS
        fn, arity = r.choice(fns)
        if fn in ("lt", "eq", "ge"):
            of = prec
            test = Apply(fn, tuple(self._expr(of, loops, depth - 1) for _ in range(2)), "u8")
            return test if prec == "u8" else Apply("convert", (test,), prec)
        args = [self._expr(prec, loops, depth - 1) for _ in range(arity)]
        if fn == "where":
            args[0] = Apply("gt", (self._leaf(prec, loops), Const(0, prec)), "u8")
        if fn == "clamp":
            args[1:] = [Const(0 if prec == "u8" else -2, prec), Const(3, prec)]
        return Apply(fn, tuple(args), prec)

    def _leaf(self, prec: str, loops: list[Var]) -> Expr:
        r = self.r
        choice = r.random()
        if choice < 0.1:
            return Const(r.randint(0, 3), prec)
        if choice < 0.17 and loops:
            position = Affine(((r.choice(loops), r.choice((1, 2))),), r.randint(0, 2))
            value: Expr = Position(position, prec)
            return Apply("min", (value, Const(3, prec)), prec)
        buffer = r.choice(self.buffers)
        if buffer.size == 0 and r.random() < 0.5:
            return Const(1, prec)
        access = self._access(buffer, loops)
        return access if buffer.prec == prec else Apply("convert", (access,), prec)

    def _access(self, buffer: Buffer, loops: list[Var]) -> Access:
        r = self.r
        index: list[Index] = []
        guarded = False
        for size in buffer.shape:
            fitting = [v for v in loops if v.size == size]
            style = r.random()
            if fitting and style < 0.75:
                index.append(Affine.of(r.choice(fitting)))
                continue
            if size and style < 0.8 and self.ids.shape[0] and loops and buffer is not self.ids:
                index.append(Dynamic(self._id(r.choice(loops))))
                guarded = True
                continue
            terms: dict[Var, int] = {}
            for _ in range(r.randint(0, 2)):
                if loops:
                    terms[r.choice(loops)] = r.choice((1, 1, 1, -1, 2, -2, 3))
            affine = Affine(tuple(sorted(terms.items(), key=lambda t: t[0].id)), r.choice((0, 0, 1, -1, 3)))
            low, high = affine.bounds()
            guarded = guarded or low < 0 or high >= size
            index.append(affine)
        return Access(buffer, tuple(index), guarded, r.choice((0, 0, 2)))
