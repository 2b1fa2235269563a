"""flash_prefill on the host: check the operands, pick the variant, launch. A plan is made once for
each shape and config."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.dtypes import torch_dtype
from tftune.kernels.core.space import Config
from tftune.kernels.device.constants import Prefill
from tftune.kernels.flash_prefill import FlashPrefill
from tftune.kernels.flash_prefill.space import SPACE, programs
from tftune.kernels.runtime.compile import KernelSource
from tftune.kernels.runtime.operands import check_device, check_operand, word_of
from tftune.kernels.runtime.plan import (
    Plan,
    arguments_after,
    checked,
    descriptors,
    interpreted,
)

if TYPE_CHECKING:
    import torch

_OPERANDS = ("q_ptr", "k_ptr", "v_ptr", "out_ptr")
_DESCRIPTORS = ("k_desc", "v_desc")
_OPEN = {"tokens": "i32", "q_heads": "i32", "kv_heads": "i32"}
"""Integers of any value: one binary serves every length and every number of heads."""


def result_size(shape: FlashPrefill) -> tuple[int, int, int, int]:
    """The size of the output, which is that of q."""
    return shape.batch, shape.seq_len, shape.q_heads, shape.head_dim


def placed_well(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, workspace: Workspace) -> bool:
    """Whether operands of sizes that ran before can be launched as they are; where not, `shape_of`
    says what is wrong."""
    return (
        q.is_contiguous()
        and k.is_contiguous()
        and v.is_contiguous()
        and (q.data_ptr() | k.data_ptr() | v.data_ptr()) & 15 == 0
        and k.dtype is q.dtype is v.dtype
        and q.get_device() == k.get_device() == v.get_device() == workspace.ordinal
    )


def shape_of(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, workspace: Workspace, causal: str
) -> FlashPrefill:
    """The shape of one call; raises ValueError naming the operand and both sizes where they do not
    fit each other."""
    dtype = word_of("flash_prefill", "q", q)
    if q.dim() != 4 or k.dim() != 4:
        raise ValueError(f"q and k must have 4 dimensions, not {q.dim()} and {k.dim()}")
    check_device("q", q, workspace)
    batch, seq_len, q_heads, head_dim = q.shape
    shape = FlashPrefill(batch, q_heads, k.shape[2], head_dim, seq_len, 1, dtype, causal)
    check_operand("q", q, result_size(shape), q.dtype, q.device)
    for name, operand in (("k", k), ("v", v)):
        size = (batch, seq_len, shape.kv_heads, head_dim)
        check_operand(name, operand, size, q.dtype, q.device)
    return shape


def payload_bytes(shape: FlashPrefill) -> int:
    """Bytes of one generation that this shape needs. Nothing is exchanged, and no generation is
    empty."""
    return 16


def prepare(shape: FlashPrefill, config: Config, workspace: Workspace) -> Plan:
    """A call (q, k, v, out) for this shape and config, compiled; launches nothing.

    Raises ValueError with the rule's sentence for an impossible config.
    """
    config = checked(SPACE, shape, config, workspace, payload_bytes(shape))
    if config.variant == "bsp":
        from tftune.kernels.flash_prefill.variants.bsp import bsp

        return bsp(shape, config["backend"])
    dies = 1 if workspace.chip is None else workspace.chip.dies
    kernel = source(shape, config, workspace.arch, dies)
    grid = (programs(shape, config), 1, 1)
    fixed = {"tokens": shape.seq_len, "q_heads": shape.q_heads, "kv_heads": shape.kv_heads}
    size = (shape.batch, shape.seq_len, shape.kv_heads * shape.head_dim)
    block = _block(shape, config) if "k_desc" in kernel.types else None
    if workspace.arch == "interpreter":
        run = interpreted(kernel, grid, (*_OPERANDS, *_DESCRIPTORS), fixed)
        return lambda q, k, v, out: run(q, k, v, out, *_interpreted_blocks(k, v, size, block))
    launch = kernel.compile()[grid]
    tail = arguments_after(kernel, (*_OPERANDS, *_DESCRIPTORS), fixed)
    described = descriptors(torch_dtype(shape.dtype), size, block) if block else None

    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor) -> None:
        k_at, v_at = k.data_ptr(), v.data_ptr()
        blocks = (described(k_at), described(v_at)) if described else (None, None)
        launch(q.data_ptr(), k_at, v_at, out.data_ptr(), *blocks, *tail)

    return call


def _interpreted_blocks(
    k: torch.Tensor, v: torch.Tensor, size: tuple[int, ...], block: list[int] | None
) -> tuple[Any, Any]:
    """Descriptors for the interpreter, which takes those of tensors alone."""
    if block is None:
        return None, None
    from triton.tools.tensor_descriptor import TensorDescriptor

    made = (TensorDescriptor.from_tensor(one.view(size), block) for one in (k, v))
    return next(made), next(made)


def kernel_sources(shape: FlashPrefill, config: Config, chip: Chip) -> tuple[KernelSource, ...]:
    """What must be compiled ahead for this config on this chip; nothing where it is a library's
    call."""
    if config.variant == "bsp":
        return ()
    return (source(shape, config, chip.can.backend, chip.dies),)


def source(shape: FlashPrefill, config: Config, arch: str, dies: int) -> KernelSource:
    """The kernel of a config with everything that decides its code. `arch`: `cuda`, `hip` or
    `interpreter`; `dies`: that the hardware deals programs to in turn."""
    from tftune.kernels.flash_prefill.variants.flash import flash

    config = SPACE.complete(config)
    types = {name: f"*{shape.dtype}" for name in _OPERANDS} | _OPEN
    constants: dict[str, Any] = {"prefill": _constants(shape, config, dies), "ARCH": arch}
    if config["loads"] == "descriptor":
        kind = f"tensordesc<{shape.dtype}{_block(shape, config)}>"
        types |= dict.fromkeys(_DESCRIPTORS, kind)
    else:
        constants |= dict.fromkeys(_DESCRIPTORS)
    options = {"num_warps": config["num_warps"], "num_stages": config["num_stages"]}
    if arch == "hip":
        options |= {name: config[name] for name in ("matrix_instr_nonkdim", "waves_per_eu")}
    ordered = {name: types[name] for name in flash.arg_names if name in types}
    return KernelSource(flash, ordered, constants, _OPERANDS, options)


def _block(shape: FlashPrefill, config: Config) -> list[int]:
    """What one load of a descriptor takes of keys or values [batch, seq_len, kv_heads * D]."""
    return [1, config["block_n"], shape.head_dim]


def _constants(shape: FlashPrefill, config: Config, dies: int) -> Prefill:
    return Prefill(
        D=shape.head_dim,
        CAUSAL=shape.is_causal,
        BLOCK_M=config["block_m"],
        BLOCK_N=config["block_n"],
        LOADS=config["loads"],
        MAPPING=config["mapping"],
        DIES=dies,
    )
