"""The named sets of shapes: the query heads of public models, at the batches of a server that
decodes. Standard library only."""

from __future__ import annotations

from tftune.kernels.core.engine_sizes import CAPTURED
from tftune.kernels.merge_attention import MergeAttention

HEADS = (32, 64, 128)
"""Query heads of 128 of Llama 3 8B, 70B and 405B (config.json of each)."""


def engine(
    world: int = 8, dtype: str = "bf16", output: str = "heads", base: str = "e"
) -> tuple[MergeAttention, ...]:
    """32, 64 and 128 heads of 128, batches of 1 to 512."""
    return tuple(
        MergeAttention(batch, heads, 128, world, dtype, output, base)
        for heads in HEADS
        for batch in CAPTURED
    )


def odd(
    world: int = 8, dtype: str = "bf16", output: str = "heads", base: str = "e"
) -> tuple[MergeAttention, ...]:
    """Batches between those of `engine`, 40 and 96 heads of 128, 16 of 256 and 48 of 64."""
    return tuple(
        MergeAttention(batch, heads, head_dim, world, dtype, output, base)
        for heads, head_dim in ((40, 128), (96, 128), (16, 256), (48, 64))
        for batch in (1, 3, 7, 20, 50, 100, 200)
        if output == "all" or heads % world == 0
    )


SHAPE_SETS = {"engine": engine, "odd": odd}
