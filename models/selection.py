"""What a selector answers: the config to run, and what that rests on. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tftune.db.trial import Interval
from tftune.kernels.core.space import Config
from tftune.models.layout import Source
from tftune.models.tree.tree import Sizes


@dataclass(frozen=True)
class Selection:
    """One answer: the config to run, and what it rests on.

    `source`: "measured" (rows of this very shape), "interpolated" (estimated from rows of other
    shapes of this layout), "modelled" (times that an analytic model predicted), or "fallback" (BSP,
    where the artifact says nothing). Times are in microseconds.

    >>> import tftune
    >>> shape = tftune.AllGatherGemm(m=64, n=3584, k=8192, world=8)
    >>> found = tftune.load(target="h200x8").select(shape)
    >>> found.config.variant, found.source, found.near
    ('push', 'measured', ((64, 3584, 8192),))
    >>> found.to_dict()["config"]["variant"]
    'push'
    """

    config: Config
    source: Source
    reason: str
    expected_us: float | None = None
    """The time to expect of the config; None for a fallback."""
    bsp_us: float | None = None
    """The time to expect of BSP's fastest form; None where no such time fits the measured
    interval."""
    interval: Interval | None = None
    """The interval of `speedup`: 95 % of a measured one, 90 % of an estimated one. None where the
    config is BSP."""
    near: tuple[Sizes, ...] = ()
    """The measured shapes that it rests on, as values of `Shape.coordinates`."""

    @property
    def speedup(self) -> float | None:
        """The time of BSP over that of the config, both as expected."""
        return self.bsp_us / self.expected_us if self.bsp_us and self.expected_us else None

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "config": self.config.to_dict(), "source": self.source, "reason": self.reason,
            "expected_us": self.expected_us,
            "bsp_us": self.bsp_us, "speedup": self.speedup,
            "interval": self.interval and list(self.interval),
            "near": [list(sizes) for sizes in self.near],
        }  # fmt: skip
