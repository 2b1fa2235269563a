"""one_shot_ll: as one_shot, but rows travel as words that say themselves whether they have arrived
(LL): no fence, no flag.

Who owns a tile: as in one_shot. Who writes remotely: each program stores its pieces as words into
the mailbox of the rank that merges them. Which flag says ready: none; each word of 64 bits holds
two elements of o, or a log-sum-exp, and its call's epoch, and is polled by who needs it.

Two generations suffice, as in one_shot: who ends a call has seen words of every peer.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.ll_protocol import data, in_any_warp, missing, pack_ll, poll, store, word64
from tftune.kernels.comm.symmetric import (
    MAILBOX_BYTES,
    MAILBOX_OFFSET,
    begin,
    finish,
    generation_of,
    peer,
    work_range,
)
from tftune.kernels.device.merge import offsets, piece_rows, weighted_sum, weights
from tftune.kernels.device.pairs import halves, pair_pointer, paired


@triton.jit
def words_at(message, row, rows, cut: tl.constexpr):
    """Where the words of these rows of a message lie: of their elements, of their log-sum-exps."""
    lse_at = message + tl.cast(rows, tl.int64) * (cut.D * 4) + row * 8
    o_at = word64(message + tl.cast(row, tl.int64) * (cut.D * 4))
    return o_at, tl.cast(lse_at, tl.pointer_type(tl.int64))


@triton.jit
def send_words(
    o_ptr, lse_ptr, o_batch, o_head, lse_batch, lse_head, message, piece, rows, to, epoch,
    cut: tl.constexpr,
):  # fmt: skip
    """Store a piece of what is rank `to`'s as words into its message, which may lie there."""
    row, there = piece_rows(piece, rows, cut)
    columns = tl.arange(0, cut.D // 2)
    own_at = pair_pointer(tl.cast(o_ptr, tl.int64) + 2 * offsets(row, to, o_batch, o_head, cut))
    pairs = tl.load(own_at[:, None] + columns[None, :], mask=there[:, None], other=0)
    lse = tl.load(lse_ptr + offsets(row, to, lse_batch, lse_head, cut), mask=there, other=0.0)
    o_at, lse_at = words_at(message, row, rows, cut)
    words = pack_ll(tl.cast(pairs, tl.float32, bitcast=True), epoch)
    store(o_at[:, None] + columns[None, :], words, there[:, None])
    store(lse_at, pack_ll(lse, epoch), there)


@triton.jit
def receive(inbox, size, piece, rows, epoch, cut: tl.constexpr, THREADS: tl.constexpr, ARCH):
    """A piece of all ranks' messages, `size` bytes apart, once all of its words have come: pairs
    [WORLD_P * ROWS, D / 2], log-sum-exps [WORLD_P * ROWS], and which of these are there."""
    ITEMS: tl.constexpr = cut.WORLD_P * cut.ROWS
    PAIRS: tl.constexpr = cut.D // 2
    items, columns = tl.arange(0, ITEMS), tl.arange(0, PAIRS)
    source, row = items // cut.ROWS, piece * cut.ROWS + items % cut.ROWS
    there = (source < cut.WORLD) & (row < rows)
    o_at, lse_at = words_at(inbox + source * size, row, rows, cut)
    o_at, lse_at = o_at[:, None] + columns[None, :], lse_at[:, None]
    wanted = there[:, None]
    o_words = poll(o_at, wanted, ITEMS * PAIRS, THREADS, ARCH)
    lse_words = poll(lse_at, wanted, ITEMS, THREADS, ARCH)
    while (
        in_any_warp(missing(o_words, wanted, epoch) | missing(lse_words, wanted, epoch), ARCH) != 0
    ):
        o_words = poll(o_at, wanted, ITEMS * PAIRS, THREADS, ARCH)
        lse_words = poll(lse_at, wanted, ITEMS, THREADS, ARCH)
    pairs = tl.cast(data(o_words), tl.int32, bitcast=True)
    return pairs, tl.reshape(data(lse_words), (ITEMS,)), there


@triton.jit(do_not_specialize=["lse_batch", "lse_head", "batch", "rank"])
def one_shot_ll(
    o_ptr, lse_ptr, out_ptr, o_batch, o_head, lse_batch, lse_head, control, control_bases,
    batch, rank, cut: tl.constexpr, THREADS: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """out = the rows of all ranks merged. o_batch to lse_head: strides of o and lse."""
    PAIRS: tl.constexpr = cut.D // 2
    WORLD: tl.constexpr = cut.WORLD
    pid, programs, epoch = tl.program_id(0), tl.num_programs(0), begin(control)
    inbox = control + MAILBOX_OFFSET + generation_of(epoch) * MAILBOX_BYTES
    rows = batch * cut.OWN
    pieces = tl.cdiv(rows, cut.ROWS)
    size = tl.cast(rows, tl.int64) * (cut.D * 4) + tl.cdiv(rows, 2) * 16
    for number in tl.range(pid, pieces * WORLD, programs, num_stages=1):
        piece, to = number // WORLD, (rank + 1 + number % WORLD) % WORLD
        message = peer(inbox + rank * size, control_bases, rank, to)
        send_words(
            o_ptr, lse_ptr, o_batch, o_head, lse_batch, lse_head, message, piece, rows, to, epoch,
            cut,
        )  # fmt: skip
    finish(control, epoch)  # nothing below reads what it sets
    columns = tl.arange(0, PAIRS)
    first, step = work_range(pid, ARCH)
    for piece in tl.range(first, pieces, step, num_stages=1):
        pairs, lse, there = receive(inbox, size, piece, rows, epoch, cut, THREADS, ARCH)
        shares, known = weights(lse, there, cut)
        low, high = halves(pairs, out_ptr)
        low = weighted_sum(low, shares, known, cut)
        high = weighted_sum(high, shares, known, cut)
        row, valid = piece_rows(piece, rows, cut)
        places = (tl.cast(row, tl.int64) * PAIRS)[:, None] + columns[None, :]
        tl.store(
            pair_pointer(out_ptr) + places, paired(low, high, out_ptr, ARCH), mask=valid[:, None]
        )
