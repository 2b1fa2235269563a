"""What kernels share that merge attention outputs by log-sum-exp: rows of a message, and the sum of
all ranks' rows.

A message holds the rows that one rank merges, sequence by sequence: first their elements, then
their log-sum-exps in fp32, up to a multiple of 16 bytes. A piece is ROWS of its rows.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.device.attention import floats
from tftune.kernels.device.gemm import store_tile
from tftune.kernels.device.reduce import elements


@triton.jit
def message_bytes(rows, cut: tl.constexpr):
    """The bytes of one message of so many rows."""
    return tl.cast(rows, tl.int64) * (cut.D * 2) + tl.cdiv(rows, 4) * 16


@triton.jit
def piece_rows(piece, rows, cut: tl.constexpr):
    """The rows of a piece, and which of them are there: [ROWS]."""
    within = piece * cut.ROWS + tl.arange(0, cut.ROWS)
    return within, within < rows


@triton.jit
def offsets(row, to, batch_stride, head_stride, cut: tl.constexpr):
    """Where the rows of rank `to`'s message lie in a tensor [batch, heads] of these strides:
    int64."""
    OWN: tl.constexpr = cut.OWN
    head = row % OWN if cut.ALL else to * OWN + row % OWN
    return (row // OWN) * tl.cast(batch_stride, tl.int64) + head * tl.cast(head_stride, tl.int64)


@triton.jit
def store_piece(
    o_ptr, lse_ptr, o_batch, o_head, lse_batch, lse_head, message, piece, rows, to,
    cut: tl.constexpr,
):  # fmt: skip
    """Store a piece of what is rank `to`'s into its message, which may lie on another rank."""
    D: tl.constexpr = cut.D
    row, there = piece_rows(piece, rows, cut)
    dims = tl.arange(0, D)
    own_at = elements(tl.cast(o_ptr, tl.int64) + 2 * offsets(row, to, o_batch, o_head, cut), o_ptr)
    o = tl.load(own_at[:, None] + dims[None, :], mask=there[:, None], other=0.0)
    lse = tl.load(lse_ptr + offsets(row, to, lse_batch, lse_head, cut), mask=there, other=0.0)
    o_at = elements(message + tl.cast(row, tl.int64) * (D * 2), o_ptr)
    tl.store(o_at[:, None] + dims[None, :], o, mask=there[:, None])
    lse_at = message + tl.cast(rows, tl.int64) * (D * 2) + row * 4
    tl.store(tl.cast(lse_at, tl.pointer_type(tl.float32)), lse, mask=there)


@triton.jit
def weights(lse, there, cut: tl.constexpr):
    """The share of each rank in each row, fp32 [WORLD_P * ROWS], and which ranks have tokens of it.

    lse: [WORLD_P * ROWS]. Shares of a row add up to 1; all are 0 where no rank has tokens.
    """
    SHAPE: tl.constexpr = (cut.WORLD_P, cut.ROWS)
    known = there & (lse > float("-inf")) & (lse < float("inf"))  # NaN is neither
    powers = tl.reshape(tl.where(known, lse * cut.SCALE, float("-inf")), SHAPE)
    top = tl.max(powers, 0)
    shares = tl.exp2(powers - tl.where(top == float("-inf"), 0.0, top)[None, :])
    total = tl.sum(shares, 0)
    shares = shares / tl.where(total > 0, total, 1.0)[None, :]
    return tl.reshape(shares, (cut.WORLD_P * cut.ROWS,)), known


@triton.jit
def weighted_sum(o, shares, known, cut: tl.constexpr):
    """The rows [ROWS, columns] of all ranks' rows o [WORLD_P * ROWS, columns] in fp32."""
    shared = tl.where(known[:, None], o, 0.0) * shares[:, None]
    return tl.sum(tl.reshape(shared, (cut.WORLD_P, cut.ROWS, o.shape[1])), 0)


@triton.jit
def merge_piece(out_ptr, received, piece, rows, cut: tl.constexpr, ARCH: tl.constexpr):
    """A piece of the output, from the messages of all ranks, which lie one behind the other."""
    D: tl.constexpr = cut.D
    ITEMS: tl.constexpr = cut.WORLD_P * cut.ROWS
    items, dims = tl.arange(0, ITEMS), tl.arange(0, D)
    source, row = items // cut.ROWS, piece * cut.ROWS + items % cut.ROWS
    there = (source < cut.WORLD) & (row < rows)
    message = received + source * message_bytes(rows, cut)
    lse_at = floats(message + tl.cast(rows, tl.int64) * (D * 2)) + row
    shares, known = weights(tl.load(lse_at, mask=there, other=float("-inf")), there, cut)
    o_at = elements(message + tl.cast(row, tl.int64) * (D * 2), out_ptr)
    o = tl.load(o_at[:, None] + dims[None, :], mask=known[:, None], other=0.0)
    out = weighted_sum(tl.cast(o, tl.float32), shares, known, cut)
    store_tile(out_ptr, out, piece * cut.ROWS, dims, rows, D, cut.ROWS, ARCH)
