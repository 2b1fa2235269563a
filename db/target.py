"""The fingerprint of a machine and of the software on it: what must agree before a measured time means anything here."""

from __future__ import annotations

import csv
import json
import platform
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tftune.kernels.chips import CHIPS, Chip

SMI_TIMEOUT_S = 10.0

_DISTRIBUTIONS = {
    "tftune": ("tftune",),
    "torch": ("torch",),
    "triton": ("triton", "pytorch-triton-rocm", "triton-rocm"),
    "iris": ("tokenspeed-iris", "iris"),
}
"""Names under which each is installed: torch for ROCm brings its own Triton, and Iris for ROCm comes from its repository."""

_DEVICES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""What the drivers of NVIDIA and AMD leave in /dev, the last under WSL: to see without torch that there is no GPU."""

_NVIDIA_QUERY = {
    "clocks.sm": "sm_mhz",
    "clocks.mem": "memory_mhz",
    "clocks.max.sm": "max_sm_mhz",
    "temperature.gpu": "celsius",
    "power.draw": "watts",
    "power.limit": "limit_watts",
}
_AMD_FIELDS = ("clock", "temperature", "power")


@dataclass(frozen=True)
class Target:
    """A machine: one kind of GPU, and how many of them.

    >>> Target.parse("h200x8").gpus
    8
    """

    name: str
    """As written: `h200x8`, `mi300x8`."""
    chip: Chip
    gpus: int

    @classmethod
    def of(cls, chip: Chip, gpus: int) -> Target:
        """The target of that many GPUs; eight MI300X are `mi300x8`, the x being written once."""
        if gpus < 1:
            raise ValueError(f"a target needs at least 1 GPU, not {gpus}")
        return cls(f"{chip.name.removesuffix('x')}x{gpus}", chip, gpus)

    @classmethod
    def parse(cls, text: str) -> Target:
        """The target written as `<chip>x<number>`; raises ValueError listing the known chips."""
        for chip in CHIPS.values():
            if match := re.fullmatch(rf"{chip.name.removesuffix('x')}x([1-9][0-9]*)", text):
                return cls.of(chip, int(match[1]))
        raise ValueError(f"{text!r} is no target; write <chip>x<number of GPUs>, as in h200x8 or mi300x8; the chips are {', '.join(CHIPS)}")

    def __str__(self) -> str:
        return self.name


def detect() -> Target:
    """The target that this process sees, by torch. Raises ValueError where there is no GPU, or one that tftune does not know."""
    if find_spec("torch") is None:
        raise ValueError(
            "no GPU can be seen, as torch is not installed; install it, or without a GPU: search --on model, select --target NAME"
        )
    import torch

    if not torch.cuda.is_available():
        raise ValueError(f"torch {torch.__version__} sees no GPU on this machine; without one: search --on model, select --target NAME")
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    if len(set(names)) > 1:
        raise ValueError(
            f"this machine has GPUs of {len(set(names))} kinds ({', '.join(sorted(set(names)))}); show torch those of one kind"
        )
    return Target.of(_chip(names[0]), len(names))


def _chip(gpu_name: str) -> Chip:
    for chip in CHIPS.values():
        if any(part in gpu_name for part in chip.gpu_names):
            return chip
    known = ", ".join(part for chip in CHIPS.values() for part in chip.gpu_names)
    raise ValueError(
        f"the GPU {gpu_name!r} is not one that tftune knows ({known}); add its constants to kernels/chips.py, or use --on model"
    )


@dataclass(frozen=True)
class Machine:
    """What this process runs on: what the times of an artifact are held against."""

    target: str
    """Its name, or in words where tftune has no target for it."""
    arch: str
    """`sm_90`, `gfx942`, as the GPU says."""
    build: Mapping[str, str]


def here() -> Machine | None:
    """This machine, or None where this process sees no GPU: nothing fused can run here, and nothing can differ.

    torch is imported only where a driver has left its device file; driver and versions are asked as in `build`. Not for the hot path.
    """
    if not any(Path(device).exists() for device in _DEVICES):
        return None
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    try:
        target = detect().name
    except ValueError:
        target = f"{torch.cuda.device_count()} x {torch.cuda.get_device_name(0)}"
    properties = torch.cuda.get_device_properties(0)
    arch = f"sm_{properties.major}{properties.minor}" if torch.version.hip is None else properties.gcnArchName.partition(":")[0]
    return Machine(target, arch, build())


def build() -> dict[str, str]:
    """Versions of what a measured time depends on; what is not installed has no entry.

    python, tftune, torch, triton, iris as installed; driver, and cuda or rocm, where there is a GPU. torch is imported only then.
    """
    found = {"python": platform.python_version()}
    for name, distributions in _DISTRIBUTIONS.items():
        installed = [text for text in map(_installed, distributions) if text]
        found |= {name: installed[0]} if installed else {}
    if driver := _driver():
        found |= {"driver": driver, **_runtime()}
    return found


def minor(version: str) -> list[str]:
    """Major and minor: what decides whether two versions of Triton compile alike, as far as anybody promises.

    >>> minor("3.6.0+rocm7.1")
    ['3', '6']
    """
    return version.split(".")[:2]


def _installed(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _driver() -> str | None:
    """The GPU driver's version, from NVIDIA's tool or from the AMD kernel module."""
    if answer := _answer("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"):
        return answer.split()[0]
    module = Path("/sys/module/amdgpu/version")
    return module.read_text().strip() if module.exists() else None


def _runtime() -> dict[str, str]:
    """The CUDA or ROCm version that torch was built for, where torch sees a GPU."""
    if find_spec("torch") is None:
        return {}
    import torch

    if not torch.cuda.is_available():
        return {}
    versions = {"cuda": torch.version.cuda, "rocm": torch.version.hip}
    return {name: text for name, text in versions.items() if text}


def clocks() -> dict[str, Any]:
    """Clocks, temperatures and power by GPU number, as read now; empty where no tool answers within ten seconds.

    NVIDIA: MHz, degrees Celsius and watts, None where the GPU does not say. AMD: `amd-smi metric` as it answers, units inside.
    """
    return _nvidia_clocks() or _amd_clocks()


def _nvidia_clocks() -> dict[str, Any]:
    answer = _answer("nvidia-smi", f"--query-gpu=index,{','.join(_NVIDIA_QUERY)}", "--format=csv,noheader,nounits")
    rows = csv.reader(answer.splitlines(), skipinitialspace=True)
    return {index: dict(zip(_NVIDIA_QUERY.values(), map(_number, values), strict=False)) for index, *values in rows}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _amd_clocks() -> dict[str, Any]:
    """Older amd-smi answers with a list, newer with a list under `gpu_data`."""
    try:
        answer = json.loads(_answer("amd-smi", "metric", "--clock", "--temperature", "--power", "--json") or "[]")
    except json.JSONDecodeError:
        return {}
    gpus = answer.get("gpu_data", []) if isinstance(answer, dict) else answer
    return {str(gpu["gpu"]): {field: gpu[field] for field in _AMD_FIELDS if field in gpu} for gpu in gpus}


def _answer(*command: str) -> str:
    """What a tool prints; "" where it is absent, fails, or does not answer in time."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SMI_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
