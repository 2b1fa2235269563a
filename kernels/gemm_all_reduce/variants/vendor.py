"""vendor: the vendor's GEMM, then the kernel of all_reduce that `exchange` names.

Who owns a tile, who writes remotely, which flag says ready, why two generations suffice: as that
kernel says (`kernels.all_reduce.variants`). It follows the GEMM in stream order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tftune.kernels.all_reduce import host
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.dtypes import torch_dtype
from tftune.kernels.core.space import Config
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_all_reduce.exchange import exchange, summed
from tftune.kernels.runtime.compile import KernelSource

if TYPE_CHECKING:
    import torch

    from tftune.kernels.runtime.plan import Plan


def kernels(shape: GemmAllReduce, config: Config, arch: str) -> tuple[KernelSource, ...]:
    """The kernel that adds up the products."""
    return (host.source(summed(shape), exchange(config), arch),)


def vendor(shape: GemmAllReduce, config: Config, workspace: Workspace) -> Plan:
    """A call (a, b, c) of a complete config; the product that peers add is allocated here."""
    import torch

    product = workspace.buffer("product", (shape.m, shape.n), torch_dtype(shape.dtype))
    add_up = host.prepare(summed(shape), exchange(config), workspace)

    def call(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        torch.matmul(a, b.t() if shape.b_layout == "nk" else b, out=product)
        add_up(product, c)

    return call
