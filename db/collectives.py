"""The identity of BSP: which collective library answers, whether it may use NVLink multicast, and
the variables that choose its algorithms. Standard library only; torch is handed in."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from typing import Any

ALGORITHMS = (
    "NCCL_ALGO", "NCCL_PROTO", "NCCL_MIN_CTAS", "NCCL_MAX_CTAS", "NCCL_MIN_NCHANNELS",
    "NCCL_MAX_NCHANNELS",
)  # fmt: skip
MULTICAST = ("NCCL_NVLS_ENABLE", "TORCH_SYMM_MEM_DISABLE_MULTICAST")
_RCCL = "RCCL_"

_MULTICAST_SUPPORTED = 132
"""CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED of the CUDA driver API."""


def identity(torch: Any, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a build says of BSP on a machine with GPUs: `nccl` or `rccl`, `multicast`, and
    `collective_variables` where one is set."""
    hip = torch.version.hip is not None
    entries = {"multicast": multicast(hip, environment)}
    if library := _version(torch):
        entries["rccl" if hip else "nccl"] = library
    if variables := variables_of(environment):
        entries["collective_variables"] = variables
    return entries


def multicast(hip: bool, environment: Mapping[str, str]) -> str:
    """Returns "on" where the library may use NVLink multicast (NVLS), else "off"."""
    may = not hip and environment.get("NCCL_NVLS_ENABLE") != "0" and _supports_multicast()
    return "on" if may else "off"


def variables_of(environment: Mapping[str, str]) -> str:
    """The variables that choose the library's algorithms, as `NAME=value NAME=value`; "" for none.

    >>> variables_of({"NCCL_PROTO": "LL", "NCCL_ALGO": "Ring", "HOME": "/root"})
    'NCCL_ALGO=Ring NCCL_PROTO=LL'
    """
    names = (
        name for name in sorted(environment)
        if name in (*ALGORITHMS, *MULTICAST) or name.startswith(_RCCL)
    )  # fmt: skip
    return " ".join(f"{name}={environment[name]}" for name in names)


def _version(torch: Any) -> str:
    """As `2.28.3`; "" where torch was built without the library."""
    try:
        version = torch.cuda.nccl.version()
    except (AttributeError, RuntimeError):
        return ""
    return ".".join(map(str, version)) if isinstance(version, tuple) else str(version)


def _supports_multicast() -> bool:
    """Whether the first GPU can: a question to the driver, which makes no multicast object."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    device, value = ctypes.c_int(), ctypes.c_int()
    asked = (
        driver.cuInit(0)
        or driver.cuDeviceGet(ctypes.byref(device), 0)
        or driver.cuDeviceGetAttribute(ctypes.byref(value), _MULTICAST_SUPPORTED, device)
    )
    return not asked and value.value == 1
