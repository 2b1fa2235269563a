"""all_reduce on the host: check the operands, pick the variant, launch. A plan is made once for
each shape and config."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tftune.kernels.all_reduce import EPSILON, AllReduce
from tftune.kernels.all_reduce.space import SPACE, payload_bytes, reads_in_place
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.dtypes import torch_dtype
from tftune.kernels.core.rounding import power_of_two_from, power_of_two_to
from tftune.kernels.core.shape import check_kind
from tftune.kernels.core.space import Config
from tftune.kernels.device.constants import Pieces
from tftune.kernels.runtime.compile import KernelSource, source_of
from tftune.kernels.runtime.operands import (
    check_device,
    check_operand,
    place_of,
    read_in_place,
    word_of,
)
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

_OPERANDS = ("x_ptr", "y_ptr", "residual_ptr", "weight_ptr", "out_ptr", "added_ptr")
_TYPES = {
    **dict.fromkeys(_OPERANDS, "*{}"),
    **WORKSPACE_TYPES,
    "squares": "i64",
    "generation_bytes": "i64",
    "M": "i32",
    "rank": "i32",
    "eps": "fp32",
}
_OPEN = ("M", "rank", "eps")
"""Numbers of any value; all other arguments are multiples of 16."""


def checked_eps(eps: float | None) -> float:
    """What the norm adds; EPSILON for None. Raises ValueError for what no norm adds."""
    if eps is None:
        return EPSILON
    check_kind("eps", eps, int | float, "a number, as in 1e-5")
    if not 0 <= eps < float("inf"):
        raise ValueError(f"eps={eps} must be a finite number of at least 0, as in eps=1e-5")
    return float(eps)


def result_size(shape: AllReduce) -> tuple[int, ...]:
    """The size of the result: [m, n], or two of them."""
    return (2, shape.m, shape.n) if shape.normed else (shape.m, shape.n)


def operand_bytes(shape: AllReduce) -> int:
    """Bytes of the operand that may lie on the heap: x."""
    return shape.message_bytes


def placed_well(
    x: torch.Tensor,
    residual: torch.Tensor | None,
    weight: torch.Tensor | None,
    workspace: Workspace,
) -> bool:
    """Whether operands of sizes that ran before can be launched as they are; where not, `shape_of`
    says what is wrong."""
    return all(
        operand.is_contiguous()
        and operand.data_ptr() & 15 == 0
        and operand.dtype is x.dtype
        and operand.get_device() == workspace.ordinal
        for operand in ((x,) if residual is None or weight is None else (x, residual, weight))
    )


def shape_of(
    x: torch.Tensor,
    residual: torch.Tensor | None,
    weight: torch.Tensor | None,
    workspace: Workspace,
) -> AllReduce:
    """The shape of one call; raises ValueError naming the operand and both sizes where they do not
    fit each other."""
    dtype = word_of("all_reduce", "x", x)
    if x.dim() != 2:
        raise ValueError(f"x must have 2 dimensions, not {x.dim()}")
    if (residual is None) != (weight is None):
        raise ValueError("residual and weight belong together: give both, or neither for the sum")
    check_device("x", x, workspace)
    norm = "none" if residual is None else "rms"
    shape = AllReduce(x.shape[0], x.shape[1], workspace.world, dtype, norm, place_of(x, workspace))
    check_operand("x", x, (shape.m, shape.n), x.dtype, x.device)
    if residual is not None and weight is not None:
        check_operand("residual", residual, (shape.m, shape.n), x.dtype, x.device)
        check_operand("weight", weight, (shape.n,), x.dtype, x.device)
    return shape


def prepare(shape: AllReduce, config: Config, workspace: Workspace, eps: float = EPSILON) -> Plan:
    """A call (x, out), or (x, residual, weight, out), for this shape and config: compiled, with
    buffers allocated; launches nothing, and is collective only for torch's forms of BSP.

    Raises ValueError as `plan.checked` does.
    """
    config = checked(SPACE, shape, config, workspace, payload_bytes(shape))
    if config.variant == "bsp":
        return _bsp(shape, config, workspace, eps)
    kernel = source(shape, config, workspace.arch)
    pieces = shape.m * config["parts"]
    size = 16 * pieces if "squares" in kernel.types else 16
    squares = floats(workspace, "words", size, zeros=True)
    values = workspace_values(workspace) | dict(
        generation_bytes=workspace.generation_bytes, squares=squares.data_ptr(), M=shape.m, eps=eps
    )
    plan = _launcher(shape, kernel, int(config["programs"]), values, workspace)
    return read_in_place(plan, workspace.operands) if reads_in_place(shape, config) else plan


def _bsp(shape: AllReduce, config: Config, workspace: Workspace, eps: float) -> Plan:
    """The library's all-reduce straight into the result, or into a buffer that the norm reads."""
    from tftune.kernels.all_reduce.variants.bsp import all_reduce

    dtype = torch_dtype(shape.dtype)
    add_up = all_reduce(shape, workspace, dtype, config["form"])
    if not shape.normed:
        return add_up
    kernel = source(shape, config, workspace.arch)
    norm = _launcher(shape, kernel, shape.m, {"eps": eps}, workspace)
    if shape.world == 1:  # x is the sum
        return norm
    y = workspace.buffer("sum", (shape.m, shape.n), dtype)

    def call(x: torch.Tensor, residual: Any, weight: Any, out: torch.Tensor) -> None:
        add_up(x, y)
        norm(y, residual, weight, out)

    return call


def kernel_sources(shape: AllReduce, config: Config, chip: Chip) -> tuple[KernelSource, ...]:
    """What must be compiled ahead for this config on this chip; nothing where it is a library's
    call alone."""
    config = SPACE.complete(config)
    if config.variant == "bsp" and not shape.normed:
        return ()
    return (source(shape, config, chip.can.backend),)


def source(shape: AllReduce, config: Config, arch: str) -> KernelSource:
    """The kernel of a config with everything that decides its code; of BSP, the one that
    normalises. `arch`: `cuda`, `hip` or `interpreter`. M and rank are left open, so that one binary
    serves every M and every rank."""
    config, lanes = SPACE.complete(config), 64 if arch == "hip" else 32
    name = "normalize" if config.variant == "bsp" else config.variant
    module = import_module(f"tftune.kernels.all_reduce.variants.{config.variant}")
    kernel = getattr(module, name)
    warps = _norm_warps(shape, lanes) if config.variant == "bsp" else config["num_warps"]
    constants = _constants(shape, config, warps * lanes, arch)
    options = {"num_warps": warps, "num_stages": 1}
    if config.variant != "bsp":
        options["launch_cooperative_grid"] = True
    return source_of(kernel, shape.dtype, _TYPES, constants, _OPEN, options)


def _norm_warps(shape: AllReduce, lanes: int) -> int:
    """So many that a thread of BSP's norm has 16 elements of a row, 4 to 16 waves of 32 threads."""
    return max(128 // lanes, min(512 // lanes, power_of_two_from(shape.n) // (16 * lanes)))


def _constants(shape: AllReduce, config: Config, threads: int, arch: str) -> dict[str, Any]:
    knobs: dict[str, Any] = dict(config.knobs)
    parts, rows = knobs.get("parts", 1), knobs.get("rows_per_flag", 1)
    columns = power_of_two_from(shape.n // parts)
    # Four 16-byte accesses of each thread in flight.
    tile = min(rows, power_of_two_to(max(1, 32 * threads // columns)))
    cut = Pieces(
        N=shape.n,
        N_P=power_of_two_from(shape.n),
        PARTS=parts,
        PARTS_P=power_of_two_from(parts),
        ROWS=rows,
        TILE=tile,
        COLS_P=columns,
        NORM=shape.normed,
        WORLD=shape.world,
        WORLD_P=power_of_two_from(shape.world),
        IN_PLACE=reads_in_place(shape, config),
        ROLES=knobs.get("roles", 1),
    )
    pairs = power_of_two_from(shape.n // parts // 2)
    return cut._asdict() | dict(cut=cut, PAIRS_P=pairs, THREADS=threads, ARCH=arch)


def _launcher(
    shape: AllReduce,
    kernel: KernelSource,
    programs: int,
    values: Mapping[str, Any],
    workspace: Workspace,
) -> Plan:
    """A launch as a call of the operands and the result. Where nothing is normalised, x and the
    result stand in for the operands that the kernel does not read."""
    names = tuple(name for name in kernel.types if name.endswith("_ptr"))
    if workspace.arch == "interpreter":
        interpret, _ = prepared(kernel, programs, names, values, workspace)
        return lambda *operands: interpret(*_tensors(shape, operands))
    launch, tail = prepared(kernel, programs, names, addresses(values), workspace)
    half = shape.message_bytes

    def call(*operands: Any) -> None:
        at = [operand.data_ptr() for operand in operands]
        if shape.normed:
            launch(*at, at[3] + half, *tail)
        else:
            launch(at[0], at[0], at[0], at[1], at[1], *tail)

    return call


def _tensors(shape: AllReduce, operands: Any) -> tuple[Any, ...]:
    """The operands as the kernel takes them: x or y, residual, weight, out, new residual."""
    if shape.normed:
        x, residual, weight, out = operands
        return x, residual, weight, out[0], out[1]
    x, out = operands
    return x, x, x, out, out
