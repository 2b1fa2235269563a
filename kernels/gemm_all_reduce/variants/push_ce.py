"""push_ce: the vendor's GEMM in chunks of rows; copy engines store a chunk's products into their
owner's inbox while the next chunk is computed, and take sums to every rank likewise.

Who owns a tile: a run of rows belongs to a rank, an equal number to each but for the last. The rows
of the others are computed first, the next rank's before all; then this rank's own, each chunk of
which is added up at once. Who writes remotely: the copy engine, from this rank's outbox into
its slot of an owner's inbox; then from this rank's rows of C to the same rows of everybody's sums,
behind the slots. With last=stores the kernel that adds the last chunk stores its sums there, no
sooner than it has heard from every peer in this call: they have read that memory's last contents.
Which flag says ready: flag[source][chunk] for products, flag[source][CHUNKS + chunk] for sums, in
the memory of who reads them: copies of the word that holds the epoch, each queued behind its data
in the same stream. What a program stored, flag[source][2 * CHUNKS + program], which it sets.

The main stream joins the copies of products before it waits for those of peers, and the copies of
sums before it waits for sums. So nothing on a GPU waits for what is queued behind it there.
That a call's copies meet no reader of the same generation, says kernels/comm/copy_engine.py: it
holds of each phase, since every rank hears from every peer in the second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import triton
import triton.language as tl

from tftune.kernels.comm.copy_engine import Exchange, Piece
from tftune.kernels.comm.symmetric import (
    begin,
    finish,
    flag,
    generation_of,
    peer,
    signal_peers,
    wait,
    wait_all,
    work_range,
)
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.dtypes import torch_dtype
from tftune.kernels.core.rounding import power_of_two_from
from tftune.kernels.core.space import Config
from tftune.kernels.device.reduce import add_peers, elements, sum_with_peers
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_all_reduce.space import chunk_rows, rows_of, slots_of
from tftune.kernels.runtime.compile import KernelSource
from tftune.kernels.runtime.gemm_reduce import ADDING, BLOCK, WARPS
from tftune.kernels.runtime.plan import WORKSPACE_TYPES, floats, launched, workspace_values

if TYPE_CHECKING:
    import torch

SHARED_BLOCK, SHARING_WARPS, SHARING = 8192, 16, 128
"""Elements that one program of `share` handles at a time, its warps, and its programs at most."""


@triton.jit(do_not_specialize=["eights", "slot", "rank"])
def add(
    c_ptr, place, eights, slot, control, payload, generation_bytes, slot_bytes, rank,
    WORLD: tl.constexpr, WORLD_P: tl.constexpr, BLOCK: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """So many eights of elements of this rank's product at c_ptr become the sum, in the order of
    ranks, with what peers put `place` bytes behind the beginning of their slots."""
    epoch, count = begin(control), 8 * eights  # a multiple of 8, so that 16 bytes are one access
    inbox = payload + generation_of(epoch) * generation_bytes + place
    sources, blocks = tl.arange(0, WORLD_P), tl.cdiv(count, BLOCK)
    peers = ((sources < WORLD) & (sources != rank))[:, None]
    first, step = work_range(tl.program_id(0), ARCH)
    if first < blocks:
        wait_all(flag(control, sources, slot)[:, None], epoch, peers)
    for block in tl.range(first, blocks, step, num_stages=1):
        at = block * BLOCK + tl.arange(0, BLOCK)
        there = at < count
        add_peers(c_ptr, at, there, inbox, slot_bytes, rank, WORLD, ARCH)


@triton.jit
def take(c_ptr, arrived, low, high, block, N: tl.constexpr, BLOCK: tl.constexpr):
    """C takes a block of its rows from `low` to `high` from what has arrived."""
    within = block * BLOCK + tl.arange(0, BLOCK)
    places, there = tl.cast(low, tl.int64) * N + within, within < (high - low) * N
    tl.store(c_ptr + places, tl.load(arrived + places, mask=there), mask=there)


@triton.jit(do_not_specialize=["rows", "chunk_rows", "M", "rank"])
def collect(
    c_ptr, control, payload, generation_bytes, sums, rows, chunk_rows, M, rank,
    N: tl.constexpr, CHUNKS: tl.constexpr, WORLD: tl.constexpr, BLOCK: tl.constexpr,
    ARCH: tl.constexpr,
):  # fmt: skip
    """C [M, N] takes the rows of the others from the sums, which lie `sums` bytes behind the
    beginning of the inbox, chunk after chunk of all of them. rows: of one owner."""
    epoch = begin(control)
    arrived = elements(payload + generation_of(epoch) * generation_bytes + sums, c_ptr)
    blocks = tl.cdiv(chunk_rows * N, BLOCK)
    first, step = work_range(tl.program_id(0), ARCH)
    for item in tl.range(first, CHUNKS * (WORLD - 1) * blocks, step, num_stages=1):
        chunk, turn = item // blocks // (WORLD - 1), item // blocks % (WORLD - 1)
        source = (rank + 1 + turn) % WORLD
        low = source * rows + chunk * chunk_rows
        high = tl.minimum(tl.minimum(low + chunk_rows, source * rows + rows), M)
        wait(flag(control, source, CHUNKS + chunk), epoch)
        take(c_ptr, arrived, low, high, item % blocks, N, BLOCK)
    finish(control, epoch)


@triton.jit(do_not_specialize=["rows", "chunk_rows", "M", "rank"])
def share(
    c_ptr, control, payload, control_bases, payload_bases, generation_bytes, slot_bytes, sums, rows,
    chunk_rows, M, rank,
    N: tl.constexpr, CHUNKS: tl.constexpr, WORLD: tl.constexpr, WORLD_P: tl.constexpr,
    BLOCK: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """This rank's last chunk of C [M, N] becomes the sum, which goes to the same rows of every
    peer's sums; then C takes the rows of the others. All programs are resident at once, as many on
    each rank: each tells its namesakes what it has stored, and takes the same blocks of theirs."""
    epoch = begin(control)
    inbox = payload + generation_of(epoch) * generation_bytes
    arrived, sources = elements(inbox + sums, c_ptr), tl.arange(0, WORLD_P)
    behind = (CHUNKS - 1) * chunk_rows
    low, high = rank * rows + behind, tl.minimum(rank * rows + rows, M)  # a row at least, by rule
    count, own = (high - low) * N, tl.cast(low, tl.int64) * N
    slots = inbox + tl.cast(behind, tl.int64) * N * (c_ptr.dtype.element_ty.primitive_bitwidth // 8)
    number, step = tl.program_id(0), tl.num_programs(0)
    peers = ((sources < WORLD) & (sources != rank))[:, None]
    wait_all(flag(control, sources, CHUNKS - 1)[:, None], epoch, peers)
    for block in tl.range(number, tl.cdiv(count, BLOCK), step, num_stages=1):
        within = block * BLOCK + tl.arange(0, BLOCK)
        y = sum_with_peers(
            c_ptr + own, within, within < count, slots, slot_bytes, rank, WORLD, ARCH
        )
        tl.store(c_ptr + own + within, y, mask=within < count)
        for other in tl.static_range(1, WORLD):
            there = peer(inbox + sums, payload_bases, rank, (rank + other) % WORLD)
            tl.store(elements(there, c_ptr) + own + within, y, mask=within < count)
    signal_peers(control, control_bases, 2 * CHUNKS + number, epoch, rank, WORLD, ARCH)
    blocks = tl.cdiv(chunk_rows * N, BLOCK)
    for item in tl.range(number, (CHUNKS - 1) * (WORLD - 1) * blocks, step, num_stages=1):
        chunk, turn = item // blocks // (WORLD - 1), item // blocks % (WORLD - 1)
        source = (rank + 1 + turn) % WORLD
        low = source * rows + chunk * chunk_rows
        wait(flag(control, source, CHUNKS + chunk), epoch)
        take(c_ptr, arrived, low, low + chunk_rows, item % blocks, N, BLOCK)
    for turn in tl.range(1, WORLD, num_stages=1):
        source = (rank + turn) % WORLD
        low, high = source * rows + behind, tl.minimum(source * rows + rows, M)
        wait(flag(control, source, 2 * CHUNKS + number), epoch)
        for block in tl.range(number, blocks, step, num_stages=1):
            take(c_ptr, arrived, low, high, block, N, BLOCK)
    finish(control, epoch)


def kernels(shape: GemmAllReduce, config: Config, arch: str) -> tuple[KernelSource, KernelSource]:
    """The kernels of a chunk's sum, and of what comes at the end."""
    world = {"WORLD": shape.world, "BLOCK": BLOCK, "ARCH": arch}
    common = {name: WORKSPACE_TYPES[name] for name in ("control", "payload")}
    common["generation_bytes"] = "i64"
    adds = {"c_ptr": f"*{shape.dtype}", "place": "i64", "eights": "i32", "slot": "i32", **common}
    adds |= {"slot_bytes": "i64", "rank": "i32"}
    takes = {"c_ptr": f"*{shape.dtype}", **common, "sums": "i64"}
    takes |= dict.fromkeys(("rows", "chunk_rows", "M", "rank"), "i32")
    ranks, cut = {"WORLD_P": power_of_two_from(shape.world)}, {"N": shape.n}
    cut["CHUNKS"] = config["chunks"]
    adding = _source(add, adds, {**world, **ranks})
    if config["last"] == "copies":
        return adding, _source(collect, takes, {**world, **cut})
    bases = {name: WORKSPACE_TYPES[name] for name in ("control_bases", "payload_bases")}
    takes |= {**bases, "slot_bytes": "i64"}
    options = {"num_warps": SHARING_WARPS, "launch_cooperative_grid": True}
    constants = {**world, **ranks, **cut, "BLOCK": SHARED_BLOCK}
    return adding, _source(share, takes, constants, options)


def _source(
    kernel: Any,
    types: dict[str, str],
    constants: dict[str, Any],
    options: dict[str, Any] | None = None,
) -> KernelSource:
    divisible = tuple(name for name, kind in types.items() if kind != "i32")
    return KernelSource(kernel, types, constants, divisible, options or {"num_warps": WARPS})


def push_ce(
    shape: GemmAllReduce, config: Config, workspace: Workspace
) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]:
    """A call (a, b, c) of a complete config; its outbox is allocated here."""
    import torch

    world, rank = shape.world, workspace.rank
    rows, step, size = rows_of(shape), chunk_rows(shape, config), slots_of(shape) // shape.world
    row_bytes, own = shape.n * shape.element_bytes, rank * rows
    products = [(low, min(low + step, rows)) for low in range(0, rows, step)]
    sums = [(own + low, min(own + high, shape.m)) for low, high in products]
    pieces = [
        Piece(low * row_bytes, rank * size + low * row_bytes, (high - low) * row_bytes)
        for low, high in products
    ] + [
        Piece(low * row_bytes, world * size + low * row_bytes, (high - low) * row_bytes)
        for low, high in sums
    ]
    inbox = 0, workspace.generation_bytes
    exchange = Exchange(workspace, inbox, pieces, config["copy_streams"])
    room = floats(workspace, "outbox", (world - 1) * size).view(torch_dtype(shape.dtype))
    outbox = room[: (world - 1) * rows * shape.n].view(world - 1, rows, shape.n)
    add_up, end = _launchers(shape, config, workspace)
    stores = config["last"] == "stores"

    def call(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        weights = b.t() if shape.b_layout == "nk" else b
        parity = exchange.begin()
        for turn, part in enumerate(outbox):
            first = (rank + 1 + turn) % world * rows
            for number, (low, high) in enumerate(products):
                there = slice(first + low, min(first + high, shape.m))
                torch.matmul(a[there], weights, out=part[low : low + there.stop - there.start])
                exchange.send_one(parity, number, world - 1 - turn, part.data_ptr())
        for number, (low, high) in enumerate(sums):
            torch.matmul(a[low:high], weights, out=c[low:high])
            if number == 0:
                exchange.join()
            if stores and number == len(sums) - 1:
                break
            add_up(c[low:high], (low - own) * row_bytes, (high - low) * shape.n // 8, number)
            for distance in range(1, world):
                exchange.send_one(parity, len(products) + number, distance, c.data_ptr())
        exchange.join()
        end(c)

    return call


def _launchers(
    shape: GemmAllReduce, config: Config, workspace: Workspace
) -> tuple[Callable[..., None], Callable[..., None]]:
    """The two kernels as calls of their operands, tensors first."""
    step, sums = chunk_rows(shape, config), slots_of(shape)
    values = workspace_values(workspace) | {
        "generation_bytes": workspace.generation_bytes, "slot_bytes": sums // shape.world,
        "sums": sums, "rows": rows_of(shape), "chunk_rows": step, "M": shape.m,
    }  # fmt: skip
    blocks, most = -(-step * shape.n // BLOCK), ADDING * workspace.units
    adding, ending = kernels(shape, config, workspace.arch)
    grids = [min(most, blocks), min(most, config["chunks"] * (shape.world - 1) * blocks)]
    if config["last"] == "stores":
        grids[1] = min(SHARING, workspace.units, -(-step * shape.n // SHARED_BLOCK))
    operands = ("c_ptr", "place", "eights", "slot")
    return (
        launched(adding, grids[0], operands, values, workspace),
        launched(ending, grids[1], operands[:1], values, workspace),
    )
