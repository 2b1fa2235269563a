"""push_ce: copy engines store each rank's shard into every peer's inbox, and its flags; all
programs compute as chunks arrive.

Who owns a tile: every program of every rank computes C's tiles, or `split_k` parts of each, one at
a time; each of a tile's parts then adds up a slice of its rows. Who writes remotely: the copy
engine, chunk after chunk of whole rows of the shard, to their places in the gathered A, from side
streams that part from the call's stream behind `copy_engine.start` and join it behind this kernel.
Which flag says ready: flag[source][row chunk] in the reader's memory, a copy of the word that holds
the epoch, queued behind the chunk's own copy in the same stream. That a call's copies meet no
reader of the same generation, says kernels/comm/copy_engine.py.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.variants.bsp_chunked import piece
from tftune.kernels.comm.copy_engine import Exchange
from tftune.kernels.comm.symmetric import begin, finish
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.device.gemm import multiply_all


@triton.jit(do_not_specialize=["generation_rows", "M", "rank"])
def push_ce(
    a_ptr, b_ptr, c_ptr, a_desc, payload_desc, b_desc, parts_ptr, arrivals_ptr,
    control, payload, control_bases, payload_bases, generation_rows, M, rank,
    problem: tl.constexpr, tile: tl.constexpr, chunks: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """C[M,N] = all_gather(A) @ B; `gemm.multiply_all` says what the arguments are."""
    epoch = begin(control)
    multiply_all(
        a_ptr, b_ptr, c_ptr, (a_desc, payload_desc, b_desc), parts_ptr, arrivals_ptr,
        control, payload, payload_bases, epoch, generation_rows, M, rank, problem, tile, chunks,
        FIRST_FLAG=0, PULL=False, ARCH=ARCH,
    )  # fmt: skip
    finish(control, epoch)


def exchange(
    shape: AllGatherGemm,
    workspace: Workspace,
    inbox: tuple[int, int],
    rows_per_flag: int,
    streams: int,
) -> Exchange:
    """The copies of a call, one for each chunk of rows. `inbox`: bytes from the payload's start to
    a generation, and to the next one."""
    rows = [
        (row, min(row + rows_per_flag, shape.shard_rows))
        for row in range(0, shape.shard_rows, rows_per_flag)
    ]
    return Exchange(
        workspace, inbox, [piece(shape, workspace.rank, chunk) for chunk in rows], streams
    )
