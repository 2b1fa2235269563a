"""Residual correction: the model's time, multiplied by what a forest learned from rows of other
shapes.

The model knows nothing of a kernel's registers or of a library's choices, and errs alike at shapes
that are alike. Of 50 shapes of 2x H200 whose layer was held out, the best of the corrected model's
first four configs was within 1.5 % of the best measured one at 95 %; of the model's own first four,
within 14 %.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from math import log
from typing import Any

import numpy as np

from tftune.db.evidence import is_current
from tftune.db.trial import Measurement, Trial
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.distance import distance
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config, Space
from tftune.tuner.bench.benches import Predict

Describe = Callable[[Shape, Config, Chip], Sequence[float]]
"""Numbers of a shape with a config, as many for every pair of an operation."""
Array = np.ndarray[Any, Any]

ROWS, LEAST = 3000, 200
"""Rows of the nearest shapes that a forest is fitted on; of fewer than the least none is."""
TREES, LEAF, SHARE = 24, 2, 0.6
"""Parameters of the forest: trees, rows of a leaf at least, the share of columns that a split may
choose from."""
EARLIER = 4.0
"""A row of an earlier kernel counts as so many doublings further away."""
THREADS = 8


class Correction:
    """The corrected model on one chip in one mode."""

    def __init__(
        self, space: Space, chip: Chip, mode: str, predict: Predict, describe: Describe | None
    ) -> None:
        self._space = space
        self._chip = chip
        self._mode = mode
        self._predict = predict
        self._describe = describe
        self._rows: dict[Shape, dict[Config, tuple[bool, float]]] = {}
        """Whether the kernel is the present one, and microseconds."""
        self._columns: dict[tuple[Shape, Config], Array] = {}
        self._models: dict[Shape, Any] = {}

    def learn(self, trials: Iterable[Trial]) -> None:
        """Take in rows that count here: measured ones of this mode, whose configs are complete, of
        worlds that the chip's constants suffice for. One GPU alone knows none of its links."""
        for trial in trials:
            if self._chip.missing(getattr(trial.shape, "world", 1)):
                continue
            if trial.mode == self._mode and isinstance(trial.outcome, Measurement):
                present = is_current(trial)
                rows = self._rows.setdefault(trial.shape, {})
                if present or not rows.get(trial.config, (False,))[0]:
                    rows[trial.config] = present, trial.outcome.median_us

    def hints(self, shape: Shape, configs: Sequence[Config]) -> Array:
        """Logarithms of microseconds, float64 [configs]."""
        if not configs:
            return np.empty(0)
        columns = np.array([self._row(shape, config) for config in configs])
        forest = self._forest(shape)
        return columns[:, -1] + (0.0 if forest is None else forest.predict(columns))

    def _row(self, shape: Shape, config: Config) -> Array:
        """The model's time comes last; the others as logarithms, since a forest draws its
        thresholds evenly."""
        row = self._columns.get((shape, config))
        if row is None:
            values = self._describe(shape, config, self._chip) if self._describe else ()
            modelled = log(self._predict(shape, config, self._mode, self._chip))
            row = np.append(np.log2(np.array(values) + 2), modelled).astype(np.float32)
            self._columns[shape, config] = row
        return row

    def _forest(self, shape: Shape) -> Any:
        """What was fitted for this shape, on the rows of the shapes nearest to it but its own; None
        where they are too few."""
        if shape not in self._models:
            self._models[shape] = self._fitted(self._nearest(shape)) if self._describe else None
        return self._models[shape]

    def _nearest(self, shape: Shape) -> list[tuple[Shape, Config, float]]:
        """The nearest shape's first; in an order that does not depend on when rows came."""
        candidates = []
        for other, rows in self._rows.items():
            if other != shape:
                far = distance(shape, other)
                candidates += [
                    (far + EARLIER * (not present), other, config, us)
                    for config, (present, us) in rows.items()
                ]
        candidates.sort()
        return [row[1:] for row in candidates[:ROWS]]

    def _fitted(self, rows: Sequence[tuple[Shape, Config, float]]) -> Any:
        if len(rows) < LEAST:
            return None
        from sklearn.ensemble import ExtraTreesRegressor

        columns = np.array([self._row(shape, config) for shape, config, _ in rows])
        errors = np.log([us for _, _, us in rows]) - columns[:, -1]
        threads = max(1, min(THREADS, (os.cpu_count() or 1) // 4))
        forest = ExtraTreesRegressor(
            TREES, min_samples_leaf=LEAF, max_features=SHARE, random_state=0, n_jobs=threads
        )
        return forest.fit(columns, errors)
