"""What code generation knows about a machine: its vectors, its registers and a few abilities."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

# What is at least so large is written past the caches: it would push out everything else, and be read before it is written.
PAST_BYTES = 8 * 1024 * 1024
# Where such a result must begin: what numpy's arrays do.
PAST_ALIGN = 16


@dataclass(frozen=True, slots=True)
class Target:
    """A machine to compile for.

    `vector_bytes`: width of a vector register; `registers`: how many there are; `fma`: fused multiply-add in one instruction;
    `rounds`: floor and the like in one instruction; `threads`: how many share large products. What is computed does not depend on that.
    """

    triple: str
    cpu: str
    features: str
    vector_bytes: int
    registers: int
    fma: bool
    rounds: bool
    threads: int = 2

    @property
    def arch(self) -> str:
        """The kind of processor, as the triple begins."""
        return self.triple.split("-", 1)[0]

    @property
    def key(self) -> str:
        """The machine alone."""
        return f"{self.triple}/{self.cpu}/{self.features}"


def shared_by(target: Target, threads: int) -> Target:
    """The target for that many threads: at least two, since code for one is not made differently."""
    return replace(target, threads=max(2, threads))


def target_of(triple: str, cpu: str, features: str) -> Target:
    """The facts that follow from LLVM's names of a machine and its features (`+avx2,-avx512f,…`)."""
    on = {f[1:] for f in features.split(",") if f.startswith("+")}
    arch = triple.split("-", 1)[0]
    if arch in ("x86_64", "amd64", "i686"):
        if "avx512f" in on and "avx512vl" in on and "avx512bw" in on and "avx512dq" in on:
            return Target(triple, cpu, features, 64, 32, "fma" in on, True)
        if "avx2" in on:
            return Target(triple, cpu, features, 32, 16, "fma" in on, True)
        return Target(triple, cpu, features, 16, 16, "fma" in on, "sse4.1" in on)
    if arch in ("aarch64", "arm64"):
        return Target(triple, cpu, features, 16, 32, True, True)
    return Target(triple, cpu, features, 16, 16, False, False)


@functools.lru_cache(maxsize=1)
def host_target() -> Target:
    """This machine."""
    from ocannl_lang.codegen.llvm.compile import host_description

    return target_of(*host_description())
