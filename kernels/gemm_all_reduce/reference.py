"""The one formula of gemm_all_reduce, from torch.distributed, and the inputs that tests, checks and
benchmarks share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tftune.kernels.core.dtypes import torch_dtype
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_reduce_scatter.reference import make_inputs, tolerance, total

if TYPE_CHECKING:
    import torch

__all__ = ["make_inputs", "make_output", "reference", "tolerance"]


def make_output(shape: GemmAllReduce, device: Any = "cpu") -> torch.Tensor:
    """An empty C [M, N] in the shape's dtype."""
    import torch

    return torch.empty(shape.m, shape.n, device=device, dtype=torch_dtype(shape.dtype))


def reference(shape: GemmAllReduce, a: torch.Tensor, b: torch.Tensor, group: Any) -> torch.Tensor:
    """The sum over ranks, [M, N] in fp32."""
    import torch

    return total(shape, a, b, group).to(torch.float32)
