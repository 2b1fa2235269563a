"""What the tax study launches beside a call: nothing, a copy through memory, a delay, and the sum
of what programs waited.

Who owns a tile: programs of `round_trip` take blocks in turn; the others are one program. Who
writes remotely: nobody. Which flag says ready: none; kernels of one stream follow one another.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import WAITED_OFFSET
from tftune.kernels.device.waits import clock


@triton.jit
def empty(word_ptr):
    """A launch, and nothing else."""


@triton.jit
def round_trip(source_ptr, target_ptr, count, BLOCK: tl.constexpr):
    """Read `count` words of 32 bits, and write them: what an intermediate in memory costs that one
    kernel writes and the next one reads."""
    for first in range(tl.program_id(0) * BLOCK, count, tl.num_programs(0) * BLOCK):
        places = first + tl.arange(0, BLOCK)
        inside = places < count
        tl.store(target_ptr + places, tl.load(source_ptr + places, mask=inside), mask=inside)


@triton.jit
def late(ns, ARCH: tl.constexpr):
    """End so many nanoseconds after it began; at once in the interpreter, which has no clock."""
    began = clock(ARCH)
    if ARCH != "interpreter":
        while clock(ARCH) - began < ns:
            pass


@triton.jit
def take_waited(waited_ptr, control):
    """Move the sum of `waits.add_waited`, in nanoseconds, to waited_ptr, int64; it is 0 again."""
    found = tl.cast(control + WAITED_OFFSET, tl.pointer_type(tl.int64))
    tl.store(waited_ptr, tl.load(found))
    tl.store(found, tl.cast(0, tl.int64))
