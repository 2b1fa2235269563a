"""Which (sequence, head, block of queries) each program of flash_prefill computes. Standard library
only.

The hardware deals programs to dies in turn, and each die has an L2 of its own, which programs share
as far as they read the same keys and values. The four orders are those of arXiv 2511.02132; the
formulas are not, since the printed one covers all work for one sequence only, and where dies divide
the heads. `kernels.device.dies` says the same on the device, and a test holds the two together.
"""

from __future__ import annotations

from tftune.kernels.core.tile_order import by_die

MAPPINGS = (
    "naive_block_first", "swizzled_block_first", "naive_head_first", "swizzled_head_first",
)  # fmt: skip
"""Block-first: all heads of one block before the next block. Head-first: all blocks of one head
before the next head. Swizzled: each die has heads of its own, in that order."""
SWIZZLED = ("swizzled_block_first", "swizzled_head_first")


def place(
    number: int, batch: int, heads: int, blocks: int, mapping: str, dies: int
) -> tuple[int, int, int]:
    """The sequence, head and block of program `number` out of batch * heads * blocks.

    >>> [place(n, 1, 2, 2, "naive_head_first", 2)[1:] for n in range(4)]
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    >>> [place(n, 1, 2, 2, "swizzled_head_first", 2)[1:] for n in range(4)]
    [(0, 0), (1, 0), (0, 1), (1, 1)]
    """
    if mapping == "swizzled_head_first":
        number = by_die(number, batch * heads * blocks, dies)
    if mapping in ("naive_head_first", "swizzled_head_first"):
        row, block = divmod(number, blocks)
        return *divmod(row, heads), block
    sequence, within = divmod(number, heads * blocks)
    if mapping == "naive_block_first":
        return sequence, within % heads, within // heads
    own = heads // dies
    """Heads that a die has for itself; those left over are dealt in runs of blocks."""
    whole = own * dies * blocks
    if within < whole:
        turn, die = divmod(within, dies)
        return sequence, die * own + turn % own, turn // own
    rest = by_die(within - whole, heads * blocks - whole, dies)
    return sequence, own * dies + rest // blocks, rest % blocks
