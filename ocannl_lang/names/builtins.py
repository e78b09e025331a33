"""The names every module knows without an import: tables for resolution, hover, completion and the builder.

`BUILTINS` maps a name to its `Builtin`. The tables are written as signatures in Ocn's own notation, followed by one
paragraph of Markdown (further lines are indented), so that what an editor shows is what stands here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

BuiltinKind = Literal[
    "pointwise",  # a tensor function element by element; of static numbers only it gives a static number
    "tensor function",  # any other function of tensors
    "reducer",  # may take axes notation in braces
    "random",  # draws numbers; its shape is inferred
    "computation",  # belongs to cds and routines
    "conversion",  # precisions, `int`, `float`, `str`, …
    "static function",  # lists, ranges, …: while building and in host code
    "host function",  # host code alone
    "value",  # a static value
]


@dataclass(frozen=True, slots=True)
class BuiltinParam:
    """One parameter: `default` is its text, None if it must be given; `variadic` if any number may be given."""

    name: str
    default: str | None = None
    variadic: bool = False

    @property
    def required(self) -> bool:
        return self.default is None and not self.variadic


@dataclass(frozen=True, slots=True)
class Builtin:
    """A built-in name: `signature` as people read it, `config` goes in brackets, `params` go in parentheses.

    `slots`: takes axes notation in braces. `strict`: arguments beyond the signature are surely a mistake.
    """

    name: str
    kind: BuiltinKind
    signature: str
    config: tuple[BuiltinParam, ...]
    params: tuple[BuiltinParam, ...]
    doc: str
    slots: bool = False
    strict: bool = False

    @property
    def callable(self) -> bool:
        return self.kind != "value"


PRECISIONS: tuple[str, ...] = (
    "f64", "f32", "bf16", "f16", "f8e5m2", "f8e4m3", "i64", "i32", "u32", "u16", "u8", "u32x4",
)  # fmt: skip
"""The names of precisions, widest floats first."""

TYPE_NAMES: tuple[str, ...] = (
    "int", "float", "bool", "str", "list", "tuple", "dict", "fn", "op", "instance", "cd", "routine", "dim", "row",
    "index", "tensor", "array", "any", "none",
)  # fmt: skip
"""The words that may stand where a static type is written."""

STANDARD_MODULES: tuple[str, ...] = ("nn", "optim", "init", "loss", "data", "metrics", "plot")
"""The modules of the standard library, in the order in which suggestions look through them."""


POINTWISE = """
relu(x): `x` where it is positive, else 0. Its derivative at 0 is 0.
sigmoid(x): `1 / (1 + exp(-x))`, between 0 and 1.
tanh(x): The hyperbolic tangent, between -1 and 1.
exp(x): e to the power `x`.
log(x): The natural logarithm.
exp2(x): 2 to the power `x`.
log2(x): The logarithm to base 2.
sin(x): The sine of an angle in radians.
cos(x): The cosine of an angle in radians.
sqrt(x): The square root.
rsqrt(x): `1 / sqrt(x)`.
recip(x): `1 / x`.
abs(x): The absolute value.
sign(x): -1, 0 or 1.
floor(x): The largest whole number that is not above `x`. No gradient.
ceil(x): The smallest whole number that is not below `x`. No gradient.
round(x): The nearest whole number, halves to the even one. No gradient.
erf(x): The error function.
gelu[approximate = false](x): `x *. (1 + erf(x / sqrt(2))) / 2`; if `approximate`, by the formula with tanh.
silu(x): `x *. sigmoid(x)`.
softplus(x): `log(1 + exp(x))`, without overflow.
sat01(x): `x` clamped to 0 and 1, with a gradient strictly between them.
pow(x, exponent): `x ** exponent`.
clamp(x, low, high): `x`, but at least `low` and at most `high`; the gradient passes strictly between them.
where(condition, a, b): `a` where `condition` is not 0, else `b`. The gradient goes to the chosen one.
"""

TENSOR_FUNCTIONS = """
fma(a, b, c): `a * b + c`: the tensor product, contracted over the input axes of `a` and the output axes of `b`, plus
  `c`.
transpose(x): `x` with its input and output axes exchanged; batch axes stay.
stop_gradient(x): `x`, through which no gradient flows.
one_hot[size](ids): A new output axis of `size` positions that holds 1 at the position `ids` and 0 elsewhere; an id
  out of range gives zeros.
arange[size]: The numbers 0, 1, … below `size` along one output axis.
interleave(a, b): The elements of `a` and `b` by turns along the last output axis, which becomes twice as long.
even(x): The elements at even positions of the last output axis.
odd(x): The elements at odd positions of the last output axis.
tensor(value): The static value as a tensor: a list is stacked along a new output axis, a tuple along a new input
  axis, nested to any depth.
batched(*parts): The parts stacked along a new leading batch axis.
"""

REDUCERS = """
sum(x): The sum: `sum(x)` of everything, `sum{… | i, j => … | i}(x)` over the axes that the result leaves out. Of
  static numbers, `sum(list)`.
prod(x): The product over everything, or over the axes that the notation leaves out.
mean(x): The mean over everything, or over the axes that the notation leaves out; of ints it is f32.
max(x, *others): `max{…}(x)` and `max(x)` reduce, `max(a, b)` is pointwise. Positions that tie share the gradient
  equally.
min(x, *others): `min{…}(x)` and `min(x)` reduce, `min(a, b)` is pointwise. Positions that tie share the gradient
  equally.
any(x, *others): 1 where any position is not 0, as u8.
all(x, *others): 1 where every position is not 0, as u8.
logsumexp(x): `log(sum(exp(x)))`, without overflow.
argmax(x): The position of the largest element along the one axis that the notation leaves out, as i32. No gradient.
argmin(x): The position of the smallest element along the one axis that the notation leaves out, as i32. No gradient.
einsum(*operands): `einsum{a; b => c}(x, y)`: the product of any number of operands, summed over the labels that the
  result leaves out.
concat(*operands): `concat{x, ...; y, ... => x^y, ...}(a, b)`: the operands one after the other along an axis.
permute(x): `permute{i, j => j, i}(x)`: the same elements with their axes in another order; nothing may be reduced.
"""

RANDOM = """
uniform(low = 0, high = 1, counter = none): Random numbers, evenly spread over [0, 1). The shape is inferred;
  `counter` replaces the count of calls.
normal(counter = none): Random numbers of the standard normal distribution. The shape is inferred; `counter` replaces
  the count of calls.
bernoulli(p, counter = none): 1 with probability `p`, else 0. The shape is inferred; `counter` replaces the count of
  calls.
"""

COMPUTATIONS = """
update(loss): Computes the loss, zeroes the gradients of everything it depends on, sets its own to 1 and
  backpropagates. The loss must hold one number.
evaluate(t): Computes `t`.
zero_grads(t): Sets the gradients of everything that `t` depends on to 0.
backprop(t): Backpropagates from `t`, whose gradient has been set, to everything it depends on.
params(t): The parameters that `t` depends on, as a list in the order of their paths.
"""

STATIC_FUNCTIONS = """
len(value): The number of elements of a list, tuple, dict or string, or the size of the first axis of an array.
range(start, stop = none, step = 1): The ints from `start` below `stop`, or from 0 below a single argument; `a..b` is
  the short form.
enumerate(values, start = 0): Pairs of a position and the value there.
zip(*lists): Tuples of the first elements, of the second ones, and so on.
sorted(values, key = none, reverse = false): The values as a list in ascending order.
reversed(values): The values in the opposite order.
list(values = []): The values as a list.
dict(*pairs): `dict(a = 1, b = 2)`, or a dict of pairs.
"""

CONVERSIONS = """
int(value): A static number or a string as an int, towards 0.
float(value): A static number or a string as a float.
str(value): The value as a string.
bool(value): `true` or `false`.
"""

HOST_FUNCTIONS = """
print(*values): Prints the values, tensors with their axes.
random(): A random float in [0, 1), from the program's seed.
choice(weights): A random position, with the given weights.
shuffle(values): The values in a random order.
progress(values): Passes the values on and shows a progress bar when standard error is a terminal.
save(value, file): Writes the parameters and states of an instance to a safetensors file.
load(value, file): Reads the parameters and states of an instance from a safetensors file.
read_array(file): An array from a file: npy, npz, csv or idx.
read_text(file): The text of a file.
close(a, b, tolerance = 1e-6): Whether `a` and `b` differ nowhere by more than `tolerance`.
"""

VALUES = """
training: `true` in what a routine with `[training = true]` builds, else `false`.
"""

STRING_METHODS: tuple[str, ...] = (
    "upper", "lower", "title", "capitalize", "strip", "lstrip", "rstrip", "removeprefix", "removesuffix", "split",
    "rsplit", "splitlines", "partition", "join", "replace", "startswith", "endswith", "find", "rfind", "index", "count",
    "isdigit", "isalpha", "isalnum", "isspace", "isupper", "islower", "zfill", "ljust", "rjust", "center", "format",
)  # fmt: skip
LIST_METHODS: tuple[str, ...] = (
    "append", "extend", "insert", "pop", "remove", "index", "count", "sort", "reverse", "copy", "clear",
)  # fmt: skip
DICT_METHODS: tuple[str, ...] = (
    "keys", "values", "items", "get", "pop", "update", "setdefault", "copy", "clear",
)  # fmt: skip
TENSOR_FIELDS: dict[str, str] = {
    "grad": "The gradient of a differentiable tensor.",
    "path": "The name under which the tensor is kept, as a string: `net.w`.",
    "shape": "The sizes of the axes in memory order.",
    "precision": "The precision, as a string: `f32`.",
}

# These may take more than their signature says.
_LENIENT: frozenset[str] = frozenset(
    {"sum", "uniform", "normal", "bernoulli", "arange", "tensor", "interleave", "prod", "mean", "logsumexp"}
)


def _param(text: str) -> BuiltinParam:
    name, _, default = (part.strip() for part in text.partition("="))
    if name.startswith("*"):
        return BuiltinParam(name[1:], variadic=True)
    return BuiltinParam(name, default or None)


def _params(text: str | None) -> tuple[BuiltinParam, ...]:
    if not text or not text.strip():
        return ()
    return tuple(_param(part) for part in text.split(","))


_LINE = re.compile(r"(?P<signature>(?P<name>\w+)(?:\[(?P<config>[^\]]*)\])?(?:\((?P<params>.*?)\))?): (?P<doc>.+)")


def _table(text: str, kind: BuiltinKind, *, strict: bool) -> dict[str, Builtin]:
    table: dict[str, Builtin] = {}
    for line in text.replace("\n  ", " ").strip().splitlines():
        match = _LINE.fullmatch(line)
        assert match is not None, line
        name = match["name"]
        config, params = _params(match["config"]), _params(match["params"])
        checked = strict and name not in _LENIENT
        table[name] = Builtin(
            name, kind, match["signature"], config, params, match["doc"], slots=kind == "reducer", strict=checked
        )
    return table


def _precision_table() -> dict[str, Builtin]:
    docs = {name: f"`x` converted to the precision {name}." for name in PRECISIONS}
    docs["u32x4"] = "Four 32-bit words of random bits for each element."
    return {
        name: Builtin(name, "conversion", f"{name}(x)", (), (BuiltinParam("x"),), doc, strict=True)
        for name, doc in docs.items()
    }


BUILTINS: dict[str, Builtin] = {
    **_table(POINTWISE, "pointwise", strict=True),
    **_table(TENSOR_FUNCTIONS, "tensor function", strict=True),
    **_table(REDUCERS, "reducer", strict=True),
    **_table(RANDOM, "random", strict=False),
    **_table(COMPUTATIONS, "computation", strict=True),
    **_table(STATIC_FUNCTIONS, "static function", strict=False),
    **_table(CONVERSIONS, "conversion", strict=False),
    **_table(HOST_FUNCTIONS, "host function", strict=False),
    **_table(VALUES, "value", strict=False),
    **_precision_table(),
}
"""Every built-in name, in the order of the tables."""

REDUCER_NAMES: frozenset[str] = frozenset(name for name, b in BUILTINS.items() if b.kind == "reducer")
