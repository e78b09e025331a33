"""Products of a vector with a large matrix, in parts: rows of the matrix in a few stretches, for as many threads.

y[j] += x[k]·m[k, j]    →    p[s, j] += x[192·s + k]·m[192·s + k, j];  y[j] += p[s, j]

Each part reads whole rows, one after the other, where shares of the columns would read pieces of rows. How many parts there are
depends on sizes alone, so that any number of threads gives the same result.
"""

from __future__ import annotations

from ocannl_lang.loops.facts import covers, streamed_rows
from ocannl_lang.loops.ir import Access, Affine, Assign, Buffer, Program, Var
from ocannl_lang.loops.lower_expr import substitute

_PARTS = 4
_LEAST_ROWS = 512
# A longer row is read in pieces anyway.
_MOST_COLUMNS = 4096


def take_in_parts(program: Program) -> Program:
    """The program with such products in parts."""
    assigns: list[Assign] = []
    for a in program.assigns:
        k = _rows(a)
        assigns += [a] if k is None else _parts(a, k)
    return Program(program.name, program.inputs, program.outputs, assigns, program.stores)


def _rows(a: Assign) -> Var | None:
    """The loop over the rows of a large matrix that is read once, if it is worth parts; None for anything else."""
    found = streamed_rows(a)
    if found is None or not a.fresh or not covers(a):
        return None
    k, v = found
    return k if k.size >= _LEAST_ROWS and k.size % _PARTS == 0 and v.size <= _MOST_COLUMNS else None


def _parts(a: Assign, k: Var) -> list[Assign]:
    size = k.size // _PARTS
    part, inner, again = Var("part", _PARTS), Var(k.name, size), Var("part", _PARTS)
    sums = Buffer(f"{a.target.buffer.name}.parts", (_PARTS, *a.target.buffer.shape), a.target.buffer.prec)
    others = tuple(v for v in a.loops if v is not k)
    value = substitute(a.value, {k: Affine(((part, size), (inner, 1)))})
    own = {v: Var(v.name, v.size) for v in others}
    place = tuple(
        Affine(tuple(sorted(((own[v], c) for v, c in i.terms), key=lambda t: t[0].id)), i.offset)
        for i in a.target.index
        if isinstance(i, Affine)
    )
    return [
        Assign(Access(sums, (Affine.of(part), *a.target.index)), "add", True, (part, *others, inner), value, a.origin),
        Assign(
            Access(a.target.buffer, place),
            "add",
            True,
            (*own.values(), again),
            Access(sums, (Affine.of(again), *place)),
            a.origin,
        ),
    ]
