"""gemm_reduce_scatter on the host: check the operands, pick the variant, launch. A plan is made
once for each shape and config."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.partials import is_registered
from tftune.kernels.core.space import Config
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter
from tftune.kernels.gemm_reduce_scatter.space import SPACE, payload_bytes
from tftune.kernels.runtime import gemm_reduce
from tftune.kernels.runtime.compile import KernelSource
from tftune.kernels.runtime.operands import both_placed_well as placed_well
from tftune.kernels.runtime.operands import check_out
from tftune.kernels.runtime.plan import Plan, checked, plan_of

if TYPE_CHECKING:
    import torch

__all__ = ["gemm_reduce_scatter", "kernel_sources", "payload_bytes", "placed_well", "prepare"]


def gemm_reduce_scatter(
    a: torch.Tensor,
    b: torch.Tensor,
    workspace: Workspace,
    config: Config,
    *,
    b_layout: str = "nk",
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """This rank's rows of the sum over ranks of a @ b, computed as `config` says; returns `out`, or
    a new tensor, [M/world, N].

    a: [M, K/world]; b: [N, K/world] or, with b_layout "kn", [K/world, N]; both fp16 or both bf16,
    contiguous, 16-byte aligned; M a multiple of the world. The first call of a shape and config
    compiles and allocates: make it before capturing a graph. Every rank must pass the same shape
    and config. Raises ValueError naming what does not fit.
    """
    shape = shape_of(a, b, workspace, b_layout)
    size = result_size(shape)
    c = a.new_empty(size) if out is None else check_out(out, size, a)
    plan_of(shape, config, workspace, prepare)(a, b, c)
    return c


def result_size(shape: GemmReduceScatter) -> tuple[int, int]:
    """The size of C on one rank."""
    return shape.shard_rows, shape.n


def shape_of(
    a: torch.Tensor, b: torch.Tensor, workspace: Workspace, b_layout: str
) -> GemmReduceScatter:
    """The shape of one call; raises ValueError naming what does not fit."""
    return gemm_reduce.shape_of(GemmReduceScatter, a, b, workspace, b_layout)


def prepare(shape: GemmReduceScatter, config: Config, workspace: Workspace) -> Plan:
    """A call (a, b, c) for this shape and config: compiled, with buffers allocated; not collective,
    and launches nothing.

    Raises ValueError as `plan.checked` does.
    """
    config = checked(SPACE, shape, config, workspace, payload_bytes(shape))
    if config.variant in ("push", "pull", "relay"):
        return gemm_reduce.plan(SPACE, shape, config, workspace)
    if config.variant == "push_ce":
        from tftune.kernels.gemm_reduce_scatter.variants.push_ce import push_ce

        return push_ce(shape, config, workspace)
    if config.variant == "vendor_ce":
        from tftune.kernels.gemm_reduce_scatter.variants.vendor_ce import vendor_ce

        return vendor_ce(shape, config, workspace)
    registered = shape.world > 1 and is_registered(config["form"])
    if config.variant == "bsp":
        from tftune.kernels.gemm_reduce_scatter.variants.bsp import bsp

        return bsp(shape, workspace, registered)
    from tftune.kernels.gemm_reduce_scatter.variants.bsp_chunked import bsp_chunked

    return bsp_chunked(shape, workspace, config["chunks"], registered)


def kernel_sources(
    shape: GemmReduceScatter, config: Config, chip: Chip
) -> tuple[KernelSource, ...]:
    """What must be compiled ahead for this config on this chip; nothing for the library's calls."""
    config = SPACE.complete(config)
    if config.variant in ("bsp", "bsp_chunked"):
        return ()
    if config.variant == "push_ce":
        from tftune.kernels.gemm_reduce_scatter.variants.push_ce import kernels

        return kernels(shape, config, chip.can.backend)
    if config.variant == "vendor_ce":
        from tftune.kernels.gemm_reduce_scatter.variants.vendor_ce import kernel

        return (kernel(shape, chip.can.backend),)
    return (gemm_reduce.source(SPACE, shape, config, chip.can.backend),)
