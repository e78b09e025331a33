"""The names of one body (or signature) while it is resolved.

A body has one flat scope, as in Python: what a block binds is seen after it. The branches of an `if` do not see each
other.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ocannl_lang.diagnostics.model import Collector
from ocannl_lang.names import reports
from ocannl_lang.names.bindings import Binding, BindingKind, Names
from ocannl_lang.names.builtins import BUILTINS
from ocannl_lang.names.interface import Interface, ModuleInterfaces
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast

_ONCE: frozenset[BindingKind] = frozenset({"let", "var", "state", "dim", "row", "parameter"})
_SIZES: frozenset[BindingKind] = frozenset({"config", "let", "var", "dim", "loop"})


@dataclass(slots=True)
class ModuleScope:
    """What all bodies of a module share. `modules` are the imported modules by their path.

    `maybe` are names that text which did not parse may define, `mentioned` all names in such text; `doubtful` are the
    bindings that an error has something to do with, which no warning shall follow.
    """

    module: ast.Module
    imports: ModuleInterfaces
    collector: Collector
    names: Names
    modules: dict[tuple[str, ...], Interface | None] = field(default_factory=dict[tuple[str, ...], "Interface | None"])
    members: dict[tuple[tuple[str, ...], str], Binding] = field(
        default_factory=dict[tuple[tuple[str, ...], str], Binding]
    )
    maybe: set[str] = field(default_factory=set[str])
    mentioned: set[str] = field(default_factory=set[str])
    doubtful: set[Binding] = field(default_factory=set[Binding])
    named_args: list[tuple[ast.Ident, Binding, str]] = field(default_factory=list[tuple[ast.Ident, Binding, str]])


@dataclass(slots=True)
class _Pending:
    node: object
    name: str
    span: Span
    wanted: reports.Wanted
    loops: tuple[Span, ...]


@dataclass(slots=True)
class BodyScope:
    """The names of one definition.

    `env` holds what is bound at the current place, `blocks` what each open block has bound.
    """

    shared: ModuleScope
    owner: ast.Definition | None
    extent: Span
    env: dict[str, Binding] = field(default_factory=dict[str, Binding])
    blocks: list[dict[str, Binding]] = field(default_factory=lambda: [dict[str, Binding]()])
    parameters: dict[str, Binding] = field(default_factory=dict[str, Binding])
    all: dict[str, list[Binding]] = field(default_factory=dict[str, "list[Binding]"])
    loops: tuple[Span, ...] = ()
    pending: list[_Pending] = field(default_factory=list[_Pending])
    hidden: set[str] = field(default_factory=set[str])
    signature: bool = False

    @property
    def names(self) -> Names:
        return self.shared.names

    def bind(self, ident: ast.Ident, kind: BindingKind, node: object, extent: Span | None = None) -> Binding | None:
        """Bind a name from here on; E0202 where an open block has bound it for good. `_` binds nothing."""
        if ident.name == "_":
            return None
        binding = Binding(ident.name, kind, ident.span, node, extent or self.extent, self.owner)
        first = self._open(ident.name)
        if kind in _ONCE and first is not None:
            self.shared.collector.report(self._twice(ident, binding, first))
            self.shared.doubtful |= {binding, first}
        self.blocks[-1][ident.name] = binding
        self._add(binding, ident)
        return binding

    def bind_name(self, node: ast.Name, statement: ast.Rebind) -> None:
        """A name that `a, b = f(x)` introduces."""
        if node.name != "_":
            self._add(Binding(node.name, "let", node.span, statement, self.extent, self.owner), node)

    def bind_row(self, node: ast.TypeAxisRowVar, span: Span) -> None:
        """A row that a signature introduces."""
        self._add(Binding(node.name, "row", span, node, self.extent, self.owner), node)

    def bind_parameter(self, node: ast.ParamExpr) -> None:
        """`{w}`: seen in the rest of the body, whatever block it stands in."""
        name = node.name.name
        first = self.parameters.get(name) or self._open(name)
        binding = Binding(name, "parameter", node.name.span, node, self.extent, self.owner)
        if first is not None:
            self.shared.collector.report(reports.parameter_twice(node, first))
        self.parameters.setdefault(name, binding)
        self._add(binding, node.name)

    def _open(self, name: str) -> Binding | None:
        if name in self.parameters:
            return self.parameters[name]
        found = next((block[name] for block in reversed(self.blocks) if name in block), None)
        return found if found is not None and found.kind in _ONCE else None

    def _twice(self, ident: ast.Ident, binding: Binding, first: Binding) -> reports.Diagnostic:
        helps: tuple[str, ...] = ()
        if first.kind == "let" and binding.kind in ("let", "var"):
            helps = (f"give it another name, or bind the first by `var` and write `{ident.name} = …` here",)
        elif first.kind == "var" and binding.kind in ("let", "var"):
            helps = (f"to rebind a `var`, write `{ident.name} = …`",)
        return reports.defined_twice(ident.name, ident.span, first, helps=helps)

    def _add(self, binding: Binding, node: object) -> None:
        self.env[binding.name] = binding
        self.all.setdefault(binding.name, []).append(binding)
        self.names.introduce(binding, node)

    def lookup(self, name: str) -> Binding | None:
        found = self.env.get(name) or self.names.top.get(name)
        if found is None and name in BUILTINS:
            return self.names.builtin(name)
        return found

    def use(self, node: object, name: str, span: Span, wanted: reports.Wanted) -> Binding | None:
        """Resolve a use; what is unknown is reported when the body ends, once for each name."""
        found = self.lookup(name)
        if found is None:
            self.unknown(node, name, span, wanted)
            return None
        self.names.use(node, span, found)
        return found

    def unknown(self, node: object, name: str, span: Span, wanted: reports.Wanted) -> None:
        self.pending.append(_Pending(node, name, span, wanted, self.loops))

    def use_size(self, node: ast.TypeAxisName | ast.NamedType | ast.Name, introduce: bool) -> None:
        """A name where a type wants a size: an int or a dim; in a signature an unknown one is a new dim."""
        found = self.env.get(node.name) or self.names.top.get(node.name)
        if found is not None and self._is_size(found):
            self.names.use(node, size_span(node), found)
        elif introduce:
            span = size_span(node)
            binding = Binding(node.name, "dim", span, node, self.extent, self.owner)
            shadowed = self.env.get(node.name)
            self._add(binding, node)
            if shadowed is not None:
                self.env[node.name] = shadowed
        elif found is not None:
            self.names.use(node, size_span(node), found)
        else:
            self.unknown(node, node.name, size_span(node), "size")

    def _is_size(self, binding: Binding) -> bool:
        if binding.kind == "import":
            return binding.export is None or binding.export.kind in ("let", "import", "intrinsic")
        if binding.kind == "param":
            return not isinstance(self.owner, (ast.OpDef, ast.CdDef, ast.RoutineDef))
        if binding.kind == "let" and isinstance(binding.node, ast.Let):
            return self._may_be_size(binding.node.value, 0)
        return binding.kind in _SIZES

    def _may_be_size(self, value: ast.Expr, depth: int) -> bool:
        """Whether the value of a top-level `let` can be a size: not an instance, a string, a float."""
        match value:
            case ast.Paren(inner=inner):
                return self._may_be_size(inner, depth)
            case ast.StrLit() | ast.FloatLit() | ast.BoolLit() | ast.NoneLit() | ast.WithSlots() | ast.Pipe():
                return False
            case ast.Name(name=name) | ast.Bracket(base=ast.Name(name=name)) | ast.Call(function=ast.Name(name=name)):
                found = self.names.top.get(name)
                if found is None:
                    return True
                if found.kind == "import":
                    return found.export is None or found.export.kind not in ("op", "cd", "routine")
                if found.kind == "let" and isinstance(found.node, ast.Let) and depth < 20:
                    return self._may_be_size(found.node.value, depth + 1)
                return found.kind not in ("op", "cd", "routine")
            case _:
                return True

    @contextmanager
    def block(self) -> Generator[None]:
        """A block of statements: its names stay visible after it, and may be bound again there."""
        self.blocks.append({})
        yield
        self.blocks.pop()

    @contextmanager
    def loop(self, span: Span) -> Generator[None]:
        outer = self.loops
        self.loops = (*outer, span)
        with self.block():
            yield
        self.loops = outer

    @contextmanager
    def inner(self) -> Generator[None]:
        """A scope of its own, such as that of a comprehension: only parameters made in it are seen after it."""
        outer = dict(self.env)
        with self.block():
            yield
        self.env = {**outer, **self.parameters_since(outer)}

    def parameters_since(self, outer: dict[str, Binding]) -> dict[str, Binding]:
        return {name: b for name, b in self.parameters.items() if name not in outer or self.env.get(name) is b}

    def merge(self, before: dict[str, Binding], ends: list[dict[str, Binding]]) -> None:
        """After an `if`: what its branches bound is one variable where several bound it."""
        merged = dict(before)
        for env in ends:
            for name, binding in env.items():
                old = merged.get(name)
                if before.get(name) is binding:
                    continue
                if old is not None and old is not before.get(name) and old.kind == binding.kind:
                    merged[name] = self.names.join((old, binding))
                else:
                    merged[name] = binding
        self.env = merged

    def finish(self) -> None:
        """Report what stayed unknown."""
        reported: set[str] = set()
        for use in self.pending:
            bound = self.all.get(use.name, [])
            again = next((b for b in bound if b.span is not None and _share_loop(b.span, use.loops)), None)
            if again is not None:
                self.names.use(use.node, use.span, again)
                continue
            if bound:
                self.names.use(use.node, use.span, bound[0])
            if use.name in reported or use.name in self.hidden or use.name in self.shared.maybe:
                continue
            reported.add(use.name)
            visible = [b for b in bound if b.kind in _ONCE or b.kind == "loop"]
            if visible and use.wanted != "slot":
                self.shared.collector.report(reports.not_yet(use.name, use.span, visible[0]))
            else:
                self._report_unknown(use)

    def _report_unknown(self, use: _Pending) -> None:
        candidates = self.candidates(use)
        module, imports = self.shared.module, self.shared.imports
        diagnostic = reports.unknown(use.name, use.span, use.wanted, candidates, module, imports)
        self.shared.collector.report(diagnostic)
        meant = diagnostic.fix.edits[-1].replacement if diagnostic.fix is not None else ""
        self.shared.doubtful.update(self.all.get(meant, ()))
        if meant in self.names.top:
            self.shared.doubtful.add(self.names.top[meant])

    def candidates(self, use: _Pending) -> list[str]:
        """Names that may be meant, the nearest scope first."""
        local = [name for name, bs in self.all.items() if bs[0].span is not None and bs[0].span.start < use.span.start]
        top = list(self.names.top)
        match use.wanted:
            case "size":
                own = [n for n in local if any(self._is_size(b) for b in self.all[n])]
                return own + [n for n in top if self._is_size(self.names.top[n])]
            case "slot":
                return [n for n in local if self.all[n][0].kind == "slot"]
            case "call":
                callable_top = [n for n in top if self.names.top[n].kind not in ("data", "module")]
                return local + callable_top + [n for n, b in BUILTINS.items() if b.callable]
            case "target":
                return [n for n in local if self.all[n][0].kind == "var"]
            case "member":
                return local + top
            case "value" | "type" | "basis":
                return local + top + list(BUILTINS)


def size_span(node: ast.TypeAxisName | ast.NamedType | ast.Name) -> Span:
    """The place of the name alone: `c` in `c:rgb`."""
    return Span(node.span.source, node.span.start, node.span.start + len(node.name))


def _share_loop(place: Span, loops: tuple[Span, ...]) -> bool:
    return any(loop.start <= place.start and place.end <= loop.end for loop in loops)


_WORD = re.compile(r"[^\W\d]\w*")
_DEFINES = re.compile(
    r"\b(?:op|cd|fn|routine|let|var|as|data|import|basis|dim|row|state)\s+([^\W\d]\w*(?:\s*,\s*[^\W\d]\w*)*)"
)


def words(text: str) -> set[str]:
    """All names in a text."""
    return set(_WORD.findall(text))


def defined_in(text: str) -> set[str]:
    """The names that a text seems to define."""
    return {name for names in _DEFINES.findall(text) for name in _WORD.findall(names)}
