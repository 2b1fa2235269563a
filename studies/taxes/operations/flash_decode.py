"""What BSP does more than a fused flash_decode, and its steps, for the tax study. Standard library
only until a plan is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode.rules import parts_bytes
from tftune.kernels.flash_decode.space import SPACE
from tftune.kernels.flash_decode.timeline import LAUNCHES
from tftune.studies.taxes.arms import Gap

if TYPE_CHECKING:
    from tftune.kernels.comm.workspace import Workspace
    from tftune.kernels.runtime.plan import Plan

FUSED = ("persistent", "fused_heads", "fused", "no_wait")
"""Variants whose kernels can wait for everything, the default first. The words of `persistent_ll`
are polled one by one."""


def steps(shape: FlashDecode, form: Config) -> tuple[str, ...]:
    """What BSP launches, in its order."""
    combined = ("combine",) if SPACE.complete(form)["kv_splits"] > 1 else ()
    collective = ("collective",) if shape.world > 1 else ()
    return ("attend", *combined, *collective, "merge")


def gap(shape: FlashDecode, form: Config, config: Config) -> Gap:
    """What this form of BSP does more than a fused config. Bytes that one kernel writes and the
    next one reads: splits' partial results, and all ranks' messages, where the config is one
    kernel; this rank's messages, where it sends them as it adds them up."""
    splits, one_kernel = SPACE.complete(config)["kv_splits"], config.variant == "persistent"
    kernels = LAUNCHES[config.variant] - (splits == 1 and config.variant == "no_wait")
    owners = 1 if shape.output == "all" else shape.world
    moved = 0.0
    if one_kernel and (complete := SPACE.complete(form))["kv_splits"] > 1:
        moved += parts_bytes(shape, complete)
    if config.variant != "no_wait":
        moved += owners * shape.message_bytes
    if one_kernel and shape.world > 1:
        moved += trip_bytes(shape)
    trips = round(moved / trip_bytes(shape), 3)
    return Gap(len(steps(shape, form)) - kernels, trips, shape.world - 1)


def trip_bytes(shape: FlashDecode) -> int:
    """Bytes of one round trip: the messages of all ranks."""
    return shape.world * shape.message_bytes


def step_plans(shape: FlashDecode, form: Config, workspace: Workspace) -> dict[str, Plan]:
    """The plan of each step of BSP, a call (q, k, v, lengths, table, out), by name."""
    from tftune.kernels.flash_decode.host import prepare
    from tftune.kernels.runtime.plan import Steps

    whole = prepare(shape, form, workspace)
    if not isinstance(whole, Steps):
        raise TypeError(f"BSP of {shape} is prepared as {type(whole).__name__}, not as Steps")
    return dict(zip(steps(shape, form), whole.steps, strict=True))


def waiting_programs(shape: FlashDecode, config: Config, units: int) -> int:
    """Programs that wait for peers, on a chip of so many units: those that merge rows."""
    config = SPACE.complete(config)
    rows = shape.batch * -(-shape.own_heads // config["heads_per_program"])
    return int(min(units * dict(config.knobs).get("programs_per_unit", 1), rows))
