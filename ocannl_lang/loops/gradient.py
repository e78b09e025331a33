"""Gradients: each backward pass as assignments over the loops of the forward pass, with target and operands exchanged.

Where a value is `t[f(i)] ⊕= e(a[g(i)], …)` for all i, its operand a receives `a.grad[g(i)] += t.grad[f(i)] · ∂e/∂a`
for all i, whatever f and g are: windows, padding, diagonals, parts, broadcasting. The passes run over the values from
the root down; what a value receives is collected and written when all its users are through. Only what leads to a
wanted gradient is carried out.

`Backprop.before` is added to what is asked for, not to what flows on, as in other frameworks: two passes over shared
tensors give the sum of their gradients.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ocannl_lang.graph.derivatives import none as no_derivative
from ocannl_lang.graph.dtypes import is_float
from ocannl_lang.graph.ir import (
    Backprop,
    Custom,
    GradOf,
    Map,
    Product,
    Reduce,
    Seed,
    Stack,
    Transpose,
    Value,
    operands,
)
from ocannl_lang.graph.order import reachable, topological
from ocannl_lang.graph.primitives import PRIMITIVES
from ocannl_lang.loops.gradient_sums import Contribution, Gradient, sum_contributions
from ocannl_lang.loops.gradient_turns import contributions_of
from ocannl_lang.loops.ir import Access, Buffer, Const
from ocannl_lang.loops.lower_expr import add, const, convert
from ocannl_lang.loops.lower_nest import Leaves
from ocannl_lang.loops.lower_shapes import align_all, places_of, whole

if TYPE_CHECKING:
    from ocannl_lang.loops.lower import Lowering


class Gradients:
    """The backward passes of one routine. A pass is carried out when the first of its gradients is lowered."""

    def __init__(self, lowering: Lowering, roots: Sequence[Value]) -> None:
        self._lowering = lowering
        self._wanted: dict[Backprop, dict[Value, None]] = {}
        self._around: dict[Backprop, tuple[Value, ...]] = {}
        self._found: dict[Backprop, dict[Value, Gradient]] = {}
        for value in reachable(roots, self.dependencies):
            if isinstance(value.op, GradOf):
                backprop = value.op.backprop
                self._wanted.setdefault(backprop, {})[key_of(value.op.of, backprop)] = None

    def dependencies(self, value: Value) -> Iterable[Value]:
        """What must be lowered before a value; for a gradient the values of the whole pass."""
        if not isinstance(value.op, GradOf):
            return operands(value)
        backprop = value.op.backprop
        before = _before(backprop, key_of(value.op.of, backprop))
        seed = () if backprop.seed is None else (backprop.seed,)
        return (backprop.root, *seed, *(() if before is None else (before,)), *self._surroundings(backprop))

    def gradient(self, value: Value) -> Buffer:
        """The buffer of a `GradOf` value."""
        assert isinstance(value.op, GradOf)
        backprop = value.op.backprop
        key = key_of(value.op.of, backprop)
        if backprop not in self._found:
            self._found[backprop] = _Pass(self._lowering, backprop, self._wanted[backprop]).run()
        flowed = self._found[backprop].get(key)
        before = _before(backprop, key)
        return self._total(value, flowed, before)

    def _total(self, value: Value, flowed: Gradient | None, before: Value | None) -> Buffer:
        lowering, span = self._lowering, value.origin.span
        prec = lowering.precisions[value]
        if before is None:
            if isinstance(flowed, Buffer):
                return flowed
            buffer = lowering.temp(value)
            lowering.writer.fill(buffer, 0 if flowed is None else flowed.value, span)
            return buffer
        held = lowering.as_precision(before, prec)
        if flowed is None:
            return held
        target, loops = whole(lowering.temp(value))
        more = flowed if isinstance(flowed, Const) else Access(flowed, target.index)
        total = add(Access(held, target.index), convert(more, prec))
        lowering.writer.assign(target, "set", loops, total, span)
        return target.buffer

    def _surroundings(self, backprop: Backprop) -> tuple[Value, ...]:
        """What own derivatives in the pass are computed from, except from the gradient that flows into them."""
        found = self._around.get(backprop)
        if found is None:
            customs = [v for v in reachable([backprop.root], lambda v: flows(v, backprop)) if isinstance(v.op, Custom)]
            values: dict[Value, None] = {}
            for custom in customs:
                assert isinstance(custom.op, Custom)
                values.update((operand, None) for operand, _ in custom.op.contributions)
                order = topological([v for _, v in custom.op.contributions], operands)
                dependent = _from_seeds(order)
                values.update((v, None) for v in order if v not in dependent)
            found = self._around[backprop] = tuple(values)
        return found


def key_of(value: Value, backprop: Backprop) -> Value:
    """Under which value a gradient is kept."""
    return backprop.leaf_of.get(value, value)


def _before(backprop: Backprop, key: Value) -> Value | None:
    if key is key_of(backprop.root, backprop):
        return None
    for of, gradient in backprop.before.items():
        if key_of(of, backprop) is key:
            return gradient
    return None


def flows(value: Value, backprop: Backprop) -> tuple[Value, ...]:
    """The operands that the gradient of a value flows to."""
    if value in backprop.leaf_of:
        return ()
    match value.op:
        case Map(fn=fn) if PRIMITIVES[fn].derivative is no_derivative:
            found = ()
        case Map(fn="where", args=args):
            found = args[1:]
        case Map(args=args) | Stack(args=args):
            found = args
        case Reduce(accum="or" | "and" | "argmax" | "argmin"):
            found = ()
        case Reduce(args=args):
            found = args
        case Product() | Transpose():
            found = operands(value)
        case Custom(contributions=contributions):
            found = tuple(operand for operand, _ in contributions)
        case _:
            found = ()
    return tuple(v for v in found if v.differentiable)


class _Pass:
    """One backward pass: from the root down to what is wanted."""

    def __init__(self, lowering: Lowering, backprop: Backprop, wanted: dict[Value, None]) -> None:
        self._lowering = lowering
        self._backprop = backprop
        self._wanted = wanted
        self._order = topological([backprop.root], lambda v: flows(v, backprop))
        self._relevant = self._lead_to_wanted()
        self._pending: dict[Value, list[Contribution]] = {}
        self._done: dict[Value, Gradient] = {}

    def run(self) -> dict[Value, Gradient]:
        """The wanted gradients, as far as anything flows to them."""
        root = self._backprop.root
        if root in self._relevant:
            self._pending[key_of(root, self._backprop)] = [self._start(root)]
        for value in reversed(self._order):
            if value in self._relevant and flows(value, self._backprop):
                gradient = self._finish(key_of(value, self._backprop), value)
                if gradient is not None:
                    self._spread(value, gradient)
        for key in self._wanted:
            self._finish(key, key)
        return {key: self._done[key] for key in self._wanted if key in self._done}

    def _lead_to_wanted(self) -> set[Value]:
        relevant: set[Value] = set()
        for value in self._order:
            if not is_float(self._lowering.precisions[value]):
                continue
            wanted = key_of(value, self._backprop) in self._wanted
            if wanted or any(v in relevant for v in flows(value, self._backprop)):
                relevant.add(value)
        return relevant

    def _start(self, root: Value) -> Contribution:
        lowering, seed = self._lowering, self._backprop.seed
        places = places_of(lowering.extents(root))
        prec = lowering.precisions[root]
        if seed is None:
            expr = const(1, prec)
        else:
            leaves: Leaves = []
            expr = lowering.read_as(seed, align_all(lowering.extents(seed), places), prec, leaves, lambda p: 0)
        return Contribution(places.loops, places.index, False, expr)

    def _finish(self, key: Value, value: Value) -> Gradient | None:
        """Write what a value received; None if that is nothing."""
        if key in self._done:
            return self._done[key]
        received = self._pending.pop(key, None)
        if received is None:
            return None
        lowering = self._lowering
        name = key.name or (lowering.buffers[key].name if key in lowering.buffers else "value")
        buffer = Buffer(f"{name}.grad", lowering.extents(key).sizes, lowering.precisions[key])
        self._done[key] = gradient = sum_contributions(lowering.writer, received, buffer, value.origin.span)
        return gradient

    def _spread(self, value: Value, gradient: Gradient) -> None:
        """Give the operands of a value what they receive through it."""
        if isinstance(value.op, Custom):
            self._spread_custom(value, value.op, gradient)
            return
        lowering = self._lowering
        nest, buffer = lowering.nests[value], lowering.buffers[value]
        found = contributions_of(lowering.writer, nest, buffer, gradient, self._relevant, value.origin.span)
        for operand, contribution in found:
            self._receive(operand, contribution)

    def _receive(self, operand: Value, contribution: Contribution) -> None:
        self._pending.setdefault(key_of(operand, self._backprop), []).append(contribution)

    def _spread_custom(self, value: Value, op: Custom, gradient: Gradient) -> None:
        lowering = self._lowering
        contributions = [(operand, e) for operand, e in op.contributions if operand in self._relevant]
        order = topological([e for _, e in contributions], operands)
        dependent = _from_seeds(order)
        seeded: list[Value] = []
        for e in order:
            if e in dependent:
                if isinstance(e.op, Seed):
                    lowering.buffers[e] = self._as_buffer(value, gradient, lowering.precisions[e])
                else:
                    lowering.lower(e)
                seeded.append(e)
            elif e not in lowering.buffers:
                lowering.lower(e)
        for operand, e in contributions:
            places = places_of(lowering.extents(operand))
            leaves: Leaves = []
            index = align_all(lowering.extents(e), places)
            expr = lowering.read_as(e, index, lowering.precisions[operand], leaves, lambda p: 0)
            self._receive(operand, Contribution(places.loops, places.index, False, expr))
        # Another pass computes them from another gradient.
        for e in seeded:
            lowering.buffers.pop(e, None)
            lowering.nests.pop(e, None)

    def _as_buffer(self, value: Value, gradient: Gradient, prec: str) -> Buffer:
        if isinstance(gradient, Buffer) and gradient.prec == prec:
            return gradient
        lowering = self._lowering
        target, loops = whole(lowering.temp(value, f"{value.name or 'result'}.grad", prec))
        expr = gradient if isinstance(gradient, Const) else Access(gradient, target.index)
        lowering.writer.assign(target, "set", loops, expr, value.origin.span)
        return target.buffer


def _from_seeds(order: Sequence[Value]) -> set[Value]:
    """Those of the values, operands first, that are computed from a seed."""
    found: set[Value] = set()
    for value in order:
        if isinstance(value.op, Seed) or any(v in found for v in operands(value)):
            found.add(value)
    return found
