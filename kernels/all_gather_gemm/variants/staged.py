"""staged: each rank puts its shard where peers can read it and says so; a few programs pull each
remote byte once, the rest compute.

Who owns a tile: programs `comm_programs..` of every rank, and with schedule="dynamic" the others
when they are done, compute C's tiles, or `split_k` parts of each, one at a time; each of a tile's
parts then adds up a slice of its rows. Who writes remotely: nobody but the flags; programs
`0..comm_programs-1` copy the shard into their own payload, signal to every peer, then copy the
peers' chunks with the same numbers into this rank's inbox, in the order of
`shards.chunk_and_peer`. Which flags say ready: flag[source][chunk] set to the epoch after the
source has copied it, in the puller's memory; and, behind all of these, flag[source][READY_FLAGS +
chunk] of the same memory after it was pulled.

Where A lies in the symmetric heap nobody copies a shard for peers: program 0 offers it, one flag of
a source covers all of it, and the kernel ends when every peer has pulled this rank's (`in_place`).
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
from tftune.kernels.device.gemm import multiply_all
from tftune.kernels.device.in_place import OFFERED, count_reader, finish_read, offer
from tftune.kernels.device.shards import (
    chunk_and_peer,
    copy_chunk,
    copy_shard,
    generation,
    place_of,
)


@triton.jit(do_not_specialize=["generation_rows", "M", "rank"])
def staged(
    a_ptr, b_ptr, c_ptr, a_desc, payload_desc, b_desc, parts_ptr, arrivals_ptr,
    control, payload, control_bases, payload_bases, generation_rows, M, rank,
    problem: tl.constexpr, tile: tl.constexpr, chunks: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """C[M,N] = all_gather(A) @ B; `gemm.multiply_all` says what the arguments are."""
    PEERS: tl.constexpr = problem.WORLD - 1
    K_CHUNKS: tl.constexpr = chunks.K_CHUNKS
    shard_rows = M // problem.WORLD if problem.SHARD_IS_M else M
    row_chunks = tl.cdiv(shard_rows, chunks.ROWS_PER_FLAG)
    all_chunks = row_chunks * K_CHUNKS
    pid, epoch = tl.program_id(0), begin(control)
    inbox = generation(payload, epoch, generation_rows, problem.K)
    own_place = inbox + place_of(rank, shard_rows, problem)
    if chunks.IN_PLACE:
        offer(control, control_bases, epoch, rank, problem.WORLD, ARCH)
    if pid < chunks.COMM_PROGRAMS:
        if not chunks.IN_PLACE:
            for item in range(pid, all_chunks, chunks.COMM_PROGRAMS):
                chunk, _ = chunk_and_peer(item, row_chunks, K_CHUNKS, 1, chunks.BAND, chunks.ORDER)
                copy_shard(a_ptr, own_place, chunk, shard_rows, problem, chunks)
                signal_peers(control, control_bases, chunk, epoch, rank, problem.WORLD, ARCH)
        # Only chunks that this program's namesakes put there: programs of one rank may run one
        # after another.
        rounds = tl.cdiv(tl.maximum(all_chunks - pid, 0), chunks.COMM_PROGRAMS)
        for item in range(0, rounds * PEERS):
            if chunks.ORDER == "group":
                round, number = item % rounds, item // rounds
            else:
                round, number = item // PEERS, item % PEERS
            place = pid + round * chunks.COMM_PROGRAMS
            chunk, _ = chunk_and_peer(place, row_chunks, K_CHUNKS, 1, chunks.BAND, chunks.ORDER)
            source = (rank + 1 + number) % problem.WORLD
            slot = inbox + place_of(source, shard_rows, problem)
            wait(flag(control, source, OFFERED if chunks.IN_PLACE else chunk), epoch)
            if chunks.IN_PLACE:
                shard = peer(tl.cast(a_ptr, tl.int64), payload_bases, rank, source)
                copy_chunk(
                    shard, slot, chunk, shard_rows,
                    problem.COLUMNS, a_ptr.dtype.element_ty, problem, chunks,
                )  # fmt: skip
            else:
                copy_chunk(
                    peer(slot, payload_bases, rank, source), slot, chunk, shard_rows,
                    problem.K, a_ptr.dtype.element_ty, problem, chunks,
                )  # fmt: skip
            signal(flag(control, source, READY_FLAGS + chunk), epoch, ARCH)
        if chunks.IN_PLACE:
            count_reader(
                control, control_bases, chunks.COMM_PROGRAMS, epoch, rank, problem.WORLD, ARCH
            )  # fmt: skip
    multiply_all(
        a_ptr, b_ptr, c_ptr, (a_desc, payload_desc, b_desc), parts_ptr, arrivals_ptr,
        control, payload, payload_bases, epoch, generation_rows, M, rank, problem, tile, chunks,
        FIRST_FLAG=READY_FLAGS, PULL=False, ARCH=ARCH,
    )  # fmt: skip
    if chunks.IN_PLACE:
        finish_read(control, control_bases, epoch, rank, False, problem.WORLD, ARCH)
    else:
        finish(control, epoch)
