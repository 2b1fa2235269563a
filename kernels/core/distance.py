"""How far two shapes of one operation are apart. Standard library only."""

from __future__ import annotations

from math import log2

from tftune.kernels.core.shape import Shape

OTHER_LAYOUT = 10.0
"""Distance of two shapes for each text field that differs, in doublings of a size: another layout
is further than another size."""


def distance(one: Shape, other: Shape) -> float:
    """The doublings from one size to the other, summed over the fields."""
    pairs = zip(one.key[1:], other.key[1:], strict=True)
    return sum(
        abs(log2(a / b)) if isinstance(a, int) and a and b else OTHER_LAYOUT * (a != b)
        for a, b in pairs
    )
