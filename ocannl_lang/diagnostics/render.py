"""All diagnostics of a run in one of the formats of the command line."""

from __future__ import annotations

from collections.abc import Sequence

from ocannl_lang.diagnostics.json import render_json
from ocannl_lang.diagnostics.model import Diagnostic
from ocannl_lang.diagnostics.sarif import render_sarif
from ocannl_lang.diagnostics.text import render_text

FORMATS = ("human", "concise", "json", "sarif")


def render_all(diagnostics: Sequence[Diagnostic], format: str = "human", color: bool = False) -> str:
    """The diagnostics in the order given. `human` ends with a line that counts them and is empty without any."""
    match format:
        case "human":
            blocks = [render_text(d, color=color) for d in diagnostics]
            return "\n\n".join([*blocks, count_line(diagnostics)]) if blocks else ""
        case "concise":
            return "\n".join(render_concise(d) for d in diagnostics)
        case "json":
            return render_json(diagnostics)
        case "sarif":
            return render_sarif(diagnostics)
        case _:
            raise ValueError(f"no format {format!r}: one of {', '.join(FORMATS)}")


def render_concise(diagnostic: Diagnostic) -> str:
    """One line: `net.ocn:3:12: error[E0401]: sizes differ: 128 and 256`."""
    place = f"{diagnostic.span.source.path}:{diagnostic.line}:{diagnostic.column}"
    return f"{place}: {diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}"


def count_line(diagnostics: Sequence[Diagnostic]) -> str:
    """`2 errors, 1 warning`."""
    errors = sum(d.severity == "error" for d in diagnostics)
    warnings = len(diagnostics) - errors
    counts = [(errors, "error"), (warnings, "warning")]
    return ", ".join(f"{n} {word}{'' if n == 1 else 's'}" for n, word in counts if n) or "no errors"
