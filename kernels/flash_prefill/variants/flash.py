"""flash: blocks of keys and values go by a block of queries, with an online softmax
(FlashAttention-2, arXiv 2307.08691).

Who owns a tile: a program owns a block of queries of one head, as `dies.head_and_block` deals them.
Who writes remotely: nobody. Which flag says ready: none, a program needs operands alone.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.device.dies import head_and_block
from tftune.kernels.device.gemm import rounded

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def load_block(
    ptrs, desc, sequence, start, column, inside, WHOLE: tl.constexpr, prefill: tl.constexpr
):
    """Keys or values [BLOCK_N, D] from token `start` on; zeros from the end of the sequence on.
    WHOLE: there is no such token."""
    if prefill.LOADS == "descriptor":
        block = desc.load([sequence, start, column])
        return tl.reshape(block, (prefill.BLOCK_N, prefill.D))
    elif WHOLE:
        return tl.load(ptrs)
    else:
        return tl.load(ptrs, mask=inside[:, None], other=0.0)


@triton.jit
def attend_blocks(
    acc, top, total, q, k_ptr, v_ptr, k_desc, v_desc, sequence, column, stride, begin, end,
    rows, tokens, WHOLE: tl.constexpr, prefill: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """Go on from acc[BLOCK_M, D], top and total [BLOCK_M] (largest score and sum of weights, to the
    base 2) with the tokens from `begin` to `end`. k_ptr, v_ptr: of this head's first token; stride:
    from one token to the next. rows: tokens of the queries. WHOLE: no pair is masked."""
    BLOCK_N: tl.constexpr = prefill.BLOCK_N
    steps, dims = tl.arange(0, BLOCK_N), tl.arange(0, prefill.D)
    offsets = steps[:, None] * stride + dims[None, :]
    before = tl.cast(begin, tl.int64) * stride
    k_ptrs, v_ptrs = k_ptr + before + offsets, v_ptr + before + offsets
    scale = LOG2_E * prefill.D**-0.5
    for start in tl.range(begin, end, BLOCK_N):
        columns = start + steps
        inside = columns < tokens
        k = load_block(k_ptrs, k_desc, sequence, start, column, inside, WHOLE, prefill)
        if ARCH == "interpreter":  # its product of bf16 is wrong
            k = tl.cast(k, tl.float32)
        scores = tl.dot(q, tl.trans(k))
        if not WHOLE:
            # Causal rows past the end see zeros, and are not stored.
            visible = rows[:, None] >= columns[None, :] if prefill.CAUSAL else inside[None, :]
            scores = tl.where(visible, scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1) * scale)
        shares = tl.exp2(scores * scale - higher[:, None])
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(shares, 1)
        acc = acc * shrink[:, None]
        v = load_block(v_ptrs, v_desc, sequence, start, column, inside, WHOLE, prefill)
        if ARCH == "interpreter":
            v = tl.cast(v, tl.float32)
        acc = tl.dot(tl.cast(shares, v.dtype), v, acc)
        top = higher
        k_ptrs += BLOCK_N * stride
        v_ptrs += BLOCK_N * stride
    return acc, top, total


@triton.jit(do_not_specialize=["tokens", "q_heads", "kv_heads"])
def flash(
    q_ptr, k_ptr, v_ptr, out_ptr, k_desc, v_desc, tokens, q_heads, kv_heads,
    prefill: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """out [batch, tokens, q_heads, D] of queries of that size, and keys and values [batch, tokens,
    kv_heads, D]; a program for each block of queries of each head of each sequence."""
    BLOCK_M: tl.constexpr = prefill.BLOCK_M
    D: tl.constexpr = prefill.D
    blocks = tl.cdiv(tokens, BLOCK_M)
    sequence, head, block = head_and_block(
        tl.program_id(0), tl.num_programs(0), q_heads, blocks, prefill.MAPPING, prefill.DIES
    )
    if prefill.CAUSAL:  # the longest first, so that no long one is left for the end
        block = blocks - 1 - block
    kv_head = head // (q_heads // kv_heads)
    first = block * BLOCK_M
    rows, dims = first + tl.arange(0, BLOCK_M), tl.arange(0, D)
    row_stride, stride = q_heads * D, kv_heads * D
    before = (tl.cast(sequence, tl.int64) * tokens + first) * row_stride + head * D
    offsets = tl.arange(0, BLOCK_M)[:, None] * row_stride + dims[None, :]
    there = (rows < tokens)[:, None]
    q = tl.load(q_ptr + before + offsets, mask=there, other=0.0)
    if ARCH == "interpreter":
        q = tl.cast(q, tl.float32)
    source = tl.cast(sequence, tl.int64) * tokens * stride + kv_head * D
    top = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    end = tl.minimum(first + BLOCK_M, tokens) if prefill.CAUSAL else tokens
    whole = (first if prefill.CAUSAL else tokens) // prefill.BLOCK_N * prefill.BLOCK_N
    acc, top, total = attend_blocks(
        acc, top, total, q, k_ptr + source, v_ptr + source, k_desc, v_desc, sequence,
        kv_head * D, stride, 0, whole, rows, tokens, True, prefill, ARCH,
    )  # fmt: skip
    acc, top, total = attend_blocks(
        acc, top, total, q, k_ptr + source, v_ptr + source, k_desc, v_desc, sequence,
        kv_head * D, stride, whole, end, rows, tokens, False, prefill, ARCH,
    )  # fmt: skip
    out = rounded(acc / total[:, None], out_ptr.dtype.element_ty, ARCH)
    tl.store(out_ptr + before + offsets, out, mask=there)
