"""A Gaussian process over configs: what the untried ones may take, and how surely that is known.

The prior mean is the hint (the model's time) where there is one, so that what is learned is by how
much the hint is wrong here. numpy and scipy only: a search has at most a few hundred rows, and a
fit of 64 takes some 15 ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize
from scipy.stats import norm

Array = np.ndarray[Any, Any]

ROUNDS = 30
"""Steps of the optimiser for each fit; it starts where the fit before it ended."""
LENGTH = (0.0, 1.0)
"""Prior of the logarithm of a length scale, columns being between 0 and 1: mean, standard
deviation."""
SPREAD = 0.7
"""Standard deviation of the prior of the logarithm of the amplitude."""
OWN = 0.5
"""The same of the logarithm of the residual."""
LEVEL = 4.0
"""The level is known beforehand to so many amplitudes."""
BOUNDS = ((log(0.05), log(20.0)), (log(0.01), log(3.0)), (log(0.005), log(0.3)))
"""Bounds of the logarithms of a length scale, the amplitude and a config's own residual."""


@dataclass(frozen=True)
class Posterior:
    """What is expected of the logarithms of times: means and standard deviations, float64
    [configs]."""

    mean: Array
    deviation: Array

    def improvement(self, best: float) -> Array:
        """By how much each is expected to be below `best`, in logarithms (expected improvement)."""
        scaled = (best - self.mean) / self.deviation
        expected: Array = self.deviation * (scaled * norm.cdf(scaled) + norm.pdf(scaled))
        return expected


class GaussianProcess:
    """Matern 5/2 with a length scale for each column, fitted by maximum posterior density.

    `points`: float64 [rows, columns] between 0 and 1; `values`: float64 [rows], logarithms less
    their prior mean; `amplitude`: how far values are expected to lie from it; `residual`: how far
    each lies from any smooth function of the columns, the noise of its measurement included.
    """

    def __init__(
        self,
        points: Array,
        values: Array,
        amplitude: float,
        residual: float,
        start: Array | None = None,
    ) -> None:
        self._points, self._values = points, values
        self._squares = (points[:, None, :] - points[None, :, :]) ** 2
        columns = points.shape[1]
        self._center = np.array([*[LENGTH[0]] * columns, log(amplitude), log(residual)])
        self._width = np.array([*[LENGTH[1]] * columns, SPREAD, OWN])
        first = self._center if start is None or len(start) != columns + 2 else start
        bounds = [*[BOUNDS[0]] * columns, *BOUNDS[1:]]
        optimum = minimize(
            self._cost,
            first,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": ROUNDS},
        )
        self.settings: Array = optimum.x
        self._solve()

    def _cost(self, settings: Array) -> tuple[float, Array]:
        """Negative logarithm of the posterior density up to a constant, and its gradient."""
        columns = self._points.shape[1]
        inverse = np.exp(-2 * settings[:columns])
        variance = np.exp(2 * settings[columns])
        own = np.exp(2 * settings[-1])
        scaled = np.sqrt(5 * (self._squares @ inverse))
        decay = np.exp(-scaled)
        alike = variance * (1 + scaled + scaled**2 / 3) * decay
        count = len(self._values)
        factor = cho_factor(alike + LEVEL**2 * variance + own * np.eye(count), lower=True)
        weights = cho_solve(factor, self._values)
        slope = cho_solve(factor, np.eye(count)) - np.outer(weights, weights)
        gradient = np.empty_like(settings)
        towards = slope * variance * (5 / 3) * (1 + scaled) * decay
        gradient[:columns] = 0.5 * np.einsum("ij,ijk->k", towards, self._squares) * inverse
        gradient[columns] = (slope * (alike + LEVEL**2 * variance)).sum()
        gradient[-1] = np.trace(slope) * own
        away = (settings - self._center) / self._width
        cost = 0.5 * self._values @ weights + np.log(np.diag(factor[0])).sum() + 0.5 * away @ away
        return float(cost), gradient + away / self._width

    def _solve(self) -> None:
        columns = self._points.shape[1]
        self._scales = np.exp(-self.settings[:columns])
        self._variance = np.exp(2 * self.settings[columns])
        self._residual = np.exp(2 * self.settings[-1])
        whole = self._covariance(self._points, self._points) + self._residual * np.eye(
            len(self._points)
        )
        self._factor = cho_factor(whole, lower=True)
        self._weights = cho_solve(self._factor, self._values)

    def _covariance(self, left: Array, right: Array) -> Array:
        left, right = left * self._scales, right * self._scales
        squares = (
            (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)[None, :] - 2 * left @ right.T
        )
        scaled = np.sqrt(5 * np.maximum(squares, 0.0))
        covariance: Array = self._variance * (
            (1 + scaled + scaled**2 / 3) * np.exp(-scaled) + LEVEL**2
        )
        return covariance

    def posterior(self, points: Array) -> Posterior:
        """The posterior of values at these points, float64 [configs, columns], which were not
        measured: each has a residual of its own."""
        across = self._covariance(points, self._points)
        known = solve_triangular(self._factor[0], across.T, lower=True)
        left = self._variance * (1 + LEVEL**2) - (known**2).sum(axis=0)
        return Posterior(across @ self._weights, np.sqrt(np.maximum(left, 0.0) + self._residual))

    def samples(self, points: Array, count: int, random: np.random.Generator) -> Array:
        """Values at these points together, drawn from the posterior: float64 [count, configs]."""
        across = self._covariance(points, self._points)
        known = solve_triangular(self._factor[0], across.T, lower=True)
        covariance = (
            self._covariance(points, points)
            - known.T @ known
            + self._residual * np.eye(len(points))
        )
        root = np.linalg.cholesky(covariance)
        draws: Array = (
            across @ self._weights + random.standard_normal((count, len(points))) @ root.T
        )
        return draws
