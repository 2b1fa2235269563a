"""push: each rank stores its shard into every peer's inbox, and signals; the GEMM reads the inbox
as its chunks arrive.

Who owns a tile: programs `comm_programs..` of every rank, and with schedule="dynamic" the others
when they are done, compute C's tiles, or `split_k` parts of each, one at a time; each of a tile's
parts then adds up a slice of its rows. Who writes remotely: programs `0..comm_programs-1` store
chunk after chunk into the inbox of each peer, in the order that `gemm.chunk_and_peer` gives; of two
peers the one first that reads this rank's shard sooner; this rank itself, where it reads its own
rows from its inbox, last. Which flag says ready: flag[source][row chunk, column chunk] in the
reader's memory, set to the epoch after the chunk's stores.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import begin, finish, flag, peer, signal
from tftune.kernels.device.gemm import (
    chunk_and_peer,
    copy_chunk,
    generation,
    multiply_all,
    place_of,
)


@triton.jit(do_not_specialize=["generation_rows", "M", "rank"])
def push(
    a_ptr, b_ptr, c_ptr, a_desc, payload_desc, b_desc, parts_ptr, arrivals_ptr, control, payload, control_bases, payload_bases,
    generation_rows, M, rank,
    N: tl.constexpr, K: tl.constexpr, WORLD: tl.constexpr, SHARD_IS_M: tl.constexpr, B_IS_NK: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, SPLIT_K: tl.constexpr,
    SCHEDULE: tl.constexpr, XCDS: tl.constexpr, COMM_PROGRAMS: tl.constexpr, ROWS_PER_FLAG: tl.constexpr, K_PER_FLAG: tl.constexpr,
    ORDER: tl.constexpr, COPY_ROWS: tl.constexpr, COPY_COLUMNS: tl.constexpr, LOADS: tl.constexpr, LOCAL_VIA_INBOX: tl.constexpr,
    EVEN_K: tl.constexpr, EVEN_N: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """C[M,N] = all_gather(A) @ B; `gemm.multiply_all` says what the arguments are."""
    COLUMNS: tl.constexpr = K if SHARD_IS_M else K // WORLD
    shard_rows = M // WORLD if SHARD_IS_M else M
    K_CHUNKS: tl.constexpr = (COLUMNS + K_PER_FLAG - 1) // K_PER_FLAG
    BAND: tl.constexpr = (GROUP_M * BLOCK_M + ROWS_PER_FLAG - 1) // ROWS_PER_FLAG
    RECEIVERS: tl.constexpr = WORLD if LOCAL_VIA_INBOX else WORLD - 1
    row_chunks = tl.cdiv(shard_rows, ROWS_PER_FLAG)
    pid, epoch = tl.program_id(0), begin(control)
    inbox = generation(payload, epoch, generation_rows, K)
    own_place = inbox + place_of(rank, shard_rows, K, WORLD, SHARD_IS_M)
    if pid < COMM_PROGRAMS:
        for item in range(pid, row_chunks * K_CHUNKS * RECEIVERS, COMM_PROGRAMS):
            chunk, number = chunk_and_peer(item, row_chunks, K_CHUNKS, RECEIVERS, BAND, ORDER)
            target = (rank + WORLD - 1 - number) % WORLD
            copy_chunk(
                tl.cast(a_ptr, tl.int64), peer(own_place, payload_bases, rank, target), chunk, shard_rows,
                COLUMNS, COLUMNS, K, ROWS_PER_FLAG, K_PER_FLAG, a_ptr.dtype.element_ty, COPY_ROWS, COPY_COLUMNS,
            )  # fmt: skip
            signal(peer(flag(control, rank, chunk), control_bases, rank, target), epoch, ARCH)
    multiply_all(
        a_ptr, b_ptr, c_ptr, a_desc, payload_desc, b_desc, parts_ptr, arrivals_ptr, control, payload, payload_bases,
        epoch, generation_rows, M, rank,
        N, K, WORLD, SHARD_IS_M, B_IS_NK, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, SPLIT_K, SCHEDULE, XCDS, COMM_PROGRAMS,
        ROWS_PER_FLAG, K_PER_FLAG, 0, False, LOADS, LOCAL_VIA_INBOX, EVEN_K, EVEN_N, ARCH,
    )  # fmt: skip
    finish(control, epoch)
