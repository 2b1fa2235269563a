"""Checks of a call that cost it a synchronisation: whether ranks call the same, and whether lengths
fit the cache. For a job that is being set up, by TFTUNE_CHECK=1."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.shape import Shape

VARIABLE = "TFTUNE_CHECK"


def checked(plan: Callable[..., None], shape: Shape, workspace: Workspace) -> Callable[..., None]:
    """The plan, whose calls are checked from now on where the variable asks for it. It is read
    where a plan is made, so that no call pays for it otherwise. What a capture records is not
    checked: it cannot wait."""
    if not _wanted():
        return plan
    exchanges = shape.EXCHANGES and workspace.world > 1

    def call(*operands: Any) -> None:
        if not _capturing(workspace):
            if exchanges:
                check_agreement(f"{shape.op} of {shape}", workspace)
            if shape.op == "flash_decode":
                check_lengths(operands[3], shape)
        plan(*operands)

    return call


def check_empty(op: str, workspace: Workspace) -> None:
    """The same check for a call without rows, which has no plan: peers with rows wait for it."""
    if workspace.world > 1 and _wanted() and not _capturing(workspace):
        check_agreement(f"{op} of no rows", workspace)


def check_agreement(asked: str, workspace: Workspace) -> None:
    """Raise ValueError, on every rank, where they ask for different operations or sizes.
    Collective: a rank that does not call leaves the others in the group's timeout, which names the
    group."""
    every = [""] * workspace.world
    dist.all_gather_object(every, asked, group=workspace.group)
    for rank, other in enumerate(every):
        if other != every[0]:
            raise ValueError(
                f"rank {rank} calls {other}, and rank 0 calls {every[0]}; give every rank the same "
                "sizes: pad what does not divide"
            )


def check_lengths(lengths: torch.Tensor, shape: Any) -> None:
    """Raise ValueError where a sequence has fewer than no tokens, or more than the cache holds.
    Waits for the device."""
    least, most = torch.aminmax(lengths)
    if least < 0 or most > shape.kv_len:
        raise ValueError(
            f"lengths are {int(least)} to {int(most)}, and this rank's cache holds 0 to "
            f"{shape.kv_len} tokens of a sequence; give the tokens that lie on this rank"
        )


def check_first_lengths(operands: tuple[Any, ...], shape: Shape) -> None:
    """The same where a plan is made, which checks and compiles; a capture cannot wait."""
    lengths = operands[3]
    if not (lengths.is_cuda and torch.cuda.is_current_stream_capturing()):
        check_lengths(lengths, shape)


def _wanted() -> bool:
    return os.environ.get(VARIABLE, "") not in ("", "0")


def _capturing(workspace: Workspace) -> bool:
    return workspace.device.type == "cuda" and torch.cuda.is_current_stream_capturing()
