"""The one formula of all_sum."""

from __future__ import annotations

from typing import Any

from tftune.kernels.core.dtypes import ROUNDING, torch_dtype

from . import AllSum


def make_inputs(shape: AllSum, rank: int, seed: int, device: Any = "cpu") -> tuple[Any]:
    import torch

    generator = torch.Generator(device=device).manual_seed(1_000_003 * seed + rank)
    return (
        torch.randn(shape.m, shape.n, generator=generator, device=device).to(
            torch_dtype(shape.dtype)
        ),
    )


def make_output(shape: AllSum, device: Any = "cpu") -> Any:
    import torch

    return torch.empty(shape.m, shape.n, device=device, dtype=torch_dtype(shape.dtype))


def reference(shape: AllSum, x: Any, group: Any) -> Any:
    """The sum in fp32."""
    import torch
    import torch.distributed as dist

    total = x.to(torch.float32)
    dist.all_reduce(total, group=group)
    return total


def tolerance(shape: AllSum) -> float:
    """One rounding of each partial sum of the library's, which adds in the dtype."""
    return float(shape.world * ROUNDING[shape.dtype])
