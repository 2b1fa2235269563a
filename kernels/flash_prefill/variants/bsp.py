"""bsp: torch's `scaled_dot_product_attention`, by the backend that it picks or by a named one.

There is nothing to exchange and nothing to fuse: the name stands for the library's form, as in
every operation.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from tftune.kernels.flash_prefill import FlashPrefill
from tftune.kernels.runtime.plan import Returning

if TYPE_CHECKING:
    import torch


def bsp(shape: FlashPrefill, backend: str) -> Returning:
    """A call (q, k, v, out). The library has no argument for its output."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backends = {
        "flash": SDPBackend.FLASH_ATTENTION,
        "cudnn": SDPBackend.CUDNN_ATTENTION,
        "efficient": SDPBackend.EFFICIENT_ATTENTION,
    }
    attention = torch.nn.functional.scaled_dot_product_attention
    options: Any = {"is_causal": shape.is_causal, "enable_gqa": shape.group > 1}

    def compute(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        chosen: Any = nullcontext() if backend == "auto" else sdpa_kernel(backends[backend])
        with chosen:  # the library takes heads before tokens, of any strides
            out = attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), **options)
        return out.transpose(1, 2).contiguous()

    return Returning(compute)
