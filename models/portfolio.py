"""Few configs that together are near the fastest at every shape: what a matrix measures, and what
an artifact chooses from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

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


def loss(dataset: Dataset, config: Config) -> np.ndarray:
    """[shapes]: log regret, where the best BSP form stands in for what is not allowed."""

    def lost(shape: Shape) -> float:
        served = config if dataset.allowed(shape, config) else dataset.bsp(shape)
        return dataset.log_regret(shape, served) or 0.0

    return dataset.column(("lost", config), lost)


def portfolio(dataset: Dataset, candidates: Iterable[Config], size: int) -> tuple[Config, ...]:
    """The best BSP forms, then, greedily, what lowers the mean log regret most; `size` in all at
    most.

    A pair never measured lowers nothing.
    """
    chosen = forms(dataset, min(FORMS, max(2, size // 3)))
    fused = list(dict.fromkeys(config for config in candidates if config.variant != "bsp"))
    had = np.array([_least(dataset, shape, chosen) for shape in dataset.shapes])
    losses = np.array([loss(dataset, config) for config in fused]).reshape(len(fused), len(had))
    picked = greedy(losses.T.copy(), had, max(size - len(chosen), 0), SMALLEST_GAIN)
    return tuple(sorted([*chosen, *(fused[number] for number in picked)]))


def _least(dataset: Dataset, shape: Shape, chosen: Sequence[Config]) -> float:
    """Log regret of the best of these forms of BSP at a shape; of its own best form where none of
    them was measured there."""
    lost = [
        log_regret for form in chosen if (log_regret := dataset.log_regret(shape, form)) is not None
    ]
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
    candidates = sorted({dataset.bsp(shape) for shape in dataset.shapes})
    best = {shape: dataset.bsp_us(shape) for shape in dataset.shapes}
    times = [
        [dataset.times_us[s].get(form, UNTRIED * us) for form in candidates]
        for s, us in best.items()
    ]
    lost = np.log(np.array(times) / np.array([list(best.values())]).T)
    return sorted(candidates[number] for number in greedy(lost, lost.max(axis=1), most))


def greedy(lost: np.ndarray, had: np.ndarray, most: int, least: float | None = None) -> list[int]:
    """At most so many columns of `lost`, each the one that lowers the mean over shapes of what is
    lost the most; of equals the first.

    `lost` [shapes, configs]: log regret; `had` [shapes]: what is lost without any of them. A gain
    of less than `least` ends it; None takes as many as there are.

    >>> lost = np.array([[0.1, 0.0, 0.0], [0.0, 0.1, 0.0998]])
    >>> greedy(lost, np.array([0.1, 0.1]), 3, 1e-3), greedy(lost, np.array([0.1, 0.1]), 3)
    ([2, 0], [2, 0, 1])
    """
    chosen: list[int] = []
    while len(chosen) < min(most, lost.shape[1]):
        gains = np.maximum(had[:, None] - lost, 0).mean(axis=0)
        gains[chosen] = -1.0
        if least is not None and gains.max() < least:
            break
        chosen.append(int(gains.argmax()))
        had = np.minimum(had, lost[:, chosen[-1]])
    return chosen
