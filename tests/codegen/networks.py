"""Random networks: rows, products, sums over rows and columns, gathers, updates, as lowering writes them. Contents are whole numbers
that stay small, so that results are exact."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from ocannl_lang.graph.dtypes import dtype
from ocannl_lang.loops.ir import Access, Accum, Affine, Apply, Assign, Buffer, Const, Expr, Position, Program, Var

_SIZES = (1, 3, 4, 8, 10, 16, 19, 33, 40)


class Network:
    """Builds one program from a seed. Buffers are indexed by letters; a letter has one size."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.prec = self.r.choice(("f32", "f32", "f32", "f64"))
        self.sizes = {c: self.r.choice(_SIZES) for c in "abcde"}
        self.letters: dict[Buffer, str] = {}
        self.values: list[Buffer] = []
        self.assigns: list[Assign] = []
        self.ids: dict[str, Buffer] = {}

    def program(self, steps: int = 14) -> tuple[Program, dict[Buffer, Any]]:
        r = self.r
        inputs = [self._buffer(f"x{k}", self._some(2), "input") for k in range(2)]
        inputs.append(self._buffer("s", "", "input"))
        params = [self._buffer(f"p{k}", self._some(r.randint(1, 3)), "param") for k in range(r.randint(1, 3))]
        for c in "ab":
            ids = Buffer(f"ids{c}", (self.sizes[c],), "i32", "input")
            self.ids[c] = ids
            inputs.append(ids)
        self.values = [*inputs[:3], *params]
        for k in range(steps):
            self._step(f"t{k}")
        stores: list[tuple[Buffer, Buffer]] = []
        for p in params:
            letters = self.letters[p]
            others = [b for b in self.values if set(self.letters[b]) <= set(letters) and b is not p]
            new = self._assign(f"{p.name}n", letters, "set", "", lambda at, p=p, o=others: self._update(p, o, at))
            stores.append((p, new))
        made = [b for b in self.values if b.role == "temp"]
        outputs = [r.choice(made) for _ in range(2)] + [made[-1]]
        program = Program("network", tuple(inputs), tuple(outputs), self.assigns, tuple(stores))
        return program, {b: self._content(b) for b in (*inputs, *params)}

    def _update(self, p: Buffer, others: list[Buffer], at: Any) -> Expr:
        other = at(self.r.choice(others)) if others else Const(1, self.prec)
        return self._small(Apply("sub", (at(p), other), self.prec))

    def _some(self, n: int) -> str:
        return "".join(self.r.sample("abcde", n))

    def _buffer(self, name: str, letters: str, role: Any = "temp") -> Buffer:
        b = Buffer(name, tuple(self.sizes[c] for c in letters), self.prec, role)
        self.letters[b] = letters
        return b

    def _content(self, b: Buffer) -> Any:
        rng = np.random.default_rng(self.r.randrange(2**32))
        low, high = (-1, 12) if b.prec == "i32" else (-2, 3)
        return rng.integers(low, high, b.shape).astype(dtype(b.prec))

    def _small(self, e: Expr) -> Expr:
        return Apply("clamp", (e, Const(-3.0, self.prec), Const(3.0, self.prec)), self.prec)

    def _assign(self, name: str, letters: str, accum: Accum, sums: str, value: Any, fresh: bool = True) -> Buffer:
        b = self._buffer(name, letters)
        self._write(b, accum, sums, value, fresh)
        self.values.append(b)
        return b

    def _write(self, b: Buffer, accum: Accum, sums: str, value: Any, fresh: bool) -> None:
        letters = self.letters[b]
        order = [*letters, *sums]
        if self.r.random() < 0.3:
            self.r.shuffle(order)
        v = {c: Var(c, self.sizes[c]) for c in order}

        def at(x: Buffer) -> Access:
            return Access(x, tuple(Affine.of(v[c]) for c in self.letters[x]))

        self._vars = v
        target = Access(b, tuple(Affine.of(v[c]) for c in letters))
        e = value(at)
        if accum == "set" or not sums:
            e = self._small(e)
        self.assigns.append(Assign(target, accum, fresh, tuple(v[c] for c in order), e))

    def _step(self, name: str) -> None:
        r = self.r
        kind = r.random()
        if kind < 0.35:
            self._pointwise(name)
        elif kind < 0.6:
            self._reduction(name)
        elif kind < 0.85:
            self._product(name)
        elif kind < 0.93:
            self._lookup(name)
        else:
            self._chain(name)

    def _within(self, letters: str) -> list[Buffer]:
        return [b for b in self.values if set(self.letters[b]) <= set(letters)]

    def _pointwise(self, name: str) -> None:
        base = self.letters[self.r.choice(self.values)] or "a"
        letters = "".join(self.r.sample(base, len(base))) if self.r.random() < 0.2 else base
        self._assign(name, letters, "set", "", lambda at: self._expr(letters, at, 2))

    def _expr(self, letters: str, at: Any, depth: int) -> Expr:
        r, prec = self.r, self.prec
        if depth == 0 or r.random() < 0.2:
            if r.random() < 0.1:
                return Const(r.randint(-1, 2), prec)
            recent = self._within(letters)[-4:] if r.random() < 0.7 else self._within(letters)
            return at(r.choice(recent))
        fn = r.choice(("add", "sub", "mul", "relu", "max", "min", "neg", "abs", "where", "sign"))
        args = [self._expr(letters, at, depth - 1) for _ in range(1 if fn in ("relu", "neg", "abs", "sign") else 2)]
        if fn == "where":
            test = Apply("gt", (self._expr(letters, at, 0), Const(0.0, prec)), "u8")
            return Apply("where", (test, *args), prec)
        if fn == "mul":
            args = [self._small(a) for a in args]
        return Apply(fn, tuple(args), prec)

    def _reduction(self, name: str) -> None:
        r = self.r
        source = r.choice([b for b in self.values if self.letters[b]])
        letters = self.letters[source]
        sums = "".join(c for c in letters if r.random() < 0.5) or letters[-1]
        rest = "".join(c for c in letters if c not in sums)
        accum: Accum = r.choice(("add", "add", "max", "min"))
        total = self._assign(name, rest, accum, sums, lambda at: self._expr(letters, at, 1))
        if accum == "add":
            self.values.remove(total)
            self._assign(name + "s", rest, "set", "", lambda at: at(total))

    def _product(self, name: str) -> None:
        r = self.r
        pairs = [(x, y) for x in self.values for y in self.values if set(self.letters[x]) & set(self.letters[y])]
        x, y = r.choice(pairs)
        common = [c for c in self.letters[x] if c in self.letters[y]]
        sums = "".join(c for c in common if r.random() < 0.7) or common[0]
        letters = "".join(dict.fromkeys(c for c in self.letters[x] + self.letters[y] if c not in sums))
        if np.prod([self.sizes[c] for c in letters + sums]) > 60000 or len(letters) > 4:
            return
        total = self._assign(name, letters, "add", sums, lambda at: Apply("mul", (at(x), at(y)), self.prec))
        self.values.remove(total)
        self._assign(name + "s", letters, "set", "", lambda at: self._epilogue(letters, at(total), at))

    def _epilogue(self, letters: str, total: Expr, at: Any) -> Expr:
        e = Apply("add", (total, self._expr(letters, at, 0)), self.prec)
        return Apply("relu", (e,), self.prec) if self.r.random() < 0.5 else e

    def _lookup(self, name: str) -> None:
        r = self.r
        tables = [b for b in self.values if len(self.letters[b]) == 2]
        if not tables:
            return
        w = r.choice(tables)
        o, k = self.letters[w]
        free = [c for c in "ab" if c not in (o, k)]
        if not free:
            return
        b = r.choice(free)
        v = {c: Var(c, self.sizes[c]) for c in (b, o, k)}
        ids = Access(self.ids[b], (Affine.of(v[b]),))
        hot: Expr = Apply("convert", (Apply("eq", (Position(Affine.of(v[k]), "i32"), ids), "u8"),), self.prec)
        if r.random() < 0.5:
            y = self._buffer(name, b + o)
            product = Apply("mul", (Access(w, (Affine.of(v[o]), Affine.of(v[k]))), hot), self.prec)
            target = Access(y, (Affine.of(v[b]), Affine.of(v[o])))
            self.assigns.append(Assign(target, "add", True, (v[b], v[o], v[k]), product))
        else:
            sources = [x for x in self.values if set(self.letters[x]) <= {b, o}]
            if not sources:
                return
            x = r.choice(sources)
            y = self._buffer(name, o + k)
            read = Access(x, tuple(Affine.of(v[c]) for c in self.letters[x]))
            target = Access(y, (Affine.of(v[o]), Affine.of(v[k])))
            self.assigns.append(Assign(target, "add", True, (v[o], v[k], v[b]), Apply("mul", (read, hot), self.prec)))
        self._assign(name + "s", self.letters[y], "set", "", lambda at: at(y))

    def _chain(self, name: str) -> None:
        """Several assignments to one buffer."""
        r = self.r
        letters = self.letters[r.choice([b for b in self.values if self.letters[b]])]
        b = self._buffer(name, letters)
        self._write(b, "set", "", lambda at: self._expr(letters, at, 1), True)
        for _ in range(r.randint(1, 2)):
            extra = [c for c in "abcde" if c not in letters]
            sums = r.choice(extra) if r.random() < 0.5 and extra else ""
            self._write(b, "add", sums, lambda at, s=sums: self._expr(letters + s, at, 1), False)
        self._assign(name + "s", letters, "set", "", lambda at: at(b))
