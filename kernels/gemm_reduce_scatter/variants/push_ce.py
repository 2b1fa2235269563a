"""push_ce: copy engines store finished rows into their owners' inboxes, one owner's while the next
one's are computed; no program waits for a store over the links.

Who owns a tile: a launch for each chunk of an owner's rows, the next rank's first and this rank's
own last; behind them one kernel adds up this rank's rows. Who writes remotely: the copy engine,
chunk after chunk, from this rank's outbox into its slot of the owner's inbox, behind the launch
that made the chunk. Which flag says ready: flag[source][chunk] in the owner's memory, a copy of the
word that holds the epoch, queued behind the chunk's own copy in the same stream.

The main stream joins the copies before it waits for those of peers. So nothing on a GPU waits for
what is queued behind it there, in whatever order a graph's branches are run. That a call's copies
meet no reader of the same generation, says kernels/comm/copy_engine.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import triton
import triton.language as tl

from tftune.kernels.comm.copy_engine import Exchange, Piece
from tftune.kernels.comm.symmetric import begin, finish, flag, generation_of, wait_all, work_range
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.partials import owner_rows, slot_bytes
from tftune.kernels.core.space import Config
from tftune.kernels.device.gemm import tile_order
from tftune.kernels.device.gemm_reduce import add_slots, descriptors_of, partial_tile, store_rows
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter
from tftune.kernels.gemm_reduce_scatter.space import SPACE, chunk_rows
from tftune.kernels.runtime.compile import KernelSource
from tftune.kernels.runtime.gemm_reduce import ADDING, add_rows, caller, source
from tftune.kernels.runtime.plan import floats, launched, workspace_values

if TYPE_CHECKING:
    import torch


@triton.jit(do_not_specialize=["target", "first", "rows", "M"])
def multiply(
    a_ptr, b_ptr, target, first, rows, a_desc, b_desc, M,
    problem: tl.constexpr, tile: tl.constexpr, exchange: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """Rows first.. of A [M, K], so many, times B: [rows, N] in what is sent, at an address."""
    N: tl.constexpr = problem.N
    WIRE: tl.constexpr = tl.float32 if exchange.WIRE_FP32 else a_ptr.dtype.element_ty
    if tile.LOADS == "descriptor" and ARCH == "interpreter":
        a_desc, b_desc = descriptors_of(a_ptr, b_ptr, M, problem, tile)
    row_tiles, tiles_n = tl.cdiv(rows, tile.BLOCK_M), tl.cdiv(N, tile.BLOCK_N)
    units = row_tiles * tiles_n
    for number in tl.range(tl.program_id(0), units, tl.num_programs(0), num_stages=1):
        tile_m, tile_n = tile_order(number, row_tiles, tiles_n, tile.GROUP_M)
        row, col = tile_m * tile.BLOCK_M, tile_n * tile.BLOCK_N
        acc = partial_tile(
            a_ptr, b_ptr, a_desc, b_desc, first + row, first + rows - 1, col, 0, problem, tile, ARCH
        )
        there, cols = row + tl.arange(0, tile.BLOCK_M), col + tl.arange(0, tile.BLOCK_N)
        store_rows(acc, target, there, cols, there < rows, N, WIRE, ARCH)


@triton.jit(do_not_specialize=["M", "rank", "chunk_rows"])
def add(
    c_ptr, control, payload, payload_bases, generation_bytes, M, rank, chunk_rows,
    problem: tl.constexpr, tile: tl.constexpr, exchange: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """C [M / WORLD, N] = the sum of all slots of this rank, ADD_ROWS of a tile at a time, each once
    the peers' chunks of these rows are there. chunk_rows: a multiple of BLOCK_M."""
    WORLD: tl.constexpr = problem.WORLD
    DTYPE: tl.constexpr = c_ptr.dtype.element_ty
    WIRE: tl.constexpr = tl.float32 if exchange.WIRE_FP32 else DTYPE
    epoch = begin(control)
    inbox = payload + generation_of(epoch) * generation_bytes
    owner_rows, c = M // WORLD, tl.cast(c_ptr, tl.int64)
    slices, tiles_n = tl.cdiv(owner_rows, exchange.ADD_ROWS), tl.cdiv(problem.N, tile.BLOCK_N)
    sources = tl.arange(0, exchange.WORLD_P)
    peers = ((sources < WORLD) & (sources != rank))[:, None]
    begun, step = work_range(tl.program_id(0), ARCH)
    for piece in tl.range(begun, slices * tiles_n, step, num_stages=1):
        row = piece // tiles_n * exchange.ADD_ROWS
        rows = row + tl.arange(0, exchange.ADD_ROWS)
        cols = piece % tiles_n * tile.BLOCK_N + tl.arange(0, tile.BLOCK_N)
        there = rows < owner_rows
        wait_all(flag(control, sources, row // chunk_rows)[:, None], epoch, peers)
        total = add_slots(
            inbox, payload_bases, rows, cols, there, owner_rows, rank, WIRE,
            problem, tile, exchange,
        )  # fmt: skip
        store_rows(total, c, rows, cols, there, problem.N, DTYPE, ARCH)
    finish(control, epoch)


def kernels(
    shape: GemmReduceScatter, config: Config, arch: str
) -> tuple[KernelSource, KernelSource]:
    """The kernels of a chunk's rows and of the sum."""
    return (
        source(SPACE, shape, config, arch, "multiply", together=False),
        source(SPACE, shape, config, arch, "add", together=False),
    )


def push_ce(
    shape: GemmReduceScatter, config: Config, workspace: Workspace
) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]:
    """A call (a, b, c) of a complete config; its outbox is allocated here."""
    world, rank, rows = shape.world, workspace.rank, shape.shard_rows
    size, step = slot_bytes(shape, config, world), chunk_rows(shape, config)
    chunks = [(low, min(low + step, rows)) for low in range(0, rows, step)]
    row_bytes = size // rows
    exchange = Exchange(
        workspace,
        (0, workspace.generation_bytes),
        [
            Piece(low * row_bytes, rank * size + low * row_bytes, (high - low) * row_bytes)
            for low, high in chunks
        ],
        config["copy_streams"],
    )
    outbox_at = floats(workspace, "outbox", (world - 1) * size).data_ptr()
    own_slot = workspace.payload + rank * size
    multiplying, adding = kernels(shape, config, workspace.arch)
    values = workspace_values(workspace) | dict(M=shape.m, chunk_rows=step)
    values["generation_bytes"] = apart = workspace.generation_bytes
    tiles = -(-rows // config["block_m"]) * -(-shape.n // config["block_n"])
    grid = (min(workspace.units, tiles), 1, 1)
    run = caller(shape, config, multiplying, grid, values, ("target", "first", "rows"))
    add_up = _adding(shape, config, workspace, adding, values)

    def call(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        parity = exchange.begin()
        for turn in range(world - 1):
            slot, first = outbox_at + turn * size, (rank + 1 + turn) % world * rows
            for number, (low, high) in enumerate(chunks):
                run(a, b, slot + low * row_bytes, first + low, high - low)
                exchange.send_one(parity, number, world - 1 - turn, slot)
        run(a, b, own_slot + parity * apart, rank * rows, rows)
        exchange.join()
        add_up(c)

    return call


def _adding(
    shape: GemmReduceScatter,
    config: Config,
    workspace: Workspace,
    kernel: KernelSource,
    values: dict[str, Any],
) -> Callable[[torch.Tensor], None]:
    each = add_rows(shape, config, workspace.arch)
    slices = -(-owner_rows(shape, shape.world) // each) * -(-shape.n // config["block_n"])
    programs = min(ADDING * workspace.units, slices)
    return launched(kernel, programs, ("c_ptr",), values, workspace)
