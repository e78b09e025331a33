"""Objects from LLVM IR, kept on disk by content and target, and linked into this process.

Objects are files of the cache (see `cachefiles`), named by what they are made of.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ocannl_lang.cachefiles import read_cached, write_cached
from ocannl_lang.codegen.llvm.target import Target

_VERSION = b"ocn object 2"
_LOCK = threading.RLock()
_ready: set[str] = set()
_machines: dict[str, Any] = {}
_linker: list[Any] = []
_serial = 0


def host_description() -> tuple[str, str, str]:
    """Triple, name and features of this machine's processor, as LLVM calls them."""
    b = _binding()
    try:
        found = sorted(b.get_host_cpu_features().items())
    except RuntimeError:
        # LLVM cannot ask every processor; its name alone says enough then.
        found = []
    return b.get_process_triple(), b.get_host_cpu_name(), ",".join(("+" if on else "-") + f for f, on in found)


def object_name(text: str, target: Target) -> str:
    """What the object of a module is called in the cache."""
    from llvmlite import __version__ as version

    return hashlib.sha256(b"\0".join([_VERSION, version.encode(), target.key.encode(), text.encode()])).hexdigest()


def object_code(text: str, target: Target, cache: Path | None) -> bytes:
    """The object of a module, from the cache if it is there."""
    if cache is None:
        return compile_module(text, target)
    name = object_name(text, target)
    found = cached_object(name, cache)
    if found is None:
        found = compile_module(text, target)
        write_cached(_object_path(name, cache), found)
    return found


def cached_object(name: str, cache: Path) -> bytes | None:
    """The object of that name, None if the cache does not have it."""
    return read_cached(_object_path(name, cache))


def _object_path(name: str, cache: Path) -> Path:
    return cache / "objects" / name[:2] / f"{name}.o"


def compile_module(text: str, target: Target) -> bytes:
    """The object of a module."""
    with _LOCK:
        machine = _machine(target)
        return machine.emit_object(_parsed(text, machine))


def assembly(text: str, target: Target) -> str:
    """The assembly of a module."""
    with _LOCK:
        machine = _machine(target)
        return machine.emit_assembly(_parsed(text, machine))


def link(objects: Sequence[bytes], names: Sequence[str]) -> tuple[Mapping[str, int], Any]:
    """Addresses of functions of objects in this process, and what must be kept alive for as long as they are used."""
    global _serial
    b = _binding()
    with _LOCK:
        if not _linker:
            from ocannl_lang.codegen.llvm.target import host_target

            _linker.append(b.create_lljit_compiler(_machine(host_target()), use_jit_link=False))
        _serial += 1
        library = b.JITLibraryBuilder().add_current_process()
        for code in objects:
            library.add_object_img(code)
        for name in names:
            library.export_symbol(name)
        tracker = library.link(_linker[0], f"ocn{_serial}")
        return {name: tracker[name] for name in names}, tracker


def _parsed(text: str, machine: Any) -> Any:
    b = _binding()
    module = b.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    return module


def _binding() -> Any:
    import llvmlite.binding as b

    if not _ready:
        with _LOCK:
            b.initialize_native_target()
            b.initialize_native_asmprinter()
            b.initialize_native_asmparser()
            _ready.add("native")
    return b


def _machine(target: Target) -> Any:
    found = _machines.get(target.key)
    if found is None:
        b = _binding()
        if target.triple.partition("-")[0] != b.get_process_triple().partition("-")[0] and "all" not in _ready:
            # Another kind of processor; to know them all takes 10 MB, so only who asks for it pays.
            b.initialize_all_targets()
            b.initialize_all_asmprinters()
            _ready.add("all")
        found = b.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=target.features, opt=1, reloc="pic", codemodel="default"
        )
        _machines[target.key] = found
    return found
