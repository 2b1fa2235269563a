"""A GEMM whose inner size is split over the ranks: partial tiles, where they go, and their sum.

`exchange.ROUTE` says where a partial tile goes, and who adds it up:

    push      into the inbox of the rank that owns its rows
    pull      nowhere: the owner loads it from the rank that computed it
    relay     into this rank's outbox; programs that compute none forward it as push does
    one_shot  into the inbox of every rank; each owns all rows
    two_shot  as push; then the owner stores the sum to every rank

Tiles are counted owner by owner, the next rank's first and this rank's last, so that every owner
hears early from one source and late from another. Where a row tile holds all rows of the call
(SPANS), it has rows of every owner.

Partials lie in slots of [rows of an owner, N], counted through sources and the SPLIT_K parts of
each. An owner adds its slots in this order, in fp32, and rounds once: the result is the same
whatever arrives first, on every rank and in every run.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import (
    READY_FLAGS,
    drain,
    flag,
    generation_of,
    peer,
    signal,
    wait,
    wait_all,
    word,
    work_range,
)
from tftune.kernels.core import partials
from tftune.kernels.device.gemm import multiply, multiply_blocks, rounded, tile_order
from tftune.kernels.device.shards import pointer
from tftune.kernels.device.waits import add_waited, clock, wait_for_all

SECOND_BANK = tl.constexpr(partials.BANK_FLAGS)
"""Where the flags of two_shot's sums begin."""


@triton.jit
def partial_tile(
    a_ptr, b_ptr, a_desc, b_desc, row, last_row, col, part,
    problem: tl.constexpr, tile: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """fp32 [BLOCK_M, BLOCK_N]: rows row.. of A [M, K] times columns col.. of B, over one of SPLIT_K
    runs of K. Rows behind last_row are not wanted; pointers read last_row in their place."""
    K: tl.constexpr = problem.K
    STEPS: tl.constexpr = (K + tile.BLOCK_K - 1) // tile.BLOCK_K
    RUN: tl.constexpr = (STEPS + tile.SPLIT_K - 1) // tile.SPLIT_K * tile.BLOCK_K
    begin = part * RUN
    end = tl.minimum(begin + RUN, K)
    acc = tl.zeros((tile.BLOCK_M, tile.BLOCK_N), tl.float32)
    if tile.LOADS == "descriptor":
        acc = multiply_blocks(
            acc, a_desc, row, 0, b_desc, col, begin, end, False, problem, tile, ARCH
        )
    else:
        rows = tl.minimum(row + tl.arange(0, tile.BLOCK_M), last_row)
        a_rows = tl.cast(a_ptr, tl.int64) + tl.cast(rows, tl.int64) * (K * 2)
        cols = col + tl.arange(0, tile.BLOCK_N)
        acc = multiply(acc, a_rows, b_ptr, begin, end, cols, False, problem, tile, ARCH)
    return acc


@triton.jit
def descriptors_of(a_ptr, b_ptr, M, problem: tl.constexpr, tile: tl.constexpr):
    """Tensor descriptors of a and b, made here."""
    K: tl.constexpr = problem.K
    N: tl.constexpr = problem.N
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [tile.BLOCK_M, tile.BLOCK_K])
    if problem.B_IS_NK:
        b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [tile.BLOCK_N, tile.BLOCK_K])
    else:
        b_desc = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [tile.BLOCK_K, tile.BLOCK_N])
    return a_desc, b_desc


@triton.jit
def announce(
    arrivals, counter, covered, flag_here, control_bases, owner, epoch, rank,
    WORLD: tl.constexpr, EVERYONE: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """Say that this program has stored one of `covered` pieces: the last of them sets the flag at
    the owner or at EVERYONE. arrivals: int32 counters, zero between calls."""
    drain(epoch, ARCH)
    # At system scope: what the others stored to peers must be there before the flag is.
    before = tl.atomic_add(word(arrivals + counter * 4), 1, sem="acq_rel", scope="sys")
    if before + 1 == covered:
        tl.store(word(arrivals + counter * 4), 0)
        if EVERYONE:
            for step in range(1, WORLD + 1):
                target = (rank + step) % WORLD
                signal(peer(flag_here, control_bases, rank, target), epoch, ARCH)
        else:
            signal(peer(flag_here, control_bases, rank, owner), epoch, ARCH)


@triton.jit
def row_pointers(address, rows, cols, N: tl.constexpr, DTYPE: tl.constexpr):
    """Pointers to these rows and columns of a matrix [.., N] at an address."""
    places = tl.cast(rows, tl.int64) * (N * DTYPE.primitive_bitwidth // 8)
    return pointer(address + places, N, DTYPE)[:, None] + cols[None, :]


@triton.jit
def store_rows(
    values, address, rows, cols, there, N: tl.constexpr, DTYPE: tl.constexpr, ARCH: tl.constexpr
):
    """Store fp32 values there; `there`: which rows."""
    inside = there[:, None] & (cols < N)[None, :]
    pointers = row_pointers(address, rows, cols, N, DTYPE)
    tl.store(pointers, rounded(values, DTYPE, ARCH), mask=inside)


@triton.jit
def send_partials(
    a_ptr, b_ptr, a_desc, b_desc, arrivals, outbox, control, inbox, control_bases, payload_bases,
    epoch, M, rank, problem: tl.constexpr, tile: tl.constexpr, exchange: tl.constexpr,
    ARCH: tl.constexpr,
):  # fmt: skip
    """Every part of a tile that falls to this program, into its slot. inbox: address here of this
    call's generation; outbox: of slots for the other owners, in turn."""
    N: tl.constexpr = problem.N
    WORLD: tl.constexpr = problem.WORLD
    SPLIT_K: tl.constexpr = tile.SPLIT_K
    OWNERS: tl.constexpr = 1 if exchange.ROUTE == "one_shot" else WORLD
    TURNS: tl.constexpr = 1 if exchange.SPANS else OWNERS
    WIRE: tl.constexpr = tl.float32 if exchange.WIRE_FP32 else a_ptr.dtype.element_ty
    owner_rows, tiles_n = M // OWNERS, tl.cdiv(N, tile.BLOCK_N)
    row_tiles = 1 if exchange.SPANS else tl.cdiv(owner_rows, tile.BLOCK_M)
    tiles = row_tiles * tiles_n
    groups = tl.cdiv(tiles, exchange.TILES_PER_FLAG)
    units = TURNS * tiles * SPLIT_K
    begin, programs = tl.program_id(0), tl.num_programs(0)
    if exchange.ROUTE == "relay":
        begin = tl.where(begin < exchange.COMM_PROGRAMS, units, begin - exchange.COMM_PROGRAMS)
        programs -= exchange.COMM_PROGRAMS
    for unit in tl.range(begin, units, programs, num_stages=1):
        number, part = unit // SPLIT_K % tiles, unit % SPLIT_K
        turn = unit // SPLIT_K // tiles
        owner = (rank + 1 + turn) % WORLD
        tile_m, tile_n = tile_order(number, row_tiles, tiles_n, tile.GROUP_M)
        first = owner * owner_rows if TURNS > 1 else 0
        last = first + owner_rows - 1 if TURNS > 1 else M - 1
        row, col = tile_m * tile.BLOCK_M, tile_n * tile.BLOCK_N
        acc = partial_tile(
            a_ptr, b_ptr, a_desc, b_desc, first + row, last, col, part, problem, tile, ARCH
        )
        rows, cols = row + tl.arange(0, tile.BLOCK_M), col + tl.arange(0, tile.BLOCK_N)
        there = rows <= last - first
        if exchange.SPANS:
            owners = tl.minimum(rows // owner_rows, OWNERS - 1)
            rows = rows % owner_rows
        else:
            owners = owner
        if exchange.ROUTE == "one_shot":
            slot_rows = (rank * SPLIT_K + part) * owner_rows + rows
            for step in range(1, WORLD + 1):
                base = peer(inbox, payload_bases, rank, (rank + step) % WORLD)
                store_rows(acc, base, slot_rows, cols, there, N, WIRE, ARCH)
        elif exchange.ROUTE == "pull":
            slot_rows = (owners * SPLIT_K + part) * owner_rows + rows
            store_rows(acc, inbox, slot_rows, cols, there, N, WIRE, ARCH)
        elif exchange.ROUTE == "relay":
            base = tl.where(owner == rank, inbox, outbox)
            slot_rows = (tl.where(owner == rank, rank, turn) * SPLIT_K + part) * owner_rows + rows
            store_rows(acc, base, slot_rows, cols, there, N, WIRE, ARCH)
        else:
            slot_rows = (rank * SPLIT_K + part) * owner_rows + rows
            base = peer(inbox, payload_bases, rank, owners)
            store_rows(acc, base, slot_rows, cols, there, N, WIRE, ARCH)
        group = number // exchange.TILES_PER_FLAG
        in_group = tl.minimum(exchange.TILES_PER_FLAG, tiles - group * exchange.TILES_PER_FLAG)
        told, slot = owner, group
        if exchange.ROUTE == "relay":
            told = rank
            slot = tl.where(owner == rank, group, READY_FLAGS + turn * groups + group)
        announce(
            arrivals, turn * groups + group, in_group * SPLIT_K, flag(control, rank, slot),
            control_bases, told, epoch, rank, WORLD,
            exchange.SPANS or exchange.ROUTE == "one_shot", ARCH,
        )  # fmt: skip


@triton.jit
def forward_groups(
    a_ptr, outbox, control, inbox, control_bases, payload_bases, epoch, M, rank,
    problem: tl.constexpr, tile: tl.constexpr, exchange: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """The groups of tiles that fall to this program of the first COMM_PROGRAMS, from the outbox
    into their owners' inboxes, in the order in which they are finished; then the owner's flag.

    The interpreter runs programs one after another: there the last forwards all.
    """
    N: tl.constexpr = problem.N
    WORLD: tl.constexpr = problem.WORLD
    SPLIT_K: tl.constexpr = tile.SPLIT_K
    WIRE: tl.constexpr = tl.float32 if exchange.WIRE_FP32 else a_ptr.dtype.element_ty
    owner_rows, tiles_n = M // WORLD, tl.cdiv(N, tile.BLOCK_N)
    row_tiles = tl.cdiv(owner_rows, tile.BLOCK_M)
    tiles = row_tiles * tiles_n
    groups = tl.cdiv(tiles, exchange.TILES_PER_FLAG)
    within_rows, within_cols = tl.arange(0, exchange.COPY_ROWS), tl.arange(0, tile.BLOCK_N)
    items, slabs = (WORLD - 1) * groups, tl.cdiv(tile.BLOCK_M, exchange.COPY_ROWS)
    if ARCH == "interpreter":
        first, step = work_range(0, ARCH)
    else:
        step = exchange.COMM_PROGRAMS
        first = tl.where(tl.program_id(0) < step, tl.program_id(0), items)
    for item in tl.range(first, items, step, num_stages=1):
        turn, group = item // groups, item % groups
        owner = (rank + 1 + turn) % WORLD
        base = peer(inbox, payload_bases, rank, owner)
        number = group * exchange.TILES_PER_FLAG
        pieces = tl.minimum(exchange.TILES_PER_FLAG, tiles - number) * SPLIT_K * slabs
        wait(flag(control, rank, READY_FLAGS + item), epoch)
        for piece in tl.range(0, pieces, num_stages=1):
            part, within = piece // slabs % SPLIT_K, number + piece // slabs // SPLIT_K
            tile_m, tile_n = tile_order(within, row_tiles, tiles_n, tile.GROUP_M)
            rows = tile_m * tile.BLOCK_M + piece % slabs * exchange.COPY_ROWS + within_rows
            cols = tile_n * tile.BLOCK_N + within_cols
            inside = (rows < owner_rows)[:, None] & (cols < N)[None, :]
            from_rows = (turn * SPLIT_K + part) * owner_rows + rows
            to_rows = (rank * SPLIT_K + part) * owner_rows + rows
            values = tl.load(row_pointers(outbox, from_rows, cols, N, WIRE), mask=inside)
            tl.store(row_pointers(base, to_rows, cols, N, WIRE), values, mask=inside)
        signal(peer(flag(control, rank, group), control_bases, rank, owner), epoch, ARCH)


@triton.jit
def add_slots(
    inbox, payload_bases, rows, cols, there, owner_rows, rank, WIRE: tl.constexpr,
    problem: tl.constexpr, tile: tl.constexpr, exchange: tl.constexpr,
):  # fmt: skip
    """fp32 [ADD_ROWS, BLOCK_N]: these rows and columns of all slots, added in their order."""
    inside = there[:, None] & (cols < problem.N)[None, :]
    total = tl.zeros((exchange.ADD_ROWS, tile.BLOCK_N), tl.float32)
    for source in tl.static_range(problem.WORLD):
        if exchange.ROUTE == "pull":
            base, first_slot = peer(inbox, payload_bases, rank, source), rank * tile.SPLIT_K
        else:
            base, first_slot = inbox, source * tile.SPLIT_K
        for part in tl.static_range(tile.SPLIT_K):
            slot_rows = (first_slot + part) * owner_rows + rows
            pointers = row_pointers(base, slot_rows, cols, problem.N, WIRE)
            total += tl.cast(tl.load(pointers, mask=inside, other=0.0), tl.float32)
    return total


@triton.jit
def add_partials(
    a_ptr, c_ptr, arrivals, control, inbox, control_bases, payload_bases, sums, epoch, M, rank,
    problem: tl.constexpr, tile: tl.constexpr, exchange: tl.constexpr,
    ARCH: tl.constexpr,
):  # fmt: skip
    """C's rows of this rank, ADD_ROWS of a tile at a time, once all their slots are there.

    two_shot: C has all rows; the sums go to the same rows of [M, N] at `sums` on every peer, and
    are told by flags of a second bank; then this rank's C takes those of the others.
    """
    N: tl.constexpr = problem.N
    WORLD: tl.constexpr = problem.WORLD
    OWNERS: tl.constexpr = 1 if exchange.ROUTE == "one_shot" else WORLD
    DTYPE: tl.constexpr = c_ptr.dtype.element_ty
    WIRE: tl.constexpr = tl.float32 if exchange.WIRE_FP32 else a_ptr.dtype.element_ty
    owner_rows, tiles_n = M // OWNERS, tl.cdiv(N, tile.BLOCK_N)
    row_tiles = 1 if exchange.SPANS else tl.cdiv(owner_rows, tile.BLOCK_M)
    tiles = row_tiles * tiles_n
    slices = tl.cdiv(owner_rows if exchange.SPANS else tile.BLOCK_M, exchange.ADD_ROWS)
    groups = tl.cdiv(tiles, exchange.TILES_PER_FLAG)
    c, sources = tl.cast(c_ptr, tl.int64), tl.arange(0, exchange.WORLD_P)
    within_rows, within_cols = tl.arange(0, exchange.ADD_ROWS), tl.arange(0, tile.BLOCK_N)
    first, step = work_range(tl.program_id(0), ARCH)
    if exchange.WAITS == "all":  # noqa: SIM102 (a constant decides, then a number)
        if first < tiles * slices:
            wait_for_all(control, groups, epoch, rank, True, WORLD, exchange.WORLD_P)
    for piece in tl.range(first, tiles * slices, step, num_stages=1):
        number = piece // slices
        group = number // exchange.TILES_PER_FLAG
        tile_m, tile_n = tile_order(number, row_tiles, tiles_n, tile.GROUP_M)
        rows = tile_m * tile.BLOCK_M + piece % slices * exchange.ADD_ROWS + within_rows
        cols, there = tile_n * tile.BLOCK_N + within_cols, rows < owner_rows
        if exchange.WAITS == "clocked":
            began = clock(ARCH)
        wait_all(flag(control, sources, group)[:, None], epoch, (sources < WORLD)[:, None])
        if exchange.WAITS == "clocked":
            add_waited(control, began, ARCH)
        total = add_slots(
            inbox,
            payload_bases,
            rows,
            cols,
            there,
            owner_rows,
            rank,
            WIRE,
            problem,
            tile,
            exchange,
        )
        if exchange.ROUTE == "two_shot":
            own_rows = rank * owner_rows + rows
            store_rows(total, c, own_rows, cols, there, N, DTYPE, ARCH)
            for other in range(1, WORLD):
                base = peer(sums, payload_bases, rank, (rank + other) % WORLD)
                store_rows(total, base, own_rows, cols, there, N, DTYPE, ARCH)
            in_group = tl.minimum(exchange.TILES_PER_FLAG, tiles - group * exchange.TILES_PER_FLAG)
            announce(
                arrivals, (1 if exchange.SPANS else WORLD) * groups + group, in_group * slices,
                flag(control, rank, SECOND_BANK + group), control_bases, rank, epoch, rank,
                WORLD, True, ARCH,
            )  # fmt: skip
        else:
            store_rows(total, c, rows, cols, there, N, DTYPE, ARCH)
    if exchange.ROUTE == "two_shot":
        for piece in tl.range(first, (WORLD - 1) * tiles * slices, step, num_stages=1):
            number = piece // slices % tiles
            owner = (rank + 1 + piece // slices // tiles) % WORLD
            tile_m, tile_n = tile_order(number, row_tiles, tiles_n, tile.GROUP_M)
            rows = tile_m * tile.BLOCK_M + piece % slices * exchange.ADD_ROWS + within_rows
            cols, there = tile_n * tile.BLOCK_N + within_cols, rows < owner_rows
            rows += owner * owner_rows
            wait(flag(control, owner, SECOND_BANK + number // exchange.TILES_PER_FLAG), epoch)
            inside = there[:, None] & (cols < N)[None, :]
            taken = tl.load(row_pointers(sums, rows, cols, N, DTYPE), mask=inside, other=0.0)
            tl.store(row_pointers(c, rows, cols, N, DTYPE), taken, mask=inside)


@triton.jit
def gemm_reduce(
    a_ptr, b_ptr, c_ptr, a_desc, b_desc, arrivals, outbox, control, payload, control_bases,
    payload_bases, generation_bytes, slots_bytes, epoch, M, rank, problem: tl.constexpr,
    tile: tl.constexpr, exchange: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """C = the sum over ranks of A [M, K] @ B: this rank's M / WORLD rows, or all of them where
    exchange.ROUTE is one_shot or two_shot. problem.K: of one rank.

    a_ptr, b_ptr ([K, N] or [N, K]) and c_ptr: all fp16 or all bf16, row-major; *_desc: tensor
    descriptors of a and b where tile.LOADS is "descriptor". arrivals: address of int32 counters;
    outbox: of a relay's slots for WORLD - 1 owners, which no peer sees. slots_bytes: of a
    generation, what the slots take; behind them the sums of two_shot lie.
    """
    inbox = payload + generation_of(epoch) * generation_bytes
    if tile.LOADS == "descriptor" and ARCH == "interpreter":
        a_desc, b_desc = descriptors_of(a_ptr, b_ptr, M, problem, tile)
    send_partials(
        a_ptr, b_ptr, a_desc, b_desc, arrivals, outbox, control, inbox, control_bases,
        payload_bases, epoch, M, rank, problem, tile, exchange, ARCH,
    )  # fmt: skip
    if exchange.ROUTE == "relay":
        forward_groups(
            a_ptr, outbox, control, inbox, control_bases, payload_bases, epoch, M, rank,
            problem, tile, exchange, ARCH,
        )  # fmt: skip
    add_partials(
        a_ptr, c_ptr, arrivals, control, inbox, control_bases, payload_bases, inbox + slots_bytes,
        epoch, M, rank, problem, tile, exchange, ARCH,
    )  # fmt: skip
