"""What a batch's lengths come to, in one small kernel of one program: its tokens, the longest
sequence, how many are empty."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["batch"])
def facts_kernel(lengths_ptr, facts_ptr, batch, BLOCK: tl.constexpr):
    """facts_ptr: int64[3], the sum of lengths_ptr int32[batch], the largest, and how many are 0."""
    total = tl.zeros((BLOCK,), tl.int64)
    longest = tl.zeros((BLOCK,), tl.int32)
    empty = tl.zeros((BLOCK,), tl.int64)
    for start in range(0, batch, BLOCK):
        index = start + tl.arange(0, BLOCK)
        lengths = tl.load(lengths_ptr + index, mask=index < batch, other=0)
        total += tl.cast(lengths, tl.int64)
        longest = tl.maximum(longest, lengths)
        empty += tl.cast((lengths == 0) & (index < batch), tl.int64)
    tl.store(facts_ptr, tl.sum(total, 0))
    tl.store(facts_ptr + 1, tl.cast(tl.max(longest, 0), tl.int64))
    tl.store(facts_ptr + 2, tl.sum(empty, 0))
