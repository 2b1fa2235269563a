"""The one compile path: what it compiles without a GPU is really pipelined, and found again; what
spills is seen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import triton
import triton.language as tl

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.host import source
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.chips import H200, MI300X
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.runtime.compile import KernelSource, gpu_target

ARCHES = ("gfx942", pytest.param("gfx950", marks=pytest.mark.thorough), "sm_90")
FUSED = tuple(variant for variant in SPACE.variants if not variant.startswith("bsp"))
SHAPES = {
    "small-k": AllGatherGemm(16, 3584, 8192, 8, b_layout="nk"),
    "small-m": AllGatherGemm(64, 3584, 8192, 8, dtype="bf16", shard="m"),
    "large-k": AllGatherGemm(8192, 3584, 8192, 8, dtype="bf16"),
    "large-m": AllGatherGemm(4096, 3584, 8192, 8, shard="m"),
}

FEW_BYTES = 8
"""ptxas puts two scalars of a small tile on the stack, outside the loop over K, with 56 registers
in use."""


def default(variant: str, shape: AllGatherGemm, arch: str) -> tuple[Config, KernelSource]:
    hip = arch.startswith("gfx")
    config = next(c for c in SPACE.defaults(shape, MI300X if hip else H200) if c.variant == variant)
    config = SPACE.complete(config)
    return config, source(shape, config, "hip" if hip else "cuda")


def spilled_bytes(compiled: Any, arch: str, folder: Path) -> int:
    """Bytes of scratch memory that each thread needs: the stack, which holds spilled registers."""
    if arch.startswith("gfx"):
        return int(re.findall(r"\.private_segment_fixed_size: (\d+)", compiled.asm["amdgcn"])[0])
    import triton

    (folder / "cubin").write_bytes(compiled.asm["cubin"])
    command = [triton.knobs.nvidia.cuobjdump.path, "-res-usage", str(folder / "cubin")]
    usage = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
    return sum(int(size) for size in re.findall(r"(?:STACK|LOCAL):(\d+)", usage))


@pytest.mark.parametrize("page_size", [0, 16])
@pytest.mark.parametrize("num_stages", [2, 3, 4, 5, 7])
def test_a_pipeline_keeps_as_many_blocks_as_the_rules_count(
    num_stages: int, page_size: int
) -> None:
    """In shared memory of sm_90: buffers of keys, and of values. The block table takes stages."""
    op = operation("flash_decode")
    shape = FlashDecode(1, 64, 8, 128, 8192, 8, "bf16", "heads", page_size)
    config = Config("bsp", block_n=64, num_stages=num_stages)
    if num_stages == 7 and not page_size:
        assert "num_stages=7 is for pages" in str(op.space.why_invalid(shape, config, H200))
        return
    first, *_ = op.module("host").kernel_sources(shape, config, H200)
    compiled = first.compile(gpu_target("sm_90"))
    blocks = op.module("rules").blocks_on_the_way(shape, num_stages, H200)
    buffers = re.findall(r"ttg.local_alloc.*memdesc<(\d+)x64x128xbf16", compiled.asm["ttgir"])
    assert buffers == [str(blocks)] * 2
    counted = op.module("rules")._shared_bytes(shape, op.space.complete(config), H200)
    assert compiled.metadata.shared <= counted


def test_an_mi350_has_kernels_too() -> None:
    """One; `make thorough` compiles all of them for it."""
    _, kernel = default("push", SHAPES["small-k"], "gfx950")
    assert "gfx950" in kernel.compile(gpu_target("gfx950")).asm["amdgcn"]


@pytest.mark.parametrize("variant", ["staged", "push", "push_ce"])
def test_descriptors_take_any_n_where_rows_of_b_have_k_elements(variant: str) -> None:
    shape, tile = AllGatherGemm(64, 127, 128, 2, shard="m", b_layout="nk"), {"num_warps": 4}
    tile |= dict(block_m=16, block_n=32, block_k=64, group_m=1, rows_per_flag=16)
    kernel = source(shape, SPACE.complete(Config(variant, **tile, loads="descriptor")), "cuda")
    assert "cp.async.bulk.tensor" in kernel.compile(gpu_target("sm_90")).asm["ptx"]


@triton.jit
def hold(data, total, COUNT: tl.constexpr):
    """Keep a whole block in the registers of one warp."""
    places = data + tl.arange(0, COUNT)
    values = tl.load(places)
    tl.store(total, tl.sum(values))
    tl.debug_barrier()
    tl.store(places, values + 1)


@pytest.mark.parametrize("arch", ["gfx942", "sm_90"])
def test_spills_are_seen(tmp_path: Path, arch: str) -> None:
    for count, spills in ((4096, False), (32768, True)):
        constants, options = {"COUNT": count}, {"num_warps": 1}
        kernel = KernelSource(hold, {"data": "*fp32", "total": "*fp32"}, constants, (), options)
        spilled = spilled_bytes(kernel.compile(gpu_target(arch)), arch, tmp_path)
        assert (spilled > FEW_BYTES) == spills


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("variant", FUSED)
def test_the_pipeline_is_as_deep_as_its_stages(variant: str, stages: int) -> None:
    """Tiles of A and B in shared memory, once for each stage: a kernel that Triton does not
    pipeline has one."""
    shape = SHAPES["large-m"]
    config, _ = default(variant, shape, "sm_90")
    config = Config.from_dict(config.to_dict() | {"num_stages": stages, "block_n": 128})
    shared = source(shape, config, "cuda").compile(gpu_target("sm_90")).metadata.shared
    stage_bytes = (config["block_m"] + config["block_n"]) * config["block_k"] * 2
    assert stages * stage_bytes <= shared <= stages * stage_bytes + 2048


def test_a_binary_is_found_whichever_kernel_was_compiled_first(tmp_path: Path) -> None:
    """The compile pool and the ranks meet kernels in different orders; what one compiled, the other
    must find."""
    script = """
import sys
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.host import source
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.chips import H200
from tftune.kernels.runtime.compile import gpu_target
shape = AllGatherGemm(16, 64, 512, 2)
found = {config.variant: config for config in SPACE.defaults(shape, H200)}
for name in sys.argv[1:]:
    kernel = source(shape, found[name], "cuda")
    kernel.compile(gpu_target("sm_90"))
    print(name, kernel.kernel.cache_key)
"""
    environment = os.environ | {"TRITON_CACHE_DIR": str(tmp_path)}

    def keys(*order: str) -> set[str]:
        command = [sys.executable, "-c", script, *order]
        done = subprocess.run(command, env=environment, text=True, capture_output=True, check=True)
        return set(done.stdout.splitlines())

    printed = [keys("push", "pull"), keys("pull", "push"), keys("push")]
    assert printed[0] == printed[1] > printed[2]
