"""How far the winner of a search may be from the best config, by the surrogate's posterior over
what was not tried."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tftune.kernels.core.space import Config
from tftune.tuner.search.feasible import Feasible
from tftune.tuner.search.feasible_sampler import Hint
from tftune.tuner.search.model_samplers import GpSampler

CONFIDENCE = 0.95
DRAWN, AMONG = 400, 256
"""Draws from the posterior, each of so many configs that may be the best."""
WIDER = 1.25
"""Times the posterior's own deviations: see docs/notebook.md."""
LEAST = 8
"""Measured configs below which nothing is said."""


def may_be_off_by(
    feasible: Feasible, ratios: Mapping[Config, float | None], hint: Hint | None, seed: int = 0
) -> float | None:
    """The winner's time over the least that a feasible config may take, at 95 % by the posterior:
    1.03 says that the winner takes at most 3 % more than the best. 1 where all were tried; None
    where too few were measured.

    `ratios`: times over BSP's time of what was tried, None where it failed.
    """
    sampler = GpSampler(feasible, seed, hint)
    for config, ratio in ratios.items():
        if (number := feasible.index.get(config)) is not None:
            sampler.unseen[number], sampler.seen[number] = False, ratio
    unseen = np.flatnonzero(sampler.unseen)
    known = np.array(
        [number for number, ratio in sampler.seen.items() if ratio is not None], dtype=int
    )
    if not len(unseen):
        return 1.0
    if len(known) < LEAST:
        return None
    times = sampler.times(known)
    posterior, process, prior = sampler.posterior(known, times, unseen)
    likely = np.argsort(posterior.mean - 2 * posterior.deviation)[:AMONG]
    draws = process.samples(sampler.points(unseen[likely]), DRAWN, sampler.random)
    middle = posterior.mean[likely] - prior[likely]
    least = (middle + WIDER * (draws - middle) + prior[likely]).min(axis=1)
    return float(np.exp(max(0.0, np.log(times.min()) - np.quantile(least, 1 - CONFIDENCE))))
