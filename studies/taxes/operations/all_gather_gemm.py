"""What BSP does more than a fused all_gather_gemm, and its steps, for the tax study. Standard
library only until a plan is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.rules import plain_form
from tftune.kernels.core.space import Config
from tftune.studies.taxes.arms import Gap

if TYPE_CHECKING:
    from tftune.kernels.comm.workspace import Workspace
    from tftune.kernels.runtime.plan import Plan

FUSED = ("push",)
"""Variants whose kernel can wait for everything, the default first."""
_STEPS = {
    "gather": ("gather", "gemm"),
    "gather_copy": ("gather", "copy", "gemm"),
    "local_transpose": ("transpose", "gather", "gemm"),
}


def steps(shape: AllGatherGemm, form: Config) -> tuple[str, ...]:
    """What BSP launches, in its order. A library's GEMM counts as one kernel."""
    return _STEPS[plain_form(form["form"])] if shape.world > 1 else ("gemm",)


def gap(shape: AllGatherGemm, form: Config, config: Config) -> Gap:
    """What this form of BSP does more than a fused config. Bytes that one kernel writes and the
    next one reads: the gathered A, once more where it is copied, and of a transposed shard."""
    more = {"gather": 0.0, "gather_copy": 1.0, "local_transpose": 1 / shape.world}
    trips = 1 + more[plain_form(form["form"])] if shape.world > 1 else 0.0
    return Gap(len(steps(shape, form)) - 1, trips, shape.world - 1)


def trip_bytes(shape: AllGatherGemm) -> int:
    """Bytes of one round trip: the gathered A."""
    return shape.gathered_bytes


def step_plans(shape: AllGatherGemm, form: Config, workspace: Workspace) -> dict[str, Plan]:
    """The plan of each step of BSP, a call (a, b, c), by name."""
    from tftune.kernels.all_gather_gemm.host import prepare
    from tftune.kernels.all_gather_gemm.variants import bsp
    from tftune.kernels.core.dtypes import torch_dtype

    if shape.world == 1:
        return {"gemm": prepare(shape, form, workspace)}
    return bsp.steps(shape, workspace, torch_dtype(shape.dtype), str(form["form"]))


def waiting_programs(shape: AllGatherGemm, config: Config, units: int) -> int:
    """Programs that wait for peers, on a chip of so many units."""
    from tftune.kernels.all_gather_gemm.host import programs
    from tftune.kernels.all_gather_gemm.rules import moving_programs

    return programs(shape, config, units) - moving_programs(shape, config)
