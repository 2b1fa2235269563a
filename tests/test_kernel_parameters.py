"""A kernel takes few parameters: constants that belong together are one group."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

pytest.importorskip("triton")

from tftune.kernels.core.registry import OPS, operation

MOST = 20
SHARED = ("comm.symmetric", "comm.ll_protocol", "comm.copy_engine", "device.gemm", "device.shards",
          "device.attention", "device.dies", "device.calibration_kernels",
          "device.waits")  # fmt: skip
MODULES = [
    *(f"tftune.kernels.{name}" for name in SHARED),
    *(
        f"tftune.kernels.{op}.variants.{name}"
        for op in OPS
        for name in operation(op).space.variants
    ),
    "tftune.kernels.flash_decode.variants.launches",
    "tftune.studies.taxes.kernels",
]


def device_functions() -> dict[str, Any]:
    """Every kernel, and every device function, by name."""
    return {
        f"{name}.{attribute}": value
        for name in MODULES
        for attribute, value in vars(import_module(name)).items()
        if hasattr(value, "arg_names")
    }


def test_no_kernel_and_no_device_function_takes_more_than_20_parameters() -> None:
    counts = {name: len(value.arg_names) for name, value in device_functions().items()}
    assert len(counts) > 60 and "tftune.kernels.all_gather_gemm.variants.push.push" in counts
    assert {name: count for name, count in counts.items() if count > MOST} == {}
