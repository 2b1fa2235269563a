"""merge_attention on the host: check the operands, pick the variant, launch. A plan is made once
for each shape and config."""

from __future__ import annotations

from importlib import import_module
from math import e, log2
from typing import TYPE_CHECKING, Any

from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.rounding import power_of_two_from
from tftune.kernels.core.space import Config
from tftune.kernels.device.constants import Messages
from tftune.kernels.merge_attention import MergeAttention
from tftune.kernels.merge_attention.space import SPACE, payload_bytes, pieces
from tftune.kernels.runtime.compile import KernelSource, source_of
from tftune.kernels.runtime.operands import check_device, word_of
from tftune.kernels.runtime.plan import (
    WORKSPACE_TYPES,
    Plan,
    addresses,
    checked,
    floats,
    prepared,
    workspace_values,
)

if TYPE_CHECKING:
    import torch

__all__ = ["kernel_sources", "payload_bytes", "prepare", "result_size"]

GRANULE = 8
"""Rows of o begin at multiples of so many elements: 16 bytes."""
PACKED_ROWS, PACKING_WARPS = 4, 4
"""A piece of BSP's kernels for rows of up to 256 elements, and the warps of a program."""
_STRIDES = ("o_batch", "o_head", "lse_batch", "lse_head")
_TYPES = {
    "o_ptr": "*{}", "lse_ptr": "*fp32", "out_ptr": "*{}", "messages": "i64", "received": "i64",
    **dict.fromkeys(_STRIDES, "i64"), **WORKSPACE_TYPES, "generation_bytes": "i64",
    "batch": "i32", "rank": "i32",
}  # fmt: skip
_OPEN = ("lse_ptr", *_STRIDES, "batch", "rank")
"""Numbers of any value; all other arguments are multiples of 16."""


def result_size(shape: MergeAttention) -> tuple[int, int, int]:
    """The size of the output on one rank."""
    return shape.batch, shape.own_heads, shape.head_dim


def placed_well(o: torch.Tensor, lse: torch.Tensor, workspace: Workspace) -> bool:
    """Whether operands of sizes that ran before can be launched as they are; where not, `shape_of`
    says what is wrong."""
    return (
        _rows_fit(o)
        and lse.dtype.itemsize == 4
        and lse.is_floating_point()
        and o.get_device() == lse.get_device() == workspace.ordinal
    )


def _rows_fit(o: torch.Tensor) -> bool:
    batch, head, element = o.stride()
    return element == 1 and (batch | head) % GRANULE == 0 and o.data_ptr() & 15 == 0


def shape_of(
    o: torch.Tensor, lse: torch.Tensor, workspace: Workspace, output: str, base: str
) -> MergeAttention:
    """The shape of one call; raises ValueError naming the operand and both sizes where they do not
    fit each other."""
    import torch

    dtype = word_of("merge_attention", "o", o)
    if o.dim() != 3:
        raise ValueError(f"o must have 3 dimensions, not {o.dim()}")
    check_device("o", o, workspace)
    batch, heads, head_dim = o.shape
    shape = MergeAttention(batch, heads, head_dim, workspace.world, dtype, output, base)
    if tuple(lse.shape) != tuple(o.shape[:2]):
        raise ValueError(f"lse is {list(lse.shape)} but must be {list(o.shape[:2])}")
    if lse.dtype != torch.float32 or lse.device != o.device:
        raise ValueError(
            f"lse is {lse.dtype} on {lse.device} but must be torch.float32 on {o.device}"
        )
    if not _rows_fit(o):
        raise ValueError(
            "each row of o must be contiguous and begin at a multiple of 16 bytes; its strides are "
            f"{tuple(o.stride())} and it begins {o.data_ptr() % 16} bytes behind a multiple: pass "
            "o.contiguous(), or o.clone() where it is contiguous"
        )
    return shape


def prepare(shape: MergeAttention, config: Config, workspace: Workspace) -> Plan:
    """A call (o, lse, out) for this shape and config: compiled, with buffers allocated; not
    collective, and launches nothing.

    Raises ValueError as `plan.checked` does.
    """
    config = checked(SPACE, shape, config, workspace, payload_bytes(shape))
    if config.variant == "bsp":
        return _bsp(shape, config, workspace)
    (source,) = _sources(shape, config, workspace.arch)
    values = workspace_values(workspace) | dict(
        generation_bytes=workspace.generation_bytes, batch=shape.batch
    )
    launch = _launch(source, int(config["programs"]), values, workspace)

    def call(o: torch.Tensor, lse: torch.Tensor, out: torch.Tensor) -> None:
        launch(o, lse, out, *o.stride()[:2], *lse.stride())

    return call


def _bsp(shape: MergeAttention, config: Config, workspace: Workspace) -> Plan:
    """Pack, exchange, merge."""
    import torch.distributed as dist

    packing, merging = _sources(shape, config, workspace.arch)
    own = shape.message_bytes * (1 if shape.output == "all" else shape.world)
    messages = floats(workspace, "messages", own)
    received = floats(workspace, "received", payload_bytes(shape))
    values = {
        "messages": messages.data_ptr(), "received": received.data_ptr(),
        "batch": shape.batch, "rank": workspace.rank,
    }  # fmt: skip
    count = pieces(shape, Config("one_shot", rows_per_piece=_packed_rows(shape)))
    pack = _launch(packing, count * (own // shape.message_bytes), values, workspace)
    merge = _launch(merging, count, values, workspace)
    move = dist.all_gather_into_tensor if shape.output == "all" else dist.all_to_all_single

    def call(o: torch.Tensor, lse: torch.Tensor, out: torch.Tensor) -> None:
        pack(o, lse, *o.stride()[:2], *lse.stride())
        move(received, messages, group=workspace.group)
        merge(out)

    return call


def kernel_sources(shape: MergeAttention, config: Config, chip: Chip) -> tuple[KernelSource, ...]:
    """What must be compiled ahead for this config on this chip, in the order of a call."""
    return _sources(shape, SPACE.complete(config), chip.can.backend)


def _sources(shape: MergeAttention, config: Config, arch: str) -> tuple[KernelSource, ...]:
    """The kernels of a complete config with everything that decides their code. `arch`: `cuda`,
    `hip` or `interpreter`. Batch, rank and strides are left open, so that one binary serves every
    batch and rank."""
    module = import_module(f"tftune.kernels.merge_attention.variants.{config.variant}")
    names = ("pack", "merge") if config.variant == "bsp" else (config.variant,)
    if config.variant == "bsp":
        rows, warps, cooperative = _packed_rows(shape), PACKING_WARPS, {}
    else:
        rows, warps = int(config["rows_per_piece"]), int(config["num_warps"])
        cooperative = {"launch_cooperative_grid": True}
    cut = Messages(
        D=shape.head_dim,
        OWN=shape.own_heads,
        ALL=shape.output == "all",
        SCALE=log2(e) if shape.base == "e" else 1.0,
        ROWS=rows,
        WORLD=shape.world,
        WORLD_P=power_of_two_from(shape.world),
    )
    options = {"num_warps": warps, "num_stages": 1, **cooperative}
    constants = {"cut": cut, "THREADS": warps * (64 if arch == "hip" else 32), "ARCH": arch}
    return tuple(
        source_of(getattr(module, name), shape.dtype, _TYPES, constants, _OPEN, options)
        for name in names
    )


def _packed_rows(shape: MergeAttention) -> int:
    """Rows of a piece of BSP's kernels: no more elements than four rows of 256 have."""
    return PACKED_ROWS * 256 // max(256, shape.head_dim)


def _launch(
    source: KernelSource, programs: int, values: dict[str, Any], workspace: Workspace
) -> Plan:
    """A launch as a call of the operands and their strides."""
    names = tuple(
        name for name in source.types if name in _STRIDES or name in ("o_ptr", "lse_ptr", "out_ptr")
    )
    if workspace.arch == "interpreter":
        return prepared(source, programs, names, values, workspace)[0]
    launch, tail = prepared(source, programs, names, addresses(values), workspace)

    def call(*given: Any) -> None:
        at = (value if isinstance(value, int) else value.data_ptr() for value in given)
        launch(*at, *tail)

    return call
