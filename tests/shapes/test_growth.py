"""The work of inference grows with the program, not faster."""

from __future__ import annotations

from ocannl_lang.shapes import solve, verify
from tests.shapes.program import Program, Tensor


def transformer(layers: int) -> Program:
    """A decoder with residual connections and norms, some 45 tensors a layer."""
    p = Program()
    x = p.input("x", "N 32", "50")
    h = p.product(p.param("embed", None, "64"), x, name="h")
    for i in range(layers):
        h = p.pointwise("+", h, attention(p, norm(p, h, f"n{i}"), f"a{i}"))
        wide = p.pointwise(
            "gelu",
            p.pointwise("+", p.product(p.param(f"w1_{i}"), norm(p, h, f"m{i}")), p.param(f"b1_{i}", None, "256")),
        )
        h = p.pointwise("+", h, p.pointwise("+", p.product(p.param(f"w2_{i}"), wide), p.param(f"b2_{i}")))
    out = p.product(p.param("out", None, "50"), norm(p, h, "last"))
    loss = p.slots("mean", [("...", "...", "...")], ("", "", ""), p.pointwise("-", out, x))
    p.loss(loss)
    return p


def norm(p: Program, x: Tensor, name: str) -> Tensor:
    mean = p.slots("mean", [("...", "", "..d..")], ("...", "", "0"), x)
    z = p.pointwise("-", x, mean)
    var = p.slots("mean", [("...", "", "..d..")], ("...", "", "0"), p.pointwise("*.", z, z))
    scaled = p.pointwise("*.", p.param(f"{name}_gain"), p.pointwise("/", z, p.pointwise("sqrt", var)))
    return p.pointwise("+", scaled, p.param(f"{name}_bias"))


def attention(p: Program, x: Tensor, name: str) -> Tensor:
    q, k, v = (p.product(p.param(f"{name}_{w}", None, "4 16"), x) for w in "qkv")
    scores = p.slots("+*", [("... s", "", "h d"), ("... t", "", "h d")], ("... s", "h", "t"), q, k)
    top = p.slots("max", [("...", "...", "t")], ("...", "...", "0"), scores)
    e = p.pointwise("exp", p.pointwise("-", scores, top))
    att = p.pointwise("/", e, p.slots("sum", [("...", "...", "t")], ("...", "...", "0"), e))
    mixed = p.slots("+*", [("... s", "h", "t"), ("... t", "", "h e")], ("... s", "", "h e"), att, v)
    return p.product(p.param(f"{name}_o"), mixed)


def test_a_transformer_is_solved_and_every_parameter_gets_its_shape() -> None:
    p = transformer(2)
    problem = p.problem()
    solution = solve(problem)
    assert solution.errors == []
    assert verify(solution, problem) == []
    shapes = {leaf.name: str(solution.shape(leaf.shape)) for leaf in problem.leaves}
    assert shapes["embed"] == "[50 -> 64]"
    assert shapes["a1_q"] == "[64 -> 4, 16]"
    assert shapes["a1_o"] == "[4, 16 -> 64]"
    assert shapes["n1_gain"] == "[64]"
    assert shapes["w1_1"] == "[64 -> 256]"
    assert shapes["w2_1"] == "[256 -> 64]"
    assert shapes["b2_0"] == "[64]"


def test_twice_the_layers_take_twice_the_steps() -> None:
    four, eight, sixteen = (solve(transformer(n).problem()).steps for n in (4, 8, 16))
    assert sixteen - eight <= 2.1 * (eight - four)
