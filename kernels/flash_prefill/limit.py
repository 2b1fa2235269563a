"""The physical limit of one flash_prefill call. Standard library only."""

from __future__ import annotations

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.limit import Limit
from tftune.kernels.flash_prefill import FlashPrefill

LONG = 8192
"""Tokens of a sequence from which on shares are averaged by themselves."""


def limit(shape: FlashPrefill, chip: Chip) -> Limit:
    """4 operations for each query head, element and pair of tokens that is not masked, at the rate
    of the best library GEMM; queries, keys and values read and the output written once, caches
    being cold. Rates are those of kernels/core/chips.py.

    Exponentials are left out: they go beside the products. Raises ValueError, with the next
    command, where rates are not known.

    >>> from tftune.kernels.core.chips import H200
    >>> limit(FlashPrefill(1, 32, 8, 128, 8192), H200).bound
    'compute'
    """
    rates = chip.rates
    compute_us = shape.flops / rates.matrix_flops_per_us
    return Limit(compute_us, shape.local_bytes / rates.hbm_bytes_per_us, 0.0, 0.0)


def part(shape: FlashPrefill, chip: Chip) -> str:
    """The part of a set that a shape is averaged in."""
    return f"tokens_{'from' if shape.seq_len >= LONG else 'below'}_{LONG}"
