"""Operands that lie in the symmetric heap are read where the caller left them: who says that they
may be read, and that they were.

A call has two flags of each source, at two fixed slots:

1. OFFERED: the operand may be read. A kernel before this one in the stream wrote it, so program 0
   says so first of all, and its release publishes what came before the kernel, too.
2. READ: this rank has read the operands of all ranks. The last of its readers says so, which is
   the last program to leave where every program reads.

A rank's kernel ends only when every peer has said READ. So the caller may write the operand again
behind the call in stream order, and the peer's loads come before those stores: each happens before
its program counts itself as a reader, or leaves; that before READ; and READ before the end of this
kernel. A variant whose last flags say as much needs no READ (`two_shot`: an owner sends a sum after
it read what it adds up).

Both slots are used by flags of other variants, too. That does no harm: what a wait takes for its
own is this epoch or the next one, and a peer in its next call has offered, and has read, in this
one. An operand lies at the same place on every rank: a peer's is as far away as its payload.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import (
    READERS_OFFSET,
    close,
    distances,
    flag,
    leave,
    signal_all,
    wait,
    word,
)

OFFERED = tl.constexpr(0)
READ = tl.constexpr(1)


@triton.jit
def tell_all(
    control, control_bases, slot, epoch, rank, WORLD: tl.constexpr, ARCH: tl.constexpr
):  # fmt: skip
    """Set this rank's flag of that slot on every rank at once."""
    WORLD_P: tl.constexpr = triton.next_power_of_2(WORLD)
    away = distances(control_bases, rank, WORLD, WORLD_P)
    signal_all(flag(control, rank, slot), away, epoch, WORLD, WORLD_P, ARCH)


@triton.jit
def offer(control, control_bases, epoch, rank, WORLD: tl.constexpr, ARCH: tl.constexpr):
    """First in a call, by program 0: say on every rank that this rank's operand may be read."""
    if tl.program_id(0) == 0:
        tell_all(control, control_bases, OFFERED, epoch, rank, WORLD, ARCH)


@triton.jit
def count_reader(
    control, control_bases, readers, epoch, rank, WORLD: tl.constexpr, ARCH: tl.constexpr
):  # fmt: skip
    """By each of the few programs that read, when it has read all that it reads of peers' operands;
    the last of them tells every peer. What was loaded has been used: a barrier is enough."""
    tl.debug_barrier()
    before = tl.atomic_add(word(control + READERS_OFFSET), 1, sem="acq_rel", scope="gpu")
    if before == readers - 1:
        tl.store(word(control + READERS_OFFSET), 0)
        tell_all(control, control_bases, READ, epoch, rank, WORLD, ARCH)


@triton.jit
def finish_read(
    control, control_bases, epoch, rank, ALL_READ: tl.constexpr, WORLD: tl.constexpr,
    ARCH: tl.constexpr,
):  # fmt: skip
    """`symmetric.finish`, where the last program to leave waits until every peer has read this
    rank's operand. ALL_READ: every program reads, so that it tells the peers first."""
    if leave(control):
        if ALL_READ:
            tell_all(control, control_bases, READ, epoch, rank, WORLD, ARCH)
        for step in range(1, WORLD):
            wait(flag(control, (rank + step) % WORLD, READ), epoch)
        close(control, epoch)
