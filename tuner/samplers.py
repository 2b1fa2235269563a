"""Which config to try next: Optuna samplers over the enumerated feasible set, and TPE for comparison.

Stock samplers spend half or more of their asks on repeats and on configs that break a rule. Ours number every feasible config once
and never ask for one twice; a failed trial is a result that they learn from.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState

from tftune.kernels.space import Config, Space
from tftune.tuner.feasible import Feasible

Hint = Callable[[Config], float]
"""What is believed of a config before it is measured: the smaller the better, in any unit."""

PENALTY = 1e6
"""What a failed config is told to TPE, which only ranks values: it ignores trials told as failed."""


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

    def __init__(self, feasible: Feasible, seed: int, hint: Hint | None = None) -> None:
        self.feasible, self.hint = feasible, hint
        self.random = np.random.default_rng(seed)
        self.unseen = np.ones(len(feasible), dtype=bool)
        self.seen: dict[int, float | None] = {}
        """Time over BSP's time of each finished config, by number; None where it failed."""
        self._read = 0
        self._plans: dict[int, dict[str, Any]] = {}

    def choose(self) -> int:
        """The number of an unseen config."""
        return int(self.random.choice(np.flatnonzero(self.unseen)))

    @property
    def known(self) -> list[int]:
        """The finished configs to learn from: of variants that have unseen ones. Good times of an exhausted variant (BSP has few
        forms) would only raise the bar."""
        variants = self.feasible.matrix[:, : len(self.feasible.space.variants)]
        left = variants[self.unseen].any(axis=0)
        return [number for number in self.seen if variants[number] @ left]

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
    by its improvement, and its probability ranks the unseen configs. Failed configs are negatives, so it learns to avoid them too.

    The hint, where there is one, is a column like a knob: the forest finds out for itself how far it can be believed.
    docs/measured.md has what `benchmarks/sampler.py` says of these constants.
    """

    QUANTILE = 0.2
    BATCH = 4
    """Asks for each fit, which costs more than many predictions, until a sixteenth of what was seen is more."""
    WARM_UP = 8
    """Measured configs before the first fit; until then asks are random."""
    EXPLORED = 0.05
    """Share of asks that stay random, so that no region is closed for ever."""
    TREES = 32
    CANDIDATES, HINTED = 4096, 512
    """Unseen configs that a fit ranks: of more, a random part, another at each fit; and how many at each fit are asked a hint for."""

    def __init__(self, feasible: Feasible, seed: int, hint: Hint | None = None) -> None:
        super().__init__(feasible, seed, hint)
        self._hints = np.full(len(feasible), np.nan, dtype=np.float32)
        self._batch: list[int] = []

    def choose(self) -> int:
        self._batch = [number for number in self._batch if self.unseen[number]]
        if self.random.random() < self.EXPLORED:
            return super().choose()
        self._batch = self._batch or self._ranked()
        return self._batch.pop(0)

    def _ranked(self) -> list[int]:
        """The next batch, best first; one random config where there is too little to learn from."""
        known, unseen = np.array(self.known, dtype=int), np.flatnonzero(self.unseen)
        times = np.array([np.inf if (time := self.seen[number]) is None else time for number in known])
        measured = times[np.isfinite(times)]
        if len(measured) < self.WARM_UP or (threshold := np.quantile(measured, self.QUANTILE)) >= times.max():
            return [super().choose()]
        unseen = self._candidates(unseen)
        scores = self._scores(known, times, threshold, unseen)
        best = unseen[np.lexsort((self.random.random(len(unseen)), -scores))]
        return [int(number) for number in best[: max(self.BATCH, len(self.seen) // 16)]]

    def _candidates(self, unseen: np.ndarray) -> np.ndarray:
        """Those that a fit ranks. A hint costs more than a prediction of the forest: of many, those that have one, and a few more."""
        if len(unseen) <= self.CANDIDATES:
            return unseen
        if self.hint is None:
            return self.random.choice(unseen, self.CANDIDATES, replace=False)
        hinted = unseen[~np.isnan(self._hints[unseen])]
        return np.union1d(hinted, self.random.choice(unseen, self.HINTED, replace=False))

    def _scores(self, known: np.ndarray, times: np.ndarray, threshold: float, unseen: np.ndarray) -> np.ndarray:
        """The probability of each unseen config to be at least as good as the threshold; `times` are infinite where they failed."""
        from sklearn.ensemble import RandomForestClassifier

        good = times <= threshold
        # An improvement of zero, at the threshold itself, must still count as good.
        gain = np.where(good, threshold - np.where(good, times, 0), 0) + 1e-3 * threshold
        weights = np.where(good, gain / gain[good].mean(), 1.0)
        forest = RandomForestClassifier(self.TREES, random_state=int(self.random.integers(2**31)), n_jobs=1)
        forest.fit(self._columns(known), good, sample_weight=weights)
        return np.asarray(forest.predict_proba(self._columns(unseen))[:, 1])

    def _columns(self, numbers: np.ndarray) -> np.ndarray:
        """What the forest sees of these configs: their row of the matrix, and their hint, which is asked for once."""
        rows: np.ndarray = self.feasible.matrix[numbers]
        if self.hint is None:
            return rows
        for number in numbers[np.isnan(self._hints[numbers])]:
            self._hints[number] = self.hint(self.feasible.configs[number])
        return np.column_stack([rows, self._hints[numbers]])


class NearTpeSampler(FeasibleSampler):
    """Optuna's multivariate TPE, each proposal moved to the nearest unseen config: left alone, it spends most of its asks on repeats
    and on configs that break a rule."""

    def __init__(self, feasible: Feasible, seed: int, hint: Hint | None = None) -> None:
        super().__init__(feasible, seed, hint)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            self._study = optuna.create_study(sampler=TPESampler(multivariate=True, group=True, seed=seed))
        self._told: set[int] = set()

    def choose(self) -> int:
        for number in self.known:
            if number not in self._told:
                self._told.add(number)
                value = PENALTY if self.seen[number] is None else self.seen[number]
                self._study.add_trial(finished(self.feasible.space, self.feasible.configs[number], value))
        wanted = self._wanted({self.feasible.configs[number].variant for number in np.flatnonzero(self.unseen)})
        return int(self.random.choice(self.feasible.nearest(wanted, np.flatnonzero(self.unseen))))

    def _wanted(self, variants: set[str]) -> Config:
        while True:
            trial = self._study.ask()
            config = suggest(trial, self.feasible.space)
            if config.variant in variants:
                self._study.tell(trial, state=TrialState.FAIL)  # forgotten: what it learns from is what was measured
                return config
            self._study.tell(trial, PENALTY)


@dataclass(frozen=True)
class Kind:
    """A sampler that a search may use."""

    meaning: str
    build: Callable[[Feasible, int, Hint | None], FeasibleSampler]


SAMPLERS = {
    "lfbo": Kind("random-forest likelihood-free Bayesian optimisation over the feasible configs", LfboSampler),
    "tpe": Kind("Optuna's multivariate tree-structured Parzen estimator, moved to feasible configs; for comparison", NearTpeSampler),
    "random": Kind("feasible configs at random, none twice", FeasibleSampler),
    "exhaustive": Kind("every feasible config, in the order of the space", ExhaustiveSampler),
}


def make_sampler(name: str, feasible: Feasible, seed: int, hint: Hint | None = None) -> FeasibleSampler:
    """The sampler of that name; raises ValueError listing the known ones."""
    if name not in SAMPLERS:
        raise ValueError(f"there is no sampler {name!r}; there are {', '.join(SAMPLERS)}")
    return SAMPLERS[name].build(feasible, seed, hint)


class Proposer:
    """A study in memory and its sampler: `ask` for a feasible config that it has not seen, `tell` any config's time."""

    def __init__(self, feasible: Feasible, sampler: str, seed: int, hint: Hint | None = None) -> None:
        self.feasible = feasible
        self.study = optuna.create_study(sampler=make_sampler(sampler, feasible, seed, hint))
        self.seen: set[Config] = set()
        self._asked: dict[Config, optuna.Trial] = {}

    @property
    def any_left(self) -> bool:
        return len(self.seen) < len(self.feasible)

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
        """What came of a config, asked for here or not: its time over BSP's time, or None where it failed."""
        if config in self.feasible:
            self.seen.add(config)
        if trial := self._asked.pop(config, None):
            self.study.tell(trial, value, state=TrialState.FAIL if value is None else TrialState.COMPLETE)
        else:
            self.study.add_trial(finished(self.feasible.space, config, value))
