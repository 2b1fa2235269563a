"""bsp_chunked: the vendor's GEMM on some rows of every owner, then on the next, while the library's
reduce-scatter sends the ones before; no fused kernel.

Who owns a tile: the library. C's rows come chunk after chunk. Who writes remotely: the library's
collective, on a side stream that follows the chunk's GEMM. Which flag says ready: none; a stream's
order does.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

from tftune.kernels.comm.copy_engine import SideStreams
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.dtypes import torch_dtype
from tftune.kernels.core.partials import is_registered
from tftune.kernels.core.space import Config
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter

if TYPE_CHECKING:
    import torch


def bsp_chunked(
    shape: GemmReduceScatter, config: Config, workspace: Workspace
) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]:
    """A call (a, b, c) of a complete config, whose form says whether its buffers, the products of
    all chunks, are registered with the library."""
    import torch
    import torch.distributed as dist

    world, rows, chunks = shape.world, shape.shard_rows, config["chunks"]
    bounds = list(pairwise(rows * number // chunks for number in range(chunks + 1)))
    dtype, registered = torch_dtype(shape.dtype), is_registered(config["form"])
    products = [
        workspace.buffer(f"product {number}", size, dtype, registered=registered)
        for number, size in enumerate((world, high - low, shape.n) for low, high in bounds)
    ]
    sides = SideStreams(workspace, 1)

    def call(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        weights = (b.t() if shape.b_layout == "nk" else b).expand(world, -1, -1)
        owners = a.view(world, rows, -1)
        for (low, high), product in zip(bounds, products, strict=True):
            torch.bmm(owners[:, low:high], weights, out=product)
            with sides.beside(0):
                sent = product.view(-1, shape.n)
                dist.reduce_scatter_tensor(c[low:high], sent, group=workspace.group)
        sides.join()

    return call
