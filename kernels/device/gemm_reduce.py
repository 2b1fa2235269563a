"""A GEMM whose inner size is split over the ranks: partial tiles, where they go, and their sum.

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

from tftune.kernels.comm.symmetric import drain, flag, peer, signal, word
from tftune.kernels.device.attention import wait_all
from tftune.kernels.device.gemm import multiply, multiply_blocks, pointer, tile_order


@triton.jit
def rounded(values, DTYPE: tl.constexpr, ARCH: tl.constexpr):
    """fp32 values in DTYPE, rounded to nearest even."""
    if ARCH == "interpreter" and DTYPE == tl.bfloat16:  # whose cast cuts off
        bits = tl.cast(values, tl.int32, bitcast=True)
        values = tl.cast(bits + 0x7FFF + ((bits >> 16) & 1), tl.float32, bitcast=True)
    return tl.cast(values, DTYPE)


@triton.jit
def partial_tile(
    a_ptr, b_ptr, a_desc, b_desc, row, last_row, col, part,
    N: tl.constexpr, K: tl.constexpr, B_IS_NK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, SPLIT_K: tl.constexpr, LOADS: tl.constexpr, EVEN_K: tl.constexpr, EVEN_N: tl.constexpr,
    ARCH: tl.constexpr,
):  # fmt: skip
    """fp32 [BLOCK_M, BLOCK_N]: rows row.. of A [M, K] times columns col.. of B, over one of SPLIT_K
    runs of K. Rows from last_row on are not wanted; pointers read last_row in their place."""
    STEPS: tl.constexpr = ((K + BLOCK_K - 1) // BLOCK_K + SPLIT_K - 1) // SPLIT_K
    begin = part * STEPS * BLOCK_K
    end = tl.minimum(begin + STEPS * BLOCK_K, K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    if LOADS == "descriptor":
        return multiply_blocks(
            acc, a_desc, row, 0, b_desc, col, begin, end, K, False, B_IS_NK, BLOCK_K, ARCH
        )
    rows = tl.minimum(row + tl.arange(0, BLOCK_M), last_row)
    a_rows = tl.cast(a_ptr, tl.int64) + tl.cast(rows, tl.int64) * (K * 2)
    cols = col + tl.arange(0, BLOCK_N)
    return multiply(
        acc, a_rows, b_ptr, begin, end, cols,
        K, N, K, False, B_IS_NK, EVEN_K, EVEN_N, BLOCK_K, ARCH,
    )  # fmt: skip


@triton.jit
def announce_tiles(
    arrivals, counter, covered, flag_here, control_bases, owner, epoch, rank,
    WORLD: tl.constexpr, SPANS: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """Say that this program has stored one of `covered` parts of tiles: the last of them sets the
    flag at the owner or, SPANS, at every rank. arrivals: int32 counters, zero between calls."""
    drain(epoch, ARCH)
    # At system scope: what the others stored to peers must be there before the flag is.
    before = tl.atomic_add(word(arrivals + counter * 4), 1, sem="acq_rel", scope="sys")
    if before + 1 == covered:
        tl.store(word(arrivals + counter * 4), 0)
        if SPANS:
            for step in range(1, WORLD + 1):
                target = (rank + step) % WORLD
                signal(peer(flag_here, control_bases, rank, target), epoch, ARCH)
        else:
            signal(peer(flag_here, control_bases, rank, owner), epoch, ARCH)


@triton.jit
def reduce_turn(ARCH: tl.constexpr):
    """The first item of this program, and from one to the next. The interpreter runs programs one
    after another: there the last does what needs all others' work."""
    first, step = tl.program_id(0), tl.num_programs(0)
    if ARCH == "interpreter":
        first, step = tl.where(first == step - 1, 0, 1 << 30), 1
    return first, step


@triton.jit
def send_partials(
    a_ptr, b_ptr, a_desc, b_desc, arrivals, control, inbox, control_bases, payload_bases, epoch, M, rank,
    N: tl.constexpr, K: tl.constexpr, WORLD: tl.constexpr, B_IS_NK: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    SPLIT_K: tl.constexpr, TILES_PER_FLAG: tl.constexpr, PULL: tl.constexpr, SPANS: tl.constexpr,
    LOADS: tl.constexpr, EVEN_K: tl.constexpr, EVEN_N: tl.constexpr, WIRE: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """Every part of a tile that falls to this program: into its slot in the owner's inbox or, PULL,
    in this rank's own payload. inbox: address here of this call's generation."""
    shard_rows, tiles_n = M // WORLD, tl.cdiv(N, BLOCK_N)
    row_tiles = 1 if SPANS else tl.cdiv(shard_rows, BLOCK_M)
    tiles = row_tiles * tiles_n
    groups = tl.cdiv(tiles, TILES_PER_FLAG)
    owners = 1 if SPANS else WORLD
    within_rows = tl.arange(0, BLOCK_M)
    for unit in tl.range(
        tl.program_id(0), owners * tiles * SPLIT_K, tl.num_programs(0), num_stages=1
    ):
        tile, part = unit // SPLIT_K % tiles, unit % SPLIT_K
        turn = unit // SPLIT_K // tiles
        owner = (rank + 1 + turn) % WORLD
        tile_m, tile_n = tile_order(tile, row_tiles, tiles_n, GROUP_M)
        row, col = tile_m * BLOCK_M, tile_n * BLOCK_N
        first = 0 if SPANS else owner * shard_rows
        last = M - 1 if SPANS else first + shard_rows - 1
        acc = partial_tile(
            a_ptr, b_ptr, a_desc, b_desc, first + row, last, col, part,
            N, K, B_IS_NK, BLOCK_M, BLOCK_N, BLOCK_K, SPLIT_K, LOADS, EVEN_K, EVEN_N, ARCH,
        )  # fmt: skip
        rows, cols = row + within_rows, col + tl.arange(0, BLOCK_N)
        if SPANS:
            owners_of_rows = tl.minimum(rows // shard_rows, WORLD - 1)
            rows_there, wanted = rows % shard_rows, rows < M
        else:
            owners_of_rows = owner
            rows_there, wanted = rows, rows < shard_rows
        if PULL:
            base, slot = inbox, owners_of_rows * SPLIT_K + part
        else:
            base = peer(inbox, payload_bases, rank, owners_of_rows)
            slot = rank * SPLIT_K + part
        places = tl.cast(slot * shard_rows + rows_there, tl.int64) * (
            N * WIRE.primitive_bitwidth // 8
        )
        pointers = pointer(base + places, N, WIRE)[:, None] + cols[None, :]
        tl.store(pointers, rounded(acc, WIRE, ARCH), mask=wanted[:, None] & (cols < N)[None, :])
        group = tile // TILES_PER_FLAG
        covered = tl.minimum(TILES_PER_FLAG, tiles - group * TILES_PER_FLAG) * SPLIT_K
        announce_tiles(
            arrivals, turn * groups + group, covered, flag(control, rank, group), control_bases,
            owner, epoch, rank, WORLD, SPANS, ARCH,
        )  # fmt: skip


@triton.jit
def add_partials(
    c_ptr, control, inbox, payload_bases, epoch, M, rank,
    N: tl.constexpr, WORLD: tl.constexpr, WORLD_P: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    GROUP_M: tl.constexpr, SPLIT_K: tl.constexpr, TILES_PER_FLAG: tl.constexpr, PULL: tl.constexpr,
    SPANS: tl.constexpr, ADD_ROWS: tl.constexpr, WIRE: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """C's rows of this rank, ADD_ROWS of a tile at a time: every source's flag is awaited, then all
    slots are added in their order, from this rank's inbox or, PULL, from each source's payload."""
    shard_rows, tiles_n = M // WORLD, tl.cdiv(N, BLOCK_N)
    row_tiles = 1 if SPANS else tl.cdiv(shard_rows, BLOCK_M)
    slices = tl.cdiv(shard_rows if SPANS else BLOCK_M, ADD_ROWS)
    sources = tl.arange(0, WORLD_P)
    first, step = reduce_turn(ARCH)
    for number in tl.range(first, row_tiles * tiles_n * slices, step, num_stages=1):
        tile = number // slices
        tile_m, tile_n = tile_order(tile, row_tiles, tiles_n, GROUP_M)
        rows = tile_m * BLOCK_M + number % slices * ADD_ROWS + tl.arange(0, ADD_ROWS)
        cols = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
        flags = flag(control, sources, tile // TILES_PER_FLAG)
        wait_all(flags[:, None], epoch, (sources < WORLD)[:, None])
        inside = (rows < shard_rows)[:, None] & (cols < N)[None, :]
        total = tl.zeros((ADD_ROWS, BLOCK_N), tl.float32)
        for source in tl.static_range(WORLD):
            base = peer(inbox, payload_bases, rank, source) if PULL else inbox
            owner = rank if PULL else source
            for part in tl.static_range(SPLIT_K):
                slot_rows = (owner * SPLIT_K + part) * shard_rows + rows
                places = tl.cast(slot_rows, tl.int64) * (N * WIRE.primitive_bitwidth // 8)
                pointers = pointer(base + places, N, WIRE)[:, None] + cols[None, :]
                total += tl.cast(tl.load(pointers, mask=inside, other=0.0), tl.float32)
        c_ptrs = c_ptr + (tl.cast(rows, tl.int64) * N)[:, None] + cols[None, :]
        tl.store(c_ptrs, rounded(total, c_ptr.dtype.element_ty, ARCH), mask=inside)


@triton.jit
def gemm_reduce(
    a_ptr, b_ptr, c_ptr, a_desc, b_desc, arrivals, control, payload, control_bases, payload_bases,
    generation_bytes, epoch, M, rank,
    N: tl.constexpr, K: tl.constexpr, WORLD: tl.constexpr, WORLD_P: tl.constexpr, B_IS_NK: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    SPLIT_K: tl.constexpr, TILES_PER_FLAG: tl.constexpr, PULL: tl.constexpr, SPANS: tl.constexpr, ADD_ROWS: tl.constexpr,
    LOADS: tl.constexpr, EVEN_K: tl.constexpr, EVEN_N: tl.constexpr, WIRE_FP32: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """C [M / WORLD, N] = this rank's rows of the sum over ranks of A [M, K] @ B. K: of one rank.

    a_ptr, b_ptr ([K, N] or [N, K]) and c_ptr: all fp16 or all bf16, row-major; *_desc: tensor
    descriptors of a and b where LOADS is "descriptor".
    """
    WIRE: tl.constexpr = tl.float32 if WIRE_FP32 else a_ptr.dtype.element_ty
    inbox = payload + (epoch & 1) * generation_bytes
    if LOADS == "descriptor" and ARCH == "interpreter":
        a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
        if B_IS_NK:
            b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK_N, BLOCK_K])
        else:
            b_desc = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BLOCK_K, BLOCK_N])
    send_partials(
        a_ptr, b_ptr, a_desc, b_desc, arrivals, control, inbox, control_bases, payload_bases, epoch, M, rank,
        N, K, WORLD, B_IS_NK, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, SPLIT_K, TILES_PER_FLAG, PULL, SPANS,
        LOADS, EVEN_K, EVEN_N, WIRE, ARCH,
    )  # fmt: skip
    add_partials(
        c_ptr, control, inbox, payload_bases, epoch, M, rank,
        N, WORLD, WORLD_P, BLOCK_M, BLOCK_N, GROUP_M, SPLIT_K, TILES_PER_FLAG, PULL, SPANS, ADD_ROWS, WIRE, ARCH,
    )  # fmt: skip
