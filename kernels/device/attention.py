"""What decode kernels share: a split of the KV cache attended, partial results added up by
log-sum-exp, sent, announced, awaited.

A partial result is a row o[D] of fp32, normalised by itself, and its log-sum-exp to the base 2;
minus infinity says that there was nothing to attend to. A message holds the rows of one rank for
one owner of heads, batch by batch, then their log-sum-exps. A piece is up to HEADS heads of one
group (the query heads that share a KV head); pieces are numbered batch by batch, group by group.
`constants` says what `shape`, `cache` and `peers` hold.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import (
    EXITS_OFFSET,
    advance,
    drain,
    flag,
    leave,
    signal_all,
    wait_all,
    word,
)
from tftune.kernels.device.gemm import store_tile
from tftune.kernels.device.waits import add_waited, clock, wait_for_all

GRANULE = tl.constexpr(16)
"""Splits of a sequence begin at multiples of so many tokens."""
ZEROS = tl.constexpr(256)


@triton.jit
def floats(addresses):
    """Pointers to fp32 at these addresses, which are multiples of 16."""
    return tl.multiple_of(tl.cast(addresses, tl.pointer_type(tl.float32)), 16)


@triton.jit
def token_rows(table_ptr, tokens, inside, batch_index, kv_len, PAGE: tl.constexpr):
    """Rows of the cache, int64, that hold these tokens of one sequence."""
    if PAGE == 0:
        rows = tl.cast(batch_index, tl.int64) * kv_len + tokens
    else:
        pages = table_ptr + tl.cast(batch_index, tl.int64) * (kv_len // PAGE) + tokens // PAGE
        rows = tl.cast(tl.load(pages, mask=inside, other=0), tl.int64) * PAGE + tokens % PAGE
    return rows


@triton.jit
def attend(
    q_ptr, k_ptr, v_ptr, lengths_ptr, table_ptr, unit, kv_len,
    shape: tl.constexpr, cache: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """The partial result o[PADDED_GROUP, D], lse[PADDED_GROUP] of one split of one sequence, for
    the GROUP query heads of one KV head, padded to as many rows.

    q_ptr: [batch, KV_HEADS * GROUP, D]; k_ptr, v_ptr: [batch, kv_len, KV_HEADS, D], or [pages,
    PAGE, KV_HEADS, D] with table_ptr [batch, kv_len / PAGE]; lengths_ptr: int32[batch]. unit:
    (batch index * KV_HEADS + KV head) * SPLITS + split.
    """
    KV_HEADS: tl.constexpr = shape.KV_HEADS
    GROUP: tl.constexpr = shape.GROUP
    D: tl.constexpr = shape.D
    SPLITS: tl.constexpr = cache.SPLITS
    BLOCK_N: tl.constexpr = cache.BLOCK_N
    PADDED_GROUP: tl.constexpr = cache.PADDED_GROUP
    group, split = unit // SPLITS, unit % SPLITS
    batch_index, kv_head = group // KV_HEADS, group % KV_HEADS
    # What is longer than the cache counts as the cache: no address behind it, or behind the table.
    length = tl.minimum(tl.load(lengths_ptr + batch_index), kv_len)
    heads, dims, steps = tl.arange(0, PADDED_GROUP), tl.arange(0, D), tl.arange(0, BLOCK_N)
    q_ptrs = q_ptr + (tl.cast(group, tl.int64) * GROUP + heads)[:, None] * D + dims[None, :]
    q = tl.load(q_ptrs, mask=(heads < GROUP)[:, None], other=0.0)
    each = tl.cdiv(tl.cdiv(length, SPLITS), GRANULE) * GRANULE
    begin = tl.minimum(split * each, length)
    end = tl.minimum(begin + each, length)
    top = tl.full((PADDED_GROUP,), float("-inf"), tl.float32)
    total = tl.zeros((PADDED_GROUP,), tl.float32)
    acc = tl.zeros((PADDED_GROUP, D), tl.float32)
    scale = 1.4426950408889634 * D**-0.5  # powers of 2 instead of e
    for start in range(begin, end, BLOCK_N):
        inside = start + steps < end
        rows = token_rows(table_ptr, start + steps, inside, batch_index, kv_len, cache.PAGE)
        offsets = (rows * KV_HEADS + kv_head)[:, None] * D + dims[None, :]
        k = tl.load(k_ptr + offsets, mask=inside[:, None], other=0.0)
        v = tl.load(v_ptr + offsets, mask=inside[:, None], other=0.0)
        if ARCH == "interpreter":  # its product of bf16 is wrong
            q, k, v = tl.cast(q, tl.float32), tl.cast(k, tl.float32), tl.cast(v, tl.float32)
        scores = tl.where(inside[None, :], tl.dot(q, tl.trans(k)) * scale, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        shares, shrink = tl.exp2(scores - higher[:, None]), tl.exp2(top - higher)
        total = total * shrink + tl.sum(shares, 1)
        acc = tl.dot(tl.cast(shares, v.dtype), v, acc * shrink[:, None])
        top = higher
    return acc / tl.where(total > 0, total, 1.0)[:, None], top + tl.log2(total)


@triton.jit
def add_up(
    o_at, lse_at, o_stride, lse_stride, valid,
    HEADS: tl.constexpr, COUNT: tl.constexpr, D: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """COUNT partial results of the same rows merged by log-sum-exp, always in the same order:
    o[HEADS, D], lse[HEADS].

    The first row of the first is at these addresses, its other rows right behind, and each next
    partial result a stride of bytes further; CHUNK of them are loaded at a time. valid [HEADS]:
    which rows there are.
    """
    rows, dims, items = tl.arange(0, HEADS), tl.arange(0, D), tl.arange(0, CHUNK * HEADS)
    top = tl.full((HEADS,), float("-inf"), tl.float32)
    total = tl.zeros((HEADS,), tl.float32)
    o = tl.zeros((HEADS, D), tl.float32)
    for first in tl.static_range(0, COUNT, CHUNK):
        numbers = first + tl.arange(0, CHUNK)
        there = (numbers < COUNT)[:, None] & valid[None, :]
        # One dimension of addresses, since alignment can be stated on no more. Both loads before
        # anything waits for one of them.
        o_ptrs = (
            floats(o_at + (first + items // HEADS) * o_stride + items % HEADS * (D * 4))[:, None]
            + dims[None, :]
        )
        partial = tl.load(o_ptrs, mask=tl.reshape(there, (CHUNK * HEADS,))[:, None], other=0.0)
        lse_ptrs = tl.cast(
            lse_at + (numbers * lse_stride)[:, None] + (rows * 4)[None, :],
            tl.pointer_type(tl.float32),
        )
        lse = tl.load(lse_ptrs, mask=there, other=float("-inf"))
        higher = tl.maximum(top, tl.max(lse, 0))
        base = tl.where(higher == float("-inf"), 0.0, higher)
        shares, shrink = tl.exp2(lse - base[None, :]), tl.exp2(top - base)
        total = total * shrink + tl.sum(shares, 0)
        weighted = tl.reshape(
            partial * tl.reshape(shares, (CHUNK * HEADS,))[:, None], (CHUNK, HEADS, D)
        )
        o = o * shrink[:, None] + tl.sum(weighted, 0)
        top = higher
    return o / tl.where(total > 0, total, 1.0)[:, None], top + tl.log2(total)


@triton.jit
def load_partial(o_at, lse_at, valid, D: tl.constexpr):
    """Rows o[HEADS, D], lse[HEADS] from these addresses."""
    o = tl.load(floats(o_at)[:, None] + tl.arange(0, D)[None, :], mask=valid[:, None], other=0.0)
    return o, tl.load(tl.cast(lse_at, tl.pointer_type(tl.float32)), mask=valid, other=float("-inf"))


@triton.jit
def store_partial(o, lse, o_at, lse_at, valid, D: tl.constexpr):
    """Store rows o[HEADS, D], lse[HEADS] at these addresses."""
    tl.store(floats(o_at)[:, None] + tl.arange(0, D)[None, :], o, mask=valid[:, None])
    tl.store(tl.cast(lse_at, tl.pointer_type(tl.float32)), lse, mask=valid)


@triton.jit
def part_at(parts, unit, heads, units, shape: tl.constexpr):
    """Addresses of a unit's partial result in this rank's scratch, o and lse of these heads of its
    group."""
    ROW_BYTES: tl.constexpr = shape.D * 4
    rows = tl.cast(unit, tl.int64) * shape.GROUP + heads
    o_at = parts + rows * ROW_BYTES
    return o_at, parts + tl.cast(units, tl.int64) * (shape.GROUP * ROW_BYTES) + rows * 4


@triton.jit
def message_bytes(batch, shape: tl.constexpr):
    """Bytes of one message of batch * OWN rows, a multiple of 16."""
    rows = tl.cast(batch, tl.int64) * shape.OWN
    return rows * (shape.D * 4) + tl.cdiv(rows, 4) * 16


@triton.jit
def row_at(message, row, batch, shape: tl.constexpr):
    """Addresses of rows in a message: o and lse."""
    ROW_BYTES: tl.constexpr = shape.D * 4
    rows = tl.cast(batch, tl.int64) * shape.OWN
    return message + tl.cast(row, tl.int64) * ROW_BYTES, message + rows * ROW_BYTES + row * 4


@triton.jit
def piece_heads(piece, shape: tl.constexpr, peers: tl.constexpr):
    """The batch index of a piece, its heads within the sequence's, and which of them are there."""
    HEADS: tl.constexpr = peers.HEADS
    KV_HEADS: tl.constexpr = shape.KV_HEADS
    group, within = piece // peers.SLICES, piece % peers.SLICES * HEADS + tl.arange(0, HEADS)
    return group // KV_HEADS, group % KV_HEADS * shape.GROUP + within, within < shape.GROUP


@triton.jit
def combine_piece(
    parts, piece, batch, SPLITS: tl.constexpr, shape: tl.constexpr, peers: tl.constexpr
):
    """The partial result of this rank for the heads of one piece: all splits added up."""
    HEADS: tl.constexpr = peers.HEADS
    GROUP: tl.constexpr = shape.GROUP
    D: tl.constexpr = shape.D
    SPLITS_P: tl.constexpr = triton.next_power_of_2(SPLITS)
    MOST: tl.constexpr = peers.TILE // (HEADS * D)
    CHUNK: tl.constexpr = SPLITS_P if SPLITS_P < MOST else MOST
    group, first = piece // peers.SLICES, piece % peers.SLICES * HEADS
    o_at, lse_at = part_at(parts, group * SPLITS, first, batch * shape.KV_HEADS * SPLITS, shape)
    valid = first + tl.arange(0, HEADS) < GROUP
    return add_up(o_at, lse_at, GROUP * D * 4, GROUP * 4, valid, HEADS, SPLITS, D, CHUNK)


@triton.jit
def message_rows(messages, batch_index, heads, batch, shape: tl.constexpr):
    """Addresses of these heads' rows in the messages to their owners: o and lse."""
    OWN: tl.constexpr = shape.OWN
    own_message = messages + heads // OWN * message_bytes(batch, shape)
    return row_at(own_message, batch_index * OWN + heads % OWN, batch, shape)


@triton.jit
def store_message(o, lse, messages, batch_index, heads, valid, batch, shape: tl.constexpr):
    """Store rows of these heads into the messages to their owners, in this rank's scratch."""
    o_at, lse_at = message_rows(messages, batch_index, heads, batch, shape)
    store_partial(o, lse, o_at, lse_at, valid, shape.D)


@triton.jit
def send(
    o, lse, away, inbox, batch_index, heads, valid, batch, rank,
    shape: tl.constexpr, peers: tl.constexpr,
):  # fmt: skip
    """Store rows of these heads into the inbox of every rank that owns them, this rank's own among
    them, all at once.

    away: `distances` of the payload; inbox: this call's generation of it here.
    """
    OWN: tl.constexpr = shape.OWN
    D: tl.constexpr = shape.D
    HEADS: tl.constexpr = peers.HEADS
    WORLD_P: tl.constexpr = peers.WORLD_P
    ROWS: tl.constexpr = WORLD_P * HEADS
    own_message = inbox + rank * message_bytes(batch, shape)
    o_at, lse_at = row_at(own_message, batch_index * OWN + heads % OWN, batch, shape)
    ranks = tl.arange(0, WORLD_P)
    wanted = (ranks < peers.WORLD)[:, None] & valid[None, :]
    if OWN != shape.KV_HEADS * shape.GROUP:
        wanted = wanted & (heads // OWN == ranks[:, None])
    lse_ptrs = tl.cast(away[:, None] + lse_at[None, :], tl.pointer_type(tl.float32))
    tl.store(lse_ptrs, tl.broadcast_to(lse[None, :], (WORLD_P, HEADS)), mask=wanted)
    rows = tl.reshape(away[:, None] + o_at[None, :], (ROWS,))
    everywhere = tl.reshape(tl.broadcast_to(o[None, :, :], (WORLD_P, HEADS, D)), (ROWS, D))
    wanted_rows = tl.reshape(wanted, (ROWS,))[:, None]
    tl.store(floats(rows)[:, None] + tl.arange(0, D)[None, :], everywhere, mask=wanted_rows)


@triton.jit
def announce(piece, pieces, arrivals, control, away, epoch, rank, peers: tl.constexpr):
    """Say that this program has sent a piece: by its flag; or, where a flag covers several, the
    last of them to be sent sets it.

    arrivals: int32 of this rank for each flag, zero between calls. PIECES_PER_FLAG 0: one flag for
    all pieces.
    """
    PER_FLAG: tl.constexpr = peers.PIECES_PER_FLAG
    if PER_FLAG == 1:
        signal_all(flag(control, rank, piece), away, epoch, peers.WORLD, peers.WORLD_P, peers.ARCH)
    else:
        slot = piece // PER_FLAG if PER_FLAG else 0
        covered = tl.minimum(PER_FLAG, pieces - slot * PER_FLAG) if PER_FLAG else pieces
        drain(epoch, peers.ARCH)
        # At system scope, since what the others stored to peers must be there before the flag that
        # this program will set.
        before = tl.atomic_add(word(arrivals + slot * 4), 1, sem="acq_rel", scope="sys")
        if before + 1 == covered:
            tl.store(word(arrivals + slot * 4), 0)
            signal_all(
                flag(control, rank, slot), away, epoch, peers.WORLD, peers.WORLD_P, peers.ARCH
            )


@triton.jit
def merge_rows(out_ptr, received, number, batch, shape: tl.constexpr, peers: tl.constexpr):
    """Up to HEADS rows of the output: the messages of all ranks added up in the order of ranks, and
    rounded."""
    OWN: tl.constexpr = shape.OWN
    D: tl.constexpr = shape.D
    HEADS: tl.constexpr = peers.HEADS
    batch_index, first = number // peers.OWN_SLICES, number % peers.OWN_SLICES * HEADS
    row = batch_index * OWN + first
    o_at, lse_at = row_at(received, row, batch, shape)
    valid = first + tl.arange(0, HEADS) < OWN
    stride = message_bytes(batch, shape)
    o, _ = add_up(o_at, lse_at, stride, stride, valid, HEADS, peers.WORLD, D, peers.WORLD_P)
    store_tile(out_ptr, o, row, tl.arange(0, D), (batch_index + 1) * OWN, D, HEADS, peers.ARCH)


@triton.jit
def await_rows(control, epoch, number, rank, shape: tl.constexpr, peers: tl.constexpr):
    """Wait for everything that `merge_rows` reads."""
    OWN: tl.constexpr = shape.OWN
    GROUP: tl.constexpr = shape.GROUP
    HEADS: tl.constexpr = peers.HEADS
    PER_FLAG: tl.constexpr = peers.PIECES_PER_FLAG
    batch_index, first = number // peers.OWN_SLICES, number % peers.OWN_SLICES * HEADS
    within = first + tl.arange(0, HEADS)
    heads = within if OWN == shape.KV_HEADS * GROUP else rank * OWN + within
    groups = batch_index * shape.KV_HEADS + heads // GROUP
    pieces = groups * peers.SLICES + heads % GROUP // HEADS
    slots = pieces // PER_FLAG if PER_FLAG else pieces * 0
    sources = tl.arange(0, peers.WORLD_P)
    flags = flag(control, sources[None, :], slots[:, None])
    if peers.WAITS == "clocked":
        began = clock(peers.ARCH)
    wait_all(flags, epoch, (within < OWN)[:, None] & (sources < peers.WORLD)[None, :])
    if peers.WAITS == "clocked":
        add_waited(control, began, peers.ARCH)


@triton.jit
def await_all(control, epoch, first, pieces, rank, batch, peers: tl.constexpr):
    """Wait for everything that any row reads; a program whose first row is behind the last one
    merges none, and waits for nobody."""
    PER_FLAG: tl.constexpr = peers.PIECES_PER_FLAG
    if first < batch * peers.OWN_SLICES:
        slots = tl.cdiv(pieces, PER_FLAG) if PER_FLAG else 1
        wait_for_all(control, slots, epoch, rank, True, peers.WORLD, peers.WORLD_P)


@triton.jit
def wait_parts(arrived, COUNT: tl.constexpr):
    """Return when all programs of this rank that work for one group have left their parts."""
    while tl.atomic_add(word(arrived), 0, sem="acquire", scope="gpu") < COUNT:
        pass


@triton.jit
def finish_groups(control, epoch, arrived, groups):
    """As `symmetric.finish`, for programs that read neither the epoch nor the groups' counters any
    more: the last sets these back, too."""
    if leave(control):
        for first in range(0, groups, ZEROS):
            numbers = first + tl.arange(0, ZEROS)
            tl.store(word(arrived + numbers * 4), 0, mask=numbers < groups)
        tl.store(word(control + EXITS_OFFSET), 0)
        advance(control, epoch)
