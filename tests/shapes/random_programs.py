"""Random programs for the property tests, and ways to write the same program differently."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from hypothesis import strategies as st

from ocannl_lang.shapes.terms import DimVar, Problem, RowVar, Side, Size, Unknown
from tests.shapes.program import Program, Tensor

SIZES = ["2", "3", "N", "4"]


Pick = Callable[[Sequence[Any]], Any]


@st.composite
def programs(draw: Any) -> tuple[Program, list[Tensor]]:
    return generate(lambda options: draw(st.sampled_from(options)))


def generate(pick: Pick) -> tuple[Program, list[Tensor]]:
    """A program of inputs, parameters, constants and a few operations on them; many are consistent, some are not."""
    p = Program()
    tensors: list[Tensor] = []
    width = pick(["3", "4"])
    for i in range(pick(range(1, 4))):
        batch = pick(["", "N", "N", "2"])
        output = pick([width, width, "3", "", "2 3", f"2 {width}"])
        tensors.append(p.input(f"x{i}", batch, output))
    for i in range(pick(range(4))):
        output = pick([None, None, width, "?", "2 ?", "..."])
        tensors.append(p.param(f"b{i}", None, output))
    if pick([True, False]):
        tensors.append(p.const("c"))
    weights = 0
    for _ in range(pick(range(1, 8))):
        match pick(["pointwise"] * 3 + ["unary", "product", "product", "slots", "slots", "transpose", "loss"]):
            case "pointwise":
                a, b = pick(tensors), pick(tensors)
                tensors.append(p.pointwise("+", a, b, name=f"t{len(tensors)}"))
            case "unary":
                tensors.append(p.pointwise("relu", pick(tensors), name=f"t{len(tensors)}"))
            case "product":
                output = pick([None, width, "3"])
                weights += 1
                w = p.param(f"w{weights}", None, output)
                tensors.append(p.product(w, pick(tensors), name=f"t{len(tensors)}"))
            case "slots":
                slots, result = pick(NOTATIONS)
                args = [pick(tensors) for _ in slots]
                tensors.append(p.slots("sum", slots, result, *args, name=f"t{len(tensors)}"))
            case "transpose":
                tensors.append(p.transpose(pick(tensors), name=f"t{len(tensors)}"))
            case "loss":
                tensors.append(p.slots("sum", [("...", "...", "...")], ("", "", ""), pick(tensors)))
            case _:
                raise AssertionError
    return p, tensors


NOTATIONS: list[tuple[list[tuple[str, str, str]], tuple[str, str, str]]] = [
    ([("...", "", "i")], ("...", "", "0")),
    ([("...", "", "... i")], ("...", "", "... 0")),
    ([("...", "...", "..o..")], ("...", "...", "..o..")),
    ([("...", "", "..d..")], ("...", "", "")),
    ([("...", "", "i"), ("...", "", "j")], ("...", "", "i j")),
    ([("...", "", "i"), ("...", "", "i")], ("...", "", "i")),
    ([("...", "", "... i"), ("...", "", "... j")], ("...", "", "... i^j")),
    ([("...", "", "i ..r.."), ("...", "", "..r.. j")], ("...", "", "..r..")),
    ([("...", "", "o+k"), ("", "", "k")], ("...", "", "o")),
    ([("...", "", "2*o=+k"), ("", "", "k")], ("...", "", "o")),
    ([("...", "", "2*o")], ("...", "", "o k")),
    ([("...", "", "i")], ("...", "", "1 i")),
]


def shuffled(problem: Problem, seed: int) -> Problem:
    """The same constraints and leaves in another order."""
    rng = random.Random(seed)
    constraints, leaves = list(problem.constraints), list(problem.leaves)
    rng.shuffle(constraints)
    rng.shuffle(leaves)
    return Problem(constraints, leaves)


def renumbered(problem: Problem, seed: int) -> tuple[Problem, dict[int, Any]]:
    """The same problem with other ids for its variables; the map from the old ids to the new variables."""
    found: dict[int, Any] = {}
    _walk(problem.constraints, found)
    _walk(problem.leaves, found)
    ids = list(found)
    random.Random(seed).shuffle(ids)
    new = {old: replace(var, id=id + 10**9) for (old, var), id in zip(found.items(), ids)}
    return Problem([rebuild(c, new) for c in problem.constraints], [rebuild(leaf, new) for leaf in problem.leaves]), new


def _walk(value: Any, found: dict[int, Any]) -> None:
    if isinstance(value, (DimVar, RowVar)):
        found.setdefault(value.id, value)
    elif isinstance(value, (tuple, list)):
        for v in value:
            _walk(v, found)
    elif type(value).__module__.endswith("shapes.terms") and not isinstance(value, type):
        for f in fields(value):
            if f.name not in ("origin", "why"):
                _walk(getattr(value, f.name), found)


def rebuild(value: Any, new: dict[int, Any]) -> Any:
    if isinstance(value, (DimVar, RowVar)):
        return new[value.id]
    if isinstance(value, tuple):
        return tuple(rebuild(v, new) for v in value)
    if type(value).__module__.endswith("shapes.terms") and not isinstance(value, (Size, Unknown, Side)):
        changes = {
            f.name: rebuild(getattr(value, f.name), new) for f in fields(value) if f.name not in ("origin", "why", "id")
        }
        return replace(value, **changes)
    return value
