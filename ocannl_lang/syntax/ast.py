"""The syntax tree: frozen dataclasses, every node with the `Span` of its text.

Nodes are compared and hashed by identity: two equal texts in two places are two places. The tree keeps what the
formatter and the editor need (comments, parentheses, literal spelling by span) and means nothing yet: names are
resolved and types found by later stages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, Union

from ocannl_lang.source import Source, Span

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        return lambda function: function


T = TypeVar("T")


@dataclass_transform(eq_default=False, frozen_default=True)
def node(cls: type[T]) -> type[T]:
    """Makes a frozen dataclass with slots that is compared by identity."""
    return dataclass(frozen=True, slots=True, eq=False)(cls)


# ---------------------------------------------------------------- names and comments


@node
class Ident:
    """A name where it is introduced or used as a plain word (not as an expression)."""

    span: Span
    name: str


@node
class Comment:
    """`# …` to the end of the line; `doc` if it starts with `##`."""

    span: Span
    text: str
    doc: bool


# ---------------------------------------------------------------- expressions


@node
class Name:
    span: Span
    name: str


@node
class IntLit:
    span: Span
    value: int


@node
class FloatLit:
    span: Span
    value: float


@node
class BoolLit:
    span: Span
    value: bool


@node
class NoneLit:
    span: Span


@node
class Interpolation:
    """`{expr:format}` inside a string; `format` is "" without one."""

    span: Span
    value: Expr
    format: str


@node
class StrLit:
    """A string: plain texts (escapes resolved) and interpolations in order."""

    span: Span
    parts: tuple[str | Interpolation, ...]


@node
class Unary:
    """`op` is `-` or `not`."""

    span: Span
    op: str
    operand: Expr


@node
class Binary:
    """`op` is one of `or and == != < <= > >= in "not in" .. + - * *. / // % **`; `op_span` is the operator's own place.

    `a..b` (`op == ".."`) is a range, end excluded.
    """

    span: Span
    op: str
    op_span: Span
    left: Expr
    right: Expr


@node
class IsNone:
    """`e is none`, or `e is not none` where `negated`."""

    span: Span
    operand: Expr
    negated: bool


@node
class IfExpr:
    span: Span
    condition: Expr
    then: Expr
    otherwise: Expr


@node
class Pipe:
    """`value |> function`."""

    span: Span
    value: Expr
    function: Expr


@node
class EinsumInfix:
    """`left +*{…} right`; `op` is one of `+* @^+ @-+ +++`."""

    span: Span
    op: str
    op_span: Span
    notation: Notation
    left: Expr
    right: Expr


@node
class Arg:
    """One argument of a call or configuration, `name` if it is given by name."""

    span: Span
    name: Ident | None
    value: Expr


@node
class Call:
    span: Span
    function: Expr
    args: tuple[Arg, ...]


@node
class Bracket:
    """`base[args]`: a configuration of an op, or an index; types decide which."""

    span: Span
    base: Expr
    args: tuple[Arg, ...]


@node
class Slice:
    """`base[low:high]`, either end optional."""

    span: Span
    base: Expr
    low: Expr | None
    high: Expr | None


@node
class WithSlots:
    """`base{notation}`: a reducer or op with axes notation, or a tensor in index notation."""

    span: Span
    base: Expr
    notation: Notation


@node
class Attr:
    span: Span
    base: Expr
    name: Ident


@node
class ListExpr:
    span: Span
    items: tuple[Expr, ...]


@node
class TupleExpr:
    span: Span
    items: tuple[Expr, ...]


@node
class Paren:
    """`(e)`: kept for the formatter."""

    span: Span
    inner: Expr


@node
class Comprehension:
    """`value for pattern in iterable if condition`, inside a list or as the only argument of a call."""

    span: Span
    value: Expr
    pattern: tuple[Ident, ...]
    iterable: Expr
    condition: Expr | None


@node
class ParamExpr:
    """`{name: type = init}`: a learnable parameter where it stands."""

    span: Span
    name: Ident
    type: TypeExpr | None
    init: Expr | None


@node
class ErrorExpr:
    """What could not be parsed, already reported."""

    span: Span


Expr = Union[
    Name, IntLit, FloatLit, BoolLit, NoneLit, StrLit, Unary, Binary, IsNone, IfExpr, Pipe, EinsumInfix, Call, Bracket, Slice,
    WithSlots, Attr, ListExpr, TupleExpr, Paren, Comprehension, ParamExpr, ErrorExpr,
]  # fmt: skip


# ---------------------------------------------------------------- axes notation


@node
class AxisLabel:
    """`name`: a label, a dim, or (alone in a slot) a slot parameter of the enclosing op."""

    span: Span
    name: str


@node
class AxisFixed:
    """`2` or `(expr)`: a fixed position."""

    span: Span
    value: Expr


@node
class AxisWild:
    """`_`: a label used nowhere else."""

    span: Span


@node
class AffineTerm:
    """`factor*label`; `factor` is None for 1."""

    span: Span
    factor: Expr | None
    label: Ident


@node
class AxisAffine:
    """`s*o + d*k`, or `s*o =+ d*k` where `padded`."""

    span: Span
    out: AffineTerm
    kernel: AffineTerm
    padded: bool


@node
class AxisStrided:
    """`s*o`, `s*o + offset`: positions s·o + offset."""

    span: Span
    term: AffineTerm
    offset: Expr | None


@node
class AxisConcat:
    """`a^b^3`: parts are labels (`Ident`) or sizes (`IntLit` or the expression in parentheses)."""

    span: Span
    parts: tuple[Ident | Expr, ...]


@node
class AxisEllipsis:
    """`...`"""

    span: Span


@node
class AxisRowVar:
    """`..name..`"""

    span: Span
    name: str


@node
class AxisCollapse:
    """`collapse(name)`."""

    span: Span
    name: Ident


SlotAxis = Union[
    AxisLabel, AxisFixed, AxisWild, AxisAffine, AxisStrided, AxisConcat, AxisEllipsis, AxisRowVar, AxisCollapse
]


@node
class Slot:
    """`batch | input -> output`; a row that is left out is None, one that is written empty is ()."""

    span: Span
    batch: tuple[SlotAxis, ...] | None
    input: tuple[SlotAxis, ...] | None
    output: tuple[SlotAxis, ...]


@node
class Notation:
    """`{slot; slot => result}`; `result` is None without `=>`."""

    span: Span
    slots: tuple[Slot, ...]
    result: Slot | None


# ---------------------------------------------------------------- types


@node
class TypeAxisName:
    span: Span
    name: str
    basis: Ident | None


@node
class TypeAxisSize:
    """An int literal or `(expr)`."""

    span: Span
    value: Expr
    basis: Ident | None


@node
class TypeAxisAny:
    """`_`"""

    span: Span


@node
class TypeAxisEllipsis:
    span: Span


@node
class TypeAxisRowVar:
    span: Span
    name: str


TypeAxis = Union[TypeAxisName, TypeAxisSize, TypeAxisAny, TypeAxisEllipsis, TypeAxisRowVar]


@node
class TensorType:
    """`f32[n | 784 -> 128]`, `[16]`, `f32` (then `scalar`, all rows empty). Rows as in `Slot`."""

    span: Span
    precision: str | None
    batch: tuple[TypeAxis, ...] | None
    input: tuple[TypeAxis, ...] | None
    output: tuple[TypeAxis, ...]
    scalar: bool


@node
class NamedType:
    """`int`, `float`, `bool`, `str`, `op`, `list`, …"""

    span: Span
    name: str


@node
class GenericType:
    """`list[int]`, `index[n]`, `dict[str, int]`; an argument that is not a type is an int literal or a name."""

    span: Span
    name: str
    args: tuple[TypeExpr | Expr, ...]


@node
class TupleType:
    span: Span
    items: tuple[TypeExpr, ...]


TypeExpr = Union[TensorType, NamedType, GenericType, TupleType]


# ---------------------------------------------------------------- statements


@node
class Let:
    """`let a, b: type = value`. At the top of a module also a definition, then `doc` may be set."""

    span: Span
    names: tuple[Ident, ...]
    type: TypeExpr | None
    value: Expr
    doc: str | None = None


@node
class Var:
    span: Span
    names: tuple[Ident, ...]
    type: TypeExpr | None
    value: Expr


@node
class DimDecl:
    """`dim h, d = 64`: names with optional values."""

    span: Span
    items: tuple[tuple[Ident, Expr | None], ...]


@node
class RowDecl:
    span: Span
    names: tuple[Ident, ...]


@node
class StateDecl:
    span: Span
    name: Ident
    type: TypeExpr | None
    init: Expr | None


@node
class Return:
    span: Span
    value: Expr | None


@node
class Expect:
    span: Span
    condition: Expr
    message: Expr | None


@node
class Break:
    span: Span


@node
class Continue:
    span: Span


@node
class Rebind:
    """`a = e`, `a, b = e`, `d[k] = e`: plain `=`."""

    span: Span
    targets: tuple[Expr, ...]
    value: Expr


@node
class Assign:
    """`target op value` with `op` as written: `:=`, `+=`, `:+=`, `max=`, `:max=`, … (also `x += e` on a `var`)."""

    span: Span
    op: str
    op_span: Span
    target: Expr
    value: Expr


@node
class ExprStmt:
    span: Span
    value: Expr


@node
class If:
    """`branches` are the conditions with their blocks, in order."""

    span: Span
    branches: tuple[tuple[Expr, tuple[Stmt, ...]], ...]
    otherwise: tuple[Stmt, ...] | None


@node
class For:
    span: Span
    pattern: tuple[Ident, ...]
    iterable: Expr
    body: tuple[Stmt, ...]


@node
class While:
    span: Span
    condition: Expr
    body: tuple[Stmt, ...]


@node
class Section:
    """`forward:` or `backward:` of an op with an own derivative."""

    span: Span
    kind: str
    body: tuple[Stmt, ...]


@node
class ErrorStmt:
    """A statement or definition that could not be parsed, already reported; `names` are those that it would have
    bound.
    """

    span: Span
    names: tuple[str, ...] = ()


Stmt = Union[
    Let, Var, DimDecl, RowDecl, StateDecl, Return, Expect, Break, Continue, Rebind, Assign, ExprStmt, If, For, While, Section,
    ErrorStmt,
]  # fmt: skip


# ---------------------------------------------------------------- definitions


@node
class ParamDecl:
    """One parameter of a definition: `name: type = default`; `doc` is a `##` comment that stands before it."""

    span: Span
    name: Ident
    type: TypeExpr | None
    default: Expr | None
    doc: str | None = None


@node
class ImportItem:
    """`name as alias`."""

    span: Span
    name: Ident
    alias: Ident | None


@node
class Import:
    """`import a.b as c`."""

    span: Span
    path: tuple[Ident, ...]
    alias: Ident | None


@node
class FromImport:
    """`from a.b import c as d, e`."""

    span: Span
    path: tuple[Ident, ...]
    items: tuple[ImportItem, ...]


@node
class BasisDef:
    span: Span
    names: tuple[Ident, ...]


@node
class DataDef:
    span: Span
    name: Ident
    type: TypeExpr
    value: Expr
    doc: str | None


@node
class ExternDef:
    """`extern py "package.module:function" as name(params) -> result`."""

    span: Span
    target: str
    target_span: Span
    name: Ident
    params: tuple[ParamDecl, ...]
    result: TypeExpr | None
    doc: str | None


@node
class FnDef:
    span: Span
    name: Ident
    params: tuple[ParamDecl, ...]
    result: TypeExpr | None
    body: tuple[Stmt, ...]
    doc: str | None


@node
class OpDef:
    """`op name{slots}[config](params) -> result: body`. A short body `= e` is one `Return`."""

    span: Span
    name: Ident
    slots: tuple[Ident, ...]
    config: tuple[ParamDecl, ...]
    params: tuple[ParamDecl, ...]
    result: TypeExpr | None
    body: tuple[Stmt, ...]
    doc: str | None


@node
class CdDef:
    span: Span
    name: Ident
    slots: tuple[Ident, ...]
    config: tuple[ParamDecl, ...]
    params: tuple[ParamDecl, ...]
    body: tuple[Stmt, ...]
    doc: str | None


@node
class RoutineDef:
    span: Span
    name: Ident
    config: tuple[ParamDecl, ...]
    params: tuple[ParamDecl, ...]
    result: TypeExpr | None
    body: tuple[Stmt, ...]
    doc: str | None


@node
class MainDef:
    span: Span
    params: tuple[ParamDecl, ...]
    body: tuple[Stmt, ...]
    doc: str | None


@node
class TestDef:
    span: Span
    name: str
    body: tuple[Stmt, ...]
    doc: str | None


Definition = Union[
    Import, FromImport, BasisDef, DataDef, ExternDef, FnDef, OpDef, CdDef, RoutineDef, MainDef, TestDef, Let, ErrorStmt
]


@node
class Module:
    """One file. `items` in the order of the text."""

    span: Span
    source: Source
    items: tuple[Definition, ...]
    comments: tuple[Comment, ...]
    doc: str | None
