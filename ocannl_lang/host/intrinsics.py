"""The members of standard modules that Python implements: they join what the module's `.ocn` file defines."""

from __future__ import annotations

from ocannl_lang.host import datatools, plots
from ocannl_lang.host.builtins import host_function
from ocannl_lang.host.context import HostFunction

INTRINSICS: dict[str, dict[str, HostFunction]] = {
    "data": {
        "batches": host_function("batches", datatools.batches),
        "split": host_function("split", datatools.split),
        "windows": host_function("windows", datatools.windows),
        "char_vocabulary": host_function("char_vocabulary", datatools.char_vocabulary),
    },
    "plot": {
        "line": host_function("line", plots.line),
        "scatter": host_function("scatter", plots.scatter),
        "image": host_function("image", plots.image),
        "histogram": host_function("histogram", plots.histogram),
        "boundary": host_function("boundary", plots.boundary),
    },
}
"""By module and name."""
