"""What a GPU architecture can do, by its name.

Rules, kernels and formulas ask for a capability, never for a name.
Standard library only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

CUDA, HIP = "cuda", "hip"


@dataclass(frozen=True)
class Capabilities:
    """What all GPUs of one architecture can do."""

    backend: str
    """`cuda` or `hip`: what Triton compiles for, and the kernels' ARCH argument."""
    wave_size: int
    """Threads of one warp or wave."""
    descriptors: bool = False
    """Loads by tensor descriptors (TMA): compute capability 9.0 and later."""
    registered_buffers: bool = False
    """The collective library copies straight between buffers registered with it (NCCL 2.19)."""
    coherent_stores: bool = False
    """Another program of the same GPU sees a store without a fence: one cache behind all units."""
    warp_group_products: bool = False
    """Four warps multiply together, straight from shared memory (wgmma, tcgen05)."""
    products_from_shared: bool = False
    """Operands of a product that were computed go through shared memory, too."""
    stage_in_registers: bool = False
    """A loop's pipeline keeps one of its stages in registers (Triton's AMD backend)."""
    unified_registers: bool = False
    """512 registers of a lane for vectors and accumulators, 256 where two waves share a SIMD."""
    occupancy_hint: bool = False
    """The compiler takes `waves_per_eu`."""
    die_units: int = 0
    """Units of one die at most, where each die has an L2 of its own; 0 where there is one L2."""
    reserved_shared_bytes: int = 0
    """Shared memory that each resident program takes beside what it asks for (CUDA programming
    guide, from 8.0 on)."""


def capabilities(arch: str) -> Capabilities:
    """The capabilities of `sm_90`, `gfx942` and the like; raises ValueError for any other text.

    >>> capabilities("sm_90").descriptors, capabilities("sm_89").descriptors
    (True, False)
    >>> capabilities("gfx942").wave_size, capabilities("gfx1100").wave_size
    (64, 32)
    """
    if match := re.fullmatch(r"sm_([1-9][0-9]+)", arch):
        return _nvidia(int(match[1]) // 10)
    if match := re.fullmatch(r"gfx([1-9][0-9]*)([0-9a-f]{2})", arch):
        return _amd(int(match[1]), arch)
    raise ValueError(f"{arch!r} is no architecture; write it as the driver does: sm_90 or gfx942")


def _nvidia(major: int) -> Capabilities:
    return Capabilities(
        CUDA,
        wave_size=32,
        descriptors=major >= 9,
        registered_buffers=True,
        coherent_stores=True,
        warp_group_products=major in (9, 10),  # 12.0 multiplies warp by warp, as 8.x does
        products_from_shared=True,
        reserved_shared_bytes=1024 if major >= 8 else 0,
    )


def _amd(major: int, arch: str) -> Capabilities:
    """CDNA is gfx9, with waves of 64; RDNA, from gfx10 on, has waves of 32."""
    return Capabilities(
        HIP,
        wave_size=64 if major == 9 else 32,
        stage_in_registers=True,
        # CDNA 2 and later (LLVM AMDGPU usage, "unified register file").
        unified_registers=major == 9 and (arch == "gfx90a" or arch >= "gfx940"),
        occupancy_hint=True,
        die_units=40 if arch.startswith(("gfx94", "gfx95")) else 0,  # CDNA 3 and 4 white papers
    )
