"""The Gaussian process: its gradient, what it learns, how sure it is, and draws that agree with its
posterior."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad

from tftune.tuner.search.surrogate import GaussianProcess, Posterior

RANDOM = np.random.default_rng(0)
POINTS = RANDOM.random((60, 8))


def bowl(points: np.ndarray) -> np.ndarray:
    return 0.3 * np.sin(3 * points[:, 0]) + 0.1 * points[:, 1]


def made(own: float = 0.01) -> GaussianProcess:
    values = bowl(POINTS) + own * np.random.default_rng(1).standard_normal(len(POINTS))
    return GaussianProcess(POINTS, values - values.mean(), 0.3, own)


def test_the_gradient_is_that_of_the_cost() -> None:
    process = made()
    settings = np.array([*np.random.default_rng(2).normal(0, 0.3, 8), np.log(0.3), np.log(0.02)])
    assert check_grad(lambda s: process._cost(s)[0], lambda s: process._cost(s)[1], settings) < 1e-3


def test_it_learns_a_smooth_function_and_what_does_not_matter() -> None:
    fresh = np.random.default_rng(3).random((500, 8))
    found = made().posterior(fresh)
    errors = found.mean - (bowl(fresh) - bowl(POINTS).mean())
    assert np.std(errors) < 0.03 < 0.09 < np.std(bowl(fresh))
    lengths = np.exp(made().settings[:8])
    assert lengths[0] < 0.5 * lengths[2:].min()


@pytest.mark.parametrize("own", [0.01, 0.1])
def test_most_values_lie_within_two_deviations(own: float) -> None:
    random = np.random.default_rng(4)
    fresh = random.random((2000, 8))
    found = made(own).posterior(fresh)
    values = bowl(fresh) - bowl(POINTS).mean() + own * random.standard_normal(2000)
    within = np.mean(np.abs(values - found.mean) < 2 * found.deviation)
    assert 0.88 < within <= 1.0 and found.deviation.min() > 0.5 * own


def test_draws_agree_with_the_posterior() -> None:
    process, fresh = made(), np.random.default_rng(5).random((50, 8))
    found, draws = process.posterior(fresh), process.samples(fresh, 4000, np.random.default_rng(6))
    assert np.allclose(
        draws.mean(axis=0), found.mean, atol=5 * found.deviation.max() / np.sqrt(4000)
    )
    assert np.allclose(draws.std(axis=0), found.deviation, rtol=0.1)


def test_expected_improvement_is_larger_for_the_better_and_for_the_less_known() -> None:
    found = Posterior(np.array([0.0, 0.2, 0.2, -5.0]), np.array([0.1, 0.1, 0.3, 0.1]))
    better, worse, unknown, best = found.improvement(0.0)
    assert best == pytest.approx(5.0) and best > unknown > better > worse > 0
