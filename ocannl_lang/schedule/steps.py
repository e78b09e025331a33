"""The steps of a schedule, as data and as text.

A loop is named by its variable; the parts that a step makes of a loop `i` are called `i.o` and `i.i`, a loop over stretches of it
`i.b`, and one that copies `i.c`: loops inside one another have different names. What is left over where a size does not divide
stands behind as another loop of the inner part's name, so that later steps treat both alike.

    Split("i", 6)               split i 6                     for i in 100  →  for i.o in 16: for i.i in 6;  for i.i in 4
    Block("k", 256, "j.o")      block k 256 in j.o            within each turn of j.o: the sums over the first 256 turns of k, stored;
                                                              then over the next, …; the same in what is left over beside j.o
    Stage(b, "i", "j.i", 8)     stage b for i along j.i by 8  what turns of i read of b is copied before the loop, with turns of j.i
                                                              side by side, 8 at a time
    Order(("j", "i"))           order j i                     i: j: …  →  j: i: …  for loops that stand directly inside one another
    Sink("i.i")                 sink i.i                      moves a loop inwards, over all statements of its body, down to the
                                                              innermost ones; registers that a turn has for itself become arrays
    Sink("i.i", ("j.o",))       sink i.i past j.o             moves it inwards past these loops only
    Mark("i.i", kind)           vector i.i                    says how a loop runs
    Lanes("k.i")                lanes k.i                     a sum over a vector loop is kept lane by lane and put together after it

A split may read operands from copies that an earlier kernel made, in the order of its tiles:

    split j 24 packing b[k, j] as b.packed[j.o, k, j.i]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from ocannl_lang.loops.ir import Access, Buffer, Var
from ocannl_lang.loops.text import Names, access_text
from ocannl_lang.schedule.ir import Kind


@dataclass(frozen=True, slots=True)
class Packed:
    """An operand of a nest that is read from `copy` instead: [`outer` loops, tile, loops of the sum `sums`, place in the tile]."""

    operand: Access
    copy: Buffer
    outer: tuple[Var, ...]
    sums: tuple[Var, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """Splits a loop into turns of `factor`; operands may be read from copies that lie in this order."""

    loop: str
    factor: int
    packed: tuple[Packed, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Takes a loop of a sum in stretches, one after the other for all that stands inside `within`. Sums wait in memory meanwhile."""

    loop: str
    size: int
    within: str


@dataclass(frozen=True, slots=True)
class Stage:
    """Copies what a loop reads of a buffer into memory of the thread before the loop. `lanes` turns of `vector` at a time where the
    original lies the other way."""

    buffer: Buffer
    loop: str
    vector: str
    lanes: int


@dataclass(frozen=True, slots=True)
class Sink:
    """Moves a loop inwards, past all loops, or only past those that are named."""

    loop: str
    past: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Order:
    """Puts loops that stand directly inside one another into this order."""

    loops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """Says how a loop runs."""

    loop: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Lanes:
    """Keeps sums over a vector loop lane by lane."""

    loop: str


Transform = Union[Split, Order, Block, Stage, Sink, Mark, Lanes]


def describe(step: Transform, names: Names | None = None) -> str:
    """A step as it is printed; with the `names` of the kernel's text, `replay` reads it back."""
    names = names or Names()
    match step:
        case Split(loop=loop, factor=factor, packed=packed):
            return f"split {loop} {factor}" + "".join(f" packing {_packed(p, loop, names)}" for p in packed)
        case Order(loops=loops):
            return f"order {' '.join(loops)}"
        case Block(loop=loop, size=size, within=within):
            return f"block {loop} {size} in {within}"
        case Stage(buffer=buffer, loop=loop, vector=vector, lanes=lanes):
            return f"stage {names.buffer(buffer)} for {loop} along {vector} by {lanes}"
        case Sink(loop=loop, past=past):
            return f"sink {loop}" + "".join(f" past {p}" for p in past[:1]) + "".join(f" {p}" for p in past[1:])
        case Mark(loop=loop, kind=kind):
            return f"{kind} {loop}"
        case Lanes(loop=loop):
            return f"lanes {loop}"


def _packed(p: Packed, loop: str, names: Names) -> str:
    axes = [*(v.name for v in p.outer), f"{loop}.o", *(v.name for v in p.sums), f"{loop}.i"]
    return f"{access_text(p.operand, names, {})} as {names.buffer(p.copy)}[{', '.join(axes)}]"
