"""bsp: the vendor's GEMM, then an all-reduce of a library; what every other variant is held
against."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core import engine_all_reduce
from tftune.kernels.core.dtypes import torch_dtype
from tftune.kernels.core.space import Config
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.runtime.plan import Steps

if TYPE_CHECKING:
    import torch

Call = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor"], None]


def bsp(shape: GemmAllReduce, config: Config, workspace: Workspace) -> Call:
    """A call (a, b, c). The forms over symmetric memory are prepared by every rank alike, as
    `symmetric_buffer` is collective. With one rank the GEMM is the whole call."""
    return Steps(tuple(steps(shape, workspace, str(config["form"])).values()))


def steps(shape: GemmAllReduce, workspace: Workspace, form: str) -> dict[str, Call]:
    """The same, step by step: what is launched, in its order.

    The library's sum takes the place of this rank's product. For torch's forms the GEMM writes
    where peers can read, so that nothing is copied. The engine's all-reduce reads the product, and
    writes elsewhere.
    """
    import torch
    import torch.distributed as dist

    size, dtype = (shape.m, shape.n), torch_dtype(shape.dtype)
    product: torch.Tensor | None = None
    if form == engine_all_reduce.FORM:
        product = workspace.buffer("product", size, dtype)
        engine_sum = engine_all_reduce.all_reduce(workspace.group)
    elif form != "library":
        from tftune.kernels.all_reduce.variants.bsp import symmetric_buffer

        product, name = symmetric_buffer(workspace, size, dtype)
        ops = torch.ops.symm_mem
        one_shot = form == "one_shot"
        torch_sum = ops.one_shot_all_reduce_out if one_shot else ops.two_shot_all_reduce_out

    def gemm(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        weights = b.t() if shape.b_layout == "nk" else b
        torch.matmul(a, weights, out=c if product is None else product)

    def reduce(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        if product is None:
            dist.all_reduce(c, group=workspace.group)
        elif form == engine_all_reduce.FORM:
            engine_sum(product, c)
        else:
            torch_sum(product, "sum", name, c)

    steps: dict[str, Call] = {"gemm": gemm, "reduce": reduce}
    return {"gemm": gemm} if product is None and shape.world == 1 else steps
