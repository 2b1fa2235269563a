"""The physical limit of one gemm_all_reduce call. Standard library only."""

from __future__ import annotations

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.limit import Limit
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_reduce_scatter.limit import part

__all__ = ["limit", "part"]


def limit(shape: GemmAllReduce, chip: Chip) -> Limit:
    """2 M N K/W operations; A and B read and C written once; of a product sent, in the shape's
    dtype, what an all-reduce must send at least, 2 (W - 1) / W; one flight of a flag. Rates are
    those of kernels/core/chips.py.

    Partial tiles are not charged to memory: they may be added while they are in the cache. Raises
    ValueError, with the next command, where the chip's rates are not known.

    >>> from tftune.kernels.core.chips import H200
    >>> limit(GemmAllReduce(16, 8192, 28672, 8), H200).bound
    'memory'
    """
    inputs = (shape.m + shape.n) * shape.inner * shape.element_bytes
    rates, links = chip.rates, chip.links_of(shape.world)
    return Limit(
        shape.flops / rates.matrix_flops_per_us,
        (inputs + shape.message_bytes) / rates.hbm_bytes_per_us,
        2 * shape.message_bytes * (shape.world - 1) / shape.world / links.rate(shape.world),
        links.flag_us,
    )
