"""bsp: a split-K decode, a kernel that adds up its splits, the library's collective, and a kernel
that merges what all ranks sent.

No library offers the decode to this package, so both local kernels are those of the other variants.
One split needs no adding up, and one collective carries partial results and log-sum-exps together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tftune.kernels.flash_decode.variants.launches import Launch, local, merge

if TYPE_CHECKING:
    import torch


def bsp(kv_splits: int) -> tuple[Launch, ...]:
    """The kernels of a call; the collective comes before the last."""
    return *local(kv_splits), Launch(merge, {"INBOX": False, "WAIT": False})


def collective(
    output: str, messages: torch.Tensor, received: torch.Tensor, group: Any
) -> Callable[[], Any]:
    """A call that moves messages, fp32, from each rank's `messages` into the `received` of every
    owner: an all-gather of the one message or, where each rank gets its own heads, an
    all-to-all."""
    import torch.distributed as dist

    move = dist.all_gather_into_tensor if output == "all" else dist.all_to_all_single
    return lambda: move(received, messages, group=group)
