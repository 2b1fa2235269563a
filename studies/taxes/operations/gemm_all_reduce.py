"""What BSP does more than a fused gemm_all_reduce, and its steps, for the tax study. Standard
library only until a plan is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tftune.kernels.core.space import Config
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.studies.taxes.arms import Gap

if TYPE_CHECKING:
    from tftune.kernels.comm.workspace import Workspace
    from tftune.kernels.runtime.plan import Plan

FUSED = ("one_shot", "two_shot")
"""Variants whose kernel can wait for everything, the default first. The words of `one_shot_ll` are
polled one by one."""


def steps(shape: GemmAllReduce, form: Config) -> tuple[str, ...]:
    """What BSP launches, in its order. A library's GEMM counts as one kernel."""
    return ("gemm", "reduce") if shape.world > 1 else ("gemm",)


def gap(shape: GemmAllReduce, form: Config, config: Config) -> Gap:
    """What BSP does more than a fused config. Bytes that one kernel writes and the next one reads:
    this rank's product."""
    return Gap(len(steps(shape, form)) - 1, 1.0 if shape.world > 1 else 0.0, shape.world - 1)


def trip_bytes(shape: GemmAllReduce) -> int:
    """Bytes of one round trip: this rank's product."""
    return shape.message_bytes


def step_plans(shape: GemmAllReduce, form: Config, workspace: Workspace) -> dict[str, Plan]:
    """The plan of each step of BSP, a call (a, b, c), by name; collective for the forms over
    symmetric memory."""
    from tftune.kernels.gemm_all_reduce.variants import bsp

    return bsp.steps(shape, workspace, str(form["form"]))


def waiting_programs(shape: GemmAllReduce, config: Config, units: int) -> int:
    """Programs that wait for peers, on a chip of so many units."""
    from tftune.kernels.runtime.gemm_reduce import programs

    return programs(shape, config, units, "cuda")
