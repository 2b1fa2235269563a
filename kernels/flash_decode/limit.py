"""The physical limit of one flash_decode call. Standard library only."""

from __future__ import annotations

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.limit import Limit
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode.lengths import FULL, Lengths

LONG_US = 100
"""Microseconds of reading the cache from which on memory decides, and the exchange is a small
part."""


def limit(shape: FlashDecode, chip: Chip, lengths: str = FULL) -> Limit:
    """4 operations for each query head, element and token; keys, values and queries read and the
    output written once, caches being cold; the message sent to W - 1 peers; one flight of a flag.
    Rates are those of kernels/core/chips.py. `lengths`: as rows name them; of rank 0, which reads
    most.

    The links come last: what is sent is a sum over all tokens. Raises ValueError, with the next
    command, where rates are not known.

    >>> from tftune.kernels.core.chips import H200
    >>> limit(FlashDecode(1, 64, 8, 128, 8192, 8), H200).bound
    'memory'
    """
    rows = (shape.q_heads + shape.own_heads) * shape.batch * shape.head_dim * shape.element_bytes
    sent = (shape.world - 1) * shape.message_bytes
    rates, links = chip.rates, chip.links_of(shape.world)
    tokens = sum(Lengths.parse(lengths).local(shape, 0))
    memory_us = (shape.bytes_of(tokens) + rows) / rates.hbm_bytes_per_us
    compute_us = shape.flops_of(tokens) / rates.matrix_flops_per_us
    flight_us = sent / links.rate(shape.world)
    return Limit(compute_us, memory_us, flight_us, links.flag_us, in_turn=True)


def part(shape: FlashDecode, chip: Chip) -> str:
    """The part of a set that a shape is averaged in."""
    read_us = shape.cache_bytes / chip.rates.hbm_bytes_per_us
    return f"kv_{'below' if read_us < LONG_US else 'from'}_{LONG_US}_us"
