"""bsp: the library's collective, then the vendor's GEMM, in three forms; the fastest is what every
other variant is held against."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.rules import is_registered, plain_form
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.runtime.plan import Steps

if TYPE_CHECKING:
    import torch

Call = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor"], None]
Buffer = Callable[..., "torch.Tensor"]
"""Gives the buffer of a name and sizes."""


def bsp(shape: AllGatherGemm, workspace: Workspace, dtype: torch.dtype, form: str) -> Call:
    """A call (a, b, c) that computes C = all_gather(A) @ B; its buffers, one or two gathered A, are
    the workspace's."""
    return Steps(tuple(steps(shape, workspace, dtype, form).values()))


def steps(
    shape: AllGatherGemm, workspace: Workspace, dtype: torch.dtype, form: str
) -> dict[str, Call]:
    """The same, step by step: what is launched, in its order."""
    pool = "registered" if is_registered(form) else "local"

    def buffer(name: str, *size: int) -> torch.Tensor:
        found: torch.Tensor = workspace.buffer(f"{pool} {name}", size, dtype)
        return found

    forms = {"gather": _gather, "gather_copy": _gather_copy, "local_transpose": _local_transpose}
    return forms[plain_form(form)](shape, workspace, buffer)


def _weights(shape: AllGatherGemm, b: torch.Tensor) -> torch.Tensor:
    return b.t() if shape.b_layout == "nk" else b


def _gather(shape: AllGatherGemm, workspace: Workspace, buffer: Buffer) -> dict[str, Call]:
    """A sharded along M arrives in place: [M/world, K] each, [M, K] together."""
    import torch
    import torch.distributed as dist

    gathered = buffer("gathered", shape.m, shape.k)

    def gather(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        dist.all_gather_into_tensor(gathered, a, group=workspace.group)

    def gemm(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        torch.matmul(gathered, _weights(shape, b), out=c)

    return {"gather": gather, "gemm": gemm}


def _gather_copy(shape: AllGatherGemm, workspace: Workspace, buffer: Buffer) -> dict[str, Call]:
    """A sharded along K arrives as [world, M, K/world] and is copied to [M, K]."""
    import torch
    import torch.distributed as dist

    gathered = buffer("gathered", shape.world * shape.m, shape.shard_columns)
    whole = buffer("copied", shape.m, shape.world, shape.shard_columns)

    def gather(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        dist.all_gather_into_tensor(gathered, a, group=workspace.group)

    def copy(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        whole.copy_(gathered.view(shape.world, shape.m, -1).transpose(0, 1))

    def gemm(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        torch.matmul(whole.view(shape.m, shape.k), _weights(shape, b), out=c)

    return {"gather": gather, "copy": copy, "gemm": gemm}


def _local_transpose(shape: AllGatherGemm, workspace: Workspace, buffer: Buffer) -> dict[str, Call]:
    """Each rank transposes its shard into its place of A^T [K, M], which is then gathered in place
    and multiplied transposed."""
    import torch
    import torch.distributed as dist

    transposed = buffer("gathered", shape.k, shape.m)
    own = transposed[
        workspace.rank * shape.shard_columns : (workspace.rank + 1) * shape.shard_columns
    ]

    def transpose(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        own.copy_(a.t())

    def gather(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        dist.all_gather_into_tensor(transposed, own, group=workspace.group)

    def gemm(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        torch.matmul(transposed.t(), _weights(shape, b), out=c)

    return {"transpose": transpose, "gather": gather, "gemm": gemm}
