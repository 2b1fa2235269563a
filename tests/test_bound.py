"""What a search says of how far its winner may be from the best."""

from __future__ import annotations

from math import exp

import numpy as np

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.chips import H200
from tftune.kernels.core.space import Config
from tftune.tuner.search.bound import LEAST, may_be_off_by
from tftune.tuner.search.feasible import Feasible
from tftune.tuner.search.pools import pool

SHAPE = AllGatherGemm(384, 3584, 8192, 2)
FEASIBLE = Feasible(SPACE, pool(SPACE, SHAPE, H200, "push", 300))


def truth(seed: int) -> dict[Config, float]:
    """A smooth function of the knobs, and 5 % of each config's own."""
    random = np.random.default_rng(seed)
    slopes = random.normal(0, 0.2, FEASIBLE.units.shape[1])
    logs = FEASIBLE.units @ slopes + 0.05 * random.standard_normal(len(FEASIBLE))
    return {
        config: float(value) for config, value in zip(FEASIBLE.configs, np.exp(logs), strict=True)
    }


def test_the_best_is_within_the_bound_nearly_always() -> None:
    held, bounds = [], []
    for seed in range(20):
        times = truth(seed)
        tried = {config: times[config] for config in FEASIBLE.configs[:40]}
        bound = may_be_off_by(FEASIBLE, tried, None)
        assert bound is not None
        held.append(min(tried.values()) / min(times.values()) <= bound)
        bounds.append(bound)
    assert sum(held) >= 18 and 1.0 <= min(bounds) < np.median(bounds) < 1.6


def test_a_hint_that_is_right_says_that_nothing_better_is_left() -> None:
    times = truth(0)
    ranked = sorted(times, key=times.__getitem__)
    tried = {config: times[config] for config in ranked[:30]}

    def hint(configs: list[Config]) -> list[float]:
        return [float(np.log(times[config])) for config in configs]

    said, unsaid = (
        may_be_off_by(FEASIBLE, tried, hint),
        may_be_off_by(FEASIBLE, dict(list(tried.items())[15:]), hint),
    )  # type: ignore[arg-type]
    assert said is not None and unsaid is not None and said < unsaid and said < 1.1


def test_nothing_is_said_of_few_and_everything_known_of_all() -> None:
    times = truth(1)
    few = dict(list(times.items())[: LEAST - 1])
    assert may_be_off_by(FEASIBLE, few, None) is None
    assert may_be_off_by(FEASIBLE, dict.fromkeys(FEASIBLE.configs[:50]), None) is None, (
        "all of them failed"
    )
    assert may_be_off_by(FEASIBLE, times, None) == 1.0


def test_failures_and_configs_beyond_the_set_do_not_count() -> None:
    times = truth(2)
    tried: dict[Config, float | None] = {config: times[config] for config in FEASIBLE.configs[:30]}
    more = tried | {Config("bsp", form="gather"): 0.01} | dict.fromkeys(FEASIBLE.configs[30:33])
    plain, failed = may_be_off_by(FEASIBLE, tried, None), may_be_off_by(FEASIBLE, more, None)
    assert plain is not None
    assert failed is not None
    assert abs(plain - failed) < 0.2 * (plain - 1) + exp(-4)
