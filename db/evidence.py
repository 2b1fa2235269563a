"""What measured rows prove: which are current, what a speed-up is, which form of BSP stood beside a
row, who won, and what ties. Standard library only.

Search, training, tables and benchmarks ask here. Where two of them need different answers, there
are two functions, and each says who asks and why.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from tftune.db.target import minor
from tftune.db.trial import STAGES, Interval, Measurement, Run, Trial
from tftune.kernels.core.revision import installed
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config, Space

BSP = "bsp"
"""The variant that everything is compared with: a library's collective, then its GEMM."""
Place = tuple[Shape, str]
"""A shape and a mode. Each has one winner."""
TIE = 1.01
"""Two configs whose times differ by less are tied, however well the difference is known."""


# Which rows count, and which are current.


def counting(trials: Iterable[Trial], runs: Iterable[Run]) -> list[Trial]:
    """The rows of runs whose role is `evidence`, in their order: those of a session that a newer
    one superseded are left out, of a second search of the same shapes, and of calls under a
    condition (`trial.CONDITIONS`).

    Tables, training, replay and a search that resumes ask this. Hints to a search and the model's
    score are of all rows. A row whose run is not given counts.
    """
    others = set_aside(runs)
    return [trial for trial in trials if trial.run not in others and not trial.condition]


def set_aside(runs: Iterable[Run]) -> set[str]:
    """The ids of the runs whose rows do not count, see `counting`."""
    return {run.id for run in runs if run.role != "evidence"}


def is_current(trial: Trial) -> bool:
    """Whether a row was measured with the code that is installed.

    A search asks this: it measures with the installed code, and other times would mislead it.
    Raises ValueError where the variant is gone; `completed` leaves such rows out.
    """
    return trial.revision == installed(trial.op, trial.config.variant)


def of_newest_code(trials: Iterable[Trial]) -> list[Trial]:
    """The rows of each variant that were measured with its newest code, in their order.

    Training and tables ask this: they describe a database, whichever code is installed. The
    artifact names that code, and `select_kernel` compares it with the installed one.
    """
    listed = list(trials)
    newest = {_kernel(trial): trial.revision for trial in oldest_first(listed)}
    return [trial for trial in listed if trial.revision == newest[_kernel(trial)]]


def of_most_measured_code(trials: Iterable[Trial]) -> list[Trial]:
    """The rows of each shape and variant that were measured with the code that has most of them
    there, in their order; of two with as many, the one that came first.

    A benchmark that replays searches of exhausted spaces asks this: a space of old code is as good
    as any, as long as all of it is of one code.
    """
    listed = list(trials)
    counts = Counter((trial.shape, _kernel(trial), trial.revision) for trial in listed)
    most = {(shape, key): code for (shape, key, code), _ in reversed(counts.most_common())}
    return [trial for trial in listed if trial.revision == most[trial.shape, _kernel(trial)]]


def _kernel(trial: Trial) -> tuple[str, str]:
    return trial.op, trial.config.variant


def other_build(runs: Iterable[Run], build: Mapping[str, str], *, unknown: bool) -> set[str]:
    """The ids of the runs that used another minor version of Triton, which compiles other kernels,
    or that differ in whether NCCL may use multicast, which makes another BSP.

    `unknown`: whether runs count as such that do not name their Triton. For training they do, since
    an artifact names one compiler. For a search they do not: it resumes such a run. Runs that do
    not name multicast were without.
    """
    here = minor(build.get("triton", ""))

    def is_other(run: Run) -> bool:
        triton = run.build.get("triton") or ""
        compiled_alike = minor(triton) == here or not (triton or unknown)
        beside = run.build.get("multicast", "off")
        return not compiled_alike or beside != build.get("multicast", "off")

    return {run.id for run in runs if is_other(run)}


def complete(space: Space, config: Config) -> Config | None:
    """The config with every absent knob at its default; None where the space has lost a value."""
    try:
        return space.complete(config)
    except ValueError:
        return None


def completed(space: Space, trials: Iterable[Trial]) -> Iterator[Trial]:
    """The trials with complete configs, without those of which the space has lost a value."""
    for trial in trials:
        if (config := complete(space, trial.config)) is not None:
            yield replace(trial, config=config)


def oldest_first(trials: Iterable[Trial]) -> list[Trial]:
    """By time; rows of the same moment keep their order."""
    return sorted(trials, key=lambda trial: trial.created)


def concluding(finals: Mapping[Config, Trial], searched: Iterable[Trial]) -> dict[Config, Trial]:
    """The final rows of a place that still conclude its search: none of its rows is newer."""
    last = max((trial.created for trial in searched), default="")
    return {config: trial for config, trial in finals.items() if trial.created >= last}


# What a speed-up is.


class Speedup(NamedTuple):
    """BSP's time over a config's, with its 95 % interval. Above 1 the config is faster."""

    ratio: float
    low: float
    high: float

    @property
    def interval(self) -> Interval:
        return self.low, self.high


def measurement(trial: Trial) -> Measurement:
    """The times of a trial that has some; raises ValueError for a failure."""
    if not isinstance(trial.outcome, Measurement):
        raise ValueError(f"{trial.config} at {trial.shape} failed: {trial.outcome.text}")
    return trial.outcome


def paired_speedup(outcome: Measurement) -> Speedup | None:
    """Over the form of BSP in the same rounds: the median of the rounds' ratios. None where no form
    of BSP shared them."""
    if outcome.speedup is None or outcome.speedup_interval is None:
        return None
    return Speedup(outcome.speedup, *outcome.speedup_interval)


def speedup(trial: Trial, bsp: Trial | None) -> Speedup | None:
    """For tables: of shared rounds, else the ratio of the two medians, without an interval of its
    own. None without BSP. Raises ValueError for a failure."""
    outcome = measurement(trial)
    if (paired := paired_speedup(outcome)) is not None:
        return paired
    if bsp is None:
        return None
    ratio = measurement(bsp).median_us / outcome.median_us
    return Speedup(ratio, ratio, ratio)


def time_ratio(trial: Trial, bsp: Trial) -> float | None:
    """For a search: the trial's time over BSP's, which is what a sampler minimises. None where
    either failed.

    Forms of BSP are compared by their medians: each stood beside another form, the strongest one
    until then.
    """
    if not isinstance(trial.outcome, Measurement) or not isinstance(bsp.outcome, Measurement):
        return None
    if trial.config.variant == BSP or trial.outcome.speedup is None:
        return trial.outcome.median_us / bsp.outcome.median_us
    return 1 / trial.outcome.speedup


def speedup_interval(trial: Trial) -> Interval:
    """The 95 % interval of a trial's speed-up; exactly 1 for BSP, and where nothing is known."""
    if trial.config.variant == BSP or not isinstance(trial.outcome, Measurement):
        return 1.0, 1.0
    return trial.outcome.speedup_interval or (1.0, 1.0)


# Which form of BSP stood beside a row.


class BspForms:
    """The rows of BSP at one shape and mode, and which of its forms another row's ratio is of."""

    def __init__(self, rows: Iterable[tuple[Config, Trial]]) -> None:
        """`rows`: all that were measured there, with their complete configs."""
        self._by_samples: dict[tuple[float, ...], Config] = {}
        self._searched: list[tuple[str, float, Config]] = []
        """When each form was searched, and its median."""
        self._measured: list[tuple[Config, Trial]] = []
        """The rows of BSP that have times."""
        self.fastest_us: dict[Config, float] = {}
        """The least median of each form, of any stage."""
        for config, trial in rows:
            if config.variant == BSP and isinstance(trial.outcome, Measurement):
                self._add(config, trial, trial.outcome)

    def _add(self, form: Config, trial: Trial, outcome: Measurement) -> None:
        us = outcome.median_us
        self._measured.append((form, trial))
        self._by_samples[outcome.samples_us] = form
        self.fastest_us[form] = min(us, self.fastest_us.get(form, math.inf))
        if trial.stage == "search":
            self._searched.append((trial.created, us, form))

    def beside(self, trial: Trial) -> Config | None:
        """The form whose time the row's ratio is of; None where none is known.

        Rows of one comparison share BSP's very samples. A row of a search stood beside the form
        that had the least median when it was measured.
        """
        outcome = trial.outcome
        if not isinstance(outcome, Measurement) or not outcome.bsp_samples_us:
            return None
        if (form := self._by_samples.get(outcome.bsp_samples_us)) is not None:
            return form
        before = [(us, form) for created, us, form in self._searched if created < trial.created]
        return min(before)[1] if before else None

    def times_us(self, common: Config) -> dict[Config, float]:
        """Times of the forms on one scale: the least median of `common`, and from there by ratios
        of shared rounds, a later stage's first, then newer rows'. Without forms that no ratio leads
        to.

        In sessions far apart a form may stand beside another one each time: registered buffers came
        after plain ones, and won. Its ratio to the plain form then connects the two.
        """
        times = {common: self.fastest_us[common]}
        ratios = [
            (form, beside, trial.outcome.speedup)
            for form, trial in sorted(self._measured, key=_standing, reverse=True)
            if (beside := self.beside(trial)) not in (None, form)
            and isinstance(trial.outcome, Measurement)
        ]
        for _ in self.fastest_us:  # as many steps as forms reach the farthest one
            for form, beside, ratio in ratios:
                if beside in times and form not in times and ratio:
                    times[form] = times[beside] / ratio
        return times


def _standing(row: tuple[Config, Trial]) -> tuple[int, str]:
    """Which of two rows of a form counts: final before search, then the newest."""
    return list(STAGES).index(row[1].stage), row[1].created


# Who won, and what ties.


def strongest(forms: Iterable[Trial]) -> Trial | None:
    """The form of BSP with the least median; None where all failed."""
    measured = [trial for trial in forms if isinstance(trial.outcome, Measurement)]
    return min(measured, key=lambda trial: measurement(trial).median_us, default=None)


def strongest_bsp(trials: Iterable[Trial]) -> Trial | None:
    """The strongest form of BSP among rows of any variant."""
    return strongest(trial for trial in trials if trial.config.variant == BSP)


def ranking(trials: Mapping[Config, Trial], bsp: Trial) -> list[Config]:
    """The configs that were measured, the fastest beside BSP first."""
    ratios = time_ratios(trials, bsp)
    return sorted(ratios, key=ratios.__getitem__)


def time_ratios(trials: Mapping[Config, Trial], bsp: Trial) -> dict[Config, float]:
    """The `time_ratio` of what was measured."""
    ratios = {config: time_ratio(trial, bsp) for config, trial in trials.items()}
    return {config: ratio for config, ratio in ratios.items() if ratio is not None}


def is_fused(variant: str) -> bool:
    """Whether a win of the variant is one of fusion. BSP is not fused, nor is a library's GEMM that
    runs chunk by chunk."""
    return not variant.startswith(BSP)


def is_surely_faster(interval: Interval) -> bool:
    """Whether noise cannot explain a speed-up: all of its interval lies above 1. BSP wins ties."""
    return interval[0] > 1


def overlap(one: Interval, other: Interval) -> bool:
    """Whether two closed intervals share a value.

    >>> overlap((1.0, 1.2), (1.2, 1.5)), overlap((1.0, 1.1), (1.2, 1.5))
    (True, False)
    """
    return one[0] <= other[1] and other[0] <= one[1]


def tied(trial: Trial, winner: Trial) -> bool:
    """Whether noise, or 1 %, is all that tells two measured trials apart.

    In rounds that both share: the interval of their ratio reaches within 1 % of 1. Else the
    intervals of their speed-ups overlap.
    """
    one, other = trial.outcome, winner.outcome
    if not isinstance(one, Measurement) or not isinstance(other, Measurement):
        return False
    if (paired := one.paired_interval(other)) is not None:
        return overlap(paired, (1 / TIE, TIE))
    return overlap(speedup_interval(trial), speedup_interval(winner))
