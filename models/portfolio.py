"""Few configs that together are near the fastest at every shape: what a matrix measures, and what
an artifact chooses from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from tftune.db.trial import Trial
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.dataset import Dataset, configs_of, load

SMALLEST_GAIN = 1e-3
"""A config joins where the mean log regret falls by at least this: a tenth of a percent of the
time."""
UNTRIED = 1.5
"""Times as long as the best BSP form, what a form is taken to need at a shape where it was never
measured."""
MATRIX_SIZE = 14
"""Configs of each mode and layout, BSP's forms among them, that `tftune search --portfolio`
measures at sizes alike."""
FORMS = 4
"""Forms of BSP among them at most."""


def loss(dataset: Dataset) -> Callable[[int, Config], float]:
    """Log regret at the shape of that number, where the best BSP form stands in for what is not
    allowed there."""

    def lost(number: int, config: Config) -> float:
        shape = dataset.shapes[number]
        served = config if dataset.allowed(shape, config) else dataset.bsp(shape)
        return dataset.log_regret(shape, served) or 0.0

    return lost


def portfolio(dataset: Dataset, candidates: Iterable[Config], size: int) -> tuple[Config, ...]:
    """The best BSP forms, then, greedily, what lowers the mean log regret most; `size` in all at
    most.

    A pair never measured lowers nothing.
    """
    chosen = forms(dataset, min(FORMS, max(2, size // 3)))
    lost, numbers = loss(dataset), range(len(dataset.shapes))
    losses = {
        config: [lost(number, config) for number in numbers]
        for config in candidates
        if config.variant != "bsp"
    }
    best = [_least(dataset, shape, chosen) for shape in dataset.shapes]
    return tuple(sorted([*chosen, *greedy(losses, best, max(size - len(chosen), 0))]))


def _least(dataset: Dataset, shape: Shape, chosen: Sequence[Config]) -> float:
    """Log regret of the best of these forms of BSP at a shape; of its own best form where none of
    them was measured there."""
    lost = [found for form in chosen if (found := dataset.log_regret(shape, form)) is not None]
    return min(lost) if lost else dataset.log_regret(shape, dataset.bsp(shape)) or 0.0


def cover(
    trials: Iterable[Trial], op: str, target: str, mode: str, bench: str, size: int = MATRIX_SIZE
) -> tuple[Config, ...]:
    """What to measure on every shape of one layout: the portfolio of all configs in these rows."""
    dataset = load(trials, op, target, mode, bench)
    return portfolio(dataset, configs_of(dataset), size)


def forms(dataset: Dataset, most: int) -> list[Config]:
    """The best BSP form of each shape; where they are more than so many, as in an operation whose
    BSP has knobs, those that keep the time lost to each shape's best form small. A form never
    measured at a shape is taken to lose UNTRIED there."""
    found = sorted({dataset.bsp(shape) for shape in dataset.shapes})
    best = {shape: dataset.bsp_us(shape) for shape in dataset.shapes}
    lost = {
        form: [math.log(dataset.times_us[s].get(form, UNTRIED * us) / us) for s, us in best.items()]
        for form in found
    }
    chosen = found if len(found) <= most else []
    while len(chosen) < min(most, len(found)):
        least = [
            min((lost[form][place] for form in chosen), default=math.inf)
            for place in range(len(dataset.shapes))
        ]
        rest = (form for form in found if form not in chosen)
        chosen = [*chosen, min(rest, key=lambda form: (sum(map(min, least, lost[form])), form))]
    return sorted(chosen)


def greedy(
    losses: Mapping[Config, Sequence[float]], best: Sequence[float], most: int
) -> list[Config]:
    """At most so many configs, each the one that lowers the mean over shapes of what is lost the
    most.

    `losses`: log regret of each config at each shape; `best`: what is lost there without any of
    them.
    """
    chosen: list[Config] = []
    while losses and len(chosen) < most:
        gains = {
            config: sum(max(had - lost, 0.0) for had, lost in zip(best, row, strict=True))
            for config, row in losses.items()
        }
        config = max(gains, key=gains.__getitem__)
        if gains[config] < SMALLEST_GAIN * len(best):
            break
        chosen.append(config)
        best = [min(pair) for pair in zip(best, losses[config], strict=True)]
    return chosen
