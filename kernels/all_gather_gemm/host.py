"""all_gather_gemm on the host: check the operands, pick the variant, launch. A plan is made once
for each shape and config."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.rules import (
    band,
    column_chunks,
    copied_at_once,
    moving_programs,
    parts,
    parts_bytes,
    reads_in_place,
    spans_sources,
    tiles,
)
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.dtypes import torch_dtype
from tftune.kernels.core.space import Config
from tftune.kernels.device.constants import Chunks, Problem, Tile
from tftune.kernels.runtime.compile import KernelSource
from tftune.kernels.runtime.operands import (
    both_placed_well,
    check_device,
    check_operand,
    place_of,
    read_in_place,
    word_of,
)
from tftune.kernels.runtime.plan import (
    WORKSPACE_TYPES,
    Grid,
    Plan,
    addresses,
    arguments_after,
    checked,
    counters,
    descriptors,
    floats,
    interpreted,
    workspace_values,
)

if TYPE_CHECKING:
    import torch

_TYPES = {
    "a_ptr": "*{}", "b_ptr": "*{}", "c_ptr": "*{}", "parts_ptr": "*fp32", "arrivals_ptr": "*i32",
    **WORKSPACE_TYPES, "generation_rows": "i32", "M": "i32", "rank": "i32",
}  # fmt: skip
_DIVISIBLE = (
    "a_ptr",
    "b_ptr",
    "c_ptr",
    "parts_ptr",
    "arrivals_ptr",
    "control",
    "control_bases",
    "payload_bases",
)
"""Arguments that are multiples of 16: addresses of aligned tensors and blocks."""
_DESCRIPTORS = ("a_desc", "payload_desc", "b_desc")
_OPERANDS = ("a_ptr", "b_ptr", "c_ptr")
ALL_ROWS = 1 << 20
"""For rows of a flag that covers a whole shard: more than any has."""


def result_size(shape: AllGatherGemm) -> tuple[int, int]:
    """The size of C."""
    return shape.m, shape.n


placed_well = both_placed_well


def shape_of(
    a: torch.Tensor, b: torch.Tensor, workspace: Workspace, shard: str, b_layout: str
) -> AllGatherGemm:
    """The shape of one call; raises ValueError naming the operand and both sizes where A and B do
    not fit each other."""
    dtype = word_of("all_gather_gemm", "a", a)
    if a.dim() != 2 or b.dim() != 2:
        raise ValueError(f"a and b must have 2 dimensions, not {a.dim()} and {b.dim()}")
    check_device("a", a, workspace)
    rows, columns = a.shape
    n, k = b.shape if b_layout == "nk" else reversed(b.shape)
    gathered = columns * workspace.world if shard == "k" else columns
    if gathered != k:
        raise ValueError(
            f"the gathered a has {gathered} columns but b has {k} rows "
            f"(shard={shard!r}, b_layout={b_layout!r})"
        )
    shape = AllGatherGemm(
        rows if shard == "k" else rows * workspace.world,
        n,
        k,
        workspace.world,
        dtype,
        shard,
        b_layout,
        place_of(a, workspace),
    )
    for name, operand in (("a", a), ("b", b)):
        check_operand(name, operand, tuple(operand.shape), a.dtype, a.device, because="a is")
    return shape


def prepare(
    shape: AllGatherGemm, config: Config, workspace: Workspace, *, waits: str = "tile"
) -> Plan:
    """A call (a, b, c) for this shape and config: compiled, with buffers allocated; not collective,
    and launches nothing. `waits`: a word of `device.waits`, of a fused kernel.

    Raises ValueError as `plan.checked` does.
    """
    config = checked(SPACE, shape, config, workspace, payload_bytes(shape))
    if config.variant == "bsp" and shape.world == 1:
        return _alone(shape)
    if config.variant == "bsp":
        from tftune.kernels.all_gather_gemm.variants.bsp import bsp

        return bsp(shape, workspace, torch_dtype(shape.dtype), config["form"])
    if config.variant == "bsp_chunked":
        from tftune.kernels.all_gather_gemm.variants.bsp_chunked import bsp_chunked

        return bsp_chunked(shape, workspace, torch_dtype(shape.dtype), config)
    plan = _fused(shape, config, workspace, waits)
    if reads_in_place(shape, config):
        return read_in_place(plan, workspace.operands)
    return _beside_copies(shape, config, workspace, plan) if config.variant == "push_ce" else plan


def _alone(shape: AllGatherGemm) -> Plan:
    """BSP of one rank: its shard is all of A, so that the library's GEMM is the whole call."""
    import torch

    def call(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        torch.matmul(a, b.t() if shape.b_layout == "nk" else b, out=c)

    return call


def payload_bytes(shape: AllGatherGemm) -> int:
    """Bytes of one generation that this shape needs: the gathered A."""
    return shape.gathered_bytes


def operand_bytes(shape: AllGatherGemm) -> int:
    """Bytes of the operand that may lie on the heap: a shard of A."""
    return shape.shard_bytes


def source(shape: AllGatherGemm, config: Config, arch: str, waits: str = "tile") -> KernelSource:
    """The kernel of a fused config with everything that decides its code. `arch`: `cuda`, `hip` or
    `interpreter`; `waits`: a word of `device.waits`. M and rank are left open, so that one binary
    serves every M and every rank."""
    config = SPACE.complete(config)
    kernel = getattr(
        import_module(f"tftune.kernels.all_gather_gemm.variants.{config.variant}"), config.variant
    )
    constants = _constants(shape, config, arch, waits)
    types = {name: text.format(shape.dtype) for name, text in _TYPES.items()}
    if constants["tile"].LOADS == "descriptor":
        types |= {
            name: f"tensordesc<{shape.dtype}{block}>"
            for name, block in zip(_DESCRIPTORS, _blocks(shape, config), strict=True)
        }
    else:
        constants |= dict.fromkeys(_DESCRIPTORS)
    options = {
        "num_warps": config["num_warps"],
        "num_stages": config["num_stages"],
        "launch_cooperative_grid": True,
    }
    if arch == "hip":
        options |= {"matrix_instr_nonkdim": 16, "waves_per_eu": config["waves_per_eu"]}
    return KernelSource(kernel, types, constants, _DIVISIBLE, options)


def _blocks(shape: AllGatherGemm, config: Config) -> tuple[list[int], ...]:
    """What one load of each descriptor takes: of a, of the payload, of b."""
    a, b = [config["block_m"], config["block_k"]], [config["block_k"], config["block_n"]]
    return a, a, b[::-1] if shape.b_layout == "nk" else b


def kernel_sources(shape: AllGatherGemm, config: Config, chip: Chip) -> tuple[KernelSource, ...]:
    """What must be compiled ahead for this config on this chip; nothing where it is all library
    calls and copies."""
    if config.variant in ("bsp", "bsp_chunked"):
        return ()
    return (source(shape, config, chip.can.backend),)


def _constants(shape: AllGatherGemm, config: Config, arch: str, waits: str) -> dict[str, Any]:
    knobs, in_place = dict(config.knobs), reads_in_place(shape, config)
    copy_rows, copy_columns = copied_at_once(shape, config, 64 if arch == "hip" else 32)
    problem = Problem(
        N=shape.n,
        K=shape.k,
        WORLD=shape.world,
        SHARD_IS_M=shape.shard == "m",
        B_IS_NK=shape.b_layout == "nk",
        COLUMNS=shape.shard_columns,
    )
    tile = Tile(
        BLOCK_M=config["block_m"],
        BLOCK_N=config["block_n"],
        BLOCK_K=config["block_k"],
        GROUP_M=config["group_m"],
        SPLIT_K=config["split_k"],
        EVEN_K=shape.shard_columns % config["block_k"] == 0,
        EVEN_N=shape.n % config["block_n"] == 0,
        LOADS=str(knobs.get("loads", "pointer")),
        SCHEDULE=config["schedule"],
        XCDS=config["xcds"],
    )
    chunks = Chunks(
        COMM_PROGRAMS=moving_programs(shape, config),
        ROWS_PER_FLAG=ALL_ROWS
        if in_place and config.variant == "pull"
        else config["rows_per_flag"],
        K_PER_FLAG=config["k_per_flag"],
        K_CHUNKS=column_chunks(shape, config),
        BAND=band(config),
        ORDER=str(knobs["order"]) if "order" in knobs else None,
        COPY_ROWS=copy_rows,
        COPY_COLUMNS=copy_columns,
        LOCAL_VIA_INBOX="loads" in knobs and spans_sources(shape, config),
        IN_PLACE=in_place,
        WAITS=waits,
    )
    return {"problem": problem, "tile": tile, "chunks": chunks, "ARCH": arch}


def programs(shape: AllGatherGemm, config: Config, units: int) -> int:
    """Programs of a launch: the communicating ones first, then one for each part of a tile while
    units are left; all resident at once."""
    moving = moving_programs(shape, config)
    return moving + min(parts(shape, config), max(1, units - moving))


def _fused(shape: AllGatherGemm, config: Config, workspace: Workspace, waits: str) -> Plan:
    kernel = source(shape, config, workspace.arch, waits)
    grid = (programs(shape, config, workspace.units), 1, 1)
    split = config["split_k"] > 1
    counted = f"arrivals of {config['split_k']}"  # multiples of it between calls
    payload, generation_rows = placed(shape, workspace)
    fixed = workspace_values(workspace) | dict(
        parts_ptr=floats(workspace, "parts", parts_bytes(shape, config) if split else 16),
        arrivals_ptr=counters(workspace, counted, tiles(shape, config) if split else 4),
        payload=payload, generation_rows=generation_rows, M=shape.m,
    )  # fmt: skip
    if workspace.arch == "interpreter":
        return interpreted(kernel, grid, _OPERANDS, fixed | dict.fromkeys(_DESCRIPTORS))
    return _launcher(shape, config, kernel, grid, fixed)


def _launcher(
    shape: AllGatherGemm, config: Config, kernel: KernelSource, grid: Grid, fixed: dict[str, Any]
) -> Plan:
    """The compiled kernel as a call, with little to do on the host: whatever does not change is an
    address or a descriptor already."""
    launch, types = kernel.compile()[grid], kernel.types
    tail = arguments_after(kernel, (*_OPERANDS, *_DESCRIPTORS), addresses(fixed))
    if "a_desc" not in types:

        def call(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
            launch(a.data_ptr(), b.data_ptr(), c.data_ptr(), None, None, None, *tail)

        return call
    rows = fixed["generation_rows"] + shape.m, shape.k
    columns = (shape.n, shape.k) if shape.b_layout == "nk" else (shape.k, shape.n)
    a_block, _, b_block = _blocks(shape, config)
    dtype = torch_dtype(shape.dtype)
    a_desc = descriptors(dtype, (shape.shard_rows, shape.shard_columns), a_block)
    b_desc = descriptors(dtype, columns, b_block)
    payload_desc = descriptors(dtype, rows, a_block)(fixed["payload"])

    def call_by_descriptor(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        a_at, b_at = a.data_ptr(), b.data_ptr()
        launch(a_at, b_at, c.data_ptr(), a_desc(a_at), payload_desc, b_desc(b_at), *tail)

    return call_by_descriptor


def _beside_copies(
    shape: AllGatherGemm, config: Config, workspace: Workspace, kernel: Plan
) -> Plan:
    """The kernel, with the copies that its peers wait for in side streams. They are queued first:
    where streams share a hardware queue, as with `CUDA_DEVICE_MAX_CONNECTIONS=1`, a kernel that
    fills the GPU while it waits never stands before the copies that end its peers' waiting.
    Captured, either order takes as long (2x H200, 2026-11-26)."""
    from tftune.kernels.all_gather_gemm.variants.push_ce import exchange

    payload, generation_rows = placed(shape, workspace)
    inbox = payload - workspace.payload, generation_rows * shape.k * shape.element_bytes
    copies = exchange(shape, workspace, inbox, config["rows_per_flag"], config["copy_streams"])

    def call(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        copies.send(copies.begin(), a.data_ptr())
        kernel(a, b, c)
        copies.join()

    return call


def placed(shape: AllGatherGemm, workspace: Workspace) -> tuple[int, int]:
    """Where in the payload, and in how many rows of A from one generation to the next, so that both
    generations are rows of one tensor.

    The second generation starts where it does for every shape; the first ends before it, whatever
    the length of a row.
    """
    row_bytes = shape.k * shape.element_bytes
    rows, rest = divmod(workspace.generation_bytes, row_bytes)
    return workspace.payload + rest, rows
