"""Whether a config answers by what its rows say: its speed-up over BSP, and what the discount on
modelled times leaves of it. Standard library only.

The table of a search, reports, the service's pages and explanations ask `judged`. Training takes
the same discount off.
"""

from __future__ import annotations

from typing import NamedTuple

from tftune.db.evidence import BSP, Speedup, is_fused, is_surely_faster, speedup
from tftune.db.trial import Trial
from tftune.models.discount import discount_of


class Verdict(NamedTuple):
    """One config beside BSP."""

    variant: str
    ratio: Speedup
    """As measured or modelled; exactly 1 for BSP."""
    discount: float
    """What `ratio` is divided by before the config answers; 1 where nothing is taken off."""

    @property
    def kept(self) -> Speedup:
        """The speed-up after the discount."""
        return Speedup(*(value / self.discount for value in self.ratio))

    @property
    def answers(self) -> bool:
        """Whether the config answers rather than BSP: all of its interval lies above 1 after the
        discount."""
        return self.variant != BSP and is_surely_faster(self.kept.interval)

    @property
    def fused_wins(self) -> bool:
        """Whether it answers and is a fused variant."""
        return self.answers and is_fused(self.variant)

    @property
    def ties(self) -> bool:
        """Whether noise may explain the speed-up, before any discount."""
        return self.variant != BSP and not is_surely_faster(self.ratio.interval)


def judged(trial: Trial, bsp: Trial | None) -> Verdict | None:
    """What a row says beside BSP's; None without BSP. Raises ValueError for a failure."""
    variant = trial.config.variant
    if variant == BSP:
        return Verdict(variant, Speedup(1.0, 1.0, 1.0), 1.0)
    ratio = speedup(trial, bsp)
    return None if ratio is None else Verdict(variant, ratio, discount_of(trial.bench))
