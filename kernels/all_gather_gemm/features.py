"""What the selector's tree may look at: named integers and ratios of a shape that a person can
read; and what an estimate of a config's time goes by. Standard library only."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2
from typing import Any

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.rules import column_chunks, parts, row_chunks
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.gemm_space import terms_of
from tftune.kernels.core.space import Config

FEATURES: dict[str, tuple[str, Callable[[AllGatherGemm], float]]] = {
    "m": ("rows of C", lambda s: s.m),
    "n": ("columns of C on one rank", lambda s: s.n),
    "k": ("the inner size", lambda s: s.k),
    "world": ("ranks", lambda s: s.world),
    "shard_kb": ("kilobytes that one rank sends to each peer", lambda s: s.shard_bytes / 1024),
    "gflop": ("billions of operations on one rank", lambda s: 2 * s.m * s.n * s.k / 1e9),
    "intensity": (
        "operations for each byte of A and B",
        lambda s: 2 * s.m * s.n * s.k / (s.element_bytes * s.k * (s.m + s.n)),
    ),
    "outputs_k": ("thousands of elements of C", lambda s: s.m * s.n / 1024),
    "large_tiles": ("tiles of 128 x 256 in C", lambda s: -(-s.m // 128) * -(-s.n // 256)),
    "small_tiles": ("tiles of 64 x 128 in C", lambda s: -(-s.m // 64) * -(-s.n // 128)),
    "weights_mb": ("megabytes of B", lambda s: s.n * s.k * s.element_bytes / 2**20),
}
TERMS = ("call", "k of rounds", "k of tiles", "gathered a", "b", "c", "rounds")
"""What the time of one config grows with, see `timing`."""
SCALES = ("m", "n", "k")
"""The features of which a formula's smooth correction is a function, see `scales`."""


def timing(config: Config, units: int) -> Callable[[int, int, int], tuple[float, ...]]:
    """The values of TERMS as a function of (m, n, k), for one config on a chip of so many units: a
    config's time is taken to be a weighted sum of them.

    >>> config = Config("push", block_m=128, block_n=256, comm_programs=16)
    >>> timing(config, 132)(1024, 3584, 8192)[-1]
    1.0
    """
    knobs: dict[str, Any] = dict(config.knobs)
    return terms_of(config, max(units - knobs.get("comm_programs", 0), 1))


def scales(m: int, n: int, k: int) -> tuple[float, float, float]:
    """The values of SCALES as logarithms, near 0 for sizes in the middle of those that layers
    have."""
    return log2(m) / 3 - 3, log2(n) - 12, log2(k) - 12


Pair = Callable[[AllGatherGemm, Config, Chip], float]


def _tiled(value: Pair) -> Pair:
    """The value where a config has tiles; -1 for the forms of the library."""
    return lambda shape, config, chip: (
        value(shape, config, chip) if "block_m" in dict(config.knobs) else -1.0
    )


def _rounds(shape: AllGatherGemm, config: Config, chip: Chip) -> float:
    return parts(shape, config) / max(chip.units - int(config["comm_programs"]), 1)


PAIR_FEATURES: dict[str, tuple[str, Pair]] = {
    "rounds": ("parts of tiles for each program that computes", _tiled(_rounds)),
    "full": (
        "how full the last round of tiles makes all rounds",
        _tiled(lambda s, c, chip: _rounds(s, c, chip) / ceil(_rounds(s, c, chip))),
    ),
    "work": (
        "steps of the program that has most",
        _tiled(lambda s, c, chip: ceil(_rounds(s, c, chip)) * s.k / c["block_k"] / c["split_k"]),
    ),
    "row_flags": (
        "row chunks of a shard",
        _tiled(lambda s, c, chip: row_chunks(s, c)),
    ),
    "column_flags": (
        "column chunks of a shard",
        _tiled(lambda s, c, chip: column_chunks(s, c)),
    ),
    "ragged": (
        "the part of a column tile that N leaves over",
        _tiled(lambda s, c, chip: s.n % c["block_n"] / c["block_n"]),
    ),
}
"""Features of a shape with a config that is not plain BSP: what decides the time beside sizes and
knobs."""

RIVALS = (
    ("the paper: pull below M=128, push above", "m", 128, "pull", "push"),
    ("Triton-distributed: BSP below 100 GFLOP, push above", "gflop", 100.0, "bsp", "push"),
    ("vLLM: BSP below 4096 tokens, push above", "m", 4096, "bsp", "push"),
)
"""Rules in use elsewhere, which stand beside the selector in reports: title, feature, its bound,
the variant below it, and from it on. Sources: arXiv 2511.02168; Triton-distributed, pull request
166 (of one rank's GEMM); vLLM, pull request 52856."""
