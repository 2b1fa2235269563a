"""The named sets of shapes: the paper's, and a model whose decode shards the context over the
ranks. Standard library only."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from tftune.kernels.flash_decode import FlashDecode

BATCHES = (1, 4, 8, 16)
MEMORY_BYTES = 32 << 30
"""Bytes of keys and values in one set of operands: a node bench keeps three sets, and MI300X and
H200 have room for them."""


def paper(
    world: int = 8, dtype: str = "fp16", output: str = "all", page_size: int = 0
) -> tuple[FlashDecode, ...]:
    """Batch 1, 4, 8, 16 with 1K, 2K, ... 256K tokens of each sequence on each rank; 96 query heads
    on 12 KV heads of 128.

    The heads, batches and lengths of the authors' files for "Eliminating Multi-GPU Performance
    Taxes" (arXiv 2511.02168): 8K to 512K tokens per rank there, up to what memory allows. Theirs
    have pages of one token; page_size=1 is that.
    """
    lengths = [1024 << doublings for doublings in range(9)]
    shapes = [
        FlashDecode(batch, 96, 12, 128, kv_len, world, dtype, output, page_size)
        for batch in BATCHES
        for kv_len in lengths
    ]
    return tuple(shape for shape in shapes if shape.cache_bytes <= MEMORY_BYTES)


def _contexts(q_heads: int, kv_heads: int, longest: int) -> Callable[..., tuple[FlashDecode, ...]]:
    def make(
        world: int = 8, dtype: str = "fp16", output: str = "all", page_size: int = 0
    ) -> tuple[FlashDecode, ...]:
        """Every batch with contexts of 8K tokens, doubled up to the model's longest, split evenly
        over the ranks."""
        doublings = range((longest // 8192).bit_length())
        layout = world, dtype, output, page_size
        return tuple(
            FlashDecode(batch, q_heads, kv_heads, 128, (8192 << number) // world, *layout)
            for batch in BATCHES
            for number in doublings
        )

    return make


ODD_BATCHES, ODD_LENGTHS = (1, 2, 3, 6, 12, 24), (1500, 4000, 9000, 18000, 40000)


def odd(
    world: int = 8, dtype: str = "fp16", output: str = "all", page_size: int = 0
) -> tuple[FlashDecode, ...]:
    """Batches and lengths that are no powers of two, for 64 and 32 query heads on 8 KV heads of 128
    (Llama 3 70B and 8B)."""
    page, layout = max(page_size, 1), (world, dtype, output, page_size)
    return tuple(
        FlashDecode(batch, q_heads, 8, 128, kv_len - kv_len % page, *layout)
        for q_heads in (64, 32)
        for batch in ODD_BATCHES
        for kv_len in ODD_LENGTHS
    )


MODELS = {
    "llama3-8b": (32, 8),
    "llama3-70b": (64, 8),
    "llama3-405b": (128, 8),
    "qwen2.5-7b": (28, 4),
    "qwen2.5-32b": (40, 8),
    "qwen3-30b-a3b": (32, 4),
    "qwen3-235b-a22b": (64, 4),
    "mixtral-8x22b": (48, 8),
    "mistral-large": (96, 8),
}
"""Query heads and KV heads, all of 128 elements: num_attention_heads and num_key_value_heads of
config.json of Llama-3.1-8B, -70B, -405B (also arXiv 2407.21783, table 3), Qwen2.5-7B, -32B (also
arXiv 2412.15115, table 1), Qwen3-30B-A3B, -235B-A22B (also arXiv 2505.09388, table 2),
Mixtral-8x22B-v0.1 and Mistral-Large-Instruct-2407.

Left out because another one has the same heads: Mistral 7B, Mixtral 8x7B and Qwen3-8B
(`llama3-8b`), Qwen2.5-72B and Qwen3-32B (`llama3-70b`), Qwen2.5-14B (`qwen2.5-32b`).
"""
CALLS = ((1, 65_536), (3, 40_003), (24, 12_009), (96, 5_001), (256, 2_001))
"""Sequences of a batch, and tokens of each on all ranks together."""
LAYOUT_HEADS = ((14, 2, 64), (64, 8, 64), (16, 16, 128), (40, 8, 128), (16, 8, 256), (16, 1, 256))
"""Query heads, KV heads, head_dim: those of Qwen2.5-0.5B, gpt-oss-120b, OLMo-2-1B (groups of 1),
Qwen2.5-32B and Gemma 2 9B, as in their config.json; and, of no model, 16 heads on one of 256."""
ODD_CALLS = ((1, 30_001), (5, 9_003), (33, 4_007), (129, 1_001))


def rounded_up(tokens: int, world: int, page_size: int) -> int:
    """Tokens of one rank's part of a sequence, in whole pages."""
    each, page = -(-tokens // world), max(page_size, 1)
    return -(-each // page) * page


def engine(
    world: int = 8, dtype: str = "bf16", output: str = "heads", page_size: int = 16
) -> tuple[FlashDecode, ...]:
    """Every model of MODELS at every call of CALLS, as decode context parallelism calls it: bf16,
    in pages, each rank its own heads; without models whose heads so many ranks cannot share."""
    layout = world, dtype, output, page_size
    return tuple(
        FlashDecode(batch, q_heads, kv_heads, 128, rounded_up(tokens, world, page_size), *layout)
        for q_heads, kv_heads in MODELS.values()
        if output == "all" or q_heads % world == 0
        for batch, tokens in CALLS
    )


def layouts(world: int = 8, dtype: str = "bf16") -> tuple[FlashDecode, ...]:
    """Every head_dim with both outputs and every page size, at odd batches and lengths: what the
    audit compiles, and what a selector that learned `engine` has not seen.

    Heads and calls are dealt in turn, so that each layout has one of them.
    """
    shapes = []
    for number, (head_dim, output, page_size) in enumerate(
        product((64, 128, 256), ("all", "heads"), (0, 16, 64))
    ):
        heads = [
            (q, kv)
            for q, kv, size in LAYOUT_HEADS
            if size == head_dim and (output == "all" or q % world == 0)
        ]
        (q_heads, kv_heads), (batch, tokens) = heads[number % len(heads)], ODD_CALLS[number % 4]
        kv_len = rounded_up(tokens, world, page_size)
        layout = world, dtype, output, page_size
        shapes.append(FlashDecode(batch, q_heads, kv_heads, head_dim, kv_len, *layout))
    return tuple(shapes)


# 64 heads and 8 KV heads of 128, contexts of up to 128K tokens: arXiv 2407.21783, table 3 and
# 3.4.2, and config.json of meta-llama/Llama-3.1-70B.
SHAPE_SETS = {
    "paper": paper,
    "llama3-70b": _contexts(q_heads=64, kv_heads=8, longest=131_072),
    "odd": odd,
    "engine": engine,
    "layouts": layouts,
}
