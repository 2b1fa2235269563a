"""Lamport protocol: words of data alone. A word of zeros has not arrived; who has read a word sets
it back to zeros.

Half of the bytes of LL (`ll_protocol`), and no fence and no flag either. Two elements of +0 travel
as +0 and -0, since a word of zeros is none. Words have a mailbox of their own in the control block,
all zeros between calls, in two generations like the payload. TensorRT-LLM and FlashInfer do
likewise with -0 for what has not arrived: they clear a buffer a call later, and have three.

Two generations suffice where every call hears from each peer. A peer sends in call e after its call
e-1 ended, so it has heard of this rank's e-1, which began after this rank's e-2, the last to read
and to clear the same generation, had ended. What puts a clear before a later word is the end of a
kernel: no such kernel may be launched while the one before it runs (programmatic dependent launch),
unless it waits for its end first.

For one die only, as LL is.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.ll_protocol import in_any_warp, poll, store

MINUS_ZERO = tl.constexpr(-(1 << 31))
"""A pair of +0 and -0."""
ALONE = 8
"""Words that a thread polls alone, all at once."""


def _poll_again(count: int) -> str:
    """PTX that loads so many words, $0 on, from addresses, until none of those wanted is zero."""
    loads = [
        f"mov.b32 ${word}, 1;\nsetp.ne.b32 p, ${2 * count + word}, 0;\n"
        f"@p ld.volatile.global.b32 ${word}, [${count + word}];\n"
        for word in range(count)
    ]
    late = [f"setp.eq.or.b32 q, ${word}, 0, q;\n" for word in range(1, count)]
    tests = ["setp.eq.b32 q, $0, 0;\n", *late]
    return "{\n.reg .pred p, q;\nagain:\n" + "".join(loads + tests) + "@q bra again;\n}"


_WORDS = tl.constexpr(ALONE)
_POLL = tl.constexpr(_poll_again(ALONE))
_REGISTERS = tl.constexpr(",".join(["=&r"] * ALONE + ["l"] * ALONE + ["r"] * ALONE))


@triton.jit
def pack_lamport(pairs):
    """Pairs of elements, int32, as words of equal values, none of them zeros."""
    return tl.where(pairs == 0, MINUS_ZERO, pairs)


@triton.jit
def take(pointers, wanted, COUNT: tl.constexpr, THREADS: tl.constexpr, ARCH: tl.constexpr):
    """A block of COUNT words [rows, columns], once all that are wanted have arrived, and cleared
    behind it. Where each thread has enough of them, it polls alone, without the program's barriers;
    for fewer Triton would fill up with addresses of nothing. None clears a word before all have
    read theirs. What is not wanted has any value."""
    if ARCH == "cuda" and COUNT >= _WORDS * THREADS:
        addresses, asked = tl.cast(pointers, tl.int64), tl.cast(wanted, tl.int32)
        words = tl.inline_asm_elementwise(
            _POLL, _REGISTERS, [addresses, asked], tl.int32, is_pure=False, pack=_WORDS
        )
        tl.debug_barrier()
    else:
        words = poll(pointers, wanted, COUNT, THREADS, ARCH)
        late = tl.max(tl.max(tl.cast(wanted & (words == 0), tl.int32), 1), 0)
        while in_any_warp(late, ARCH) != 0:
            words = poll(pointers, wanted, COUNT, THREADS, ARCH)
            late = tl.max(tl.max(tl.cast(wanted & (words == 0), tl.int32), 1), 0)
    store(pointers, tl.zeros_like(words), wanted)
    return words
