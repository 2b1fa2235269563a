"""Constants of the chips that tftune knows, with their sources. Rates are what programs reach, not what data sheets promise."""

from __future__ import annotations

from dataclasses import dataclass


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
    shared_bytes: int
    """Shared memory (LDS) that one program may use."""
    cache_bytes: int
    """Last-level cache: what a cold-cache measurement must rotate past."""
    hbm_bytes_per_us: float
    matrix_flops_per_us: float
    """Dense fp16 with fp32 accumulation, random normal data, the best library GEMM."""
    triton_share: float
    """The share of that rate that a tuned Triton kernel with plain pointers reaches."""
    link_bytes_per_us: float
    """To one peer, one direction."""
    links_bytes_per_us: float
    """To all peers of a full node together, one direction."""
    program_bytes_per_us: float
    """What one communicating program of 8 warps (waves) stores to peers."""
    flag_us: float
    """One way: a release in a peer's memory seen by its acquire."""
    graph_launch_us: float
    """From one kernel to the next inside a captured graph."""
    eager_launch_us: float
    """Host time from an idle queue to the first instruction of a kernel."""
    collective_us: float
    """A captured all-gather of a few bytes over the full node."""
    eager_collective_us: float
    """The same from an idle queue."""

    def link_rate(self, world: int) -> float:
        """Bytes per microsecond that one GPU sends to `world - 1` peers at once."""
        return min(self.link_bytes_per_us * max(world - 1, 1), self.links_bytes_per_us)


# MI300X. Units, wave, LDS, Infinity Cache: AMD data sheet. fp16 654 TFLOP/s on normal data: AMD "max achievable FLOPs" blog.
# Triton 0.85-0.92 of the vendor at large M: triton #7199. HBM 4.0 TB/s: BabelStream 3.9-4.13. Links 45-48 GB/s each, 315-336
# together; 8 CUs saturate one link: AMD rccl-xgmi blog, TransferBench. Flag: no public number at system scope; cross-XCD 0.6 us
# one way is the lower bound, 2.0 us assumed. Launch 4.5 us per dependent kernel: blog.kog.ai; in a graph about half, assumed.
# Small collectives 15-20 us on the RCCL path: MSCCL++ #646; eager 45 us assumed.
MI300X = Chip(
    "mi300x", "gfx942", ("MI300X", "MI325X"), units=304, lanes=64, shared_bytes=65_536, cache_bytes=268_435_456,
    hbm_bytes_per_us=4.0e6, matrix_flops_per_us=654e6, triton_share=0.85,
    link_bytes_per_us=47e3, links_bytes_per_us=325e3, program_bytes_per_us=5.9e3, flag_us=2.0,
    graph_launch_us=2.3, eager_launch_us=10.0, collective_us=17.0, eager_collective_us=45.0,
)  # fmt: skip

# H200. Units, warp, shared memory, L2: device properties. Everything else measured on an 8x H200 node, 2026-11-20/21
# (docs/measured.md): 8192^3 fp16 matmul 686 TFLOP/s, Triton 689 us against 649 us at M=8192, device copy 4.25 TB/s, push
# 309 GB/s with 132 programs and 237 with 16, flag round trip 3.04 us, captured all-gather of 4 KB 19.3 us, eager 89 us.
H200 = Chip(
    "h200", "sm_90", ("H200",), units=132, lanes=32, shared_bytes=232_448, cache_bytes=62_914_560,
    hbm_bytes_per_us=4.25e6, matrix_flops_per_us=686e6, triton_share=0.9,
    link_bytes_per_us=309e3, links_bytes_per_us=309e3, program_bytes_per_us=14.8e3, flag_us=1.5,
    graph_launch_us=1.5, eager_launch_us=12.0, collective_us=19.0, eager_collective_us=89.0,
)  # fmt: skip

CHIPS = {chip.name: chip for chip in (MI300X, H200)}
