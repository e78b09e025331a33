"""What the tests of names share: parsing, resolving and checking a text."""

from __future__ import annotations

from functools import lru_cache

from ocannl_lang.diagnostics.model import Collector, Diagnostic
from ocannl_lang.names.bindings import Names
from ocannl_lang.names.interface import FixedInterfaces, Interface, interface
from ocannl_lang.names.resolve import resolve
from ocannl_lang.names.static_types import check_types
from ocannl_lang.resources import stdlib_dir
from ocannl_lang.source import Source
from ocannl_lang.syntax import ast
from ocannl_lang.syntax.parser import parse

INTRINSICS = {
    "data": ("batches", "split", "windows", "char_vocabulary"),
    "plot": ("line", "scatter", "image", "histogram", "boundary"),
}

HALF_MOONS = """\
## Half-moons: a small classifier, trained with SGD.
from data import half_moons, batches
from optim import sgd

op classifier[hidden: list[int] = [16, 16]](x):
    var h = x
    for width in hidden:
        h = relu({w} * h + {b: [width] = 0.})
    return {w_out} * h + {b_out: [1] = 0.}

let net = classifier

routine train_step[training = true](x: f32[n | 2], y: f32[n | 1], lr: f32) -> f32:
    let loss = mean(relu(1 - y *. net(x)))
    update(loss)
    for p in params(loss):
        sgd[weight_decay = 1e-4](p, lr)
    return loss

routine predict(x: f32[n | 2]) -> f32[n | 1]:
    return net(x)

main(epochs: int = 80, lr: float = 0.1):
    let points, labels = half_moons(n = 800, noise = 0.1, seed = 1)
    for epoch in progress(0..epochs):
        var total = 0.
        for x, y in batches(points, labels, size = 10, seed = epoch):
            total += train_step(x, y, lr * (1 - epoch / epochs))
        if epoch % 10 == 0: print("epoch {epoch}: loss {total}")
    let right = sum(sign(predict(points)) == labels)
    print("accuracy {right / len(labels)}")
"""

ATTENTION = """\
from nn import softmax
basis rgb, heads

op residual[f: op](x) = x + f(x)

op attention[heads: int, d_k: int](x, mask = none):
    dim h = heads, d = d_k
    let q, k, v = {w_q} * x, {w_k} * x, {w_v} * x
    let scores = q +*{... s | h, d; ... t | h, d => ... s | t -> h} k / sqrt(d)
    let seen = if mask is none then scores else where(mask, scores, -1e9)
    let att = softmax{... | t -> ...}(seen)
    return {w_o} * (att +*{... s | t -> h; ... t | h, e => ... s | h, e} v)

op swish(x):
    forward:
        result := x *. sigmoid(x)
    backward:
        let s = sigmoid(x)
        x.grad += result.grad *. (s + x *. s *. (1 - s))

cd product(c, a, b): c{i, j} :+= a{i, k} *. b{k, j}

fn factorial(n: int) -> int = if n == 0 then 1 else n * factorial(n - 1)

routine at(x: f32[5 | 4], i: index[5]):
    state best: f32[5 | 4] = -1e30
    best max= x
    return sum{(i), ... | ... => ... | ...}(x), best, residual[swish](x), attention[heads = 2, d_k = 3](x)

test "factorial":
    expect factorial(3) == 6, "three"
"""


@lru_cache(maxsize=1)
def standard_library() -> FixedInterfaces:
    """The interfaces of the standard library's modules."""
    found: dict[tuple[str, ...], Interface] = {}
    for path in sorted(stdlib_dir().glob("*.ocn")):
        module = parse(Source(path.name, path.read_text(encoding="utf-8")), Collector())
        found[(path.stem,)] = interface(module, INTRINSICS.get(path.stem, ()))
    return FixedInterfaces(found)


def resolved(text: str, imports: FixedInterfaces | None = None) -> tuple[ast.Module, Names, Collector]:
    """Parse and resolve a program."""
    collector = Collector()
    module = parse(Source("test.ocn", text), collector)
    return module, resolve(module, imports or standard_library(), collector), collector


def check(text: str, imports: FixedInterfaces | None = None) -> list[Diagnostic]:
    """All diagnostics up to static types."""
    module, names, collector = resolved(text, imports)
    check_types(module, names, collector)
    return collector.sorted()


def found(text: str, imports: FixedInterfaces | None = None) -> list[tuple[str, int]]:
    """Codes and lines of all diagnostics."""
    return [(d.code, d.line) for d in check(text, imports)]


def module_interface(text: str) -> Interface:
    return interface(parse(Source("other.ocn", text), Collector()))


def apply_fix(text: str, diagnostic: Diagnostic) -> str:
    """The text after the diagnostic's fix."""
    assert diagnostic.fix is not None
    for edit in sorted(diagnostic.fix.edits, key=lambda e: -e.span.start):
        text = text[: edit.span.start] + edit.replacement + text[edit.span.end :]
    return text
