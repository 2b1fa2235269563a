"""all_sum on the host."""

from __future__ import annotations

from typing import Any

from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.space import Config
from tftune.kernels.runtime import plan
from tftune.kernels.runtime.compile import KernelSource

from . import AllSum
from .space import SPACE, blocks

TYPES = {
    "x_ptr": "*{}",
    "out_ptr": "*{}",
    **plan.WORKSPACE_TYPES,
    "generation_bytes": "i64",
    "size": "i32",
    "rank": "i32",
}


def payload_bytes(shape: AllSum) -> int:
    """Bytes of one generation: x of every rank."""
    return shape.world * shape.bytes


def kernel_sources(shape: AllSum, config: Config, chip: Chip) -> tuple[KernelSource, ...]:
    return (
        ()
        if config.variant == "bsp"
        else (_source(shape, SPACE.complete(config), chip.can.backend),)
    )


def _source(shape: AllSum, config: Config, arch: str) -> KernelSource:
    from .push import push

    types = {name: text.format(shape.dtype) for name, text in TYPES.items()}
    constants = {"BLOCK": config["block"], "WORLD": shape.world, "ARCH": arch}
    options = {"num_warps": config["num_warps"], "launch_cooperative_grid": True}
    return KernelSource(push, types, constants, ("x_ptr", "out_ptr", "control", "payload"), options)


def prepare(shape: AllSum, config: Config, workspace: Workspace) -> plan.Plan:
    """A call (x, out) for this shape and config."""
    import torch.distributed as dist

    config = plan.checked(SPACE, shape, config, workspace, payload_bytes(shape))
    if config.variant == "bsp":

        def call(x: Any, out: Any) -> None:
            out.copy_(x)
            dist.all_reduce(out, group=workspace.group)

        return call
    fixed = plan.workspace_values(workspace) | {
        "generation_bytes": workspace.generation_bytes,
        "size": shape.elements,
    }
    kernel = _source(shape, config, workspace.arch)
    return plan.launcher(
        kernel, (blocks(shape, config), 1, 1), ("x_ptr", "out_ptr"), fixed, workspace.arch
    )
