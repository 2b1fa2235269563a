"""persistent_ll: as persistent, but partial results travel as words that say themselves whether
they have arrived (LL): no fence, no flag.

Who owns a tile: as in persistent. Who writes remotely: who adds up a piece stores its words into
the mailbox of every rank that owns its heads. Which flag says ready: none; each word of 64 bits
carries its call's epoch, inside a rank and between ranks, and is polled by who needs it.
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
)
from tftune.kernels.device.attention import attend, distances, piece_heads
from tftune.kernels.device.gemm import by_die, store_tile
from tftune.kernels.flash_decode.variants.launches import Launch
from tftune.kernels.flash_decode.variants.persistent import work_range


def persistent_ll(kv_splits: int) -> tuple[Launch, ...]:
    """The kernel of a call."""
    return (Launch(decode_ll),)


@triton.jit
def message_words(batch, OWN: tl.constexpr, D: tl.constexpr):
    """Bytes of one message of batch * OWN rows as words, a multiple of 16."""
    rows = tl.cast(batch, tl.int64) * OWN
    return rows * (D * 8) + tl.cdiv(rows, 2) * 16


@triton.jit
def send_words(
    o, lse, away, inbox, row, heads, valid, batch, rank, epoch,
    Q_HEADS: tl.constexpr, OWN: tl.constexpr, D: tl.constexpr, HEADS: tl.constexpr, WORLD: tl.constexpr, WORLD_P: tl.constexpr,
):  # fmt: skip
    """Store rows o[HEADS, D], lse[HEADS] into the mailbox of every rank that owns their heads, this rank's
    own among them.

    away: `distances` of the control block; inbox: this call's generation of the mailbox here; row:
    their places in a message.
    """
    message = inbox + rank * message_words(batch, OWN, D)
    o_at = message + tl.cast(row, tl.int64) * (D * 8)
    lse_at = message + tl.cast(batch, tl.int64) * (OWN * D * 8) + row * 8
    ranks = tl.arange(0, WORLD_P)
    wanted = (ranks < WORLD)[:, None] & valid[None, :]
    if OWN != Q_HEADS:
        wanted = wanted & (heads // OWN == ranks[:, None])
    words = tl.broadcast_to(pack_ll(o, epoch)[None, :, :], (WORLD_P, HEADS, D))
    rows = tl.reshape(away[:, None] + o_at[None, :], (WORLD_P * HEADS,))
    o_ptrs = word64(rows)[:, None] + tl.arange(0, D)[None, :]
    store(
        o_ptrs,
        tl.reshape(words, (WORLD_P * HEADS, D)),
        tl.reshape(wanted, (WORLD_P * HEADS,))[:, None],
    )
    lse_ptrs = tl.cast(away[:, None] + lse_at[None, :], tl.pointer_type(tl.int64))
    store(lse_ptrs, tl.broadcast_to(pack_ll(lse, epoch)[None, :], (WORLD_P, HEADS)), wanted)


@triton.jit
def receive(
    o_at, lse_at, o_stride, lse_stride, valid, epoch,
    HEADS: tl.constexpr, COUNT: tl.constexpr, COUNT_P: tl.constexpr, D: tl.constexpr, THREADS: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """COUNT partial results of the same rows, once all of their words are there, merged by
    log-sum-exp in a fixed order: o[HEADS, D], lse[HEADS].

    The first row of the first is at these addresses, its other rows right behind, and each next
    partial result a stride of bytes further. valid [HEADS]: which rows there are.
    """
    ROWS: tl.constexpr = COUNT_P * HEADS
    items, dims = tl.arange(0, ROWS), tl.arange(0, D)
    there = (tl.arange(0, COUNT_P) < COUNT)[:, None] & valid[None, :]
    wanted = tl.reshape(there, (ROWS,))[:, None]
    # One dimension of addresses, since alignment can be stated on no more.
    o_ptrs = (
        word64(o_at + (items // HEADS) * o_stride + items % HEADS * (D * 8))[:, None]
        + dims[None, :]
    )
    lse_ptrs = tl.cast(
        lse_at + (items // HEADS) * lse_stride + items % HEADS * 8, tl.pointer_type(tl.int64)
    )[:, None]
    o_words, lse_words = (
        poll(o_ptrs, wanted, ROWS * D, THREADS, ARCH),
        poll(lse_ptrs, wanted, ROWS, THREADS, ARCH),
    )
    while (
        in_any_warp(missing(o_words, wanted, epoch) | missing(lse_words, wanted, epoch), ARCH) != 0
    ):
        o_words, lse_words = (
            poll(o_ptrs, wanted, ROWS * D, THREADS, ARCH),
            poll(lse_ptrs, wanted, ROWS, THREADS, ARCH),
        )
    lse = tl.where(there, tl.reshape(data(lse_words), (COUNT_P, HEADS)), float("-inf"))
    top = tl.max(lse, 0)
    base = tl.where(top == float("-inf"), 0.0, top)
    shares = tl.exp2(lse - base[None, :])
    total = tl.sum(shares, 0)
    weighted = tl.reshape(data(o_words) * tl.reshape(shares, (ROWS,))[:, None], (COUNT_P, HEADS, D))
    return tl.sum(weighted, 0) / tl.where(total > 0, total, 1.0)[:, None], top + tl.log2(total)


@triton.jit(do_not_specialize=["batch", "kv_len", "rank"])
def decode_ll(
    q_ptr, k_ptr, v_ptr, lengths_ptr, table_ptr, out_ptr, parts, control, control_bases, batch, kv_len, rank,
    KV_HEADS: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr, OWN: tl.constexpr, HEADS: tl.constexpr,
    SPLITS: tl.constexpr, SPLITS_P: tl.constexpr, BLOCK_N: tl.constexpr, PADDED_GROUP: tl.constexpr, XCDS: tl.constexpr,
    WORLD: tl.constexpr, WORLD_P: tl.constexpr, THREADS: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """out = the whole attention; `attention.attend` says what the operands are. parts: words for
    every unit's partial result, which no other plan writes."""
    pid, programs, epoch = tl.program_id(0), tl.num_programs(0), begin(control)
    SLICES: tl.constexpr = (GROUP + HEADS - 1) // HEADS
    OWN_SLICES: tl.constexpr = (OWN + HEADS - 1) // HEADS
    units = batch * KV_HEADS * SPLITS
    inbox = control + MAILBOX_OFFSET + generation_of(epoch) * MAILBOX_BYTES
    away = distances(control_bases, rank, WORLD, WORLD_P)
    dims, within = tl.arange(0, D), tl.arange(0, PADDED_GROUP)
    lse_parts = parts + tl.cast(units, tl.int64) * (GROUP * D * 8)
    for index in tl.range(pid, units, programs, num_stages=1):
        unit = by_die(index, units, XCDS)
        o, lse = attend(
            q_ptr,
            k_ptr,
            v_ptr,
            lengths_ptr,
            table_ptr,
            unit,
            kv_len,
            KV_HEADS,
            GROUP,
            D,
            PAGE,
            SPLITS,
            BLOCK_N,
            PADDED_GROUP,
            ARCH,
        )
        rows = tl.cast(unit, tl.int64) * GROUP + within
        store(
            word64(parts + rows * (D * 8))[:, None] + dims[None, :],
            pack_ll(o, epoch),
            (within < GROUP)[:, None],
        )
        store(
            tl.cast(lse_parts + rows * 8, tl.pointer_type(tl.int64)),
            pack_ll(lse, epoch),
            within < GROUP,
        )
    first, step = work_range(pid, ARCH)
    for piece in tl.range(first, batch * KV_HEADS * SLICES, step, num_stages=1):
        start = tl.cast(piece // SLICES, tl.int64) * (SPLITS * GROUP) + piece % SLICES * HEADS
        batch_index, heads, valid = piece_heads(piece, KV_HEADS, GROUP, HEADS)
        o_at, lse_at = parts + start * (D * 8), lse_parts + start * 8
        o, lse = receive(
            o_at,
            lse_at,
            GROUP * D * 8,
            GROUP * 8,
            valid,
            epoch,
            HEADS,
            SPLITS,
            SPLITS_P,
            D,
            THREADS,
            ARCH,
        )
        row = batch_index * OWN + heads % OWN
        send_words(
            o,
            lse,
            away,
            inbox,
            row,
            heads,
            valid,
            batch,
            rank,
            epoch,
            KV_HEADS * GROUP,
            OWN,
            D,
            HEADS,
            WORLD,
            WORLD_P,
        )
    finish(
        control, epoch
    )  # here, where peers are waited for anyway: what follows reads nothing that it sets
    first, step = work_range(programs - 1 - pid, ARCH)
    stride = message_words(batch, OWN, D)
    for number in tl.range(first, batch * OWN_SLICES, step, num_stages=1):
        batch_index, head = number // OWN_SLICES, number % OWN_SLICES * HEADS
        row = batch_index * OWN + head
        o_at, lse_at = (
            inbox + tl.cast(row, tl.int64) * (D * 8),
            inbox + tl.cast(batch, tl.int64) * (OWN * D * 8) + row * 8,
        )
        o, _ = receive(
            o_at,
            lse_at,
            stride,
            stride,
            head + tl.arange(0, HEADS) < OWN,
            epoch,
            HEADS,
            WORLD,
            WORLD_P,
            D,
            THREADS,
            ARCH,
        )
        store_tile(out_ptr, o, row, dims, (batch_index + 1) * OWN, D, HEADS, ARCH)
