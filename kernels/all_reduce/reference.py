"""The one formula of all_reduce, from torch.distributed, and the inputs that tests, checks and
benchmarks share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tftune.kernels.all_reduce import EPSILON, AllReduce
from tftune.kernels.core.dtypes import ROUNDING, torch_dtype

if TYPE_CHECKING:
    import torch


def make_inputs(
    shape: AllReduce, rank: int, seed: int, device: Any = "cpu"
) -> tuple[torch.Tensor, ...]:
    """This rank's x, random normal; where rows are normalised residual and weight, too, which are
    the same on every rank."""
    import torch

    dtype = torch_dtype(shape.dtype)
    shared = torch.Generator(device=device).manual_seed(1_000_003 * seed)
    own = torch.Generator(device=device).manual_seed(1_000_003 * seed + 1 + rank)
    x = torch.randn(shape.m, shape.n, generator=own, device=device).to(dtype)
    if not shape.normed:
        return (x,)
    residual = torch.randn(shape.m, shape.n, generator=shared, device=device).to(dtype)
    weight = 1 + 0.1 * torch.randn(shape.n, generator=shared, device=device)
    return x, residual, weight.to(dtype)


def make_output(shape: AllReduce, device: Any = "cpu") -> torch.Tensor:
    """An empty result in the shape's dtype: out [m, n]; with norm "rms" [2, m, n], out and
    new_residual."""
    import torch

    size = (2, shape.m, shape.n) if shape.normed else (shape.m, shape.n)
    return torch.empty(size, device=device, dtype=torch_dtype(shape.dtype))


def reference(
    shape: AllReduce, x: torch.Tensor, *operands: Any, eps: float = EPSILON
) -> torch.Tensor:
    """The result in fp32 without a rounding in between, in the layout of `make_output`; in float64
    on the CPU, fp32 elsewhere. operands: residual and weight where rows are normalised, then the
    group."""
    import torch
    import torch.distributed as dist

    *given, group = operands
    total = x.to(torch.float64 if x.device.type == "cpu" else torch.float32)
    dist.all_reduce(total, group=group)
    if not shape.normed:
        return total.to(torch.float32)
    residual, weight = (operand.to(total.dtype) for operand in given)
    added = total + residual
    scale = torch.rsqrt(added.square().mean(dim=-1, keepdim=True) + eps)
    return torch.stack((added * scale * weight, added)).to(torch.float32)


def tolerance(shape: AllReduce) -> float:
    """Largest admissible norm(result - reference) / norm(reference) of a row, by units of half the
    last place: 2^-11 for fp16 and 2^-8 for bf16.

    A library that adds in the dtype rounds world - 1 sums. A norm rounds three more values: the
    added residual, the scaled row and its product with the weight. These roundings are independent,
    so their squares add up. Variants with fp32 sums round one sum and stay well below.
    """
    roundings = shape.world + (3 if shape.normed else 0)
    return float(ROUNDING[shape.dtype] * roundings**0.5)
