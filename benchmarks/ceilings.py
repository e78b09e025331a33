"""What the machine can do at most, in a process of its own: `ocn bench` holds kernels against the same limits.

    python -m benchmarks.ceilings '{"cpus": [0, 1], "threads": 2}'

prints one line of JSON. `Ceilings` in `results.py` says what the numbers are.
"""

from __future__ import annotations

import dataclasses
import json
import sys

from benchmarks.machine import limit_to
from benchmarks.results import Ceilings

ARRAYS, LARGE = 1 << 25, 1 << 27
"""Bytes of the two arrays of a pointwise case together, and of two that fit no cache."""


def main(text: str) -> int:
    request = json.loads(text)
    limit_to(request["cpus"])
    # After the process has been limited: threads are started, and the processor is asked, on import.
    from ocannl_lang.codegen.ceilings import measure_ceilings
    from ocannl_lang.codegen.llvm.target import host_target

    threads = max(1, request["threads"])
    found = measure_ceilings(threads, LARGE)
    here, far = (next(b for b in found.bandwidths if b.size == size) for size in (ARRAYS, LARGE))
    vector = host_target().vector_bytes // 4
    ceilings = Ceilings(threads, vector, found.flops, here.copy, here.stream, far.copy, far.stream)
    print(json.dumps(dataclasses.asdict(ceilings)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
