"""The printed steps of a schedule, read back and applied again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from ocannl_lang.loops.ir import Access, Buffer, Var, accesses
from ocannl_lang.loops.text import Names, access_text
from ocannl_lang.schedule.ir import Kernel
from ocannl_lang.schedule.legality import IllegalTransform
from ocannl_lang.schedule.steps import Block, Lanes, Mark, Order, Packed, Sink, Split, Stage, Transform
from ocannl_lang.schedule.text import kernel_text
from ocannl_lang.schedule.transforms import apply
from ocannl_lang.schedule.trees import computes, loop_vars

_KINDS: dict[str, Literal["parallel", "serial", "unrolled", "vector"]] = {
    "parallel": "parallel",
    "serial": "serial",
    "unrolled": "unrolled",
    "vector": "vector",
}
_FORMS = {
    "split": "split LOOP TURNS packing OPERAND[…] as COPY[…]",
    "order": "order LOOP LOOP …",
    "block": "block LOOP TURNS in LOOP",
    "stage": "stage BUFFER for LOOP along LOOP by TURNS",
    "sink": "sink LOOP past LOOP LOOP …",
    "lanes": "lanes LOOP",
    **{kind: f"{kind} LOOP" for kind in _KINDS},
}
_PACKING = re.compile(r"\s+packing\s+")
_PACKED = re.compile(r"(?P<operand>.+?\])\s+as\s+(?P<copy>[^\s\[]+)\s*\[(?P<axes>[^\]]*)\]")


class ReplayError(Exception):
    """Steps that cannot be read, or that cannot be applied; the message begins with the number of the line."""


def replay(before: Kernel, text: str, names: Names | None = None) -> Kernel:
    """The kernel after the steps of `text`. Raises `ReplayError`.

    `names`: of the text that the steps are from, if it shows more than this kernel.
    """
    kernel = before
    for n, step in _parsed(text, before, names):
        try:
            kernel = apply(kernel, [step])
        except IllegalTransform as e:
            raise ReplayError(f"line {n}: {e}") from e
    return kernel


def parse_steps(text: str, before: Kernel, names: Names | None = None) -> list[Transform]:
    """The steps of `text`, one a line, for the kernel `before` them. Raises `ReplayError`.

    Buffers and operands are those that the text of the kernel shows under these names; empty lines are skipped.
    """
    return [step for _, step in _parsed(text, before, names)]


def _parsed(text: str, before: Kernel, names: Names | None) -> Iterator[tuple[int, Transform]]:
    reader = _Reader(before, names or Names())
    for n, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                step = reader.step(line.strip())
            except _Unreadable as e:
                raise ReplayError(f"line {n}: {e}") from None
            yield n, step


class _Unreadable(Exception):
    """Why a line is no step."""


class _Reader:
    """Reads steps for one kernel, with what its text shows by name."""

    def __init__(self, before: Kernel, names: Names) -> None:
        kernel_text(before, names)
        self._names = names
        found = [a for c in computes(before.body) for a in (c.target, *accesses(c.value))]
        self._buffers: dict[str, Buffer] = {names.buffer(a.buffer): a.buffer for a in found}
        self._operands = {_spaceless(access_text(a, names, {})): a for a in found}
        self._loops: dict[str, Var] = {v.name: v for v in loop_vars(before.body)}

    def step(self, line: str) -> Transform:
        """One line."""
        head, *packings = _PACKING.split(line)
        word, *rest = head.split()
        form = _FORMS.get(word)
        if form is None:
            raise _Unreadable(f"`{word}` is no step; steps are {', '.join(_FORMS)}")
        if packings and word != "split":
            raise _Unreadable("only a split packs operands")
        match word, rest:
            case "split", [loop, count]:
                factor = _number(count, form)
                return Split(loop, factor, tuple(self._packed(p, loop, factor) for p in packings))
            case "order", [_, *_] if len(set(rest)) == len(rest):
                return Order(tuple(rest))
            case "block", [loop, count, "in", within]:
                return Block(loop, _number(count, form), within)
            case "stage", [name, "for", loop, "along", vector, "by", count]:
                if name not in self._buffers:
                    raise _Unreadable(f"there is no `{name}` in the nest")
                return Stage(self._buffers[name], loop, vector, _number(count, form))
            case "sink", [loop]:
                return Sink(loop)
            case "sink", [loop, "past", first, *more]:
                return Sink(loop, (first, *more))
            case "lanes", [loop]:
                return Lanes(loop)
            case _, [loop] if word in _KINDS:
                return Mark(loop, _KINDS[word])
            case _:
                raise _Unreadable(f"`{line}` is not of the form `{form}`")

    def _packed(self, text: str, loop: str, factor: int) -> Packed:
        found = _PACKED.fullmatch(text)
        if found is None:
            raise _Unreadable(f"`packing {text}` is not of the form `packing OPERAND[…] as COPY[…]`")
        operand = self._operands.get(_spaceless(found["operand"]))
        if operand is None:
            raise _Unreadable(f"nothing in the nest reads `{found['operand']}`")
        axes = [x.strip() for x in found["axes"].split(",")]
        tile = f"{loop}.o"
        if axes.count(tile) != 1 or axes[-1] != f"{loop}.i":
            raise _Unreadable(f"a copy for a split of {loop} has an axis {tile}, and {loop}.i as its last")
        at = axes.index(tile)
        outer, sums = (tuple(self._loop(x) for x in part) for part in (axes[:at], axes[at + 1 : -1]))
        return Packed(operand, self._copy(found["copy"], operand, outer, sums, self._loop(loop), factor), outer, sums)

    def _loop(self, name: str) -> Var:
        if name not in self._loops:
            raise _Unreadable(f"there is no loop `{name}` in the nest")
        return self._loops[name]

    def _copy(
        self, name: str, operand: Access, outer: tuple[Var, ...], sums: tuple[Var, ...], loop: Var, factor: int
    ) -> Buffer:
        """The copy of that name: one that the text shows, else a new one."""
        shape = (*(v.size for v in outer), -(-loop.size // factor), *(v.size for v in sums), factor)
        known = self._buffers.get(name) or self._names.find(name)
        if known is None:
            known = Buffer(name.split("'")[0], shape, operand.buffer.prec)
            # Takes the name, if it is the next one of its kind.
            self._names.buffer(known)
        if known.shape != shape or known.prec != operand.buffer.prec:
            raise _Unreadable(f"`{name}` is {self._names.declared(known)}, not {operand.buffer.prec}{list(shape)}")
        self._buffers[name] = known
        return known


def _spaceless(text: str) -> str:
    return "".join(text.split())


def _number(text: str, form: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise _Unreadable(f"`{text}` is no number of turns, as in `{form}`")
    return int(text)
