"""The time of one config as a formula of the sizes: a weighted sum of terms, bent by a smooth
correction. Standard library only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any

from tftune.db.row_checks import is_number

LEAST_US = 1e-3
BELOW = 4
"""How many times the size that grows may lie below the smallest at which a config was measured,
bent as it is there: a tile of 128 rows fits 65 rows, and was first measured at 160, say."""


def curves(scales: Sequence[float]) -> tuple[float, ...]:
    """1, the scales, their squares and their products: what a correction is a weighted sum of.

    >>> curves((2.0, 3.0))
    (1.0, 2.0, 3.0, 4.0, 6.0, 9.0)
    """
    pairs = tuple(one * other for place, one in enumerate(scales) for other in scales[place:])
    return (1.0, *scales, *pairs)


@dataclass(frozen=True)
class Formula:
    """Microseconds are the sum of `weights` times the operation's TERMS, times the exponential of
    the sum of `bends` times `curves`."""

    weights: tuple[float, ...]
    bends: tuple[float, ...]
    """Empty where a config was measured on too few shapes for a correction of its own."""
    least: int
    """The smallest value of the size that grows at which the config was measured."""
    most: int
    """And the greatest. The config answers for none above, since nothing bounds its time there."""

    def holds(self, size: int) -> bool:
        """Whether it may be asked for this size. Below the smallest one its time is at most the
        time there."""
        return self.least <= BELOW * size and size <= self.most

    def us(self, terms: Sequence[float], curve: Sequence[float]) -> float:
        """The estimated time; `terms` and `curve` are of the shape."""
        us: float = max(sum(map(mul, self.weights, terms)), LEAST_US)
        return us * math.exp(sum(map(mul, self.bends, curve))) if self.bends else us

    def to_list(self) -> list[Any]:
        return [
            [float(f"{w:.5g}") for w in self.weights],
            [float(f"{bend:.4g}") for bend in self.bends],
            self.least,
            self.most,
        ]

    @classmethod
    def from_list(cls, values: Any) -> Formula:
        """The formula of such lists; raises TypeError where they are none."""
        match values:
            case [[*weights], [*bends], int() as least, int() as most] if all(
                map(is_number, (*weights, *bends))
            ):
                return cls(tuple(map(float, weights)), tuple(map(float, bends)), least, most)
        raise TypeError(f"a formula is {values!r:.80}")
