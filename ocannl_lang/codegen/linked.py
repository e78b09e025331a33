"""What is linked into this process: kernels by their symbols, and the executor that calls them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from ocannl_lang.codegen.llvm.compile import link
from ocn_runtime.cpu import Executor

_lock = threading.RLock()
_linked: dict[str, tuple[int, object]] = {}
_executors: list[Executor] = []


def is_linked(symbol: str) -> bool:
    """Whether a function is in this process already; it stays."""
    return symbol in _linked


def linked(symbols: Sequence[str], code: Callable[[str], bytes]) -> tuple[list[int], tuple[object, ...]]:
    """The address of each symbol, and what keeps the code alive. `code` gives the object of one that is not linked yet."""
    with _lock:
        missing: dict[str, bytes] = {}
        for symbol in symbols:
            if symbol not in _linked and symbol not in missing:
                missing[symbol] = code(symbol)
        if missing:
            found, tracker = link(list(missing.values()), list(missing))
            for symbol, at in found.items():
                _linked[symbol] = (at, tracker)
        return [_linked[s][0] for s in symbols], tuple({id(t): t for _, t in (_linked[s] for s in symbols)}.values())


def process_executor(code: Callable[[], bytes]) -> Executor:
    """The process's executor; `code` gives its object where it is not linked yet."""
    with _lock:
        if not _executors:
            names = ["ocn_call", "ocn_pool_start", "ocn_pool_stop", "ocn_python_call", "ocn_python_setup"]
            found, tracker = link([code()], names)
            call, start, stop, python_call, python_setup = (found[n] for n in names)
            _executors.append(Executor(call, start, stop, tracker, python_call, python_setup))
        return _executors[0]
