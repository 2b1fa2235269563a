"""Optuna samplers over the enumerated feasible set: every config is numbered once and none is asked
for twice.

Stock samplers spend half or more of their asks on repeats and on configs that break a rule. A
failed trial is a result that ours learn from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

from tftune.kernels.core.space import Config, Space
from tftune.tuner.search.feasible import Feasible

Hint = Callable[[Sequence[Config]], Sequence[float] | np.ndarray]
"""The logarithm of the time that each config is expected to take, before it is measured; up to a
constant."""


def parameters(config: Config) -> dict[str, Any]:
    """The config as Optuna parameters: `variant`, and `<variant>.<knob>` for each knob."""
    return {
        "variant": config.variant,
        **{f"{config.variant}.{name}": value for name, value in config.knobs},
    }


def config_of(params: Mapping[str, Any]) -> Config:
    """The config of such parameters.

    >>> config_of(parameters(Config("push", block_m=64)))
    Config('push', block_m=64)
    """
    variant = params["variant"]
    return Config(
        variant,
        **{
            name.removeprefix(f"{variant}."): value
            for name, value in params.items()
            if name != "variant"
        },
    )


def suggest(trial: optuna.Trial, space: Space) -> Config:
    """The config that the study's sampler chooses for this trial: first the variant, then that
    variant's knobs."""
    params: dict[str, Any] = {"variant": trial.suggest_categorical("variant", list(space.variants))}
    for choice in space.choices(params["variant"]):
        name = f"{params['variant']}.{choice.name}"
        params[name] = trial.suggest_categorical(name, choice.values)
    return config_of(params)


def finished(space: Space, config: Config, value: float | None, **attributes: str) -> FrozenTrial:
    """A finished Optuna trial of this config, failed where `value` is None, for
    `study.add_trial`."""
    params = parameters(config)
    distributions: dict[str, BaseDistribution] = {
        f"{config.variant}.{choice.name}": CategoricalDistribution(choice.values)
        for choice in space.choices(config.variant)
    }
    return optuna.trial.create_trial(
        state=TrialState.FAIL if value is None else TrialState.COMPLETE,
        value=value,
        params=params,
        distributions={"variant": CategoricalDistribution(list(space.variants)), **distributions},
        user_attrs=attributes,
    )


class FeasibleSampler(BaseSampler):
    """Chooses a whole feasible config that the study has not seen, and answers each parameter from
    it.

    Subclasses say which, in `ranked`. Asking once more than there are feasible configs raises
    ValueError.
    """

    READY = 6
    """How many configs at the head of the ranking are looked at: the first that is ready is taken;
    where none is, the first."""
    AHEAD = 24
    """Configs that may wait for compilers at once, but for the READY at the head of a ranking."""

    def __init__(self, feasible: Feasible, seed: int, hint: Hint | None = None) -> None:
        self.feasible, self.hint = feasible, hint
        self.random = np.random.default_rng(seed)
        self.unseen = np.ones(len(feasible), dtype=bool)
        self.seen: dict[int, float | None] = {}
        """Time over BSP's time of each finished config, by number; None where it failed."""
        self.ready: Callable[[Config], bool] = lambda config: True
        """Whether a config can be measured without waiting for its compiler."""
        self.announce: Callable[[Sequence[Config]], None] = lambda configs: None
        """Hears of the head of each ranking."""
        self._read = 0
        self._waiting: set[int] = set()
        """Numbers of what was announced and was not ready then."""
        self._plans: dict[int, dict[str, Any]] = {}

    def grow(self, configs: Sequence[Config]) -> None:
        """Take more configs into the feasible set."""
        self.unseen = np.append(self.unseen, np.ones(self.feasible.grow(configs), dtype=bool))

    def ranked(self) -> list[int]:
        """Numbers of unseen configs, the first to try first; one at least."""
        return [
            int(number)
            for number in self.random.permutation(np.flatnonzero(self.unseen))[: self.AHEAD]
        ]

    def think(self) -> list[int]:
        """A ranking whose head was announced: compilers take what is announced in turn, and what
        waits there was likely before."""
        ranking = self.ranked()
        self._waiting = {
            number for number in self._waiting if not self.ready(self.feasible.configs[number])
        }
        head = ranking[: max(self.READY, self.AHEAD - len(self._waiting))]
        self.announce([self.feasible.configs[number] for number in head])
        self._waiting |= set(head)
        return ranking

    def choose(self) -> int:
        """The number of an unseen config."""
        ranking = self.think()
        ready = (
            number for number in ranking[: self.READY] if self.ready(self.feasible.configs[number])
        )
        return next(ready, ranking[0])

    @property
    def known(self) -> list[int]:
        """The finished configs to learn from: of variants that have unseen ones. Good times of an
        exhausted variant (BSP has few forms) would only raise the bar."""
        variants = self.feasible.matrix[:, : len(self.feasible.space.variants)]
        left = variants[self.unseen].any(axis=0)
        return [number for number in self.seen if variants[number] @ left]

    def learn(self, trials: Sequence[FrozenTrial]) -> None:
        """Take in the trials that finished since the last call; a config outside the feasible set
        is passed over."""
        for trial in trials[self._read :]:
            if not trial.state.is_finished():
                break
            self._read += 1
            number = (
                self.feasible.index.get(config_of(trial.params))
                if "variant" in trial.params
                else None
            )
            if number is not None:
                self.unseen[number] = False
                self.seen[number] = trial.value if trial.state == TrialState.COMPLETE else None

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        self.learn(study.get_trials(deepcopy=False))
        if not self.unseen.any():
            raise ValueError(
                f"all {len(self.feasible)} feasible configs were tried: there is none left to "
                "suggest"
            )
        number = self.choose()
        self.unseen[number] = False
        self._plans[trial.number] = parameters(self.feasible.configs[number])

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return {}

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        return self._plans[trial.number][param_name]


class ExhaustiveSampler(FeasibleSampler):
    """Every feasible config, in the order of the space."""

    READY = 1

    def ranked(self) -> list[int]:
        return [int(number) for number in np.flatnonzero(self.unseen)[: self.AHEAD]]
