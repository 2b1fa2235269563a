"""pull: each rank stages its shard in its own heap and says so; the GEMM loads the tiles of A straight from the peers.

Who owns a tile: programs `comm_programs..` of every rank, and with schedule="dynamic" the others when they are done, compute C's
tiles, or `split_k` parts of each, one at a time; of a tile's parts the last to come adds up.
Who writes remotely: nobody but the flags; programs `0..comm_programs-1` copy the shard into local staging and signal to every peer.
Which flag says ready: flag[source][row chunk, column chunk] in the reader's memory, set to the epoch after the chunk was staged.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.gemm import add_parts, copy_chunk, first_unit, multiply, next_unit, store_tile, tile_order, wait_tile
from tftune.kernels.symmetric import begin, finish, flag, peer, signal


@triton.jit(do_not_specialize=["M", "rank"])
def pull(
    a_ptr, b_ptr, c_ptr, parts_ptr, arrivals_ptr, control, payload, control_bases, payload_bases, generation_bytes, M, rank,
    N: tl.constexpr, K: tl.constexpr, WORLD: tl.constexpr, SHARD_IS_M: tl.constexpr, B_IS_NK: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, SPLIT_K: tl.constexpr,
    SCHEDULE: tl.constexpr, COMM_PROGRAMS: tl.constexpr,
    ROWS_PER_FLAG: tl.constexpr, K_PER_FLAG: tl.constexpr, COPY_ROWS: tl.constexpr, COPY_COLUMNS: tl.constexpr,
    EVEN_K: tl.constexpr, EVEN_N: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """C[M,N] = all_gather(A) @ B. a_ptr: this rank's shard; b_ptr: [K,N] or [N,K]; c_ptr: [M,N]; all fp16 or all bf16, row-major.
    parts_ptr: fp32[tiles * SPLIT_K * BLOCK_M * BLOCK_N], arrivals_ptr: int32[tiles], zero: scratch of this rank where SPLIT_K > 1.
    control, payload: addresses of this rank's blocks; *_bases: int64[WORLD], the same blocks on every rank, as mapped here."""
    COLUMNS: tl.constexpr = K if SHARD_IS_M else K // WORLD
    K_CHUNKS: tl.constexpr = (COLUMNS + K_PER_FLAG - 1) // K_PER_FLAG
    STEPS: tl.constexpr = K_CHUNKS if SHARD_IS_M else K_CHUNKS * WORLD
    dtype = a_ptr.dtype.element_ty
    pid = tl.program_id(0)
    shard_rows = M // WORLD if SHARD_IS_M else M
    epoch = begin(control)
    staging = payload + (epoch & 1) * generation_bytes

    if pid < COMM_PROGRAMS:
        row_chunks = (shard_rows + ROWS_PER_FLAG - 1) // ROWS_PER_FLAG
        for chunk in range(pid, row_chunks * K_CHUNKS, COMM_PROGRAMS):
            copy_chunk(
                tl.cast(a_ptr, tl.int64), staging, chunk // K_CHUNKS * ROWS_PER_FLAG, chunk % K_CHUNKS * K_PER_FLAG, shard_rows,
                COLUMNS, ROWS_PER_FLAG, K_PER_FLAG, dtype, COPY_ROWS, COPY_COLUMNS,
            )  # fmt: skip
            for step in range(1, WORLD):
                target = (rank + step) % WORLD
                signal(peer(flag(control, rank, chunk), control_bases, rank, target), epoch, ARCH)

    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    tiles = tiles_m * tiles_n
    # Parts of one tile are far apart in this order: all that start with this rank's own shard come first.
    unit = first_unit(control, pid, COMM_PROGRAMS, tiles * SPLIT_K, SCHEDULE, ARCH)
    while unit < tiles * SPLIT_K:
        tile, part = unit % tiles, unit // tiles
        tile_m, tile_n = tile_order(tile, tiles_m, tiles_n, GROUP_M)
        if SHARD_IS_M:
            tile_m = (tile_m + rank * tiles_m // WORLD) % tiles_m  # own rows first
        row = tile_m * BLOCK_M
        rows = tl.minimum(row + tl.arange(0, BLOCK_M), M - 1)
        cols = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        # num_stages=1: where the loop over K has one step, Triton folds it and pipelines this one, whose load then passes its wait.
        for step in tl.range(part * STEPS // SPLIT_K, (part + 1) * STEPS // SPLIT_K, num_stages=1):
            source, k_chunk = (rank + step // K_CHUNKS) % WORLD, step % K_CHUNKS
            if SHARD_IS_M:
                owner = rows // shard_rows
                base = tl.where(owner == rank, tl.cast(a_ptr, tl.int64), peer(staging, payload_bases, rank, owner))
                a_rows = base + tl.cast(rows - owner * shard_rows, tl.int64) * (COLUMNS * 2)
                first_b = 0
            else:
                base = tl.where(source == rank, tl.cast(a_ptr, tl.int64), peer(staging, payload_bases, rank, source))
                a_rows = base + tl.cast(rows, tl.int64) * (COLUMNS * 2)
                first_b = source * COLUMNS
            wait_tile(control, source, row, M, shard_rows, k_chunk, epoch, rank, SHARD_IS_M, BLOCK_M, ROWS_PER_FLAG, K_CHUNKS)
            k = k_chunk * K_PER_FLAG
            acc = multiply(
                acc, a_rows, b_ptr, k, tl.minimum(k + K_PER_FLAG, COLUMNS), first_b + k, cols,
                COLUMNS, N, K, B_IS_NK, EVEN_K, EVEN_N, BLOCK_K, ARCH,
            )  # fmt: skip
        if SPLIT_K == 1:
            store_tile(c_ptr, acc, row, cols, M, N, BLOCK_M, ARCH)
        else:
            add_parts(c_ptr, parts_ptr, arrivals_ptr, acc, tile, part, row, cols, M, N, SPLIT_K, BLOCK_M, BLOCK_N, ARCH)
        unit = next_unit(control, unit, COMM_PROGRAMS, SCHEDULE)
    finish(control, epoch)
