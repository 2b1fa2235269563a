"""flash_decode on the host: check the operands, pick the variant, launch. A plan is made once for
each shape and config."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.rounding import power_of_two_from
from tftune.kernels.core.space import Config
from tftune.kernels.device.constants import Attention, Cache, Peers
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode.rules import TILE, parts_bytes, pieces, pieces_per_flag, units
from tftune.kernels.flash_decode.space import SPACE
from tftune.kernels.runtime.compile import KernelSource, source_of
from tftune.kernels.runtime.operands import check_device, check_operand, word_of
from tftune.kernels.runtime.plan import (
    WORKSPACE_TYPES,
    Plan,
    Steps,
    checked,
    counters,
    floats,
    prepared,
    workspace_values,
)

if TYPE_CHECKING:
    import torch


_TYPES = {
    "q_ptr": "*{}", "k_ptr": "*{}", "v_ptr": "*{}",
    "lengths_ptr": "*i32", "table_ptr": "*i32", "out_ptr": "*{}",
    "parts": "i64", "messages": "i64", "received": "i64", "arrived": "i64", "arrivals": "i64",
    **WORKSPACE_TYPES, "generation_bytes": "i64", "batch": "i32", "kv_len": "i32", "rank": "i32",
}  # fmt: skip
_OPERANDS = tuple(_TYPES)[:6]
_RESIDENT = ("decode", "decode_ll")
"""Kernels whose programs wait for each other, so that all must be resident at once."""
PADDED_GROUP = 16
"""Rows of the smallest product on tensor cores: a group of query heads is padded to it."""
_OPEN = ("batch", "kv_len", "rank")
"""Integers of any value; all other arguments are multiples of 16: addresses, and the size of a
generation."""


def result_size(shape: FlashDecode) -> tuple[int, int, int]:
    """The size of what attention gives on one rank."""
    return shape.batch, shape.own_heads, shape.head_dim


def placed_well(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    lengths: torch.Tensor,
    table: torch.Tensor | None,
    workspace: Workspace,
) -> bool:
    """Whether operands of sizes and integers that ran before can be launched as they are; where
    not, `shape_of` says what is wrong."""
    placed = (
        q.is_contiguous()
        and k.is_contiguous()
        and v.is_contiguous()
        and lengths.is_contiguous()
        and (q.data_ptr() | k.data_ptr() | v.data_ptr() | lengths.data_ptr()) & 15 == 0
        and k.dtype is q.dtype is v.dtype
        and q.get_device()
        == k.get_device()
        == v.get_device()
        == lengths.get_device()
        == workspace.ordinal
    )
    if table is None or not placed:
        return placed
    return (
        table.is_contiguous()
        and table.data_ptr() & 15 == 0
        and table.get_device() == workspace.ordinal
    )


def shape_of(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    lengths: torch.Tensor,
    table: torch.Tensor | None,
    workspace: Workspace,
    output: str,
) -> FlashDecode:
    """The shape of one call; raises ValueError naming the operand and both sizes where they do not
    fit each other."""
    import torch

    dtype = word_of("flash_decode", "q", q)
    if q.dim() != 3 or k.dim() != 4:
        raise ValueError(f"q and k must have 3 and 4 dimensions, not {q.dim()} and {k.dim()}")
    if table is not None and table.dim() != 2:
        raise ValueError(f"table must have 2 dimensions, not {table.dim()}")
    check_device("q", q, workspace)
    batch, q_heads, head_dim = q.shape
    page_size = 0 if table is None else k.shape[1]
    kv_len = k.shape[1] if table is None else table.shape[1] * page_size
    shape = FlashDecode(
        batch, q_heads, k.shape[2], head_dim, kv_len, workspace.world, dtype, output, page_size
    )
    cache = (batch if table is None else k.shape[0], k.shape[1], shape.kv_heads, head_dim)
    check_operand("q", q, (batch, q_heads, head_dim), q.dtype, q.device)
    check_operand("k", k, cache, q.dtype, q.device)
    check_operand("v", v, cache, q.dtype, q.device)
    check_operand("lengths", lengths, (batch,), torch.int32, q.device)
    if table is not None:
        check_operand("table", table, (batch, kv_len // page_size), torch.int32, q.device)
    return shape


def prepare(
    shape: FlashDecode, config: Config, workspace: Workspace, *, waits: str = "tile"
) -> Plan:
    """A call (q, k, v, lengths, table, out) for this shape and config: compiled, with buffers
    allocated; not collective, and launches nothing. `table` is any int32 tensor where the cache is
    contiguous. `waits`: a word of `device.waits`, of a fused kernel.

    Raises ValueError as `plan.checked` does.
    """
    config = checked(SPACE, shape, config, workspace, payload_bytes(shape))
    kernels = _kernels(shape, config, workspace.arch, waits)
    return prepare_kernels(shape, config, workspace, kernels, config.variant == "bsp")


def prepare_kernels(
    shape: FlashDecode,
    config: Config,
    workspace: Workspace,
    kernels: tuple[KernelSource, ...],
    library: bool,
) -> Plan:
    """A call of these kernels in turn; `library`: with its collective before the last one. The
    config is complete and possible."""
    scratch = _scratch(shape, config, workspace)
    sizes = dict(
        generation_bytes=workspace.generation_bytes, batch=shape.batch, kv_len=shape.kv_len
    )
    addresses = {name: tensor.data_ptr() for name, tensor in scratch.items()}
    values = addresses | workspace_values(workspace) | sizes
    steps = [
        _step(kernel, _programs(kernel, shape, config, workspace.units), values, workspace)
        for kernel in kernels
    ]
    if library and shape.world > 1:
        from tftune.kernels.flash_decode.variants.bsp import collective

        received = scratch["received"]
        move = collective(shape.output, scratch["messages"], received, workspace.group)
        steps.insert(-1, lambda *operands: move())
    return Steps(tuple(steps))


def payload_bytes(shape: FlashDecode) -> int:
    """Bytes of one generation that this shape needs: a message of every rank."""
    return shape.world * shape.message_bytes


def kernel_sources(shape: FlashDecode, config: Config, chip: Chip) -> tuple[KernelSource, ...]:
    """What must be compiled ahead for this config on this chip: the kernels of a call in their
    order."""
    return _kernels(shape, SPACE.complete(config), chip.can.backend)


def _kernels(
    shape: FlashDecode, config: Config, arch: str, waits: str = "tile"
) -> tuple[KernelSource, ...]:
    """The kernels of a config with everything that decides their code. `arch`: `cuda`, `hip` or
    `interpreter`; `waits`: a word of `device.waits`. Batch, lengths and rank are left open, so
    that one binary serves them all."""
    module = import_module(f"tftune.kernels.flash_decode.variants.{config.variant}")
    return tuple(
        _source(launch.kernel, shape, config, launch.constants, arch, waits)
        for launch in getattr(module, config.variant)(config["kv_splits"])
    )


def _source(
    kernel: Any,
    shape: FlashDecode,
    config: Config,
    constants: Mapping[str, Any],
    arch: str,
    waits: str = "tile",
) -> KernelSource:
    attends = "cache" in kernel.arg_names
    options = {
        "num_warps": config["num_warps"] if attends else 4,
        "num_stages": config["num_stages"] if attends else 1,
    }
    if kernel.fn.__name__ in _RESIDENT:
        options["launch_cooperative_grid"] = True
    if arch == "hip":
        options["matrix_instr_nonkdim"] = 16
    all_constants = _constants(shape, config, arch, waits) | dict(constants)
    return source_of(kernel, shape.dtype, _TYPES, all_constants, _OPEN, options)


def _constants(shape: FlashDecode, config: Config, arch: str, waits: str) -> dict[str, Any]:
    heads = config["heads_per_program"]
    attention = Attention(
        KV_HEADS=shape.kv_heads, GROUP=shape.group, D=shape.head_dim, OWN=shape.own_heads
    )
    cache = Cache(
        PAGE=shape.page_size,
        SPLITS=config["kv_splits"],
        BLOCK_N=config["block_n"],
        PADDED_GROUP=PADDED_GROUP,
        XCDS=config["xcds"],
    )
    peers = Peers(
        HEADS=heads,
        SLICES=-(-shape.group // heads),
        OWN_SLICES=-(-shape.own_heads // heads),
        TILE=TILE,
        PIECES_PER_FLAG=pieces_per_flag(config),
        WORLD=shape.world,
        WORLD_P=power_of_two_from(shape.world),
        ARCH=arch,
        WAITS=waits,
    )
    groups = {"shape": attention, "cache": cache, "peers": peers}
    single = {"SPLITS": config["kv_splits"], "THREADS": 32 * config["num_warps"], "ARCH": arch}
    return groups | single


def _programs(kernel: KernelSource, shape: FlashDecode, config: Config, chip_units: int) -> int:
    """Programs of a launch: one for each unit of work where they attend alone; else at most as many
    as are resident at once."""
    name = kernel.kernel.fn.__name__
    if name == "attend_units":
        return units(shape, config)
    rows = shape.batch * -(-shape.own_heads // config["heads_per_program"])
    if name == "merge":
        return min(chip_units, rows)
    if name in _RESIDENT:
        most = chip_units * int(config["programs_per_unit"])
        return min(most, max(units(shape, config), pieces(shape, config) + rows))
    return min(chip_units, pieces(shape, config))


def _scratch(shape: FlashDecode, config: Config, workspace: Workspace) -> dict[str, torch.Tensor]:
    """Memory of this rank, given to kernels by address: partial results, messages, those received
    by a library, counters."""
    bsp, owners = config.variant == "bsp", 1 if shape.output == "all" else shape.world
    # Words say by their epochs whether they have come: nothing else may be written where they are.
    words = config.variant == "persistent_ll"
    parts = "words" if words else "parts"
    messages = floats(workspace, "messages", owners * shape.message_bytes)
    alone = shape.world == 1  # what a rank sends is all that it receives, and no library is asked
    size = shape.world * shape.message_bytes if bsp else 16
    return dict(
        parts=floats(workspace, parts, parts_bytes(shape, config), zeros=words),
        messages=messages,
        received=messages if alone else floats(workspace, "received", size),
        arrived=counters(workspace, "arrived", shape.batch * shape.kv_heads),
        arrivals=counters(workspace, "arrivals", pieces(shape, config)),
    )


def _step(
    kernel: KernelSource, programs: int, values: Mapping[str, Any], workspace: Workspace
) -> Plan:
    """A launch as a call of the operands, of which the kernel takes those that it names, before all
    other arguments."""
    taken = [number for number, name in enumerate(_OPERANDS) if name in kernel.types]
    names = [_OPERANDS[number] for number in taken]
    launch, tail = prepared(kernel, programs, names, values, workspace)
    return lambda *operands: launch(*[operands[number] for number in taken], *tail)
