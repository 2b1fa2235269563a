"""gemm_all_reduce on the host: check the operands, pick the variant, launch. A plan is made once
for each shape and config."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.space import Config
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_all_reduce.space import SPACE, payload_bytes
from tftune.kernels.runtime import gemm_reduce
from tftune.kernels.runtime.compile import KernelSource
from tftune.kernels.runtime.operands import both_placed_well as placed_well
from tftune.kernels.runtime.operands import check_out
from tftune.kernels.runtime.plan import Plan, checked, plan_of

if TYPE_CHECKING:
    import torch

__all__ = ["gemm_all_reduce", "kernel_sources", "payload_bytes", "placed_well", "prepare"]


def gemm_all_reduce(
    a: torch.Tensor,
    b: torch.Tensor,
    workspace: Workspace,
    config: Config,
    *,
    b_layout: str = "nk",
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """The sum over ranks of a @ b, the same to the bit on every rank, computed as `config` says;
    returns `out`, or a new tensor, [M, N].

    a: [M, K/world]; b: [N, K/world] or, with b_layout "kn", [K/world, N]; both fp16 or both bf16,
    contiguous, 16-byte aligned. The first call of a shape and config compiles and allocates: make
    it before capturing a graph. Every rank must pass the same shape and config. Raises ValueError
    naming what does not fit.
    """
    shape = shape_of(a, b, workspace, b_layout)
    size = result_size(shape)
    c = a.new_empty(size) if out is None else check_out(out, size, a)
    plan_of(shape, config, workspace, prepare)(a, b, c)
    return c


def result_size(shape: GemmAllReduce) -> tuple[int, int]:
    """The size of C."""
    return shape.m, shape.n


def shape_of(
    a: torch.Tensor, b: torch.Tensor, workspace: Workspace, b_layout: str
) -> GemmAllReduce:
    """The shape of one call; raises ValueError naming what does not fit."""
    return gemm_reduce.shape_of(GemmAllReduce, a, b, workspace, b_layout)


def prepare(
    shape: GemmAllReduce, config: Config, workspace: Workspace, *, waits: str = "tile"
) -> Plan:
    """A call (a, b, c) for this shape and config: compiled, with buffers allocated; launches
    nothing. BSP over symmetric memory is collective: every rank prepares it alike. `waits`: a word
    of `device.waits`, of a fused kernel.

    Raises ValueError as `plan.checked` does.
    """
    config = checked(SPACE, shape, config, workspace, payload_bytes(shape))
    if config.variant == "push_ce":
        from tftune.kernels.gemm_all_reduce.variants.push_ce import push_ce

        return push_ce(shape, config, workspace)
    if config.variant == "vendor":
        from tftune.kernels.gemm_all_reduce.variants.vendor import vendor

        return vendor(shape, config, workspace)
    if config.variant != "bsp":
        return gemm_reduce.plan(SPACE, shape, config, workspace, waits)
    from tftune.kernels.gemm_all_reduce.variants.bsp import bsp

    return bsp(shape, workspace, config["form"])


def kernel_sources(shape: GemmAllReduce, config: Config, chip: Chip) -> tuple[KernelSource, ...]:
    """What must be compiled ahead for this config on this chip; nothing for the library's calls."""
    if config.variant == "bsp":
        return ()
    if config.variant == "push_ce":
        from tftune.kernels.gemm_all_reduce.variants.push_ce import kernels

        return kernels(shape, SPACE.complete(config), chip.can.backend)
    if config.variant == "vendor":
        from tftune.kernels.gemm_all_reduce.variants.vendor import kernel

        return (kernel(shape, SPACE.complete(config), chip.can.backend),)
    return (gemm_reduce.source(SPACE, shape, config, chip.can.backend),)
