"""Rounding to powers of two. Standard library only."""

from __future__ import annotations


def power_of_two_from(value: int) -> int:
    """The least power of two that is no less than `value`; `value` is at least 1.

    >>> [power_of_two_from(value) for value in (1, 2, 3, 8, 9)]
    [1, 2, 4, 8, 16]
    """
    return 1 << (value - 1).bit_length()


def power_of_two_to(value: int) -> int:
    """The greatest power of two that is no more than `value`; `value` is at least 1.

    >>> [power_of_two_to(value) for value in (1, 2, 3, 8, 9)]
    [1, 2, 2, 8, 8]
    """
    return 1 << (value.bit_length() - 1)
