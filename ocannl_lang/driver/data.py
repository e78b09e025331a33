"""Loading `data`: evaluated in host code when a routine first needs it, and checked against its type (E0802)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ocannl_lang.build.context import BuildError, Ctx, fail
from ocannl_lang.build.expressions import evaluate
from ocannl_lang.build.modules import module_frame, top_build
from ocannl_lang.driver.errors import ProgramErrors
from ocannl_lang.graph import ir
from ocannl_lang.graph.ir import Value
from ocannl_lang.shapes.terms import Unknown
from ocannl_lang.syntax import ast

if TYPE_CHECKING:
    from ocannl_lang.driver.program import Program


def load_datum(program: Program, value: Value) -> tuple[NDArray[Any], dict[Unknown, int]]:
    """The content of a datum, and the sizes that it decides."""
    from ocannl_lang.driver.hosting import HostServices
    from ocannl_lang.driver.hosttypes import fit_result
    from ocannl_lang.driver.program import bind_sizes
    from ocannl_lang.host.context import HostContext

    assert isinstance(value.op, ir.Data)
    module, _, name = value.op.key.rpartition(".")
    env = program.checked.world.modules[module]
    definition = env.definitions[name]
    assert isinstance(definition, ast.DataDef)
    services = HostServices(program, HostContext(seed=program.options.seed, base=program.path.parent))
    ctx = Ctx(top_build(program.checked.world), module_frame(env), services)
    try:
        content = fit_result(ctx, evaluate(ctx, definition.value), definition.type, name, definition.value.span)
        sizes, _ = bind_sizes([value], [content.data])
    except BuildError as error:
        raise ProgramErrors([error.diagnostic]) from error
    except ProgramErrors as error:
        first = error.diagnostics[0]
        wrong = fail("E0802", first.message, definition.value.span, "what was read does not fit the type")
        raise ProgramErrors([wrong.diagnostic]) from error
    return content.data, sizes
