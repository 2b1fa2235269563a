"""The chips that tftune knows, with the source of each constant, and those that it was told of.

Rates are what programs reach, not what data sheets promise. Standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from tftune.kernels.core.chip import Chip, Constants, constants, slug

__all__ = ["CHIPS", "Chip", "chip_named", "chip_of", "learn", "slug"]

# Constants under `sourced` were measured, here or in public; those under `assumed` are a relative's
# or a rule of thumb. "Fitted": by benchmarks/model.py --fit, to committed rows (2x H200, captured,
# 2026-11-22, the first session) of two families of shapes, N=3584 K=8192 without M = 16 and 2048,
# and N=2048 K=2048, fp16, A sharded along K; it scores them on all other rows.
# What `tftune calibrate` measures is never taken from a relative.

MI300X = Chip(
    "mi300x", "gfx942",
    # amdgpu's table of marketing names: the GPU, an older name of it, and the virtual function that
    # a cloud gives to a guest. "MI300X HF" is half a GPU, and none of these.
    ("AMD Instinct MI300X", "AMD Instinct MI300X OAM", "AMD Instinct MI300X VF"),
    units=304, wave_size=64, dies=8, shared_bytes=65_536,  # data sheet and CDNA 3 white paper
    cache_bytes=268_435_456,  # Infinity Cache, the same
    sourced=constants(
        hbm_bytes_per_us=4.0e6,  # BabelStream 3.9-4.13 TB/s
        fabric_bytes_per_us=7.7e6,  # reads of sets up to 32 MB: 7.5-7.9 TB/s, the peak is 17.2
        l2_bytes_per_us=34e6,  # white paper: 2 KB per clock and die, at 2.1 GHz
        # 128 bytes per clock, at the 1.2 GHz of a busy GEMM (AMD "max achievable FLOPs" blog).
        shared_bytes_per_us=0.154e6,
        # hipBLASLt, fp16, normal data: the same blog.
        matrix_flops_per_us=654e6,
        triton_share=0.85,  # 0.85-0.92 of the vendor at large M: triton #7199
        # 45-48 GB/s a link, 315-336 together: AMD rccl-xgmi blog.
        link_bytes_per_us=47e3, links_bytes_per_us=325e3,
        # 8 CUs saturate one link, 5.9 GB/s each: TransferBench, the same blog; 8 waves move 32 KB
        # a block.
        block_us=5.5,
        poll_us=0.7,  # across dies of one GPU: 0.6 us one way, 0.1 for the acquire
        eager_launch_us=10.0,  # 5-10 us
        descriptor_us=0.0,  # there are no descriptors
        collective_us=17.0,  # 15-20 us on the RCCL path: MSCCL++ #646
    ),
    assumed=constants(
        load_us=0.7,  # 0.353 us idle; twice that while memory is busy
        unit_flops_per_us=2.15e6,  # 654e6 over 304 units: not faster alone, the peak is 4.3e6
        stream_share=0.81,  # as on H200
        gather_bytes_per_us=47e3,  # a link's
        remote_load_us=1.5,  # H200 fits 1.0: no public figure at system scope
        signal_us=1.5,  # H200 fits 0.9: a release writes the L2 of its die back
        flag_us=2.0,  # across dies of one GPU 0.6 us
        # MI355X: 3 us between issues (ROCm/mori); bytes as a link's.
        engine_us=3.0, engine_host_us=3.0, engine_bytes_per_us=47e3,
        graph_launch_us=2.3,  # 4.5 us per dependent kernel (blog.kog.ai); in a graph half
        library_call_us=20.0,
        skew_us=1.75,  # as on H200
    ),
)  # fmt: skip

H200 = Chip(
    "h200", "sm_90", ("NVIDIA H200",),
    units=132, wave_size=32, dies=1, shared_bytes=232_448,  # device properties
    cache_bytes=62_914_560,  # the same
    switched=True,
    sourced=constants(
        hbm_bytes_per_us=4.25e6,  # device copy, 2026-11-21
        fabric_bytes_per_us=math.inf,
        l2_bytes_per_us=12.3e6,  # fitted; 64 bytes per clock and unit would be 14.8
        shared_bytes_per_us=0.225e6,  # 128 bytes per clock, at 1.755 GHz
        load_us=1.06,  # fitted
        matrix_flops_per_us=686e6,  # 8192^3 fp16 torch.matmul, 2026-11-21
        unit_flops_per_us=5.77e6,  # fitted; the peak is 7.5
        stream_share=0.81,  # fitted to the rows of 4x H200, 2026-11-21
        triton_share=0.9,  # 787 against 689 us at M=8192, 2026-11-20; with descriptors 1
        link_bytes_per_us=309e3, links_bytes_per_us=309e3,  # stores, 132 programs, 2026-11-20
        # 8 to 134 MB from each of 2 H200, within BSP, 2026-11-22; 214 alone, eager, 2026-11-20.
        gather_bytes_per_us=195e3,
        block_us=0.40,  # fitted; 8 warps move 16 KB a block
        # Fitted to the rows of 4x H200, 2026-11-21: 2 ranks see few peers.
        remote_load_us=0.98, signal_us=0.86,
        flag_us=1.5,  # half of a round trip of 3.04 us, 2026-11-20
        poll_us=1.07,  # fitted
        engine_us=2.5, engine_host_us=4.0,  # 4 bytes between 2 H200, 2026-11-21
        graph_launch_us=1.5,  # 2026-11-20
        eager_launch_us=12.0,  # M=1, 4x H200, eager above graph: 10 us, 2026-11-21
        library_call_us=22.0,  # BSP at M=1, 4x H200, eager above graph: 42 us, 2026-11-21
        descriptor_us=3.5,  # 10 us for three, the same
        collective_us=19.3,  # captured all-gather of 4 KB, 8x H200, 2026-11-21
        skew_us=1.37,  # fitted
    ),
    assumed=constants(
        engine_bytes_per_us=397e3,  # 1 GB between 2 H20, the same NVLink
    ),
)  # fmt: skip


def _like(relative: Chip, *names: str) -> Constants:
    """Constants of a relative, to be assumed of another chip."""
    return constants(**{name: value for name in names if (value := relative.constant(name))})


_SAME_SM = ("l2_bytes_per_us", "shared_bytes_per_us", "load_us", "unit_flops_per_us",
            "triton_share", "descriptor_us", "skew_us")  # fmt: skip
"""What a GPU has in common with another of the same SMs at about the same clock, and that a
calibration cannot measure."""
_SAME_XCD = ("fabric_bytes_per_us", *_SAME_SM[:2], "load_us", "triton_share", "skew_us")

# Units and cache of what follows: device properties as torch prints them in public logs, and the
# makers' white papers (A100 and Hopper architecture; CDNA 3 and 4). Shared memory that one program
# may use: CUDA programming guide, compute capabilities 8.0, 9.0 and 10.0; gfx950 160 KB.
A100 = Chip("a100", "sm_80", ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"), units=108, wave_size=32,
            dies=1, shared_bytes=166_912, cache_bytes=41_943_040, switched=True)  # fmt: skip
A100_40GB = Chip("a100-40gb", "sm_80", ("NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB"), units=108,
                 wave_size=32, dies=1, shared_bytes=166_912, cache_bytes=41_943_040,
                 switched=True)  # fmt: skip
A100_PCIE = Chip("a100-pcie", "sm_80", ("NVIDIA A100 80GB PCIe",), units=108, wave_size=32,
                 dies=1, shared_bytes=166_912, cache_bytes=41_943_040)  # fmt: skip
A100_PCIE_40GB = Chip("a100-pcie-40gb", "sm_80", ("NVIDIA A100-PCIE-40GB", "A100-PCIE-40GB"),
                      units=108, wave_size=32, dies=1, shared_bytes=166_912,
                      cache_bytes=41_943_040)  # fmt: skip
H100 = Chip(
    "h100", "sm_90", ("NVIDIA H100 80GB HBM3",), units=132, wave_size=32, dies=1,
    shared_bytes=232_448, cache_bytes=52_428_800, switched=True,
    # `tftune calibrate` on 2x H100, 2026-11-28; `db/tuned/h100x2-2026-11-28.chip.json`.
    sourced=constants(
        hbm_bytes_per_us=3.004e6, matrix_flops_per_us=762.5e6, stream_share=0.776, block_us=0.60,
        poll_us=0.21, graph_launch_us=1.08, eager_launch_us=28.9, library_call_us=11.3,
        link_bytes_per_us=340e3, links_bytes_per_us=339e3, gather_bytes_per_us=242e3,
        remote_load_us=0.64, signal_us=2.45, flag_us=2.49, engine_us=4.14, engine_host_us=7.4,
        engine_bytes_per_us=394e3, collective_us=21.4,
    ),
    assumed=_like(H200, *_SAME_SM),
)  # fmt: skip
H100_PCIE = Chip("h100-pcie", "sm_90", ("NVIDIA H100 PCIe",), units=114, wave_size=32, dies=1,
                 shared_bytes=232_448, cache_bytes=52_428_800)  # fmt: skip
H100_NVL = Chip("h100-nvl", "sm_90", ("NVIDIA H100 NVL",), units=132, wave_size=32, dies=1,
                shared_bytes=232_448, cache_bytes=52_428_800,
                assumed=_like(H200, *_SAME_SM))  # fmt: skip
H200_NVL = Chip("h200-nvl", "sm_90", ("NVIDIA H200 NVL",), units=132, wave_size=32, dies=1,
                shared_bytes=232_448, cache_bytes=62_914_560,
                assumed=_like(H200, *_SAME_SM))  # fmt: skip
# The gigabytes of these two names are the CPU's memory: both have 96 GB of HBM3.
GH200 = Chip("gh200", "sm_90", ("NVIDIA GH200 480GB", "NVIDIA GH200 120GB"), units=132,
             wave_size=32, dies=1, shared_bytes=232_448, cache_bytes=62_914_560,
             assumed=_like(H200, *_SAME_SM))  # fmt: skip
GH200_144GB = Chip("gh200-144gb", "sm_90", ("NVIDIA GH200 144G HBM3e",), units=132, wave_size=32,
                   dies=1, shared_bytes=232_448, cache_bytes=62_914_560,
                   assumed=_like(H200, *_SAME_SM))  # fmt: skip
# Two dies, which share their caches: programs see one.
B200 = Chip("b200", "sm_100", ("NVIDIA B200",), units=148, wave_size=32, dies=1,
            shared_bytes=232_448, cache_bytes=132_120_576, switched=True)  # fmt: skip
MI325X = Chip("mi325x", "gfx942", ("AMD Instinct MI325X", "AMD Instinct MI325X VF"), units=304,
              wave_size=64, dies=8, shared_bytes=65_536, cache_bytes=268_435_456,
              assumed=_like(MI300X, *_SAME_XCD))  # fmt: skip
MI350X = Chip("mi350x", "gfx950", ("AMD Instinct MI350X", "AMD Instinct MI350X VF"), units=256,
              wave_size=64, dies=8, shared_bytes=163_840, cache_bytes=268_435_456)  # fmt: skip
MI355X = Chip("mi355x", "gfx950", ("AMD Instinct MI355X", "AMD Instinct MI355X VF"), units=256,
              wave_size=64, dies=8, shared_bytes=163_840, cache_bytes=268_435_456)  # fmt: skip

CHIPS = {
    chip.name: chip
    for chip in (
        MI300X, H200, A100, A100_40GB, A100_PCIE, A100_PCIE_40GB, H100, H100_PCIE, H100_NVL,
        H200_NVL, GH200, GH200_144GB, B200, MI325X, MI350X, MI355X,
    )
}  # fmt: skip
"""By name; each is found on a machine by the exact name that its driver reports, its architecture
and its number of units."""

_DESCRIBED: dict[str, Chip] = {}
"""Chips of descriptions that this process met: other GPUs than those above."""


def chip_of(gpu_name: str, arch: str, units: int) -> Chip | None:
    """The known chip that a driver describes so; None for any other, a part of a known one too."""
    alike = (chip for chip in CHIPS.values() if (chip.arch, chip.units) == (arch, units))
    return next((chip for chip in alike if gpu_name in chip.gpu_names), None)


def with_lent_constants(chip: Chip, world: int) -> Chip | None:
    """The chip, with those constants of a relative (a known chip of the same architecture) that its
    own model of so many ranks lacks; None where no relative has them. Its times are good for one
    thing: to put configs in an order."""
    for relative in CHIPS.values():
        if relative.arch == chip.arch and relative.why_no_model(world) is None:
            lent = dict(relative.assumed) | dict(relative.sourced)
            return chip.with_constants({}, lent | dict(chip.assumed))
    return None


def chip_named(name: str) -> Chip | None:
    """The chip of that name: a known one, or one that this process was told of."""
    return CHIPS.get(name) or _DESCRIBED.get(name)


def names() -> Iterable[str]:
    """All names that `chip_named` answers, the known ones first."""
    return (*CHIPS, *_DESCRIBED)


def described() -> list[dict[str, Any]]:
    """The descriptions that this process met, for `learn` in another one."""
    return [chip.description() for chip in _DESCRIBED.values()]


def learn(description: Mapping[str, Any]) -> Chip:
    """The chip of a description that came with rows, an artifact, a chip file or from the driver;
    its name is known from here on in this process. The newest description counts.

    Raises ValueError where it is no description, would change a chip of CHIPS, or contradicts an
    earlier one in its architecture or its units.
    """
    chip = Chip.described(description)
    known = chip_named(chip.name)
    if chip.name in CHIPS:
        raise ValueError(f"{chip.name} is known, and rows or files must not describe it again")
    if known and (known.arch, known.units) != (chip.arch, chip.units):
        raise ValueError(
            f"{chip.name} is {chip.arch} with {chip.units} units here and {known.arch} with "
            f"{known.units} units elsewhere: two kinds of GPU under one name; keep their rows apart"
        )
    if known is None or known.description() != chip.description():
        _DESCRIBED[chip.name] = chip
    return _DESCRIBED[chip.name]
