"""What the selector's tree may look at: named integers and ratios of a shape that a person can
read; and what an estimate of a config's time goes by. Standard library only."""

from __future__ import annotations

from collections.abc import Callable
from math import log2

from tftune.kernels.core.gemm_space import terms_of
from tftune.kernels.core.space import Config
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter

FEATURES: dict[str, tuple[str, Callable[[GemmReduceScatter], float]]] = {
    "m": ("tokens of all ranks", lambda s: s.m),
    "n": ("columns of C", lambda s: s.n),
    "inner": ("columns of A on one rank", lambda s: s.inner),
    "world": ("ranks", lambda s: s.world),
    "shard_kb": ("kilobytes that one rank sends to each peer", lambda s: s.shard_bytes / 1024),
    "gflop": ("billions of operations on one rank", lambda s: s.flops / 1e9),
    "sent_per_gflop": (
        "kilobytes sent for each billion operations",
        lambda s: s.shard_bytes * (s.world - 1) / 1024 / (s.flops / 1e9),
    ),
    "owner_tiles": (
        "tiles of 128 x 128 of one owner",
        lambda s: -(-s.shard_rows // 128) * -(-s.n // 128),
    ),
    "weights_mb": ("megabytes of B", lambda s: s.n * s.inner * s.element_bytes / 2**20),
}
TERMS = ("call", "k of rounds", "k of tiles", "a", "b", "c", "rounds")
"""What the time of one config grows with, see `timing`."""
SCALES = ("m", "n", "k")
"""The features of which a formula's smooth correction is a function, see `scales`."""


def timing(config: Config, units: int) -> Callable[[int, int, int], tuple[float, ...]]:
    """The values of TERMS as a function of (m, n, k), for one config on a chip of so many units. C
    is the product, which is sent; a layout has one world, so that k stands for a rank's part of it.

    >>> timing(Config("push", block_m=128, block_n=256), 132)(1024, 3584, 8192)[-1]
    1.0
    """
    return terms_of(config, units)


def scales(m: int, n: int, k: int) -> tuple[float, float, float]:
    """The values of SCALES as logarithms, near 0 for sizes in the middle of those that layers
    have."""
    return log2(m) / 3 - 3, log2(n) - 13, log2(k) - 14
