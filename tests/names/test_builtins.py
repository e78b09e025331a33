"""The tables of built-in names."""

from __future__ import annotations

from ocannl_lang.names.builtins import BUILTINS, PRECISIONS, REDUCER_NAMES


def test_every_function_of_the_language_is_there() -> None:
    functions: str = """
        relu sigmoid tanh exp log exp2 log2 sin cos sqrt rsqrt recip abs sign floor ceil round erf gelu silu softplus
        sat01 where fma min max pow clamp one_hot arange uniform normal bernoulli stop_gradient interleave even odd
        transpose tensor batched sum prod mean any all logsumexp argmax argmin einsum concat permute update evaluate
        zero_grads backprop params training print len range enumerate zip sorted reversed int float str random choice
        shuffle progress save load read_array read_text close dict
    """
    assert set(functions.split()) <= set(BUILTINS)
    assert set(PRECISIONS) <= set(BUILTINS)


def test_signatures_and_documentation() -> None:
    assert BUILTINS["clamp"].signature == "clamp(x, low, high)"
    assert [p.name for p in BUILTINS["one_hot"].config] == ["size"]
    assert BUILTINS["uniform"].params[-1].default == "none"
    assert all(b.doc.endswith(".") and "\n" not in b.doc for b in BUILTINS.values())


def test_reducers_take_axes_notation() -> None:
    assert {"sum", "max", "concat", "einsum", "argmax"} <= REDUCER_NAMES
    assert all(BUILTINS[name].slots for name in REDUCER_NAMES)
