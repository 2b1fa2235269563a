"""one_shot: each rank stores every peer's rows into that peer's inbox, and merges its own.

Who owns a tile: pieces, some rows of one message, are dealt to the programs in turn, a piece of
each peer's message before the next piece; who merges a piece may be another program.
Who writes remotely: each program stores its pieces into the inbox of the rank that merges them.
Which flag says ready: flag[source][piece] in the reader's memory, set after the piece's stores.

Two generations suffice: there is at least one piece, and who ends a call has waited for a piece of
every peer. A peer sends in call e after its call e-1 ended, so it has heard of this rank's e-1,
which began after this rank's e-2, the last to read the same generation.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import (
    begin,
    finish,
    flag,
    generation_of,
    peer,
    signal,
    wait_all,
    work_range,
)
from tftune.kernels.device.merge import merge_piece, message_bytes, store_piece


@triton.jit(do_not_specialize=["lse_batch", "lse_head", "batch", "rank"])
def one_shot(
    o_ptr, lse_ptr, out_ptr, o_batch, o_head, lse_batch, lse_head,
    control, payload, control_bases, payload_bases, generation_bytes, batch, rank,
    cut: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """out = the rows of all ranks merged. o_batch to lse_head: strides of o and lse."""
    WORLD: tl.constexpr = cut.WORLD
    pid, programs, epoch = tl.program_id(0), tl.num_programs(0), begin(control)
    inbox = payload + generation_of(epoch) * generation_bytes
    rows = batch * cut.OWN
    pieces = tl.cdiv(rows, cut.ROWS)
    own_message = inbox + rank * message_bytes(rows, cut)
    for number in tl.range(pid, pieces * WORLD, programs, num_stages=1):
        piece, to = number // WORLD, (rank + 1 + number % WORLD) % WORLD
        message = peer(own_message, payload_bases, rank, to)
        store_piece(
            o_ptr, lse_ptr, o_batch, o_head, lse_batch, lse_head, message, piece, rows, to, cut
        )
        signal(peer(flag(control, rank, piece), control_bases, rank, to), epoch, ARCH)
    finish(control, epoch)  # nothing below reads what it sets
    sources = tl.arange(0, cut.WORLD_P)
    first, step = work_range(pid, ARCH)
    for piece in tl.range(first, pieces, step, num_stages=1):
        wait_all(flag(control, sources, piece)[:, None], epoch, (sources < WORLD)[:, None])
        merge_piece(out_ptr, inbox, piece, rows, cut, ARCH)
