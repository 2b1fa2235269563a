"""The named sets of shapes: the paper's, the projections of models whose input tensor parallelism
gathers, and a grid to learn from.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tftune.kernels import all_gather_gemm
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.engine_sizes import TOKENS
from tftune.kernels.core.shape import HEAP, LOCAL

ROWS = (16, 128, 1024, 4096)
"""M, the tokens of one call: two batches of decoding, two of prefill."""


@dataclass(frozen=True)
class Projection:
    """One column-parallel linear layer: its columns are split over the ranks, and its input is
    sharded until this layer needs it whole."""

    name: str
    columns: int
    """N of all ranks together."""
    k: int


# Column-parallel in Megatron-LM (arXiv 1909.08053); with sequence parallelism (arXiv 2205.05198)
# the input of each is gathered. A row-parallel layer (attention output, MLP down) ends in a
# reduce-scatter instead, and is not here.

# Hidden 8192, 64 heads and 8 KV heads of 128, intermediate 28672, vocabulary 128256: arXiv
# 2407.21783, table 3, and config.json of meta-llama/Meta-Llama-3-70B.
LLAMA3_70B = (
    Projection("qkv", columns=(64 + 2 * 8) * 128, k=8192),
    Projection("gate_up", columns=2 * 28672, k=8192),
    Projection("lm_head", columns=128256, k=8192),
)

# Hidden 16384, 128 heads and 8 KV heads of 128, intermediate 53248, vocabulary 128256: the same
# table, and config.json of meta-llama/Llama-3.1-405B.
LLAMA3_405B = (
    Projection("qkv", columns=(128 + 2 * 8) * 128, k=16384),
    Projection("gate_up", columns=2 * 53248, k=16384),
    Projection("lm_head", columns=128256, k=16384),
)

# Hidden 7168, 128 heads of 128 + 64 (query, key) and 128 (value), q_lora_rank 1536, kv_lora_rank
# 512, dense intermediate 18432, one shared expert of 2048, vocabulary 129280: arXiv 2412.19437,
# 4.2, and config.json of deepseek-ai/DeepSeek-V3. Not here: the projections down to the latents
# (1536 + 512 + 64 columns), which every rank keeps whole and applies to its own tokens, so that
# what is gathered is the narrow latent, the input of q_up and kv_up; and the routed experts, which
# tokens reach through an all-to-all, not a gather. Decoding absorbs kv_up into attention: its small
# M stand for chunks of a prefill.
DEEPSEEK_V3 = (
    Projection("q_up", columns=128 * (128 + 64), k=1536),
    Projection("kv_up", columns=128 * (128 + 128), k=512),
    Projection("gate_up of the dense layers", columns=2 * 18432, k=7168),
    Projection("gate_up of the shared expert", columns=2 * 2048, k=7168),
    Projection("lm_head", columns=129280, k=7168),
)

MODELS = {"llama3-70b": LLAMA3_70B, "llama3-405b": LLAMA3_405B, "deepseek-v3": DEEPSEEK_V3}


def _set_of(projections: tuple[Projection, ...]) -> Callable[..., tuple[AllGatherGemm, ...]]:
    def make(
        world: int = 8, dtype: str = "fp16", shard: str = "k", b_layout: str = "kn"
    ) -> tuple[AllGatherGemm, ...]:
        """Every projection at every M of ROWS, N being its columns over `world`; raises ValueError
        where they cannot be split evenly."""
        for projection in projections:
            if projection.columns % world:
                raise ValueError(
                    f"the {projection.columns} columns of {projection.name} must be divisible by "
                    f"world={world}"
                )
        return tuple(
            AllGatherGemm(m, p.columns // world, p.k, world, dtype, shard, b_layout)
            for p in projections
            for m in ROWS
        )

    return make


GRID_ROWS = (1, 8, 32, 128, 512, 1024, 2048, 8192)
# N of one rank and K, the same whatever the world: layers as nodes of 2, 4 and 8 ranks split them,
# no pair far from all others. Beside the models above, from config.json of each: Llama-3.2-1B
# (hidden 2048, 32 + 2 x 8 heads of 64, intermediate 8192), Llama-3.2-3B (3072, 24 + 2 x 8 heads of
# 128, 8192) and Llama-3.1-8B (4096, 32 + 2 x 8 heads of 128, 14336) of meta-llama; Qwen2.5-3B
# (2048, intermediate 11008) and Qwen2.5-14B (5120, 40 + 2 x 8 heads of 128, 13824) of Qwen.
GRID = (
    (1536, 2048),  # Llama 1B qkv, of 2
    (2048, 2048),  # Llama 1B gate_up, of 8
    (2752, 2048),  # Qwen 3B gate_up, of 8: not a multiple of 128
    (4096, 2048),  # Llama 1B gate_up, of 4
    (5504, 2048),  # Qwen 3B gate_up, of 4
    (1280, 3072),  # Llama 3B qkv, of 4
    (4096, 3072),  # Llama 3B gate_up, of 4
    (1536, 4096),  # 8B qkv, of 4
    (3584, 4096),  # 8B gate_up, of 8
    (7168, 4096),  # 8B gate_up, of 4
    (16032, 4096),  # 8B lm_head, of 8: not a multiple of any tile
    (1792, 5120),  # Qwen 14B qkv, of 4
    (6912, 5120),  # Qwen 14B gate_up, of 4
    (1024, 7168),  # DeepSeek-V3 shared expert, of 4
    (4608, 7168),  # DeepSeek-V3 dense gate_up, of 8
    (9216, 7168),  # DeepSeek-V3 dense gate_up, of 4
    (1280, 8192),  # 70B qkv, of 8
    (2560, 8192),  # 70B qkv, of 4
    (3584, 8192),  # 70B gate, of 8: the paper's
    (7168, 8192),  # 70B gate_up, of 8
    (14336, 8192),  # 70B gate_up, of 4
    (2304, 16384),  # 405B qkv, of 8
    (4608, 16384),  # 405B qkv, of 4
    (13312, 16384),  # 405B gate_up, of 8
)


def grid(
    world: int = 8, dtype: str = "fp16", shard: str = "k", b_layout: str = "kn"
) -> tuple[AllGatherGemm, ...]:
    """Every (N, K) of GRID at every M of GRID_ROWS that can be sharded: what a selector is trained
    and judged on."""
    rows = [m for m in GRID_ROWS if shard == "k" or m % world == 0]
    return tuple(
        AllGatherGemm(m, n, k, world, dtype, shard, b_layout) for n, k in GRID for m in rows
    )


# What inference engines call: bf16, weights [N, K] (nn.Linear), A gathered along tokens before a
# column-parallel projection. N of one rank of 2, 4 or 8; from config.json of each: as above, and
# Qwen2.5-7B (hidden 3584, intermediate 18944), Gemma-2-27B (4608, 36864).
ENGINE = (
    (1536, 2048),  # Llama 1B qkv, of 2
    (8192, 2048),  # Llama 1B gate_up, of 2
    (4096, 3072),  # Llama 3B gate_up, of 4
    (4736, 3584),  # Qwen 7B gate_up, of 8
    (18944, 3584),  # Qwen 7B gate_up, of 2
    (1536, 4096),  # 8B qkv, of 4
    (3072, 4096),  # 8B qkv, of 2
    (7168, 4096),  # 8B gate_up, of 4
    (14336, 4096),  # 8B gate_up, of 2
    (9216, 4608),  # Gemma 27B gate_up, of 8
    (1792, 5120),  # Qwen 14B qkv, of 4
    (3456, 5120),  # Qwen 14B gate_up, of 8
    (13824, 5120),  # Qwen 14B gate_up, of 2
    (1024, 7168),  # DeepSeek-V3 shared expert, of 4
    (4608, 7168),  # DeepSeek-V3 dense gate_up, of 8
    (18432, 7168),  # DeepSeek-V3 dense gate_up, of 2
    (1280, 8192),  # 70B qkv, of 8
    (2560, 8192),  # 70B qkv, of 4
    (5120, 8192),  # 70B qkv, of 2
    (7168, 8192),  # 70B gate_up, of 8
    (14336, 8192),  # 70B gate_up, of 4
    (28672, 8192),  # 70B gate_up, of 2
    (2304, 16384),  # 405B qkv, of 8
    (9216, 16384),  # 405B qkv, of 2
    (13312, 16384),  # 405B gate_up, of 8
)
ENGINE_ROWS = (*TOKENS, 16384)
MOST_WORK = 2.5e12
"""M N K of one rank at most, some 8 ms on an H200: what is larger grows in proportion."""
HEAP_LAYERS = ((2560, 8192), (7168, 8192), (7168, 4096))
HEAP_ROWS = (48, 400, 1024, 4096, 8192)
BETWEEN = ((3584, 8192), (7168, 4096), (1792, 5120))
BETWEEN_ROWS = (3, 12, 24, 40, 56, 96, 192, 320, 640, 1536, 3000, 6000)


def engine(
    world: int = 8,
    dtype: str = "bf16",
    shard: str = "m",
    b_layout: str = "nk",
    operands: str = LOCAL,
) -> tuple[AllGatherGemm, ...]:
    """Every (N, K) of ENGINE at every M of ENGINE_ROWS that ranks can share, as engines lay tensors
    out."""
    return tuple(
        AllGatherGemm(m, n, k, world, dtype, shard, b_layout, operands)
        for n, k in ENGINE
        for m in ENGINE_ROWS
        if m % world == 0 and m * n * k <= MOST_WORK
    )


def heap(
    world: int = 8, dtype: str = "bf16", shard: str = "m", b_layout: str = "nk"
) -> tuple[AllGatherGemm, ...]:
    """Three layers of `engine`, each with A outside of the symmetric heap and in it: what reading A
    in place gains."""
    return tuple(
        AllGatherGemm(m, n, k, world, dtype, shard, b_layout, operands)
        for n, k in HEAP_LAYERS
        for m in HEAP_ROWS
        if shard == "k" or m % world == 0
        for operands in (LOCAL, HEAP)
    )


def between(
    world: int = 8, dtype: str = "fp16", shard: str = "k", b_layout: str = "kn"
) -> tuple[AllGatherGemm, ...]:
    """Three layers at M between those of `grid` and `paper`."""
    rows = [m for m in BETWEEN_ROWS if shard == "k" or m % world == 0]
    return tuple(
        AllGatherGemm(m, n, k, world, dtype, shard, b_layout) for n, k in BETWEEN for m in rows
    )


SHAPE_SETS = (
    all_gather_gemm.SHAPE_SETS
    | {name: _set_of(projections) for name, projections in MODELS.items()}
    | {"grid": grid, "engine": engine, "between": between, "heap": heap}
)
