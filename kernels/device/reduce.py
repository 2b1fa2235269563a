"""What reducing kernels share: tiles of rows, sums over ranks in their order, residual and RMSNorm
of a row.

A piece is up to ROWS whole rows' columns of one of PARTS equal parts; pieces are numbered group of
rows by group of rows, part by part. Rows are multiples of 8 elements, so that each part begins at a
multiple of 16 bytes.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def turn(number, ARCH: tl.constexpr):
    """The first item of the program that is `number` in turn, and from one to the next. The
    interpreter runs programs one after another: there the last does what needs all others' work."""
    if ARCH == "interpreter":
        first, step = tl.where(tl.program_id(0) == tl.num_programs(0) - 1, 0, 1 << 30), 1
    else:
        first, step = number, tl.num_programs(0)
    return first, step


@triton.jit
def elements(address, like):
    """A pointer to the elements of `like` at an address, which is a multiple of 16."""
    return tl.multiple_of(tl.cast(address, tl.pointer_type(like.dtype.element_ty)), 16)


@triton.jit
def rounded(values, like, ARCH: tl.constexpr):
    """fp32 values as elements of `like`, to nearest even."""
    if ARCH == "interpreter" and like.dtype.element_ty == tl.bfloat16:  # its cast cuts off
        bits = tl.cast(values, tl.int32, bitcast=True)
        kept = (bits + 0x7FFF + ((bits >> 16) & 1)) & -0x10000
        values = tl.cast(kept, tl.float32, bitcast=True)
    return tl.cast(values, like.dtype.element_ty)


@triton.jit
def piece_tile(
    piece, first, M,
    N: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr,
    COLS_P: tl.constexpr,
):  # fmt: skip
    """Of TILE rows of a piece, from its row `first` on: their places in x [M, N], their places in
    the piece, and which of them are there, each [TILE, COLS_P]."""
    COLS: tl.constexpr = N // PARTS
    within = first + tl.arange(0, TILE)
    rows = piece // PARTS * ROWS + within
    columns = tl.arange(0, COLS_P)[None, :]
    there = ((rows < M) & (within < ROWS))[:, None] & (columns < COLS)
    places = (tl.cast(rows, tl.int64) * N)[:, None] + (piece % PARTS * COLS + columns)
    return places, (within * COLS)[:, None] + columns, there


@triton.jit
def pieces_of(M, PARTS: tl.constexpr, ROWS: tl.constexpr):
    """Pieces of x."""
    return tl.cdiv(M, ROWS) * PARTS


@triton.jit
def add_norm(
    y, residual, weight, there, N: tl.constexpr, eps, like, ARCH: tl.constexpr,
):  # fmt: skip
    """One row's new residual and out, in elements of `like`, from y, residual and weight in fp32, y
    being rounded already. Roundings as in vLLM's fused_add_rms_norm."""
    z = rounded(y + residual, like, ARCH)
    added = tl.where(there, tl.cast(z, tl.float32), 0.0)
    scale = tl.rsqrt(tl.sum(added * added, 0) / N + eps)
    scaled = tl.cast(rounded(added * scale, like, ARCH), tl.float32)
    return z, rounded(scaled * weight, like, ARCH)
