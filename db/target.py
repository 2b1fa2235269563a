"""The fingerprint of a machine and of the software on it: what must agree before a measured time
means anything here."""

from __future__ import annotations

import csv
import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tftune.db.collectives import identity
from tftune.kernels.core import chips
from tftune.kernels.core.chips import CHIPS, Chip
from tftune.kernels.core.devices import Seen
from tftune.kernels.core.shape import near

SMI_TIMEOUT_S = 10.0

_DISTRIBUTIONS = {
    "tftune": ("tftune",),
    "torch": ("torch",),
    "triton": ("triton", "pytorch-triton-rocm", "triton-rocm"),
    "iris": ("tokenspeed-iris", "iris"),
}
"""Names under which each is installed: torch for ROCm brings its own Triton, and Iris for ROCm
comes from its repository."""

_DEVICES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""What the drivers of NVIDIA and AMD leave in /dev, the last under WSL: to see without torch that
there is no GPU."""

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
        return cls(f"{_stem(chip.name)}x{gpus}", chip, gpus)

    @classmethod
    def parse(cls, text: str) -> Target:
        """The target written as `<chip>x<number>`, of a known chip or one that this process was
        told of, by rows, an artifact, a chip file or its own driver; raises ValueError listing the
        chips."""
        match = re.fullmatch(r"(.+)x([1-9][0-9]*)", text)
        for name in chips.names() if match else ():
            if match and _stem(name) == match[1] and (chip := chips.chip_named(name)):
                return cls.of(chip, int(match[2]))
        raise ValueError(
            f"{text!r} is no target that is known here; write <chip>x<number of GPUs>, as in "
            "h200x8 or mi300x8; another GPU's name is known where rows, an artifact or a chip file "
            "(--db, --artifact, --chip) describe it, and none read here does; `tftune search` and "
            "`tftune calibrate` on that GPU write descriptions; the chips are "
            f"{', '.join(chips.names())}{near(text, usual_targets(), 0.8)}"
        )

    def __str__(self) -> str:
        return self.name


def usual_targets() -> list[str]:
    """Machines of 1, 2, 4 and 8 GPUs of each known chip."""
    return [f"{_stem(name)}x{gpus}" for name in chips.names() for gpus in (1, 2, 4, 8)]


def _stem(name: str) -> str:
    """What stands before the x and the number: `mi300` of `mi300x`. Of other chips the whole name,
    since two of them may differ in a last x alone."""
    return name.removesuffix("x") if name in CHIPS else name


def target_of(document: Mapping[str, Any]) -> Target:
    """The target of an artifact or a chip file, whose chip it may describe under `chip`: from here
    on this process knows it. Raises ValueError or KeyError where it names none, or describes
    another one."""
    described = document.get("chip")
    if isinstance(described, Mapping):
        name = chips.learn(described).name
        if not str(document["target"]).startswith(f"{_stem(name)}x"):
            raise ValueError(f"it describes {name}, and is for {document['target']}")
    return Target.parse(document["target"])


def need(what: str, *packages: str) -> None:
    """Raise ImportError, with the next command, where `what` needs a package that is not
    installed."""
    if missing := [name for name in packages if find_spec(name) is None]:
        raise ImportError(
            f"{what} needs {' and '.join(missing)}, not installed here; `tftune doctor` says what "
            "to install"
        )


def detect() -> Target:
    """The target that this process sees, by torch: any GPU is one. Raises ValueError where there is
    none, or where they are of several kinds."""
    if find_spec("torch") is None:
        raise ValueError(
            "no GPU can be seen, as torch is not installed; install it, or without a GPU: search "
            "--on model, select --target NAME"
        )
    import torch

    if not torch.cuda.is_available():
        raise ValueError(
            f"torch {torch.__version__} sees no GPU on this machine; without one: search --on "
            "model, select --target NAME"
        )
    gpus = [Seen.of(torch, index) for index in range(torch.cuda.device_count())]
    kinds = sorted({str(gpu) for gpu in gpus})
    if len(kinds) > 1:
        raise ValueError(
            f"this machine has GPUs of {len(kinds)} kinds ({', '.join(kinds)}); show torch those "
            "of one kind with CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES"
        )
    return Target.of(gpus[0].as_chip(), len(gpus))


@dataclass(frozen=True)
class Machine:
    """What this process runs on: what the times of an artifact are held against."""

    target: str
    """Its name, or in words where its GPUs are of several kinds."""
    arch: str
    """`sm_90`, `gfx942`, as the GPU says."""
    build: Mapping[str, str]


def here() -> Machine | None:
    """This machine, or None where this process sees no GPU: nothing fused can run here, and nothing
    can differ.

    torch is imported only where a driver has left its device file; driver and versions are asked as
    in `build`. Not for the hot path.
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
    return Machine(target, Seen.of(torch, 0).arch, build())


def build() -> dict[str, str]:
    """Versions of what a measured time depends on; what is not installed has no entry.

    python, tftune, torch, triton, iris as installed. Where there is a GPU: driver, cuda or rocm,
    and what BSP's collectives depend on (`collectives.identity`): nccl or rccl, multicast,
    collective_variables. torch is imported only then.
    """
    versions = {"python": platform.python_version()}
    for name, distributions in _DISTRIBUTIONS.items():
        installed = [text for text in map(version_of, distributions) if text]
        versions |= {name: installed[0]} if installed else {}
    if driver := _driver():
        versions |= {"driver": driver, **_runtime()}
    return versions


def minor(version: str) -> list[str]:
    """Major and minor: what decides whether two versions of Triton compile alike, as far as anybody
    promises.

    >>> minor("3.6.0+rocm7.1")
    ['3', '6']
    """
    return version.split(".")[:2]


def version_of(distribution: str) -> str | None:
    """None where it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _driver() -> str | None:
    """The GPU driver's version, from a kernel module or, slower, from NVIDIA's tool."""
    nvidia = Path("/sys/module/nvidia/version")
    if nvidia.exists():
        return nvidia.read_text().strip()
    if answer := _answer("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"):
        return answer.split()[0]
    module = Path("/sys/module/amdgpu/version")
    return module.read_text().strip() if module.exists() else None


def _runtime() -> dict[str, str]:
    """The CUDA or ROCm version that torch was built for, and its collective library, where torch
    sees a GPU."""
    if find_spec("torch") is None:
        return {}
    import torch

    if not torch.cuda.is_available():
        return {}
    versions = {"cuda": torch.version.cuda, "rocm": torch.version.hip}
    return {name: text for name, text in versions.items() if text} | identity(torch)


def links() -> str:
    """Which GPUs that this process sees reach each other's memory, a word of 0 and 1 for each; ""
    without a GPU.

    >>> links()
    ''
    """
    if not any(Path(device).exists() for device in _DEVICES) or find_spec("torch") is None:
        return ""
    import torch

    gpus = range(torch.cuda.device_count())
    reach = torch.cuda.can_device_access_peer
    return " ".join("".join(str(int(a == b or reach(a, b))) for b in gpus) for a in gpus)


def clocks() -> dict[str, Any]:
    """Clocks, temperatures and power by GPU number, as read now, of the GPUs visible to this
    process; empty where no tool answers within ten seconds.

    NVIDIA: MHz, degrees Celsius and watts, None where the GPU does not say. AMD: `amd-smi metric`
    as it answers, units inside.
    """
    return _nvidia_clocks() or _amd_clocks()


def _nvidia_clocks() -> dict[str, Any]:
    query = f"--query-gpu=index,uuid,{','.join(_NVIDIA_QUERY)}"
    answer = _answer("nvidia-smi", query, "--format=csv,noheader,nounits")
    rows = list(csv.reader(answer.splitlines(), skipinitialspace=True))
    visible = _visible([(index, uuid) for index, uuid, *_ in rows], "CUDA_VISIBLE_DEVICES")
    return {
        index: dict(zip(_NVIDIA_QUERY.values(), map(_number, values), strict=False))
        for index, _, *values in rows
        if index in visible
    }


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _amd_clocks() -> dict[str, Any]:
    """Older amd-smi answers with a list, newer with a list under `gpu_data`."""
    try:
        answer = json.loads(
            _answer("amd-smi", "metric", "--clock", "--temperature", "--power", "--json") or "[]"
        )
    except json.JSONDecodeError:
        return {}
    gpus = answer.get("gpu_data", []) if isinstance(answer, dict) else answer
    hip = "HIP_VISIBLE_DEVICES" if "HIP_VISIBLE_DEVICES" in os.environ else "CUDA_VISIBLE_DEVICES"
    visible = _visible([(str(gpu["gpu"]), "") for gpu in gpus], "ROCR_VISIBLE_DEVICES", hip)
    return {
        str(gpu["gpu"]): {field: gpu[field] for field in _AMD_FIELDS if field in gpu}
        for gpu in gpus
        if str(gpu["gpu"]) in visible
    }


def _visible(gpus: Sequence[tuple[str, str]], *variables: str) -> set[str]:
    """The numbers of the GPUs that these variables leave visible: a job of two GPUs on a node of
    eight does not answer for the other six.

    `gpus`: number and UUID of each. A variable lists GPUs by their place among those that the one
    before it left, or by the beginning of a UUID, and ends at the first entry that fits no single
    GPU. One whose first entry fits none is ignored.
    """
    for variable in variables:
        visible: list[tuple[str, str]] = []
        for one in map(str.strip, os.environ.get(variable, "").split(",")):
            named = [
                gpu
                for place, gpu in enumerate(gpus)
                if one == str(place) or (one and gpu[1].startswith(one))
            ]
            if len(named) != 1:
                break
            visible += named
        gpus = visible or gpus
    return {number for number, _ in gpus}


def _answer(*command: str) -> str:
    """What a tool prints; "" where it is absent, fails, or does not answer in time."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SMI_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
