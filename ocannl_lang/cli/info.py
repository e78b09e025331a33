"""`ocn info` and `ocn clean`: the machine, the versions, the cache."""

from __future__ import annotations

import os
import platform
import re
import sys
from pathlib import Path

import click

from ocannl_lang import __version__
from ocannl_lang.cli.console import echo

_GRAMMARS = re.compile(r"grammar-[0-9a-f]+\.json")
_OBJECTS = re.compile(r"[0-9a-f]{64}\.o|tmp\w+\.tmp")


@click.command()
def info() -> None:
    """Show versions, the machine and its devices, and the cache."""
    files = cached_files()
    rows = [
        ("ocn", f"{__version__} ({Path(__file__).resolve().parent.parent})"),
        ("Python", f"{platform.python_version()} ({sys.executable})"),
        ("system", f"{platform.system()} {platform.release()}, {platform.machine()}"),
        ("processor", _processor()),
        ("threads", str(_threads())),
        ("devices", "cpu, reference"),
        *((name, _version(name)) for name in ("llvmlite", "numpy", "lark", "safetensors")),
        ("cache", f"{_cache()} ({len(files)} files, {sum(_size(f) for f in files) / 1e6:.1f} MB)"),
    ]
    for name, value in rows:
        echo(f"{name + ':':12} {value}")


@click.command()
def clean() -> None:
    """Empty the cache of compiled code; what is needed is made again."""
    files = cached_files()
    size = sum(_size(file) for file in files)
    for file in files:
        file.unlink(missing_ok=True)
    folders = {folder for file in files for folder in file.parents if _cache() in folder.parents}
    for folder in sorted(folders, key=lambda f: len(f.parts), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()
    echo(f"{_cache()}: {len(files)} files removed, {size / 1e6:.1f} MB")


def cached_files() -> list[Path]:
    """The files that the compiler has put into its cache folder; what else lies there is not ours."""
    folder = _cache()
    if not folder.is_dir():
        return []
    ours = [file for file in folder.glob("*") if _GRAMMARS.fullmatch(file.name)]
    ours += [file for file in (folder / "objects").glob("??/*") if _OBJECTS.fullmatch(file.name)]
    return sorted(file for file in ours if file.is_file())


def _cache() -> Path:
    from ocannl_lang.resources import cache_dir

    return cache_dir()


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _version(package: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _threads() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    try:
        from llvmlite import binding

        features = [name for name, there in binding.get_host_cpu_features().items() if there]
        vectors = [name for name in ("avx2", "fma", "avx512f", "avx512bf16", "neon", "sve") if name in features]
        return f"{binding.get_host_cpu_name()} ({', '.join(vectors) or 'no vectors known'})"
    except (ImportError, RuntimeError, OSError):
        return platform.processor() or "unknown"
