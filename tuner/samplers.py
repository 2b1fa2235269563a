"""Which config to try next: Optuna samplers over the enumerated feasible set, and TPE for comparison.

Stock samplers spend half or more of their asks on repeats and on configs that break a rule. Ours number every feasible config once
and never ask for one twice; a failed trial is a result that they learn from.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState

from tftune.kernels.chips import Chip
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config, Space

PENALTY = 1e6
"""What an infeasible, repeated or failed ask is told to TPE, which only ranks values: it ignores trials told as failed."""
WASTED_ASKS = 50
"""Asks for one proposal that TPE may waste, before a random unseen feasible config is taken instead."""


class Feasible:
    """Every possible config of one shape on one chip, numbered, with the matrix that a model of them is fitted on.

    `matrix` is float32 [configs, columns]: one column for each variant (0 or 1) and for each knob name, shared by the variants that
    have it: its value, or its place among the values where they are words, and -1 where the variant lacks it.

    `pool` keeps that many configs of each variant, and those of `always`: a fixed random part, chosen by a digest of each config, so
    that shapes share configs, and kernels compiled for one serve the others.
    """

    def __init__(
        self,
        space: Space,
        shape: Shape,
        chip: Chip,
        variants: tuple[str, ...] = (),
        pool: int | None = None,
        always: Sequence[Config] = (),
    ) -> None:
        self.space = space
        configs = tuple(space.configs(shape, chip, variants))
        self.configs = configs if pool is None else _part(configs, pool, always)
        self.index = {config: number for number, config in enumerate(self.configs)}

    def __len__(self) -> int:
        return len(self.configs)

    def __contains__(self, config: Config) -> bool:
        return config in self.index

    @cached_property
    def matrix(self) -> np.ndarray:
        choices = [choice for variant in self.space.variants for choice in self.space.choices(variant)]
        words = {choice.name: choice.values for choice in choices if isinstance(choice.values[0], str)}
        columns = {name: place for place, name in enumerate([*self.space.variants, *dict.fromkeys(choice.name for choice in choices)])}
        matrix = np.full((len(self), len(columns)), -1, dtype=np.float32)
        matrix[:, : len(self.space.variants)] = 0
        for row, config in zip(matrix, self.configs, strict=True):
            row[columns[config.variant]] = 1
            for name, value in config.knobs:
                row[columns[name]] = words[name].index(value) if name in words else value
        return matrix


def _part(configs: Sequence[Config], pool: int, always: Sequence[Config]) -> tuple[Config, ...]:
    """At most `pool` configs of each variant, those of the smallest digests, and `always` among them; in the order given."""
    ranked = sorted(configs, key=lambda config: sha256(str(config.knobs).encode()).digest())
    kept = set(always)
    for variant in dict.fromkeys(config.variant for config in configs):
        kept |= set([config for config in ranked if config.variant == variant][:pool])
    return tuple(config for config in configs if config in kept)


def parameters(config: Config) -> dict[str, Any]:
    """The config as Optuna parameters: `variant`, and `<variant>.<knob>` for each knob."""
    return {"variant": config.variant, **{f"{config.variant}.{name}": value for name, value in config.knobs}}


def config_of(params: Mapping[str, Any]) -> Config:
    """The config of such parameters.

    >>> config_of(parameters(Config("push", block_m=64)))
    Config('push', block_m=64)
    """
    variant = params["variant"]
    return Config(variant, **{name.removeprefix(f"{variant}."): value for name, value in params.items() if name != "variant"})


def suggest(trial: optuna.Trial, space: Space) -> Config:
    """The config that the study's sampler chooses for this trial: first the variant, then that variant's knobs."""
    params: dict[str, Any] = {"variant": trial.suggest_categorical("variant", list(space.variants))}
    for choice in space.choices(params["variant"]):
        name = f"{params['variant']}.{choice.name}"
        params[name] = trial.suggest_categorical(name, choice.values)
    return config_of(params)


def finished(space: Space, config: Config, value: float | None, **attributes: str) -> FrozenTrial:
    """A finished Optuna trial of this config, failed where `value` is None, for `study.add_trial`."""
    params = parameters(config)
    distributions: dict[str, BaseDistribution] = {
        f"{config.variant}.{choice.name}": CategoricalDistribution(choice.values) for choice in space.choices(config.variant)
    }
    return optuna.trial.create_trial(
        state=TrialState.FAIL if value is None else TrialState.COMPLETE,
        value=value,
        params=params,
        distributions={"variant": CategoricalDistribution(list(space.variants)), **distributions},
        user_attrs=attributes,
    )


class FeasibleSampler(BaseSampler):
    """Chooses a whole feasible config that the study has not seen, and answers each parameter from it.

    Subclasses say which, in `choose`. Asking once more than there are feasible configs raises ValueError.
    """

    def __init__(self, feasible: Feasible, seed: int) -> None:
        self.feasible = feasible
        self.random = np.random.default_rng(seed)
        self.unseen = np.ones(len(feasible), dtype=bool)
        self.seen: dict[int, float | None] = {}
        """Time over BSP's time of each finished config, by number; None where it failed."""
        self._read = 0
        self._plans: dict[int, dict[str, Any]] = {}

    def choose(self) -> int:
        """The number of an unseen config."""
        return int(self.random.choice(np.flatnonzero(self.unseen)))

    def learn(self, trials: Sequence[FrozenTrial]) -> None:
        """Take in the trials that finished since the last call; a config outside the feasible set is passed over."""
        for trial in trials[self._read :]:
            if not trial.state.is_finished():
                break
            self._read += 1
            number = self.feasible.index.get(config_of(trial.params)) if "variant" in trial.params else None
            if number is not None:
                self.unseen[number] = False
                self.seen[number] = trial.value if trial.state == TrialState.COMPLETE else None

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        self.learn(study.get_trials(deepcopy=False))
        if not self.unseen.any():
            raise ValueError(f"all {len(self.feasible)} feasible configs were tried: there is none left to suggest")
        number = self.choose()
        self.unseen[number] = False
        self._plans[trial.number] = parameters(self.feasible.configs[number])

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]) -> dict[str, Any]:
        return {}

    def sample_independent(self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution) -> Any:
        return self._plans[trial.number][param_name]


class ExhaustiveSampler(FeasibleSampler):
    """Every feasible config, in the order of the space."""

    def choose(self) -> int:
        return int(np.argmax(self.unseen))


class LfboSampler(FeasibleSampler):
    """Likelihood-free Bayesian optimisation with a random forest (Song et al., "A General Recipe for Likelihood-free Bayesian
    Optimization", ICML 2022): a classifier tells the configs below a quantile of the times from the others, each positive weighted
    by its improvement, and its probability ranks every unseen config. Failed configs are negatives, so it learns to avoid them too.

    One fit serves a batch of asks, since a fit costs more than many predictions.
    """

    QUANTILE = 0.2
    BATCH = 4
    """Asks for each fit, until a sixteenth of what was seen is more."""
    WARM_UP = 8
    """Measured configs before the first fit; until then asks are random."""
    TREES = 50

    def __init__(self, feasible: Feasible, seed: int) -> None:
        super().__init__(feasible, seed)
        self._batch: list[int] = []

    def choose(self) -> int:
        self._batch = [number for number in self._batch if self.unseen[number]]
        if not self._batch:
            self._batch = self._ranked()
        return self._batch.pop(0)

    def _ranked(self) -> list[int]:
        """The next batch, best first; its last is random, so that no region is closed for ever."""
        numbers = np.flatnonzero(self.unseen)
        size = min(len(numbers), max(self.BATCH, len(self.seen) // 16))
        scores = self._scores(numbers)
        if scores is None:
            return [int(self.random.choice(numbers))]
        order = np.lexsort((self.random.random(len(numbers)), -scores))
        return [*(int(number) for number in numbers[order[: size - 1]]), int(self.random.choice(numbers))]

    def _scores(self, numbers: np.ndarray) -> np.ndarray | None:
        """The probability of each of these configs to be a good one; None where there is too little to learn from.

        Learned from variants that have unseen configs: good times of an exhausted one (BSP has few forms) would only raise the bar.
        """
        from sklearn.ensemble import RandomForestClassifier

        open_variants = {self.feasible.configs[number].variant for number in numbers}
        known = [number for number in self.seen if self.feasible.configs[number].variant in open_variants]
        times = np.array([np.inf if (value := self.seen[number]) is None else value for number in known])
        measured = times[np.isfinite(times)]
        if len(measured) < self.WARM_UP:
            return None
        threshold = np.quantile(measured, self.QUANTILE)
        good = times <= threshold
        if good.all():
            return None
        # An improvement of zero, at the threshold itself, must still count as good.
        gain = np.where(good, threshold - np.where(good, times, 0), 0) + 1e-3 * threshold
        weights = np.where(good, gain / gain[good].mean(), 1.0)
        forest = RandomForestClassifier(self.TREES, random_state=int(self.random.integers(2**31)), n_jobs=1)
        forest.fit(self.feasible.matrix[known], good, sample_weight=weights)
        return np.asarray(forest.predict_proba(self.feasible.matrix[numbers])[:, 1])


def _tpe(feasible: Feasible, seed: int) -> BaseSampler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return TPESampler(multivariate=True, group=True, seed=seed)


@dataclass(frozen=True)
class Kind:
    """A sampler that a search may use."""

    meaning: str
    build: Callable[[Feasible, int], BaseSampler]


SAMPLERS = {
    "lfbo": Kind("random-forest likelihood-free Bayesian optimisation over the feasible configs", LfboSampler),
    "tpe": Kind("Optuna's multivariate tree-structured Parzen estimator, which may waste asks; for comparison", _tpe),
    "random": Kind("feasible configs at random, none twice", FeasibleSampler),
    "exhaustive": Kind("every feasible config, in the order of the space", ExhaustiveSampler),
}


def make_sampler(name: str, feasible: Feasible, seed: int) -> BaseSampler:
    """The sampler of that name; raises ValueError listing the known ones."""
    if name not in SAMPLERS:
        raise ValueError(f"there is no sampler {name!r}; there are {', '.join(SAMPLERS)}")
    return SAMPLERS[name].build(feasible, seed)


class Proposer:
    """A study in memory and its sampler: `ask` for a feasible config that it has not seen, `tell` any config's time.

    Whatever the sampler, no config is proposed twice. `wasted` counts the sampler's asks that were infeasible or repeats.
    """

    def __init__(self, feasible: Feasible, sampler: str, seed: int) -> None:
        self.feasible = feasible
        self.study = optuna.create_study(sampler=make_sampler(sampler, feasible, seed))
        self.seen: set[Config] = set()
        self.wasted = 0
        self._random = np.random.default_rng(seed)
        self._asked: dict[Config, optuna.Trial] = {}

    @property
    def any_left(self) -> bool:
        return len(self.seen) < len(self.feasible)

    def ask(self) -> Config | None:
        """The next config to try; None where all were tried."""
        if not self.any_left:
            return None
        for _ in range(WASTED_ASKS):
            trial = self.study.ask()
            config = suggest(trial, self.feasible.space)
            if config in self.feasible and config not in self.seen:
                self.seen.add(config)
                self._asked[config] = trial
                return config
            self.study.tell(trial, PENALTY)
            self.wasted += 1
        return self._any()

    def _any(self) -> Config:
        unseen = [config for config in self.feasible.configs if config not in self.seen]
        config = unseen[int(self._random.integers(len(unseen)))]
        self.seen.add(config)
        return config

    def tell(self, config: Config, value: float | None) -> None:
        """What came of a config, asked for here or not: its time over BSP's time, or None where it failed."""
        if config in self.feasible:
            self.seen.add(config)
        if value is None and not isinstance(self.study.sampler, FeasibleSampler):
            value = PENALTY
        if trial := self._asked.pop(config, None):
            self.study.tell(trial, value, state=TrialState.FAIL if value is None else TrialState.COMPLETE)
        else:
            self.study.add_trial(finished(self.feasible.space, config, value))
