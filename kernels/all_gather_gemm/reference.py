"""The one formula of all_gather_gemm, from torch.distributed, and the inputs that tests, checks and
benchmarks share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.dtypes import ROUNDING, torch_dtype

if TYPE_CHECKING:
    import torch


def make_inputs(
    shape: AllGatherGemm, rank: int, seed: int, device: Any = "cpu"
) -> tuple[torch.Tensor, torch.Tensor]:
    """This rank's shard of A and its own B: random normal, so that clocks and rounding are those of
    real data.

    A [shard_rows, shard_columns]; B [K, N], or [N, K] where b_layout is "nk". B is scaled by
    1/sqrt(K), so that C is near 1.
    """
    import torch

    dtype = torch_dtype(shape.dtype)
    generator = torch.Generator(device=device).manual_seed(1_000_003 * seed + rank)
    exact = dict(generator=generator, device=device, dtype=torch.float32)
    a = torch.randn(shape.shard_rows, shape.shard_columns, **exact)
    b_size = (shape.n, shape.k) if shape.b_layout == "nk" else (shape.k, shape.n)
    b = torch.randn(b_size, **exact) * shape.k**-0.5
    return a.to(dtype), b.to(dtype)


def make_output(shape: AllGatherGemm, device: Any = "cpu") -> torch.Tensor:
    """An empty C[M,N] in the shape's dtype."""
    import torch

    return torch.empty(shape.m, shape.n, device=device, dtype=torch_dtype(shape.dtype))


def reference(shape: AllGatherGemm, a: torch.Tensor, b: torch.Tensor, group: Any) -> torch.Tensor:
    """C[M,N] in fp32: all_gather(A) @ B, products and sums in at least fp32 (float64 on the
    CPU)."""
    import torch
    import torch.distributed as dist

    shards = [torch.empty_like(a) for _ in range(shape.world)]
    dist.all_gather(shards, a, group=group)
    gathered = torch.cat(shards, dim=1 if shape.shard == "k" else 0)
    weights = b.t() if shape.b_layout == "nk" else b
    exact = torch.float64 if a.device.type == "cpu" else torch.float32
    return (gathered.to(exact) @ weights.to(exact)).to(torch.float32)


def tolerance(shape: AllGatherGemm) -> float:
    """Largest admissible norm(C - reference) / norm(reference): one rounding of the result to its
    dtype.

    Rounding to nearest errs by at most half a unit in the last place, 2^-11 for fp16 and 2^-8 for
    bf16 (IEEE 754, bfloat16), and fp32 sums over K add about sqrt(K) 2^-24; twice the sum leaves
    room for the order of the sums, none for fp16 accumulation.
    """
    unit = ROUNDING[shape.dtype]
    return unit + 2 * shape.k**0.5 * 2.0**-24
