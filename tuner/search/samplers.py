"""Which config to try next: the samplers by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import optuna
from optuna.samplers import TPESampler
from optuna.trial import TrialState

from tftune.kernels.core.space import Config
from tftune.tuner.search.feasible import Feasible
from tftune.tuner.search.feasible_sampler import (
    ExhaustiveSampler,
    FeasibleSampler,
    Hint,
    finished,
    suggest,
)
from tftune.tuner.search.model_samplers import GpSampler, LfboSampler, MixedSampler

PENALTY = 1e6
"""What a failed config is told to TPE, which only ranks values: it ignores trials told as
failed."""


class NearTpeSampler(FeasibleSampler):
    """Optuna's multivariate TPE, each proposal moved to the nearest unseen config: left alone, it
    spends most of its asks on repeats and on configs that break a rule."""

    def __init__(self, feasible: Feasible, seed: int, hint: Hint | None = None) -> None:
        super().__init__(feasible, seed, hint)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            self._study = optuna.create_study(
                sampler=TPESampler(multivariate=True, group=True, seed=seed)
            )
        self._told: set[int] = set()

    def ranked(self) -> list[int]:
        for number in self.known:
            if number not in self._told:
                self._told.add(number)
                value = PENALTY if self.seen[number] is None else self.seen[number]
                self._study.add_trial(
                    finished(self.feasible.space, self.feasible.configs[number], value)
                )
        wanted = self._wanted(
            {self.feasible.configs[number].variant for number in np.flatnonzero(self.unseen)}
        )
        near = self.feasible.nearest(wanted, np.flatnonzero(self.unseen))
        return [int(number) for number in self.random.permutation(near)]

    def _wanted(self, variants: set[str]) -> Config:
        while True:
            trial = self._study.ask()
            config = suggest(trial, self.feasible.space)
            if config.variant in variants:
                self._study.tell(
                    trial, state=TrialState.FAIL
                )  # forgotten: what it learns from is what was measured
                return config
            self._study.tell(trial, PENALTY)


@dataclass(frozen=True)
class Kind:
    """A sampler that a search may use."""

    meaning: str
    build: Callable[[Feasible, int, Hint | None], FeasibleSampler]


SAMPLERS = {
    "mixed": Kind("`lfbo` and `gp` in turn, each learning from both", MixedSampler),
    "lfbo": Kind(
        "random-forest likelihood-free Bayesian optimisation over the feasible configs", LfboSampler
    ),
    "gp": Kind(
        "expected improvement of a Gaussian process whose prior mean is the model's time", GpSampler
    ),
    "tpe": Kind(
        "Optuna's multivariate tree-structured Parzen estimator, moved to feasible configs; for "
        "comparison",
        NearTpeSampler,
    ),
    "random": Kind("feasible configs at random, none twice", FeasibleSampler),
    "exhaustive": Kind("every feasible config, in the order of the space", ExhaustiveSampler),
}


def make_sampler(
    name: str, feasible: Feasible, seed: int, hint: Hint | None = None
) -> FeasibleSampler:
    """The sampler of that name; raises ValueError listing the known ones."""
    if name not in SAMPLERS:
        raise ValueError(f"there is no sampler {name!r}; there are {', '.join(SAMPLERS)}")
    return SAMPLERS[name].build(feasible, seed, hint)
