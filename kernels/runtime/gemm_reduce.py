"""The host side that operations on a GEMM with a split inner size share: checks of a and b, the
kernel and its constants, the launch (`kernels.device.gemm_reduce` is the device side)."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.dtypes import torch_dtype
from tftune.kernels.core.partials import (
    flags,
    outbox_bytes,
    owner_rows,
    owner_tiles,
    owners,
    route,
    slots_bytes,
    spans,
    tiles,
)
from tftune.kernels.core.rounding import power_of_two_from
from tftune.kernels.core.row_parallel import RowParallel
from tftune.kernels.core.space import Config, Space
from tftune.kernels.device.constants import Partials, Problem, Tile
from tftune.kernels.runtime.compile import KernelSource
from tftune.kernels.runtime.operands import check_device, check_operand, word_of
from tftune.kernels.runtime.plan import (
    WORKSPACE_TYPES,
    Grid,
    Plan,
    addresses,
    arguments_after,
    counters,
    descriptors,
    floats,
    interpreted,
    workspace_values,
)

if TYPE_CHECKING:
    import torch

S = TypeVar("S", bound=RowParallel)
_TYPES = {
    "a_ptr": "*{}", "b_ptr": "*{}", "c_ptr": "*{}", "arrivals": "i64", "outbox": "i64",
    **WORKSPACE_TYPES, "generation_bytes": "i64", "slots_bytes": "i64", "M": "i32", "rank": "i32",
    "target": "i64", "first": "i32", "rows": "i32", "chunk_rows": "i32",
}  # fmt: skip
_OPEN = ("M", "rank", "target", "first", "rows", "chunk_rows")
"""Integers of any value; all other arguments are multiples of 16."""
_DESCRIPTORS = ("a_desc", "b_desc")
_FIXED: dict[str, Any] = {"split_k": 1, "tiles_per_flag": 1, "wire": "dtype"}
"""What a variant without these knobs does."""
BLOCK, WARPS = 4096, 8
"""Elements that one program adds up at a time, and its warps, behind a GEMM of the vendor's."""
ADDING = 4
"""Programs of each unit at most where copy engines send: they wait for peers alone, and need not
all run at once."""
LL_WORDS = 32
"""Words of all slots that a thread polls at once."""
ACCESSES = 2
"""16-byte loads of each thread in flight while slots are added."""


def shape_of(
    kind: type[S], a: torch.Tensor, b: torch.Tensor, workspace: Workspace, b_layout: str
) -> S:
    """The shape (m, n, k, world, dtype, b_layout) of one call; raises ValueError naming the operand
    and both sizes where A and B do not fit each other."""
    dtype = word_of(kind.op, "a", a)
    if a.dim() != 2 or b.dim() != 2:
        raise ValueError(f"a and b must have 2 dimensions, not {a.dim()} and {b.dim()}")
    check_device("a", a, workspace)
    m, inner = a.shape
    n, rows = b.shape if b_layout == "nk" else reversed(b.shape)
    if rows != inner:
        raise ValueError(f"a has {inner} columns but b has {rows} rows (b_layout={b_layout!r})")
    shape = kind(m, n, inner * workspace.world, workspace.world, dtype, b_layout)
    for name, operand in (("a", a), ("b", b)):
        check_operand(name, operand, tuple(operand.shape), a.dtype, a.device, because="a is")
    return shape


def source(
    space: Space,
    shape: Any,
    config: Config,
    arch: str,
    name: str = "",
    together: bool = True,
    waits: str = "tile",
) -> KernelSource:
    """A kernel of a config, by default the one of the variant's name, with everything that decides
    its code. `arch`: `cuda`, `hip` or `interpreter`; `together`: its programs wait for each other;
    `waits`: a word of `device.waits`. M and rank are left open, so that one binary serves every
    rank and many M."""
    config = space.complete(config)
    kernel = getattr(_variant(space, config), name or config.variant)
    constants = _constants(shape, config, arch, waits)
    types = {
        name: text.format(shape.dtype) for name, text in _TYPES.items() if name in kernel.arg_names
    }
    divisible = tuple(name for name in types if name not in _OPEN)
    if config["loads"] == "descriptor" and "a_desc" in kernel.arg_names:
        blocks = zip(_DESCRIPTORS, _blocks(shape, config), strict=True)
        types |= {name: f"tensordesc<{shape.dtype}{block}>" for name, block in blocks}
    else:
        constants |= dict.fromkeys(_DESCRIPTORS)
    constants = {name: value for name, value in constants.items() if name in kernel.arg_names}
    options = {
        "num_warps": config["num_warps"],
        "num_stages": config["num_stages"],
        "launch_cooperative_grid": together,
    }
    if arch == "hip":
        options["matrix_instr_nonkdim"] = 16
    return KernelSource(kernel, types, constants, divisible, options)


def _variant(space: Space, config: Config) -> Any:
    """The file of a config's variant."""
    return import_module(f"tftune.kernels.{space.op}.variants.{config.variant}")


def prepare(
    space: Space,
    fused: Collection[str],
    shape: Any,
    config: Config,
    workspace: Workspace,
    waits: str = "tile",
) -> Plan:
    """A call (a, b, c) of a complete config: that of one kernel where its variant is among `fused`,
    else what the function of the variant's name makes of it."""
    if config.variant in fused:
        return plan(space, shape, config, workspace, waits)
    made: Plan = getattr(_variant(space, config), config.variant)(shape, config, workspace)
    return made


def kernel_sources(
    space: Space, fused: Collection[str], shape: Any, config: Config, chip: Chip
) -> tuple[KernelSource, ...]:
    """What must be compiled ahead for such a call on this chip: of no single kernel those that the
    variant's file lists, none where it is all a library's calls."""
    config, arch = space.complete(config), chip.can.backend
    if config.variant in fused:
        return (source(space, shape, config, arch),)
    listed = getattr(_variant(space, config), "kernels", None)
    return tuple(listed(shape, config, arch)) if listed else ()


def _blocks(shape: Any, config: Config) -> tuple[list[int], list[int]]:
    """What one load of each descriptor takes: of a, of b."""
    b = [config["block_n"], config["block_k"]]
    return [config["block_m"], config["block_k"]], b if shape.b_layout == "nk" else b[::-1]


def _constants(shape: Any, config: Config, arch: str, waits: str) -> dict[str, Any]:
    knobs = _FIXED | dict(config.knobs)
    problem = Problem(
        N=shape.n,
        K=shape.inner,
        WORLD=shape.world,
        SHARD_IS_M=False,
        B_IS_NK=shape.b_layout == "nk",
        COLUMNS=shape.inner,
    )
    tile = Tile(
        BLOCK_M=config["block_m"],
        BLOCK_N=config["block_n"],
        BLOCK_K=config["block_k"],
        GROUP_M=config["group_m"],
        SPLIT_K=knobs["split_k"],
        EVEN_K=shape.inner % config["block_k"] == 0,
        EVEN_N=shape.n % config["block_n"] == 0,
        LOADS=config["loads"],
        SCHEDULE="static",
        XCDS=1,
    )
    exchange = Partials(
        WORLD_P=power_of_two_from(shape.world),
        SPANS=spans(shape, config, owners(shape, config.variant)),
        TILES_PER_FLAG=knobs["tiles_per_flag"],
        ADD_ROWS=add_rows(shape, config, arch),
        WIRE_FP32=knobs["wire"] == "fp32",
        COMM_PROGRAMS=comm_programs(config),
        COPY_ROWS=_copy_rows(knobs, arch),
        ROUTE=route(config.variant),
        WAITS=waits,
    )
    threads = config["num_warps"] * (64 if arch == "hip" else 32)
    groups = {"problem": problem, "tile": tile, "exchange": exchange}
    return groups | {"THREADS": threads, "ARCH": arch}


def comm_programs(config: Config) -> int:
    """Programs that forward tiles, and compute none."""
    return int(dict(config.knobs).get("comm_programs", 0))


def _copy_rows(knobs: dict[str, Any], arch: str) -> int:
    """Rows of a tile that one program forwards at a time: four 16-byte accesses of each thread in
    flight."""
    threads = knobs["num_warps"] * (64 if arch == "hip" else 32)
    elements = 4 * threads * (4 if knobs["wire"] == "fp32" else 8)
    return int(max(1, min(knobs["block_m"], elements // knobs["block_n"])))


def add_rows(shape: Any, config: Config, arch: str) -> int:
    """Rows of a tile that one program adds up at a time."""
    threads = config["num_warps"] * (64 if arch == "hip" else 32)
    if config.variant == "one_shot_ll":
        words = power_of_two_from(shape.world) * config["split_k"] * config["block_n"] // 2
        most = min(config["block_m"], power_of_two_from(shape.m))
        return int(max(1, min(most, LL_WORDS * threads // words)))
    rows = max(1, threads * 8 * ACCESSES // config["block_n"])
    ranks = owners(shape, config.variant)
    spanning = spans(shape, config, ranks)
    most = power_of_two_from(owner_rows(shape, ranks)) if spanning else config["block_m"]
    return int(min(rows, most))


def programs(shape: Any, config: Config, units: int, arch: str) -> int:
    """Programs of a launch: those that forward tiles, then one for each part of a tile, or slice of
    rows to add, while units are left; all resident at once."""
    ranks = owners(shape, config.variant)
    rows = owner_rows(shape, ranks) if spans(shape, config, ranks) else config["block_m"]
    slices = owner_tiles(shape, config, ranks) * -(-rows // add_rows(shape, config, arch))
    forwarding = comm_programs(config)
    work = max(tiles(shape, config, ranks) * config["split_k"], slices)
    return forwarding + int(min(max(1, units - forwarding), work))


def plan(
    space: Space, shape: Any, config: Config, workspace: Workspace, waits: str = "tile"
) -> Plan:
    """A call (a, b, c) of a complete config of one kernel: compiled, its counters and its outbox
    allocated. `waits`: a word of `device.waits`."""
    compiled = source(space, shape, config, workspace.arch, waits=waits)
    knobs = _FIXED | dict(config.knobs)
    grid = (programs(shape, config, workspace.units, workspace.arch), 1, 1)
    ranks = owners(shape, config.variant)
    banks = (1 if spans(shape, config, ranks) else ranks) + 1
    relayed = outbox_bytes(shape, knobs) if "outbox" in compiled.types else 16
    values = workspace_values(workspace) | dict(
        arrivals=counters(workspace, "arrivals", banks * flags(shape, knobs, ranks)).data_ptr(),
        outbox=floats(workspace, "outbox", relayed).data_ptr(),
        generation_bytes=workspace.generation_bytes,
        slots_bytes=-(-slots_bytes(shape, knobs, ranks) // 16) * 16,
        M=shape.m,
    )
    run = caller(shape, config, compiled, grid, values, ("c_ptr",))
    if workspace.arch == "interpreter":
        return run
    return lambda a, b, c: run(a, b, c.data_ptr())


def caller(
    shape: Any,
    config: Config,
    kernel: KernelSource,
    grid: Grid,
    values: dict[str, Any],
    own: tuple[str, ...],
) -> Plan:
    """A launch as a call of a, b, and then the arguments `own`, addresses and numbers, or tensors
    where it is interpreted. `values`: all others, of which the kernel may have some only."""
    operands = ("a_ptr", "b_ptr", *own)
    fixed = {name: value for name, value in values.items() if name in kernel.types}
    if kernel.constants["ARCH"] == "interpreter":
        return interpreted(kernel, grid, operands, fixed | dict.fromkeys(_DESCRIPTORS))
    launch, types = kernel.compile()[grid], kernel.types
    tail = arguments_after(kernel, (*operands, *_DESCRIPTORS), addresses(fixed))
    dtype, blocks = torch_dtype(shape.dtype), _blocks(shape, config)
    b_size = (shape.n, shape.inner) if shape.b_layout == "nk" else (shape.inner, shape.n)
    made = "a_desc" in types
    a_desc, b_desc = (
        descriptors(dtype, size, block) if made else _nothing
        for size, block in zip(((shape.m, shape.inner), b_size), blocks, strict=True)
    )

    def call(a: torch.Tensor, b: torch.Tensor, *more: Any) -> None:
        a_at, b_at = a.data_ptr(), b.data_ptr()
        launch(a_at, b_at, *more, a_desc(a_at), b_desc(b_at), *tail)

    return call


def _nothing(address: int) -> None:
    return None
