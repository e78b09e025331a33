"""Objects from LLVM IR, kept on disk by content and target, and linked into this process.

An entry of the cache is the object preceded by its checksum. It is written to a temporary file and renamed, so that a reader never
sees half of one; a damaged entry is compiled again, with a warning. A folder that cannot be written is no error.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ocannl_lang.codegen.llvm.target import Target

_VERSION = b"ocn object 2"
_LOCK = threading.RLock()
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


def object_code(text: str, target: Target, cache: Path | None) -> bytes:
    """The object of a module, from the cache if it is there."""
    from llvmlite import __version__ as version

    name = hashlib.sha256(b"\0".join([_VERSION, version.encode(), target.key.encode(), text.encode()])).hexdigest()
    path = None if cache is None else cache / "objects" / name[:2] / f"{name}.o"
    if path is not None:
        found = _read(path)
        if found is not None:
            return found
    code = compile_module(text, target)
    if path is not None:
        _write(path, code)
    return code


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

    if not _machines:
        with _LOCK:
            b.initialize_all_targets()
            b.initialize_all_asmprinters()
            b.initialize_native_asmparser()
    return b


def _machine(target: Target) -> Any:
    found = _machines.get(target.key)
    if found is None:
        b = _binding()
        found = b.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=target.features, opt=1, reloc="pic", codemodel="default"
        )
        _machines[target.key] = found
    return found


def _read(path: Path) -> bytes | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if len(data) > 32 and hashlib.sha256(data[32:]).digest() == data[:32]:
        return data[32:]
    warnings.warn(f"the cached file {path} is damaged and is built again", stacklevel=3)
    return None


def _write(path: Path, code: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".object")
        try:
            with os.fdopen(handle, "wb") as f:
                f.write(hashlib.sha256(code).digest() + code)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
    except OSError:
        return
