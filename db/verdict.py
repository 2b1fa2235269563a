"""Whether a config answers by what its rows say: its speed-up over BSP, and what the discount on
modelled times leaves of it. Standard library only.

The table of a search, reports, the service's pages and explanations ask `standing`. Training asks
the same functions of evidence, and takes the same discount off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tftune.db.discount import discount_of
from tftune.db.evidence import (
    BSP,
    Speedup,
    answer,
    comparable_us,
    concluded,
    is_fused,
    is_surely_faster,
    over_bsp,
)
from tftune.db.trial import Trial
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config


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
        """Whether the config answers rather than BSP, after the discount."""
        return self.variant != BSP and is_surely_faster(self.kept.interval, self.discount)

    @property
    def fused_wins(self) -> bool:
        """Whether it answers and is a fused variant."""
        return self.answers and is_fused(self.variant)

    @property
    def ties(self) -> bool:
        """Whether noise or another run may explain the speed-up, before any discount."""
        return self.variant != BSP and not is_surely_faster(self.ratio.interval)


class Standing(NamedTuple):
    """Who won at a place."""

    winner: Trial
    """What answers; where that is BSP, the fastest."""
    bsp: Trial | None
    """The strongest form."""
    by_variant: dict[str, Trial]
    """The fastest of each."""
    verdicts: dict[str, Verdict]
    """What each of these says beside BSP's; none without BSP."""
    ranked: list[Config]
    """What was measured, the fastest first."""


@dataclass(frozen=True)
class Best:
    """The outcome for one shape in one mode. After a search the trials are of the final stage where
    BSP could be measured there."""

    shape: Shape
    mode: str
    winner: Trial
    bsp: Trial | None
    by_variant: Mapping[str, Trial]
    """The best trial of each."""
    verdicts: Mapping[str, Verdict]
    """What each of these says beside BSP's; none without BSP."""
    evaluations: int
    """Configs tried in the search stage, failures among them."""
    feasible: int | None = None
    """Possible configs; None where nobody counted."""
    tied: tuple[Config, ...] = ()
    """The winner, and the configs that noise, or 1 %, does not tell from it: see `evidence.tied`;
    empty where nobody looked."""
    off_by: float | None = None
    """The winner's time over the least that a config considered may take, at 95 %; None where
    nothing is known of it."""


def standing(
    found: Mapping[Config, Trial], rows: Iterable[tuple[Config, Trial]], mode: str
) -> Standing:
    """Who won of the rows that count for each config, some of which have times. `rows`: all there
    are, see `evidence.comparable_us`."""
    times = comparable_us(found, rows, mode)
    forms = [config for config in times if config.variant == BSP]
    form = min(forms, key=times.__getitem__, default=None)

    def verdict(config: Config) -> Verdict:
        trial = found[config]
        bsp_us = times[config if form is None or config.variant == BSP else form]
        ratio = Speedup(1.0, 1.0, 1.0)
        if config.variant != BSP:
            ratio = over_bsp(trial, times[config], bsp_us)
        return Verdict(config.variant, ratio, discount_of(trial.bench))

    by_variant: dict[str, Config] = {}
    for config in sorted(concluded(found, times), key=times.__getitem__):
        by_variant.setdefault(config.variant, config)
    if form is not None:
        by_variant[BSP] = form
    best = min(by_variant.values(), key=times.__getitem__)
    if form is not None:
        sure = answer(found, times, lambda config: verdict(config).answers)
        best = best if sure == form else sure
        if sure.variant != BSP:
            by_variant[sure.variant] = sure
    return Standing(
        found[best],
        None if form is None else found[form],
        {variant: found[config] for variant, config in by_variant.items()},
        {} if form is None else {name: verdict(config) for name, config in by_variant.items()},
        sorted(times, key=times.__getitem__),
    )
