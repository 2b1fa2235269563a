"""Train the small tree that picks a config: scikit-learn finds the splits on time lost, and our own frozen `Tree` keeps the decision.

Targets are regrets, not labels: near-ties cost nothing, and a config that BSP would replace costs what BSP costs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.tree import DecisionTreeRegressor

from tftune.kernels.shape import Shape
from tftune.kernels.space import Config
from tftune.models.dataset import Dataset
from tftune.models.dataset import portfolio as pick
from tftune.models.features import names, vector
from tftune.models.tree import Leaf, Node, Split, Tree, walk

MERGE_LOSS = 0.005
"""Two leaves become one where that costs their shapes less than this in mean log regret: 0.5 % of the time, below what is measurable."""


def train(dataset: Dataset, *, max_depth: int = 5, min_samples_leaf: int = 1, portfolio: int = 12, seed: int = 0) -> Tree:
    """The tree over a portfolio of configs. Small leaves are safe, because each must beat BSP with confidence or abstain,
    neighbours that lose nothing together are merged, and the gap between a fused leaf and an abstaining one is BSP's."""
    configs = pick(dataset, portfolio)
    table = [[dataset.loss(shape, config) for config in configs] for shape in dataset.shapes]
    rows = [dict(zip(names(dataset.op), vector(dataset.op, shape), strict=True)) for shape in dataset.shapes]
    told = distinct(rows)
    points = [[row[name] for name in told] for row in rows]
    fitted = DecisionTreeRegressor(max_depth=max_depth, min_samples_leaf=min_samples_leaf, random_state=seed).fit(points, table)
    grower = _Grower(dataset, configs, rows, told, fitted.tree_, fitted.decision_path(points).toarray())
    return Tree(dataset.op, dataset.mode, grower.node(0).node, _measured(dataset.shapes))


def distinct(rows: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    """The features that order the shapes in different ways; of those that agree, the first, which is the plainest.

    >>> distinct([{"m": 1, "n": 8, "area": 8}, {"m": 2, "n": 8, "area": 16}, {"m": 4, "n": 4, "area": 16}])
    ('m', 'n', 'area')
    >>> distinct([{"m": 1, "n": 8, "area": 8}, {"m": 2, "n": 8, "area": 16}])
    ('m', 'n')
    """
    found: dict[tuple[int, ...], str] = {}
    for name in rows[0]:
        order = {value: rank for rank, value in enumerate(sorted({row[name] for row in rows}))}
        found.setdefault(tuple(order[row[name]] for row in rows), name)
    return tuple(found.values())


def round_between(low: float, high: float, part: tuple[float, float] = (0.25, 0.75)) -> float:
    """A number t with low <= t < high that reads well, from a part of the gap: a power of two, else one of few digits.

    >>> round_between(64, 128), round_between(64, 256), round_between(1, 2), round_between(0, 1)
    (100.0, 128.0, 1.5, 0.5)
    >>> round_between(64, 128, (0, 0.25)), round_between(512, 1024, (0.75, 1))
    (64.0, 1000.0)
    """
    least, most = (low + share * (high - low) for share in part)
    middle = (least + most) / 2
    tried = [2.0 ** round(math.log2(middle))] if middle >= 1 else []
    tried += [float(f"{middle:.{digits}g}") for digits in range(1, 17)]
    return next((value for value in tried if least <= value <= most and value < high), low)


def _measured(shapes: Sequence[Shape]) -> tuple[tuple[str, tuple[int | str, ...]], ...]:
    """Values seen of each field: the world size and words (dtype, layouts) are never interpolated, sizes not far beyond their range."""
    return tuple((name, tuple(sorted({shape.to_dict()[name] for shape in shapes}))) for name in sorted(shapes[0].to_dict()))


@dataclass(frozen=True)
class _Grown:
    """A node with the training shapes under it (indices), and what they lose in all."""

    node: Node
    members: tuple[int, ...]
    loss: float
    by: str = ""
    """The feature of a split."""
    sides: tuple[_Grown, ...] = ()

    @property
    def below(self) -> _Grown:
        return self.sides[0]

    @property
    def above(self) -> _Grown:
        return self.sides[1]


def _same_leaf(one: _Grown, other: _Grown) -> bool:
    return isinstance(one.node, Leaf) and isinstance(other.node, Leaf) and one.node.config == other.node.config


@dataclass(frozen=True)
class _Grower:
    """Turns scikit-learn's arrays into our nodes, from the leaves up, merging neighbours that lose nothing together."""

    dataset: Dataset
    configs: tuple[Config, ...]
    rows: list[dict[str, float]]
    told: tuple[str, ...]
    """The features that scikit-learn saw."""
    arrays: Any
    paths: Any
    """[shapes, nodes]: whether the shape passes through the node."""

    def node(self, index: int) -> _Grown:
        members = tuple(i for i in range(len(self.rows)) if self.paths[i, index])
        merged = self._leaf(members)
        if self.arrays.children_left[index] < 0:
            return merged
        below, above = self.node(self.arrays.children_left[index]), self.node(self.arrays.children_right[index])
        if merged.loss <= below.loss + above.loss + MERGE_LOSS * len(members):
            return merged
        return self._split(self.told[self.arrays.feature[index]], below, above)

    def _split(self, feature: str, below: _Grown, above: _Grown) -> _Grown:
        """A split on this feature; a leaf whose neighbour across the threshold says the same takes it in."""
        if above.by == feature and _same_leaf(below, above.below):
            return self._split(feature, self._leaf(below.members + above.below.members), above.above)
        if below.by == feature and _same_leaf(below.above, above):
            return self._split(feature, below.below, self._leaf(below.above.members + above.members))
        threshold = self._threshold(feature, below, above)
        members = tuple(sorted(below.members + above.members))
        return _Grown(Split(feature, threshold, below.node, above.node), members, below.loss + above.loss, feature, (below, above))

    def _threshold(self, feature: str, below: _Grown, above: _Grown) -> float:
        """Between a fused leaf and an abstaining one the gap is left to BSP: nothing was measured there."""
        last = max(below.members, key=lambda i: self.rows[i][feature])
        first = min(above.members, key=lambda i: self.rows[i][feature])
        low, high = self.rows[last][feature], self.rows[first][feature]
        low_abstains, high_abstains = (walk(side.node, self.rows[i])[0].abstains for side, i in ((below, last), (above, first)))
        if low_abstains == high_abstains or high - low <= 1:
            return round_between(low, high)
        return round_between(low, high, (0, 0.25) if high_abstains else (0.75, 1))

    def _leaf(self, members: tuple[int, ...]) -> _Grown:
        shapes = [self.dataset.shapes[i] for i in members]
        config = choose(self.dataset, shapes, self.configs)
        return _Grown(make_leaf(self.dataset, shapes, self.configs, config), members, _total_loss(self.dataset, shapes, config))


def _total_loss(dataset: Dataset, shapes: Sequence[Shape], config: Config) -> float:
    return math.fsum(dataset.loss(shape, config) for shape in shapes)


def choose(dataset: Dataset, shapes: Sequence[Shape], configs: Sequence[Config]) -> Config:
    """The config that loses least over these shapes, among those allowed for every one of them; else the best BSP form."""
    eligible = [config for config in configs if all(dataset.allowed(shape, config) for shape in shapes)]
    return min(eligible or [_best_bsp(dataset, shapes)], key=lambda config: (_total_loss(dataset, shapes, config), config))


def _best_bsp(dataset: Dataset, shapes: Sequence[Shape]) -> Config:
    """The BSP form that is valid for most of these shapes (A sharded along M needs its own), then the one that loses least."""
    forms = sorted({dataset.bsp(shape) for shape in shapes})
    valid = {form: [shape for shape in shapes if dataset.why_invalid(shape, form) is None] for form in forms}
    return min(forms, key=lambda form: (-len(valid[form]), _total_loss(dataset, valid[form], form)))


def make_leaf(dataset: Dataset, shapes: Sequence[Shape], configs: Sequence[Config], config: Config) -> Leaf:
    """The leaf that names this config for these shapes, and says why."""
    worst = max(dataset.loss(shape, config) for shape in shapes)
    low = None if config.variant == "bsp" else min(dataset.speedup_low(shape, config) for shape in shapes)
    return Leaf(
        config=config,
        bsp=_best_bsp(dataset, shapes),
        rows=len(shapes),
        worst_regret=round(math.exp(worst), 4),
        speedup_low=None if low is None else round(low, 4),
        reason=_reason(dataset, shapes, configs, config, low),
        kernel_hash=dataset.kernels[config.variant],
    )


def _reason(dataset: Dataset, shapes: Sequence[Shape], configs: Sequence[Config], config: Config, low: float | None) -> str:
    how, count = ("predicted" if dataset.bench == "model" else "measured"), f"{len(shapes)} training shape{'s' if len(shapes) > 1 else ''}"
    if low is not None:
        return f"{config.variant} is {how} to be at least {low:.2f} times as fast as BSP on {count}"
    rivals = {rival: _unguarded_loss(dataset, shapes, rival) for rival in configs if rival.variant != "bsp"}
    rival = min(rivals, key=rivals.__getitem__, default=None)
    if rival is None or rivals[rival] >= _total_loss(dataset, shapes, config):
        return f"BSP is {how} to be the fastest on {count}"
    worst = min(dataset.speedup_low(shape, rival) for shape in shapes)
    return (
        f"{rival.variant} may be faster, but the lower bound of its speed-up over BSP is {worst:.2f} on one of {count}: BSP until it is 1"
    )


def _unguarded_loss(dataset: Dataset, shapes: Sequence[Shape], config: Config) -> float:
    """Summed log regret if the config were run whatever its bound; infinite where it was not measured."""
    losses = [dataset.log_regret(shape, config) for shape in shapes]
    return math.inf if None in losses else math.fsum(loss for loss in losses if loss is not None)
