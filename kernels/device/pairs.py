"""Elements of 16 bits as int32 pairs, which words of LL carry, and which those of Lamport are.

The lower half of a pair is the element that comes first in memory.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.device.gemm import rounded


@triton.jit
def halves(pairs, like):
    """The lower and the upper elements of int32 pairs, in fp32."""
    low = tl.cast(tl.cast(pairs & 0xFFFF, tl.uint16), like.dtype.element_ty, bitcast=True)
    high = tl.cast(tl.cast((pairs >> 16) & 0xFFFF, tl.uint16), like.dtype.element_ty, bitcast=True)
    return tl.cast(low, tl.float32), tl.cast(high, tl.float32)


@triton.jit
def paired(low, high, like, ARCH: tl.constexpr):
    """fp32 values rounded to elements of `like`, and packed into int32 pairs."""
    lower = tl.cast(rounded(low, like.dtype.element_ty, ARCH), tl.uint16, bitcast=True)
    upper = tl.cast(rounded(high, like.dtype.element_ty, ARCH), tl.uint16, bitcast=True)
    return tl.cast(lower, tl.int32) | (tl.cast(upper, tl.int32) << 16)


@triton.jit
def pair_pointer(pointer):
    """The same memory as int32 pairs of elements."""
    return tl.multiple_of(tl.cast(tl.cast(pointer, tl.int64), tl.pointer_type(tl.int32)), 16)
