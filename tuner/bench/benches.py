"""Where a config is measured: the analytic model, and rows of the past. The node itself is in
node.py."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from tftune.db.target import Target
from tftune.db.trial import EVIDENCE, Failure, Measurement, Outcome, Trial
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config

Predict = Callable[[Shape, Config, str, Chip], float]
"""Shape, config, mode and chip to microseconds."""
Compare = Callable[[Shape, Sequence[Config], str, Config], list[Outcome]]
"""Shape, configs, mode and baseline to the outcomes of the baseline and of each config, in that
order."""


class Bench:
    """A place that measures. A config that cannot be measured is a Failure, never an exception.

    As it is here nothing runs: there is nothing to compile, to start or to end.
    """

    name: str
    """`node`, `model`, `replay` or `drill`."""
    target: Target
    condition: str = ""
    """What is otherwise about its calls, see `db.trial.CONDITIONS`; empty for usual ones."""
    starts_s: Sequence[float] = ()
    """Seconds that each start of a world of processes took, where there is one."""
    recoveries_s: Sequence[float] = ()
    """Seconds from when a world was seen to be broken until a fresh one could measure again."""
    spent_s: Mapping[str, float] = {}
    """Wall-clock seconds by phase, where there are phases worth telling."""

    @property
    def compare(self) -> Compare | None:
        """Measures finalists in the same rounds, so that they compare in pairs; None where there
        are no rounds to share."""
        return None

    def conditions(self) -> dict[str, Any]:
        """What the machine is like now (see `Run.clocks`); empty where nothing runs."""
        return {}

    def known(self, shape: Shape, mode: str) -> Collection[Config] | None:
        """The only configs that can be asked for, where rows answer; None where any can be
        measured."""
        return None

    def ahead(self, shape: Shape, configs: Sequence[Config]) -> None:
        """These will likely be measured: compile them meanwhile, where there is something to
        compile."""

    def ready(self, shape: Shape, config: Config) -> bool:
        """Whether it can be measured without waiting for a compiler."""
        return True

    def settle(self, timeout_s: float) -> None:
        """Wait until what was announced is compiled, so that compilers do not disturb the clock;
        not longer than so many seconds."""

    def measure(
        self,
        shape: Shape,
        config: Config,
        mode: str,
        baseline: Config | None,
        *,
        stage: str = "search",
    ) -> Outcome:
        """Time a config beside `baseline`, the strongest BSP config known so far; None where this
        config is itself the baseline.

        Stage "final" takes more rounds.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how it measures")

    def restart(self) -> None:
        """Start a fresh world of processes, where there is one."""

    def close(self) -> None:
        """End what was started."""


class ModelBench(Bench):
    """Answers from an analytic model, without a GPU: one sample each, and nothing is checked, since
    nothing ran."""

    name = "model"

    def __init__(self, target: Target, predict: Predict, lengths: str = "") -> None:
        """`lengths`: as rows name them; of every call, where given."""
        self.target = target
        self._predict: Callable[..., float] = predict
        self._data = {"lengths": lengths} if lengths else {}
        self.condition = f"lengths={lengths}" if lengths else ""

    def measure(
        self,
        shape: Shape,
        config: Config,
        mode: str,
        baseline: Config | None,
        *,
        stage: str = "search",
    ) -> Outcome:
        chip, data = self.target.chip, self._data
        time_us = self._predict(shape, config, mode, chip, **data)
        bsp_us = () if baseline is None else (self._predict(shape, baseline, mode, chip, **data),)
        return Measurement((time_us,), bsp_us)


class ReplayBench(Bench):
    """Answers from rows: the newest row of that stage, else the newest of any. What was never
    measured is a failure that says so."""

    name = "replay"

    def __init__(self, target: Target, trials: Iterable[Trial], condition: str = "") -> None:
        self.target, self.condition = target, condition
        self._rows: dict[tuple[Shape, Config, str, str], Trial] = {}
        self._known: dict[tuple[Shape, str], set[Config]] = defaultdict(set)
        for trial in trials:
            if trial.stage in EVIDENCE and trial.condition == condition:
                for stage in ("", trial.stage):
                    self._rows[trial.shape, trial.config, trial.mode, stage] = trial
                self._known[trial.shape, trial.mode].add(trial.config)

    def known(self, shape: Shape, mode: str) -> set[Config]:
        return self._known[shape, mode]

    def measure(
        self,
        shape: Shape,
        config: Config,
        mode: str,
        baseline: Config | None,
        *,
        stage: str = "search",
    ) -> Outcome:
        for known in (stage, ""):
            if row := self._rows.get((shape, config, mode, known)):
                return row.outcome
        return Failure("invalid", f"{config} was never measured for {shape} in mode {mode}")
