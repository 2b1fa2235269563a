"""bsp_chunked: the vendor's GEMM on each chunk of rows as it arrives, by copy engine, while the
next one is on its way; no fused kernel.

Who owns a tile: the library. C's rows are computed chunk after chunk; where A is sharded along M,
this rank's own rows come first. Who writes remotely: the copy engine puts the rows of a chunk where
they belong in every peer's gathered A, [M, K] in its inbox, as kernels/comm/copy_engine.py says.
Which flag says ready: flag[source][chunk] of every peer, which a program of one warp waits for
before the chunk's GEMM.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.comm.copy_engine import Exchange, Piece, arrive, launcher
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.space import Config

if TYPE_CHECKING:
    import torch

Call = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor"], None]
Rows = tuple[int, int]
"""First row of a chunk, counted in a shard, and the row after its last."""


def chunks(shard_rows: int, first_rows: int, growth: int) -> list[Rows]:
    """Each chunk has `growth` times the rows of the one before it, whose GEMM hides its flight; the
    last takes what would be less.

    >>> chunks(8192, 512, 7)
    [(0, 512), (512, 4096), (4096, 8192)]
    """
    spans, low, rows = [], 0, first_rows
    while low < shard_rows:
        high = low + rows if shard_rows - low >= 2 * rows else shard_rows
        spans.append((low, high))
        low, rows = high, rows * growth
    return spans


def bsp_chunked(
    shape: AllGatherGemm, workspace: Workspace, dtype: torch.dtype, config: Config
) -> Call:
    """A call (a, b, c) that computes C = all_gather(A) @ B."""
    import torch

    rows = chunks(shape.shard_rows, config["first_rows"], config["growth"])
    apart, rank = workspace.generation_bytes, workspace.rank
    exchange = Exchange(
        workspace, (0, apart), [piece(shape, rank, chunk) for chunk in rows], config["copy_streams"]
    )
    types = {"control": "i64", "slot": "i32", "last": "i32", "rank": "i32"}
    arrived = launcher(workspace, arrive, types)
    inboxes = [
        workspace.payload_tensor[parity * apart :][: shape.gathered_bytes]
        .view(dtype)
        .view(shape.m, shape.k)
        for parity in (0, 1)
    ]
    own_rows, own_columns = (
        slice(rank * size, (rank + 1) * size) for size in (shape.shard_rows, shape.shard_columns)
    )

    def call(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        weights = b.t() if shape.b_layout == "nk" else b
        parity = exchange.begin()
        gathered = inboxes[parity]
        if shape.shard == "m":
            torch.matmul(a, weights, out=c[own_rows])
        else:
            gathered[:, own_columns].copy_(a)  # while the first chunk is on its way
        exchange.send(parity, a.data_ptr())
        for number, chunk in enumerate(rows):
            arrived(workspace.control, number, int(number == len(rows) - 1), rank)
            _multiply(shape, rank, chunk, gathered, weights, c)
        exchange.join()

    return call


def piece(shape: AllGatherGemm, rank: int, rows: Rows) -> Piece:
    """Whole rows of A where it is sharded along M; else their columns of this rank, a run of bytes
    in each row."""
    (low, high), run = rows, shape.shard_columns * shape.element_bytes
    if shape.shard == "m":
        return Piece(low * run, (rank * shape.shard_rows + low) * run, (high - low) * run)
    target = (low * shape.world + rank) * run
    return Piece(low * run, target, run, high - low, run, shape.world * run)


def _multiply(
    shape: AllGatherGemm,
    rank: int,
    rows: Rows,
    gathered: torch.Tensor,
    weights: torch.Tensor,
    c: torch.Tensor,
) -> None:
    """A chunk of rows of C; where A is sharded along M those of every peer's shard: in one batch
    those of the ranks before this one, in another those behind it."""
    import torch

    if shape.shard == "k":
        torch.matmul(gathered[slice(*rows)], weights, out=c[slice(*rows)])
        return
    pieces, results = (
        whole.view(shape.world, shape.shard_rows, -1)[:, slice(*rows)] for whole in (gathered, c)
    )
    for peers in (slice(0, rank), slice(rank + 1, shape.world)):
        if count := len(pieces[peers]):
            torch.bmm(pieces[peers], weights.expand(count, -1, -1), out=results[peers])
