"""Memory order, in the emitted code, of operands that peers read where they lie: offered by a
release, read behind an acquire, and counted as read by a release before the flag that says so."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import triton
import triton.language as tl
from assembly import (
    GEMM,
    LOADS_OF_A,
    SHARDS,
    Assembly,
    assemble,
    early_loads,
    is_hip,
    line_of,
    narrow,
    signal_faults,
    ttgir,
    wait_faults,
)
from test_memory_order_counters import acquired, additions, behind_a_barrier, released

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.core.chips import H200, MI300X
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.device.in_place import count_reader, finish_read
from tftune.kernels.runtime.compile import KernelSource

ARCHES = ("gfx942", "sm_90")
GEMMS = AllGatherGemm(4096, 3584, 8192, 8, "bf16", "m", "nk", operands="heap")
SUMS = AllReduce(128, 8192, 8, operands="heap")
NORMS = AllReduce(96, 8192, 8, "bf16", "rms", operands="heap")
SUM_KERNELS = Path(GEMM).parent.parent / "all_reduce" / "variants"
READS: dict[tuple[Shape, str], tuple[Path, tuple[str, ...]]] = {
    (GEMMS, "pull"): (GEMM, LOADS_OF_A[:1]),
    (GEMMS, "staged"): (SHARDS, ("tl.store(to_ptrs, tl.load(from_ptrs",)),
    (SUMS, "one_shot"): (SUM_KERNELS / "one_shot.py", ("total += tl.cast(tl.load(x_at",)),
    (NORMS, "one_shot"): (SUM_KERNELS / "one_shot.py", ("total += tl.cast(tl.load(x_at",)),
    (SUMS, "two_shot"): (SUM_KERNELS / "two_shot.py", ("part = tl.load(at +",)),
}
"""Where each variant loads what is a peer's."""


@triton.jit
def leave(
    control, control_bases, epoch, rank,
    ALL_READ: tl.constexpr, WORLD: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """What a program does that has read its last."""
    count_reader(control, control_bases, 16, epoch, rank, WORLD, ARCH)
    finish_read(control, control_bases, epoch, rank, ALL_READ, WORLD, ARCH)


def leaving(arch: str, all_read: bool) -> Assembly:
    types = {"control": "i64", "control_bases": "*i64", "epoch": "i32", "rank": "i32"}
    backend = "hip" if is_hip(arch) else "cuda"
    constants = {"ALL_READ": all_read, "WORLD": 4, "ARCH": backend}
    aligned = "control", "control_bases"
    return assemble(KernelSource(leave, types, constants, aligned, {"num_warps": 4}), arch)


@cache
def source(shape: Any, variant: str, arch: str) -> KernelSource:
    op, chip = operation(shape.op), MI300X if is_hip(arch) else H200
    config = next(c for c in op.space.defaults(shape, chip) if c.variant == variant)
    found: KernelSource = op.module("host").kernel_sources(shape, config, chip)[0]
    return found


@pytest.mark.parametrize("all_read", [True, False])
@pytest.mark.parametrize("arch", ARCHES)
def test_who_says_that_all_was_read_comes_behind_all_others(arch: str, all_read: bool) -> None:
    code, hip = leaving(arch, all_read), is_hip(arch)
    counted, left = additions(code, hip)[:2]
    for at in (counted, left):
        assert behind_a_barrier(code, at, hip)
        assert released(code, at, hip) and acquired(code, at, hip)
    assert signal_faults(code, hip) + wait_faults(code, hip) == []


@pytest.mark.parametrize("shape", [GEMMS, SUMS, NORMS], ids=["gemm", "sum", "norm"])
@pytest.mark.parametrize("arch", ARCHES)
def test_nothing_is_read_before_it_was_offered(arch: str, shape: Shape) -> None:
    for (one, variant), (file, lines) in READS.items():
        if one == shape:
            kernel = source(shape, variant, arch)
            code, hip = assemble(kernel, arch), is_hip(arch)
            assert signal_faults(code, hip) + wait_faults(code, hip) == [], variant
            assert early_loads(ttgir(kernel, arch), file, lines) == [], variant
            assert narrow(code, hip, *(line_of(file, text) for text in lines)) == [], variant
