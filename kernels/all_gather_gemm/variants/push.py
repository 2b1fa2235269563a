"""push: each rank stores its shard into every peer's inbox, and signals; the GEMM reads the inbox
as its chunks arrive.

Who owns a tile: programs `comm_programs..` of every rank, and with schedule="dynamic" the others
when they are done, compute C's tiles, or `split_k` parts of each, one at a time; each of a tile's
parts then adds up a slice of its rows. Who writes remotely: programs `0..comm_programs-1` store
chunk after chunk into the inbox of each peer, in the order that `shards.chunk_and_peer` gives:
rank - 1 first, since it reads this shard first, then rank - 2 and so on; this rank itself, where it
reads its own rows from its inbox, last. Which flag says ready: flag[source][row chunk, column
chunk] in the reader's memory, set to the epoch after the chunk's stores. Who waits:
`gemm.wait_chunks`, before a tile's first load of that chunk. Why the inbox may be overwritten: two
generations, as `symmetric` says (docs/flags.md).
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import begin, finish, flag, peer, signal
from tftune.kernels.device.gemm import multiply_all
from tftune.kernels.device.shards import chunk_and_peer, copy_shard, generation, place_of


@triton.jit(do_not_specialize=["generation_rows", "M", "rank"])
def push(
    a_ptr, b_ptr, c_ptr, a_desc, payload_desc, b_desc, parts_ptr, arrivals_ptr,
    control, payload, control_bases, payload_bases, generation_rows, M, rank,
    problem: tl.constexpr, tile: tl.constexpr, chunks: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """C[M,N] = all_gather(A) @ B; `gemm.multiply_all` says what the arguments are."""
    RECEIVERS: tl.constexpr = problem.WORLD if chunks.LOCAL_VIA_INBOX else problem.WORLD - 1
    shard_rows = M // problem.WORLD if problem.SHARD_IS_M else M
    row_chunks = tl.cdiv(shard_rows, chunks.ROWS_PER_FLAG)
    pid, epoch = tl.program_id(0), begin(control)
    inbox = generation(payload, epoch, generation_rows, problem.K)
    own_place = inbox + place_of(rank, shard_rows, problem)
    if pid < chunks.COMM_PROGRAMS:
        copies = row_chunks * chunks.K_CHUNKS * RECEIVERS
        for item in range(pid, copies, chunks.COMM_PROGRAMS):
            chunk, number = chunk_and_peer(
                item, row_chunks, chunks.K_CHUNKS, RECEIVERS, chunks.BAND, chunks.ORDER
            )
            target = (rank + problem.WORLD - 1 - number) % problem.WORLD
            inbox_there = peer(own_place, payload_bases, rank, target)
            copy_shard(a_ptr, inbox_there, chunk, shard_rows, problem, chunks)
            signal(peer(flag(control, rank, chunk), control_bases, rank, target), epoch, ARCH)
    multiply_all(
        a_ptr, b_ptr, c_ptr, (a_desc, payload_desc, b_desc), parts_ptr, arrivals_ptr,
        control, payload, payload_bases, epoch, generation_rows, M, rank, problem, tile, chunks,
        FIRST_FLAG=0, PULL=False, ARCH=ARCH,
    )  # fmt: skip
    finish(control, epoch)
