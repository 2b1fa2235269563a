"""The physical limit of one merge_attention call. Standard library only."""

from __future__ import annotations

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.limit import Limit
from tftune.kernels.merge_attention import MergeAttention

SMALL_BATCH = 64
"""Sequences up to which latency decides, and shares are averaged by themselves."""


def limit(shape: MergeAttention, chip: Chip) -> Limit:
    """A product and a sum for each element of every rank's message; o and lse read and the output
    written once, caches being cold; a message sent to W - 1 peers; one flight of a flag. Rates are
    those of kernels/core/chips.py.

    Operations are charged at the rate of matrix products, so that they never bound. Raises
    ValueError, with the next command, where rates are not known.

    >>> from tftune.kernels.core.chips import H200
    >>> limit(MergeAttention(256, 128, 128, 8), H200).bound
    'links'
    """
    rates, links = chip.rates, chip.links_of(shape.world)
    sent = (shape.world - 1) * shape.message_bytes
    merged_us = 2 * shape.world * shape.rows * shape.head_dim / rates.matrix_flops_per_us
    memory_us = shape.local_bytes / rates.hbm_bytes_per_us
    return Limit(merged_us, memory_us, sent / links.rate(shape.world), links.flag_us)


def part(shape: MergeAttention, chip: Chip) -> str:
    """The part of a set that a shape is averaged in."""
    return f"batch_{'to' if shape.batch <= SMALL_BATCH else 'above'}_{SMALL_BATCH}"
