"""Rows of stage `tax`: which arms a shape has, which rows share their rounds, and the taxes that
they say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tftune.db.evidence import complete, is_current, oldest_first, set_aside
from tftune.db.trial import TAX, Measurement, Run, Trial
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.timeline.simulator import timeline
from tftune.studies.taxes import operations
from tftune.studies.taxes.arms import BSP, FUSED, LAUNCH, MEMORY, WAIT, Arm, Gap, arms
from tftune.studies.taxes.split import Modelled, Split, split, times_of

MODE = "graph"
"""The mode of all arms; BSP and the fused config are measured eager, too."""


@dataclass(frozen=True)
class Case:
    """One shape, and what its taxes are told of: a fused config and a form of BSP."""

    shape: Shape
    config: Config
    form: Config

    @property
    def gap(self) -> Gap:
        gap: Gap = operations.of(self.shape.op).gap(self.shape, self.form, self.config)
        return gap

    def arms(self, clocks: bool) -> dict[str, tuple[Arm, ...]]:
        """By mode, what is measured. `clocks`: whether the device has one."""
        steps = operations.of(self.shape.op).steps(self.shape, self.form)
        return {MODE: arms(self.gap, steps, clocks), "eager": (BSP, FUSED)}

    def is_in(self, group: Mapping[Arm, Trial], mode: str) -> bool:
        """Whether these rows are of all arms of a mode; clocks a device may not have."""
        return all(
            arm in group and group[arm].config == self.config_of(arm)
            for arm in self.arms(clocks=False)[mode]
        )

    def config_of(self, arm: Arm) -> Config:
        return self.form if arm.base == "bsp" else self.config

    @property
    def world(self) -> int:
        return int(self.shape.to_dict().get("world", 1))

    def modelled(self, chip: Chip) -> Modelled | None:
        """The same split by the analytic model; None where the chip has none."""
        if chip.why_no_model(self.world):
            return None
        bsp, fused = (timeline(self.shape, each, MODE, chip) for each in (self.form, self.config))
        taxes = {
            LAUNCH: bsp.launch_us - fused.launch_us,
            WAIT: bsp.wait_us - fused.wait_us,
            MEMORY: bsp.memory_us - fused.memory_us,
        }
        return Modelled(bsp.us, fused.us, taxes, bsp.work_us - fused.work_us)


def current(rows: Iterable[Trial], runs: Iterable[Run]) -> list[Trial]:
    """The rows that count: of runs that are evidence, of the code that is installed, and of configs
    and arms that there still are."""
    others = set_aside(runs)
    kept = [
        trial for trial in rows if trial.run not in others and is_current(trial) and _has_arm(trial)
    ]
    return [
        trial for trial in kept if complete(operation(trial.op).space, trial.config) is not None
    ]


def groups(rows: Iterable[Trial]) -> list[dict[Arm, Trial]]:
    """Rows of stage `tax` that share their rounds, by arm; the oldest group first."""
    group_of: dict[tuple[Any, ...], dict[Arm, Trial]] = {}
    for trial in oldest_first(rows):
        if trial.stage == TAX and isinstance(trial.outcome, Measurement):
            key = trial.run, trial.shape, trial.mode, trial.outcome.bsp_samples_us
            group_of.setdefault(key, {})[arm_of(trial)] = trial
    return list(group_of.values())


def _has_arm(trial: Trial) -> bool:
    try:
        arm_of(trial)
    except ValueError:
        return False
    return True


def arm_of(trial: Trial) -> Arm:
    """The arm that a row of stage `tax` is of."""
    return Arm.parse(trial.condition.removeprefix(f"{TAX}="))


def outcome_of(trial: Trial) -> Measurement:
    if not isinstance(trial.outcome, Measurement):
        raise TypeError(f"{trial.condition} of {trial.shape} failed: {trial.outcome.text}")
    return trial.outcome


def splits(rows: Sequence[Trial]) -> list[tuple[Case, Split]]:
    """The taxes of each shape of which a database has all arms: of its newest group of rows."""
    newest: dict[Shape, tuple[Case, Split]] = {}
    for group in groups(trial for trial in rows if trial.mode == MODE):
        if BSP in group and FUSED in group:
            case = Case(group[FUSED].shape, group[FUSED].config, group[BSP].config)
            if case.is_in(group, MODE):
                newest[case.shape] = case, told(case, group)
    return list(newest.values())


def told(case: Case, group: Mapping[Arm, Trial]) -> Split:
    """The taxes that one group of rows says."""
    return split(times_of({arm: outcome_of(trial) for arm, trial in group.items()}), case.gap)
