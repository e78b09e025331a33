"""What names mean: bindings, and the result of resolution as an editor and the later stages ask it.

A `Binding` is one meaning of one name. `Names` maps every use (a node of the syntax tree) to its binding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ocannl_lang.names.builtins import BUILTINS, Builtin
from ocannl_lang.names.interface import Export
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast

BindingKind = Literal[
    "module",  # `import nn`
    "import",  # `from nn import dense`: `export` says what it is there
    "member",  # `nn.dense`
    "op", "cd", "fn", "routine", "extern", "data", "basis",  # definitions
    "let", "var",  # at the top of a module or in a body
    "config", "param", "slot",  # parameters: in brackets, in parentheses, in braces
    "dim", "row", "state", "parameter",  # `dim d`, or introduced by a signature; `row r`; `state m`; `{w}`
    "loop",  # a name of a `for` or of a comprehension
    "label",  # an axis of one notation
    "result",  # the `result` of an own derivative
    "builtin",
]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """One meaning of a name.

    `span` is where the name is introduced (None for built-in names and members of other modules), `node` what
    introduces it, `extent` where it can be seen after `span` (None: in the whole module), `owner` the definition in
    whose body it is.
    """

    name: str
    kind: BindingKind
    span: Span | None
    node: object = None
    extent: Span | None = None
    owner: ast.Definition | None = None
    builtin: Builtin | None = None
    export: Export | None = None
    module: tuple[str, ...] = ()

    @property
    def definition(self) -> ast.Definition | None:
        """The definition that this name is bound to, here or in the module it comes from."""
        if self.export is not None:
            return self.export.definition
        if isinstance(self.node, (ast.OpDef, ast.CdDef, ast.FnDef, ast.RoutineDef, ast.ExternDef, ast.DataDef)):
            return self.node
        return self.node if isinstance(self.node, ast.Let) and self.owner is None else None


@dataclass(slots=True)
class Names:
    """The resolved names of one module.

    `uses` maps nodes (`Name`, `Ident`, `AxisLabel`, `AxisRowVar`, `TypeAxisName`, `TypeAxisRowVar`) to what they mean;
    the `introductions` are among them. `bindings` are in the order of the text. `writes` are the uses that only rebind.
    `same` leads from a binding to an earlier one that is the same variable (`let w = {w}`, a name bound in both
    branches of an `if`).
    """

    module: ast.Module
    top: dict[str, Binding] = field(default_factory=dict[str, Binding])
    bases: dict[str, Binding] = field(default_factory=dict[str, Binding])
    bindings: list[Binding] = field(default_factory=list[Binding])
    uses: dict[object, Binding] = field(default_factory=dict[object, Binding])
    use_spans: list[tuple[Span, Binding]] = field(default_factory=list[tuple[Span, Binding]])
    introductions: set[object] = field(default_factory=set[object])
    writes: set[object] = field(default_factory=set[object])
    same: dict[Binding, Binding] = field(default_factory=dict[Binding, Binding])
    _builtins: dict[str, Binding] = field(default_factory=dict[str, Binding], repr=False)

    def definition(self, node: object) -> Binding | None:
        """What the name at `node` means, None if it is unknown or no name."""
        found = self.uses.get(node)
        return None if found is None else self.canonical(found)

    def binding_at(self, offset: int) -> Binding | None:
        """What the name at `offset` in the text means: the shortest use that covers the offset."""
        covering = [(s.end - s.start, i) for i, (s, _) in enumerate(self.use_spans) if s.start <= offset <= s.end]
        return self.canonical(self.use_spans[min(covering)[1]][1]) if covering else None

    def references(self, binding: Binding) -> list[Span]:
        """All places of a binding's name in this module, the introduction included, in the order of the text."""
        wanted = self.canonical(binding)
        spans = {(s.start, s.end): s for s, b in self.use_spans if self.canonical(b) is wanted}
        return [spans[key] for key in sorted(spans)]

    def visible(self, offset: int) -> Mapping[str, Binding]:
        """The names that can be used at `offset`, by name; those of the module and the built-in ones included."""
        found: dict[str, Binding] = {name: self.builtin(name) for name in BUILTINS}
        found.update(self.top)
        for b in self.bindings:
            if b.span is None or b.extent is None or not b.extent.start <= offset <= b.extent.end:
                continue
            if b.span.end <= offset or b.kind in ("config", "param", "slot", "dim"):
                found[b.name] = self.canonical(b)
        return found

    def canonical(self, binding: Binding) -> Binding:
        """The binding that stands for all that are the same variable."""
        while binding in self.same:
            binding = self.same[binding]
        return binding

    def builtin(self, name: str) -> Binding:
        """The binding of a built-in name."""
        if name not in self._builtins:
            self._builtins[name] = Binding(name, "builtin", None, builtin=BUILTINS[name])
        return self._builtins[name]

    def introduce(self, binding: Binding, node: object) -> None:
        """Note a new binding, introduced at `node`."""
        self.bindings.append(binding)
        self.introductions.add(node)
        if binding.span is not None:
            self.use(node, binding.span, binding)

    def use(self, node: object, span: Span, binding: Binding) -> None:
        """Note that `node` means `binding`."""
        self.uses[node] = binding
        self.use_spans.append((span, binding))

    def join(self, bindings: Iterable[Binding]) -> Binding:
        """Make several bindings one variable."""
        first, *others = dict.fromkeys(self.canonical(b) for b in bindings)
        for other in others:
            self.same[other] = first
        return first
