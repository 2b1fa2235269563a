"""persistent: split-K decode, combination, exchange and merge in one kernel, whose programs are all
resident at once.

Who owns a tile: every program attends to units, one after another, then adds up and sends pieces of
groups that are complete, then merges rows of the output; rows are dealt from the last program on,
so that few have both pieces and rows where there are few. Who writes remotely: who adds up a piece
stores it into the inbox of every rank that owns its heads. Which flag says ready: inside a rank a
counter of each group, of the splits that are done; between ranks flag[source][piece / pieces per
flag], set to the epoch once a source has sent those pieces.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import begin, distances, drain, generation_of, word, work_range
from tftune.kernels.device.attention import (
    announce,
    attend,
    await_all,
    await_rows,
    combine_piece,
    finish_groups,
    merge_rows,
    part_at,
    piece_heads,
    send,
    store_partial,
    wait_parts,
)
from tftune.kernels.device.gemm import by_die
from tftune.kernels.flash_decode.variants.launches import Launch


def persistent(kv_splits: int) -> tuple[Launch, ...]:
    """The kernel of a call."""
    return (Launch(decode),)


@triton.jit(do_not_specialize=["batch", "kv_len", "rank"])
def decode(
    q_ptr, k_ptr, v_ptr, lengths_ptr, table_ptr, out_ptr, parts, arrived, arrivals,
    control, payload, control_bases, payload_bases, generation_bytes, batch, kv_len, rank,
    shape: tl.constexpr, cache: tl.constexpr, peers: tl.constexpr,
):  # fmt: skip
    """out = the whole attention; `attention.attend` says what the operands are. parts: scratch for
    every unit's partial result; arrived and arrivals: int32 counters of this rank for each group
    and for each flag, zero between calls."""
    pid, programs, epoch = tl.program_id(0), tl.num_programs(0), begin(control)
    groups = batch * shape.KV_HEADS
    units, pieces = groups * cache.SPLITS, groups * peers.SLICES
    inbox = payload + generation_of(epoch) * generation_bytes
    away = distances(payload_bases, rank, peers.WORLD, peers.WORLD_P)
    flags_away = distances(control_bases, rank, peers.WORLD, peers.WORLD_P)
    within = tl.arange(0, cache.PADDED_GROUP)
    for index in tl.range(pid, units, programs, num_stages=1):
        unit = by_die(index, units, cache.XCDS)
        o, lse = attend(
            q_ptr, k_ptr, v_ptr, lengths_ptr, table_ptr, unit, kv_len, shape, cache, peers.ARCH,
        )  # fmt: skip
        o_at, lse_at = part_at(parts, unit, within, units, shape)
        store_partial(o, lse, o_at, lse_at, within < shape.GROUP, shape.D)
        drain(unit, peers.ARCH)
        tl.atomic_add(word(arrived + unit // cache.SPLITS * 4), 1, sem="release", scope="gpu")
    first, step = work_range(pid, peers.ARCH)
    for piece in tl.range(first, pieces, step, num_stages=1):
        wait_parts(arrived + piece // peers.SLICES * 4, cache.SPLITS)
        o, lse = combine_piece(parts, piece, batch, cache.SPLITS, shape, peers)
        batch_index, heads, valid = piece_heads(piece, shape, peers)
        send(o, lse, away, inbox, batch_index, heads, valid, batch, rank, shape, peers)
        announce(piece, pieces, arrivals, control, flags_away, epoch, rank, peers)
    # Here, where peers are waited for anyway: what follows reads nothing that it sets.
    finish_groups(control, epoch, arrived, groups)
    first, step = work_range(programs - 1 - pid, peers.ARCH)
    if peers.WAITS == "all":
        await_all(control, epoch, first, pieces, rank, batch, peers)
    for number in tl.range(first, batch * peers.OWN_SLICES, step, num_stages=1):
        await_rows(control, epoch, number, rank, shape, peers)
        merge_rows(out_ptr, inbox, number, batch, shape, peers)
