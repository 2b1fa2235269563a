"""What torch asks of an operator that multiplies matrices: how many FLOPs a call has, for
`torch.utils.flop_counter`, and which dtype autocast casts its operands to. As of `aten.mm`, of one
rank's work."""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry, register_flop_formula

from tftune.kernels.comm.workspace import Workspace

GEMMS = (
    "all_gather_gemm",
    "all_gather_gemm_with_gathered",
    "gemm_reduce_scatter",
    "gemm_all_reduce",
)
"""Operators that autocast runs in lower precision. An all-reduce runs as it is, as torch's does."""
_LIBRARY = torch.library.Library("tftune", "FRAGMENT")


def register() -> None:
    """Tell torch, once the operators are defined."""
    for name in GEMMS:
        packet = getattr(torch.ops.tftune, name)
        if packet not in flop_registry:
            register_flop_formula(packet)(_gathered if "gather_" in name else _reduced)
        for device in ("cuda", "cpu"):
            key = f"Autocast{torch._C._dispatch_key_for_device(device)}"
            _LIBRARY.impl(name, _lowered(packet.default, device, key), key)


def _gathered(a: Any, b: Any, workspace: str, shard: str, *rest: Any, **named: Any) -> int:
    """2 M N K of a gathered A."""
    ranks = Workspace.of(workspace).world if shard == "m" else 1
    return int(2 * a[0] * ranks * prod(b))


def _reduced(a: Any, b: Any, *rest: Any, **named: Any) -> int:
    """2 M N K of this rank's columns of A."""
    return int(2 * a[0] * prod(b))


def _lowered(operator: Any, device: str, key: str) -> Any:
    """The operator, behind casts of what is floating point and of no more than 32 bits."""
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))

    def lowered(a: torch.Tensor, b: torch.Tensor, *words: Any) -> Any:
        dtype = torch.get_autocast_dtype(device)
        with torch._C._ExcludeDispatchKeyGuard(keys):
            return operator(*(_cast(one, dtype, device) for one in (a, b)), *words)

    return lowered


def _cast(tensor: torch.Tensor, dtype: torch.dtype, device: str) -> torch.Tensor:
    eligible = tensor.is_floating_point() and tensor.dtype is not torch.float64
    return tensor.to(dtype) if eligible and tensor.device.type == device else tensor
