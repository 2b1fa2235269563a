"""The physical limit of one all_gather_gemm call. Standard library only.

A share of 1 is hardly reached: the GEMM's last step waits for the last transfer, so that the two
never overlap from end to end. Where B alone is read for long, it is, to the percent that the rates
are known.
"""

from __future__ import annotations

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.limit import Limit

LARGE, SMALL = 1024, 128
"""M from which, and up to which, shares are averaged: there the GEMM decides, here reading B and
latency."""
BEST_FLOPS_PER_US = {
    (chip, dtype): 2 * 8192 * 3584 * 8192 / us
    for chip, dtype, us in (("h200", "fp16", 674), ("h200", "bf16", 653))
}
"""By chip and dtype: the best rate that any GEMM was seen to reach, where it is above the library's
of kernels/core/chips.py: `push_ce` at M = 8192 on 2x H200, 2026-11-22 (bf16 takes less power). The
core alone took 680 us the day before (docs/notebook.md)."""


def limit(shape: AllGatherGemm, chip: Chip) -> Limit:
    """2 M N K operations at the best rate that a GEMM reached; B and this rank's shard of A read
    and C written once, caches being cold; the shard sent to W - 1 peers; one flight of a flag.
    Rates are those of kernels/core/chips.py.

    The gathered A is not charged to memory: a kernel may use what arrives while it is in the cache.
    Raises ValueError, with the next command, where the chip's rates are not known.

    >>> from tftune.kernels.core.chips import H200
    >>> limit(AllGatherGemm(8192, 3584, 8192, 8), H200).bound
    'compute'
    """
    own = (shape.k * shape.n + shape.m * shape.n) * shape.element_bytes + shape.shard_bytes
    sent = (shape.world - 1) * shape.shard_bytes
    rates, links = chip.rates, chip.links_of(shape.world)
    best = BEST_FLOPS_PER_US.get((chip.name, shape.dtype), 0.0)
    compute_us = shape.flops / max(rates.matrix_flops_per_us, best)
    flight_us = sent / links.rate(shape.world)
    return Limit(compute_us, own / rates.hbm_bytes_per_us, flight_us, links.flag_us)


def part(shape: AllGatherGemm, chip: Chip) -> str:
    """The part of a set that a shape is averaged in; "" for none."""
    return f"m_from_{LARGE}" if shape.m >= LARGE else f"m_to_{SMALL}" if shape.m <= SMALL else ""
