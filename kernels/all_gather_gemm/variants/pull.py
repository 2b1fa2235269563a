"""pull: each rank puts its shard where peers can read it and says so; the GEMM loads its tiles of A
straight from them.

Who owns a tile: programs `comm_programs..` of every rank, and with schedule="dynamic" the others
when they are done, compute C's tiles, or `split_k` parts of each, one at a time; each of a tile's
parts then adds up a slice of its rows. Who writes remotely: nobody but the flags; programs
`0..comm_programs-1` copy the shard into their own payload and signal to every peer. Which flag says
ready: flag[source][row chunk, column chunk] in the reader's memory, set to the epoch after the
chunk was copied.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import begin, finish, signal_peers
from tftune.kernels.device.gemm import (
    chunk_and_peer,
    copy_chunk,
    generation,
    multiply_all,
    place_of,
)


@triton.jit(do_not_specialize=["generation_rows", "M", "rank"])
def pull(
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
    row_chunks = tl.cdiv(shard_rows, ROWS_PER_FLAG)
    pid, epoch = tl.program_id(0), begin(control)
    inbox = generation(payload, epoch, generation_rows, K)
    own_place = inbox + place_of(rank, shard_rows, K, WORLD, SHARD_IS_M)
    if pid < COMM_PROGRAMS:
        for item in range(pid, row_chunks * K_CHUNKS, COMM_PROGRAMS):
            chunk, _ = chunk_and_peer(item, row_chunks, K_CHUNKS, 1, 1, ORDER)
            copy_chunk(
                tl.cast(a_ptr, tl.int64), own_place, chunk, shard_rows,
                COLUMNS, COLUMNS, K, ROWS_PER_FLAG, K_PER_FLAG, a_ptr.dtype.element_ty, COPY_ROWS, COPY_COLUMNS,
            )  # fmt: skip
            signal_peers(control, control_bases, chunk, epoch, rank, WORLD, ARCH)
    multiply_all(
        a_ptr, b_ptr, c_ptr, a_desc, payload_desc, b_desc, parts_ptr, arrivals_ptr, control, payload, payload_bases,
        epoch, generation_rows, M, rank,
        N, K, WORLD, SHARD_IS_M, B_IS_NK, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, SPLIT_K, SCHEDULE, XCDS, COMM_PROGRAMS,
        ROWS_PER_FLAG, K_PER_FLAG, 0, True, LOADS, LOCAL_VIA_INBOX, EVEN_K, EVEN_N, ARCH,
    )  # fmt: skip
    finish(control, epoch)
