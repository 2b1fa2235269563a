"""The named sets of shapes: the row-parallel projections of models at the batch sizes that engines
capture, and at prefill without sequence parallelism. Standard library only."""

from __future__ import annotations

from collections.abc import Callable

from tftune.kernels.core.engine_sizes import TOKENS
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_reduce_scatter.workloads import MODELS, Projection


def _set_of(projections: tuple[Projection, ...]) -> Callable[..., tuple[GemmAllReduce, ...]]:
    def make(
        world: int = 8, dtype: str = "bf16", b_layout: str = "nk"
    ) -> tuple[GemmAllReduce, ...]:
        """Every projection at every M of TOKENS; raises ValueError where K cannot be split."""
        return tuple(
            GemmAllReduce(m, each.n, each.k, world, dtype, b_layout)
            for each in projections
            for m in TOKENS
        )

    return make


SHAPE_SETS = {
    "engine": _set_of(tuple(each for model in MODELS.values() for each in model)),
    **{name: _set_of(projections) for name, projections in MODELS.items()},
}
