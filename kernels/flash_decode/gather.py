"""The facts of a rank's lengths, gathered on the device by one small kernel."""

from __future__ import annotations

import torch

from tftune.kernels.core.shape import check_kind
from tftune.kernels.device.facts import facts_kernel
from tftune.kernels.flash_decode.lengths import Facts

BLOCK = 256
"""Sequences that are looked at together."""


def gather_facts(lengths: torch.Tensor) -> Facts:
    """The facts of these lengths, int32 [batch], tokens of each sequence on this rank.

    On a GPU it runs one kernel, copies three numbers and waits for them: everything queued on the
    stream comes first. It cannot be captured. An engine that has the lengths on its host makes
    `tftune.Facts` there, and waits for nothing. Raises ValueError for other tensors::

        lengths = torch.tensor([4096, 17, 0], dtype=torch.int32)
        assert tftune.ops.gather_facts(lengths) == tftune.Facts(total=4113, longest=4096, empty=1)
    """
    check_kind("lengths", lengths, torch.Tensor, "a tensor int32 [batch]")
    if lengths.dim() != 1 or lengths.dtype != torch.int32:
        raise ValueError(
            f"lengths is {lengths.dtype} {list(lengths.shape)}; it must be int32 [batch]"
        )
    if lengths.device.type != "cuda" and not hasattr(facts_kernel, "interpreter_builder"):
        return Facts.of(lengths.tolist())
    found = torch.empty(3, dtype=torch.int64, device=lengths.device)
    facts_kernel[(1,)](lengths.contiguous(), found, len(lengths), BLOCK=BLOCK)
    return Facts(*found.tolist())
