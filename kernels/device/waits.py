"""What the tax study changes about waits. No config of a search has any of it.

WAITS, a constant of a fused kernel, is `tile`: each tile waits for what it reads, as in a search;
`all`: nothing is computed from what peers send before all of it is there; `clocked`: as tile, and
the device's clock adds up how long programs wait.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import WAITED_OFFSET, flag, wait_all

SLOTS = tl.constexpr(32)
"""Flags of each source that are polled at once."""


@triton.jit
def clock(ARCH: tl.constexpr):
    """Nanoseconds, as int64, of a counter that all units share. The interpreter has none: 0."""
    if ARCH == "cuda":
        now = tl.inline_asm_elementwise(
            "mov.u64 $0, %globaltimer;", "=l", [], tl.int64, is_pure=False, pack=1
        )
    elif ARCH == "hip":  # 100 MHz on CDNA
        now = 10 * tl.inline_asm_elementwise(
            "s_memrealtime $0\ns_waitcnt lgkmcnt(0)", "=s", [], tl.int64, is_pure=False, pack=1
        )
    else:
        now = tl.cast(0, tl.int64)
    return now


@triton.jit
def add_waited(control, began, ARCH: tl.constexpr):
    """Add to this rank's sum what a program has waited since `began`."""
    waited = tl.cast(control + WAITED_OFFSET, tl.pointer_type(tl.int64))
    tl.atomic_add(waited, clock(ARCH) - began, sem="relaxed", scope="gpu")


@triton.jit
def wait_for_all(
    control, slots, epoch, rank, OWN: tl.constexpr, WORLD: tl.constexpr, WORLD_P: tl.constexpr
):
    """Return when flags 0..slots-1 of every source have reached the epoch, this rank's own only
    where OWN: acquire at system scope, at every poll, for the reasons that `symmetric.wait`
    gives."""
    sources = tl.arange(0, WORLD_P)
    asked = sources < WORLD if OWN else (sources < WORLD) & (sources != rank)
    for first in tl.range(0, slots, SLOTS, num_stages=1):
        numbers = first + tl.arange(0, SLOTS)
        wanted = (numbers < slots)[:, None] & asked[None, :]
        wait_all(flag(control, sources[None, :], numbers[:, None]), epoch, wanted)
