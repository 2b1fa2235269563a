"""What a config would take where it was not measured: the analytic model, put right by a forest that learned how far it is off.

A tree that sees only measured shapes cannot know what lies between them: which rules a config breaks there, and how its tiles divide among
the units. So shapes between are given to it, too, with estimated losses. Nothing that is shown or shipped is an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import product

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from tftune.db.target import Target
from tftune.kernels.chips import Chip
from tftune.kernels.shape import Shape
from tftune.kernels.space import Config
from tftune.models.dataset import Dataset
from tftune.models.features import pair_vector
from tftune.models.plain import FAR
from tftune.models.timeline import predict

STEPS = (1.0, 0.25, 1.0)
"""Doublings from one shape between to the next: along the first size, the second, and any other."""
BEYOND = (1.0, float(FAR), 1.0)
"""How far beyond the least and the largest value they go: along the second, which is the finest, as far as answers are given."""
AWAY = 1.5
"""Doublings from the nearest measured family at most, summed over its sizes: further away nothing is claimed."""
TREES, LEAF, SHARE = 64, 2, 0.6
"""Of the forest: trees, pairs of a leaf at least, and the share of columns that a split may choose from."""
CAUTION = 0.75
"""Standard deviations over the forest's trees by which an estimate is taken to be too low: where they disagree, little was measured, and
the config that looks best there is often the one whose time is guessed most wrongly. Chosen on the families of 2x H200, held out."""
KEPT = 2**19
"""Pairs of a shape and a config that are worked out once for all folds of an evaluation: with fewer each fold begins anew."""
REACH = 1.0
"""Doublings over which BSP's error of the model is averaged, as the standard deviation of a Gauss kernel."""


def between(shapes: Sequence[Shape]) -> list[Shape]:
    """Shapes among these sizes, of the same worlds and layouts, near some measured family; of the second size as far beyond as answers
    are given.

    The first size takes every power of two, the others the sizes of few binary digits that layers have, such as 3584 = 7 x 512.
    """
    alike: dict[tuple[object, ...], list[Shape]] = {}
    for shape in shapes:
        alike.setdefault(tuple(value for name, value in shape.to_dict().items() if name not in _sizes(shape)), []).append(shape)
    return [shape for group in alike.values() for shape in _lattice(group)]


def _sizes(shape: Shape) -> tuple[str, ...]:
    """The one that grows with the work first. A size of 0 is rather a layout, such as a cache without pages."""
    return tuple(sorted((name for name in shape.sizes() if name != "world" and getattr(shape, name)), key=lambda name: name != shape.SIZE))


def _lattice(group: Sequence[Shape]) -> Iterator[Shape]:
    first, *others = _sizes(group[0])
    along = [*zip(STEPS, BEYOND, strict=True), *[(STEPS[-1], BEYOND[-1])] * len(others)]
    seen = [{int(getattr(shape, name)) for shape in group} for name in (first, *others)]
    axes = [_axis(values, *along[place]) for place, values in enumerate(seen)]
    axes[2:] = [sorted({*axis, *values}) for axis, values in zip(axes[2:], seen[2:], strict=True)]  # too coarse to pass near all of them
    families = np.array(sorted({tuple(math.log2(getattr(shape, name)) for name in others) for shape in group}))
    known = set(group)
    for values in product(*axes):
        far = np.abs(families - np.log2(values[1:])).sum(axis=1).min() > AWAY if others else False
        shape = None if far else _like(group[0], dict(zip((first, *others), values, strict=True)))
        if shape is not None and shape not in known:
            yield shape


def _axis(values: Collection[int], step: float, beyond: float = 1.0) -> list[int]:
    """From the least to the largest value, and so many times beyond, by steps, each of at most three binary digits.

    >>> _axis([1024, 4096], 0.25)
    [1024, 1280, 1536, 1792, 2048, 2560, 3072, 3584, 4096]
    """
    least, most = min(values) / beyond, max(values) * beyond
    low, high = math.log2(least), math.log2(most)
    found = {_plain(2 ** (low + step * number)) for number in range(int((high - low) / step + 1e-9) + 1)}
    return sorted(value for value in found if max(least, 1) <= value <= most)


def _plain(value: float) -> int:
    unit = 2 ** max(math.floor(math.log2(value)) - 2, 0)
    return int(unit * round(value / unit))


def _like(shape: Shape, sizes: dict[str, int]) -> Shape | None:
    try:
        return type(shape).from_dict(shape.to_dict() | sizes)
    except ValueError:  # these sizes cannot be sharded
        return None


class Estimate:
    """Logarithms of microseconds of any pair, learned from the rows of a dataset. It knows nothing where no fused config was measured."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset, self.chip = dataset, Target.parse(dataset.target).chip
        pairs = [(s, c) for s in dataset.shapes for c in sorted(dataset.times_us[s]) if c.variant != "bsp"]
        errors = [math.log(dataset.times_us[s][c]) - self._model(s, c) for s, c in pairs]
        self._forest = ExtraTreesRegressor(TREES, min_samples_leaf=LEAF, max_features=SHARE, random_state=0)
        if pairs:
            self._forest.fit(self._rows(pairs), errors)

    def _model(self, shape: Shape, config: Config) -> float:
        return float(_row(shape, config, self.dataset.mode, self.chip)[-1])

    def _rows(self, pairs: Sequence[tuple[Shape, Config]]) -> np.ndarray:
        return np.array([_row(*pair, self.dataset.mode, self.chip) for pair in pairs], dtype=np.float32)

    def losses(self, shapes: Sequence[Shape], configs: Sequence[Config], possible: np.ndarray) -> np.ndarray:
        """Log regret against the best of these configs, [shapes, configs]; what is not `possible`, [shapes, configs], loses what BSP
        loses."""
        fused = possible & [config.variant != "bsp" for config in configs]
        bsp = self._bsp(shapes)
        found = np.repeat(bsp[:, None], len(configs), axis=1)
        if fused.any():
            rows = self._rows([(shapes[i], configs[j]) for i, j in np.argwhere(fused)])
            found[fused] = self._corrections(rows) + rows[:, -1]
        return np.asarray(found - np.minimum(found.min(axis=1), bsp)[:, None])

    def _corrections(self, rows: np.ndarray) -> np.ndarray:
        """How far off the model is, by the forest, cautiously. `rows`: float32 [pairs, columns]."""
        total, squares = np.zeros(len(rows)), np.zeros(len(rows))
        for tree in self._forest.estimators_:
            found = tree.tree_.predict(rows).ravel()
            total += found
            squares += found**2
        mean = total / TREES
        return np.asarray(mean + CAUTION * np.sqrt(np.maximum(squares / TREES - mean**2, 0)))

    def _bsp(self, shapes: Sequence[Shape]) -> np.ndarray:
        """The model's time of the form that is the strongest nearby, times the model's mean error there, [shapes]."""
        known = self.dataset.shapes
        best = [self.dataset.bsp(other) for other in known]
        errors = np.array(
            [math.log(self.dataset.bsp_us(other)) - self._model(other, form) for other, form in zip(known, best, strict=True)]
        )
        here, there = (np.log2([[max(getattr(s, name), 0.5) for name in s.sizes()] for s in some]) for some in (shapes, known))
        weights = np.exp(-((here[:, None] - there) ** 2).sum(axis=2) / (2 * REACH**2)) + 1e-12
        model = [self._model(shape, best[place]) for shape, place in zip(shapes, weights.argmax(axis=1), strict=True)]
        return np.asarray(model + weights @ errors / weights.sum(axis=1))


@lru_cache(maxsize=KEPT)
def _row(shape: Shape, config: Config, mode: str, chip: Chip) -> np.ndarray:
    """Logarithms, since the forest draws its thresholds evenly between the least and the largest value; the model's time comes last."""
    found = np.log2(np.array(pair_vector(shape, config, chip)) + 2)
    return np.append(found, math.log(predict(shape, config, mode, chip))).astype(np.float32)
