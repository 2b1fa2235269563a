"""The named sets of shapes: prefills of Llama 3, those of the paper on mappings, and odd ones.
Standard library only."""

from __future__ import annotations

from tftune.kernels.flash_prefill import FlashPrefill

LLAMA3_HEADS = (32, 64, 128)
"""Query heads of Llama 3 8B, 70B and 405B, on 8 KV heads of 128 (arXiv 2407.21783, table 3)."""
KV_HEADS = 8
TENSOR_PARALLEL = (1, 8)
"""GPUs that share the heads of one layer: with 8 of them each has one KV head."""
MEMORY_BYTES = 32 << 30
"""Bytes of one set of operands: a node bench keeps two sets and references."""
BATCHES = (1, 2, 4, 8)
CONTEXTS = (8192, 32_768, 131_072)


def _fitting(shapes: list[FlashPrefill]) -> tuple[FlashPrefill, ...]:
    return tuple(shape for shape in shapes if shape.local_bytes <= MEMORY_BYTES)


def llama3(dtype: str = "bf16", causal: str = "yes") -> tuple[FlashPrefill, ...]:
    """The three models with 1K to 32K tokens of one sequence, and 4 of 2K: heads of a GPU that has
    a whole layer, or an eighth of it."""
    tokens = ((1, 1024), (4, 2048), (1, 4096), (1, 8192), (1, 16_384), (1, 32_768))
    return _fitting(
        [
            FlashPrefill(batch, heads // gpus, KV_HEADS // gpus, 128, length, 1, dtype, causal)
            for gpus in TENSOR_PARALLEL
            for heads in LLAMA3_HEADS
            for batch, length in tokens
        ]
    )


def paper_mha(dtype: str = "fp16", causal: str = "no") -> tuple[FlashPrefill, ...]:
    """As many KV heads as query heads: 8 to 128 of 128, 8K to 128K tokens, 1 to 8 sequences
    (arXiv 2511.02132, which names neither dtype nor mask; DeepSeek V3's prefill has 128 heads)."""
    return _fitting(
        [
            FlashPrefill(batch, heads, heads, 128, length, 1, dtype, causal)
            for heads in (8, 16, 32, 64, 128)
            for length in CONTEXTS
            for batch in BATCHES
        ]
    )


def paper_gqa(dtype: str = "fp16", causal: str = "no") -> tuple[FlashPrefill, ...]:
    """The same of the heads of Llama 3."""
    return _fitting(
        [
            FlashPrefill(batch, heads, KV_HEADS, 128, length, 1, dtype, causal)
            for heads in LLAMA3_HEADS
            for length in CONTEXTS
            for batch in BATCHES
        ]
    )


def odd(dtype: str = "bf16", causal: str = "yes") -> tuple[FlashPrefill, ...]:
    """Heads that no power of two divides, heads of 64, and lengths between those of the other
    sets."""
    return tuple(
        FlashPrefill(batch, q_heads, kv_heads, head_dim, length, 1, dtype, causal)
        for q_heads, kv_heads, head_dim in ((12, 12, 64), (28, 4, 128), (40, 10, 128), (71, 1, 64))
        for batch, length in ((1, 777), (3, 1500), (1, 5000), (2, 9001), (1, 20_000))
    )


SHAPE_SETS = {"llama3": llama3, "paper-mha": paper_mha, "paper-gqa": paper_gqa, "odd": odd}
