"""What is kept on disk of programs that ran, so that the next process neither reads their texts nor compiles them.

Of a program its routines and parameters are kept, under its path, and hold as long as all texts are the same and every import leads
to the same file; of a routine its code for the sizes of one call, as steps over objects of the cache. Everything is named by what it
was made of, the compiler's own files included, so nothing has to be thrown away when something changes. Files are those of
`cachefiles`: JSON, followed by the bytes of constants.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ocannl_lang.cachefiles import read_cached, write_cached
from ocannl_lang.driver.finding import find_module, project_root, read_file
from ocannl_lang.driver.initial import Initial, Kept, initial_of_json, initial_to_json
from ocannl_lang.resources import cache_dir, source_dirs

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """A routine as a caller sees it. `inputs`: name, kind and written type of each argument, `precisions` how each is taken."""

    name: str
    doc: str | None
    inputs: tuple[tuple[str, str, str], ...]
    precisions: tuple[str, ...]
    result: str | None
    tuple_result: bool


@dataclass(frozen=True, slots=True)
class SavedCell:
    """A parameter or state; `shape` if the program alone fixes it. `made`: every program has it, called or not."""

    path: str
    precision: str
    shape: Shape | None
    made: bool


@dataclass(frozen=True, slots=True)
class Found:
    """That the import of `name` in the file `importer` led to `path`, None: into the standard library."""

    importer: str
    name: str
    path: str | None


@dataclass(frozen=True, slots=True)
class SavedProgram:
    """A program without errors. `texts` are those of its own files by path; `key` names everything that is made of them, if not empty."""

    key: str
    doc: str | None
    routines: tuple[Signature, ...]
    cells: tuple[SavedCell, ...]
    root: str
    found: tuple[Found, ...]
    texts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Bound:
    """A parameter or state that a routine works on, and its entry in the table."""

    entry: int
    path: str
    shape: Shape
    precision: str
    initial: Initial | None


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant and its entry in the table."""

    entry: int
    shape: Shape
    precision: str
    content: bytes


@dataclass(frozen=True, slots=True)
class SavedRoutine:
    """The code of a routine for certain sizes; see `codegen.cpu.CompiledProgram`. `steps`: symbol, slots, turns."""

    results: tuple[tuple[Shape, str], ...]
    limits: tuple[int | None, ...]
    steps: tuple[tuple[str, Shape, int], ...]
    objects: Mapping[str, str]
    executor: str
    table_size: int
    places: tuple[tuple[int, int], ...]
    arena: int
    scratch: int
    bound: tuple[Bound, ...]
    constants: tuple[Constant, ...]


# ---------------------------------------------------------------- programs


def load_program(path: Path, settings: Mapping[str, Any]) -> SavedProgram | None:
    """What is kept of the program in a file, None if that is nothing or its texts are others now."""
    place = _program_place(path, settings)
    if place is None or not place.is_file():
        return None
    content = read_cached(place)
    if content is None:
        return None
    data, _ = _unpacked(content)
    texts: dict[str, str] = {}
    for file, checksum in data["texts"]:
        text = _text(Path(file))
        if text is None or _hash(text) != checksum:
            return None
        texts[file] = text
    saved = SavedProgram(
        program_key(data["root"], texts, settings),
        data["doc"],
        tuple(
            Signature(s["name"], s["doc"], _pairs(s["inputs"]), tuple(s["precisions"]), s["result"], s["tuple_result"])
            for s in data["routines"]
        ),
        tuple(
            SavedCell(name, precision, None if shape is None else tuple(shape), made)
            for name, precision, shape, made in data["cells"]
        ),
        data["root"],
        tuple(Found(*f) for f in data["found"]),
        texts,
    )
    root = project_root(path)
    if str(root) != saved.root or any(found_as(Path(f.importer), f.name, root) != f for f in saved.found):
        return None
    return saved


def save_program(path: Path, settings: Mapping[str, Any], saved: SavedProgram) -> None:
    """Keep a program for `load_program`, in the place of what was kept under its path."""
    place = _program_place(path, settings)
    if place is None:
        return
    data = {
        "doc": saved.doc,
        "routines": [asdict(s) for s in saved.routines],
        "cells": [[c.path, c.precision, c.shape, c.made] for c in saved.cells],
        "root": saved.root,
        "found": [[f.importer, f.name, f.path] for f in saved.found],
        "texts": [[file, _hash(text)] for file, text in saved.texts.items()],
    }
    write_cached(place, _packed(data, []))


def found_as(importer: Path, name: str, root: Path) -> Found | None:
    """Where an import leads now."""
    place = find_module(name, importer, root, read_file)
    return None if place is None else Found(str(importer), name, None if place[1] else str(place[0]))


def program_key(root: str, texts: Mapping[str, str], settings: Mapping[str, Any]) -> str:
    """The name of everything that is made of these texts; empty if the settings cannot be named."""
    if _plain(settings) is None:
        return ""
    return _hash(json.dumps([fingerprint(), root, [[f, _hash(t)] for f, t in texts.items()], _plain(settings)]))


# ---------------------------------------------------------------- routines


def load_routine(program: str, target: str, name: str, shapes: Sequence[Shape]) -> SavedRoutine | None:
    """The code of a routine for arguments of these shapes, None if it is not kept. `program` is the key of its program."""
    place = _routine_place(program, target, name, shapes)
    content = read_cached(place) if place.is_file() else None
    if content is None:
        return None
    data, blob = _unpacked(content)
    return SavedRoutine(
        _pairs(data["results"]),
        tuple(data["limits"]),
        tuple((symbol, tuple(slots), turns) for symbol, slots, turns in data["steps"]),
        data["objects"],
        data["executor"],
        data["table_size"],
        _pairs(data["places"]),
        data["arena"],
        data["scratch"],
        tuple(
            Bound(entry, path, tuple(shape), prec, initial_of_json(initial))
            for entry, path, shape, prec, initial in data["bound"]
        ),
        tuple(Constant(e, tuple(shape), prec, blob[start:end]) for e, shape, prec, start, end in data["constants"]),
    )


def save_routine(program: str, target: str, name: str, shapes: Sequence[Shape], saved: SavedRoutine) -> None:
    """Keep the code of a routine for `load_routine`."""
    constants: list[tuple[int, Shape, str, int, int]] = []
    end = 0
    for c in saved.constants:
        constants.append((c.entry, c.shape, c.precision, end, end + len(c.content)))
        end += len(c.content)
    data = {
        "results": saved.results,
        "limits": saved.limits,
        "steps": saved.steps,
        "objects": dict(saved.objects),
        "executor": saved.executor,
        "table_size": saved.table_size,
        "places": saved.places,
        "arena": saved.arena,
        "scratch": saved.scratch,
        "bound": [[b.entry, b.path, b.shape, b.precision, initial_to_json(b.initial)] for b in saved.bound],
        "constants": constants,
    }
    write_cached(_routine_place(program, target, name, shapes), _packed(data, [c.content for c in saved.constants]))


def contents_name(program: str, made_by: str, path: str) -> str:
    """The name of the first contents of a parameter; `made_by` says by which call, since sizes may be those of its arguments."""
    return _hash(json.dumps([program, made_by, path]))


def load_contents(kept: Kept, seed: int) -> bytes | None:
    """The bytes of first contents, None if they are not kept."""
    place = _contents_place(kept, seed)
    return read_cached(place) if place.is_file() else None


def save_contents(kept: Kept, seed: int, content: bytes) -> None:
    """Keep first contents for `load_contents`."""
    write_cached(_contents_place(kept, seed), content)


# ---------------------------------------------------------------- names and files


@functools.cache
def fingerprint() -> str:
    """A checksum of the compiler: its code, its grammar, its standard library, and the version of LLVM's binding."""
    import llvmlite

    found = hashlib.sha256(llvmlite.__version__.encode())
    for top in source_dirs():
        for folder, folders, files in os.walk(top):
            folders.sort()
            for file in sorted(files):
                if file.endswith((".py", ".ocn", ".lark")):
                    name = os.path.join(folder, file)
                    with open(name, "rb") as f:
                        content = f.read()
                    found.update(f"{name[len(str(top)) :]}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


def _program_place(path: Path, settings: Mapping[str, Any]) -> Path | None:
    plain = _plain(settings)
    if plain is None:
        return None
    return _place("programs", _hash(json.dumps([fingerprint(), str(path.absolute()), plain])))


def _routine_place(program: str, target: str, name: str, shapes: Sequence[Shape]) -> Path:
    return _place("routines", _hash(json.dumps([program, target, name, shapes])))


def _contents_place(kept: Kept, seed: int) -> Path:
    return _place("contents", _hash(json.dumps([kept.name, seed if kept.random else None])))


def _place(kind: str, name: str) -> Path:
    return cache_dir() / kind / name[:2] / f"{name}.bin"


def _plain(settings: Mapping[str, Any]) -> str | None:
    """The settings as text, None if they hold more than numbers, texts and lists of these."""

    def plain(value: Any) -> bool:
        if isinstance(value, (list, tuple)):
            return all(map(plain, value))
        return type(value) in (bool, int, float, str)

    if not all(map(plain, settings.values())):
        return None
    return json.dumps([[name, repr(settings[name])] for name in sorted(settings)])


def _text(path: Path) -> str | None:
    try:
        return read_file(path)
    except (OSError, UnicodeDecodeError):
        return None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _pairs(data: Any) -> Any:
    """Lists of lists as tuples of tuples, all the way down."""
    return tuple(_pairs(d) for d in data) if isinstance(data, list) else data


def _packed(data: Any, blobs: Sequence[bytes]) -> bytes:
    header = json.dumps(data).encode()
    return b"".join([len(header).to_bytes(8, "little"), header, *blobs])


def _unpacked(content: bytes) -> tuple[Any, bytes]:
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]
