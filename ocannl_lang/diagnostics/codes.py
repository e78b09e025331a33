"""The table of diagnostic codes, and the page that explains each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

EXPLAIN_DIR = Path(__file__).resolve().parent / "explain"


@dataclass(frozen=True, slots=True)
class CodeInfo:
    """One code: `title` says the fault in few words, `area` the part of the language, `page` is the explanation's
    file.
    """

    code: str
    title: str
    area: str

    @property
    def page(self) -> Path:
        return EXPLAIN_DIR / f"{self.code}.md"

    @property
    def severity(self) -> str:
        return "warning" if self.code.startswith("W") else "error"


_TABLE = {
    "text and syntax": {
        "E0101": "tab in indentation",
        "E0102": "unexpected token",
        "E0103": "unclosed bracket",
        "E0104": "bad literal",
    },
    "names": {
        "E0201": "unknown name",
        "E0202": "defined twice",
        "E0203": "import cycle",
        "E0204": "module or member not found",
        "E0205": "private name",
    },
    "static": {
        "E0301": "wrong type",
        "E0302": "wrong arguments",
        "E0303": "not static here",
        "E0304": "failed while building",
        "E0305": "build does not end",
        "E0306": "recursion without end",
    },
    "shapes": {
        "E0401": "sizes differ",
        "E0402": "number of axes differs",
        "E0403": "wrong row",
        "E0404": "bases differ",
        "E0405": "tensor product does not contract",
        "E0406": "window or stride does not fit",
        "E0407": "undetermined parameter size",
        "E0408": "fixed position out of range",
        "E0409": "bad axes notation",
        "E0410": "loss is not one number",
        "E0412": "type annotation disagrees",
    },
    "computations": {
        "E0501": "assignment to something that is no target",
        "E0502": "no gradient",
        "E0503": "read before written",
    },
    "precision": {
        "E0601": "no common precision",
        "E0602": "not available on this device",
    },
    "routines and builds": {
        "E0701": "argument does not fit",
        "E0702": "size needed while building",
        "E0703": "device not available",
    },
    "data and files": {
        "E0801": "file missing or unreadable",
        "E0802": "array does not fit its type",
        "E0803": "checkpoint does not fit",
    },
    "warnings": {
        "W0901": "unused",
        "W0902": "suspicious broadcast",
        "W0903": "shadowed label",
        "W0904": "parameter never trained",
        "W0905": "label looks misspelt",
    },
}

CODES: dict[str, CodeInfo] = {
    code: CodeInfo(code, title, area) for area, titles in _TABLE.items() for code, title in titles.items()
}


def explain(code: str) -> str:
    """The page of a code as Markdown. An unknown code raises `KeyError`; its letter may be written small."""
    return CODES[code.strip().upper()].page.read_text(encoding="utf-8")
