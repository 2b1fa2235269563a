"""vendor_ce: the vendor's GEMM of each owner's rows; copy engines store products into their owners'
inboxes while the next ones are computed.

Who owns a tile: a GEMM for each chunk of a peer's rows, the next rank's before all, then one for
this rank's own; behind it one kernel adds to them what peers sent. Who writes remotely: the copy
engine, chunk after chunk, from this rank's outbox into its slot of the owner's inbox. Which flag
says ready: flag[source][chunk] in the owner's memory, a copy of the word that holds the epoch,
queued behind the chunk's own copy in the same stream.

The main stream joins the copies before it waits for those of peers: as in push_ce, nothing on a
GPU waits for what is queued behind it there. That a call's copies meet no reader of the same
generation, says kernels/comm/copy_engine.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import triton
import triton.language as tl

from tftune.kernels.comm.copy_engine import Exchange, Piece
from tftune.kernels.comm.symmetric import begin, finish, flag, generation_of, wait_all, work_range
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.dtypes import torch_dtype
from tftune.kernels.core.rounding import power_of_two_from
from tftune.kernels.core.space import Config
from tftune.kernels.device.reduce import add_peers
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter
from tftune.kernels.gemm_reduce_scatter.space import vendor_rows
from tftune.kernels.runtime.compile import KernelSource
from tftune.kernels.runtime.gemm_reduce import ADDING, BLOCK, WARPS
from tftune.kernels.runtime.plan import WORKSPACE_TYPES, floats, launched, workspace_values

if TYPE_CHECKING:
    import torch


@triton.jit(do_not_specialize=["rows", "chunk_rows", "rank"])
def add(
    c_ptr, control, payload, generation_bytes, slot_bytes, rows, chunk_rows, rank,
    N: tl.constexpr, WORLD: tl.constexpr, WORLD_P: tl.constexpr, BLOCK: tl.constexpr,
    ARCH: tl.constexpr,
):  # fmt: skip
    """This rank's product in C [rows, N] becomes the sum, in the order of ranks, with what peers
    put into their slots: each chunk once they have."""
    epoch = begin(control)
    inbox = payload + generation_of(epoch) * generation_bytes
    sources, blocks = tl.arange(0, WORLD_P), tl.cdiv(chunk_rows * N, BLOCK)
    peers = ((sources < WORLD) & (sources != rank))[:, None]
    first, step = work_range(tl.program_id(0), ARCH)
    for item in tl.range(first, tl.cdiv(rows, chunk_rows) * blocks, step, num_stages=1):
        chunk = item // blocks
        low = chunk * chunk_rows
        within = item % blocks * BLOCK + tl.arange(0, BLOCK)
        there = within < (tl.minimum(low + chunk_rows, rows) - low) * N
        wait_all(flag(control, sources, chunk)[:, None], epoch, peers)
        places = tl.cast(low, tl.int64) * N + within
        add_peers(c_ptr, places, there, inbox, slot_bytes, rank, WORLD, ARCH)
    finish(control, epoch)


def kernels(shape: GemmReduceScatter, config: Config, arch: str) -> tuple[KernelSource, ...]:
    """The kernel of the sum."""
    types = {"c_ptr": f"*{shape.dtype}"}
    types |= {name: WORKSPACE_TYPES[name] for name in ("control", "payload")}
    types |= dict.fromkeys(("generation_bytes", "slot_bytes"), "i64")
    divisible = tuple(types)
    types |= dict.fromkeys(("rows", "chunk_rows", "rank"), "i32")
    ranks = {"WORLD": shape.world, "WORLD_P": power_of_two_from(shape.world)}
    constants = {"N": shape.n, **ranks, "BLOCK": BLOCK, "ARCH": arch}
    return (KernelSource(add, types, constants, divisible, {"num_warps": WARPS}),)


def vendor_ce(
    shape: GemmReduceScatter, config: Config, workspace: Workspace
) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]:
    """A call (a, b, c) of a complete config; its outbox is allocated here."""
    import torch

    world, rank, rows = shape.world, workspace.rank, shape.shard_rows
    step, row_bytes = vendor_rows(shape, config), shape.n * shape.element_bytes
    chunks = [(low, min(low + step, rows)) for low in range(0, rows, step)]
    pieces = [
        Piece(low * row_bytes, (rank * rows + low) * row_bytes, (high - low) * row_bytes)
        for low, high in chunks
    ]
    inbox = 0, workspace.generation_bytes
    exchange = Exchange(workspace, inbox, pieces, config["copy_streams"])
    room = floats(workspace, "outbox", (world - 1) * rows * row_bytes)
    products = room.view(torch_dtype(shape.dtype))[: (world - 1) * rows * shape.n]
    outbox = products.view(world - 1, rows, shape.n)
    (source,) = kernels(shape, config, workspace.arch)
    add_up = _adding(shape, step, workspace, source)

    def call(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        weights = b.t() if shape.b_layout == "nk" else b
        parity = exchange.begin()
        for turn, part in enumerate(outbox):
            first = (rank + 1 + turn) % world * rows
            for number, (low, high) in enumerate(chunks):
                torch.matmul(a[first + low : first + high], weights, out=part[low:high])
                exchange.send_one(parity, number, world - 1 - turn, part.data_ptr())
        torch.matmul(a[rank * rows : (rank + 1) * rows], weights, out=c)
        exchange.join()
        add_up(c)

    return call


def _adding(
    shape: GemmReduceScatter, chunk_rows: int, workspace: Workspace, source: KernelSource
) -> Callable[[torch.Tensor], None]:
    """The kernel as a call of C."""
    rows = shape.shard_rows
    values = workspace_values(workspace) | {
        "generation_bytes": workspace.generation_bytes, "rows": rows, "chunk_rows": chunk_rows,
        "slot_bytes": rows * shape.n * shape.element_bytes,
    }  # fmt: skip
    blocks = -(-rows // chunk_rows) * -(-chunk_rows * shape.n // BLOCK)
    programs = min(ADDING * workspace.units, blocks)
    return launched(source, programs, ("c_ptr",), values, workspace)
