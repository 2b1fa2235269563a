"""The one formula of gemm_reduce_scatter, from torch.distributed, and the inputs that tests, checks
and benchmarks share; gemm_all_reduce has the same inputs and tolerance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tftune.kernels.core.dtypes import ROUNDING, torch_dtype
from tftune.kernels.core.row_parallel import RowParallel
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter

if TYPE_CHECKING:
    import torch


def make_inputs(
    shape: RowParallel, rank: int, seed: int, device: Any = "cpu"
) -> tuple[torch.Tensor, torch.Tensor]:
    """This rank's columns of A [M, K/world] and its part of B, [N, K/world] where b_layout is "nk",
    else [K/world, N]: random normal, B scaled by 1/sqrt(K), so that the sum is near 1."""
    import torch

    dtype = torch_dtype(shape.dtype)
    generator = torch.Generator(device=device).manual_seed(1_000_003 * seed + rank)
    exact = dict(generator=generator, device=device, dtype=torch.float32)
    a = torch.randn(shape.m, shape.inner, **exact)
    b_size = (shape.n, shape.inner) if shape.b_layout == "nk" else (shape.inner, shape.n)
    b = torch.randn(b_size, **exact) * shape.k**-0.5
    return a.to(dtype), b.to(dtype)


def make_output(shape: GemmReduceScatter, device: Any = "cpu") -> torch.Tensor:
    """An empty C [M/world, N] in the shape's dtype."""
    import torch

    return torch.empty(shape.shard_rows, shape.n, device=device, dtype=torch_dtype(shape.dtype))


def total(shape: RowParallel, a: torch.Tensor, b: torch.Tensor, group: Any) -> torch.Tensor:
    """The sum over ranks, [M, N]: products and sums in fp32, or in float64 on the CPU."""
    import torch
    import torch.distributed as dist

    weights = b.t() if shape.b_layout == "nk" else b
    exact = torch.float64 if a.device.type == "cpu" else torch.float32
    product = a.to(exact) @ weights.to(exact)
    dist.all_reduce(product, group=group)
    return product


def reference(
    shape: GemmReduceScatter, a: torch.Tensor, b: torch.Tensor, group: Any
) -> torch.Tensor:
    """This rank's rows of the sum, [M/world, N] in fp32."""
    import torch
    import torch.distributed as dist

    first = dist.get_rank(group) * shape.shard_rows
    rows = total(shape, a, b, group)[first : first + shape.shard_rows]
    return rows.to(torch.float32)


def tolerance(shape: RowParallel) -> float:
    """Largest admissible norm(C - reference) / norm(reference): what the library's own order costs.

    It rounds each of W partial products to the dtype, and the running sum W - 1 times, by at most
    half a unit in the last place each (2^-11 for fp16, 2^-8 for bf16). The partials are
    independent, of 1/sqrt(W) of the sum's size, and after i of them the sum has sqrt(i/W) of it: in
    the root mean square, one unit for the products and sqrt((W + 1) / 2) for the sums. fp32 sums
    over K add about sqrt(K) 2^-24.
    """
    unit = ROUNDING[shape.dtype]
    return unit * (1 + ((shape.world + 1) / 2) ** 0.5) + 2 * shape.k**0.5 * 2.0**-24
