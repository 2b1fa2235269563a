"""Samplers that fit a model of the times: a random forest, a Gaussian process, or both in turn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tftune.kernels.core.space import Config
from tftune.tuner.search.feasible import Feasible
from tftune.tuner.search.feasible_sampler import FeasibleSampler, Hint
from tftune.tuner.search.surrogate import GaussianProcess, Posterior


class ModelSampler(FeasibleSampler):
    """What samplers share that fit a model of the times: the candidates of a fit, their hints, and
    what was measured so far."""

    WARM_UP = 8
    """Measured configs before the first fit; until then asks are random, or follow the hint where
    there is one."""
    CANDIDATES, HINTED = 4096, 512
    """Unseen configs that a fit ranks: of more, a random part, another at each fit; and how many at
    each fit are asked a hint for."""

    def __init__(self, feasible: Feasible, seed: int, hint: Hint | None = None) -> None:
        super().__init__(feasible, seed, hint)
        self.hinted = np.full(len(feasible), np.nan)

    def grow(self, configs: Sequence[Config]) -> None:
        super().grow(configs)
        self.hinted = np.append(self.hinted, np.full(len(self.feasible) - len(self.hinted), np.nan))

    def candidates(self) -> np.ndarray:
        """Those that a fit ranks. A hint costs more than a prediction of a model: of many, those
        that have one, and a few more."""
        unseen = np.flatnonzero(self.unseen)
        if len(unseen) <= self.CANDIDATES:
            return unseen
        if self.hint is None:
            return self.random.choice(unseen, self.CANDIDATES, replace=False)
        hinted = unseen[~np.isnan(self.hinted[unseen])]
        return np.union1d(hinted, self.random.choice(unseen, self.HINTED, replace=False))

    def hints(self, numbers: np.ndarray) -> np.ndarray:
        """The hint of each, asked for once; 0 where there is none."""
        if self.hint is None:
            return np.zeros(len(numbers))
        missing = numbers[np.isnan(self.hinted[numbers])]
        if len(missing):
            self.hinted[missing] = self.hint([self.feasible.configs[number] for number in missing])
        hinted: np.ndarray = self.hinted[numbers]
        return hinted

    def columns(self, numbers: np.ndarray) -> np.ndarray:
        """What the forest sees of these configs: their row of the matrix, the powers of two in
        their knobs, and their hint."""
        parts = [self.feasible.matrix[numbers], self.feasible.divisors[numbers]]
        return np.column_stack([*parts, self.hints(numbers)] if self.hint else parts)

    def times(self, known: np.ndarray) -> np.ndarray:
        """Times over BSP's, infinite where a config failed: float64 [configs]."""
        return np.array(
            [np.inf if (time := self.seen[number]) is None else time for number in known],
            dtype=np.float64,
        )

    def ranked(self) -> list[int]:
        known = np.array(self.known, dtype=int)
        times = self.times(known)
        measured = times[np.isfinite(times)]
        if len(measured) < self.WARM_UP and (self.hint is None or not len(measured)):
            return super().ranked()
        candidates = self.candidates()
        scores = self.scores(known, times, candidates)
        if scores is None:
            return super().ranked()
        best = candidates[np.lexsort((self.random.random(len(candidates)), -scores))]
        return [int(number) for number in best[: self.AHEAD]]

    def scores(
        self, known: np.ndarray, times: np.ndarray, candidates: np.ndarray
    ) -> np.ndarray | None:
        """The merit of each candidate, the larger the better; None where there is too little to
        learn from."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it scores")


class LfboSampler(ModelSampler):
    """Likelihood-free Bayesian optimisation with a random forest (Song et al., "A General Recipe
    for Likelihood-free Bayesian Optimization", ICML 2022): a classifier tells the configs below a
    quantile of the times from the others, each positive weighted by its improvement, and its
    probability ranks the unseen configs. Failed configs are negatives, so it learns to avoid them
    too.

    The hint, where there is one, is a column like a knob: the forest finds out for itself how far
    it can be believed. docs/notebook.md has what `benchmarks/sampler.py` says of these constants.
    """

    QUANTILE = 0.2
    ONE_BY_ONE = 60
    """Configs seen until each ask has a fit of its own; of more, one fit serves a sixteenth of what
    was seen."""
    TREES = 32

    def __init__(self, feasible: Feasible, seed: int, hint: Hint | None = None) -> None:
        super().__init__(feasible, seed, hint)
        self._batch: list[int] = []

    def ranked(self) -> list[int]:
        self._batch = [number for number in self._batch if self.unseen[number]]
        if not self._batch:
            ranking = super().ranked()
            self._batch = (
                ranking[: len(self.seen) // 16] if len(self.seen) > self.ONE_BY_ONE else []
            )
            return ranking
        return list(self._batch)

    def scores(
        self, known: np.ndarray, times: np.ndarray, candidates: np.ndarray
    ) -> np.ndarray | None:
        """The probability of each to be at least as good as the threshold."""
        measured = times[np.isfinite(times)]
        if (
            len(measured) < self.WARM_UP
            or (threshold := np.quantile(measured, self.QUANTILE)) >= times.max()
        ):
            return None
        from sklearn.ensemble import RandomForestClassifier

        good = times <= threshold
        # An improvement of zero, at the threshold itself, must still count as good.
        gain = np.where(good, threshold - np.where(good, times, 0), 0) + 1e-3 * threshold
        weights = np.where(good, gain / gain[good].mean(), 1.0)
        forest = RandomForestClassifier(
            self.TREES, random_state=int(self.random.integers(2**31)), n_jobs=1
        )
        forest.fit(self.columns(known), good, sample_weight=weights)
        return np.asarray(forest.predict_proba(self.columns(candidates))[:, 1])


class GpSampler(ModelSampler):
    """Expected improvement of a Gaussian process over the logarithms of times. Its prior mean is
    the hint, so that what it learns is by how much the hint is wrong at this shape.

    Times beyond `WORST` times the best, and failures, all count as that: how bad they are says
    nothing of where the best is.
    """

    WORST = 4.0
    TREES = 32
    WITH_HINT, ALONE = (0.2, 0.05), (0.3, 0.02)
    """How far times are expected to lie from the hint, and from their mean where there is none; and
    from any smooth function of the knobs: logarithms. Of 24 shapes of 2x H200 times lay 7 % from
    the corrected model, and no smooth function explained much of it."""

    def __init__(self, feasible: Feasible, seed: int, hint: Hint | None = None) -> None:
        super().__init__(feasible, seed, hint)
        self._settings: np.ndarray | None = None

    def scores(
        self, known: np.ndarray, times: np.ndarray, candidates: np.ndarray
    ) -> np.ndarray | None:
        posterior, _, _ = self.posterior(known, times, candidates)
        merit = posterior.improvement(float(np.log(times.min())))
        return merit * self._sound(known, times, candidates)

    def _sound(
        self, known: np.ndarray, times: np.ndarray, candidates: np.ndarray
    ) -> np.ndarray | float:
        """The probability of each not to fail, by a forest. Those that more likely fail come after
        all others: expected improvements differ by orders of magnitude, and a failure may cost the
        start of a world."""
        sound = np.isfinite(times)
        if sound.all():
            return 1.0
        from sklearn.ensemble import RandomForestClassifier

        forest = RandomForestClassifier(self.TREES, random_state=0, n_jobs=1).fit(
            self.columns(known), sound
        )
        likely = np.asarray(forest.predict_proba(self.columns(candidates))[:, -1])
        return np.where(likely < 0.5, 1e-300, likely)

    def posterior(
        self, known: np.ndarray, times: np.ndarray, candidates: np.ndarray
    ) -> tuple[Posterior, GaussianProcess, np.ndarray]:
        """The posterior of the logarithms of the candidates' times; and the process with the prior
        means that it was fitted on."""
        top = np.log(times.min() * self.WORST)
        values = np.minimum(np.log(times), top)
        expected, prior = self.hints(known), self.hints(candidates)
        level = np.median(values - expected)
        expected, prior = np.minimum(expected + level, top), np.minimum(prior + level, top)
        amplitude, residual = self.WITH_HINT if self.hint else self.ALONE
        amplitude = amplitude if self.hint else max(amplitude, float(np.std(values)))
        process = GaussianProcess(
            self.points(known), values - expected, amplitude, residual, self._settings
        )
        self._settings = process.settings
        relative = process.posterior(self.points(candidates))
        return Posterior(relative.mean + prior, relative.deviation), process, prior

    def points(self, numbers: np.ndarray) -> np.ndarray:
        """Where these configs lie: their knobs between 0 and 1, and their hint, where there is one,
        in doublings."""
        units: np.ndarray = self.feasible.units[numbers]
        return np.column_stack([units, self.hints(numbers) / np.log(16.0)]) if self.hint else units


class MixedSampler(FeasibleSampler):
    """LFBO and the Gaussian process in turn, each learning from what both asked for: the forest
    finds islands that no smooth function shows, the process follows a smooth one with fewer
    configs."""

    def __init__(self, feasible: Feasible, seed: int, hint: Hint | None = None) -> None:
        super().__init__(feasible, seed, hint)
        self.parts = (GpSampler(feasible, seed, hint), LfboSampler(feasible, seed + 1, hint))
        self._share()

    def _share(self) -> None:
        """Both parts see what this one sees, and a hint is asked for once."""
        for part in self.parts:
            part.unseen, part.seen, part.hinted = self.unseen, self.seen, self.parts[0].hinted

    def grow(self, configs: Sequence[Config]) -> None:
        super().grow(configs)
        self.parts[0].grow(())
        self._share()

    def ranked(self) -> list[int]:
        return self.parts[len(self.seen) % 2].ranked()
