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
    N: tl.constexpr, K: tl.constexpr, WORLD: tl.constexpr, WORLD_P: tl.constexpr, B_IS_NK: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    SPLIT_K: tl.constexpr, TILES_PER_FLAG: tl.constexpr, SPANS: tl.constexpr, ADD_ROWS: tl.constexpr,
    LOADS: tl.constexpr, EVEN_K: tl.constexpr, EVEN_N: tl.constexpr, WIRE_FP32: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """`gemm_reduce.gemm_reduce` says what the arguments are."""
    epoch = begin(control)
    gemm_reduce(
        a_ptr, b_ptr, c_ptr, a_desc, b_desc, arrivals, control, payload, control_bases, payload_bases,
        generation_bytes, slots_bytes, epoch, M, rank,
        N, K, WORLD, WORLD_P, B_IS_NK, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, SPLIT_K, TILES_PER_FLAG, "one_shot",
        SPANS, ADD_ROWS, LOADS, EVEN_K, EVEN_N, WIRE_FP32, ARCH,
    )  # fmt: skip
    finish(control, epoch)
