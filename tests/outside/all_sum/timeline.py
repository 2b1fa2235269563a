"""How a call spends its time."""

from __future__ import annotations

from typing import Any

from tftune.kernels.core.space import Config
from tftune.kernels.core.timeline_ir import WAIT, Call, Stage

from . import AllSum


def describe(costs: Any, shape: AllSum, config: Config, mode: str) -> Call:
    """The stages of one call."""
    if config.variant == "bsp":
        gathered = costs.all_gather(shape.bytes, shape.world)
        return Call(([costs.triton_launch(mode), gathered, gathered],), shape.world)
    sent = (shape.world - 1) * shape.bytes
    flown = Stage(sent / costs.links.rate(shape.world) + costs.links.flag_us, 0.0, sent, tax=WAIT)
    summed = Stage(1.0 + costs.memory_us(shape.world * shape.bytes) + 1e-4 * int(config["block"]))
    return Call(([costs.triton_launch(mode), flown, summed],), shape.world)
