"""bsp: the library's collective, then the vendor's GEMM, in three forms; the fastest is what every
other variant is held against."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.rules import plain_form
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.partials import is_registered
from tftune.kernels.runtime.plan import Steps

if TYPE_CHECKING:
    import torch

Call = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor"], None]


def bsp(shape: AllGatherGemm, workspace: Workspace, dtype: torch.dtype, form: str) -> Call:
    """A call (a, b, c) that computes C = all_gather(A) @ B; its buffers, one or two gathered A, are
    the workspace's."""
    return Steps(tuple(steps(shape, workspace, dtype, form).values()))


def steps(
    shape: AllGatherGemm, workspace: Workspace, dtype: torch.dtype, form: str
) -> dict[str, Call]:
    """The same, step by step: what is launched, in its order.

    A sharded along M arrives in place: [M/world, K] each, [M, K] together. Sharded along K it
    arrives as [world, M, K/world] and is copied to [M, K]; or each rank transposes its shard into
    its place of A^T [K, M], which is then gathered in place and multiplied transposed.
    """
    import torch
    import torch.distributed as dist

    registered = is_registered(form)
    m, k, world, columns = shape.m, shape.k, shape.world, shape.shard_columns

    def buffer(name: str, *size: int) -> torch.Tensor:
        tensor: torch.Tensor = workspace.buffer(name, size, dtype, registered=registered)
        return tensor

    def gather_into(gathered: torch.Tensor, own: torch.Tensor | None = None) -> Call:
        """From the first operand, or from `own`."""

        def gather(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
            sent = a if own is None else own
            dist.all_gather_into_tensor(gathered, sent, group=workspace.group)

        return gather

    def multiply(whole: torch.Tensor) -> Call:
        def gemm(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
            torch.matmul(whole, b.t() if shape.b_layout == "nk" else b, out=c)

        return gemm

    if plain_form(form) == "gather":
        gathered = buffer("gathered", m, k)
        return {"gather": gather_into(gathered), "gemm": multiply(gathered)}
    if plain_form(form) == "gather_copy":
        gathered = buffer("gathered", world * m, columns)
        whole = buffer("copied", m, world, columns)

        def copy(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
            whole.copy_(gathered.view(world, m, -1).transpose(0, 1))

        gemm = multiply(whole.view(m, k))
        return {"gather": gather_into(gathered), "copy": copy, "gemm": gemm}
    transposed = buffer("gathered", k, m)
    own = transposed[workspace.rank * columns : (workspace.rank + 1) * columns]

    def transpose(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        own.copy_(a.t())

    gemm = multiply(transposed.t())
    return {"transpose": transpose, "gather": gather_into(transposed, own), "gemm": gemm}
