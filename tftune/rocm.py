"""What an AMD node lacks before tftune can measure on it: the sentences of `tftune doctor`, each
with what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from shutil import disk_usage

KFD, RENDER, SHARED = "dev/kfd", "dev/dri", "dev/shm"
SHARED_BYTES = 1 << 28
"""Ranks meet in shared memory, and RCCL keeps its rings there."""


def problems(root: Path = Path("/"), hip: str | None = "ask torch") -> Iterator[str]:
    """Nothing where no AMD GPU driver is. `root`: of the file system; `hip`: the ROCm version that
    torch was built for."""
    if not (root / "sys/module/amdgpu").exists():
        return
    if not (root / KFD).exists():
        devices = f"--device=/{KFD} --device=/{RENDER}"
        yield f"the amdgpu driver is loaded but there is no /{KFD}: in a container, give {devices}"
    elif not os.access(root / KFD, os.R_OK | os.W_OK):
        groups = "add this user to the groups render and video (containers: --group-add)"
        yield f"/{KFD} cannot be opened: {groups}"
    if (hip := _hip() if hip == "ask torch" else hip) is None:
        yield (
            "there are AMD GPUs but no torch for ROCm: take AMD's container or wheels, and install "
            "tftune as '.[tune]', not [cuda]"
        )
    if (root / SHARED).exists() and (size := disk_usage(root / SHARED).free) < SHARED_BYTES:
        need = f"ranks need {SHARED_BYTES >> 20}: in a container, give --ipc=host or --shm-size=1g"
        yield f"/{SHARED} has {size >> 20} MB free and {need}"


def _hip() -> str | None:
    if find_spec("torch") is None:
        return None
    import torch

    return torch.version.hip
