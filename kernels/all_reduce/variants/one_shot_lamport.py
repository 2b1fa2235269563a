"""one_shot_lamport: as one_shot, but rows travel as words of two elements each, which have arrived
where they are not zeros (`lamport`): half of the bytes of one_shot_ll.

Who owns a tile: pieces, a part of one row each, are dealt to the programs in turn; who sends a
piece also sums it and, where rows are normalised, adds the residual and scales it.
Who writes remotely: each program stores its pieces as words into the mailbox of every peer.
Which flag says ready: none; each word of 32 bits is polled by who needs it, who then clears it.
Inside a rank the sum of squares of a part of a row is a word of LL.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.lamport import pack_lamport, take
from tftune.kernels.comm.ll_protocol import pack_ll, store, word64
from tftune.kernels.comm.symmetric import (
    LAMPORT_OFFSET,
    MAILBOX_BYTES,
    begin,
    finish,
    generation_of,
    peer,
    work_range,
)
from tftune.kernels.device.pairs import halves, pair_pointer, paired
from tftune.kernels.device.reduce import awaited, in_order


@triton.jit
def scaled(added, weight, mean, eps, like, ARCH: tl.constexpr):
    """Pairs of a row whose squares have this mean, normalised: rounded, and then weighted."""
    scale = tl.rsqrt(mean + eps)
    low, high = halves(added, like)
    low, high = halves(paired(low * scale, high * scale, like, ARCH), like)
    weight_low, weight_high = halves(weight, like)
    return paired(low * weight_low, high * weight_high, like, ARCH)


@triton.jit(do_not_specialize=["M", "rank"])
def one_shot_lamport(
    x_ptr, residual_ptr, weight_ptr, out_ptr, added_ptr, control, control_bases, squares,
    M, rank, eps, N: tl.constexpr, PARTS: tl.constexpr, PARTS_P: tl.constexpr,
    PAIRS_P: tl.constexpr, NORM: tl.constexpr, WORLD: tl.constexpr, WORLD_P: tl.constexpr,
    THREADS: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """out = the sum; NORM: added = the sum and the residual, out = added normalised. squares: as
    in one_shot_ll."""
    PAIRS: tl.constexpr = N // PARTS // 2
    pid, programs, epoch = tl.program_id(0), tl.num_programs(0), begin(control)
    inbox = control + LAMPORT_OFFSET + generation_of(epoch) * MAILBOX_BYTES
    x_pairs, out_pairs = pair_pointer(x_ptr), pair_pointer(out_ptr)
    added_pairs = pair_pointer(added_ptr)
    columns, sources = tl.arange(0, PAIRS_P), tl.arange(0, WORLD_P)
    within = columns < PAIRS
    size = tl.cast(M, tl.int64) * (N * 2)
    for piece in tl.range(pid, M * PARTS, programs, num_stages=1):
        pairs = tl.load(x_pairs + tl.cast(piece, tl.int64) * PAIRS + columns, mask=within, other=0)
        words = pack_lamport(pairs)
        own_mail = inbox + rank * size + tl.cast(piece, tl.int64) * (PAIRS * 4)
        for step in tl.static_range(1, WORLD):
            its_mail = peer(own_mail, control_bases, rank, (rank + step) % WORLD)
            store(pair_pointer(its_mail) + columns, words, within)
    for piece in tl.range(pid, M * PARTS, programs, num_stages=1):
        places = tl.cast(piece, tl.int64) * PAIRS + columns
        own = tl.load(x_pairs + places, mask=within, other=0)
        if NORM:
            residual = tl.load(pair_pointer(residual_ptr) + places, mask=within, other=0)
            residual_low, residual_high = halves(residual, x_ptr)
        if NORM and PARTS == 1:
            weight = tl.load(pair_pointer(weight_ptr) + columns, mask=within, other=0)
        mail = inbox + sources * size + tl.cast(piece, tl.int64) * (PAIRS * 4)
        mail_pairs = pair_pointer(mail)[:, None] + columns[None, :]
        wanted = ((sources < WORLD) & (sources != rank))[:, None] & within[None, :]
        arrived = take(mail_pairs, wanted, WORLD_P * PAIRS_P, THREADS, ARCH)
        pairs = tl.where(sources[:, None] == rank, own[None, :], arrived)
        low, high = halves(pairs, x_ptr)
        y = paired(in_order(low, sources, WORLD), in_order(high, sources, WORLD), x_ptr, ARCH)
        if NORM:
            low, high = halves(y, x_ptr)
            added = paired(low + residual_low, high + residual_high, x_ptr, ARCH)
            tl.store(added_pairs + places, added, mask=within)
            low, high = halves(added, x_ptr)
            square = tl.sum(tl.where(within, low * low + high * high, 0.0), 0)
            if PARTS == 1:
                out = scaled(added, weight, square / N, eps, x_ptr, ARCH)
                tl.store(out_pairs + places, out, mask=within)
            else:
                store(word64(squares + tl.cast(piece, tl.int64) * 16), pack_ll(square, epoch), True)
        else:
            tl.store(out_pairs + places, y, mask=within)
    finish(control, epoch)  # nothing below reads what it sets
    if NORM and PARTS > 1:
        parts = tl.arange(0, PARTS_P)
        begun, stride = work_range(pid, ARCH)
        for piece in tl.range(begun, M * PARTS, stride, num_stages=1):
            places = tl.cast(piece, tl.int64) * PAIRS + columns
            weight_at = pair_pointer(weight_ptr) + piece % PARTS * PAIRS + columns
            weight = tl.load(weight_at, mask=within, other=0)
            added = tl.load(added_pairs + places, mask=within, other=0)
            row = squares + (tl.cast(piece // PARTS * PARTS, tl.int64) + parts) * 16
            parts_there = (parts < PARTS)[:, None]
            found = awaited(word64(row)[:, None], parts_there, epoch, PARTS_P, THREADS, ARCH)
            mean = tl.sum(tl.sum(tl.where(parts_there, found, 0.0), 1), 0) / N
            out = scaled(added, weight, mean, eps, x_ptr, ARCH)
            tl.store(out_pairs + places, out, mask=within)
