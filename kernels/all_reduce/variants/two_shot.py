"""two_shot: each piece is sent to its owner, who adds it up and stores the rounded sum to all.

Who owns a tile: piece p belongs to rank p modulo the world; share s of a rank is its s-th piece,
and shares are dealt to the programs in turn. Where rows are normalised, whole rows are dealt for
that, on every rank all rows, so that no residual travels. With two roles half of the programs send
and sum, and the others normalise meanwhile: they wait for sums alone, and nobody waits for them.
Who writes remotely: each program stores pieces of x into their owners' inboxes, and the sums of its
own pieces into the results of every rank.
Which flag says ready: flag[source][share], set by who sent its piece of that share; and, in a
second bank, flag[owner][BANK + share], set by the owner when the sum is stored.

Two generations suffice, for each phase by itself: every rank owns a piece (a rule of the space), so
that in the first phase an owner hears from every peer, and in the second every rank hears from
every owner. A peer sends in call e after its call e-1 ended, so it has heard of this rank's e-1,
which began after this rank's e-2, the last to read the same generation. One bank would not do: the
flag of the first phase would say that the second is done.

Where x lies in the symmetric heap nobody sends pieces: program 0 offers x, one flag of a source
covers all of it, and owners load their pieces from every rank. A sum is sent after its piece was
read, so the second phase says, too, that the caller may write x again.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.all_reduce.space import BANK_FLAGS
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
from tftune.kernels.device.in_place import OFFERED, offer
from tftune.kernels.device.reduce import add_norm, elements, piece_tile, pieces_of

BANK = tl.constexpr(BANK_FLAGS)
"""The flags of the second phase begin here, in that half of a source's flags which peers set."""


@triton.jit
def sum_share(
    x_ptr, inbox, results, payload_bases, piece, share, shares, first, M, rank,
    N: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr,
    COLS_P: tl.constexpr, WORLD: tl.constexpr, IN_PLACE: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """Add up TILE rows of this rank's share from row `first` on, in the order of ranks, and store
    the sum into the results of every rank."""
    SIZE: tl.constexpr = ROWS * (N // PARTS) * 2
    places, inside, there = piece_tile(piece, first, M, N, PARTS, ROWS, TILE, COLS_P)
    own = tl.load(x_ptr + places, mask=there, other=0.0)
    total = tl.zeros((TILE, COLS_P), dtype=tl.float32)
    for source in tl.static_range(WORLD):
        if IN_PLACE:
            x_there = peer(tl.cast(x_ptr, tl.int64), payload_bases, rank, source)
            at, offsets = elements(x_there, x_ptr), places
        else:
            arrived = inbox + (tl.cast(source, tl.int64) * shares + share) * SIZE
            at, offsets = elements(arrived, x_ptr), inside
        part = tl.load(at + offsets, mask=there & (source != rank), other=0.0)
        total += tl.cast(tl.where(source == rank, own, part), tl.float32)
    y = rounded(total, x_ptr.dtype.element_ty, ARCH)
    for step in tl.static_range(WORLD):
        its_results = peer(results, payload_bases, rank, (rank + step) % WORLD)
        tl.store(elements(its_results, x_ptr) + places, y, mask=there)


@triton.jit
def send_share(
    x_ptr, inbox, control, payload_bases, away, share, shares, epoch, M, rank,
    cut: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """Store the pieces of a share into their owners' inboxes, and tell the owners."""
    SIZE: tl.constexpr = cut.ROWS * (cut.N // cut.PARTS) * 2
    own_inbox = inbox + (tl.cast(rank, tl.int64) * shares + share) * SIZE
    for step in tl.static_range(1, cut.WORLD):
        owner = (rank + step) % cut.WORLD
        its_inbox = elements(peer(own_inbox, payload_bases, rank, owner), x_ptr)
        for first in range(0, cut.ROWS, cut.TILE):
            places, inside, there = piece_tile(
                share * cut.WORLD + owner, first, M, cut.N, cut.PARTS, cut.ROWS, cut.TILE,
                cut.COLS_P,
            )  # fmt: skip
            part = tl.load(x_ptr + places, mask=there, other=0.0)
            tl.store(its_inbox + inside, part, mask=there)
    signal_all(flag(control, rank, share), away, epoch, cut.WORLD, cut.WORLD_P, ARCH)


@triton.jit
def reduce_share(
    x_ptr, inbox, results, control, payload_bases, away, share, shares, pieces, ranks, epoch, M,
    rank, cut: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """Add up this rank's piece of a share once it has arrived, and tell all that the sum has."""
    if share * cut.WORLD + rank < pieces:
        slot = OFFERED if cut.IN_PLACE else share
        wait_all(flag(control, ranks, slot)[:, None], epoch, (ranks < cut.WORLD)[:, None])
        for first in range(0, cut.ROWS, cut.TILE):
            sum_share(
                x_ptr, inbox, results, payload_bases, share * cut.WORLD + rank, share, shares,
                first, M, rank, cut.N, cut.PARTS, cut.ROWS, cut.TILE, cut.COLS_P, cut.WORLD,
                cut.IN_PLACE, ARCH,
            )  # fmt: skip
        signal_all(flag(control, rank, BANK + share), away, epoch, cut.WORLD, cut.WORLD_P, ARCH)


@triton.jit
def normalize_blocks(
    results_ptr, residual_ptr, weight_ptr, out_ptr, added_ptr, like, control, first, step, epoch,
    M, eps, cut: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """Normalise blocks of rows, each of one group of rows, once their sums have arrived; a row's
    operands are loaded while the row before it is normalised."""
    N: tl.constexpr = cut.N
    BLOCK: tl.constexpr = 8 if cut.ROWS >= 8 else cut.ROWS
    columns, parts = tl.arange(0, cut.N_P), tl.arange(0, cut.PARTS_P)
    within = columns < N
    weight = tl.cast(tl.load(weight_ptr + columns, mask=within, other=0.0), tl.float32)
    for block in tl.range(first, tl.cdiv(M, BLOCK), step, num_stages=1):
        places = tl.cast(block, tl.int64) * (BLOCK * N) + columns
        residual = tl.load(residual_ptr + places, mask=within, other=0.0)
        piece = block * BLOCK // cut.ROWS * cut.PARTS + parts
        flags = flag(control, piece % cut.WORLD, BANK + piece // cut.WORLD)
        wait_all(flags[:, None], epoch, (parts < cut.PARTS)[:, None])
        y = tl.load(results_ptr + places, mask=within, other=0.0)
        end = tl.minimum(M, (block + 1) * BLOCK)
        for row in tl.range(block * BLOCK, end, num_stages=1):
            more = within & (row + 1 < end)
            next_y = tl.load(results_ptr + places + N, mask=more, other=0.0)
            next_residual = tl.load(residual_ptr + places + N, mask=more, other=0.0)
            added, out = add_norm(
                tl.cast(y, tl.float32), tl.cast(residual, tl.float32), weight, within, N, eps,
                like, ARCH,
            )  # fmt: skip
            tl.store(added_ptr + places, added, mask=within)
            tl.store(out_ptr + places, out, mask=within)
            y, residual = next_y, next_residual
            places += N


@triton.jit
def normalize_rows(
    results_ptr, residual_ptr, weight_ptr, out_ptr, added_ptr, like, control, pid, epoch, M, eps,
    cut: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """Normalise this program's rows, each once its sums have arrived."""
    N: tl.constexpr = cut.N
    PARTS: tl.constexpr = cut.PARTS
    WORLD: tl.constexpr = cut.WORLD
    columns, parts = tl.arange(0, cut.N_P), tl.arange(0, cut.PARTS_P)
    within = columns < N
    weight = tl.cast(tl.load(weight_ptr + columns, mask=within, other=0.0), tl.float32)
    begun, stride = work_range(pid, ARCH)
    for row in tl.range(begun, M, stride, num_stages=1):
        places = tl.cast(row, tl.int64) * N + columns
        residual = tl.cast(tl.load(residual_ptr + places, mask=within, other=0.0), tl.float32)
        piece = row // cut.ROWS * PARTS + parts
        flags = flag(control, piece % WORLD, BANK + piece // WORLD)
        wait_all(flags[:, None], epoch, (parts < PARTS)[:, None])
        y = tl.cast(tl.load(results_ptr + places, mask=within, other=0.0), tl.float32)
        added, out = add_norm(y, residual, weight, within, N, eps, like, ARCH)
        tl.store(added_ptr + places, added, mask=within)
        tl.store(out_ptr + places, out, mask=within)


@triton.jit
def copy_shares(
    results_ptr, out_ptr, control, pid, programs, shares, pieces, ranks, epoch, M, rank,
    cut: tl.constexpr,
):  # fmt: skip
    """Copy this program's shares to where the caller wants them, once all of a share's sums have
    arrived."""
    WORLD: tl.constexpr = cut.WORLD
    for share in tl.range(pid, shares, programs, num_stages=1):
        there_are = (ranks < WORLD) & (share * WORLD + ranks < pieces)
        wait_all(flag(control, ranks, BANK + share)[:, None], epoch, there_are[:, None])
        for step in tl.static_range(WORLD):
            piece = share * WORLD + (rank + step) % WORLD
            for first in range(0, cut.ROWS, cut.TILE):
                places, _, there = piece_tile(
                    piece, first, M, cut.N, cut.PARTS, cut.ROWS, cut.TILE, cut.COLS_P
                )
                y = tl.load(results_ptr + places, mask=there, other=0.0)
                tl.store(out_ptr + places, y, mask=there)


@triton.jit(do_not_specialize=["M", "rank"])
def two_shot(
    x_ptr, residual_ptr, weight_ptr, out_ptr, added_ptr,
    control, payload, control_bases, payload_bases, generation_bytes, M, rank, eps,
    cut: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """out = the sum; cut.NORM: added = the sum and the residual, out = added normalised."""
    N: tl.constexpr = cut.N
    PARTS: tl.constexpr = cut.PARTS
    ROWS: tl.constexpr = cut.ROWS
    WORLD: tl.constexpr = cut.WORLD
    WORLD_P: tl.constexpr = cut.WORLD_P
    IN_PLACE: tl.constexpr = cut.IN_PLACE
    pid, programs, epoch = tl.program_id(0), tl.num_programs(0), begin(control)
    pieces = pieces_of(M, PARTS, ROWS)
    shares = tl.cdiv(pieces, WORLD)
    inbox = payload + generation_of(epoch) * generation_bytes
    results = inbox + tl.cast(M, tl.int64) * (N * 4)
    away = distances(control_bases, rank, WORLD, WORLD_P)
    ranks = tl.arange(0, WORLD_P)
    if IN_PLACE:
        offer(control, control_bases, epoch, rank, WORLD, ARCH)
    if cut.ROLES > 1:
        # Sends are one turn ahead of sums, so that the bytes of both phases are under way at once.
        senders = programs // cut.ROLES
        turn = tl.where(pid < senders, pid, shares + senders)
        for share in tl.range(turn, shares + senders, senders, num_stages=1):
            if not IN_PLACE and share < shares:
                send_share(
                    x_ptr, inbox, control, payload_bases, away, share, shares, epoch, M, rank, cut,
                    ARCH,
                )  # fmt: skip
            if share >= senders:
                reduce_share(
                    x_ptr, inbox, results, control, payload_bases, away, share - senders, shares,
                    pieces, ranks, epoch, M, rank, cut, ARCH,
                )  # fmt: skip
    else:
        if not IN_PLACE:
            for share in tl.range(pid, shares, programs, num_stages=1):
                send_share(
                    x_ptr, inbox, control, payload_bases, away, share, shares, epoch, M, rank,
                    cut, ARCH,
                )  # fmt: skip
        for share in tl.range(pid, shares, programs, num_stages=1):
            reduce_share(
                x_ptr, inbox, results, control, payload_bases, away, share, shares, pieces, ranks,
                epoch, M, rank, cut, ARCH,
            )  # fmt: skip
    finish(control, epoch)  # nothing below reads what it sets
    results_ptr = elements(results, x_ptr)
    if cut.ROLES > 1:
        first, step = work_range(pid, ARCH)
        if ARCH != "interpreter":
            senders = programs // cut.ROLES
            first, step = tl.where(pid < senders, M, pid - senders), programs - senders
        normalize_blocks(
            results_ptr, residual_ptr, weight_ptr, out_ptr, added_ptr, x_ptr, control, first, step,
            epoch, M, eps, cut, ARCH,
        )  # fmt: skip
    elif cut.NORM:
        normalize_rows(
            results_ptr, residual_ptr, weight_ptr, out_ptr, added_ptr, x_ptr, control, pid, epoch,
            M, eps, cut, ARCH,
        )  # fmt: skip
    else:
        copy_shares(
            results_ptr, out_ptr, control, pid, programs, shares, pieces, ranks, epoch, M, rank, cut
        )
