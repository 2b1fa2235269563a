"""bsp: an all-reduce of a library, then one kernel that adds the residual and normalises.

Who owns a tile: a program takes one row. Who writes remotely: the library alone. Which flag says
ready: none; the kernel follows the library's in stream order.

Of several forms of the all-reduce the fastest is what every other variant is held against. NCCL's
reads x and writes elsewhere, as engines call it: torch's own call works in place, and would need a
copy.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import triton
import triton.language as tl

from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core import engine_all_reduce
from tftune.kernels.device.reduce import add_norm

if TYPE_CHECKING:
    import torch

Sum = Callable[["torch.Tensor", "torch.Tensor"], Any]
"""A call (x, y): y becomes the sum over ranks of x."""


@triton.jit
def normalize(
    y_ptr, residual_ptr, weight_ptr, out_ptr, added_ptr, eps,
    N: tl.constexpr, N_P: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """added = y and residual, out = added normalised: one row for each program."""
    columns = tl.arange(0, N_P)
    there = columns < N
    places = tl.cast(tl.program_id(0), tl.int64) * N + columns
    y = tl.cast(tl.load(y_ptr + places, mask=there, other=0.0), tl.float32)
    residual = tl.cast(tl.load(residual_ptr + places, mask=there, other=0.0), tl.float32)
    weight = tl.cast(tl.load(weight_ptr + columns, mask=there, other=0.0), tl.float32)
    added, out = add_norm(y, residual, weight, there, N, eps, y_ptr, ARCH)
    tl.store(added_ptr + places, added, mask=there)
    tl.store(out_ptr + places, out, mask=there)


def all_reduce(shape: AllReduce, workspace: Workspace, dtype: torch.dtype, form: str) -> Sum:
    """The all-reduce of that form. The forms over symmetric memory are prepared by every rank
    alike, as `symmetric_buffer` is collective. Raises ValueError for those without CUDA."""
    if shape.world == 1:
        return lambda x, y: y.copy_(x)
    if form == "library":
        return _library(workspace, dtype)
    if form == engine_all_reduce.FORM:
        return engine_all_reduce.all_reduce(workspace.group)
    if workspace.arch != "cuda":
        raise ValueError(f"form={form} needs CUDA and this workspace runs on {workspace.arch}")
    return _symmetric(shape, workspace, dtype, form)


def _library(workspace: Workspace, dtype: torch.dtype) -> Sum:
    """NCCL from x to y; any other library in place, behind a copy."""
    import torch.distributed as dist

    if (communicator := nccl_communicator(workspace)) is not None:
        return nccl_all_reduce(communicator, dtype, workspace.device)

    def in_place(x: torch.Tensor, y: torch.Tensor) -> None:
        y.copy_(x)
        dist.all_reduce(y, group=workspace.group)

    return in_place


def nccl_communicator(workspace: Workspace) -> int | None:
    """The address of the NCCL communicator of torch's group, where it has one; a group without any
    collective so far makes it here, which is collective."""
    import torch.distributed as dist

    group: Any = workspace.group or dist.group.WORLD
    backend = group._get_backend(workspace.device)
    if workspace.arch != "cuda" or not hasattr(backend, "_comm_ptr"):
        return None
    if not backend._comm_ptr():
        backend.eager_connect_single_device(workspace.device)
    return int(backend._comm_ptr())


def nccl_all_reduce(communicator: int, dtype: torch.dtype, device: torch.device) -> Sum:
    """ncclAllReduce by address, on the current stream, from the NCCL that torch has loaded. Raises
    RuntimeError with its status."""
    import torch

    reduce = ctypes.CDLL("libnccl.so.2").ncclAllReduce
    address, number = ctypes.c_void_p, ctypes.c_int
    reduce.argtypes = (address, address, ctypes.c_size_t, number, number, address, address)
    kind = _NCCL_DTYPES[str(dtype)]

    def call(x: torch.Tensor, y: torch.Tensor) -> None:
        stream = torch.cuda.current_stream(device).cuda_stream
        status = reduce(
            x.data_ptr(), y.data_ptr(), x.numel(), kind, _NCCL_SUM, communicator, stream
        )
        if status:
            raise RuntimeError(f"ncclAllReduce returned {status}")

    return call


_NCCL_DTYPES = {"torch.float16": 6, "torch.bfloat16": 9}
"""ncclFloat16 and ncclBfloat16."""
_NCCL_SUM = 0


def symmetric_buffer(
    workspace: Workspace, size: tuple[int, int], dtype: torch.dtype
) -> tuple[torch.Tensor, str]:
    """A buffer of torch's symmetric memory and the name of its group. Where it must grow, this is
    collective."""
    import torch
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symmetric_memory

    group: Any = workspace.group or dist.group.WORLD

    def allocate(count: int) -> torch.Tensor:
        made = symmetric_memory.empty((count,), dtype=torch.uint8, device=workspace.device)
        symmetric_memory.rendezvous(made, group.group_name)
        return made

    return workspace.buffer("symmetric", size, dtype, allocate), group.group_name


def _symmetric(shape: AllReduce, workspace: Workspace, dtype: torch.dtype, form: str) -> Sum:
    """torch.ops.symm_mem's one-shot or two-shot all-reduce. Both read peers' symmetric memory, so x
    is copied there first: by one_shot's own kernel, and by a copy before two_shot's."""
    import torch

    buffer, name = symmetric_buffer(workspace, (shape.m, shape.n), dtype)
    ops = torch.ops.symm_mem

    def one_shot(x: torch.Tensor, y: torch.Tensor) -> None:
        ops.one_shot_all_reduce_copy_out(buffer, x, "sum", name, y)

    def two_shot(x: torch.Tensor, y: torch.Tensor) -> None:
        buffer.copy_(x)
        ops.two_shot_all_reduce_out(buffer, "sum", name, y)

    return {"one_shot": one_shot, "two_shot": two_shot}[form]
