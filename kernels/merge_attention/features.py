"""What the selector's tree may look at: named integers and ratios of a shape that a person can
read; and what an estimate of a config's time goes by. Standard library only."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2
from typing import Any

from tftune.kernels.core.space import Config
from tftune.kernels.merge_attention import MergeAttention

FEATURES: dict[str, tuple[str, Callable[[MergeAttention], float]]] = {
    "batch": ("sequences", lambda s: s.batch),
    "heads": ("query heads of all ranks", lambda s: s.heads),
    "head_dim": ("elements of one head", lambda s: s.head_dim),
    "world": ("ranks", lambda s: s.world),
    "rows": ("heads of all sequences that one rank merges", lambda s: s.rows),
    "message_kb": ("kilobytes that one rank sends to each peer", lambda s: s.message_bytes / 1024),
}
SCALES = ("batch", "heads x head_dim")
"""The features of which a formula's smooth correction is a function, see `scales`."""
TERMS = ("call", "elements", "pieces of a program", "elements of a program")
"""What the time of one config grows with, see `timing`."""


def timing(config: Config, units: int) -> Callable[[int, int, int], tuple[float, ...]]:
    """The values of TERMS as a function of (batch, heads, head_dim), for one config on a chip of so
    many units.

    A config's time is taken to be a weighted sum of them: one call; elements of o; pieces and
    elements of the program that has most. All are scaled so that weights are near 1.
    """
    knobs: dict[str, Any] = dict(config.knobs)
    rows, programs = knobs.get("rows_per_piece", 1), knobs.get("programs", units)

    def terms(batch: int, heads: int, head_dim: int) -> tuple[float, ...]:
        pieces = ceil(-(-batch * heads // rows) / programs)
        return 1.0, batch * heads * head_dim / 1e6, pieces / 10, pieces * rows * head_dim / 1e4

    return terms


def scales(batch: int, heads: int, head_dim: int) -> tuple[float, float]:
    """The values of SCALES as logarithms, near 0 for sizes in the middle of those that models
    have."""
    return log2(batch) / 2 - 2, log2(heads * head_dim) - 13
