"""The schemes of ops, as hover shows them."""

from __future__ import annotations

from ocannl_lang.shapes import Solver, scheme_text
from tests.shapes.program import Program, Tensor


def scheme(p: Program, name: str, config: list[str], inputs: list[Tensor], outputs: list[Tensor]) -> str:
    solver = Solver()
    for leaf in p.leaves:
        solver.add_leaf(leaf)
    for constraint in p.items:
        solver.add(constraint)
    return scheme_text(name, config, [t.shape for t in inputs], [t.shape for t in outputs], solver)


def argument(
    p: Program, name: str, batch: str | None = None, input: str | None = None, output: str | None = None
) -> Tensor:
    return p.leaf("input", name, batch, input, output)


def test_layer_norm_passes_all_through() -> None:
    p = Program()
    x = argument(p, "x")
    m = p.slots("mean", [("...", "", "..d..")], ("...", "", ""), x, name="m")
    z = p.pointwise("-", x, m, name="z")
    v = p.slots("mean", [("...", "", "..d..")], ("...", "", ""), p.pointwise("*.", z, z), name="v")
    scaled = p.pointwise("*.", p.param("gamma"), p.pointwise("/", z, v))
    out = p.pointwise("+", scaled, p.param("beta"))
    assert scheme(p, "layer_norm", [], [x], [out]) == "layer_norm : (... | ..d..) -> (... | ..d..)"


def test_attention_names_what_the_user_named() -> None:
    p = Program()
    x = argument(p, "x", None, "", "m")
    q, k, v = (p.product(p.param(n), x, name=n[-1]) for n in ("w_q", "w_k", "w_v"))
    scores = p.slots("+*", [("... s", "", "h d"), ("... t", "", "h d")], ("... s", "h", "t"), q, k)
    e = p.pointwise("exp", scores)
    att = p.pointwise("/", e, p.slots("sum", [("...", "...", "t")], ("...", "...", "0"), e))
    mixed = p.slots("+*", [("... s", "h", "t"), ("... t", "", "h e")], ("... s", "", "h e"), att, v)
    out = p.product(p.param("w_o"), mixed)
    assert (
        scheme(p, "attention", ["heads", "d_k"], [x], [out])
        == "attention[heads, d_k] : (..b.. s | m) -> (..b.. s | ..o..)"
    )


def test_dense_leaves_its_input_open() -> None:
    p = Program()
    x = argument(p, "x")
    out = p.pointwise("+", p.product(p.param("w"), x), p.param("b", None, "10"))
    assert scheme(p, "dense", ["out"], [x], [out]) == "dense[out] : (... | ..o..) -> (... | 10)"


def test_a_pointwise_op_is_as_general_as_can_be() -> None:
    p = Program()
    x, y = argument(p, "x"), argument(p, "y")
    assert scheme(p, "add", [], [x, y], [p.pointwise("+", x, y)]) == "add : (... | ...), (... | ...) -> (... | ...)"


def test_sizes_that_are_known_are_shown() -> None:
    p = Program()
    x = argument(p, "x", None, "", "3:rgb N")
    out = p.slots("sum", [("...", "", "i j")], ("...", "", "i"), x)
    assert scheme(p, "f", [], [x], [out]) == "f : (... | 3:rgb, n) -> (... | 3:rgb)"


def test_a_loss_is_a_scalar() -> None:
    p = Program()
    x, y = argument(p, "x"), argument(p, "y")
    loss = p.slots("mean", [("...", "...", "...")], ("", "", ""), p.pointwise("-", x, y))
    assert scheme(p, "mse", [], [x, y], [loss]) == "mse : (... | ...), (... | ...) -> ()"
