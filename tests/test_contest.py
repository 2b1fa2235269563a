"""A contest of few configs: BSP wins ties, rounds fit the budget, what cannot win is dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tftune.db.trial import Failure, Measurement
from tftune.kernels.core.space import Config
from tftune.tuner.warm_up.contest import (
    MOST,
    PROBE,
    Samples,
    affordable,
    contest,
    measured,
    near,
    strongest,
    winner,
)

GATHER, REGISTERED = Config("bsp", form="gather"), Config("bsp", form="gather_registered")
PUSH, PULL = Config("push", block_m=64), Config("pull", block_m=64)
NOISE = (1.0, 1.02, 0.99, 1.01, 0.98)


class FakeClock:
    """Rounds of configs whose calls take so many microseconds; a round is so many calls long."""

    def __init__(self, us: dict[Config, float], calls: int) -> None:
        self.us, self.calls = us, calls
        self.spent_s = 0.0
        self.asked: list[tuple[tuple[Config, ...], int]] = []

    def __call__(self, configs: Sequence[Config], count: int) -> tuple[Samples, float]:
        self.asked.append((tuple(configs), count))
        took_s = (count + 1) * self.calls * sum(self.us[config] for config in configs) / 1e6
        self.spent_s += took_s
        noise = [NOISE[number % len(NOISE)] for number in range(count)]
        return {c: tuple(self.us[c] * part for part in noise) for c in configs}, took_s


def decided(samples: Samples) -> Config | None:
    return winner(measured(samples, dict.fromkeys(samples, 1e-4)))


@pytest.mark.parametrize("calls", [10, 100, 1000, 3000])
def test_rounds_fit_into_the_budget(calls: int) -> None:
    """From calls of which 41 rounds cost nothing to such that the probe takes most of it."""
    clock = FakeClock({GATHER: 20.0, PUSH: 18.5, PULL: 19.5}, calls)
    samples = contest((GATHER, PUSH, PULL), clock, left_s=1.0)
    rounds = {len(us) for us in samples.values()}
    assert min(rounds) >= PROBE and max(rounds) <= MOST
    budget_s = max(1.0, (PROBE + 1) * calls * 58.0 / 1e6)
    assert clock.spent_s <= budget_s
    assert calls > 100 or rounds == {MOST}


def test_the_time_left_is_used() -> None:
    clock = FakeClock({GATHER: 20.0, PUSH: 19.0}, calls=1000)
    contest((GATHER, PUSH), clock, left_s=1.0)
    assert 0.9 < clock.spent_s <= 1.0


def test_all_that_goes_on_has_the_same_rounds_and_what_cannot_win_has_few() -> None:
    clock = FakeClock({GATHER: 20.0, REGISTERED: 20.2, PUSH: 15.0, PULL: 18.0}, calls=10)
    samples = contest((GATHER, REGISTERED, PUSH, PULL), clock, left_s=1.0)
    lengths = {config: len(us) for config, us in samples.items()}
    assert lengths == {GATHER: MOST, REGISTERED: MOST, PUSH: MOST, PULL: PROBE}
    assert [configs for configs, _ in clock.asked][1:] == [(GATHER, REGISTERED, PUSH)]


def test_one_probed_round_near_the_leader_keeps_a_config_in() -> None:
    probed = {GATHER: (20.0,) * 5, PUSH: (10.0,) * 5, PULL: (12.0, 12.0, 10.9, 12.0, 12.0)}
    assert near(probed) == [GATHER, PUSH, PULL]
    assert near(probed | {PULL: (12.0, 12.0, 11.1, 12.0, 12.0)}) == [GATHER, PUSH]


def test_without_time_the_probe_decides() -> None:
    clock = FakeClock({GATHER: 20.0, PUSH: 15.0}, calls=10)
    samples = contest((GATHER, PUSH), clock, left_s=-1.0)
    assert {len(us) for us in samples.values()} == {PROBE} and decided(samples) == PUSH


def test_the_slowest_go_where_the_probe_would_not_fit() -> None:
    round_s = {GATHER: 0.05, REGISTERED: 0.07, PUSH: 0.03, PULL: 0.06}
    assert affordable(round_s, left_s=2.0) == (GATHER, REGISTERED, PUSH, PULL)
    assert affordable(round_s, left_s=1.0) == (GATHER, PUSH, PULL)
    assert affordable(round_s, left_s=0.0) == (GATHER, PUSH), "one of each kind stays"
    assert affordable({GATHER: 9.0}, left_s=0.0) == (GATHER,)
    short = {GATHER: 2e-3, REGISTERED: 1e-3, PUSH: 1e-3}
    assert affordable(short, left_s=-0.2) == (*short,), "a probe costs less than a wrong form"


Change = Callable[[float], float]


@pytest.mark.parametrize(
    ("us", "expected"),
    [
        ({GATHER: 20.0, PUSH: 20.0}, GATHER),
        ({GATHER: 20.0, PUSH: 19.0}, PUSH),
        ({GATHER: 20.0, PUSH: 21.0}, GATHER),
        ({GATHER: 20.0, REGISTERED: 18.0, PUSH: 19.0}, REGISTERED),
        ({GATHER: 20.0, REGISTERED: 22.0, PUSH: 19.0, PULL: 18.0}, PULL),
    ],
)
def test_the_fastest_wins_and_bsp_wins_ties(us: dict[Config, float], expected: Config) -> None:
    samples, _ = FakeClock(us, 1)(tuple(us), 20)
    assert decided(samples) == expected


def test_a_median_above_one_is_not_enough() -> None:
    """Half of the rounds say 1.1, a third 0.95: the interval of the median reaches below 1."""
    bsp = (20.0,) * 12
    push = (*[20 / 1.1] * 7, *[20 / 0.95] * 5)
    outcomes = measured({GATHER: bsp, PUSH: push}, {GATHER: None, PUSH: 1e-4})
    found = outcomes[PUSH]
    assert isinstance(found, Measurement) and (found.speedup or 0) > 1.05
    assert winner(outcomes) == GATHER


def test_ratios_are_taken_round_by_round() -> None:
    """A drift of both hides nothing, and a drift of one alone is no gain."""
    drift = tuple(20.0 * (1 + 0.2 * number) for number in range(9))
    assert decided({GATHER: drift, PUSH: tuple(us / 1.02 for us in drift)}) == PUSH
    assert decided({GATHER: drift, PUSH: tuple(reversed(drift))}) == GATHER


def test_every_measurement_stands_beside_the_strongest_form() -> None:
    samples = {GATHER: (20.0,) * 9, REGISTERED: (18.0,) * 9, PUSH: (19.0,) * 5}
    outcomes = measured(samples, {GATHER: None, REGISTERED: 1e-5, PUSH: 1e-4})
    found = {c: m for c, m in outcomes.items() if isinstance(m, Measurement)}
    assert strongest(samples) == REGISTERED
    assert {m.bsp_samples_us[0] for m in found.values()} == {18.0}
    assert found[PUSH].stopped_early and len(found[PUSH].bsp_samples_us) == 5
    assert not found[GATHER].stopped_early and found[REGISTERED].check_error == 1e-5


def test_a_form_that_was_dropped_is_not_the_strongest() -> None:
    assert strongest({GATHER: (20.0,) * 9, REGISTERED: (19.0,) * 5}) == GATHER


@pytest.mark.parametrize("outcomes", [{}, {GATHER: Failure("resources", "full")}])
def test_without_a_measured_bsp_nothing_wins(outcomes: dict[Config, Any]) -> None:
    assert winner(outcomes) is None
