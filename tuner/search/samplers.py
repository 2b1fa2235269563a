"""Which config to try next: the samplers by name, and the study in memory that asks one of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
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


class Proposer:
    """A study in memory and its sampler: `ask` for a feasible config that it has not seen, `tell`
    any config's time."""

    def __init__(
        self, feasible: Feasible, sampler: str, seed: int, hint: Hint | None = None
    ) -> None:
        self.feasible = feasible
        self._sampler = make_sampler(sampler, feasible, seed, hint)
        self.study = optuna.create_study(sampler=self._sampler)
        self.seen: set[Config] = set()
        self._asked: dict[Config, optuna.Trial] = {}

    @property
    def any_left(self) -> bool:
        return len(self.seen) < len(self.feasible)

    def look_ahead(
        self, ready: Callable[[Config], bool], announce: Callable[[Sequence[Config]], None]
    ) -> None:
        """Let the sampler prefer what is compiled, and have the head of each ranking compiled
        meanwhile."""
        self._sampler.ready, self._sampler.announce = ready, announce

    def grow(self, configs: Sequence[Config]) -> None:
        """Consider these, too, which must be possible."""
        self._sampler.grow(configs)

    def think(self) -> None:
        """Have the head of a first ranking compiled, while other configs are measured."""
        if self.any_left:
            self._sampler.learn(self.study.get_trials(deepcopy=False))
            self._sampler.think()

    def ask(self) -> Config | None:
        """The next config to try; None where all were tried."""
        if not self.any_left:
            return None
        trial = self.study.ask()
        config = suggest(trial, self.feasible.space)
        self.seen.add(config)
        self._asked[config] = trial
        return config

    def tell(self, config: Config, value: float | None) -> None:
        """What came of a config, asked for here or not: its time over BSP's time, or None where it
        failed."""
        if config in self.feasible:
            self.seen.add(config)
        if trial := self._asked.pop(config, None):
            self.study.tell(
                trial, value, state=TrialState.FAIL if value is None else TrialState.COMPLETE
            )
        else:
            self.study.add_trial(finished(self.feasible.space, config, value))
