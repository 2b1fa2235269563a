"""The physical limit of one gemm_reduce_scatter call. Standard library only."""

from __future__ import annotations

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.limit import Limit
from tftune.kernels.core.row_parallel import RowParallel
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter

LARGE, SMALL = 1024, 256
"""M from which, and up to which, shares are averaged."""


def limit(shape: GemmReduceScatter, chip: Chip) -> Limit:
    """2 M N K/W operations; A and B read once, this rank's rows of C written once; W - 1 parts of
    the product sent, in the shape's dtype; one flight of a flag. Rates are those of
    kernels/core/chips.py.

    Partial tiles are not charged to memory: they may be added while they are in the cache. Raises
    ValueError, with the next command, where the chip's rates are not known.

    >>> from tftune.kernels.core.chips import H200
    >>> limit(GemmReduceScatter(8192, 8192, 28672, 8), H200).bound
    'compute'
    """
    inputs = (shape.m + shape.n) * shape.inner * shape.element_bytes
    rates, links = chip.rates, chip.links_of(shape.world)
    return Limit(
        shape.flops / rates.matrix_flops_per_us,
        (inputs + shape.shard_bytes) / rates.hbm_bytes_per_us,
        shape.shard_bytes * (shape.world - 1) / links.rate(shape.world),
        links.flag_us,
    )


def part(shape: RowParallel, chip: Chip) -> str:
    """The part of a set that a shape is averaged in; "" for none."""
    return f"m_from_{LARGE}" if shape.m >= LARGE else f"m_to_{SMALL}" if shape.m <= SMALL else ""
