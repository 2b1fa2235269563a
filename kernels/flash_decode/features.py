"""What the selector's tree may look at: named integers and ratios of a shape that a person can
read. Standard library only."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2
from typing import Any

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode.lengths import Facts

FEATURES: dict[str, tuple[str, Callable[[FlashDecode], float]]] = {
    "batch": ("sequences", lambda s: s.batch),
    "q_heads": ("query heads", lambda s: s.q_heads),
    "group": ("query heads that share one KV head", lambda s: s.group),
    "head_dim": ("elements of one head", lambda s: s.head_dim),
    "kv_len": ("tokens of one sequence on one rank", lambda s: s.kv_len),
    "world": ("ranks", lambda s: s.world),
    "cache_mb": (
        "megabytes of keys and values that one rank reads",
        lambda s: s.cache_bytes / 2**20,
    ),
    "groups": (
        "batch times KV heads: what can be attended to side by side before a sequence is split",
        lambda s: s.batch * s.kv_heads,
    ),
    "message_kb": ("kilobytes that one rank sends to each peer", lambda s: s.message_bytes / 1024),
}
OF_CONFIG: dict[str, tuple[str, Callable[[FlashDecode, Config, Chip], float]]] = {
    "waves": (
        "units of work for each program that the chip runs at once",
        lambda s, c, chip: s.batch * s.kv_heads * c["kv_splits"] / _at_once(c, chip),
    ),
    "blocks": (
        "blocks of tokens in a unit of work, where sequences are full",
        lambda s, c, chip: s.kv_len / (c["kv_splits"] * c["block_n"]),
    ),
    "splits": ("parts of a sequence", lambda s, c, chip: c["kv_splits"]),
}
"""What the config that answers for a shape makes of it: known where facts are not."""
GATHERED: dict[str, tuple[str, Callable[[FlashDecode, Config, Chip, Facts], float]]] = {
    "fill": (
        "share of the rank's cache that holds tokens",
        lambda s, c, chip, f: f.total / (s.batch * s.kv_len),
    ),
    "evenness": (
        "mean length of the sequences that hold a token, over the longest",
        lambda s, c, chip, f: f.total / max(f.longest * (s.batch - f.empty), 1),
    ),
    "waves_there": (
        "units of work that hold a token, for each program that the chip runs at once",
        lambda s, c, chip, f: (s.batch - f.empty) * s.kv_heads * c["kv_splits"] / _at_once(c, chip),
    ),
    "mean_blocks": (
        "blocks of tokens in a unit of work, of the sequence of mean length",
        lambda s, c, chip, f: f.total / (s.batch * c["kv_splits"] * c["block_n"]),
    ),
    "longest_blocks": (
        "the same of the longest sequence",
        lambda s, c, chip, f: f.longest / (c["kv_splits"] * c["block_n"]),
    ),
}
"""What no shape tells, and a rank's facts do."""
SCALES = ("kv_len", "batch x kv_heads", "q_heads x head_dim")
"""The features of which a formula's smooth correction is a function, see `scales`."""
TERMS = (
    "call",
    "tokens of rounds",
    "tokens of units",
    "cache",
    "rounds",
    "message",
    "partial results",
    "output",
)
"""What the time of one config grows with, see `timing`."""


def timing(config: Config, units: int) -> Callable[[int, int, int, int, int], tuple[float, ...]]:
    """The values of TERMS as a function of (batch, q_heads, kv_heads, head_dim, kv_len), for one
    config on a chip of so many units.

    A config's time is taken to be a weighted sum of them: one call; elements of the cache that the
    program with most splits reads, and the mean program; the whole cache; splits begun; elements
    sent to a peer; partial results; outputs. All are scaled so that weights are near 1.
    """
    knobs: dict[str, Any] = dict(config.knobs)
    splits, block_n = knobs["kv_splits"], knobs["block_n"]
    programs = units * knobs.get("programs_per_unit", 1)

    def terms(
        batch: int, q_heads: int, kv_heads: int, head_dim: int, kv_len: int
    ) -> tuple[float, ...]:
        work, tokens = batch * kv_heads * splits / programs, -(-kv_len // splits)
        rounds, padded = float(ceil(work)), -(-tokens // block_n) * block_n
        heads = batch * q_heads * head_dim / 1e4
        return (
            1.0, rounds * padded * head_dim / 1e5, work * tokens * head_dim / 1e5,
            batch * kv_heads * kv_len * head_dim / 1e6, rounds, heads, splits * heads / 10,
            batch * q_heads / 64,
        )  # fmt: skip

    return terms


def scales(
    batch: int, q_heads: int, kv_heads: int, head_dim: int, kv_len: int
) -> tuple[float, float, float]:
    """The values of SCALES as logarithms, near 0 for sizes in the middle of those that models
    have."""
    return log2(kv_len) / 3 - 4, log2(batch * kv_heads) / 2 - 2, log2(q_heads * head_dim) - 13


def _at_once(config: Config, chip: Chip) -> int:
    """Programs that the chip runs at once, as far as a config says: one on each unit."""
    return chip.units * int(dict(config.knobs).get("programs_per_unit", 1))
