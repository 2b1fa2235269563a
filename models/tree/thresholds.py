"""Thresholds that read well. Standard library only."""

from __future__ import annotations

import math


def round_between(low: float, high: float, part: tuple[float, float] = (0.25, 0.75)) -> float:
    """A number t with low <= t < high that reads well, from a part of the gap: a power of two, else
    one of few digits.

    >>> round_between(64, 128), round_between(64, 256), round_between(1, 2), round_between(0, 1)
    (100.0, 128.0, 1.5, 0.5)
    """
    least, most = (low + share * (high - low) for share in part)
    middle = (least + most) / 2
    tried = [2.0 ** round(math.log2(middle))] if middle >= 1 else []
    tried += [float(f"{middle:.{digits}g}") for digits in range(1, 17)]
    return next((value for value in tried if least <= value <= most and value < high), low)
