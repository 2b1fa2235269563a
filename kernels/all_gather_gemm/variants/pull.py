"""pull: each rank puts its shard where peers can read it and says so; the GEMM loads its tiles of A
straight from them.

Who owns a tile: programs `comm_programs..` of every rank, and with schedule="dynamic" the others
when they are done, compute C's tiles, or `split_k` parts of each, one at a time; each of a tile's
parts then adds up a slice of its rows. Who writes remotely: nobody but the flags; programs
`0..comm_programs-1` copy the shard into their own payload and signal to every peer. Which flag says
ready: flag[source][row chunk, column chunk] in the reader's memory, set to the epoch after the
chunk was copied.

Where A lies in the symmetric heap nobody copies: program 0 offers the shard, one flag of a source
covers all of it, every program computes and reads peers' shards, and the kernel ends when every
peer has read this rank's (`in_place`).
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import begin, finish, signal_peers
from tftune.kernels.device.gemm import multiply_all
from tftune.kernels.device.in_place import OFFERED, finish_read, offer
from tftune.kernels.device.shards import chunk_and_peer, copy_shard, generation, place_of


@triton.jit(do_not_specialize=["generation_rows", "M", "rank"])
def pull(
    a_ptr, b_ptr, c_ptr, a_desc, payload_desc, b_desc, parts_ptr, arrivals_ptr,
    control, payload, control_bases, payload_bases, generation_rows, M, rank,
    problem: tl.constexpr, tile: tl.constexpr, chunks: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """C[M,N] = all_gather(A) @ B; `gemm.multiply_all` says what the arguments are."""
    shard_rows = M // problem.WORLD if problem.SHARD_IS_M else M
    row_chunks = tl.cdiv(shard_rows, chunks.ROWS_PER_FLAG)
    pid, epoch = tl.program_id(0), begin(control)
    inbox = generation(payload, epoch, generation_rows, problem.K)
    own_place = inbox + place_of(rank, shard_rows, problem)
    if chunks.IN_PLACE:
        offer(control, control_bases, epoch, rank, problem.WORLD, ARCH)
    elif pid < chunks.COMM_PROGRAMS:
        for item in range(pid, row_chunks * chunks.K_CHUNKS, chunks.COMM_PROGRAMS):
            chunk, _ = chunk_and_peer(item, row_chunks, chunks.K_CHUNKS, 1, 1, chunks.ORDER)
            copy_shard(a_ptr, own_place, chunk, shard_rows, problem, chunks)
            signal_peers(control, control_bases, chunk, epoch, rank, problem.WORLD, ARCH)
    multiply_all(
        a_ptr, b_ptr, c_ptr, (a_desc, payload_desc, b_desc), parts_ptr, arrivals_ptr,
        control, payload, payload_bases, epoch, generation_rows, M, rank, problem, tile, chunks,
        FIRST_FLAG=OFFERED if chunks.IN_PLACE else 0, PULL=True, ARCH=ARCH,
    )  # fmt: skip
    if chunks.IN_PLACE:
        finish_read(control, control_bases, epoch, rank, True, problem.WORLD, ARCH)
    else:
        finish(control, epoch)
