"""The one formula of merge_attention, from torch.distributed, and the inputs that tests, checks and
benchmarks share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tftune.kernels.core.dtypes import ROUNDING, torch_dtype
from tftune.kernels.merge_attention import MergeAttention

if TYPE_CHECKING:
    import torch

EMPTY_SEED = 1
"""Inputs of this seed have ranks without tokens: none of sequence 0 on rank 0, whose lse is -inf
and whose o is NaN, and none of sequence 2 anywhere, lse being -inf, +inf and NaN in turn."""
LARGE_SEED = 2
"""Log-sum-exps of this seed are so large that their powers overflow fp32."""


def make_inputs(
    shape: MergeAttention, rank: int, seed: int, device: Any = "cpu"
) -> tuple[torch.Tensor, ...]:
    """This rank's o and lse: rows random normal, log-sum-exps so far apart that ranks weigh
    differently."""
    import torch

    own = torch.Generator(device=device).manual_seed(1_000_003 * seed + 1 + rank)
    size = (shape.batch, shape.heads, shape.head_dim)
    o = torch.randn(size, generator=own, device=device).to(torch_dtype(shape.dtype))
    lse = 5 + 2 * torch.randn(size[:2], generator=own, device=device)
    lse += 500 * (seed == LARGE_SEED)
    if seed == EMPTY_SEED:
        if rank == 0:
            lse[0], o[0] = -torch.inf, torch.nan
        lse[2:3] = (-torch.inf, torch.inf, torch.nan)[rank % 3]
        o[2:3] = torch.nan
    return o, lse


def make_output(shape: MergeAttention, device: Any = "cpu") -> torch.Tensor:
    """An empty output [batch, own heads, head_dim] in the shape's dtype."""
    import torch

    size = (shape.batch, shape.own_heads, shape.head_dim)
    return torch.empty(size, device=device, dtype=torch_dtype(shape.dtype))


def reference(
    shape: MergeAttention, o: torch.Tensor, lse: torch.Tensor, group: Any
) -> torch.Tensor:
    """This rank's output [batch, own heads, head_dim] in fp32; computed in float64 on the CPU, in
    fp32 elsewhere."""
    import torch
    import torch.distributed as dist

    exact = torch.float64 if o.device.type == "cpu" else torch.float32
    power = torch.exp if shape.base == "e" else torch.exp2
    there = lse.isfinite()
    known = torch.where(there, lse, -torch.inf).to(exact)
    top = known.clone()
    dist.all_reduce(top, dist.ReduceOp.MAX, group=group)
    weights = power(known - torch.where(top.isfinite(), top, 0.0))
    total = weights.clone()
    out = torch.where(there.unsqueeze(-1), o.to(exact) * weights.unsqueeze(-1), 0.0)
    dist.all_reduce(total, group=group)
    dist.all_reduce(out, group=group)
    result = torch.where(total.unsqueeze(-1) > 0, out / total.unsqueeze(-1), 0.0)
    first = dist.get_rank(group) * shape.own_heads if shape.output == "heads" else 0
    return result[:, first : first + shape.own_heads].to(torch.float32)


def tolerance(shape: MergeAttention) -> float:
    """Largest admissible norm(out - reference) / norm(reference): one rounding of the result to its
    dtype, by at most half a unit in the last place, 2^-11 for fp16 and 2^-8 for bf16 (IEEE 754,
    bfloat16); as much again is for fp32 exponentials and sums."""
    return 2 * ROUNDING[shape.dtype]
