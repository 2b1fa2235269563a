"""one_shot: each rank stores its rows into every peer's inbox, and each rank adds up all of them.

Who owns a tile: pieces, some rows by a part of the columns, are dealt to the programs in turn; who
sends a piece also sums it. Where rows are normalised, whole rows are dealt for that.
Who writes remotely: each program stores its pieces into the inbox of every peer.
Which flag says ready: flag[source][piece] in the reader's memory, set after the piece's stores.

Two generations suffice: there is at least one piece, and who ends a call has waited for a piece of
every peer. A peer sends in call e after its call e-1 ended, so it has heard of this rank's e-1,
which began after this rank's e-2, the last to read the same generation.

Where x lies in the symmetric heap nobody stores it elsewhere: program 0 offers it, one flag of a
source covers all of it, each rank loads the others' x, and the kernel ends when every peer has read
this rank's (`in_place`).
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import (
    begin,
    distances,
    finish,
    flag,
    generation_of,
    peer,
    signal_all,
    wait_all,
    work_range,
)
from tftune.kernels.device.gemm import rounded
from tftune.kernels.device.in_place import OFFERED, finish_read, offer
from tftune.kernels.device.reduce import add_norm, elements, piece_tile, pieces_of


@triton.jit
def source_of(x_ptr, inbox, source, rank, size):
    """Where x of a rank lies here, its own being where the caller left it. size: bytes of one x."""
    arrived = elements(inbox + source * size, x_ptr)
    return tl.where(source == rank, tl.cast(x_ptr, tl.int64), tl.cast(arrived, tl.int64))


@triton.jit
def summed(
    x_ptr, inbox, payload_bases, places, there, rank, size, WORLD: tl.constexpr,
    IN_PLACE: tl.constexpr,
):  # fmt: skip
    """The sum over ranks of what lies at these places of x, fp32, in the order of ranks."""
    total = tl.zeros(places.shape, dtype=tl.float32)
    for source in tl.static_range(WORLD):
        if IN_PLACE:
            x_at = elements(peer(tl.cast(x_ptr, tl.int64), payload_bases, rank, source), x_ptr)
        else:
            x_at = elements(source_of(x_ptr, inbox, source, rank, size), x_ptr)
        total += tl.cast(tl.load(x_at + places, mask=there, other=0.0), tl.float32)
    return total


@triton.jit(do_not_specialize=["M", "rank"])
def one_shot(
    x_ptr, residual_ptr, weight_ptr, out_ptr, added_ptr,
    control, payload, control_bases, payload_bases, generation_bytes, M, rank, eps,
    cut: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """out = the sum; cut.NORM: added = the sum and the residual, out = added normalised."""
    N: tl.constexpr = cut.N
    N_P: tl.constexpr = cut.N_P
    PARTS: tl.constexpr = cut.PARTS
    PARTS_P: tl.constexpr = cut.PARTS_P
    ROWS: tl.constexpr = cut.ROWS
    TILE: tl.constexpr = cut.TILE
    COLS_P: tl.constexpr = cut.COLS_P
    WORLD: tl.constexpr = cut.WORLD
    WORLD_P: tl.constexpr = cut.WORLD_P
    IN_PLACE: tl.constexpr = cut.IN_PLACE
    pid, programs, epoch = tl.program_id(0), tl.num_programs(0), begin(control)
    inbox = payload + generation_of(epoch) * generation_bytes
    size = tl.cast(M, tl.int64) * (N * 2)
    away = distances(control_bases, rank, WORLD, WORLD_P)
    sources = tl.arange(0, WORLD_P)
    if IN_PLACE:
        offer(control, control_bases, epoch, rank, WORLD, ARCH)
        wait_all(flag(control, sources, OFFERED)[:, None], epoch, (sources < WORLD)[:, None])
    else:
        for piece in tl.range(pid, pieces_of(M, PARTS, ROWS), programs, num_stages=1):
            for first in range(0, ROWS, TILE):
                places, _, there = piece_tile(piece, first, M, N, PARTS, ROWS, TILE, COLS_P)
                own = tl.load(x_ptr + places, mask=there, other=0.0)
                for step in tl.static_range(1, WORLD):
                    its_inbox = peer(
                        inbox + rank * size, payload_bases, rank, (rank + step) % WORLD
                    )
                    tl.store(elements(its_inbox, x_ptr) + places, own, mask=there)
            signal_all(flag(control, rank, piece), away, epoch, WORLD, WORLD_P, ARCH)
        finish(control, epoch)  # nothing below reads what it sets
    if cut.NORM:
        columns, parts = tl.arange(0, N_P), tl.arange(0, PARTS_P)
        within = columns < N
        weight = tl.cast(tl.load(weight_ptr + columns, mask=within, other=0.0), tl.float32)
        begun, stride = work_range(pid, ARCH)
        for row in tl.range(begun, M, stride, num_stages=1):
            places = tl.cast(row, tl.int64) * N + columns
            residual = tl.cast(tl.load(residual_ptr + places, mask=within, other=0.0), tl.float32)
            slots = row // ROWS * PARTS + parts
            wanted = (parts < PARTS)[:, None] & (sources < WORLD)[None, :]
            if not IN_PLACE:
                wait_all(flag(control, sources[None, :], slots[:, None]), epoch, wanted)
            total = summed(
                x_ptr, inbox, payload_bases, places, within, rank, size, WORLD, IN_PLACE
            )  # fmt: skip
            y = tl.cast(rounded(total, x_ptr.dtype.element_ty, ARCH), tl.float32)
            added, out = add_norm(y, residual, weight, within, N, eps, x_ptr, ARCH)
            tl.store(added_ptr + places, added, mask=within)
            tl.store(out_ptr + places, out, mask=within)
    else:
        for piece in tl.range(pid, pieces_of(M, PARTS, ROWS), programs, num_stages=1):
            if not IN_PLACE:
                wait_all(flag(control, sources, piece)[:, None], epoch, (sources < WORLD)[:, None])
            for first in range(0, ROWS, TILE):
                places, _, there = piece_tile(piece, first, M, N, PARTS, ROWS, TILE, COLS_P)
                total = summed(
                    x_ptr, inbox, payload_bases, places, there, rank, size, WORLD, IN_PLACE
                )  # fmt: skip
                tl.store(out_ptr + places, rounded(total, x_ptr.dtype.element_ty, ARCH), mask=there)
    if IN_PLACE:
        finish_read(control, control_bases, epoch, rank, True, WORLD, ARCH)
