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
    distances,
    finish,
    generation_of,
    work_range,
)
from tftune.kernels.device.attention import attend, piece_heads
from tftune.kernels.device.gemm import by_die, store_tile
from tftune.kernels.flash_decode.variants.launches import Launch


def persistent_ll(kv_splits: int) -> tuple[Launch, ...]:
    """The kernel of a call."""
    return (Launch(decode_ll),)


@triton.jit
def message_words(batch, shape: tl.constexpr):
    """Bytes of one message of batch * OWN rows as words, a multiple of 16."""
    rows = tl.cast(batch, tl.int64) * shape.OWN
    return rows * (shape.D * 8) + tl.cdiv(rows, 2) * 16


@triton.jit
def send_words(
    o, lse, away, inbox, row, heads, valid, batch, rank, epoch,
    shape: tl.constexpr, peers: tl.constexpr,
):  # fmt: skip
    """Store rows o[HEADS, D], lse[HEADS] into the mailbox of every rank that owns their heads, this
    rank's own among them.

    away: `distances` of the control block; inbox: this call's generation of the mailbox here; row:
    their places in a message.
    """
    OWN: tl.constexpr = shape.OWN
    D: tl.constexpr = shape.D
    HEADS: tl.constexpr = peers.HEADS
    WORLD_P: tl.constexpr = peers.WORLD_P
    ROWS: tl.constexpr = WORLD_P * HEADS
    message = inbox + rank * message_words(batch, shape)
    o_at = message + tl.cast(row, tl.int64) * (D * 8)
    lse_at = message + tl.cast(batch, tl.int64) * (OWN * D * 8) + row * 8
    ranks = tl.arange(0, WORLD_P)
    wanted = (ranks < peers.WORLD)[:, None] & valid[None, :]
    if OWN != shape.KV_HEADS * shape.GROUP:
        wanted = wanted & (heads // OWN == ranks[:, None])
    words = tl.broadcast_to(pack_ll(o, epoch)[None, :, :], (WORLD_P, HEADS, D))
    rows = tl.reshape(away[:, None] + o_at[None, :], (ROWS,))
    o_ptrs = word64(rows)[:, None] + tl.arange(0, D)[None, :]
    store(o_ptrs, tl.reshape(words, (ROWS, D)), tl.reshape(wanted, (ROWS,))[:, None])
    lse_ptrs = tl.cast(away[:, None] + lse_at[None, :], tl.pointer_type(tl.int64))
    store(lse_ptrs, tl.broadcast_to(pack_ll(lse, epoch)[None, :], (WORLD_P, HEADS)), wanted)


@triton.jit
def receive(
    o_at, lse_at, o_stride, lse_stride, valid, epoch, COUNT: tl.constexpr, D: tl.constexpr,
    THREADS: tl.constexpr, peers: tl.constexpr,
):  # fmt: skip
    """COUNT partial results of the same rows, once all of their words are there, merged by
    log-sum-exp in a fixed order: o[HEADS, D], lse[HEADS].

    The first row of the first is at these addresses, its other rows right behind, and each next
    partial result a stride of bytes further. valid [HEADS]: which rows there are.
    """
    ARCH: tl.constexpr = peers.ARCH
    HEADS: tl.constexpr = peers.HEADS
    COUNT_P: tl.constexpr = triton.next_power_of_2(COUNT)
    ROWS: tl.constexpr = COUNT_P * HEADS
    items, dims = tl.arange(0, ROWS), tl.arange(0, D)
    there = (tl.arange(0, COUNT_P) < COUNT)[:, None] & valid[None, :]
    wanted = tl.reshape(there, (ROWS,))[:, None]
    # One dimension of addresses, since alignment can be stated on no more.
    o_rows = word64(o_at + (items // HEADS) * o_stride + items % HEADS * (D * 8))
    o_ptrs = o_rows[:, None] + dims[None, :]
    lse_rows = lse_at + (items // HEADS) * lse_stride + items % HEADS * 8
    lse_ptrs = tl.cast(lse_rows, tl.pointer_type(tl.int64))[:, None]
    o_words = poll(o_ptrs, wanted, ROWS * D, THREADS, ARCH)
    lse_words = poll(lse_ptrs, wanted, ROWS, THREADS, ARCH)
    while (
        in_any_warp(missing(o_words, wanted, epoch) | missing(lse_words, wanted, epoch), ARCH) != 0
    ):
        o_words = poll(o_ptrs, wanted, ROWS * D, THREADS, ARCH)
        lse_words = poll(lse_ptrs, wanted, ROWS, THREADS, ARCH)
    lse = tl.where(there, tl.reshape(data(lse_words), (COUNT_P, HEADS)), float("-inf"))
    top = tl.max(lse, 0)
    base = tl.where(top == float("-inf"), 0.0, top)
    shares = tl.exp2(lse - base[None, :])
    total = tl.sum(shares, 0)
    weighted = data(o_words) * tl.reshape(shares, (ROWS,))[:, None]
    weighted = tl.reshape(weighted, (COUNT_P, HEADS, D))
    return tl.sum(weighted, 0) / tl.where(total > 0, total, 1.0)[:, None], top + tl.log2(total)


@triton.jit(do_not_specialize=["batch", "kv_len", "rank"])
def decode_ll(
    q_ptr, k_ptr, v_ptr, lengths_ptr, table_ptr, out_ptr, parts, control, control_bases,
    batch, kv_len, rank, shape: tl.constexpr, cache: tl.constexpr, peers: tl.constexpr,
    THREADS: tl.constexpr,
):  # fmt: skip
    """out = the whole attention; `attention.attend` says what the operands are. parts: words for
    every unit's partial result; nothing but words is ever written there."""
    pid, programs, epoch = tl.program_id(0), tl.num_programs(0), begin(control)
    GROUP: tl.constexpr = shape.GROUP
    D: tl.constexpr = shape.D
    OWN: tl.constexpr = shape.OWN
    HEADS: tl.constexpr = peers.HEADS
    SPLITS: tl.constexpr = cache.SPLITS
    units = batch * shape.KV_HEADS * SPLITS
    inbox = control + MAILBOX_OFFSET + generation_of(epoch) * MAILBOX_BYTES
    away = distances(control_bases, rank, peers.WORLD, peers.WORLD_P)
    dims, within = tl.arange(0, D), tl.arange(0, cache.PADDED_GROUP)
    lse_parts = parts + tl.cast(units, tl.int64) * (GROUP * D * 8)
    for index in tl.range(pid, units, programs, num_stages=1):
        unit = by_die(index, units, cache.XCDS)
        o, lse = attend(
            q_ptr, k_ptr, v_ptr, lengths_ptr, table_ptr, unit, kv_len, shape, cache, peers.ARCH,
        )  # fmt: skip
        rows = tl.cast(unit, tl.int64) * GROUP + within
        o_ptrs = word64(parts + rows * (D * 8))[:, None] + dims[None, :]
        store(o_ptrs, pack_ll(o, epoch), (within < GROUP)[:, None])
        lse_ptrs = tl.cast(lse_parts + rows * 8, tl.pointer_type(tl.int64))
        store(lse_ptrs, pack_ll(lse, epoch), within < GROUP)
    first, step = work_range(pid, peers.ARCH)
    for piece in tl.range(first, batch * shape.KV_HEADS * peers.SLICES, step, num_stages=1):
        place = tl.cast(piece // peers.SLICES, tl.int64) * (SPLITS * GROUP)
        start = place + piece % peers.SLICES * HEADS
        batch_index, heads, valid = piece_heads(piece, shape, peers)
        o_at, lse_at = parts + start * (D * 8), lse_parts + start * 8
        o, lse = receive(
            o_at, lse_at, GROUP * D * 8, GROUP * 8, valid, epoch, SPLITS, D, THREADS, peers
        )
        row = batch_index * OWN + heads % OWN
        send_words(o, lse, away, inbox, row, heads, valid, batch, rank, epoch, shape, peers)
    # Here, where peers are waited for anyway: what follows reads nothing that it sets.
    finish(control, epoch)
    first, step = work_range(programs - 1 - pid, peers.ARCH)
    stride = message_words(batch, shape)
    for number in tl.range(first, batch * peers.OWN_SLICES, step, num_stages=1):
        batch_index, head = number // peers.OWN_SLICES, number % peers.OWN_SLICES * HEADS
        row = batch_index * OWN + head
        o_at = inbox + tl.cast(row, tl.int64) * (D * 8)
        lse_at = inbox + tl.cast(batch, tl.int64) * (OWN * D * 8) + row * 8
        valid = head + tl.arange(0, HEADS) < OWN
        o, _ = receive(o_at, lse_at, stride, stride, valid, epoch, peers.WORLD, D, THREADS, peers)
        store_tile(out_ptr, o, row, dims, (batch_index + 1) * OWN, D, HEADS, peers.ARCH)
