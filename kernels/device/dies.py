"""Work dealt to dies: which sequence, head and block of queries a program of attention takes."""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.device.gemm import by_die


@triton.jit
def head_and_block(number, programs, heads, blocks, MAPPING: tl.constexpr, DIES: tl.constexpr):
    """(sequence, head, block) of a program, in one of the orders of `flash_prefill.mapping`, which
    says the same for the host; `blocks` of queries for each head, DIES that programs are dealt to
    in turn."""
    if MAPPING == "swizzled_head_first":
        number = by_die(number, programs, DIES)
    if MAPPING == "naive_head_first" or MAPPING == "swizzled_head_first":
        row, block = number // blocks, number % blocks
        sequence, head = row // heads, row % heads
    else:
        each = heads * blocks
        sequence, within = number // each, number % each
        if MAPPING == "naive_block_first":
            head, block = within % heads, within // heads
        else:
            own = heads // DIES
            whole = own * DIES * blocks
            if within < whole:
                turn = within // DIES
                head, block = within % DIES * own + turn % own, turn // own
            else:
                rest = by_die(within - whole, each - whole, DIES)
                head, block = own * DIES + rest // blocks, rest % blocks
    return sequence, head, block
