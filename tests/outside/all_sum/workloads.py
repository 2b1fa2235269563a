"""Named sets of shapes."""

from __future__ import annotations

from . import AllSum


def paper(world: int = 2, dtype: str = "fp16") -> tuple[AllSum, ...]:
    """Two widths at eight heights."""
    return tuple(
        AllSum(m, n, world, dtype) for n in (256, 512) for m in (1, 3, 8, 20, 48, 96, 160, 200)
    )


SHAPE_SETS = {"paper": paper}
