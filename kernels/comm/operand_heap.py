"""The part of a symmetric heap that `Workspace.empty` hands out: operands that peers read in
place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tftune.kernels.core.shape import check_kind

ALIGNMENT = 256
"""Bytes: every operand begins at a multiple of them, so that each load is a whole line of
memory."""


def aligned(size_bytes: int) -> int:
    """The next multiple of ALIGNMENT.

    >>> aligned(1), aligned(256)
    (256, 256)
    """
    return -(-size_bytes // ALIGNMENT) * ALIGNMENT


@dataclass
class OperandHeap:
    """Memory at the same place on every rank, handed out from its beginning on.

    Nothing is freed by itself: a tensor lives as long as the workspace, or until `clear`. What is
    asked for in the same order on every rank lies at the same place there, which nobody checks.
    """

    memory: Any = None
    """uint8 tensor over all of it; None where there is none."""
    taken_bytes: int = 0

    def __post_init__(self) -> None:
        self.begin = 0 if self.memory is None else int(self.memory.data_ptr())
        self.size_bytes = 0 if self.memory is None else int(self.memory.nbytes)

    def holds(self, tensor: Any) -> bool:
        """Whether a tensor begins here: one comparison, since every call asks."""
        return 0 <= tensor.data_ptr() - self.begin < self.size_bytes

    def empty(self, size: Sequence[int], dtype: Any) -> Any:
        """An uninitialised tensor; raises ValueError with both numbers where it does not fit, and
        for a size that no operand has."""
        import torch

        check_kind("dtype", dtype, torch.dtype, "one of torch, as in torch.bfloat16")
        check_kind("size", size, Sequence, "sizes of at least 1, as in (8, 64)")
        if not size or any(type(one) is not int or one < 1 for one in size):
            raise ValueError(f"size={size!r} must be integers of at least 1, as in (8, 64)")
        wanted = prod(size) * dtype.itemsize
        first = aligned(self.taken_bytes)
        if first + wanted > self.size_bytes:
            raise ValueError(
                f"an operand of {list(size)} has {wanted} bytes and the workspace's operands have "
                f"{max(0, self.size_bytes - first)} of {self.size_bytes} left; create it with "
                f"Workspace.create(group, payload_bytes, operand_bytes={first + wanted})"
            )
        self.taken_bytes = first + wanted
        return self.memory[first : first + wanted].view(dtype).view(*size)

    def clear(self) -> None:
        """Forget every tensor that was handed out: the next ones take their memory."""
        self.taken_bytes = 0
