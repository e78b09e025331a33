"""Snapshot files: one Markdown file a program, with its source and what the compiler makes of it.

Under `# title` stand sections. `## SOURCE` (and `## SOURCE other.ocn` for the modules beside it) is the program, called `net.ocn`;
`## REPAIRED` is its corrected twin. The other sections are written by the compiler: `DIAGNOSTICS` as a terminal shows them, and what
stages print (`STAGES` below). `pytest --update-snapshots` rewrites them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ocannl_lang.codegen.cpu import schedule_text
from ocannl_lang.codegen.llvm.target import target_of
from ocannl_lang.diagnostics.model import Diagnostic
from ocannl_lang.driver.checking import Checked
from ocannl_lang.driver.modules import read_file
from ocannl_lang.driver.pipeline import loops_of, scheme_lines, shape_lines, stage_text
from ocannl_lang.driver.program import Program
from ocannl_lang.driver.session import Session

MAIN = "net.ocn"
_SECTION = re.compile(r"^## ([A-Z]+)(?: (\S+))?\n\n```\w*\n(.*?)^```\n", re.M | re.S)


@dataclass(frozen=True)
class Document:
    """A snapshot file: its title, and the texts of its sections by name and file, in their order."""

    path: Path
    title: str
    sections: dict[tuple[str, str], str]

    @property
    def code(self) -> str | None:
        """The code that the file is about, which its name begins with; None for a sound program."""
        found = re.match(r"[EW]\d{4}", self.path.stem)
        return found[0] if found else None

    def files(self, section: str) -> dict[str, str]:
        """The modules of `SOURCE` or `REPAIRED` by file name."""
        return {file: text for (name, file), text in self.sections.items() if name == section}

    @property
    def text(self) -> str:
        return write(self.title, self.sections)


def read(path: Path) -> Document:
    text = path.read_text(encoding="utf-8")
    title = text.split("\n", 1)[0].removeprefix("# ")
    sections: dict[tuple[str, str], str] = {}
    for name, file, body in _SECTION.findall(text):
        sections[name, file or (MAIN if name in ("SOURCE", "REPAIRED") else "")] = body
    return Document(path, title, sections)


def write(title: str, sections: Mapping[tuple[str, str], str]) -> str:
    parts = [f"# {title}\n"]
    for (name, file), body in sections.items():
        head = name if file in ("", MAIN) else f"{name} {file}"
        parts.append(f"## {head}\n\n```{'ocn' if name in ('SOURCE', 'REPAIRED') else 'text'}\n{body}```\n")
    return "\n".join(parts)


def made_anew(document: Document) -> str:
    """The text of the file with the sections that the compiler writes written by the compiler as it is."""
    files = document.files("SOURCE")
    sections = {
        (name, file): body if name in ("SOURCE", "REPAIRED") else _body(SECTIONS[name](files))
        for (name, file), body in document.sections.items()
    }
    return write(document.title, sections)


def _body(text: str) -> str:
    return text.rstrip("\n") + "\n" if text else ""


# ---------------------------------------------------------------- what the compiler makes of it


def checked(files: Mapping[str, str]) -> Checked:
    """The program of these modules; standard modules are those of the standard library."""
    return _checked(tuple(sorted(files.items())))


@cache
def _checked(items: tuple[tuple[str, str], ...]) -> Checked:
    files = dict(items)

    def reader(path: Path) -> str | None:
        return files.get(path.name) if len(path.parts) == 1 else read_file(path)

    found = Session(reader=reader).checked(MAIN)
    assert isinstance(found, Checked)
    return found


def diagnostics(files: Mapping[str, str]) -> list[Diagnostic]:
    return checked(files).diagnostics


def rendered(found: list[Diagnostic]) -> str:
    return "\n\n".join(d.render() for d in found)


def _stage(name: str) -> Callable[[Mapping[str, str]], str]:
    def text(files: Mapping[str, str]) -> str:
        program = Program(checked(files), Session().options, Path(MAIN))
        return stage_text(program, name)

    return text


def _schedule(files: Mapping[str, str]) -> str:
    """The kernels on one and the same machine, whatever this one is."""
    program = Program(checked(files), Session().options, Path(MAIN))
    machine = target_of("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx2,+fma,+sse4.1")
    texts = [f"routine {n}\n{schedule_text(loops_of(program, r), machine)}" for n, r in program.routines.items()]
    return "\n\n".join(texts)


SECTIONS: dict[str, Callable[[Mapping[str, str]], str]] = {
    "DIAGNOSTICS": lambda files: rendered(diagnostics(files)),
    "SCHEMES": lambda files: "\n".join(scheme_lines(checked(files))),
    "SHAPES": lambda files: "\n".join(shape_lines(checked(files))),
    "AST": _stage("parse"),
    "NAMES": _stage("names"),
    "GRAPH": _stage("shapes"),
    "LOOPS": _stage("loops"),
    "OPTIMISED": _stage("optimise"),
    "SCHEDULE": _schedule,
}
"""What each section shows, from the program's modules."""
