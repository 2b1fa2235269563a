"""staged: each rank puts its shard where peers can read it and says so; a few programs pull each
remote byte once, the rest compute.

Who owns a tile: programs `comm_programs..` of every rank, and with schedule="dynamic" the others
when they are done, compute C's tiles, or `split_k` parts of each, one at a time; each of a tile's
parts then adds up a slice of its rows. Who writes remotely: nobody but the flags; programs
`0..comm_programs-1` copy the shard into their own payload, signal to every peer, then copy the
peers' chunks with the same numbers into this rank's inbox, in the order that `gemm.chunk_and_peer`
gives. Which flags say ready: flag[source][chunk] set to the epoch after the source has copied it,
in the puller's memory; and, behind all of these, flag[source][READY_FLAGS + chunk] of the same
memory after it was pulled.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import (
    READY_FLAGS,
    begin,
    finish,
    flag,
    peer,
    signal,
    signal_peers,
    wait,
)
from tftune.kernels.device.gemm import (
    chunk_and_peer,
    copy_chunk,
    generation,
    multiply_all,
    place_of,
)


@triton.jit(do_not_specialize=["generation_rows", "M", "rank"])
def staged(
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
    row_chunks = tl.cdiv(shard_rows, ROWS_PER_FLAG)
    chunks = row_chunks * K_CHUNKS
    pid, epoch = tl.program_id(0), begin(control)
    inbox = generation(payload, epoch, generation_rows, K)
    own_place = inbox + place_of(rank, shard_rows, K, WORLD, SHARD_IS_M)
    if pid < COMM_PROGRAMS:
        for turn in range(pid, chunks, COMM_PROGRAMS):
            chunk, _ = chunk_and_peer(turn, row_chunks, K_CHUNKS, 1, BAND, ORDER)
            copy_chunk(
                tl.cast(a_ptr, tl.int64), own_place, chunk, shard_rows,
                COLUMNS, COLUMNS, K, ROWS_PER_FLAG, K_PER_FLAG, a_ptr.dtype.element_ty, COPY_ROWS, COPY_COLUMNS,
            )  # fmt: skip
            signal_peers(control, control_bases, chunk, epoch, rank, WORLD, ARCH)
        # Only chunks that this program's namesakes put there: programs of one rank may run one
        # after another.
        turns = tl.cdiv(tl.maximum(chunks - pid, 0), COMM_PROGRAMS)
        for item in range(0, turns * (WORLD - 1)):
            turn, number = (
                (item % turns, item // turns)
                if ORDER == "group"
                else (item // (WORLD - 1), item % (WORLD - 1))
            )
            chunk, _ = chunk_and_peer(
                pid + turn * COMM_PROGRAMS, row_chunks, K_CHUNKS, 1, BAND, ORDER
            )
            source = (rank + 1 + number) % WORLD
            slot = inbox + place_of(source, shard_rows, K, WORLD, SHARD_IS_M)
            wait(flag(control, source, chunk), epoch)
            copy_chunk(
                peer(slot, payload_bases, rank, source), slot, chunk, shard_rows,
                COLUMNS, K, K, ROWS_PER_FLAG, K_PER_FLAG, a_ptr.dtype.element_ty, COPY_ROWS, COPY_COLUMNS,
            )  # fmt: skip
            signal(flag(control, source, READY_FLAGS + chunk), epoch, ARCH)
    multiply_all(
        a_ptr, b_ptr, c_ptr, a_desc, payload_desc, b_desc, parts_ptr, arrivals_ptr, control, payload, payload_bases,
        epoch, generation_rows, M, rank,
        N, K, WORLD, SHARD_IS_M, B_IS_NK, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, SPLIT_K, SCHEDULE, XCDS, COMM_PROGRAMS,
        ROWS_PER_FLAG, K_PER_FLAG, READY_FLAGS, False, LOADS, LOCAL_VIA_INBOX, EVEN_K, EVEN_N, ARCH,
    )  # fmt: skip
    finish(control, epoch)
