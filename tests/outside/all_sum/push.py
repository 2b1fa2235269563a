"""push: each rank stores its x into every peer's inbox, and signals; then it adds up what arrived.

Who owns a tile: program p sums block p.
Who writes remotely: program p stores block p into the inbox of each peer.
Which flag says ready: flag[source][block] in the reader's memory, set after the block's stores.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import (
    begin,
    finish,
    flag,
    generation_of,
    peer,
    signal_peers,
    wait,
)


@triton.jit(do_not_specialize=["size", "rank"])
def push(
    x_ptr, out_ptr, control, payload, control_bases, payload_bases, generation_bytes, size, rank,
    BLOCK: tl.constexpr, WORLD: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """out = the sum over ranks in rank order, in fp32, rounded once."""
    epoch = begin(control)
    block = tl.program_id(0)
    inbox = payload + generation_of(epoch) * generation_bytes
    element = x_ptr.dtype.element_ty
    apart = (size * 2 + 15) // 16 * 16
    offsets = block * BLOCK + tl.arange(0, BLOCK)
    own = tl.load(x_ptr + offsets, mask=offsets < size, other=0.0)
    for step in range(1, WORLD):
        place = peer(inbox + rank * apart, payload_bases, rank, (rank + step) % WORLD)
        tl.store(tl.cast(place, tl.pointer_type(element)) + offsets, own, mask=offsets < size)
    signal_peers(control, control_bases, block, epoch, rank, WORLD, ARCH)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for source in range(WORLD):
        if source == rank:
            total += tl.cast(own, tl.float32)
        else:
            wait(flag(control, source, block), epoch)
            arrived = tl.cast(inbox + source * apart, tl.pointer_type(element)) + offsets
            total += tl.cast(tl.load(arrived, mask=offsets < size, other=0.0), tl.float32)
    tl.store(out_ptr + offsets, tl.cast(total, element), mask=offsets < size)
    finish(control, epoch)
