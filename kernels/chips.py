"""Constants of the chips that tftune knows, with their sources. Rates are what programs reach, not what data sheets promise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Chip:
    """One GPU model and its links inside a node. Times in microseconds, rates in bytes or FLOPs per microsecond."""

    name: str
    arch: str
    """What Triton compiles for: `gfx942` or `sm_90`."""
    gpu_names: tuple[str, ...]
    """Parts of the name that the driver reports."""
    units: int
    """Streaming multiprocessors (NVIDIA) or compute units (AMD)."""
    lanes: int
    """Threads of one warp or wave."""
    dies: int
    """Dies to which programs are dealt in turn, each with an L2 of its own."""
    shared_bytes: int
    """Shared memory (LDS) that one program may use."""
    cache_bytes: int
    """Last-level cache: what a cold-cache measurement must rotate past."""

    hbm_bytes_per_us: float
    fabric_bytes_per_us: float
    """From the last-level cache into the L2 of all dies together; not used where there is one die."""
    l2_bytes_per_us: float
    """From L2 to all units together."""
    shared_bytes_per_us: float
    """In and out of one unit's shared memory."""
    load_us: float
    """Latency of a load from memory, while memory is busy."""

    matrix_flops_per_us: float
    """Dense fp16 with fp32 accumulation, random normal data, the best library GEMM."""
    unit_flops_per_us: float
    """The same of one unit, where power does not yet limit the clock of all."""
    stream_share: float
    """Of the memory rate, what a library GEMM reaches where it only streams B."""
    triton_share: float
    """Of the matrix rate, what a tuned Triton kernel with plain pointers reaches."""

    link_bytes_per_us: float
    """To one peer, one direction."""
    links_bytes_per_us: float
    """To all peers of a full node together, one direction."""
    gather_bytes_per_us: float
    """A library's all-gather, to each peer, where the links allow more: between two GPUs it does not reach what they do."""
    block_us: float
    """One communicating program, per block that it copies: four 16-byte accesses of each thread."""
    remote_load_us: float
    """What a load from a peer takes longer than one from memory."""
    signal_us: float
    """What a program spends on one release at system scope before it goes on."""
    flag_us: float
    """One way: a release in a peer's memory seen by its acquire."""
    poll_us: float
    """One acquire of a flag in this GPU's memory that is already set."""
    engine_us: float
    """From one copy to the next in a stream of a copy engine, besides its bytes."""
    engine_host_us: float
    """Host time of queueing one copy that is not captured."""
    engine_bytes_per_us: float
    """A copy engine, to one peer."""

    graph_launch_us: float
    """From one kernel to the next inside a captured graph."""
    eager_launch_us: float
    """Host time from an idle queue to the first instruction of a kernel."""
    library_call_us: float
    """Host time of each further library call of an eager sequence."""
    descriptor_us: float
    """Host time of making one tensor descriptor."""
    collective_us: float
    """A captured all-gather of a few bytes over eight GPUs."""
    skew_us: float
    """By how much the last of all ranks ends a call later than it would alone."""

    def with_constants(self, constants: Mapping[str, float]) -> Chip:
        """This chip with other constants; raises TypeError for an unknown name."""
        changed: dict[str, Any] = dict(constants)
        return replace(self, **changed)

    def link_rate(self, world: int) -> float:
        """Bytes per microsecond that one GPU sends to `world - 1` peers at once."""
        return min(self.link_bytes_per_us * max(world - 1, 1), self.links_bytes_per_us)


# Each constant with its source. "Fitted": by benchmarks/model.py --fit, to committed rows (2x H200, captured, 2026-11-22, the first
# session) of two families of shapes, N=3584 K=8192 without M = 16 and 2048, and N=2048 K=2048, fp16, A sharded along K; it scores them
# on all other rows.
# "Assumed": no public figure was found; `tftune calibrate` measures it.

MI300X = Chip(
    "mi300x", "gfx942", ("MI300X", "MI325X"),
    units=304, lanes=64, dies=8, shared_bytes=65_536,  # AMD data sheet and CDNA 3 white paper
    cache_bytes=268_435_456,  # Infinity Cache, the same
    hbm_bytes_per_us=4.0e6,  # BabelStream 3.9-4.13 TB/s
    fabric_bytes_per_us=7.7e6,  # reads of sets up to 32 MB: 7.5-7.9 TB/s, where 17.2 is the peak
    l2_bytes_per_us=34e6,  # white paper: 2 KB per clock and die, at 2.1 GHz
    shared_bytes_per_us=0.154e6,  # 128 bytes per clock, at the 1.2 GHz of a busy GEMM (AMD "max achievable FLOPs" blog)
    load_us=0.7,  # 0.353 us idle; twice that while memory is busy, assumed
    matrix_flops_per_us=654e6,  # hipBLASLt, fp16, normal data: AMD "max achievable FLOPs" blog
    unit_flops_per_us=2.15e6,  # 654e6 over 304 units: assumed not to be faster alone, where the peak is 4.3e6
    stream_share=0.81,  # assumed, as on H200
    triton_share=0.85,  # 0.85-0.92 of the vendor at large M: triton #7199
    link_bytes_per_us=47e3, links_bytes_per_us=325e3,  # 45-48 GB/s a link, 315-336 together: AMD rccl-xgmi blog
    gather_bytes_per_us=47e3,  # assumed: a link's
    block_us=5.5,  # 8 CUs saturate one link, 5.9 GB/s each: TransferBench, the same blog; 8 waves move 32 KB a block
    remote_load_us=1.5,  # assumed, H200 fits 1.0: no public figure at system scope
    signal_us=1.5,  # assumed, H200 fits 0.9: a release writes the L2 of its die back
    flag_us=2.0,  # assumed; across dies of one GPU 0.6 us
    poll_us=0.7,  # across dies of one GPU: 0.6 us one way, 0.1 for the acquire
    engine_us=3.0, engine_host_us=3.0, engine_bytes_per_us=47e3,  # MI355X: 3 us between issues: ROCm/mori
    graph_launch_us=2.3,  # 4.5 us per dependent kernel (blog.kog.ai); in a graph half, assumed
    eager_launch_us=10.0,  # 5-10 us
    library_call_us=20.0, descriptor_us=0.0,  # assumed; there are no descriptors
    collective_us=17.0,  # 15-20 us on the RCCL path: MSCCL++ #646
    skew_us=1.75,  # assumed, as on H200
)  # fmt: skip

H200 = Chip(
    "h200", "sm_90", ("H200",),
    units=132, lanes=32, dies=1, shared_bytes=232_448, cache_bytes=62_914_560,  # device properties
    hbm_bytes_per_us=4.25e6,  # device copy, 2026-11-21
    fabric_bytes_per_us=math.inf,
    l2_bytes_per_us=12.3e6,  # fitted; 64 bytes per clock and unit would be 14.8
    shared_bytes_per_us=0.225e6,  # 128 bytes per clock, at 1.755 GHz
    load_us=1.06,  # fitted
    matrix_flops_per_us=686e6,  # 8192^3 fp16 torch.matmul, 2026-11-21
    unit_flops_per_us=5.77e6,  # fitted; the peak is 7.5
    stream_share=0.81,  # fitted to the rows of 4x H200, 2026-11-21
    triton_share=0.9,  # 787 against 689 us at M=8192, 2026-11-20; with descriptors 1
    link_bytes_per_us=309e3, links_bytes_per_us=309e3,  # stores from 132 programs, 2026-11-20
    gather_bytes_per_us=195e3,  # 8 to 134 MB from each of 2 H200, within BSP, 2026-11-22; 214 alone, eager, 2026-11-20
    block_us=0.40,  # fitted; 8 warps move 16 KB a block
    remote_load_us=0.98,  # fitted to the rows of 4x H200, 2026-11-21, as 2 ranks see few peers
    signal_us=0.86,  # fitted to the rows of 4x H200, 2026-11-21: 2 ranks hardly see it
    flag_us=1.5,  # half of a round trip of 3.04 us, 2026-11-20
    poll_us=1.07,  # fitted
    engine_us=2.5, engine_host_us=4.0,  # 4 bytes between 2 H200, 2026-11-21
    engine_bytes_per_us=397e3,  # 1 GB between 2 H20, the same NVLink
    graph_launch_us=1.5,  # 2026-11-20
    eager_launch_us=12.0,  # M=1, 4x H200, eager above graph: 10 us, 2026-11-21
    library_call_us=22.0,  # BSP at M=1, 4x H200, eager above graph: 42 us, 2026-11-21
    descriptor_us=3.5,  # 10 us for three, the same
    collective_us=19.3,  # captured all-gather of 4 KB, 8x H200, 2026-11-21
    skew_us=1.37,  # fitted
)  # fmt: skip

CHIPS = {chip.name: chip for chip in (MI300X, H200)}
