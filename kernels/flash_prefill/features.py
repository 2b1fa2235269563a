"""What the selector's tree may look at: named integers and ratios of a shape that a person can
read; and what an estimate of a config's time goes by. Standard library only."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2
from typing import Any

from tftune.kernels.core.space import Config
from tftune.kernels.flash_prefill import FlashPrefill

FEATURES: dict[str, tuple[str, Callable[[FlashPrefill], float]]] = {
    "batch": ("sequences", lambda s: s.batch),
    "q_heads": ("query heads", lambda s: s.q_heads),
    "kv_heads": ("KV heads", lambda s: s.kv_heads),
    "group": ("query heads that share one KV head", lambda s: s.group),
    "head_dim": ("elements of one head", lambda s: s.head_dim),
    "seq_len": ("tokens of one sequence", lambda s: s.seq_len),
    "heads": ("batch times query heads", lambda s: s.batch * s.q_heads),
    "head_mb": ("megabytes of keys and values of one KV head", lambda s: s.head_bytes / 2**20),
    "kv_mb": (
        "megabytes of keys and values of one sequence",
        lambda s: s.kv_heads * s.head_bytes / 2**20,
    ),
    "blocks": (
        "blocks of 128 queries of all heads: programs of the usual kernel",
        lambda s: s.batch * s.q_heads * s.seq_len / 128,
    ),
}
SCALES = ("seq_len", "batch x q_heads", "head_dim")
"""The features of which a formula's smooth correction is a function, see `scales`."""
TERMS = ("call", "pairs", "tokens of rounds", "tokens", "programs")
"""What the time of one config grows with, see `timing`."""
USUAL_ROWS = 128
"""Queries of one program of the library."""


def timing(config: Config, units: int) -> Callable[[int, int, int, int, int], tuple[float, ...]]:
    """The values of TERMS as a function of (batch, q_heads, kv_heads, head_dim, seq_len), for one
    config on a chip of so many units.

    A config's time is taken to be a weighted sum of them: one call; pairs of tokens of all heads;
    the same of the programs of the busiest unit; elements read and written; programs. All are
    scaled so that weights are near 1.
    """
    knobs: dict[str, Any] = dict(config.knobs)
    rows = knobs.get("block_m", USUAL_ROWS)

    def terms(
        batch: int, q_heads: int, kv_heads: int, head_dim: int, seq_len: int
    ) -> tuple[float, ...]:
        programs = batch * q_heads * ceil(seq_len / rows)
        rounds = ceil(programs / units)
        each = rows * seq_len * head_dim
        return (
            1.0, batch * q_heads * seq_len * seq_len * head_dim / 1e9, rounds * each / 1e7,
            batch * (q_heads + kv_heads) * seq_len * head_dim / 1e7, programs / 1e3,
        )  # fmt: skip

    return terms


def scales(
    batch: int, q_heads: int, kv_heads: int, head_dim: int, seq_len: int
) -> tuple[float, float, float]:
    """The values of SCALES as logarithms, near 0 for sizes in the middle of those that models
    have."""
    return log2(seq_len) / 3 - 4, log2(batch * q_heads) / 2 - 2, log2(head_dim) - 7
