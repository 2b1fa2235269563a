"""Device side of the symmetric heap: addresses of peers, flags that signal and wait, the epoch; and
the layout both sides share.

A workspace has two symmetric blocks on every rank. Control: the epoch word, the exit counter, one
flag word for each (source rank, slot), a mailbox for words that carry their epoch, and one for
words of data alone. Payload: two generations, each at a fixed byte offset, which calls use in turn.

Epochs are odd, and the next call's is 2 more. Memory starts as zeros, so a flag that was never
written equals no epoch, not even where the 32 bits wrap. The epoch word holds the even number below
the next epoch. Each of the 2^31 odd numbers comes again after 2^31 calls: a flag exactly that old,
or one call less, would pass for arrived.

Why two generations suffice: a call ends only after it heard from every peer, and a peer signals in
call e only after its call e-1 ended. So when call e starts here, every peer has ended call e-2, the
last one that used the same generation.

Kernels take addresses as int64 rather than tensors: Triton's interpreter copies a tensor argument
back to itself after a launch, which would undo what peers wrote meanwhile.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.core import space

FLAGS_PER_SOURCE = tl.constexpr(space.FLAGS_PER_SOURCE)
READY_FLAGS = tl.constexpr(space.FLAGS_PER_SOURCE // 2)
"""Where a variant needs two flags for each chunk, the second half of a source's flags are the later
ones."""
EPOCH_OFFSET = tl.constexpr(0)
EXITS_OFFSET = tl.constexpr(128)
UNITS_OFFSET = tl.constexpr(192)
BARRIER_OFFSET = tl.constexpr(256)
READERS_OFFSET = tl.constexpr(320)
BARRIER_FLAGS_OFFSET = tl.constexpr(1_024)
BARRIER_FLAG_STRIDE = tl.constexpr(64)
WAITED_OFFSET = tl.constexpr(2_048)
"""int64: what programs waited, in nanoseconds, where `tftune study taxes` asks (`device.waits`)."""
FLAGS_OFFSET = tl.constexpr(4_096)
MAILBOX_OFFSET = tl.constexpr(4_096 + space.MAX_WORLD * space.FLAGS_PER_SOURCE * 4)
MAILBOX_BYTES = tl.constexpr(space.MAILBOX_BYTES)
LAMPORT_OFFSET = tl.constexpr(MAILBOX_OFFSET + 2 * space.MAILBOX_BYTES)
"""Where the other mailbox lies, for words of `lamport` alone."""
CONTROL_BYTES = space.CONTROL_BYTES
"""Bytes of one rank's control block: the epoch word, the counters of exits, of claimed work and of
readers, and the barrier's words, each on its own line of memory, then the flags, then two
generations of each mailbox, to which nothing but words of their protocol is ever written."""


@triton.jit
def word(address):
    """The int32 word at an address."""
    return tl.cast(address, tl.pointer_type(tl.int32))


@triton.jit
def peer(address, bases, rank, target):
    """The address on `target` of what lies at `address` here: Iris' own translation, done once per
    source, outside inner loops."""
    return address - tl.load(bases + rank) + tl.load(bases + target)


@triton.jit
def distances(bases, rank, WORLD: tl.constexpr, WORLD_P: tl.constexpr):
    """What to add to an address of this rank to get the same on each rank: int64[WORLD_P]. Loaded
    early, long before it is used."""
    ranks = tl.arange(0, WORLD_P)
    return tl.load(bases + ranks, mask=ranks < WORLD, other=0) - tl.load(bases + rank)


@triton.jit
def flag(control, source, slot):
    """The address of one flag. The stride of a source is fixed: with one that followed the shape, a
    fast rank's next call with another shape would release a stale wait."""
    return control + FLAGS_OFFSET + (source * FLAGS_PER_SOURCE + slot) * 4


@triton.jit
def drain(value, ARCH: tl.constexpr):
    """Whatever any warp of this program stored so far comes before what follows. `value`: any
    int32, which the assembly needs."""
    if ARCH == "hip":
        # The barrier alone is a bare s_barrier on CDNA, so each wave must first see its own stores
        # leave. Each also writes L2 back and waits for that: the release that follows does not
        # (LLVM dropped the wait until pull request 178316 of 2026-02).
        tl.inline_asm_elementwise(
            "s_waitcnt vmcnt(0)\nbuffer_wbl2 sc0 sc1\ns_waitcnt vmcnt(0)\nv_mov_b32 $0, $1",
            "=v,v", [value], tl.int32, is_pure=False, pack=1,
        )  # fmt: skip
    tl.debug_barrier()


@triton.jit
def signal(address, epoch, ARCH: tl.constexpr):
    """Publish every store that this program made so far, then set the flag: release at system
    scope."""
    drain(epoch, ARCH)
    tl.atomic_xchg(word(address), epoch, sem="release", scope="sys")


@triton.jit
def signal_peers(
    control, control_bases, slot, epoch, rank, WORLD: tl.constexpr, ARCH: tl.constexpr
):
    """The same for this rank's flag at every peer, nearest first."""
    drain(epoch, ARCH)
    for step in range(1, WORLD):
        target = (rank + step) % WORLD
        there = word(peer(flag(control, rank, slot), control_bases, rank, target))
        tl.atomic_xchg(there, epoch, sem="release", scope="sys")


@triton.jit
def signal_all(
    address, away, epoch, WORLD: tl.constexpr, WORLD_P: tl.constexpr, ARCH: tl.constexpr
):
    """Publish every store that this program made so far, then set the flag on every rank at once,
    here, too: release at system scope.

    address: of the flag here; away: `distances` of the control block.
    """
    drain(epoch, ARCH)
    values = tl.full((WORLD_P,), 0, tl.int32) + epoch
    wanted = tl.arange(0, WORLD_P) < WORLD
    tl.atomic_xchg(word(address + away), values, mask=wanted, sem="release", scope="sys")


@triton.jit
def wait(address, epoch):
    """Return when the flag has reached the epoch: acquire at system scope.

    A peer is at most one call ahead, so the flag then holds the epoch or the next one, 2 more:
    anything else is old, or was never written. (With `flag - epoch < 0` a slot that was not used
    for 2^30 calls would look ahead.) Only this form of polling is right on both targets: a volatile
    load is hoisted into an endless loop on gfx942, and an acquire whose result is not used is
    deleted on sm_90.
    """
    while ((tl.atomic_add(word(address), 0, sem="acquire", scope="sys") - epoch) & -3) != 0:
        pass


@triton.jit
def wait_all(flags, epoch, wanted):
    """Return when all flags wanted of a block of addresses have reached the epoch: acquire at
    system scope, all polled at once.

    Like `wait`, which says why it polls so, and why the epoch or the next one is ready and all else
    is old.
    """
    late = 1
    while late != 0:
        seen = tl.atomic_add(word(flags), 0, mask=wanted, sem="acquire", scope="sys")
        late = tl.max(tl.max(tl.cast(wanted & (((seen - epoch) & -3) != 0), tl.int32), 1), 0)


@triton.jit
def see_arrivals(value, ARCH: tl.constexpr):
    """What a wait has seen holds for tensor descriptors, too: they read through another proxy.
    `value`: any int32."""
    if ARCH == "cuda":
        tl.inline_asm_elementwise(
            "fence.proxy.async.global;\nmov.b32 $0, $1;",
            "=r,r", [value], tl.int32, is_pure=False, pack=1,
        )  # fmt: skip


@triton.jit
def begin(control):
    """This call's epoch, an odd number. It lives in device memory, since a captured graph freezes
    every scalar argument."""
    return tl.load(word(control + EPOCH_OFFSET)) + 1


@triton.jit
def advance(control, epoch):
    """The call after this one has the next epoch."""
    tl.store(word(control + EPOCH_OFFSET), epoch + 1)


@triton.jit
def generation_of(epoch):
    """Which generation this call uses: 0 and 1 in turn."""
    return (epoch >> 1) & 1


@triton.jit
def work_range(number, ARCH: tl.constexpr):
    """The first item of the program that is `number` in turn, and from one to the next. The
    interpreter runs programs one after another: there the last does what needs all others' work."""
    if ARCH == "interpreter":
        first, step = tl.where(tl.program_id(0) == tl.num_programs(0) - 1, 0, 1 << 30), 1
    else:
        first, step = number, tl.num_programs(0)
    return first, step


@triton.jit
def leave(control):
    """Count this program as one that leaves the call; whether it is the last, so that no other can
    still read the epoch or the counters."""
    tl.debug_barrier()
    left = tl.atomic_add(word(control + EXITS_OFFSET), 1, sem="acq_rel", scope="gpu")
    return left == tl.num_programs(0) - 1


@triton.jit
def close(control, epoch):
    """By the last program: set the counters back and advance the epoch."""
    tl.store(word(control + EXITS_OFFSET), 0)
    tl.store(word(control + UNITS_OFFSET), 0)
    advance(control, epoch)


@triton.jit
def finish(control, epoch):
    """Leave the call; the last program to leave ends it."""
    if leave(control):
        close(control, epoch)


@triton.jit(do_not_specialize=["rank"])
def barrier(control, control_bases, rank, WORLD: tl.constexpr):
    """One program of every rank: return when all have come here. Counts its own epoch, in device
    memory and odd like the other."""
    epoch = tl.load(word(control + BARRIER_OFFSET)) + 1
    own = control + BARRIER_FLAGS_OFFSET + rank * BARRIER_FLAG_STRIDE
    for step in range(1, WORLD):
        arrival = word(peer(own, control_bases, rank, (rank + step) % WORLD))
        tl.atomic_xchg(arrival, epoch, sem="release", scope="sys")
    for step in range(1, WORLD):
        wait(control + BARRIER_FLAGS_OFFSET + (rank + step) % WORLD * BARRIER_FLAG_STRIDE, epoch)
    tl.store(word(control + BARRIER_OFFSET), epoch + 1)
