"""Kernels: trees of loops whose kinds say how they run.

A `Kernel` is one function of the compiled routine. Its body is a tree of `Loop`s and `Compute`s that runs from left to right.
Loops carry a kind:

    parallel   shares of it may run on different threads; only as the outermost statement of a kernel
    serial     one turn after the other
    unrolled   every turn written out
    vector     turns side by side in vector registers, in chunks of the machine's width; a chunk at the end may be partial

Buffers live in global memory (the arena or the caller's arrays) unless `Kernel.spaces` says otherwise: `register` buffers are
values of the function, whose positions must be constant once unrolled and vector loops are written out; `local` buffers are
memory private to one thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Union

from ocannl_lang.loops.ir import Access, Accum, Buffer, Expr, Var

if TYPE_CHECKING:
    from ocannl_lang.schedule.steps import Transform

Kind = Literal["parallel", "serial", "unrolled", "vector"]
Space = Literal["register", "local"]


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """`body` for every value of `var`, from 0 to its size."""

    var: Var
    kind: Kind
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Compute:
    """target (accum)= value at the current turn of the loops around it.

    In a vector loop whose variable the target does not depend on, the lanes are first combined by `accum`.
    """

    target: Access
    accum: Accum
    value: Expr


Stmt = Union[Loop, Compute]


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """One function: `body`, and the spaces of the buffers that are not in global memory.

    `views`: buffers that are others in another shape, at the same place. `note`: how it was scheduled, for people. `before`: the
    kernel to which `steps` were applied, None without any. A kernel with an `original` is that kernel with buffers renamed by
    `renaming`: it has the same code, and its steps are the original's.
    """

    body: tuple[Stmt, ...]
    spaces: dict[Buffer, Space] = field(default_factory=dict[Buffer, Space])
    views: dict[Buffer, Buffer] = field(default_factory=dict[Buffer, Buffer])
    note: str = ""
    original: Kernel | None = None
    renaming: dict[Buffer, Buffer] = field(default_factory=dict[Buffer, Buffer])
    before: Kernel | None = None
    steps: tuple[Transform, ...] = ()

    def base(self, b: Buffer) -> Buffer:
        """The buffer that a view is one of."""
        return self.views.get(b, b)
