"""bsp: the library's collective, then the vendor's GEMM, in three forms; the fastest is what every
other variant is held against."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.runtime.plan import in_turn

if TYPE_CHECKING:
    import torch

Call = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor"], None]


def bsp(shape: AllGatherGemm, workspace: Workspace, dtype: torch.dtype, form: str) -> Call:
    """A call (a, b, c) that computes C = all_gather(A) @ B; its buffers, one or two gathered A, are
    allocated here."""
    return in_turn(steps(shape, workspace, dtype, form))


def steps(
    shape: AllGatherGemm, workspace: Workspace, dtype: torch.dtype, form: str
) -> dict[str, Call]:
    """The same, step by step: what is launched, in its order."""
    return {"gather": _gather, "gather_copy": _gather_copy, "local_transpose": _local_transpose}[
        form
    ](shape, workspace, dtype)


def _weights(shape: AllGatherGemm, b: torch.Tensor) -> torch.Tensor:
    return b.t() if shape.b_layout == "nk" else b


def _gather(shape: AllGatherGemm, workspace: Workspace, dtype: torch.dtype) -> dict[str, Call]:
    """A sharded along M arrives in place: [M/world, K] each, [M, K] together."""
    import torch
    import torch.distributed as dist

    gathered = torch.empty(shape.m, shape.k, dtype=dtype, device=workspace.device)

    def gather(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        dist.all_gather_into_tensor(gathered, a, group=workspace.group)

    def gemm(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        torch.matmul(gathered, _weights(shape, b), out=c)

    return {"gather": gather, "gemm": gemm}


def _gather_copy(shape: AllGatherGemm, workspace: Workspace, dtype: torch.dtype) -> dict[str, Call]:
    """A sharded along K arrives as [world, M, K/world] and is copied to [M, K]."""
    import torch
    import torch.distributed as dist

    gathered = torch.empty(
        shape.world * shape.m, shape.shard_columns, dtype=dtype, device=workspace.device
    )
    whole = torch.empty(
        shape.m, shape.world, shape.shard_columns, dtype=dtype, device=workspace.device
    )

    def gather(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        dist.all_gather_into_tensor(gathered, a, group=workspace.group)

    def copy(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        whole.copy_(gathered.view(shape.world, shape.m, -1).transpose(0, 1))

    def gemm(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        torch.matmul(whole.view(shape.m, shape.k), _weights(shape, b), out=c)

    return {"gather": gather, "copy": copy, "gemm": gemm}


def _local_transpose(
    shape: AllGatherGemm, workspace: Workspace, dtype: torch.dtype
) -> dict[str, Call]:
    """Each rank transposes its shard into its place of A^T [K, M], which is then gathered in place
    and multiplied transposed."""
    import torch
    import torch.distributed as dist

    transposed = torch.empty(shape.k, shape.m, dtype=dtype, device=workspace.device)
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
