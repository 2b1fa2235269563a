"""two_shot: partial tiles go to the rank that owns their rows; it adds them up and stores the sum
to every rank.

Who owns a tile: as in `gemm_reduce_scatter.push`; then every rank copies the rows of the others out
of its inbox. Who writes remotely: first the program that computed a part, into its slot of the
owner's inbox; then the program that added up a slice, to the same rows of every peer, behind the
slots. Which flag says ready: flag[source][tiles of an owner] in the owner's memory; then, in a bank
of its own, flag[owner][second bank + tiles] in everybody's: each set to the epoch by the last
program that stored one of them.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import begin, finish
from tftune.kernels.device.gemm_reduce import gemm_reduce


@triton.jit(do_not_specialize=["M", "rank"])
def two_shot(
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
