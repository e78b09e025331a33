"""Goes on after a token that the grammar does not allow."""

from __future__ import annotations

from dataclasses import dataclass

from ocannl_lang.diagnostics.model import Diagnostic
from ocannl_lang.source import Span
from ocannl_lang.syntax import ast
from ocannl_lang.syntax.context import Context
from ocannl_lang.syntax.contextual import reread
from ocannl_lang.syntax.machine import Machine
from ocannl_lang.syntax.tables import END, Tables


@dataclass(slots=True)
class Recovery:
    """The machine's `on_error` for one text."""

    context: Context
    tables: Tables

    def __call__(self, machine: Machine) -> None:
        if reread(machine, self.context.text):
            return
        token = machine.tokens[machine.index]
        found = self.context.text[token.start : token.end] or "end of line"
        span = Span(self.context.source, token.start, token.end)
        self.context.collector.report(Diagnostic("E0102", f"unexpected `{found}`", span))
        raise NotImplementedError
