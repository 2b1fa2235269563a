"""The named sets of shapes: the row-parallel projections of models, whose output tensor parallelism
adds up over the ranks. Standard library only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from tftune.kernels.core.engine_sizes import TOKENS
from tftune.kernels.core.row_parallel import RowParallel
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter

S = TypeVar("S", bound=RowParallel)


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


def sets_of(
    kind: type[S], rows: Callable[[int], Iterable[int]]
) -> dict[str, Callable[..., tuple[S, ...]]]:
    """The sets of a row-parallel operation: of all models, then of each. `rows`: every M for so
    many ranks."""

    def set_of(projections: Iterable[Projection]) -> Callable[..., tuple[S, ...]]:
        def make(world: int = 8, dtype: str = "bf16", b_layout: str = "nk") -> tuple[S, ...]:
            """Every projection at every M; raises ValueError where K cannot be split."""
            return tuple(
                kind(m, each.n, each.k, world, dtype, b_layout)
                for each in projections
                for m in rows(world)
            )

        return make

    models = {"engine": tuple(chain(*MODELS.values())), **MODELS}
    return {name: set_of(projections) for name, projections in models.items()}


SHAPE_SETS = sets_of(GemmReduceScatter, lambda world: sorted({padded(m, world) for m in TOKENS}))
