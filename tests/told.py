"""A selection that names a fused config for every shape, with times: what a pass asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.models.selection import Selection

VARIANTS = {
    "all_gather_gemm": "push",
    "gemm_reduce_scatter": "push",
    "flash_decode": "fused",
    "flash_prefill": "flash",
}
"""The others run one_shot."""
FASTER, SLOWER = (5.0, 10.0), (10.0, 5.0)
"""Expected microseconds of a kernel, and of BSP."""


def fused(shape: Any, times: tuple[float, float] = FASTER) -> Selection:
    """A small config of one variant of each operation."""
    space, variant = operation(shape.op).space, VARIANTS.get(shape.op, "one_shot")
    config = space.complete(Config(variant))
    if space.why_invalid(shape, config) is not None:
        config = next(iter(space.configs(shape, None, (variant,))))
    return Selection(config, "measured", "as told", *times)


def select(times: Mapping[str, tuple[float, float]] | None = None) -> Any:
    """A `select_kernel` that answers a kernel for the operations named, each with its times, and
    BSP for the others; None: a kernel for all."""

    def selected(shape: Any, mode: str = "graph") -> Selection:
        if times is None:
            return fused(shape)
        if shape.op in times:
            return fused(shape, times[shape.op])
        return Selection(Config("bsp"), "measured", "BSP is faster", 5.0, 5.0)

    return selected
