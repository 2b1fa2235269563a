"""A workspace of rank 0 whose peers are never asked: for what is refused before a launch, and for
launches that are only noted."""

from __future__ import annotations

from typing import Any

import torch

from tftune.kernels.comm.workspace import Workspace


def lone(
    world: int = 2,
    generation_bytes: int = 4096,
    arch: str = "interpreter",
    units: int = 4,
    device: torch.device | str = "cpu",
    bases: Any = None,
    **more: Any,
) -> Workspace:
    return Workspace(
        0, world, arch, units, torch.device(device), None, 0, 0, bases, bases, generation_bytes,
        None, **more,
    )  # fmt: skip
