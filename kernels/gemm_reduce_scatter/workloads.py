"""The named sets of shapes: the row-parallel projections of models, whose output tensor parallelism
adds up over the ranks. Standard library only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tftune.kernels.core.engine_sizes import TOKENS
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter


@dataclass(frozen=True)
class Projection:
    """One row-parallel linear layer: its inner size is split over the ranks."""

    name: str
    n: int
    k: int
    """K of all ranks together."""


# config.json of meta-llama/Meta-Llama-3-70B and Llama-3.1-405B (hidden 8192 and 16384, 64 and 128
# heads of 128, intermediate 28672 and 53248), and of deepseek-ai/DeepSeek-V3 (hidden 7168, 128
# value heads of 128, dense intermediate 18432, shared expert 2048).
LLAMA3_70B = (Projection("attention output", 8192, 64 * 128), Projection("down", 8192, 28672))
LLAMA3_405B = (Projection("attention output", 16384, 128 * 128), Projection("down", 16384, 53248))
DEEPSEEK_V3 = (
    Projection("attention output", 7168, 128 * 128),
    Projection("down of the dense layers", 7168, 18432),
    Projection("down of the shared expert", 7168, 2048),
)
MODELS = {"llama3-70b": LLAMA3_70B, "llama3-405b": LLAMA3_405B, "deepseek-v3": DEEPSEEK_V3}


def padded(m: int, world: int) -> int:
    """The next multiple of the world.

    >>> padded(3000, 16)
    3008
    """
    return -(-m // world) * world


def _set_of(projections: tuple[Projection, ...]) -> Callable[..., tuple[GemmReduceScatter, ...]]:
    def make(
        world: int = 8, dtype: str = "bf16", b_layout: str = "nk"
    ) -> tuple[GemmReduceScatter, ...]:
        """Every projection at every M of TOKENS; raises ValueError where K cannot be split."""
        rows = sorted({padded(m, world) for m in TOKENS})
        return tuple(
            GemmReduceScatter(m, each.n, each.k, world, dtype, b_layout)
            for each in projections
            for m in rows
        )

    return make


SHAPE_SETS = {
    "engine": _set_of(tuple(each for model in MODELS.values() for each in model)),
    **{name: _set_of(projections) for name, projections in MODELS.items()},
}
