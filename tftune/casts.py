"""What torch asks of an operator: how many FLOPs a call has, for `torch.utils.flop_counter`, and
which dtype autocast casts its operands to. As of `aten.mm` and torch's attention, of one rank's
work; reductions and merges count none there, and none here."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry, register_flop_formula

from tftune.kernels.comm.workspace import Workspace
from tftune.operator import LIBRARY


def _gathered(a: Any, b: Any, workspace: str, shard: str, *rest: Any, **named: Any) -> int:
    """2 M N K of a gathered A."""
    ranks = Workspace.of(workspace).world if shard == "m" else 1
    return int(2 * a[0] * ranks * prod(b))


def _reduced(a: Any, b: Any, *rest: Any, **named: Any) -> int:
    """2 M N K of this rank's columns of A."""
    return int(2 * a[0] * prod(b))


def _decoded(q: Any, k: Any, v: Any, _: Any, at: str, table: Any, *rest: Any, **named: Any) -> int:
    """4 q_heads head_dim for each token that the cache of this rank can hold; how many it holds is
    in device memory."""
    tokens = q[0] * k[1] if table is None else prod(table) * k[1]
    return int(4 * tokens * q[1] * q[2])


def _attended(q: Any, *rest: Any, **named: Any) -> int:
    """4 seq_len^2 head_dim for each head and sequence; torch counts masked scores, too."""
    return int(4 * prod(q) * q[1])


def _none(*given: Any, **named: Any) -> int:
    return 0


OPERATORS: dict[str, tuple[Callable[..., int], int]] = {
    "all_gather_gemm": (_gathered, 2),
    "all_gather_gemm_with_gathered": (_gathered, 2),
    "gemm_reduce_scatter": (_reduced, 2),
    "gemm_all_reduce": (_reduced, 2),
    "flash_decode": (_decoded, 3),
    "flash_prefill": (_attended, 3),
    "all_reduce": (_none, 0),
    "merge_attention": (_none, 0),
    "gather": (_none, 0),
}
"""The FLOPs of a call, and how many of its first operands autocast casts, as torch does for its own
GEMMs and attention. A sum and a merge run as they are: a log-sum-exp stays in fp32."""


def register() -> None:
    """Tell torch, once the operators are defined."""
    for name, (flops, casts) in OPERATORS.items():
        packet = getattr(torch.ops.tftune, name)
        if packet not in flop_registry:
            register_flop_formula(packet)(flops)
        for device in ("cuda", "cpu") if casts else ():
            key = f"Autocast{torch._C._dispatch_key_for_device(device)}"
            LIBRARY.impl(name, _lowered(packet.default, device, key, casts), key)


def _lowered(operator: Any, device: str, key: str, count: int) -> Any:
    """The operator, behind casts of its first operands: of what is floating point and of no more
    than 32 bits."""
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))

    def lowered(*given: Any) -> Any:
        dtype = torch.get_autocast_dtype(device)
        with torch._C._ExcludeDispatchKeyGuard(keys):
            cast = (_cast(one, dtype, device) for one in given[:count])
            return operator(*cast, *given[count:])

    return lowered


def _cast(tensor: torch.Tensor, dtype: torch.dtype, device: str) -> torch.Tensor:
    eligible = tensor.is_floating_point() and tensor.dtype is not torch.float64
    return tensor.to(dtype) if eligible and tensor.device.type == device else tensor
