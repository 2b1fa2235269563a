"""bsp: the vendor's GEMM, then the library's reduce-scatter; what every other variant is held
against."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.dtypes import torch_dtype
from tftune.kernels.core.partials import is_registered
from tftune.kernels.core.space import Config
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter

if TYPE_CHECKING:
    import torch


def bsp(
    shape: GemmReduceScatter, config: Config, workspace: Workspace
) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]:
    """A call (a, b, c) of a complete config, whose form says whether its buffer, the whole product
    of this rank, is registered with the library. With one rank the GEMM is the whole call."""
    import torch
    import torch.distributed as dist

    alone = shape.world == 1
    size = (0 if alone else shape.m, shape.n)
    dtype = torch_dtype(shape.dtype)
    registered = not alone and is_registered(config["form"])
    product = workspace.buffer("product", size, dtype, registered=registered)

    def call(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        weights = b.t() if shape.b_layout == "nk" else b
        if alone:
            torch.matmul(a, weights, out=c)
        else:
            torch.matmul(a, weights, out=product)
            dist.reduce_scatter_tensor(c, product, group=workspace.group)

    return call
