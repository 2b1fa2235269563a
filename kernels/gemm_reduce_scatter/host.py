"""gemm_reduce_scatter on the host: check the operands, pick the variant, launch. A plan is made
once for each shape and config."""

from __future__ import annotations

from functools import partial

from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.space import Config
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter
from tftune.kernels.gemm_reduce_scatter.space import FUSED, SPACE, payload_bytes
from tftune.kernels.runtime import gemm_reduce
from tftune.kernels.runtime.operands import both_placed_well as placed_well
from tftune.kernels.runtime.plan import Plan, checked

__all__ = ["kernel_sources", "payload_bytes", "placed_well", "prepare"]


def result_size(shape: GemmReduceScatter) -> tuple[int, int]:
    """The size of C on one rank."""
    return shape.shard_rows, shape.n


shape_of = partial(gemm_reduce.shape_of, GemmReduceScatter)
kernel_sources = partial(gemm_reduce.kernel_sources, SPACE, FUSED)


def prepare(shape: GemmReduceScatter, config: Config, workspace: Workspace) -> Plan:
    """A call (a, b, c) for this shape and config: compiled, with buffers allocated; not collective,
    and launches nothing.

    Raises ValueError as `plan.checked` does.
    """
    config = checked(SPACE, shape, config, workspace, payload_bytes(shape))
    return gemm_reduce.prepare(SPACE, FUSED, shape, config, workspace)
