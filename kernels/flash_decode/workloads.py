"""The named sets of shapes: the paper's, and a model whose decode shards the context over the
ranks. Standard library only."""

from __future__ import annotations

from collections.abc import Callable

from tftune.kernels.flash_decode import FlashDecode

BATCHES = (1, 4, 8, 16)
MEMORY_BYTES = 32 << 30
"""Of keys and values in one set of operands: a node bench keeps three sets, and MI300X and H200
have room for them."""


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
        return tuple(
            FlashDecode(
                batch,
                q_heads,
                kv_heads,
                128,
                (8192 << number) // world,
                world,
                dtype,
                output,
                page_size,
            )
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
    return tuple(
        FlashDecode(
            batch,
            q_heads,
            8,
            128,
            kv_len - kv_len % max(page_size, 1),
            world,
            dtype,
            output,
            page_size,
        )
        for q_heads in (64, 32)
        for batch in ODD_BATCHES
        for kv_len in ODD_LENGTHS
    )


# 64 heads and 8 KV heads of 128, contexts of up to 128K tokens: arXiv 2407.21783, table 3 and
# 3.4.2, and config.json of meta-llama/Llama-3.1-70B.
SHAPE_SETS = {
    "paper": paper,
    "llama3-70b": _contexts(q_heads=64, kv_heads=8, longest=131_072),
    "odd": odd,
}
