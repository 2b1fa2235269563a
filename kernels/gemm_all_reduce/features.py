"""What the selector's tree may look at: named integers and ratios of a shape that a person can
read; and what an estimate of a config's time goes by. Standard library only."""

from __future__ import annotations

from collections.abc import Callable

from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_reduce_scatter.features import SCALES, TERMS, scales, timing

__all__ = ["FEATURES", "SCALES", "TERMS", "scales", "timing"]

FEATURES: dict[str, tuple[str, Callable[[GemmAllReduce], float]]] = {
    "m": ("tokens", lambda s: s.m),
    "n": ("columns of C", lambda s: s.n),
    "inner": ("columns of A on one rank", lambda s: s.inner),
    "world": ("ranks", lambda s: s.world),
    "message_kb": ("kilobytes of C", lambda s: s.message_bytes / 1024),
    "gflop": ("billions of operations on one rank", lambda s: s.flops / 1e9),
    "tiles": ("tiles of 128 x 128 of C", lambda s: -(-s.m // 128) * -(-s.n // 128)),
    "weights_mb": ("megabytes of B", lambda s: s.n * s.inner * s.element_bytes / 2**20),
}
