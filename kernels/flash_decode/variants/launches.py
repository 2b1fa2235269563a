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

from tftune.kernels.comm.symmetric import begin, finish, flag, generation_of
from tftune.kernels.device.attention import (
    announce,
    attend,
    await_rows,
    combine_piece,
    distances,
    load_partial,
    merge_rows,
    message_bytes,
    part_at,
    piece_heads,
    row_at,
    send,
    store_message,
    store_partial,
    wait_all,
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
    KV_HEADS: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr, OWN: tl.constexpr,
    SPLITS: tl.constexpr, BLOCK_N: tl.constexpr, PADDED_GROUP: tl.constexpr, XCDS: tl.constexpr, INTO_MESSAGES: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """Each program attends to one unit, and leaves its partial result in `parts`; the only one of a
    group may leave it in `messages`."""
    units = batch * KV_HEADS * SPLITS
    unit = by_die(tl.program_id(0), units, XCDS)
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
    within = tl.arange(0, PADDED_GROUP)
    if INTO_MESSAGES:
        heads = unit % KV_HEADS * GROUP + within
        store_message(o, lse, messages, unit // KV_HEADS, heads, within < GROUP, batch, OWN, D)
    else:
        o_at, lse_at = part_at(parts, unit, within, units, GROUP, D)
        store_partial(o, lse, o_at, lse_at, within < GROUP, D)


@triton.jit(do_not_specialize=["batch", "rank"])
def combine(
    parts, messages, arrivals, control, payload, control_bases, payload_bases, generation_bytes, batch, rank,
    KV_HEADS: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, OWN: tl.constexpr, HEADS: tl.constexpr,
    SPLITS: tl.constexpr, SPLITS_CHUNK: tl.constexpr, PIECES_PER_FLAG: tl.constexpr,
    WORLD: tl.constexpr, WORLD_P: tl.constexpr, SEND: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """Add up the splits, piece by piece: into `messages` or, SEND, into the owners' inboxes."""
    pieces = batch * KV_HEADS * ((GROUP + HEADS - 1) // HEADS)
    epoch = begin(control)
    inbox = payload + generation_of(epoch) * generation_bytes
    away, flags_away = (
        distances(payload_bases, rank, WORLD, WORLD_P),
        distances(control_bases, rank, WORLD, WORLD_P),
    )
    for piece in tl.range(tl.program_id(0), pieces, tl.num_programs(0), num_stages=1):
        o, lse = combine_piece(parts, piece, batch, KV_HEADS, GROUP, D, HEADS, SPLITS, SPLITS_CHUNK)
        batch_index, heads, valid = piece_heads(piece, KV_HEADS, GROUP, HEADS)
        if SEND:
            send(
                o,
                lse,
                away,
                inbox,
                batch_index,
                heads,
                valid,
                batch,
                rank,
                KV_HEADS * GROUP,
                OWN,
                D,
                HEADS,
                WORLD,
                WORLD_P,
            )
            announce(
                piece,
                pieces,
                arrivals,
                control,
                flags_away,
                epoch,
                rank,
                PIECES_PER_FLAG,
                WORLD,
                WORLD_P,
                ARCH,
            )
        else:
            store_message(o, lse, messages, batch_index, heads, valid, batch, OWN, D)


@triton.jit(do_not_specialize=["batch", "rank"])
def exchange(
    messages, arrivals, control, payload, control_bases, payload_bases, generation_bytes, batch, rank,
    KV_HEADS: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, OWN: tl.constexpr, HEADS: tl.constexpr,
    PIECES_PER_FLAG: tl.constexpr, WORLD: tl.constexpr, WORLD_P: tl.constexpr, WAIT: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """Send the messages, piece by piece; with WAIT the kernel ends when every rank has done so (one
    flag of a source is for all pieces)."""
    pieces = batch * KV_HEADS * ((GROUP + HEADS - 1) // HEADS)
    epoch = begin(control)
    inbox = payload + generation_of(epoch) * generation_bytes
    away, flags_away = (
        distances(payload_bases, rank, WORLD, WORLD_P),
        distances(control_bases, rank, WORLD, WORLD_P),
    )
    for piece in tl.range(tl.program_id(0), pieces, tl.num_programs(0), num_stages=1):
        batch_index, heads, valid = piece_heads(piece, KV_HEADS, GROUP, HEADS)
        own_message = messages + heads // OWN * message_bytes(batch, OWN, D)
        o_at, lse_at = row_at(own_message, batch_index * OWN + heads % OWN, batch, OWN, D)
        o, lse = load_partial(o_at, lse_at, valid, D)
        send(
            o,
            lse,
            away,
            inbox,
            batch_index,
            heads,
            valid,
            batch,
            rank,
            KV_HEADS * GROUP,
            OWN,
            D,
            HEADS,
            WORLD,
            WORLD_P,
        )
        announce(
            piece,
            pieces,
            arrivals,
            control,
            flags_away,
            epoch,
            rank,
            PIECES_PER_FLAG,
            WORLD,
            WORLD_P,
            ARCH,
        )
    if WAIT and tl.program_id(0) == tl.num_programs(0) - 1:
        sources = tl.arange(0, WORLD_P)
        wait_all(flag(control, sources, 0)[:, None], epoch, (sources < WORLD)[:, None])


@triton.jit(do_not_specialize=["batch", "rank"])
def merge(
    out_ptr, received, control, payload, generation_bytes, batch, rank,
    KV_HEADS: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, OWN: tl.constexpr, HEADS: tl.constexpr,
    PIECES_PER_FLAG: tl.constexpr, WORLD: tl.constexpr, WORLD_P: tl.constexpr,
    INBOX: tl.constexpr, WAIT: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """The output from what all ranks sent: from `received` or, INBOX, from this call's generation
    of the payload."""
    epoch, messages = 0, received
    if INBOX:
        epoch = begin(control)
        messages = payload + generation_of(epoch) * generation_bytes
        finish(
            control, epoch
        )  # every program has read the epoch that the last one then advances: what follows need not be waited for
    for number in tl.range(
        tl.program_id(0), batch * ((OWN + HEADS - 1) // HEADS), tl.num_programs(0), num_stages=1
    ):
        if WAIT:
            await_rows(
                control,
                epoch,
                number,
                rank,
                KV_HEADS,
                GROUP,
                OWN,
                HEADS,
                PIECES_PER_FLAG,
                WORLD,
                WORLD_P,
            )
        merge_rows(out_ptr, messages, number, batch, D, OWN, HEADS, WORLD, WORLD_P, ARCH)
