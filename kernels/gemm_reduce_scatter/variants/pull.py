"""pull: partial tiles stay in the memory of the rank that computed them; their owners load them.

Who owns a tile: as in `push`. Who reads remotely: the program that adds up a slice of this rank's
rows loads it from every source's payload. Which flag says ready: flag[source][tiles of an owner] in
the owner's memory, set to the epoch by the last program of the source that stored one of them. A
source writes that generation again two calls later, when it has heard from every owner that the
call between began, behind the end of this one.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import begin, finish
from tftune.kernels.device.gemm_reduce import gemm_reduce


@triton.jit(do_not_specialize=["M", "rank"])
def pull(
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
