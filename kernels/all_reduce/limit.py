"""The physical limit of one all_reduce call. Standard library only."""

from __future__ import annotations

from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.limit import Limit

SMALL_BYTES = 256 << 10
"""Bytes of x up to which latency decides, and shares are averaged by themselves."""


def limit(shape: AllReduce, chip: Chip) -> Limit:
    """One addition for each element of every rank; x, residual and weight read and the results
    written once, caches being cold; 2 (W - 1) / W of x sent, the least that a rank can send
    (Patarasuk and Yuan, 2009); one flight of a flag. Rates are those of kernels/core/chips.py.

    Additions are charged at the rate of products, so that they never bound. Raises ValueError, with
    the next command, where rates are not known.

    >>> from tftune.kernels.core.chips import H200
    >>> limit(AllReduce(4096, 8192, 8), H200).bound
    'links'
    """
    rates, links = chip.rates, chip.links_of(shape.world)
    sent = 2 * (shape.world - 1) * shape.message_bytes / shape.world
    added_us = shape.world * shape.elements / rates.matrix_flops_per_us
    memory_us = shape.local_bytes / rates.hbm_bytes_per_us
    return Limit(added_us, memory_us, sent / links.rate(shape.world), links.flag_us)


def part(shape: AllReduce, chip: Chip) -> str:
    """The part of a set that a shape is averaged in."""
    return f"x_{'to' if shape.message_bytes <= SMALL_BYTES else 'above'}_{SMALL_BYTES >> 10}_kb"
