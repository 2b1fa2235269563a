"""gemm_reduce_scatter on the host: check the operands, pick the variant, launch. A plan is made once
for each shape and config."""

from __future__ import annotations

from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.dtypes import torch_dtype
from tftune.kernels.core.rounding import power_of_two_from
from tftune.kernels.core.space import Config
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter
from tftune.kernels.gemm_reduce_scatter.space import (
    SPACE,
    flags,
    is_registered,
    owner_tiles,
    parts,
    payload_bytes,
    spans,
)
from tftune.kernels.runtime.compile import KernelSource
from tftune.kernels.runtime.operands import check_device, check_operand, check_out, word_of
from tftune.kernels.runtime.plan import (
    WORKSPACE_TYPES,
    Plan,
    addresses,
    arguments_after,
    checked,
    counters,
    descriptors,
    interpreted,
    plan_of,
    workspace_values,
)

if TYPE_CHECKING:
    import torch

_TYPES = {
    "a_ptr": "*{}", "b_ptr": "*{}", "c_ptr": "*{}", "arrivals": "i64",
    **WORKSPACE_TYPES, "generation_bytes": "i64", "M": "i32", "rank": "i32",
}  # fmt: skip
_OPEN = ("M", "rank")
"""Integers of any value; all other arguments are multiples of 16."""
_OPERANDS, _DESCRIPTORS = ("a_ptr", "b_ptr", "c_ptr"), ("a_desc", "b_desc")
ACCESSES = 2
"""16-byte loads of each thread in flight while slots are added."""


def gemm_reduce_scatter(
    a: torch.Tensor,
    b: torch.Tensor,
    workspace: Workspace,
    config: Config,
    *,
    b_layout: str = "nk",
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """This rank's rows of the sum over ranks of a @ b, computed as `config` says; returns `out`, or
    a new tensor, [M/world, N].

    a: [M, K/world]; b: [N, K/world] or, with b_layout "kn", [K/world, N]; both fp16 or both bf16,
    contiguous, 16-byte aligned; M a multiple of the world. The first call of a shape and config
    compiles and allocates: make it before capturing a graph. Every rank must pass the same shape
    and config. Raises ValueError naming what does not fit.
    """
    shape = shape_of(a, b, workspace, b_layout)
    size = result_size(shape)
    c = a.new_empty(size) if out is None else check_out(out, size, a)
    plan_of(shape, config, workspace, prepare)(a, b, c)
    return c


def result_size(shape: GemmReduceScatter) -> tuple[int, int]:
    """Of C on one rank."""
    return shape.shard_rows, shape.n


def placed_well(a: torch.Tensor, b: torch.Tensor, workspace: Workspace) -> bool:
    """Whether operands of a shape that ran before can be launched as they are; where not,
    `shape_of` says what is wrong."""
    return (
        a.is_contiguous()
        and b.is_contiguous()
        and (a.data_ptr() | b.data_ptr()) & 15 == 0
        and a.dtype is b.dtype
        and a.get_device() == b.get_device() == workspace.ordinal
    )


def shape_of(
    a: torch.Tensor, b: torch.Tensor, workspace: Workspace, b_layout: str
) -> GemmReduceScatter:
    """The shape of one call; raises ValueError naming the operand and both sizes where A and B do
    not fit each other."""
    dtype = word_of("gemm_reduce_scatter", "a", a)
    if a.dim() != 2 or b.dim() != 2:
        raise ValueError(f"a and b must have 2 dimensions, not {a.dim()} and {b.dim()}")
    check_device("a", a, workspace)
    m, inner = a.shape
    n, rows = b.shape if b_layout == "nk" else reversed(b.shape)
    if rows != inner:
        raise ValueError(f"a has {inner} columns but b has {rows} rows (b_layout={b_layout!r})")
    world = workspace.world
    shape = GemmReduceScatter(m, n, inner * world, world, dtype, b_layout)
    for name, operand in (("a", a), ("b", b)):
        check_operand(name, operand, tuple(operand.shape), a.dtype, a.device, because="a is")
    return shape


def prepare(shape: GemmReduceScatter, config: Config, workspace: Workspace) -> Plan:
    """A call (a, b, c) for this shape and config: compiled, with buffers allocated; not collective,
    and launches nothing.

    Its counters live as long as it does: whoever captures it in a graph keeps it as long as the
    graph. Raises ValueError with the rule's sentence for an impossible config, and where the
    workspace is too small or has other ranks.
    """
    config = checked(SPACE, shape, config, workspace, payload_bytes(shape))
    if config.variant == "bsp":
        from tftune.kernels.gemm_reduce_scatter.variants.bsp import bsp

        known = shape.world > 1 and is_registered(config["form"])
        with workspace.registered() if known else nullcontext():
            return bsp(shape, workspace)
    return _fused(shape, config, workspace)


def kernel_sources(
    shape: GemmReduceScatter, config: Config, chip: Chip
) -> tuple[KernelSource, ...]:
    """What must be compiled ahead for this config on this chip; nothing for the library's calls."""
    return () if config.variant == "bsp" else (source(shape, config, chip.can.backend),)


def source(shape: GemmReduceScatter, config: Config, arch: str) -> KernelSource:
    """The kernel of a fused config with everything that decides its code. `arch`: `cuda`, `hip` or
    `interpreter`. M and rank are left open, so that one binary serves every rank and many M."""
    config = SPACE.complete(config)
    module = import_module(f"tftune.kernels.gemm_reduce_scatter.variants.{config.variant}")
    kernel, constants = getattr(module, config.variant), _constants(shape, config, arch)
    types = {name: text.format(shape.dtype) for name, text in _TYPES.items()}
    divisible = tuple(name for name in types if name not in _OPEN)
    if config["loads"] == "descriptor":
        blocks = zip(_DESCRIPTORS, _blocks(shape, config), strict=True)
        types |= {name: f"tensordesc<{shape.dtype}{block}>" for name, block in blocks}
    else:
        constants |= dict.fromkeys(_DESCRIPTORS)
    options = {
        "num_warps": config["num_warps"],
        "num_stages": config["num_stages"],
        "launch_cooperative_grid": True,
    }
    if arch == "hip":
        options["matrix_instr_nonkdim"] = 16
    return KernelSource(kernel, types, constants, divisible, options)


def _blocks(shape: GemmReduceScatter, config: Config) -> tuple[list[int], list[int]]:
    """What one load of each descriptor takes: of a, of b."""
    b = [config["block_n"], config["block_k"]]
    return [config["block_m"], config["block_k"]], b if shape.b_layout == "nk" else b[::-1]


def _constants(shape: GemmReduceScatter, config: Config, arch: str) -> dict[str, Any]:
    spanning = spans(shape, config)
    return dict(
        N=shape.n, K=shape.inner, WORLD=shape.world, WORLD_P=power_of_two_from(shape.world),
        B_IS_NK=shape.b_layout == "nk", BLOCK_M=config["block_m"], BLOCK_N=config["block_n"],
        BLOCK_K=config["block_k"], GROUP_M=config["group_m"], SPLIT_K=config["split_k"],
        TILES_PER_FLAG=config["tiles_per_flag"], SPANS=spanning, ADD_ROWS=add_rows(shape, config, arch),
        LOADS=config["loads"], EVEN_K=shape.inner % config["block_k"] == 0,
        EVEN_N=shape.n % config["block_n"] == 0, WIRE_FP32=config["wire"] == "fp32", ARCH=arch,
    )  # fmt: skip


def add_rows(shape: GemmReduceScatter, config: Config, arch: str) -> int:
    """Rows of a tile that one program adds up at a time."""
    threads = config["num_warps"] * (64 if arch == "hip" else 32)
    rows = max(1, threads * 8 * ACCESSES // config["block_n"])
    most = power_of_two_from(shape.shard_rows) if spans(shape, config) else config["block_m"]
    return int(min(rows, most))


def programs(shape: GemmReduceScatter, config: Config, units: int, arch: str) -> int:
    """Programs of a launch: one for each part of a tile, or slice of rows to add, while units are
    left; all resident at once."""
    rows = shape.shard_rows if spans(shape, config) else config["block_m"]
    slices = owner_tiles(shape, config) * -(-rows // add_rows(shape, config, arch))
    return int(min(units, max(parts(shape, config), slices)))


def _fused(shape: GemmReduceScatter, config: Config, workspace: Workspace) -> Plan:
    kernel = source(shape, config, workspace.arch)
    grid = (programs(shape, config, workspace.units, workspace.arch), 1, 1)
    owners = 1 if spans(shape, config) else shape.world
    arrivals = counters(owners * flags(shape, config), workspace.device)
    fixed = workspace_values(workspace) | dict(
        arrivals=arrivals.data_ptr(), generation_bytes=workspace.generation_bytes, M=shape.m
    )
    if workspace.arch == "interpreter":
        run = interpreted(kernel, grid, _OPERANDS, fixed | dict.fromkeys(_DESCRIPTORS))
        return lambda a, b, c, kept=arrivals: run(a, b, c)
    launch, types = kernel.compile()[grid], kernel.types
    tail = arguments_after(kernel, (*_OPERANDS, *_DESCRIPTORS), addresses(types, fixed))
    dtype, blocks = torch_dtype(shape.dtype), _blocks(shape, config)
    b_size = (shape.n, shape.inner) if shape.b_layout == "nk" else (shape.inner, shape.n)
    sizes = ((shape.m, shape.inner), b_size)
    made = "a_desc" in types
    a_desc, b_desc = (
        descriptors(dtype, size, block) if made else lambda address: None
        for size, block in zip(sizes, blocks, strict=True)
    )

    def call(
        a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, kept: Any = arrivals
    ) -> None:  # addresses keep nothing alive
        a_at, b_at = a.data_ptr(), b.data_ptr()
        launch(a_at, b_at, c.data_ptr(), a_desc(a_at), b_desc(b_at), *tail)

    return call
