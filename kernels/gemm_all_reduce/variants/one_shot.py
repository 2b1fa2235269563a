"""one_shot: each partial tile is stored into every rank's inbox, and every rank adds them all up.

Who owns a tile: every program of every rank computes parts of tiles; then each adds up slices of
all rows, once all sources are there. Who writes remotely: the program that computed a part stores
it into its slot of every inbox, the next rank's first and this rank's last. Which flag says ready:
flag[source][tiles] in the reader's memory, set to the epoch by the last program that stored one of
them.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import begin, finish
from tftune.kernels.device.gemm_reduce import gemm_reduce


@triton.jit(do_not_specialize=["M", "rank"])
def one_shot(
    a_ptr, b_ptr, c_ptr, a_desc, b_desc, arrivals, control, payload, control_bases, payload_bases,
    generation_bytes, slots_bytes, M, rank,
    problem: tl.constexpr, tile: tl.constexpr, exchange: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """`gemm_reduce.gemm_reduce` says what the arguments are."""
    epoch = begin(control)
    gemm_reduce(
        a_ptr, b_ptr, c_ptr, a_desc, b_desc, arrivals, None, control, payload,
        control_bases, payload_bases, generation_bytes, slots_bytes,
        epoch, M, rank, problem, tile, exchange, ARCH,
    )  # fmt: skip
    finish(control, epoch)
