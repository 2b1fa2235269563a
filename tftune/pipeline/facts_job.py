"""Times of every form of what answers for a shape, with several distributions of lengths: what the
trees over a rank's facts are fitted to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from tftune.db.evidence import completed, is_current, oldest_first
from tftune.db.trial import Measurement, Trial
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.artifact import Artifact
from tftune.models.facts import FactsModel
from tftune.models.facts_fit import Case, case, train
from tftune.models.forms import forms_of
from tftune.models.selector import Selector, fallback


def wanted(selector: Selector, shape: Shape, mode: str, chip: Chip) -> list[Config]:
    """What to measure at a place: BSP for comparison, then every form of the config that the shape
    alone selects."""
    base = selector.without_facts(shape, mode).config
    target = selector.artifacts[shape.op].target if shape.op in selector.artifacts else None
    forms = (form.applied(shape, base, chip) for form in forms_of(shape.op))
    return list(dict.fromkeys([fallback(shape, target), *forms]))


def cases(selector: Selector, artifact: Artifact, rows: Sequence[Trial]) -> list[Case]:
    """A case for each shape and distribution of which every form of the config that answers for the
    shape has a time. `rows`: of one mode, under lengths."""
    candidates = []
    for (shape, lengths), trials in _by_place(artifact.op, rows).items():
        base = selector.without_facts(shape, trials[0].mode)
        if base.source != "fallback":
            times = _times_us(trials)
            candidates.append(case(shape, lengths, base.config, artifact.target.chip, times.get))
    return [each for each in candidates if each is not None]


def _by_place(op: str, rows: Iterable[Trial]) -> dict[tuple[Shape, str], list[Trial]]:
    by_place: dict[tuple[Shape, str], list[Trial]] = {}
    for trial in completed(operation(op).space, oldest_first(rows)):
        name, _, lengths = trial.condition.partition("=")
        if (name, trial.stage) == ("lengths", "matrix") and is_current(trial):
            by_place.setdefault((trial.shape, lengths), []).append(trial)
    return by_place


def _times_us(trials: Sequence[Trial]) -> dict[Config, float]:
    """Comparable times of one place: ratios to the baseline of shared rounds, times one time of
    that baseline; of a bench without rounds the times themselves."""
    measured = {t.config: t.outcome for t in trials if isinstance(t.outcome, Measurement)}
    beside = [
        median(trial.outcome.bsp_samples_us)
        for trial in trials
        if isinstance(trial.outcome, Measurement) and trial.outcome.bsp_samples_us
    ]
    return {
        config: median(beside) / measurement.speedup
        if measurement.speedup and beside
        else measurement.median_us
        for config, measurement in measured.items()
    }


def learned(artifact: Artifact, mode: str, rows: Iterable[Trial]) -> FactsModel | None:
    """The trees of one mode; None where rows are of too few distributions. `artifact`: what answers
    without facts; `rows`: of its operation, target and bench."""
    selector = Selector(artifact, allow_modelled=True, check_source=False)
    mode_cases = cases(selector, artifact, [row for row in rows if row.mode == mode])
    return train(mode_cases) if mode_cases else None
