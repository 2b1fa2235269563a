"""bsp: a kernel that packs o and lse, the library's all-to-all or all-gather, and a kernel that
merges what all ranks sent.

Who owns a tile: pieces, some rows of one message, are dealt to the programs in turn.
Who writes remotely: the library alone.
Which flag says ready: none; kernels and the collective follow each other in stream order.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.device.merge import merge_piece, message_bytes, store_piece


@triton.jit(do_not_specialize=["lse_batch", "lse_head", "batch", "rank"])
def pack(
    o_ptr, lse_ptr, o_batch, o_head, lse_batch, lse_head, messages, batch, rank,
    cut: tl.constexpr,
):  # fmt: skip
    """messages = every rank's rows, one message behind the other; one message where every rank
    merges every head."""
    MESSAGES: tl.constexpr = 1 if cut.ALL else cut.WORLD
    rows = batch * cut.OWN
    pieces = tl.cdiv(rows, cut.ROWS)
    for number in tl.range(tl.program_id(0), pieces * MESSAGES, tl.num_programs(0), num_stages=1):
        piece, to = number // MESSAGES, number % MESSAGES
        message = messages + to * message_bytes(rows, cut)
        store_piece(
            o_ptr, lse_ptr, o_batch, o_head, lse_batch, lse_head, message, piece, rows, to, cut
        )


@triton.jit(do_not_specialize=["batch"])
def merge(out_ptr, received, batch, cut: tl.constexpr, ARCH: tl.constexpr):
    """out = the rows of all messages merged."""
    rows = batch * cut.OWN
    for piece in tl.range(
        tl.program_id(0), tl.cdiv(rows, cut.ROWS), tl.num_programs(0), num_stages=1
    ):
        merge_piece(out_ptr, received, piece, rows, cut, ARCH)
