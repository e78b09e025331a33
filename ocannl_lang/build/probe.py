"""The members of an instance that has not been applied yet: its body is executed once on arguments of which nothing is known."""

from __future__ import annotations

from ocannl_lang.build.context import Ctx
from ocannl_lang.build.values import Instance


def probe(ctx: Ctx, instance: Instance) -> None:
    """Make the parameters of `instance`, so that `net.w` can be named before `net` is applied."""
    from ocannl_lang.build.routines import build_op
    from ocannl_lang.diagnostics.model import Collector

    if instance.op is None or instance.probed:
        return
    instance.probed = True
    world = ctx.world
    collector, world.collector = world.collector, Collector()
    try:
        built = build_op(world, instance.op, instance=instance)
    finally:
        world.collector = collector
    if built is not None:
        from ocannl_lang.build.modules import top_build

        top = top_build(world).problem
        top.constraints.extend(built.build.problem.constraints)
