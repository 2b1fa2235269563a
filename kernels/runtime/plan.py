"""Plans: calls of one shape and config, with all that is decided before the first of them.

A plan is checked against the operation's rules and compiled. It is made once for a shape, a config
and a workspace. It owns no device memory: its buffers are the workspace's, which is all that a
captured graph needs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config, Space
from tftune.kernels.runtime.compile import KernelSource
from tftune.kernels.runtime.residence import check_residence

if TYPE_CHECKING:
    import torch

Plan = Callable[..., None]
"""Takes the operation's operands and its output."""
Grid = tuple[int, int, int]
PLANS = 1024
"""Plans that one table keeps: a server's prefill may have any M. One more drops the oldest, whose
next call makes it again from a kernel and buffers that are there."""
WORKSPACE_TYPES = {
    "control": "i64",
    "payload": "i64",
    "control_bases": "*i64",
    "payload_bases": "*i64",
}
"""Triton types of the arguments that `workspace_values` gives, but for the rank."""


def make_room(plans: dict[tuple[Any, ...], Any]) -> None:
    """Drop the oldest plan of too many."""
    if len(plans) < PLANS:
        return
    oldest = next(iter(plans))
    plans.pop(oldest, None)
    logging.getLogger("tftune").info("plan dropped: kept=%d, oldest=%s", PLANS, oldest)


def checked(
    space: Space, shape: Shape, config: Config, workspace: Workspace, payload_bytes: int
) -> Config:
    """The complete config, if it can run this shape in this workspace.

    `payload_bytes`: what the shape needs of a generation; BSP needs nothing there. Raises
    ValueError for other ranks than the workspace has, with the sentence of a broken rule, and for a
    workspace that is too small.
    """
    workspace.check_world(shape)
    config = space.complete(config)
    if sentence := space.why_refused(shape, config, workspace.chip):
        raise ValueError(f"{config} cannot run {shape}: {sentence}")
    if config.variant != "bsp" and payload_bytes > workspace.generation_bytes:
        raise ValueError(
            f"{shape} gathers {payload_bytes} bytes but a generation of the workspace has "
            f"{workspace.generation_bytes}; create it with Workspace.create(group, {payload_bytes})"
        )
    return config


def workspace_values(workspace: Workspace) -> dict[str, Any]:
    """Arguments that a kernel takes from the workspace, by name."""
    return dict(
        control=workspace.control,
        payload=workspace.payload,
        control_bases=workspace.control_bases,
        payload_bases=workspace.payload_bases,
        rank=workspace.rank,
    )


def interpreted(
    kernel: KernelSource, grid: Grid, operands: Sequence[str], fixed: Mapping[str, Any]
) -> Plan:
    """A launch in Triton's interpreter as a call of these operands, in this order."""
    values = {**kernel.constants, **fixed}

    def interpret(*given: Any) -> None:
        kernel.kernel[grid](**values | dict(zip(operands, given, strict=True)))

    return interpret


def arguments_after(
    kernel: KernelSource, operands: Sequence[str], fixed: Mapping[str, Any]
) -> tuple[Any, ...]:
    """What a launch passes after these operands, which come first and change from call to call."""
    first = tuple(kernel.kernel.arg_names[: len(operands)])
    if first != tuple(operands):
        raise ValueError(f"the first arguments of the kernel are {first}, not {tuple(operands)}")
    return kernel.arguments({**dict.fromkeys(operands), **fixed})[len(operands) :]


def launcher(
    kernel: KernelSource, grid: Grid, operands: Sequence[str], fixed: Mapping[str, Any], arch: str
) -> Plan:
    """A launch as a call of these operands, by position; compiled here, unless `arch` says that it
    is interpreted."""
    if arch == "interpreter":
        return interpreted(kernel, grid, operands, fixed)
    launch, tail = kernel.compile()[grid], arguments_after(kernel, operands, fixed)
    return lambda *given: launch(*given, *tail)


def prepared(
    kernel: KernelSource,
    programs: int,
    operands: Sequence[str],
    values: Mapping[str, Any],
    workspace: Workspace,
) -> tuple[Plan, tuple[Any, ...]]:
    """A launch, and what it is called with after these operands. `values`: all other arguments, of
    which the kernel may have some only. Raises OutOfResources where programs that wait for each
    other do not all fit the chip at once."""
    grid = (programs, 1, 1)
    fixed = {name: value for name, value in values.items() if name in kernel.types}
    if workspace.arch == "interpreter":
        return interpreted(kernel, grid, operands, fixed), ()
    compiled = kernel.compile()
    launch = compiled[grid]  # loads it, which says how many registers it has
    if kernel.options.get("launch_cooperative_grid"):
        check_residence(compiled, programs, kernel.options["num_warps"], workspace)
    return launch, arguments_after(kernel, operands, fixed)


def launched(
    kernel: KernelSource,
    programs: int,
    operands: Sequence[str],
    values: Mapping[str, Any],
    workspace: Workspace,
) -> Plan:
    """`prepared` as a call of these operands, of which the first is a tensor."""
    launch, tail = prepared(kernel, programs, operands, values, workspace)
    if workspace.arch == "interpreter":
        return launch
    return lambda first, *more: launch(first.data_ptr(), *more, *tail)


def addresses(values: Mapping[str, Any]) -> dict[str, Any]:
    """These arguments with an address in place of each tensor.

    Triton takes an address where it takes a tensor; of a tensor it would ask the driver at each
    launch whether it is on the GPU.
    """
    return {
        name: value.data_ptr() if hasattr(value, "data_ptr") else value
        for name, value in values.items()
    }


def floats(workspace: Workspace, name: str, size_bytes: int, zeros: bool = False) -> torch.Tensor:
    """The workspace's buffer of that name as so many bytes, rounded up to whole fp32."""
    import torch

    buffer: torch.Tensor = workspace.buffer(
        name, (-(-size_bytes // 4),), torch.float32, zeros=zeros
    )
    return buffer


def counters(workspace: Workspace, name: str, count: int) -> torch.Tensor:
    """int32, zero between calls, or multiples of what the name says."""
    import torch

    buffer: torch.Tensor = workspace.buffer(name, (count,), torch.int32, zeros=True)
    return buffer


@dataclass(frozen=True)
class Steps:
    """A plan of several steps, each a call of all operands."""

    steps: tuple[Plan, ...]

    def __call__(self, *operands: torch.Tensor) -> None:
        for step in self.steps:
            step(*operands)


@dataclass(frozen=True)
class Returning:
    """A plan of a library call that has no argument for its output, and returns a tensor of its
    own.

    As a plan it copies that to the output. What is timed, and what runs for a caller who gave no
    output, is `compute` alone: a baseline is not charged for a copy that nobody needs.
    """

    compute: Callable[..., torch.Tensor]

    def __call__(self, *operands: torch.Tensor) -> None:
        operands[-1].copy_(self.compute(*operands[:-1]))

    def without_copy(self, *operands: torch.Tensor) -> None:
        """The call as it is timed; the output stays as it was."""
        self.compute(*operands[:-1])


def timed_part(plan: Plan) -> Plan:
    """What a bench times of a plan: the whole, but for a copy of what a library returned."""
    return plan.without_copy if isinstance(plan, Returning) else plan


@dataclass(frozen=True)
class _Address:
    """What Triton reads of a descriptor's tensor. The tensor itself would live as long as the
    descriptor is kept."""

    address: int
    dtype: torch.dtype

    def data_ptr(self) -> int:
        return self.address


def descriptors(
    element: torch.dtype, size: tuple[int, ...], block: list[int]
) -> Callable[[int], Any]:
    """From an address to the descriptor of a contiguous tensor there, of which one load takes
    `block`. The last ones are kept: weights and buffers come back."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    strides = [prod(size[place + 1 :]) for place in range(len(size))]

    @lru_cache(maxsize=256)
    def descriptor(address: int) -> Any:
        return TensorDescriptor(_Address(address, element), list(size), strides, block)

    return descriptor
