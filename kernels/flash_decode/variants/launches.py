"""The kernels of which the ladder's variants are made: each does one step, or two where a constexpr
says so.

Who owns a tile: a program takes units (a split of one sequence for one KV head) or pieces (heads of
one group), one after another. Who writes remotely: `combine` with SEND, and `exchange`: each piece
goes to every rank that owns its heads. Which flag says ready: flag[source][piece / pieces per flag]
in the reader's memory, set to the epoch after the pieces' stores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import begin, distances, finish, flag, generation_of, wait_all
from tftune.kernels.device.attention import (
    announce,
    attend,
    await_all,
    await_rows,
    combine_piece,
    load_partial,
    merge_rows,
    message_rows,
    part_at,
    piece_heads,
    send,
    store_message,
    store_partial,
)
from tftune.kernels.device.gemm import by_die


@dataclass(frozen=True)
class Launch:
    """A kernel in the order of a call, and the constexprs by which it takes part in the variant."""

    kernel: Any
    constants: Mapping[str, Any] = field(default_factory=dict)


def local(kv_splits: int) -> tuple[Launch, ...]:
    """What leaves this rank's partial results in messages of its scratch; one split needs no
    combining."""
    if kv_splits == 1:
        return (Launch(attend_units, {"INTO_MESSAGES": True}),)
    return Launch(attend_units, {"INTO_MESSAGES": False}), Launch(combine, {"SEND": False})


@triton.jit(do_not_specialize=["batch", "kv_len"])
def attend_units(
    q_ptr, k_ptr, v_ptr, lengths_ptr, table_ptr, parts, messages, batch, kv_len,
    shape: tl.constexpr, cache: tl.constexpr, INTO_MESSAGES: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """Each program attends to one unit, and leaves its partial result in `parts`; the only one of a
    group may leave it in `messages`."""
    units = batch * shape.KV_HEADS * cache.SPLITS
    unit = by_die(tl.program_id(0), units, cache.XCDS)
    o, lse = attend(
        q_ptr, k_ptr, v_ptr, lengths_ptr, table_ptr, unit, kv_len, shape, cache, ARCH,
    )  # fmt: skip
    within = tl.arange(0, cache.PADDED_GROUP)
    if INTO_MESSAGES:
        heads = unit % shape.KV_HEADS * shape.GROUP + within
        valid = within < shape.GROUP
        store_message(o, lse, messages, unit // shape.KV_HEADS, heads, valid, batch, shape)
    else:
        o_at, lse_at = part_at(parts, unit, within, units, shape)
        store_partial(o, lse, o_at, lse_at, within < shape.GROUP, shape.D)


@triton.jit(do_not_specialize=["batch", "rank"])
def combine(
    parts, messages, arrivals, control, payload, control_bases, payload_bases, generation_bytes,
    batch, rank, shape: tl.constexpr, peers: tl.constexpr, SPLITS: tl.constexpr,
    SEND: tl.constexpr,
):  # fmt: skip
    """Add up the splits, piece by piece: into `messages` or, SEND, into the owners' inboxes."""
    pieces = batch * shape.KV_HEADS * peers.SLICES
    epoch = begin(control)
    inbox = payload + generation_of(epoch) * generation_bytes
    away = distances(payload_bases, rank, peers.WORLD, peers.WORLD_P)
    flags_away = distances(control_bases, rank, peers.WORLD, peers.WORLD_P)
    for piece in tl.range(tl.program_id(0), pieces, tl.num_programs(0), num_stages=1):
        o, lse = combine_piece(parts, piece, batch, SPLITS, shape, peers)
        batch_index, heads, valid = piece_heads(piece, shape, peers)
        if SEND:
            send(o, lse, away, inbox, batch_index, heads, valid, batch, rank, shape, peers)
            announce(piece, pieces, arrivals, control, flags_away, epoch, rank, peers)
        else:
            store_message(o, lse, messages, batch_index, heads, valid, batch, shape)


@triton.jit(do_not_specialize=["batch", "rank"])
def exchange(
    messages, arrivals, control, payload, control_bases, payload_bases, generation_bytes,
    batch, rank, shape: tl.constexpr, peers: tl.constexpr, WAIT: tl.constexpr,
):  # fmt: skip
    """Send the messages, piece by piece; with WAIT the kernel ends when every rank has done so (one
    flag of a source is for all pieces)."""
    pieces = batch * shape.KV_HEADS * peers.SLICES
    epoch = begin(control)
    inbox = payload + generation_of(epoch) * generation_bytes
    away = distances(payload_bases, rank, peers.WORLD, peers.WORLD_P)
    flags_away = distances(control_bases, rank, peers.WORLD, peers.WORLD_P)
    for piece in tl.range(tl.program_id(0), pieces, tl.num_programs(0), num_stages=1):
        batch_index, heads, valid = piece_heads(piece, shape, peers)
        o_at, lse_at = message_rows(messages, batch_index, heads, batch, shape)
        o, lse = load_partial(o_at, lse_at, valid, shape.D)
        send(o, lse, away, inbox, batch_index, heads, valid, batch, rank, shape, peers)
        announce(piece, pieces, arrivals, control, flags_away, epoch, rank, peers)
    if WAIT and tl.program_id(0) == tl.num_programs(0) - 1:
        sources = tl.arange(0, peers.WORLD_P)
        wait_all(flag(control, sources, 0)[:, None], epoch, (sources < peers.WORLD)[:, None])


@triton.jit(do_not_specialize=["batch", "rank"])
def merge(
    out_ptr, received, control, payload, generation_bytes, batch, rank,
    shape: tl.constexpr, peers: tl.constexpr, INBOX: tl.constexpr, WAIT: tl.constexpr,
):  # fmt: skip
    """The output from what all ranks sent: from `received` or, INBOX, from this call's generation
    of the payload."""
    epoch, messages = 0, received
    if INBOX:
        epoch = begin(control)
        messages = payload + generation_of(epoch) * generation_bytes
        # Every program has read the epoch that the last one then advances: what follows need not
        # be waited for.
        finish(control, epoch)
    first, rows = tl.program_id(0), batch * peers.OWN_SLICES
    if WAIT and peers.WAITS == "all":
        await_all(control, epoch, first, batch * shape.KV_HEADS * peers.SLICES, rank, batch, peers)
    for number in tl.range(first, rows, tl.num_programs(0), num_stages=1):
        if WAIT:
            await_rows(control, epoch, number, rank, shape, peers)
        merge_rows(out_ptr, messages, number, batch, shape, peers)
