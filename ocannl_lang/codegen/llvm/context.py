"""What is known while one kernel is written: where loop variables are, register values, stores so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Union

from ocannl_lang.codegen.llvm.ops import Ops, const
from ocannl_lang.codegen.llvm.types import Value, llvm_type
from ocannl_lang.codegen.llvm.writer import Writer
from ocannl_lang.loops.ir import Affine, Buffer, Expr, Var
from ocannl_lang.schedule.ir import Space


@dataclass(frozen=True, slots=True)
class Lanes:
    """A chunk of a vector loop: its variable is `start`, `start + 1`, … in the first `count` of the lanes."""

    start: int
    count: int


# A loop variable is a counter (an SSA name), a number (in an unrolled loop), or a chunk of lanes.
Binding = Union[int, str, Lanes]


@dataclass(frozen=True, slots=True)
class Place:
    """A position `offset + base + step·lane`: a constant, a number known outside the lanes, and the stride of the lanes."""

    offset: int
    base: Value | None
    step: int


@dataclass(slots=True)
class Context:
    """The state of writing one kernel. `lanes`: numbers in a vector; `count`: how many of them the current chunk uses (0 outside).

    `past`: buffers whose whole vectors are written past the caches; they begin at a multiple of `PAST_ALIGN`.
    """

    o: Ops
    lanes: int
    spaces: dict[Buffer, Space]
    written: frozenset[Buffer]
    evaluate: Callable[[Context, Expr], Value]
    past: frozenset[Buffer] = frozenset()
    count: int = 0
    env: dict[Var, Binding] = field(default_factory=dict[Var, Binding])
    registers: dict[tuple[Buffer, int], Value] = field(default_factory=dict[tuple[Buffer, int], Value])
    versions: dict[Buffer, int] = field(default_factory=dict[Buffer, int])
    arguments: dict[Buffer, int] = field(default_factory=dict[Buffer, int])
    locals: dict[Buffer, int] = field(default_factory=dict[Buffer, int])
    waiting: list[str] = field(default_factory=list[str])

    @property
    def w(self) -> Writer:
        return self.o.w

    @property
    def partial(self) -> bool:
        """Whether the current chunk leaves lanes unused."""
        return 0 < self.count < self.lanes

    def place(self, index: Affine) -> Place:
        """Where an affine position is."""
        offset, step = index.offset, 0
        terms: list[tuple[int, str, int]] = []
        for var, c in index.terms:
            match self.env[var]:
                case int(n):
                    offset += c * n
                case Lanes(start=start):
                    offset += c * start
                    step += c
                case str(counter):
                    terms.append((self.w.depth_of(counter), counter, c))
        base: Value | None = None
        # Outer loops first, so that what does not change inside is added up outside.
        for _, counter, c in sorted(terms, key=lambda t: t[0]):
            term = Value(counter, "i64")
            if c != 1:
                term = self.o.mul(term, const(c, "i64"))
            base = term if base is None else self.o.add(base, term)
        return Place(offset, base, step)

    def number(self, place: Place) -> Value:
        """A position without its lanes, as i64."""
        if place.base is None:
            return const(place.offset, "i64")
        return place.base if place.offset == 0 else self.o.add(place.base, const(place.offset, "i64"))

    def pointer(self, buffer: Buffer) -> str:
        """Where a buffer begins."""
        if self.spaces.get(buffer) == "local":
            return f"%local{self.locals.setdefault(buffer, len(self.locals))}"
        k = self.arguments.setdefault(buffer, len(self.arguments))
        w = self.w
        at = w.pure(f"getelementptr inbounds i32, ptr %slots, i64 {k}", [])
        slot = w.pure(f"load i32, ptr {at}, align 4", [at])
        entry = w.pure(f"getelementptr inbounds ptr, ptr %table, i32 {slot}", [slot])
        return w.pure(f"load ptr, ptr {entry}, align 8", [entry])

    def call_word(self, index: int) -> Value:
        """Words that every call sets: 0 the seed, 1 the call count."""
        w = self.w
        header = w.pure("load ptr, ptr %table, align 8", [])
        at = w.pure(f"getelementptr inbounds i64, ptr {header}, i64 {index}", [header])
        return Value(w.pure(f"load i64, ptr {at}, align 8", [at]), "i64")

    def address(self, buffer: Buffer, place: Place) -> str:
        """The address of the element at `place` (of its first lane)."""
        t = llvm_type(buffer.prec)
        p = self.pointer(buffer)
        if place.base is not None:
            base = place.base.text
            p = self.w.pure(f"getelementptr inbounds {t}, ptr {p}, i64 {base}", [p, base])
        if place.offset:
            p = self.w.pure(f"getelementptr inbounds {t}, ptr {p}, i64 {place.offset}", [p])
        return p

    def tag(self, buffer: Buffer) -> tuple[int, str]:
        """For a load: how far out it may be written, and what tells it from loads before the last store."""
        if buffer in self.written:
            return self.w.scope.depth, f";{self.versions.get(buffer, 0)}"
        return 0, ""

    def stored(self, buffer: Buffer) -> None:
        """Notes a store."""
        self.versions[buffer] = self.versions.get(buffer, 0) + 1
