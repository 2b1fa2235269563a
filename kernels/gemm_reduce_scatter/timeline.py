"""How the variants of gemm_reduce_scatter spend their time. Standard library only."""

from __future__ import annotations

from typing import Any

from tftune.kernels.core.partials import is_registered
from tftune.kernels.core.partials_timeline import fused, library_gemm
from tftune.kernels.core.space import Config
from tftune.kernels.core.timeline_ir import Call
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter
from tftune.kernels.gemm_reduce_scatter.space import SPACE


def describe(costs: Any, shape: GemmReduceScatter, config: Config, mode: str) -> Call:
    """The lanes of one call. The library's reduce-scatter is taken to last as long as its
    all-gather of as many bytes."""
    config = SPACE.complete(config)
    if config.variant != "bsp":
        return fused(costs, shape, config, mode)
    kernels = [library_gemm(costs, shape)]
    if shape.world > 1:
        known = is_registered(config["form"])
        kernels.append(costs.all_gather(shape.shard_bytes, shape.world, known))
    return Call(costs.in_order(mode, kernels), shape.world)
