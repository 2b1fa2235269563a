"""The one formula of flash_prefill, and the inputs that tests, checks and benchmarks share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tftune.kernels.core.dtypes import ROUNDING, torch_dtype
from tftune.kernels.flash_prefill import FlashPrefill

if TYPE_CHECKING:
    import torch

SCORES = 1 << 26
"""Scores of one head that the reference has in memory at a time."""


def make_inputs(
    shape: FlashPrefill, rank: int, seed: int, device: Any = "cpu"
) -> tuple[torch.Tensor, ...]:
    """q [batch, seq_len, q_heads, head_dim], k and v [batch, seq_len, kv_heads, head_dim], random
    normal, as the host function takes them."""
    import torch

    dtype = torch_dtype(shape.dtype)
    own = torch.Generator(device=device).manual_seed(1_000_003 * seed + 1 + rank)

    def normal(heads: int) -> torch.Tensor:
        size = (shape.batch, shape.seq_len, heads, shape.head_dim)
        if torch.device(device).type != "cpu":
            return torch.randn(size, generator=own, device=device, dtype=dtype)
        return torch.randn(size, generator=own).to(dtype)

    return normal(shape.q_heads), normal(shape.kv_heads), normal(shape.kv_heads)


def make_output(shape: FlashPrefill, device: Any = "cpu") -> torch.Tensor:
    """An empty output [batch, seq_len, q_heads, head_dim] in the shape's dtype."""
    import torch

    size = (shape.batch, shape.seq_len, shape.q_heads, shape.head_dim)
    return torch.empty(size, device=device, dtype=torch_dtype(shape.dtype))


def reference(
    shape: FlashPrefill, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, group: Any
) -> torch.Tensor:
    """The output in fp32, head by head; in float64 on the CPU, fp32 elsewhere."""
    import torch

    exact = torch.float64 if q.device.type == "cpu" else torch.float32
    out = torch.empty(q.shape, dtype=torch.float32, device=q.device)
    rows = max(1, SCORES // shape.seq_len)
    tokens = torch.arange(shape.seq_len, device=q.device)
    for sequence in range(shape.batch):
        for head in range(shape.q_heads):
            keys, values = (one[sequence, :, head // shape.group].to(exact) for one in (k, v))
            for some in tokens.split(rows):
                queries = q[sequence, some, head].to(exact) * shape.head_dim**-0.5
                scores = queries @ keys.T
                if shape.is_causal:
                    scores.masked_fill_(tokens > some[:, None], -torch.inf)
                out[sequence, some, head] = (scores.softmax(-1) @ values).to(torch.float32)
    return out


def tolerance(shape: FlashPrefill) -> float:
    """Largest admissible norm(out - reference) / norm(reference) of a row: one rounding of the
    result to its dtype and one of each weight, as in flash_decode."""
    return 2 * ROUNDING[shape.dtype]
