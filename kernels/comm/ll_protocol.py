"""LL protocol: each 8-byte store carries 4 bytes of data and a 4-byte epoch, so the reader polls
the data itself.

NCCL's low-latency protocol costs twice the bytes, but no fence, no flag, and one flight. Nothing
but such words may ever be written where they lie: it could look like this call's epoch. A workspace
keeps a mailbox for them in its control block, in two generations like the payload, and for the same
reason (`symmetric`).

For one die only: what the programs of another die store without a fence may stay in that die's
cache (CDNA).
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def word64(addresses):
    """Pointers to words at these addresses, which are multiples of 16."""
    return tl.multiple_of(tl.cast(addresses, tl.pointer_type(tl.int64)), 16)


@triton.jit
def pack_ll(values, epoch):
    """fp32 values as words of this epoch."""
    bits = tl.cast(tl.cast(values, tl.uint32, bitcast=True), tl.int64)
    return bits | (tl.cast(epoch, tl.int64) << 32)


@triton.jit
def store(pointers, words, wanted):
    """Write words through to where their readers look, as NCCL's stores do: not left in a cache,
    each word of 64 bits whole."""
    tl.store(pointers, words, mask=wanted, cache_modifier=".wt")


@triton.jit
def data(words):
    """The fp32 values of words."""
    return tl.cast(tl.cast(words & 0xFFFFFFFF, tl.uint32), tl.float32, bitcast=True)


@triton.jit
def poll(pointers, wanted, COUNT: tl.constexpr, THREADS: tl.constexpr, ARCH: tl.constexpr):
    """COUNT words as they are now. What has fewer words than the program has threads is cheap in
    the eyes of Triton's compiler, which repeats such a load for each layout that the words are
    wanted in (3.6): only one of the copies would then be waited for, and another may be older (seen
    on H200 as wrong results). Atomic operations are never repeated. (Those of the interpreter read
    and write back: what a peer stored in between would be lost.)"""
    if ARCH == "cuda" and COUNT < THREADS:
        words = tl.atomic_add(pointers, 0, mask=wanted, sem="relaxed", scope="sys")
    else:
        words = tl.load(pointers, mask=wanted, other=0, volatile=True)
    return words


@triton.jit
def missing(words, wanted, epoch):
    """1 where any wanted word of a block [rows, columns] is not yet of this epoch, else 0, as the
    warp sees it that asks.

    A peer may be one call ahead, but that call's words go to the other generation: any other epoch
    is an old one. A word that was never written is 0, and an epoch is odd.
    """
    return tl.max(tl.max(tl.cast(wanted & ((words >> 32) != epoch), tl.int32), 1), 0)


@triton.jit
def in_any_warp(late, ARCH: tl.constexpr):
    """1 for every warp of the program where `late` is not 0 for one of them.

    Of a block with fewer words than threads each warp loads a copy of its own, and copies differ
    while words arrive: a loop that some warps leave and others do not would never end at its
    barriers (seen on H200).
    """
    if ARCH == "cuda":
        late = tl.inline_asm_elementwise(
            "{\n.reg .pred p, q;\nsetp.ne.s32 p, $1, 0;\n"
            "barrier.red.or.pred q, 0, p;\nselp.s32 $0, 1, 0, q;\n}",
            "=r,r", [late], tl.int32, is_pure=False, pack=1,
        )  # fmt: skip
    return late
