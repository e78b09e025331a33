"""Programs as text, for people and snapshots."""

from __future__ import annotations

from ocannl_lang.loops.ir import (
    Access,
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
from ocannl_lang.loops.ir import Random as RandomExpr

_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}
_ACCUM = {"set": "=", "add": "+=", "mul": "*=", "max": "max=", "min": "min=", "or": "or=", "and": "and="}


def dump(program: Program) -> str:
    """A readable form. Buffers and loops are numbered where two have one name."""
    names = Names()
    lines = [f"program {program.name}"]
    for b in program.inputs:
        lines.append(f"  input {names.declared(b)}")
    for b in program.buffers():
        if b.role not in ("input", "temp"):
            lines.append(f"  {b.role} {names.declared(b)}" + (f" = {b.key}" if b.key and b.key != b.name else ""))
    for a in program.assigns:
        lines.append("  " + assign_text(a, names))
    for b, final in program.stores:
        lines.append(f"  store {names.buffer(b)} = {names.buffer(final)}")
    if program.outputs:
        lines.append("  return " + ", ".join(names.buffer(b) for b in program.outputs))
    return "\n".join(lines) + "\n"


class Names:
    """Names for buffers and loops, distinct where objects are."""

    def __init__(self) -> None:
        self._buffers: dict[Buffer, str] = {}
        self._used: dict[str, int] = {}

    def buffer(self, b: Buffer) -> str:
        found = self._buffers.get(b)
        if found is None:
            base = b.name or "t"
            n = self._used.get(base, 0)
            self._used[base] = n + 1
            found = self._buffers[b] = base if n == 0 else f"{base}'{n}"
        return found

    def find(self, name: str) -> Buffer | None:
        """The buffer that has got a name."""
        return next((b for b, n in self._buffers.items() if n == name), None)

    def declared(self, b: Buffer) -> str:
        return f"{self.buffer(b)}: {b.prec}[{', '.join(map(str, b.shape))}]"


def assign_text(a: Assign, names: Names) -> str:
    """One assignment in a line."""
    loops: dict[Var, str] = {}
    for v in a.loops:
        base, n = v.name or "i", 0
        while (name := base if n == 0 else f"{base}{n}") in loops.values():
            n += 1
        loops[v] = name
    head = "".join(f"{loops[v]}<{v.size} " for v in a.loops)
    how = (":" if a.fresh and a.accum != "set" else "") + _ACCUM[a.accum]
    if a.fresh and a.accum == "set":
        how = ":="
    target = access_text(a.target, names, loops)
    shape = (
        f"  # {a.target.buffer.prec}[{', '.join(map(str, a.target.buffer.shape))}]"
        if a.fresh or a.accum == "set"
        else ""
    )
    return f"{head}{target} {how} {expr_text(a.value, names, loops)}{shape}"


def access_text(a: Access, names: Names, loops: dict[Var, str]) -> str:
    guard = "" if not a.guarded else "?" if not a.fill else f"?{a.fill}"
    return f"{names.buffer(a.buffer)}[{', '.join(index_text(i, names, loops) for i in a.index)}]{guard}"


def index_text(index: Index, names: Names, loops: dict[Var, str]) -> str:
    if isinstance(index, Dynamic):
        return f"({expr_text(index.value, names, loops)})"
    return affine_text(index, loops)


def affine_text(index: Affine, loops: dict[Var, str]) -> str:
    text = ""
    for v, c in index.terms:
        sign = " - " if c < 0 else " + "
        factor = "" if abs(c) == 1 else f"{abs(c)}*"
        text += (sign if text else sign.strip().replace("+", "")) + factor + loops.get(v, v.name)
    if index.offset or not text:
        if not text:
            return str(index.offset)
        text += f" - {-index.offset}" if index.offset < 0 else f" + {index.offset}"
    return text


def expr_text(e: Expr, names: Names, loops: dict[Var, str]) -> str:
    """An expression; operations that have a sign are written with it, in parentheses."""
    match e:
        case Const(value=value):
            return str(value)
        case Position(index=index):
            return f"<{affine_text(index, loops)}>"
        case Access():
            return access_text(e, names, loops)
        case Apply(fn="convert", args=(a,), prec=prec):
            return f"{prec}({expr_text(a, names, loops)})"
        case Apply(fn=fn, args=args):
            parts = [expr_text(a, names, loops) for a in args]
            if fn in _INFIX and len(parts) == 2:
                return f"({parts[0]} {_INFIX[fn]} {parts[1]})"
            return f"{fn}({', '.join(parts)})"
        case RandomExpr(dist=dist, stream=stream, counter=counter, position=position):
            count = "" if counter is None else f", counter = {expr_text(counter, names, loops)}"
            return f"{dist}({stream:#x}, {affine_text(position, loops)}{count})"
