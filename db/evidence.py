"""What measured rows prove: which are current, what a speed-up is, which form of BSP stood beside a
row, who won, and what ties. Standard library only.

Search, training, tables and benchmarks ask here. Where two of them need different answers, there
are two functions, and each says who asks and why.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
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


def comparable_us(
    found: Mapping[Config, Trial], rows: Iterable[tuple[Config, Trial]], mode: str
) -> dict[Config, float]:
    """Comparable time of each config of one place that was measured. `found`: the row that counts
    for each; `rows`: all of them. Tables, training and the end of a search ask this.

    Eager: the median. There BSP drifts most, by its host: the same final configs in two sessions
    differ by 5 % in medians and by 11 % in ratios, in the median (docs/notebook.md). Captured: the
    ratio to the form of BSP in the rounds that both shared, times one time of that form, because
    absolute times drift between worlds and days. The form that most rows stood beside sets the
    scale: by its fastest median of any stage, since beside many other configs a collective is
    slower. Other forms have their ratio to it (`BspForms.times_us`).
    """
    measured = {
        config: trial.outcome
        for config, trial in found.items()
        if isinstance(trial.outcome, Measurement)
    }
    medians = {config: outcome.median_us for config, outcome in measured.items()}
    forms = BspForms(rows)
    fastest = forms.fastest_us
    if mode == "eager" or not fastest:
        return medians | {
            form: us for form, us in fastest.items() if mode == "eager" and form in medians
        }
    beside = {config: forms.beside(found[config]) for config in measured}
    common = Counter(form for form in beside.values() if form in fastest).most_common(1)
    if not common:
        return medians
    scale = forms.times_us(common[0][0])
    times = {
        config: scale[form] / (measured[config].speedup or 1.0)
        for config, form in beside.items()
        if form is not None and form in scale and config not in scale
    }
    return medians | times | {form: us for form, us in scale.items() if form in medians}


def counted(rows: Iterable[tuple[Config, Trial]]) -> dict[Config, Trial]:
    """The row that counts for each config of one place: of the latest stage, then the newest."""
    return dict(sorted(rows, key=lambda row: _standing(row)))


def over_bsp(trial: Trial, us: float, bsp_us: float) -> Speedup:
    """The speed-up over the strongest form of BSP, of comparable times: as in the rounds that the
    row shared with a form of BSP, less what that form is slower than the strongest; without shared
    rounds the ratio of the times, without an interval of its own."""
    paired, ratio = paired_speedup(measurement(trial)), bsp_us / us
    if paired is None:
        return Speedup(ratio, ratio, ratio)
    return Speedup(*(value * min(1.0, ratio / paired.ratio) for value in paired))


def concluded(found: Mapping[Config, Trial], configs: Iterable[Config]) -> list[Config]:
    """Those of the configs that speak for their variant: final rows conclude its search, so that
    where it has any, only these do."""
    listed = list(configs)
    final = [config for config in listed if found[config].stage != "search"]
    variants = {config.variant for config in final}
    return final + [config for config in listed if config.variant not in variants]


def answer(
    found: Mapping[Config, Trial], times_us: Mapping[Config, float], may: Callable[[Config], bool]
) -> Config:
    """What answers at a place: the fastest config that `may`, of those that speak for their
    variant, or the strongest form of BSP where that is as fast."""
    forms = [config for config in times_us if config.variant == BSP]
    others = concluded(found, times_us.keys() - set(forms))
    return min(
        [*filter(may, others), min(forms, key=times_us.__getitem__)],
        key=lambda config: (times_us[config], config),
    )


# Who won, and what ties.


def strongest(forms: Iterable[Trial]) -> Trial | None:
    """The form of BSP with the least median; None where all failed."""
    measured = [trial for trial in forms if isinstance(trial.outcome, Measurement)]
    return min(measured, key=lambda trial: measurement(trial).median_us, default=None)


def strongest_bsp(trials: Iterable[Trial]) -> Trial | None:
    """The strongest form of BSP among rows of any variant."""
    return strongest(trial for trial in trials if trial.config.variant == BSP)


def time_ratios(trials: Mapping[Config, Trial], bsp: Trial) -> dict[Config, float]:
    """The `time_ratio` of what was measured."""
    ratios = {config: time_ratio(trial, bsp) for config, trial in trials.items()}
    return {config: ratio for config, ratio in ratios.items() if ratio is not None}


def is_fused(variant: str) -> bool:
    """Whether a win of the variant is one of fusion. BSP is not fused, nor is a library's GEMM that
    runs chunk by chunk."""
    return not variant.startswith(BSP)


def is_surely_faster(interval: Interval, discount: float = 1.0) -> bool:
    """Whether a config may answer rather than BSP, which wins ties: all of the interval of its
    speed-up is at least 1.01, which noise and another run (docs/fleet.md) seldom explain. A
    modelled speed-up has neither: behind its `discount` it lies above 1."""
    return interval[0] > 1 if discount > 1 else interval[0] >= TIE


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
