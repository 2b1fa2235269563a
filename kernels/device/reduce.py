"""What reducing kernels share: tiles of rows, sums over ranks in their order, residual and RMSNorm
of a row.

A piece is up to ROWS whole rows' columns of one of PARTS equal parts; pieces are numbered group of
rows by group of rows, part by part. Rows are multiples of 8 elements, so that each part begins at a
multiple of 16 bytes.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.ll_protocol import data, in_any_warp, missing, poll
from tftune.kernels.device.gemm import rounded


@triton.jit
def elements(address, like):
    """A pointer to the elements of `like` at an address, which is a multiple of 16."""
    return tl.multiple_of(tl.cast(address, tl.pointer_type(like.dtype.element_ty)), 16)


@triton.jit
def piece_tile(
    piece, first, M,
    N: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr,
    COLS_P: tl.constexpr,
):  # fmt: skip
    """TILE rows of a piece, from its row `first` on: their places in x [M, N], their places in the
    piece, and which of them are there, each [TILE, COLS_P]."""
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
    z = rounded(y + residual, like.dtype.element_ty, ARCH)
    added = tl.where(there, tl.cast(z, tl.float32), 0.0)
    scale = tl.rsqrt(tl.sum(added * added, 0) / N + eps)
    scaled = tl.cast(rounded(added * scale, like.dtype.element_ty, ARCH), tl.float32)
    return z, rounded(scaled * weight, like.dtype.element_ty, ARCH)


@triton.jit
def awaited(
    pointers, wanted, epoch, COUNT: tl.constexpr, THREADS: tl.constexpr, ARCH: tl.constexpr
):
    """The fp32 data of a block of words, once all that are wanted have come."""
    words = poll(pointers, wanted, COUNT, THREADS, ARCH)
    while in_any_warp(missing(words, wanted, epoch), ARCH) != 0:
        words = poll(pointers, wanted, COUNT, THREADS, ARCH)
    return data(words)


@triton.jit
def in_order(values, sources, WORLD: tl.constexpr):
    """The sum of the rows of a block [ranks, columns] in the order of ranks, whatever order a
    reduction would take."""
    total = tl.sum(tl.where(sources[:, None] == 0, values, 0.0), 0)
    for source in tl.static_range(1, WORLD):
        total += tl.sum(tl.where(sources[:, None] == source, values, 0.0), 0)
    return total


@triton.jit
def sum_with_peers(
    c_ptr, places, there, inbox, slot_bytes, rank, WORLD: tl.constexpr, ARCH: tl.constexpr
):  # fmt: skip
    """The sum over ranks, in their order, of these elements of this rank's product, at c_ptr, and
    the same elements of the other ranks' slots in the inbox; rounded once."""
    own = tl.cast(tl.load(c_ptr + places, mask=there, other=0.0), tl.float32)
    total = tl.zeros(own.shape, tl.float32)
    for source in tl.static_range(WORLD):
        theirs = elements(inbox + tl.cast(source, tl.int64) * slot_bytes, c_ptr)
        part = tl.load(theirs + places, mask=there & (source != rank), other=0.0)
        total += tl.where(source == rank, own, tl.cast(part, tl.float32))
    return rounded(total, c_ptr.dtype.element_ty, ARCH)


@triton.jit
def add_peers(
    c_ptr, places, there, inbox, slot_bytes, rank, WORLD: tl.constexpr, ARCH: tl.constexpr
):  # fmt: skip
    """These elements of this rank's product become that sum."""
    total = sum_with_peers(c_ptr, places, there, inbox, slot_bytes, rank, WORLD, ARCH)
    tl.store(c_ptr + places, total, mask=there)
