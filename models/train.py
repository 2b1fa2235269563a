"""Train the small tree that picks a config: of measured rows it is grown (`grown`), of modelled ones scikit-learn finds the splits on time
lost; our own frozen `Tree` keeps the decision.

Targets are regrets, not labels: near-ties cost nothing, and a config that BSP would replace costs what BSP costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.tree import DecisionTreeRegressor

from tftune.kernels.shape import Shape
from tftune.kernels.space import Config
from tftune.models.dataset import Dataset
from tftune.models.features import names, vector
from tftune.models.grown import Grown
from tftune.models.leaves import best_bsp, distinct, make_leaf, measured, round_between, total_loss
from tftune.models.tree import Leaf, Node, Split, Tree, own_leaf, walk

FITTED_DEPTH = 5
MERGE_LOSS = 0.005
"""Two leaves become one where that costs their shapes less than this in mean log regret: 0.5 % of the time, below what is measurable."""

LEAST_OWN = 1.08
"""Time over the fastest's from which on a shape gets an answer of its own."""


def train(dataset: Dataset) -> Tree:
    """The tree over a portfolio of configs: each leaf loses as little time over its shapes as one config can, and abstains where none is
    faster than BSP with confidence. Where a measured shape loses by that, it gets an answer of its own."""
    if dataset.bench == "model":
        return _fitted(dataset)
    tree = Grown(dataset).tree()
    return replace(tree, own=own_answers(dataset, tree))


def own_answers(dataset: Dataset, tree: Tree) -> tuple[tuple[tuple[int | str, ...], Leaf], ...]:
    """The shapes whose leaf names something slower than what is known to be the fastest there, by more than LEAST_OWN, or something never
    measured there; and that, of the rows of the final stage or of the matrix. It must beat BSP with confidence, like any answer. And BSP
    for a shape that was only searched, where what its leaf names was tried and is not faster."""
    found = []
    for shape in dataset.shapes:
        known = {c: us for c, us in dataset.times_us[shape].items() if dataset.is_final(shape, c) and dataset.allowed(shape, c)}
        named = tree.walk(dict(zip(names(dataset.op), vector(dataset.op, shape), strict=True)))[0].config
        if not known and named in dataset.outcomes[shape] and not dataset.allowed(shape, named):
            known = {dataset.bsp(shape): dataset.bsp_us(shape)}
        best = min(known, key=lambda config: (known[config], config), default=named)
        if best != named and known.get(named, math.inf) > LEAST_OWN * known[best]:
            low = None if best.variant == "bsp" else round(dataset.speedup_low(shape, best), 4)
            found.append((shape.key[1:], own_leaf(best, dataset.bsp(shape), low, dataset.kernels[best.variant])))
    return tuple(found)


def _fitted(dataset: Dataset) -> Tree:
    """Of modelled rows, from which a model that is put right by them has nothing to learn: the tree that scikit-learn fits to the losses
    of a portfolio. Leaves of one shape are safe, since each must beat BSP by more than the model may err; neighbours that lose nothing
    together are merged, and the gap between a fused leaf and an abstaining one is BSP's."""
    configs = dataset.configs
    table = [[dataset.loss(shape, config) for config in configs] for shape in dataset.shapes]
    rows = [dict(zip(names(dataset.op), vector(dataset.op, shape), strict=True)) for shape in dataset.shapes]
    told = distinct(rows)
    points = [[row[name] for name in told] for row in rows]
    fitted = DecisionTreeRegressor(max_depth=FITTED_DEPTH, random_state=0).fit(points, table)
    grower = _Grower(dataset, configs, rows, told, fitted.tree_, fitted.decision_path(points).toarray())
    return Tree(dataset.op, dataset.mode, grower.node(0).node, measured(dataset.shapes))


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
        return _Grown(make_leaf(self.dataset, shapes, self.configs, config), members, total_loss(self.dataset, shapes, config))


def choose(dataset: Dataset, shapes: Sequence[Shape], configs: Sequence[Config]) -> Config:
    """The config that loses least over these shapes, among those allowed for every one of them; else the best BSP form."""
    eligible = [config for config in configs if all(dataset.allowed(shape, config) for shape in shapes)]
    return min(eligible or [best_bsp(dataset, shapes)], key=lambda config: (total_loss(dataset, shapes, config), config))
