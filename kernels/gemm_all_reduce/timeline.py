"""How the variants of gemm_all_reduce spend their time. Standard library only."""

from __future__ import annotations

from typing import Any

from tftune.kernels.core.partials_timeline import fused, library_gemm
from tftune.kernels.core.space import Config
from tftune.kernels.core.timeline_ir import WAIT, Call, Stage
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_all_reduce.space import SPACE


def describe(costs: Any, shape: GemmAllReduce, config: Config, mode: str) -> Call:
    """The lanes of one call. The library's all-reduce is taken to last as long as two all-gathers
    of a rank's part, one latency less; torch's one-shot and two-shot read peers' memory."""
    config = SPACE.complete(config)
    if config.variant != "bsp":
        return fused(costs, shape, config, mode)
    kernels, world = [library_gemm(costs, shape)], shape.world
    if world > 1:
        kernels.append(_all_reduce(costs, shape, str(config["form"])))
    return Call(costs.in_order(mode, kernels), world)


def _all_reduce(costs: Any, shape: GemmAllReduce, form: str) -> Stage:
    world = shape.world
    if form == "library":
        once = costs.all_gather(-(-shape.message_bytes // world), world)
        twice_us = 2 * once.us - costs.links.collective_us * (3 + world) / 11
        return Stage(max(twice_us, once.us), 2 * once.memory_bytes, 2 * once.link_bytes, tax=WAIT)
    whole = shape.message_bytes * (world - 1)
    moved = whole if form == "one_shot" else 2 * whole / world
    waits = 1 if form == "one_shot" else 2
    us = moved / costs.links.rate(world) / costs.pull_share
    return Stage(us + 2 * waits * costs.links.flag_us, 2 * moved, moved, tax=WAIT)
