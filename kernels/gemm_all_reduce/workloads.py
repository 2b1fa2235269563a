"""The named sets of shapes: the row-parallel projections of models at the batch sizes that engines
capture, and at prefill without sequence parallelism. Standard library only."""

from __future__ import annotations

from tftune.kernels.core.engine_sizes import TOKENS
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_reduce_scatter.workloads import sets_of

SHAPE_SETS = sets_of(GemmAllReduce, lambda world: TOKENS)
