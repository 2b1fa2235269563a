"""The kernels of gemm_reduce_scatter and gemm_all_reduce as they are emitted for GPUs that are not
here: nothing spills, flags are released and acquired at system scope, 16 bytes at a time."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from assembly import (
    Assembly,
    assemble,
    early_loads,
    is_hip,
    line_of,
    narrow,
    signal_faults,
    wait_faults,
)
from mutant import rebuilt
from test_compile import spilled_bytes

from tftune import kernels
from tftune.kernels.core.chips import H200, MI300X
from tftune.kernels.core.registry import operation
from tftune.kernels.runtime.compile import KernelSource, gpu_target

DEVICE = Path(kernels.__path__[0]) / "device/gemm_reduce.py"
ARCHES = ("gfx942", pytest.param("gfx950", marks=pytest.mark.thorough), "sm_90")
SHAPES = {
    "gemm_reduce_scatter": "m=4096,n=8192,k=28672,world=8",
    "gemm_all_reduce": "m=16,n=8192,k=28672,world=8",
}
MANY_ROWS = {"gemm_all_reduce": "m=512,n=8192,k=28672,world=8"}
"""So many that a thread has 16 bytes of each slice that is added up."""
VARIANTS = [
    ("gemm_reduce_scatter", "push"),
    ("gemm_reduce_scatter", "pull"),
    ("gemm_reduce_scatter", "relay"),
    ("gemm_reduce_scatter", "push_ce"),
    ("gemm_all_reduce", "one_shot"),
    ("gemm_all_reduce", "two_shot"),
]
FEW_BYTES = 48
"""ptxas keeps addresses of peers, which it reads before a tile and uses behind it, on the stack."""
FROM_PEERS = "tl.load(pointers, mask=inside, other=0.0)"
FORWARDED = "values = tl.load(row_pointers(outbox"


@cache
def sources(op: str, variant: str, arch: str, words: str = "") -> tuple[KernelSource, ...]:
    """The kernels of the default config of a variant."""
    room, chip = operation(op), MI300X if is_hip(arch) else H200
    shape = room.shape.parse(words or SHAPES[op])
    found = next(c for c in room.space.defaults(shape, chip) if c.variant == variant)
    kernels: tuple[KernelSource, ...] = room.module("host").kernel_sources(shape, found, chip)
    return kernels


@cache
def code_of(op: str, variant: str, arch: str, words: str = "") -> Assembly:
    return assemble(sources(op, variant, arch, words)[-1], arch)


@pytest.mark.parametrize(("op", "variant"), VARIANTS)
@pytest.mark.parametrize("arch", ARCHES)
def test_defaults_compile_without_spills(tmp_path: Path, arch: str, op: str, variant: str) -> None:
    for kernel in sources(op, variant, arch):
        compiled = kernel.compile(gpu_target(arch))
        assert compiled.metadata.shared <= (MI300X if is_hip(arch) else H200).shared_bytes
        assert spilled_bytes(compiled, arch, tmp_path) <= (0 if is_hip(arch) else FEW_BYTES)
        assert compiled.metadata.launch_cooperative_grid == (variant != "push_ce")


@pytest.mark.parametrize(("op", "variant"), VARIANTS)
@pytest.mark.parametrize("arch", ARCHES)
def test_flags_are_released_and_acquired_at_system_scope(arch: str, op: str, variant: str) -> None:
    code = code_of(op, variant, arch)
    assert wait_faults(code, is_hip(arch)) == []
    if variant != "push_ce":  # whose flags are copies
        assert signal_faults(code, is_hip(arch)) == []


@pytest.mark.parametrize(("op", "variant"), VARIANTS)
@pytest.mark.parametrize("arch", ARCHES)
def test_partial_tiles_move_16_bytes_at_a_time(arch: str, op: str, variant: str) -> None:
    lines = [line_of(DEVICE, "total += tl.cast(tl.load(pointers")]
    if variant == "relay":
        lines += [
            line_of(DEVICE, text) for text in (FORWARDED, "tl.store(row_pointers(base, to_rows")
        ]
    code = code_of(op, variant, arch, MANY_ROWS.get(op, ""))
    assert narrow(code, is_hip(arch), *lines) == []


@pytest.mark.parametrize(("op", "variant"), VARIANTS)
@pytest.mark.parametrize("arch", ARCHES)
def test_no_slot_is_loaded_before_its_wait(arch: str, op: str, variant: str) -> None:
    text = sources(op, variant, arch)[-1].compile(gpu_target(arch)).asm["ttgir"]
    loads = (FROM_PEERS, FORWARDED) if variant == "relay" else (FROM_PEERS,)
    assert early_loads(text, DEVICE, loads) == []


def test_words_are_stored_and_polled_two_at_a_time(tmp_path: Path) -> None:
    """On NVIDIA alone: a word of 64 bits whole, past the caches."""
    (kernel,) = sources("gemm_all_reduce", "one_shot_ll", "sm_90")
    compiled = kernel.compile(gpu_target("sm_90"))
    assert "st.global.wt.v2.b64" in compiled.asm["ptx"]
    assert "ld.volatile.global.v2.b64" in compiled.asm["ptx"]
    assert spilled_bytes(compiled, "sm_90", tmp_path) <= FEW_BYTES
    assert compiled.metadata.launch_cooperative_grid


def test_words_are_for_one_die() -> None:
    room = operation("gemm_all_reduce")
    shape = room.shape.parse(SHAPES["gemm_all_reduce"])
    assert "one_shot_ll" in {config.variant for config in room.space.defaults(shape, H200)}
    found = next(c for c in room.space.defaults(shape, H200) if c.variant == "one_shot_ll")
    assert "one die" in (room.space.why_refused(shape, found, MI300X) or "")
    assert "one_shot_ll" not in {config.variant for config in room.space.defaults(shape, MI300X)}


@pytest.mark.parametrize("arch", ["gfx942", "sm_90"])
def test_a_relay_that_does_not_wait_is_seen(tmp_path: Path, arch: str) -> None:
    """The interpreter cannot show it: there the last program forwards what all others computed."""
    op, change = (
        "gemm_reduce_scatter",
        ("gemm_reduce", "wait(flag(control, rank, READY_FLAGS + item), epoch)", "pass"),
    )
    hasty = rebuilt(tmp_path, "relay", (change,), op)
    kernel = replace(sources(op, "relay", arch)[0], kernel=hasty.relay)
    text = kernel.compile(gpu_target(arch)).asm["ttgir"]
    changed = next(tmp_path.rglob("gemm_reduce.py"))
    assert early_loads(text, changed, (FORWARDED,)) != []
