"""Ocn, a small language for neural networks: its compiler, in the order in which a program passes through it.

| folder | what it does |
|---|---|
| `source.py`, `diagnostics/` | texts and places in them; messages as data, their codes, and how they are shown |
| `syntax/` | text to syntax tree, going on after mistakes; the grammar is `grammar/ocn.lark` |
| `names/` | what each name means, static types, everything that can be said from the text alone |
| `build/` | ops, computations and routines to graphs of tensors, with the constraints on their shapes |
| `shapes/` | solves the constraints: the sizes of all axes, with the reasons for them |
| `graph/` | tensors in single-assignment form; primitives, precisions, random numbers |
| `loops/` | graphs with sizes to loop nests, and the gradients of loop nests |
| `schedule/` | loop nests to kernels: fused, tiled, vectorised, threaded |
| `codegen/` | kernels to machine code; the reference evaluator that says what they mean |
| `driver/` | the way through all of this: sessions, modules and their imports, programs, their caches |
| `host/` | `main`, tests and what they call: printing, files, data, plots, options |
| `cli/` | the command `ocn` |
| `api.py` | this package for Python programs: `load`, `check`, `install` |

Beside it stand `ocn_runtime` (what a compiled program needs: checkpoints, readers, threads), `ocn_lsp` (the language
server) and `stdlib/` (the standard library, in Ocn).

    import ocannl_lang as ocn
    m = ocn.load("model.ocn")
    loss = m.train_step(x, y, 0.1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ocannl_lang.api import Module, OcnError, OcnShapeError, check, install, load
    from ocannl_lang.diagnostics.model import Diagnostic

__version__ = "0.1.0"
__all__ = ["load", "check", "install", "Module", "OcnError", "OcnShapeError", "Diagnostic"]


def __getattr__(name: str) -> Any:
    """The public names, from where they are defined: importing the package alone stays light."""
    if name == "Diagnostic":
        from ocannl_lang.diagnostics.model import Diagnostic

        return Diagnostic
    if name in __all__:
        from ocannl_lang import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
