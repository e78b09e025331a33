"""A writer of one LLVM function as text, with nested scopes and value numbering.

Every loop body is a scope. A pure instruction is written once for equal operands, and as far out as its operands allow: hoisting
and common subexpressions need no pass later. A scope's lines grow at their end only; a nested scope is put into its parent when
it closes, so what is hoisted to an outer scope lands just before the nested loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

# What every target expands into instructions. A name that LLVM does not know, or cannot expand, would become a call of a library.
_ALLOWED = ("fma", "sqrt", "floor", "ceil", "trunc", "roundeven", "fabs", "copysign", "fptosi.sat", "fptoui.sat",
            "masked.load", "masked.store", "masked.gather", "masked.scatter", "prefetch")  # fmt: skip


@dataclass(slots=True)
class Scope:
    """A loop body, a branch or the whole function: its lines, its numbered values, the label of its current block."""

    depth: int
    label: str
    lines: list[str] = field(default_factory=list[str])
    memo: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """A loop being written: its counter, the names of its carried values, and what it takes to close it."""

    counter: str
    carried: tuple[str, ...]
    types: tuple[str, ...]
    initial: tuple[str, ...]
    bounds: tuple[str, str]
    header: str


class Writer:
    """The body of one function. SSA names and block labels are numbered, so equal functions have equal texts.

    `conditions` remembers of which i1 a number that is 0 or 1 was made.
    """

    def __init__(self) -> None:
        self.scopes = [Scope(0, "entry")]
        self.declarations: dict[str, None] = {}
        self.conditions: dict[str, str] = {}
        self._depth: dict[str, int] = {}
        self._count = 0

    @property
    def scope(self) -> Scope:
        return self.scopes[-1]

    def name(self, depth: int | None = None) -> str:
        """A new SSA name, defined at `depth` (the current one)."""
        self._count += 1
        result = f"%v{self._count}"
        self._depth[result] = self.scope.depth if depth is None else depth
        return result

    def depth_of(self, operand: str) -> int:
        """The depth of the scope that defines an operand; literals are everywhere."""
        return self._depth.get(operand, 0)

    def line(self, text: str) -> None:
        """An instruction with an effect, at the end of the current scope."""
        self.scope.lines.append(text)

    def pure(self, instruction: str, operands: Sequence[str], at_least: int = 0, tag: str = "") -> str:
        """The value of an instruction without effects, written in the outermost scope that has its operands and is not above `at_least`.

        `tag` tells equal instructions apart that may differ in value: loads before and after a store.
        """
        depth = at_least
        for operand in operands:
            d = self._depth.get(operand, 0)
            if d > depth:
                depth = d
        scope = self.scopes[depth]
        key = instruction + tag
        found = scope.memo.get(key)
        if found is not None:
            return found
        result = self.name(depth)
        scope.lines.append(f"{result} = {instruction}")
        scope.memo[key] = result
        return result

    def call(self, result_type: str, intrinsic: str, operands: Sequence[tuple[str, str]], at_least: int = 0) -> str:
        """A call of a pure intrinsic; operands are (type, value). Declares it."""
        self.declare(result_type, intrinsic, [t for t, _ in operands])
        args = ", ".join(f"{t} {v}" for t, v in operands)
        return self.pure(f"call {result_type} @{intrinsic}({args})", [v for _, v in operands], at_least)

    def declare(self, result_type: str, intrinsic: str, types: Sequence[str]) -> None:
        """Makes sure that an intrinsic is declared."""
        assert intrinsic.startswith(tuple(f"llvm.{name}." for name in _ALLOWED)), f"{intrinsic} is not allowed"
        self.declarations[f"declare {result_type} @{intrinsic}({', '.join(types)})"] = None

    def begin_loop(self, low: str, high: str, carried: Sequence[tuple[str, str]] = ()) -> OpenLoop:
        """Starts a loop of an i64 counter from `low` up to `high`, which runs at least once. `carried` are (type, initial value)."""
        self._count += 1
        label = f"l{self._count}"
        scope = Scope(self.scope.depth + 1, label)
        self.scopes.append(scope)
        counter = self.name()
        names = tuple(self.name() for _ in carried)
        return OpenLoop(counter, names, tuple(t for t, _ in carried), tuple(v for _, v in carried), (low, high), label)

    def end_loop(self, loop: OpenLoop, values: Sequence[str] = ()) -> None:
        """Closes a loop with the new values of what it carries; after it these values are seen by the scope around."""
        body = self.scopes.pop()
        around = self.scope
        self._count += 1
        step, test, after = f"%n{self._count}", f"%t{self._count}", f"x{self._count}"
        low, high = loop.bounds
        lines = around.lines
        lines.append(f"br label %{loop.header}")
        lines.append(f"{loop.header}:")
        lines.append(f"{loop.counter} = phi i64 [ {low}, %{around.label} ], [ {step}, %{body.label} ]")
        for name, type_, first, new in zip(loop.carried, loop.types, loop.initial, values, strict=True):
            lines.append(f"{name} = phi {type_} [ {first}, %{around.label} ], [ {new}, %{body.label} ]")
        lines.extend(body.lines)
        lines.append(f"{step} = add nuw nsw i64 {loop.counter}, 1")
        lines.append(f"{test} = icmp slt i64 {step}, {high}")
        lines.append(f"br i1 {test}, label %{loop.header}, label %{after}")
        lines.append(f"{after}:")
        around.label = after
        for value in values:
            if self._depth.get(value, 0) > around.depth:
                self._depth[value] = around.depth
                # What it was made of is still known inside the loop only.
                self.conditions.pop(value, None)

    def begin_if(self) -> str:
        """Starts a branch; gives the label to close it with."""
        self._count += 1
        label = f"t{self._count}"
        self.scopes.append(Scope(self.scope.depth + 1, label))
        return label

    def end_if(self, label: str, condition: str) -> None:
        """Closes the branch `label`, which runs where the i1 `condition` holds."""
        body = self.scopes.pop()
        around = self.scope
        self._count += 1
        after = f"x{self._count}"
        around.lines.append(f"br i1 {condition}, label %{label}, label %{after}")
        around.lines.append(f"{label}:")
        around.lines.extend(body.lines)
        around.lines.append(f"br label %{after}")
        around.lines.append(f"{after}:")
        around.label = after

    def text(self) -> str:
        """The lines of the function's body."""
        return "\n".join(self.scopes[0].lines)
