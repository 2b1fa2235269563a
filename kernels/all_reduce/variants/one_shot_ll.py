"""one_shot_ll: as one_shot, but rows travel as words that say themselves whether they have arrived
(LL): no fence, no flag.

Who owns a tile: pieces, a part of one row each, are dealt to the programs in turn; who sends a
piece also sums it and, where rows are normalised, adds the residual and scales it.
Who writes remotely: each program stores its pieces as words into the mailbox of every peer.
Which flag says ready: none; each word of 64 bits holds two elements of x and its call's epoch, and
is polled by who needs it. Inside a rank the sum of squares of each piece is such a word.

Two generations suffice: there is at least one piece, and who ends a call has seen a word of every
peer. A peer sends in call e after its call e-1 ended, so it has seen this rank's words of e-1,
which began after this rank's e-2, the last to read the same generation.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.ll_protocol import pack_ll, store, word64
from tftune.kernels.comm.symmetric import (
    MAILBOX_BYTES,
    MAILBOX_OFFSET,
    begin,
    finish,
    generation_of,
    peer,
    work_range,
)
from tftune.kernels.device.pairs import halves, pair_pointer, paired
from tftune.kernels.device.reduce import awaited, in_order


@triton.jit(do_not_specialize=["M", "rank"])
def one_shot_ll(
    x_ptr, residual_ptr, weight_ptr, out_ptr, added_ptr, control, control_bases, squares,
    M, rank, eps, N: tl.constexpr, PARTS: tl.constexpr, PARTS_P: tl.constexpr,
    PAIRS_P: tl.constexpr, NORM: tl.constexpr,
    WORLD: tl.constexpr, WORLD_P: tl.constexpr, THREADS: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """out = the sum; NORM: added = the sum and the residual, out = added normalised. squares: a
    word for each piece, 16 bytes apart. Between calls other plans of the workspace may write there,
    but only words of LL: their epochs are older, so none passes for one of this call."""
    PAIRS: tl.constexpr = N // PARTS // 2
    pid, programs, epoch = tl.program_id(0), tl.num_programs(0), begin(control)
    inbox = control + MAILBOX_OFFSET + generation_of(epoch) * MAILBOX_BYTES
    x_pairs, out_pairs, added_pairs = (
        pair_pointer(x_ptr),
        pair_pointer(out_ptr),
        pair_pointer(added_ptr),
    )
    columns, sources = tl.arange(0, PAIRS_P), tl.arange(0, WORLD_P)
    within = columns < PAIRS
    size = tl.cast(M, tl.int64) * (N * 4)
    for piece in tl.range(pid, M * PARTS, programs, num_stages=1):
        pairs = tl.load(x_pairs + tl.cast(piece, tl.int64) * PAIRS + columns, mask=within, other=0)
        words = pack_ll(tl.cast(pairs, tl.float32, bitcast=True), epoch)
        own_mail = inbox + rank * size + tl.cast(piece, tl.int64) * (PAIRS * 8)
        for step in tl.static_range(1, WORLD):
            its_mail = peer(own_mail, control_bases, rank, (rank + step) % WORLD)
            store(word64(its_mail) + columns, words, within)
    for piece in tl.range(pid, M * PARTS, programs, num_stages=1):
        places = tl.cast(piece, tl.int64) * PAIRS + columns
        own = tl.load(x_pairs + places, mask=within, other=0)
        if NORM:
            residual = tl.load(pair_pointer(residual_ptr) + places, mask=within, other=0)
            residual_low, residual_high = halves(residual, x_ptr)
        mail = inbox + sources * size + tl.cast(piece, tl.int64) * (PAIRS * 8)
        wanted = ((sources < WORLD) & (sources != rank))[:, None] & within[None, :]
        arrived = awaited(
            word64(mail)[:, None] + columns[None, :],
            wanted,
            epoch,
            WORLD_P * PAIRS_P,
            THREADS,
            ARCH,
        )
        pairs = tl.where(
            sources[:, None] == rank, own[None, :], tl.cast(arrived, tl.int32, bitcast=True)
        )
        low, high = halves(pairs, x_ptr)
        y = paired(in_order(low, sources, WORLD), in_order(high, sources, WORLD), x_ptr, ARCH)
        if NORM:
            low, high = halves(y, x_ptr)
            added = paired(low + residual_low, high + residual_high, x_ptr, ARCH)
            tl.store(added_pairs + places, added, mask=within)
            low, high = halves(added, x_ptr)
            square = tl.sum(tl.where(within, low * low + high * high, 0.0), 0)
            store(word64(squares + tl.cast(piece, tl.int64) * 16), pack_ll(square, epoch), True)
        else:
            tl.store(out_pairs + places, y, mask=within)
    finish(control, epoch)  # nothing below reads what it sets
    if NORM:
        parts = tl.arange(0, PARTS_P)
        begun, stride = work_range(pid, ARCH)
        for piece in tl.range(begun, M * PARTS, stride, num_stages=1):
            places = tl.cast(piece, tl.int64) * PAIRS + columns
            weight = tl.load(
                pair_pointer(weight_ptr) + piece % PARTS * PAIRS + columns, mask=within, other=0
            )
            weight_low, weight_high = halves(weight, x_ptr)
            low, high = halves(tl.load(added_pairs + places, mask=within, other=0), x_ptr)
            row = squares + (tl.cast(piece // PARTS * PARTS, tl.int64) + parts) * 16
            parts_there = (parts < PARTS)[:, None]
            found = awaited(word64(row)[:, None], parts_there, epoch, PARTS_P, THREADS, ARCH)
            mean = tl.sum(tl.sum(tl.where(parts_there, found, 0.0), 1), 0) / N
            scale = tl.rsqrt(mean + eps)
            low, high = halves(paired(low * scale, high * scale, x_ptr, ARCH), x_ptr)
            out = paired(low * weight_low, high * weight_high, x_ptr, ARCH)
            tl.store(out_pairs + places, out, mask=within)
