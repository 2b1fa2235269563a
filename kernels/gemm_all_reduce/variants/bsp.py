"""bsp: the vendor's GEMM, then an all-reduce of a library; what every other variant is held
against."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core import engine_all_reduce
from tftune.kernels.core.dtypes import torch_dtype
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.runtime.plan import Steps

if TYPE_CHECKING:
    import torch

Call = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor"], None]


def bsp(shape: GemmAllReduce, workspace: Workspace, form: str) -> Call:
    """A call (a, b, c). The forms over symmetric memory are prepared by every rank alike, as
    `symmetric_buffer` is collective. With one rank the GEMM is the whole call."""
    return Steps(tuple(steps(shape, workspace, form).values()))


def steps(shape: GemmAllReduce, workspace: Workspace, form: str) -> dict[str, Call]:
    """The same, step by step: what is launched, in its order."""
    if form == engine_all_reduce.FORM:
        return _engine(shape, workspace)
    return _library(shape, workspace) if form == "library" else _symmetric(shape, workspace, form)


def _library(shape: GemmAllReduce, workspace: Workspace) -> dict[str, Call]:
    """The sum takes the place of this rank's product."""
    import torch
    import torch.distributed as dist

    def gemm(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        torch.matmul(a, _weights(shape, b), out=c)

    def reduce(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        dist.all_reduce(c, group=workspace.group)

    steps: dict[str, Call] = {"gemm": gemm, "reduce": reduce}
    return steps if shape.world > 1 else {"gemm": gemm}


def _symmetric(shape: GemmAllReduce, workspace: Workspace, form: str) -> dict[str, Call]:
    """The GEMM writes where peers can read, so that nothing is copied."""
    import torch

    from tftune.kernels.all_reduce.variants.bsp import symmetric_buffer

    size = (shape.m, shape.n)
    product, name = symmetric_buffer(workspace, size, torch_dtype(shape.dtype))
    ops = torch.ops.symm_mem
    sum_into = ops.one_shot_all_reduce_out if form == "one_shot" else ops.two_shot_all_reduce_out

    def gemm(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        torch.matmul(a, _weights(shape, b), out=product)

    def reduce(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        sum_into(product, "sum", name, c)

    return {"gemm": gemm, "reduce": reduce}


def _engine(shape: GemmAllReduce, workspace: Workspace) -> dict[str, Call]:
    """The engine's all-reduce reads this rank's product, and writes elsewhere."""
    import torch

    product = workspace.buffer("product", (shape.m, shape.n), torch_dtype(shape.dtype))
    sum_into = engine_all_reduce.all_reduce(workspace.group)

    def gemm(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        torch.matmul(a, _weights(shape, b), out=product)

    def reduce(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        sum_into(product, c)

    return {"gemm": gemm, "reduce": reduce}


def _weights(shape: GemmAllReduce, b: torch.Tensor) -> torch.Tensor:
    return b.t() if shape.b_layout == "nk" else b
