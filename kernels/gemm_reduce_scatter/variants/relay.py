"""relay: partial tiles stay at home until they are finished; the first programs forward them to
their owners, so that no GEMM waits for a store over the links.

Who owns a tile: as in `push`, but the first COMM_PROGRAMS programs compute none. Who writes
remotely: they do, whole groups of tiles from this rank's outbox into the owner's inbox; the program
that computed a part of this rank's own rows stores it into its inbox at once. Which flag says
ready: flag[this rank][second half + group] here, set by the last program that stored one of a
group's tiles into the outbox; then flag[source][tiles of an owner] in the owner's memory, set by
the program that forwarded them. Each is set to the epoch. The outbox needs no second generation: no
peer reads it, and the next call begins when all programs of this one have ended.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import begin, finish
from tftune.kernels.device.gemm_reduce import gemm_reduce


@triton.jit(do_not_specialize=["M", "rank"])
def relay(
    a_ptr, b_ptr, c_ptr, a_desc, b_desc, arrivals, outbox, control, payload, control_bases,
    payload_bases, generation_bytes, slots_bytes, M, rank,
    problem: tl.constexpr, tile: tl.constexpr, exchange: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """`gemm_reduce.gemm_reduce` says what the arguments are."""
    epoch = begin(control)
    gemm_reduce(
        a_ptr, b_ptr, c_ptr, a_desc, b_desc, arrivals, outbox, control, payload,
        control_bases, payload_bases, generation_bytes, slots_bytes,
        epoch, M, rank, problem, tile, exchange, ARCH,
    )  # fmt: skip
    finish(control, epoch)
