"""Kernels that measure a machine rather than compute: latencies and rates of what the fused kernels
are made of, by their own helpers."""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import flag, peer, signal, wait, word
from tftune.kernels.device.shards import copy_block


@triton.jit(do_not_specialize=["steps"])
def chase(base, result_ptr, steps):
    """One program follows a chain of `steps` words, each of which holds the number of the next,
    int64, from the address `base` on."""
    links = tl.cast(base, tl.pointer_type(tl.int64))
    place = tl.load(links)
    for _ in range(1, steps):
        place = tl.load(links + place)
    tl.store(result_ptr, place)


@triton.jit(do_not_specialize=["polls"])
def poll(control, result_ptr, polls):
    """One program polls a flag of its own rank that is set already, as `symmetric.wait` does."""
    seen = 0
    for _ in range(polls):
        seen += tl.atomic_add(word(flag(control, 0, 0)), 0, sem="acquire", scope="sys")
    tl.store(result_ptr, seen)


@triton.jit(do_not_specialize=["rank", "first", "turns"])
def ping(control, control_bases, rank, first, turns, ARCH: tl.constexpr):
    """Ranks 0 and 1 answer each other's flag `turns` times; `first` is one more than the last turn
    of the call before."""
    for turn in range(first, first + turns):
        if rank == 0:
            signal(peer(flag(control, 0, 0), control_bases, 0, 1), turn, ARCH)
            wait(flag(control, 1, 0), turn)
        else:
            wait(flag(control, 0, 0), turn)
            signal(peer(flag(control, 1, 0), control_bases, 1, 0), turn, ARCH)


@triton.jit(do_not_specialize=["rank", "signals"])
def release(control, control_bases, rank, signals, WORLD: tl.constexpr, ARCH: tl.constexpr):
    """One program sets a flag of the next rank again and again, each time with a release at system
    scope."""
    address = peer(flag(control, rank, 1), control_bases, rank, (rank + 1) % WORLD)
    for number in range(signals):
        signal(address, number, ARCH)


@triton.jit(do_not_specialize=["rank", "blocks", "slots"])
def store_blocks(
    source, payload, payload_bases, rank, blocks, slots,
    WORLD: tl.constexpr, PEERS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Every program stores `blocks` blocks of ROWS x COLUMNS fp16 to the next PEERS ranks in turn,
    each rank into its own `slots` slots."""
    pid = tl.program_id(0)
    for block in range(blocks):
        target = (rank + 1 + (pid + block) % PEERS) % WORLD
        region = payload + tl.cast(rank * slots, tl.int64) * (ROWS * COLUMNS * 2)
        slot = (pid * blocks + block) % slots
        copy_block(
            source, peer(region, payload_bases, rank, target), slot, slots * ROWS,
            COLUMNS, COLUMNS, COLUMNS, ROWS, COLUMNS, tl.float16, ROWS, COLUMNS,
        )  # fmt: skip
